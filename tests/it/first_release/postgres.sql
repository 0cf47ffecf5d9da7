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
    queried_at bigint,
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
    CONSTRAINT tasks_state CHECK (
CASE state
    WHEN 0 THEN (attempts >= 0)
    WHEN 1 THEN (attempts > 0)
    ELSE false
END)
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000');
INSERT INTO public.actions VALUES (252340259410355223, 1795852206098, 1795852206109, 'cli:0', '', '', '33d0a991c4387cb585dc245c2580e2ef', 'ids.import', 'acme', '{"file":"/tmp/.tmpB0tIuW/ids.txt","kind":"payin","lines":"1"}', '33fd99743afc22c7', '\x2b531f31a5a8d5bbe07ed7747f1ba6ea', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252340257693420211, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340257693420211, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258192539816, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258192539816, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340257693420211, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340257693420211, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258481946902, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258481946902, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258578415982, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258578415982, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258481946902, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252340258481946902, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252340257517258244, 1795852205839, 15776, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252340257743749358, 1795852205839, 15892, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252340258263846027, 1795852205924, 1443, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252340257693420211, 1795852205947, 5756, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252340258544863192, 1795852205970, 4227, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252340257517258244, 55382851920515692, 1795852205647, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252340257743749358, -6057080961358447426, 1795852205701, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252340258263846027, 8431077625908314839, 1795852205825, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252340258481946902, 5962302553970628812, 1795852205952, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.callbacks VALUES (252340257693420211, 5413055435078129543, 1795852205866, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252340258544863192, -1097849787486478759, 1795852205892, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.contexts VALUES (7562270121089279183, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (5914178696859963211, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (-707251028543614704, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (-4497286326635690434, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x0182eb399ef5b3f9d3952e5fe838bd3cf81383c771d223333671113273c802bdb7fc78ac94498361b0a71ddb1662c046263ab8d593e03988f689c39868');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x01e0ebfb2fb1cc1a67d94e16c586639df0ffbe00070142b5bd5711d9fb6058afdc1c3e99f393aa5e11e8e996c5f94d28e7dd32204489cef613f2fcc589');
INSERT INTO public.entries VALUES (252340257693420211, -700, 1795852205689, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340257693420211, 700, 1795852205689, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258192539816, -702, 1795852205808, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258192539816, 702, 1795852205808, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340257693420211, -700, 1795852205866, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340257693420211, 700, 1795852205866, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258481946902, -700, 1795852205877, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258481946902, 700, 1795852205877, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258578415982, -702, 1795852205900, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258578415982, 702, 1795852205900, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258481946902, -700, 1795852205952, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252340258481946902, 700, 1795852205952, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252340257362070042, 0, '\xc1e0cc008b43398673b1e91c6735766f');
INSERT INTO public.homes VALUES (252340257517258244, 0, '\xc1e0cc008b43fbb0896c427e89093ca6');
INSERT INTO public.homes VALUES (252340257668252156, 0, '\xc1e0cc008b43eacdaeff2809b2645ffe');
INSERT INTO public.homes VALUES (252340257693420211, 0, '\xda8a76943b4757e5f102d10f6014cdf1');
INSERT INTO public.homes VALUES (252340257743749358, 0, '\xda8a76943b4751b21a85bac12624a963');
INSERT INTO public.homes VALUES (252340258192539816, 0, '\xda8a76943b471d4e1f3431be8b40c3be');
INSERT INTO public.homes VALUES (252340258213514548, 0, '\x184b2af529d4ce68a3de77b3008534c4');
INSERT INTO public.homes VALUES (252340258263846027, 0, '\x184b2af529d480d718b173a5f2523c3b');
INSERT INTO public.homes VALUES (252340258368702419, 0, '\x184b2af529d43bf5623fa6d693d0ceeb');
INSERT INTO public.homes VALUES (252340258481946902, 0, '\xd5d0d420c3b424dbd929a0f6127e227c');
INSERT INTO public.homes VALUES (252340258544863192, 0, '\xd5d0d420c3b46a697ad84e0c303836cb');
INSERT INTO public.homes VALUES (252340258578415982, 0, '\xd5d0d420c3b4fca5c3af45fbcc319184');
INSERT INTO public.homes VALUES (252340259438247936, 3, '\x8d12e98e3c462f2d9ce74c547d98a91b');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252340257362070042, 7562270121089279183, 2168892445630912784, 1795852205610, NULL, 700, 42, NULL, 0, 0, 'Payin-00', '\x0f6dfabdfeab11cc8da81777eb21c4af', 'https://acme.example/cb', '\x010200fd7c9e9d6b46f9ece378153ec53b32a304041d1f00f68da9d8726467633356ff9addc66c9ee1b298daeb71195a414534c036395b0320e007dffb1696f669667091972e1d18983240620debc1d6f677f217b9dd39e8c8a6101592e0e99d1651f6defc10181455ee6c07cfe3c607098c6bb3a76a22e59bc3771820a87b7b0323b7827de7f83fe0f1dbf85b4a68220a0af1ca225f9d68358c8c167dc08475f2ffe70812ff5ead5ee520e0e22b59acc5bc019727839bcd295ca0632b714c630ed254e57c4ca57e2b155ba59da0471d3071c2b7dec6933321258c2d570e0612a82858debc8d7a2c908068ce519808d02998adc820c05623f6c2750d71bbfb178331f682cf6e3e778e8ffde37775191ee816672b55aa061895dcc22a0d7d0fb1d634ca97d667e8610f49c8ca01789295ed828a9d3d7bbd6de40f9716215bd986f6fcd73f537bc7c33c81fa8160fdc90271230a3f144d9f72d53e4af5720e2c5fafd4e09c69f266', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340257517258244, 7562270121089279183, 2168892445630912784, 1795852205647, 1795852205647, 701, 42, NULL, 2, 0, 'Payin-01', '\xcde9b5c49a520499fb7d213c1f9d3f2e', 'https://acme.example/cb', '\x01020005a02e4a18db2574a3a143dc728a49afffea47cabb5ac9695bf2ff181c588698d4be4194bc23bd20227c8e430a7d5213eb0817e515f083f129d4484cf3d547fbcc1f0321d38ca1ea5dd28324c5f479b9e56206749d2924c55ef7c7710a76b127e6db99a190a49019bb3282d7361e18520e127147f2b5445f67dde323d3ae660ccea13e14c6dd9b45303535365047152b67eb088b95d8afc14b3610bae9e1a7d13448e5c9e23669e90e9046918ba04f86818ed0ec694549f4d7898a33c454e7879afbf3bb8331971d0735cb540154f622018e73d4057c8872c2a2d3ad5412c44f922ca864b289881da51d3b502151ade8ceb90f428216793c148eb890f21b127e837cd83412ec7ade4e2730a7824c6e92443d80ff1c6b2da8bcfe2cf57ac33d776fd1480e560e12727b17434b90ded1076573cb2b7c989087e504b18a154d92df6636d2077f930c8f253dec0e550bdfbdeb54e64f4ce6dcbf50d49e2a14bc52f3dbf87da7', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340257668252156, 7562270121089279183, 2168892445630912784, 1795852205683, NULL, 702, 42, NULL, 0, 0, 'Payin-02', '\xac4579ba7fb5535f93ddc13c462f6b17', 'https://acme.example/cb', '\x010200c4753b0227feb99684963ae2dacb4eec729dd56c93e9f8d97a47b41aea2091f26bc7dcee8b0340233ea0f8cf065cc6a662752977f1827bf7a2ee9cf0293e3753239a1eee6a360d49fbf3972f45fac49840e57ae814470db38f8ed27c7b79ed2e2b66891ab43c5b298c805ad13b43de800051bc3028502afe7912a541b880835d41a2de4439f44bf891ffd415526b4b46fe37702f2b97fe18aecde83c277394b695ee57707a39fe05e77976f2958bc71d5e569fb38f1d519a97656eb1cdab483edcdeade301ce088a17651eead3adf80f6fcae8a0e3c5feb9f449e32433e2f1a6725bbcc547d9adac9409c95a6c77184c47f8e8926efafa836190091d154bab0df389cf6f38215e1e53e736270c53a22f35b321f8cd6097bc99a0f423f7d843a06121da3023b3dda79b97d4fe27054076402ae6c9a6102526866d22f49ba50a1a4b817628a511916a080f7514be5111eb5fb6cf9aba32e51317a605f003125ef44a6e7809', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340257743749358, 5914178696859963211, 2168892445630912784, 1795852205701, 1795852205701, 701, NULL, NULL, 2, 0, 'Payout-01', '\x7a509a193912cee28e64b1c88b0a4330', 'https://acme.example/cb', '\x01020089d94e9fb5419c52ecc8f7b76ea4b23068a83726659d1e2228e8c52ac5611b9174998a2af97284ea93c16c0a26fd5cc9df9e36860eaa26aa02369ca20c6ba51462dbd0d98f55a384f6ea7434c873d376266eb731017466995ed81afe4e6d78d9be84364d09a16e051fcd3866a5040c4fadca30abac7a8316ea60e730535dbb6a', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340258192539816, 5914178696859963211, 2168892445630912784, 1795852205808, NULL, 702, NULL, NULL, 0, 1, 'Payout-02', '\xc56a44a4fe0e5c70dcc0b9c7b9ef8411', 'https://acme.example/cb', '\x0102003889ece128f0e69d74b546e3c5992d2d6e6aff3f3f86796b9fd2a909739f207b58f1ba2a84d7db9d2d52faf3c23c778c77872588b8c1c5786cb5e42c9cbae0b3d065dbfaa7c9df010ae4fb5b773991e823dc56e59ae7b300ac4b47f242338fdbb97c9c466e45855f2d4b9fdae7a3913e1b8fcf588510d976308fe4d446d217d6', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340258213514548, -707251028543614704, -2168892445630912785, 1795852205813, NULL, 700, NULL, NULL, 0, 0, 'Deposit-00', '\x6f23fbb780dcbf86bf1fe3e7e0d8232d', 'https://acme.example/cb', '\x01020047ded58adb3d6658a70384b87afac0bd09033e9bba17f28f2254c830c3aa54adfc81091ae6aba0544962d65a081fbe0f8a02a0a6c010f06527dc9e9b9c62e0ecb029aff29a98800ab67ad77e0be7083ce967b62e758a3dc5e0f5312e32f562f79ba5635fd899eeef6c2c1d436358f203da40d6905db3a8a780cc1fd01e1c9dd55f780b7225b1efc5046aadc6e9f95eb7182c1bbf9b802e2acb82a26634e820c8c06a0e3817a577e46927796284881721d1e3bf069441a708f32f4fbf69ea5946b703c7bb7bd03659ad81958fe3a855ad2de1f6bed9b613cbca2c95bb078aac94fd1cb542e7a12e41267135998b98d845e84bb50adfd862034b463caa6a0eb961602490c5b027af937eff18cf602ed95b8efea7d68ac4371aecdf73367a590ddd63d7407109ac69d6af5824121c3c42a1ac83c5df03a41f3e98dfa2d986e664b18beae7b515', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340258263846027, -707251028543614704, -2168892445630912785, 1795852205825, 1795852205825, 701, NULL, NULL, 2, 0, 'Deposit-01', '\x3ddd64f7100312234fde95bf16f126ed', 'https://acme.example/cb', '\x010200afdad9aa81c0c301c6f5105c3282a36be02f06825b1e879db836362ce02b0bd611a815b25f6a10b27fe394fd6652bd12f040dd0df3ae22e9182da8a673f7c12a3a24fe9506466de0b39fe743e83f0b8337b5edf3a2d63dac9154e90f95d751dde9cfeaf7f0aa14822113c64659624afb4336d61c16fbdb2617b686cbcd4a938bb47cbb690bf2ac5145d0ce879d6d7d093a1b2fba2e861d08c05a306f534a9ed108c135f864f9bf33fb883ae43fc1c0126e71e4ad8120a5a1cc76815c0cb1adc6b6918efe5da0f1e14d6a5096de130786eebb45f8e8240c8de43530cbc5fd6d7b487e8a2d6f156a12cb09f439726d518da355c21214ccf140d51568bdb4c61ea81736a6767325a4eeae2cfb1288d872b7094de456df24c022d8fae8b1e682378c15d9e20febbd914dd3bcd8f9cef40d4d75394bb60da104aedc328efeafbb55d7e776ad62b1', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340258368702419, -707251028543614704, -2168892445630912785, 1795852205850, NULL, 702, NULL, NULL, 0, 0, 'Deposit-02', '\x38b8dbfec5def4008dfcbaea17e40306', 'https://acme.example/cb', '\x010200c3e826856678c23cef5ddbc7725725a4e4f895191dbca5d1cd278c3d7cda4084959ad368d3aed6fc15a498fc9fe861c11a5cc025a7f48fa701af848211cd8f10b87befd9cb50fd3fa70391400f99cbcf8e90b40c1be7929c1bb927cc5100162f03a77d2c7d474db07fec1d2fe4a8b2e1e55f62def1fa07e540b28d0ac1a492d326393beeab0da67c9339c163f67083c13dd38aa44e3325567cf16d67453386ab8380aaea8a02969376e188a24a5986c5fae5d03b58ecadbf2a43e245ef50a55bff28f83678cb144a798e065fbaf41d79c463def553772846d3bedd377ba22df9356db91b30b14fd0b7f798f94e26748a51919629d56e08afc75e381fb0950e0fa6996e8264589d66dd6789751a4767297e459eb9c53b6175df6f748ba22785ba0cdbe45b532962a91de3758c07f44cddba87dea2def1bb5ec33fb3b5618cb8da5e9e5e785c', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340257693420211, 5914178696859963211, 2168892445630912784, 1795852205689, 1795852205866, 700, NULL, NULL, 1, 1, 'Payout-00', '\x9e2edf88875ec15d4e3fb8256f888da4', 'https://acme.example/cb', '\x010200e68bd21aa8f318529f34f4c0ed8d83a822d1076bc799273fc0795120bbf15da951108161d14d517ef015eee9a9387087e0778c7bbebc658ff6105c6627744f53e215d8ef89d7c8591bf5dce17e288155027bfe64db8778671b6fcc76108ae233f4e2391a382d11fabde0245e6af3b04a90bdfcd14c45ae302ceb6dc82134c68a', NULL, NULL, NULL, NULL, 1, 1795852205866, NULL);
INSERT INTO public.operations VALUES (252340258544863192, -4497286326635690434, -2168892445630912785, 1795852205892, 1795852205892, 701, NULL, NULL, 2, 0, 'Withdrawal-01', '\xd428db82cabc17a0fb42447ada36967f', 'https://acme.example/cb', '\x010200c65899e90f3137b8a403ea7945bf95e315cc94933fb90f0122635b1fa16ac34111c2eab64903f9add1f3e7eeb6a3d8cedd179d8f9b90', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340258578415982, -4497286326635690434, -2168892445630912785, 1795852205900, NULL, 702, NULL, NULL, 0, 1, 'Withdrawal-02', '\xb1645462b06ed75fff7b55680b851003', 'https://acme.example/cb', '\x01020085f173dd821402617ab31090f26c82870bf63b6c2f5c55725539d82625c83ea56c4324daa8ecfc2424dfb34503e8a46b70706bc23119', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252340258481946902, -4497286326635690434, -2168892445630912785, 1795852205877, 1795852205952, 700, NULL, NULL, 1, 1, 'Withdrawal-00', '\x6e68cea16997b6e0a9c74f58c1c6e113', 'https://acme.example/cb', '\x010200bed07150cfb7f95eab810f89dc444be0533dc7fe5d90b42555f28d21bc94583c29afcc990365ad85917213114b9e5bd14c5cf78f709a', NULL, NULL, NULL, NULL, 1, 1795852205952, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\x843895ca1e1ba9fa0d12f074081e6e84', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252340257517258244, 1795852205647, 1795852210683, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252340257743749358, 1795852205701, 1795852209847, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252340258192539816, 1795852205808, 1795852205892, 1, 2, 0, 'card-eur');
INSERT INTO public.tasks VALUES (252340258263846027, 1795852205825, 1795852209631, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252340257693420211, 1795852205866, 1795852208938, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252340258481946902, 1795852205952, 1795852205952, 0, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252340258578415982, 1795852205900, 1795852205963, 1, 2, 0, 'card-eur');
INSERT INTO public.tasks VALUES (252340258544863192, 1795852205892, 1795852209483, 1, 1, 0, 'acme https://acme.example:443');
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
CREATE INDEX operations_by_merchant ON public.operations USING btree (listed, transaction_id, context, status);
CREATE INDEX operations_by_status ON public.operations USING btree (status, transaction_id, context) WHERE ((status = 2) OR ((status = 0) AND (has_job = 0)));
CREATE INDEX resolutions_by_operation ON public.resolutions USING btree (transaction_id, id);
CREATE UNIQUE INDEX resolutions_waiting ON public.resolutions USING btree (transaction_id) WHERE (state = 0);
CREATE INDEX tasks_by_due ON public.tasks USING btree (kind, queue, due_at, key);
CREATE INDEX tasks_retried ON public.tasks USING btree (queued_at) WHERE ((kind = 0) AND (attempts > 2));
