SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE TYPE public.new_operation AS (
	order_key bytea,
	transaction_id bigint,
	context bigint,
	listed bigint,
	status smallint,
	created_at bigint,
	finished_at bigint,
	amount bigint,
	customer_account_id bigint,
	counted_day integer,
	order_id text,
	fingerprint bytea,
	callback_url text,
	sealed bytea,
	payer bytea,
	cause smallint,
	has_job smallint
);
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.accounts (
    balance bigint NOT NULL,
    account smallint NOT NULL,
    merchant text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.actions (
    id bigint NOT NULL,
    began_at bigint NOT NULL,
    ended_at bigint,
    user_name text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    address text NOT NULL,
    request_id text NOT NULL,
    action text NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL,
    parameters text NOT NULL,
    rules_version text NOT NULL,
    idempotency_key bytea,
    outcome text,
    CONSTRAINT actions_end CHECK (((ended_at IS NULL) = (outcome IS NULL)))
);
CREATE TABLE public.backup_mark (
    id integer NOT NULL,
    known_until bigint NOT NULL,
    CONSTRAINT backup_mark_id_check CHECK ((id = 1))
);
CREATE TABLE public.balance_changes (
    transaction_id bigint NOT NULL,
    amount bigint NOT NULL,
    posting smallint NOT NULL,
    account smallint NOT NULL,
    merchant text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL COLLATE pg_catalog."C"
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000');
CREATE TABLE public.callback_tries (
    key bigint NOT NULL,
    began_at bigint NOT NULL,
    duration_us bigint NOT NULL,
    number bigint NOT NULL,
    status integer,
    error text
);
CREATE TABLE public.callbacks (
    key bigint NOT NULL,
    nonce bigint NOT NULL,
    queued_at bigint NOT NULL,
    tries bigint NOT NULL,
    state smallint NOT NULL,
    last_status integer,
    merchant text NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL COLLATE pg_catalog."C",
    last_error text,
    CONSTRAINT callbacks_outcome CHECK (((last_status IS NULL) OR (last_error IS NULL))),
    CONSTRAINT callbacks_state CHECK (
CASE state
    WHEN 0 THEN true
    WHEN 1 THEN (tries > 0)
    WHEN 2 THEN ((last_status IS NOT NULL) OR (last_error IS NOT NULL))
    ELSE false
END)
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='10000');
CREATE TABLE public.check_counts (
    count bigint NOT NULL,
    since bigint NOT NULL,
    updated_at bigint NOT NULL,
    direction smallint NOT NULL,
    class smallint NOT NULL,
    merchant text NOT NULL COLLATE pg_catalog."C",
    rules bytea NOT NULL,
    id bytea NOT NULL,
    shop text NOT NULL COLLATE pg_catalog."C",
    member text NOT NULL,
    reason text NOT NULL,
    file text NOT NULL,
    key text NOT NULL,
    samples text NOT NULL
);
CREATE TABLE public.complete_ids (
    complete_at bigint NOT NULL,
    direction smallint NOT NULL,
    merchant text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.contexts (
    id bigint NOT NULL,
    direction smallint NOT NULL,
    provider smallint NOT NULL,
    origin smallint NOT NULL,
    merchant text NOT NULL COLLATE pg_catalog."C",
    api_key text NOT NULL,
    shop text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL COLLATE pg_catalog."C",
    method text,
    payment_method text,
    kept text
);
CREATE TABLE public.contradictions (
    transaction_id bigint NOT NULL,
    status smallint NOT NULL,
    reported_at bigint NOT NULL,
    acknowledged_by text COLLATE pg_catalog."C",
    acknowledged_at bigint,
    CONSTRAINT contradictions_acknowledged CHECK (((acknowledged_by IS NULL) = (acknowledged_at IS NULL)))
);
CREATE TABLE public.copying (
    name text NOT NULL,
    copied bigint NOT NULL
);
CREATE TABLE public.daily_usage (
    operations bigint NOT NULL,
    amount bigint NOT NULL,
    customer_account_id bigint NOT NULL,
    day integer NOT NULL,
    direction smallint NOT NULL,
    merchant text NOT NULL COLLATE pg_catalog."C",
    shop text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.data_keys (
    id integer NOT NULL,
    purpose text NOT NULL,
    wrapped bytea NOT NULL
);
CREATE TABLE public.entries (
    transaction_id bigint NOT NULL,
    amount bigint NOT NULL,
    posted_at bigint NOT NULL,
    posting smallint NOT NULL,
    account smallint NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    merchant text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.forgotten (
    id integer NOT NULL,
    until bigint NOT NULL,
    CONSTRAINT forgotten_id_check CHECK ((id = 1))
);
CREATE TABLE public.homes (
    ref bigint NOT NULL,
    home smallint NOT NULL,
    order_key bytea NOT NULL
);
CREATE TABLE public.journal (
    entry bigint NOT NULL,
    created_at bigint NOT NULL,
    doubted_at bigint,
    amount bigint NOT NULL,
    direction smallint NOT NULL,
    state smallint NOT NULL,
    status smallint NOT NULL,
    order_key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    merchant text NOT NULL COLLATE pg_catalog."C",
    order_id text NOT NULL COLLATE pg_catalog."C",
    api_key text NOT NULL,
    shop text NOT NULL COLLATE pg_catalog."C",
    v1_callback_url text,
    transaction_id text COLLATE pg_catalog."C",
    redirect_url text,
    account bytea,
    body bytea NOT NULL,
    CONSTRAINT journal_answer CHECK (((state = 2) OR ((status = 0) AND (transaction_id IS NULL) AND (redirect_url IS NULL) AND (account IS NULL)))),
    CONSTRAINT journal_state CHECK (
CASE state
    WHEN 2 THEN ((transaction_id IS NOT NULL) AND (doubted_at IS NULL))
    WHEN 1 THEN (doubted_at IS NOT NULL)
    WHEN 0 THEN true
    ELSE false
END)
);
CREATE TABLE public.merchants (
    merchant text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.operations (
    transaction_id bigint NOT NULL,
    context bigint NOT NULL,
    listed bigint NOT NULL,
    created_at bigint NOT NULL,
    finished_at bigint,
    amount bigint NOT NULL,
    customer_account_id bigint,
    counted_day integer,
    status smallint NOT NULL,
    has_job smallint NOT NULL,
    order_id text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea NOT NULL,
    callback_url text,
    sealed bytea NOT NULL,
    payer bytea,
    cause smallint,
    cause_code text COLLATE pg_catalog."C",
    cause_text text COLLATE pg_catalog."C",
    job_attempts integer,
    job_ended_at bigint,
    job_kind smallint,
    job_failure text COLLATE pg_catalog."C",
    CONSTRAINT operations_cause CHECK (((COALESCE((cause)::integer, 1) = 0) OR ((cause_code IS NULL) AND (cause_text IS NULL)))),
    CONSTRAINT operations_state CHECK (
CASE status
    WHEN 0 THEN ((finished_at IS NULL) AND (payer IS NULL) AND (cause IS NULL))
    WHEN 1 THEN ((finished_at IS NOT NULL) AND (cause IS NULL))
    WHEN 2 THEN ((finished_at IS NOT NULL) AND (payer IS NULL) AND (cause IS NOT NULL))
    ELSE false
END)
);
CREATE TABLE public.paybridge_formats (
    format bigint NOT NULL,
    state smallint NOT NULL,
    hash bytea NOT NULL,
    release text NOT NULL,
    CONSTRAINT paybridge_formats_state CHECK ((state = ANY (ARRAY[0, 1, 2])))
);
CREATE TABLE public.preparations (
    transaction_id bigint NOT NULL,
    sealed bytea NOT NULL
);
CREATE TABLE public.probe (
    id integer NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT probe_id_check CHECK ((id = 1))
);
CREATE TABLE public.provider_queries (
    transaction_id bigint NOT NULL,
    queried_at bigint NOT NULL,
    job_attempts integer,
    job_ended_at bigint,
    job_kind smallint,
    job_failure text COLLATE pg_catalog."C"
);
CREATE TABLE public.resolutions (
    id bigint NOT NULL,
    transaction_id bigint NOT NULL,
    status smallint NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    made_by text NOT NULL COLLATE pg_catalog."C",
    made_at bigint NOT NULL,
    state smallint NOT NULL,
    confirmed_by text COLLATE pg_catalog."C"
);
CREATE TABLE public.tasks (
    key bigint NOT NULL,
    queued_at bigint NOT NULL,
    due_at bigint NOT NULL,
    attempts integer NOT NULL,
    kind smallint NOT NULL,
    state smallint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    failure text COLLATE pg_catalog."C",
    failed_at bigint,
    CONSTRAINT tasks_state CHECK (
CASE state
    WHEN 0 THEN (attempts >= 0)
    WHEN 1 THEN (attempts > 0)
    ELSE false
END)
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000');
INSERT INTO public.actions VALUES (252743510798582827, 1795948348721, 1795948348731, 'cli:0', '', '', '7f02ed07b746ccd7fdfe6f7fc9f6e7e5', 'ids.import', 'acme', '{"file":"/tmp/.tmp97aGi1/ids.txt","kind":"payin","lines":"1"}', '437a76e28893be99', '\x4cb9a50dc11aacdb4a314000a3b102e4', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252743509450735629, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509450735629, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509597536667, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509597536667, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509450735629, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509450735629, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509748533494, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509748533494, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509803061174, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509803061174, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509748533494, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252743509748533494, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252743509471708016, 1795948348501, 14060, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252743509719172878, 1795948348501, 13496, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252743509450735629, 1795948348501, 13940, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252743509366851027, 1795948348501, 14249, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252743509782087804, 1795948348554, 2762, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252743509471708016, -6094555736903936241, 1795948348405, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252743509719172878, -4490689636682278912, 1795948348464, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252743509450735629, 5210250759262635501, 1795948348458, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252743509366851027, -4482059267774531234, 1795948348380, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252743509748533494, -7235618938837232357, 1795948348535, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.callbacks VALUES (252743509782087804, 3681976397578879935, 1795948348479, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.contexts VALUES (-8701645510893829197, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (3052927756142828526, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (-6650350606536927698, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (3301522217028747737, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x01b5cc5defe470e10b38c6662785cce5a80326254a73e0b340c4c3d6048e772d4884b2eeba9edde00c32d17ef599ae86f13d07b92f0f4d363b017fd80a');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x01dcc6205d17b9408d80d603a5cad3e0f71fe8eca42ab95077201087c7f8d24166284c5a323e9e008a84022a5d720151d0bc320b879167e6287bfab7ba');
INSERT INTO public.entries VALUES (252743509450735629, -700, 1795948348400, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509450735629, 700, 1795948348400, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509597536667, -702, 1795948348435, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509597536667, 702, 1795948348435, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509450735629, -700, 1795948348458, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509450735629, 700, 1795948348458, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509748533494, -700, 1795948348471, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509748533494, 700, 1795948348471, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509803061174, -702, 1795948348484, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509803061174, 702, 1795948348484, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509748533494, -700, 1795948348535, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252743509748533494, 700, 1795948348535, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252743509274577263, 0, '\x980493767eabc54891cb5f784d294b7b');
INSERT INTO public.homes VALUES (252743509366851027, 0, '\x980493767eabd16de29dab76584766e2');
INSERT INTO public.homes VALUES (252743509412987582, 0, '\x980493767eab9c417cc5ae4410ce7632');
INSERT INTO public.homes VALUES (252743509450735629, 0, '\x18c0f4d12ff6b3fe8c95bae5d04a3aec');
INSERT INTO public.homes VALUES (252743509471708016, 0, '\x18c0f4d12ff6e035710c6ed2b8fa007f');
INSERT INTO public.homes VALUES (252743509597536667, 0, '\x18c0f4d12ff6d048a7722294eaaee283');
INSERT INTO public.homes VALUES (252743509643674981, 0, '\xc952212f079074da871798d657687e63');
INSERT INTO public.homes VALUES (252743509719172878, 0, '\xc952212f07903d5f794447876dfbdac8');
INSERT INTO public.homes VALUES (252743509735952264, 0, '\xc952212f0790797ddab5865d871db4b5');
INSERT INTO public.homes VALUES (252743509748533494, 0, '\x950357b0d69eefa5c184029813c095a5');
INSERT INTO public.homes VALUES (252743509782087804, 0, '\x950357b0d69ef7dd65173a6f591b8216');
INSERT INTO public.homes VALUES (252743509803061174, 0, '\x950357b0d69e6ee07cb4c7877e1fa134');
INSERT INTO public.homes VALUES (252743510822273024, 3, '\x9b557e8309d1d3870fe73beaf27e7f83');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252743509274577263, -8701645510893829197, 916332153121235392, 1795948348358, NULL, 700, 42, NULL, 0, 0, 'Payin-00', '\xb9f2886f6b967a4dce93c57826ae9f43', 'https://acme.example/cb', '\x010200916bd3355963c6afe4afd64becd8bb613b3c73ffee10c1b6f3a4439d03ec0700911f8600b92870e28d15545e2615feff62ff2a5cd07a805e727050493b3e9961aa4753d10b28670d49b23ce86aa52ef3885af7b70dfb829aa41816e5c285cdf209ea329f2a728cceec7dda99314811e702ec4ec076a8c1cdc172ab68d34b790783e614f50f8d0fbee4ed3eb645cf586a34a6b58590f5b7350c06d56c9ba8890a63da77c99d878aff8a9378c32c381454bd9d01abb766185e237349c8cee1bfb8a32f03bc09203c0451de16b3a5dd72aea50183dba872b60c142353ac2763e8d582ff466f60e62be677c82411fa264022af894162fbeb647e0c0f62d7887220ff49fee331b8cfe2c1e6e791f0966f0ee575b70723caada2a0dd080ea97a1733e9fb51dfd1c2d057a949cc46a795a465dfa23e78e15647c0ed0a4d61a9b9af2f66dfcaa195ade1acb78c64c0c602be4a27943485ce6ead0f6140a696e14fb22e1782fb3fa9', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509366851027, -8701645510893829197, 916332153121235392, 1795948348380, 1795948348380, 701, 42, NULL, 2, 0, 'Payin-01', '\x81dbe3779f3e920a43c50acd1cee2116', 'https://acme.example/cb', '\x010200e0efd9326e194027bd72c7ab8424f13c05182870fa4650e08ef4d49a49776d3cf028373d989c56ebacf22dd1343ec8771db2452aa7ec5a66642a325d54375fda7d8d3ee301368708234ffb320caa2f84f0d6a335312954406f5e6f85df0fcbf13c58be7e554867f55d69edd37ffa607568d716d7dcdd6aa6f047ee39848a44320d62c7ba7027010e5cbb80232b890334ae866348805ec068d175892b86c9af620fc06782bc93cde5663b6b4f618c2fbc98891dc74ef63f0e7c735f982ae3795c9595dee0e54178680709ec2a2dd3a1928eef49aee34c3899668c1fdcde2244affca9bd1aae46e511a5ff8bf950af4facf9405187f6e8d44c53b7b3a649f0fc12016b535b9f7c7f9b93e72a025cec7dc2a83e0325b6eafd94753ce63aaa987fa2238c1585521591f3880aa9663176c66cf5d8b84d8324079d1919a017a6a7cecfe0695d3eca33df7cb025d4e663aec5ec1c18589c40e3141e65cda5930e3fadd25c6a3180', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509412987582, -8701645510893829197, 916332153121235392, 1795948348391, NULL, 702, 42, NULL, 0, 0, 'Payin-02', '\xbba02433dbbc80c8be2f2be84ee0fdd5', 'https://acme.example/cb', '\x010200389421b26b4e48404b5aedd25e775f494dd3e43fdf33bbdccd75a2d5533d222db4c6464629ba12667e49e4232f26924a113c8798d73269619a343b82f3d7c7fc0483414cf4af894853697baedeffb1d8b6e6f6e7b470bdd6ca98c538c98375a98c04280a5a8a6ebc92fb02d4cc4389ec8070f9374cb9ffb2ece6cb430f52b27ff2fd740cf1f8ffe4463e7db799c9d636059a13d2180aa360e53f82f66729a0d9ac357612351d661f8ababa6a60a702752ab979c061c9b3a8e896a4be4dff65450bd85f3b34fb8e2d23e9759a57832a6f95111ae3f629c2e163e22642783ae23ea8e90458ed9d3000e7446eec15fd6e22f3984c60a69d3b2b624c20932e9bc3fea86c9a8cc602ab78d7e647e138b954d54c57e5a84880b0a620a3f7a290c0521918c6a06df2a5fe01470ccb9d388055e0ddfc1121c9bc08040005cfcc99b67d0ced413d4d59e7dcdf985074cbd300e94d19e2132eeb5e23c2c42382538de27a2c07e7be9b', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509471708016, 3052927756142828526, 916332153121235392, 1795948348405, 1795948348405, 701, NULL, NULL, 2, 0, 'Payout-01', '\x68437ad3ee5bec1a0b38749b997ba74f', 'https://acme.example/cb', '\x010200db11f9d7e4d03813bf7f3f0d27cbba9b23da011e92c2b6591a61f29a49da2cea71f3dc67ee9a4d5cc2f0f075f74f4c54735762ffa85c81473346674ca6423f4cd8ac2b210ad33e41cbc9709a9bfac77f5fd9837643660eb43fce6c52e6ca6b025b0a505e90583c91f0ce3fa38dd5b65f7ae22d1a2bb2b488b3da2aeaf7d64244', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509597536667, 3052927756142828526, 916332153121235392, 1795948348435, NULL, 702, NULL, NULL, 0, 1, 'Payout-02', '\x2905be05afdc922c07b695f3c8b8fd9c', 'https://acme.example/cb', '\x0102005d5d58d6db07a3b95569e6c0847b2fe707d6d99d3ba315be0124507e79b97b0ee1cfb51260d75f83aa62d2235403510f0ece402143f3e596414374ed982b52cba39e1e67d0c1fea41f135b4a01aac0f532684b5c48a13c49f25a135da19c8142817a4056a05228a401fa9ffd71425b5651318f9a26c86bedddcd7bf550c0fef8', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509643674981, -6650350606536927698, -916332153121235393, 1795948348446, NULL, 700, NULL, NULL, 0, 0, 'Deposit-00', '\x58f05a4da260287b008889d698df3d6d', 'https://acme.example/cb', '\x010200ceef2f0989f3bde81d159a76da7b1331e82535a0ea4d2db93e43663d58a768a4a5ebdc2d2e7847061230fb970b19af8295cd3ac7367a498fa7cedec32747ba541eed517663b44b557f1a6cdfb8b59f0b1f6148c142be15c06b8ffea5db459541c3ef590a08f9c8f074333c5101884380a4e5fed7577a4de5d7e20f1fa53cfaffc734f4d915636e6ecd30012187ca1e572e3657411c8b8404d50dbf8c7311e71d1fbdf265743a4f51122da7ca48b59b39ba9f7b598f746171698a30bb713c86062c55b22d6a0daaecfbe2c20bdfc2429716bea0084de19acc92b47f29bd3aad392d3af2dd0625b2598d7a510ea5836bd2c0d28ce34436b95581423132404d129bac205c45b4dea3775bd28b5407b5621e272ff3c934f3298edfe2149531b0d86d3d5602b82ea94a915a98efd295308a421c8d0c3ce1440462b1c6d78d4bc6d1c988ffc4eb18', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509450735629, 3052927756142828526, 916332153121235392, 1795948348400, 1795948348458, 700, NULL, NULL, 1, 1, 'Payout-00', '\xe85ce894d22e1deb91af43fd9368ec48', 'https://acme.example/cb', '\x010200ae89a9624b3b3321f213c423d423986b82ee7dd46237b695705a5984a5ac4b848fba5b7eabfa75200ff540d3d8b93558c131d93473d4b7acaad41c8f4e94a6bccfffce9d086ce6aa20f6d15389d7bd217fe4ea9e0745200d51ced4db301db01b29d2e18e7fb9f0d20f365c1b23a149c915458612aa46649ce5cfad05bc4e1566', NULL, NULL, NULL, NULL, 1, 1795948348458, 0, NULL);
INSERT INTO public.operations VALUES (252743509719172878, -6650350606536927698, -916332153121235393, 1795948348464, 1795948348464, 701, NULL, NULL, 2, 0, 'Deposit-01', '\x4cc37e36b9069ee713ebbe43131564c9', 'https://acme.example/cb', '\x010200158c0e1a6067c8ffdd4dc5e476fc118ce8d79200a68153b1a59348b2aa5f2b7ce095f49d116b24da38108c1cfce3ba59d799c9f8a2f0209de6f698506195fe495c1c8af8ab68723eded24b5d5340351567c8fc45e922f69fa8bf786793965812e2056152e59cfbb4b8dee1d58757b70178ec410d4fdb3f7a22cb139f8498421ea4f08862f556d96aef731bc226ba76355af8027758873f08e69a9555c5d944191f0ea2723c6305bdc208af921bac9eebc4dc5ff3e1bfbf332130c3144e07cd1d9f3b60404cafcf72742582a23cbae72be862972ee95cf33220d16a9dca45f6b066353dab04a38a502c85026af7268b0bbacdd8b73f3654f48a9b34a7c7e1bf3f91a85231a67f230cfe601f2362afb231423cdf7790fddda4478a1c66561d6423056e888696db6fd866ceb8205281613e472367ccec72407259d904642293e24ec863e4c0cf', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509735952264, -6650350606536927698, -916332153121235393, 1795948348468, NULL, 702, NULL, NULL, 0, 0, 'Deposit-02', '\x9f6898368fdcf3a9c97de6139e7fc217', 'https://acme.example/cb', '\x010200fd2fa285bdcd7a2f04add0b4f2f24a10f63b55832d051ffcafe2f8074cfdfd61f32278dedc27ae1a7ddf8e1fb2f80bcd3fd84ec0e57634736d9a6a7f9680aba2fb00fbcf1269a9afcd6cf816eb931c633ca50d220ab17895dc8a1c6a7f17bb713c47bf2a6aed2fb294e83f86773c0ad9bd7eecbb1022f3d12042c2bf1346a282f6bf75e988c56389916907f3535d25a02ee701e00418e67c341dca778c6c10c6108a6d6f8f090b6cbc2098cbcf5186a8d0b0fca092b806036f31e3e7897d4755811f3903944950b453a4501fd5a1fb3601f7b468d696718f80e58d9d7c04922547edff8bad87654019ef9a9c93509b128d77088329f7e2f1ba42487b5fe8a4c7a89b78333b41c6bb8c7446ec52a5d06f5f0029878bbd60599c7b2f4e2f8f89728a99894ece1e5cfa8bdf6a7e5241331f3746335cc5c53b748769f2d5636df932ffd48e38d6', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509782087804, 3301522217028747737, -916332153121235393, 1795948348479, 1795948348479, 701, NULL, NULL, 2, 0, 'Withdrawal-01', '\x47e7a560e42842d53f4a51b0d09f8708', 'https://acme.example/cb', '\x0102003be79a43e22eabbe7b96942fe2d34e328e0922ba52c5271cb0ed32a06f9d589c95bd4982fc18583f226c27631f3fa88ffabea6986549', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509803061174, 3301522217028747737, -916332153121235393, 1795948348484, NULL, 702, NULL, NULL, 0, 1, 'Withdrawal-02', '\x65b46b8354ee20bf6972f08c8a582771', 'https://acme.example/cb', '\x010200e67d283d75fb9a2605af0fd60ab3c21bd7ad4c5394abc5f92f77235c2cd3ac782a1f1e230940984201238a88c0bfb7c7015a19cd8eac', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252743509748533494, 3301522217028747737, -916332153121235393, 1795948348471, 1795948348535, 700, NULL, NULL, 1, 1, 'Withdrawal-00', '\x4721a05a54f841a82e7a9a9ce1e3e81e', 'https://acme.example/cb', '\x0102003375c9e8b7b96696436ce681065bcf83065b15fdaa3bc9c3a0ac7c1555f46f477fda6b9447d6eb8fa214679ac9513181485b8ec52d27', NULL, NULL, NULL, NULL, 1, 1795948348535, 0, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\x6e55e9fd0c4883d4e1aaf7500d2e494f', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252743509597536667, 1795948348435, 1795948348510, 1, 2, 0, 'card-eur', NULL, NULL);
INSERT INTO public.tasks VALUES (252743509471708016, 1795948348405, 1795948353378, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252743509719172878, 1795948348464, 1795948351129, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252743509450735629, 1795948348458, 1795948352970, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252743509366851027, 1795948348380, 1795948352754, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252743509748533494, 1795948348535, 1795948348535, 0, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252743509803061174, 1795948348484, 1795948348555, 1, 2, 0, 'card-eur', NULL, NULL);
INSERT INTO public.tasks VALUES (252743509782087804, 1795948348479, 1795948353115, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (merchant, currency, account);
ALTER TABLE ONLY public.actions
    ADD CONSTRAINT actions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.backup_mark
    ADD CONSTRAINT backup_mark_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.balance_changes
    ADD CONSTRAINT balance_changes_pkey PRIMARY KEY (merchant, currency, account, transaction_id, posting);
ALTER TABLE ONLY public.callback_tries
    ADD CONSTRAINT callback_tries_pkey PRIMARY KEY (key, number);
ALTER TABLE ONLY public.callbacks
    ADD CONSTRAINT callbacks_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.check_counts
    ADD CONSTRAINT check_counts_pkey PRIMARY KEY (merchant, rules, id);
ALTER TABLE ONLY public.complete_ids
    ADD CONSTRAINT complete_ids_pkey PRIMARY KEY (merchant, direction);
ALTER TABLE ONLY public.contexts
    ADD CONSTRAINT contexts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.contradictions
    ADD CONSTRAINT contradictions_pkey PRIMARY KEY (transaction_id);
ALTER TABLE ONLY public.copying
    ADD CONSTRAINT copying_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.daily_usage
    ADD CONSTRAINT daily_usage_pkey PRIMARY KEY (day, merchant, shop, direction, customer_account_id);
ALTER TABLE ONLY public.data_keys
    ADD CONSTRAINT data_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (transaction_id, posting, currency, account);
ALTER TABLE ONLY public.forgotten
    ADD CONSTRAINT forgotten_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.homes
    ADD CONSTRAINT homes_pkey PRIMARY KEY (order_key);
ALTER TABLE ONLY public.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (entry);
ALTER TABLE ONLY public.merchants
    ADD CONSTRAINT merchants_pkey PRIMARY KEY (merchant);
ALTER TABLE ONLY public.operations
    ADD CONSTRAINT operations_pkey PRIMARY KEY (transaction_id);
ALTER TABLE ONLY public.paybridge_formats
    ADD CONSTRAINT paybridge_formats_pkey PRIMARY KEY (format);
ALTER TABLE ONLY public.preparations
    ADD CONSTRAINT preparations_pkey PRIMARY KEY (transaction_id);
ALTER TABLE ONLY public.probe
    ADD CONSTRAINT probe_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.provider_queries
    ADD CONSTRAINT provider_queries_pkey PRIMARY KEY (transaction_id, queried_at);
ALTER TABLE ONLY public.resolutions
    ADD CONSTRAINT resolutions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (kind, key);
CREATE INDEX actions_by_action ON public.actions USING btree (action, id);
CREATE INDEX actions_by_both ON public.actions USING btree (user_name, action, id);
CREATE UNIQUE INDEX actions_by_idempotency_key ON public.actions USING btree (idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX actions_by_user ON public.actions USING btree (user_name, id);
CREATE INDEX callbacks_by_merchant ON public.callbacks USING btree (merchant, state, queued_at, key);
CREATE INDEX callbacks_by_time ON public.callbacks USING btree (state, queued_at, key);
CREATE INDEX contexts_by_merchant ON public.contexts USING btree (merchant);
CREATE INDEX contradictions_open ON public.contradictions USING btree (transaction_id) WHERE (acknowledged_at IS NULL);
CREATE UNIQUE INDEX journal_by_transaction ON public.journal USING btree (transaction_id);
CREATE INDEX journal_by_v1 ON public.journal USING btree (merchant, created_at, entry, direction, shop, currency, status) WHERE (state = 2);
CREATE INDEX journal_in_doubt ON public.journal USING btree (entry) WHERE (state = 1);
CREATE INDEX journal_open ON public.journal USING btree (entry) WHERE (state = 0);
CREATE INDEX operations_by_merchant ON public.operations USING btree (listed, transaction_id, context, status, has_job) WHERE ((status <> 0) OR ((listed >= 0) AND (has_job = 1)));
CREATE INDEX operations_failed ON public.operations USING btree (status, transaction_id, context) WHERE (status > 1);
CREATE INDEX pending_v1 ON public.operations USING btree (listed, transaction_id, context, status, has_job) WHERE ((status = 0) AND (has_job = 0) AND (listed >= 0));
CREATE INDEX pending_v2 ON public.operations USING btree (status, transaction_id, context, listed, has_job) WHERE ((status < 1) AND (listed < 0));
CREATE INDEX resolutions_by_operation ON public.resolutions USING btree (transaction_id, id);
CREATE UNIQUE INDEX resolutions_waiting ON public.resolutions USING btree (transaction_id) WHERE (state = 0);
CREATE INDEX tasks_by_due ON public.tasks USING btree (kind, queue, due_at, key);
CREATE INDEX tasks_retried ON public.tasks USING btree (queued_at) WHERE ((kind = 0) AND (attempts > 2));
