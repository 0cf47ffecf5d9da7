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
INSERT INTO public.actions VALUES (252753057191473832, 1795950624759, 1795950624778, 'cli:0', '', '', '5da79b8ce834778cb67a77699bf5bf0f', 'ids.import', 'acme', '{"file":"/tmp/.tmpef84yR/ids.txt","kind":"payin","lines":"1"}', 'd5f5f9cfb2bb6f1d', '\xabd397d33c5946160a71b6db5757ebb3', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252753055569201354, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055569201354, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055762140765, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055762140765, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055569201354, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055569201354, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055938300840, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055938300840, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753056064130904, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753056064130904, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055938300840, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252753055938300840, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252753055502090601, 1795950624399, 16255, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252753055678252079, 1795950624455, 7110, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252753055866996148, 1795950624513, 1385, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252753055569201354, 1795950624624, 2312, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252753056017992788, 1795950624659, 3315, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252753055502090601, 6795228789503300007, 1795950624356, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252753055678252079, -6638484827486786583, 1795950624398, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252753055866996148, 8102203353585645425, 1795950624443, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252753055938300840, 5483664789299139498, 1795950624526, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.callbacks VALUES (252753055569201354, 4678242227069846099, 1795950624447, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252753056017992788, 1583496076470771890, 1795950624479, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.contexts VALUES (6053235459653300324, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (6396938277879542438, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (563555466059808650, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (-44579436269002221, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x011a05a1d66efe0f41fc113b64a782d7a6e44d5a579b536cf28e0b0a0c5e78647fa8d4d967e964d18fc71d983f68322454d4869687541004f67f8c68df');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x0111cb6844f640fabd76e88e1a36ae96544b5bb477a628a2a17c49a9d66cde13405c2515b4dc693bd2cf95633d90fc2b6e319e93aa85f0886f66418406');
INSERT INTO public.entries VALUES (252753055569201354, -700, 1795950624372, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055569201354, 700, 1795950624372, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055762140765, -702, 1795950624418, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055762140765, 702, 1795950624418, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055569201354, -700, 1795950624447, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055569201354, 700, 1795950624447, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055938300840, -700, 1795950624460, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055938300840, 700, 1795950624460, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753056064130904, -702, 1795950624490, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753056064130904, 702, 1795950624490, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055938300840, -700, 1795950624526, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252753055938300840, 700, 1795950624526, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252753055426593871, 0, '\xc0b359cb54066dfe3b474de33f5e4c74');
INSERT INTO public.homes VALUES (252753055502090601, 0, '\xc0b359cb54062719e7c9d32c705ca70a');
INSERT INTO public.homes VALUES (252753055544034091, 0, '\xc0b359cb54063bcf45ce881a9adaf5ed');
INSERT INTO public.homes VALUES (252753055569201354, 0, '\xb44dc4be0b4e17b1a371ff452dc17155');
INSERT INTO public.homes VALUES (252753055678252079, 0, '\xb44dc4be0b4e501cd304be3f52a9a291');
INSERT INTO public.homes VALUES (252753055762140765, 0, '\xb44dc4be0b4e54fcf8036a319f20c4ee');
INSERT INTO public.homes VALUES (252753055825055508, 0, '\xc136c386eb246644dd721e694dc04902');
INSERT INTO public.homes VALUES (252753055866996148, 0, '\xc136c386eb24eb0c4aea90da3f508381');
INSERT INTO public.homes VALUES (252753055917327762, 0, '\xc136c386eb242616d4b747f1b9490323');
INSERT INTO public.homes VALUES (252753055938300840, 0, '\x972cad9d40632d0b5f3dfddc73f83f5f');
INSERT INTO public.homes VALUES (252753056017992788, 0, '\x972cad9d4063f7ff99e64af22b92b66f');
INSERT INTO public.homes VALUES (252753056064130904, 0, '\x972cad9d406388c24df9336bf5f4102d');
INSERT INTO public.homes VALUES (252753057242726400, 3, '\x3f72d948e2c44981fced4ac33f299f37');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252753055426593871, 6053235459653300324, 3954327571588140799, 1795950624338, NULL, 700, 42, NULL, 0, 0, 'Payin-00', '\x79a7b2c43ec8d948c7829a0a13179d5f', 'https://acme.example/cb', '\x010200f6dde3c4744333eb8c10a06e771251fdceee4aef5d71fd3df02434dc24424921fc97a3c1b80fabb343dbee699444168faa77c79d404dce97b86f9e056207011ff551a3cecb7376356c4ef6838c10cd995fb300fec5593197528102afa88ac0a9464a1108adc156d14464dea3e57edc93d1c3abb4d9f03de53ba72d3a7b81f2b99d5602d3e19f0b79ea17f60ffc83d2251b3c9657e49333318538a5395d653ed2ddf02183150ce93fdd3e0eb70c839d8fff69067c5b241daf7099e2a83b6c36cea1f55257eb3e52346a27f1fa488ddab510122a5d3eff5ed348dedc0463d15426ef145b90102513e939f81f35aacaeaaba6b199e7b658eea5d89492d0b109d66dec3f14e88930e1313cacdaf2d369c3414da95a4d096e2732466a81d4a8d89bed0b8e6c7bca5c6049ab057d712f86170cfc57d80feab95216cbb18cb43e0d1e08016f733639bc8917088ba4371286803e93fb7a8d3b6d976ed6b8b13c792200dac20bbfba', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055502090601, 6053235459653300324, 3954327571588140799, 1795950624356, 1795950624356, 701, 42, NULL, 2, 0, 'Payin-01', '\xf1ca7d6101dc8cdf74a3ab9fa0b2bd0e', 'https://acme.example/cb', '\x0102008da362028730a3f368c0a4ce0d34c6aeb8a3189862c225dae263e5b3c35083903258c3d11785f6736c2dbdd9048fcc1fed3ff30d8e8f278c51a1582193397265296e8e6fecf843582510c74a3f8529c366b5becdc90c853df28c55fa306ef1d62c01fa1de2b8a34f74b3be42a6a046abb29b606ee62094cb07b67a5da7662261bf8832bce887a49c19f26b43a5d7d6ca3f21aa17c0b125576199290657977c8ea64548e3956d7b46382b1fb1c6094ce2ca2dc0c73c4ff3b95760439ff54b481708ed893d25709e667ceb302689183b9e6d963636b7d2fa6603bfdbd8d051c9baede65b1577c85b356e23393fe2a7e0694e752719769ddca963cf6a7cc062a78e090f93448e81786fad058af78a31b1784183ddcbb8b29a67754569bbe24d385a656c02faf95a7e39574ed5d9aac5d4bd24c5c39fc1ac21c84b813e250e7eb91cddfb6557c3ca22851a86fc2676df57fe77af0ddb25e82b6c3e1df82fc3a34adfc2164331', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055544034091, 6053235459653300324, 3954327571588140799, 1795950624366, NULL, 702, 42, NULL, 0, 0, 'Payin-02', '\x4d96e37bf38e914d89de346abc9c3ef6', 'https://acme.example/cb', '\x0102008c0828344e0b1fc0142fc43a754b24467d3ebcc37cb59f377c39248e613aa20f4f4c6eae451bb3cb710e6aa10d3d5ece223140ad4e91c49555ba22fdd9d5be811be25355968961fcbec91319c28ada8103817748ca4d6af734156bf7841273cbb5c85317e6f53fd458ad9cb1af82e4910085d099019a561ae7594d064bb1ffd2ecff3f7d15e319ecc8186d7141cc809451f29a6a89c20f0a0d9a95b88af46a649ef64c0e8f84a4d4999a8fc9fd1b31fff62614058211573790f5dbd47313711ad8fc27d0c10ec994860b33f5334b47f6f5d1a693175c5bdc0a600e854650055ce7bf60aab615d5284b168262a7997858330a1ac9d28aebba55759dad302aa8ac9dbd6af654510ff9b4b1acc08cfee962ce2cf61003485173b622dc1bafc9ee46cafcca298f5d6d2fa99d75c8b49a2a4d5f8c2102de86790ee3829e9e200f1a5eccf4108caab32125432a528f84ab80f4612da91a1a9a890561111983776aa9f1ea6f2c7c', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055678252079, 6396938277879542438, 3954327571588140799, 1795950624398, 1795950624398, 701, NULL, NULL, 2, 0, 'Payout-01', '\xa57093031b93c42de644a2c73b9989fa', 'https://acme.example/cb', '\x010200373b83b93b3e8c2237867ea686bb050508233d1e587b4a4a821586d7b36d7d06cc52c6744e695f1ef3ef1b44e1957805587ae391bdc0ec11658e7cdad7048000ae974922cd3bd5b4b22434a1c668f58714054f9595df8a48c57f8200ee1c5e5ec32073268ad25df315c5aa1e6041c14286a542d4eb550d79b3a60e7d4197b241', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055762140765, 6396938277879542438, 3954327571588140799, 1795950624418, NULL, 702, NULL, NULL, 0, 1, 'Payout-02', '\x7c4ec2e2ca53fd083e6134d8eef7cd6e', 'https://acme.example/cb', '\x010200eb1f927c97f9e5c4072d03841ea3b42919a6114d0c5f428367ca5c6e2493df00b5cf24d5d7d1a5925b7e645c5159cb29ceee8be9b6537291f1698b79f6ca173d2ac54e5c102cdcb514233f090b38f0af0aa894418bf4cef3e69771579d0793781a3a058fb86301f759e5fce375909956b30d1b2e6055f8e08dc022499f947574', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055825055508, 563555466059808650, -3954327571588140800, 1795950624433, NULL, 700, NULL, NULL, 0, 0, 'Deposit-00', '\x1006ffae18f68587b55339c5399ec055', 'https://acme.example/cb', '\x010200f7c78b0b63e5fb89303beaebfe375471b4ce090205a175779ade47c27c52f15ff3bfeb8d7cad43e795baba67e922699e1c7c4e9177be1c93464461ba97d2318edfd7ab572e96f30d985c87e96f192da8fd3e98e6de1c1448824a507528409b6ef049fe7bc901656ae725a0eb182094a23f6327343011eb8109401abcee01a37ac4d8ee2532087c6d04bdcb915b629b60c8c3ae0aef7179f60e38da262b38ec26134bcdbfe75caa174cf8b2fd6cccb0661a4d07404c22140569cf0f37026f3594c3cc0db54343963f42b2706e61bcbad4468d36e068cb1217b9c649e141d38f2cd71abd416ddc2e8ea6b0d9e028014ed23d2f6ede263d12ff6221a38a36f2f337c0597183bf0a44e0f6fcfac7c9b07d391ae78aea47d72e95f01802de41da7ae077dc856256b41709e868a2fcf2982dc4ab5e162909e11fdc94aa25c96bb11b6b1c364f7af4', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055866996148, 563555466059808650, -3954327571588140800, 1795950624443, 1795950624443, 701, NULL, NULL, 2, 0, 'Deposit-01', '\x093966d5e4ccd88ee0dc546f402d5b83', 'https://acme.example/cb', '\x0102004239190d66d9b66d473d3aa9108814f793c213b830a5c35e9757b7a60035c90e3dfaff8e9ac9bf9259f80c47b7531a5149fbb113fe7d0e2a5e49e3f58c615051517e6551325bb37b462cd2bf2fe55cec9134a8d262359055d3936c34de04283ccf8adb5108d05520a5a8cf4f2c5993a2e9c04e67509b257e69884fee1181dc3aa62cc7949138e6aefb4c7603356230d0247ad78094a7433ceb482bda142de80dfe0f3fe03e7f1908fad1e44442b0462d96eee08e6bff5d4e655666ad0280e45f2b97f749d68cb393254d3af12cb34ea209a68e94d3db3b78dc872d7fa83c8ff3b62446cc8a23c46e04bb8ab5f1a93a40f90b0cb5bbbf3cbb34af744cd59a69ee1b1b767aa418dd104b4fcc9a061d97efc33aeccc2c9f3c23e7caf6d37fab991c6928492dbcf653544564df8470f18d4373b07e008c9eb7684df83ed7b4ebf199efeddf5585', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055917327762, 563555466059808650, -3954327571588140800, 1795950624455, NULL, 702, NULL, NULL, 0, 0, 'Deposit-02', '\xd9e3e5d01a0067b3b0815de6a4b920e9', 'https://acme.example/cb', '\x0102009a7e2b1d88ff2eaf09e03474174e8af15831a6ba29a46024ccdc5a867d9ad3977566c24a5c08110ea57f0f9a682764972cbfb4b7d6304ffc9b0a20444c6f64cc7494b3e0dc74065e57cfd07c9a0df5d89ed3b609021d6e8d3d742141cc7777d3c9629d179187a7f8b714de60d579e2587a69a55dd420db5e4957f15403d8b80306fc5bbdf1a3cef193654dd84a3260e4062d52a0997c93ff38f9e3057159d4563c8e73f5c94303d99dba7cd4b5a338c4a7a254a6e53db974dd10d7b4972c340401c0c8b46e6616e9e4d99f7bad9a132bc9606fa62ca11151b18a8898f54ced7a63bb8a394bca0565d879dcc3ac9ed952bb5ce79266b6796ddb017b84086e1d357626ee2a4d7cf300cb1d74b910dcf98360c660dba0ff4e12e0b3a2bdd038a2e033a088924a9d9f8d5617f291d302786c39eaba7e6bf6a453237501ba3074140afb6af86331', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055569201354, 6396938277879542438, 3954327571588140799, 1795950624372, 1795950624447, 700, NULL, NULL, 1, 1, 'Payout-00', '\xea05ae6a4f6b4eeca22d76093baedc2f', 'https://acme.example/cb', '\x0102006e9ad7c173ca5c6e0e6b96ec2376c25b323c3773eac8da36f06e9a6063f644a30c342ee83d21db32b44f9b524e11ea0e647dd646240901453d1c883a85dd076572c8e4e829cc047b221f68c4504202cae3a009ab292f373c81eba1c0bd21da6eeb0e50270856ced720eb7ac5e3bc1151ba830a9554edc53722cdbb97192d1523', NULL, NULL, NULL, NULL, 1, 1795950624447, 0, NULL);
INSERT INTO public.operations VALUES (252753056017992788, -44579436269002221, -3954327571588140800, 1795950624479, 1795950624479, 701, NULL, NULL, 2, 0, 'Withdrawal-01', '\x1eb6b30e77f7cb41d95b75210626a391', 'https://acme.example/cb', '\x010200e4401c41f76e228edf517dd5d255b404a255203b9736bd703ca97fee5d85e43f1033de74aeebc3d38b57d7c4d19d88c247f5c121ea73', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753056064130904, -44579436269002221, -3954327571588140800, 1795950624490, NULL, 702, NULL, NULL, 0, 1, 'Withdrawal-02', '\xb6c2b32768401bf95ad9a33ff3c747e3', 'https://acme.example/cb', '\x0102000f73ef9016befbc52f7eb686bce0f7dd341576047963175f8b7026b207aed40b152060ecd296a933ed7c0d23dacd0a3237acb654a1a2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252753055938300840, -44579436269002221, -3954327571588140800, 1795950624460, 1795950624526, 700, NULL, NULL, 1, 1, 'Withdrawal-00', '\x7d4dfeeaa4c1a1306c35ca2aab1460ed', 'https://acme.example/cb', '\x0102002295c220024064686b737f9290996e5e54b33bf9dbcfb92f3643888d037bfe40a41574133e93dc07c64aa0a393cf77e1c6ccbdf97cdf', NULL, NULL, NULL, NULL, 1, 1795950624526, 0, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\x08b0c6d572b4415ee3d87003dd40740b', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252753055502090601, 1795950624356, 1795950627938, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252753055678252079, 1795950624398, 1795950628980, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252753055762140765, 1795950624418, 1795950624485, 1, 2, 0, 'card-eur', NULL, NULL);
INSERT INTO public.tasks VALUES (252753055866996148, 1795950624443, 1795950627510, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252753055938300840, 1795950624526, 1795950624526, 0, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252753056064130904, 1795950624490, 1795950624559, 1, 2, 0, 'card-eur', NULL, NULL);
INSERT INTO public.tasks VALUES (252753055569201354, 1795950624447, 1795950627467, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
INSERT INTO public.tasks VALUES (252753056017992788, 1795950624479, 1795950627775, 1, 1, 0, 'acme https://acme.example:443', NULL, NULL);
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
