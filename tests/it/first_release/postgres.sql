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
	cause smallint
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
INSERT INTO public.actions VALUES (252306931329396977, 1795844260065, 1795844260072, 'cli:0', '', '', '1b8d5bc45b676bf435fa6d24957c4b95', 'ids.import', 'acme', '{"file":"/tmp/.tmpEHrIuC/ids.txt","kind":"payin","lines":"1"}', '63b1808c8faa498d', '\x57e6651114a12c7ea587c586ca70f6ce', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252306930341038592, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930341038592, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930416537473, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930416537473, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930622055292, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930622055292, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930341038592, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930341038592, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930701749927, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930701749927, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930622055292, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252306930622055292, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252306930382981386, 1795844259850, 19158, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252306930286511930, 1795844259850, 18945, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252306930517198572, 1795844259900, 2175, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252306930341038592, 1795844259929, 1579, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252306930659805837, 1795844259951, 1768, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252306930382981386, 3464164736548052399, 1795844259839, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252306930286511930, -4211766859500790673, 1795844259816, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252306930517198572, -5038361480042598819, 1795844259871, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252306930341038592, -7758170217577488357, 1795844259901, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252306930659805837, -5148539606253309145, 1795844259905, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252306930622055292, -4443112116126388960, 1795844259956, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.contexts VALUES (-1024725302485909718, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (-2743800805038624587, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (7998768016505572815, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (356803547517519075, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x012420ee641e67be80f234aa7bddc5756fe9e6dea2d236f15c299efdfb3f8fdf049db39e740bf4295840bf083a6c75b5b8dbb46f6e4e45bc5ffd21909b');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x01e3ab7f309771c32b835799c97eaddb59eeec017ecf722150050eb608ad83e4f061d0268b293a6febe47b26251d1d21616e31e2096a60840fa323d1a8');
INSERT INTO public.entries VALUES (252306930341038592, -700, 1795844259829, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930341038592, 700, 1795844259829, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930416537473, -702, 1795844259847, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930416537473, 702, 1795844259847, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930622055292, -700, 1795844259896, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930622055292, 700, 1795844259896, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930341038592, -700, 1795844259901, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930341038592, 700, 1795844259901, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930701749927, -702, 1795844259915, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930701749927, 702, 1795844259915, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930622055292, -700, 1795844259956, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252306930622055292, 700, 1795844259956, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252306930219403311, 0, '\x19632e76e6b50d227e173688c41ad485');
INSERT INTO public.homes VALUES (252306930286511930, 0, '\x19632e76e6b59536d9ce654f7edb8d46');
INSERT INTO public.homes VALUES (252306930320065724, 0, '\x19632e76e6b5a335e4eb559c1c9cb000');
INSERT INTO public.homes VALUES (252306930341038592, 0, '\x60f1bb10d466be947a1caaa9ae67f073');
INSERT INTO public.homes VALUES (252306930382981386, 0, '\x60f1bb10d4663fcccaa4a8e9500c98ac');
INSERT INTO public.homes VALUES (252306930416537473, 0, '\x60f1bb10d4664279b7a65ba51f86bd6f');
INSERT INTO public.homes VALUES (252306930479452078, 0, '\xc77290fb3956f85cae50e650f5a8b165');
INSERT INTO public.homes VALUES (252306930517198572, 0, '\xc77290fb3956cc1cf8e171a33fc387c1');
INSERT INTO public.homes VALUES (252306930592697396, 0, '\xc77290fb3956df1c711385ae40e83559');
INSERT INTO public.homes VALUES (252306930622055292, 0, '\x34060e02611a47dfc829407146eebcbc');
INSERT INTO public.homes VALUES (252306930659805837, 0, '\x34060e02611a29e43d884f495172a129');
INSERT INTO public.homes VALUES (252306930701749927, 0, '\x34060e02611aa838a033ebfa018f4c97');
INSERT INTO public.homes VALUES (252306931351863296, 3, '\x7f77fa201e60b827898eca5e7a5ee425');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252306930219403311, -1024725302485909718, 2083817958799277891, 1795844259800, NULL, 700, 42, NULL, 0, 'Payin-00', '\xcc03b03f5733fe646c26c57c9ebf62fa', 'https://acme.example/cb', '\x010200ca3410a2a717cc5f59e01aeefad1c6b4feeac31455311665c38856dd67409044202cd1e1819e60bb0f14698bc292e9f16e7f7fbe94fc9eb2cabcae588be78d1d1ac33986494fe9613be9f63bb938d559baa5414333df1889b5e7f91e8b3430597549315686486885985bcbc0f7a6473ad41f668bed95009d6bfd639b72871da219c009e1ab70c1d0637d15c0b407bb3ddaa2cf027b698df90ac3bb594d876044a996d3cce1f9a77f93b5c305d63b845ca1b2ace0cb19d20b227a3f5f123dc9a0e9bf8ab8c5e8985202ab82029e0202c616491803a82a30dfe836a3e3d024473cf191892a437cd0026f3ae39ba9fe7b2b1387e5acb8e301b35b36404304410cf39db37316725f52f545587f7b94fa5dbcf98097e24033d3381df028d30b5d1a4b76e89b86dace69c3e379d60de6bbc3923b824e3e99616fd4004f24b405285c98210b4a42a0fbeb04c46185f889dd7fed6d477111575b0f65acac546ee8132d601d68d4eb', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930286511930, -1024725302485909718, 2083817958799277891, 1795844259816, 1795844259816, 701, 42, NULL, 2, 'Payin-01', '\x36211b9242b8b619733d6a2c4560bd79', 'https://acme.example/cb', '\x010200f90a8d5c16d7c832bea8f3cf8a9a5e302724cf67e59bb7b85d6ee6632f0b11b702d6047841aa6dfe447870b2ec4d321dead67f11c9666da5727b5034751c0f05d2c96053008dac5088c8110f3dd5145008748ec3020e10c44eb3d7b5951db6b5d019cf2c30cf8c68154e5ba7ac7bb1e62fb362918b48f3efa1b295ee583299701a68f0b5cf8de8cab706d82fecb46840704990f6ab25fa88917e0b7ed1fbbcd20af2769a5bf1206a303f966cf65d6cc9aae402f97b3b0996cb44ac36b33920a727e4f74b0116e46f53960843a10ffbd8662bafd82671bcdc571a76337c45fed90125a413470954a88acdfb44cd023954dee4160275de1835c95dfe3f2940e31e5da803bc4a6902bae94eac7c9d7d861e1bc15a428b99b86cc7bf7dc46eb16caad9d9934de54712630f1f2df278f80ab04ab5f065f017fc8106e882b12a671626b4012d9c6e6127f03e994b42e3f5e6e84d6b47e1339aed5a8f89ee2517b9e8f1ef216b2d', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930320065724, -1024725302485909718, 2083817958799277891, 1795844259824, NULL, 702, 42, NULL, 0, 'Payin-02', '\xd7b79b30fe783703b2c7dbc4c87f5f37', 'https://acme.example/cb', '\x010200b1c4232d5037b2e2b5203c722896e76605dd5d1cc5ce87c1e2b441de480382205f02793a214b2cfdf16db35f5243f380aa88bac583751ebee7c7f91da125ab4b560999f7b5711205df8cd20c73d1e08db1d45b7e33544d9ba785dbec6ce40051706e54d69ad02600b65ccc8bcd50b88e7bcf23f3a1eb94e7c2ac8461ba4988573f910d33ee1a5d659a1ec4514a50e5833cd8d4aeca917e8edfef6a5dbb43f426f8afcfb130bd4f291c3a6b06128441940bdf06cefda4c61b3fc5ff36e85fbf5d19588f7647381b2ceb807ccd807401e5675a0ce539e1cea443e5ea36752870bd27d9edc9510b965442ab1937123cb6d3cf486f8ab2df7d120f127f3ae2cd5e761a6a74062af5393d339e6880e3d22485fb7031f60da20f2e8acedb27619c0f7bf875863265e7f19e9e47675249733ec32788ab51013256fb520effc7f79ac62043bc299911a6502ec003bcfd57bb4b2f7322bca42bea64fb9bbc5579fc31faa899b54550', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930382981386, -2743800805038624587, 2083817958799277891, 1795844259839, 1795844259839, 701, NULL, NULL, 2, 'Payout-01', '\xb5d38aec02216236a5a4034dda6f5c58', 'https://acme.example/cb', '\x01020056ec987a1e8839184324c62d558a47c6f77141b1c9c7de4b420fc799d4c31c8b52d3080ff3ebb84703803d9ca4fe75f5b6dea796f60416a1f66847eb872b29b3124835a890537a4b106141b02b716f2367dfad6379334b6bda5ccbc9e1a24566c4ae928bbfc45605f419017fabe08c25e7366e11dc34dcd15603c9c88880f64c', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930416537473, -2743800805038624587, 2083817958799277891, 1795844259847, NULL, 702, NULL, NULL, 0, 'Payout-02', '\x47dc3ce9540cf2ed37691db7cd95c254', 'https://acme.example/cb', '\x010200c7922bfc8f8ecbf0114cea6668a822dca9e497a83af4ba3e8698b6f529432ebb9a2fdd0ef68250ec13cc533beec29dc0c69bee9c007354739108dbf1bb5481aedfbf86ea15b12672b27f7be851135b3ec2b80cdc5949c98c26495ab45c69b9ec40e72b3b73fc3f5253444ff6b2b9b78adca7fbf9a3c3e0cbf001cde75d7b31e7', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930479452078, 7998768016505572815, -2083817958799277892, 1795844259862, NULL, 700, NULL, NULL, 0, 'Deposit-00', '\xaa2f55198d2c3132f984acc59c61a458', 'https://acme.example/cb', '\x010200202cd9a2b3d3bb71fbccb2114f90c172cfd700d02bcb4c7fe3d1e64072e17041616e22596e78e25c50fd3d929dfe3cc69af25742a4996907b8a1d046a6dd0dfb5196fac8615cfc0b9b42b65f27300ee78cff65b42a8a264b4720a8f46574cb53d90235c12d17fcd3cf4ecdb7e9d09ecbb012596ff8b9023c852dbacda5b40bc41856840ffb5b4d5fe0d8ec7e977f5c42430c319d4d5198adaf2c5ad4577b3c10bbdb7f47cab34633b4d4d4bc65c937e7ac0a7367b24bbbbad2c6b052c0010c1ebfd8fa8e953e504942a7ca711c5a3b19fb36d2b9f316bfcb66043de9ed0a7346354007e261ae399fbad7ec91c7fd6ed97d018447fb768242694c682b102a8cf026077d55e16fff594d4ed8e4214e274057936bae4a9b6e2dcb7a18fc0554b44e2016491359189be5e95645a08b54b1badff1b41fd017df8de0575569551ee339ae5f97e2d2', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930517198572, 7998768016505572815, -2083817958799277892, 1795844259871, 1795844259871, 701, NULL, NULL, 2, 'Deposit-01', '\xa04314703128a66dc7e502807f083145', 'https://acme.example/cb', '\x0102009f9b7e2a8de652daee16710972b187b6f7ef7128539abed0499382afe496154912c6622fbe6d084f72480bc0eaee3dedc86fa0fbb0e6596bddee6685d8704f86047aaaef4e90598e603f4fb81f677c401b82b70dc75c76c925b5c09a6da173a0e5cfbfe16cfbd09a3ff697370a1f0bf6bb9cc2477cc8f6bde690a961d97f1b5f284992b92c66147ca5ca8e12ce2098391875957032d0bfbb6913dd0777572feb3339df37732dc412540a0460580957079749cdf3a29482dc07caf03b28250fc7e0787797dcf1a900722465e8263bb94df2cf0d8a7b1a5114ca5d6e280a0f66d942fc4d76c2f427eed91ec65bf133f05efdcb3d6b71f6d348799dfd1ea76d5d60fc5035c95e752fd5d15a46cbdf0d8d8d2cde509b5017e50145c5fdab26c219a2ac482e8c6027bd6db792142c97609e7bd3b489cb22054dd26436801bef9e4364b6a1f6a288', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930592697396, 7998768016505572815, -2083817958799277892, 1795844259889, NULL, 702, NULL, NULL, 0, 'Deposit-02', '\x832d75c18e0aaa0f1a660c1d03de7db1', 'https://acme.example/cb', '\x010200a9bfd4ed572dc78df80bb5c9ce809f75bd571306e23a7b14c5052a0680cc04e553be96c3b538e6438e373660b26653b330475f6749609e9f0dfe813d08a841bbde666cf450df6fb7d1fa71713d7b669f60c5623ffaf1e20b4cfbe0856ef514357e903b09fc1afd6694b7180f196f5368264429c7316238ed089b44c800e1bdc790d02daf897e51950a33550289356d769380dc334b9fdfa64066816d1ee91408b9cfcd3576e286cc1a905a9a43de971ed529f54b9c8cf481cbb7c43fb5e2e6e83a1719723d117ab3a1cb6193a5ce226bae29db3bf76449690b57796d05d4f98c66a39499f158480ce4795de551a2b2f3b310d367b294999b83fdb9a45f31dab8913ce77fcb765b6b49adf54e001d83d54bd1519dc555b628322fa9259a35aa3edf45ab1fa8a6ae6fc893a3e982c66a52aad42201150631ab65c7b3deee3afc8623b6b901a5', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930659805837, 356803547517519075, -2083817958799277892, 1795844259905, 1795844259905, 701, NULL, NULL, 2, 'Withdrawal-01', '\x90f07ab4fc72a06c9a3c0c921fe67dac', 'https://acme.example/cb', '\x010200138b185d5ec1fef70da62f1127e66ba63222d52792da602d569bd60e0e0ee6712b54cf3b90292f84c138fe1e7de62445a25db725b27c', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930341038592, -2743800805038624587, 2083817958799277891, 1795844259829, 1795844259901, 700, NULL, NULL, 1, 'Payout-00', '\xd277e4f47023b0a5318520479def56ee', 'https://acme.example/cb', '\x0102002f236a78815571b5a2812ef38fd20b936fb3c45957f1c8ddc9b50403683e9b909e88760d658aa85577db03e4f5aad0159d039aec79efa3b5340ddb5fc4e0f43b4879f864abacc003566f5fff00a46d379901a6fccb807e6d391e75fcba5e69be2b54389d7907774bebcc9cfdbf7f1c750e60f83fec830c3cdd0e01ac0d0c861f', NULL, NULL, NULL, NULL, 1, 1795844259901, NULL);
INSERT INTO public.operations VALUES (252306930701749927, 356803547517519075, -2083817958799277892, 1795844259915, NULL, 702, NULL, NULL, 0, 'Withdrawal-02', '\x44a85bb6a4cffb83d22eb0f71a29501d', 'https://acme.example/cb', '\x0102003c3b2ceae25cf807a66921a0c966017f2201f28c14615208dd90afa697b76ce2dd1697cb3334c83272824e67647a371ac8930e36ca46', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252306930622055292, 356803547517519075, -2083817958799277892, 1795844259896, 1795844259956, 700, NULL, NULL, 1, 'Withdrawal-00', '\x2f928923e10123a16a1e1d6a03b5ff1b', 'https://acme.example/cb', '\x010200c1ba4dec64db90dec804745152defeca0715f3719d7300799f2ee3d2806688f79ce493bb428f96b29dce04e0be880f5d52fb1ae4e478', NULL, NULL, NULL, NULL, 1, 1795844259956, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\x5889a4b26cf1f71edbcbcaf504e10d74', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252306930382981386, 1795844259839, 1795844262705, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252306930286511930, 1795844259816, 1795844262728, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252306930517198572, 1795844259871, 1795844264808, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252306930341038592, 1795844259901, 1795844263060, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252306930659805837, 1795844259905, 1795844262899, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252306930622055292, 1795844259956, 1795844259956, 0, 1, 0, 'acme https://acme.example:443');
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
CREATE INDEX operations_by_status ON public.operations USING btree (status, transaction_id, context) WHERE (status <> 1);
CREATE INDEX resolutions_by_operation ON public.resolutions USING btree (transaction_id, id);
CREATE UNIQUE INDEX resolutions_waiting ON public.resolutions USING btree (transaction_id) WHERE (state = 0);
CREATE INDEX tasks_by_due ON public.tasks USING btree (kind, queue, due_at, key);
CREATE INDEX tasks_retried ON public.tasks USING btree (queued_at) WHERE ((kind = 0) AND (attempts > 2));
