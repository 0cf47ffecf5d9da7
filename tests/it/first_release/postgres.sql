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
    failure text COLLATE pg_catalog."C",
    CONSTRAINT tasks_state CHECK (
CASE state
    WHEN 0 THEN (attempts >= 0)
    WHEN 1 THEN (attempts > 0)
    ELSE false
END)
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='10000');
INSERT INTO public.actions VALUES (252620465469147512, 1795919012429, 1795919012439, 'cli:0', '', '', '2b15020c5f3a2d6b7c2cb575fbdf6105', 'ids.import', 'acme', '{"file":"/tmp/.tmpSQMOK9/ids.txt","kind":"payin","lines":"1"}', 'f99d3f09ea6f9e52', '\x3be180676c61a242d918ca7c182e8e6c', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252620463712814446, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620463712814446, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620463968668024, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620463968668024, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620463712814446, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620463712814446, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620464425845011, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620464425845011, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620464576840791, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620464576840791, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620464425845011, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252620464425845011, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252620463607956843, 1795919012051, 59491, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252620463872198814, 1795919012093, 17290, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252620463712814446, 1795919012136, 1504, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252620464203548737, 1795919012155, 10883, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252620464497150520, 1795919012233, 2207, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252620463607956843, -306130296204638195, 1795919011985, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252620463872198814, 5574879818128460647, 1795919012048, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252620463712814446, -4591248353400072337, 1795919012100, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252620464203548737, -8885861249432852222, 1795919012127, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252620464497150520, -6603438571798641220, 1795919012197, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252620464425845011, -7502738688988261329, 1795919012238, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.contexts VALUES (7691620009524762621, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (-6997062750425824360, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (-7414245587598539661, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (-2199221742483317089, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x0198c7e2d68ea66c023bad5b2f8ec887038c3080face1fd2bc4492825e889e2161fb6427951ae75bd845ed4ed6c569f270a8eacd0c9ddc29102bec30fd');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x01e2725a69a5378148aadfbdb4b37974d518d1d83455a19008ff937ace1645398471ca319b1b74abee9608a392eaf904750f67a3d2d7c4709528624b83');
INSERT INTO public.entries VALUES (252620463712814446, -700, 1795919012010, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620463712814446, 700, 1795919012010, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620463968668024, -702, 1795919012071, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620463968668024, 702, 1795919012071, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620463712814446, -700, 1795919012100, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620463712814446, 700, 1795919012100, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620464425845011, -700, 1795919012180, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620464425845011, 700, 1795919012180, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620464576840791, -702, 1795919012216, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620464576840791, 702, 1795919012216, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620464425845011, -700, 1795919012238, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252620464425845011, 700, 1795919012238, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252620463406632023, 0, '\x4a9152cbb4fe7dfe6f68d28ecbf43e19');
INSERT INTO public.homes VALUES (252620463607956843, 0, '\x4a9152cbb4fe643b322da2450249006f');
INSERT INTO public.homes VALUES (252620463649899797, 0, '\x4a9152cbb4fea208b5a78bb0473ef25a');
INSERT INTO public.homes VALUES (252620463712814446, 0, '\xc3cd70783a4fcee51a7b227b2daaa1a0');
INSERT INTO public.homes VALUES (252620463872198814, 0, '\xc3cd70783a4f391dec9a8463f38e0aec');
INSERT INTO public.homes VALUES (252620463968668024, 0, '\xc3cd70783a4f76338cc19b6353da7d04');
INSERT INTO public.homes VALUES (252620464031581555, 0, '\x4e51cf7816ee006e3a5f730b0e250577');
INSERT INTO public.homes VALUES (252620464203548737, 0, '\x4e51cf7816eefe677b8c116f69d7adb7');
INSERT INTO public.homes VALUES (252620464325184925, 0, '\x4e51cf7816ee9f38a6fd70e0a7ba462d');
INSERT INTO public.homes VALUES (252620464425845011, 0, '\x1276a2f585a107c2ce3112bf14f90cc2');
INSERT INTO public.homes VALUES (252620464497150520, 0, '\x1276a2f585a1fd84ff490d787940f94f');
INSERT INTO public.homes VALUES (252620464576840791, 0, '\x1276a2f585a1b70e7fb0b8281cd7bef7');
INSERT INTO public.homes VALUES (252620465503780864, 3, '\x722514a6195f3c7d16effd8974f88143');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252620463406632023, 7691620009524762621, 8602074395777579470, 1795919011937, NULL, 700, 42, NULL, 0, 0, 'Payin-00', '\x2bd51286075b6c137f3f1058a004123e', 'https://acme.example/cb', '\x0102003f9602c73f137a1133d3f5022089f44619728debba918636057643551ae17d98e6995865e0ffd063c4a4cc8d6b6f8cede1ce5a424400d671a9b0d08220887c3e32c4c5d361d899be956ea88d2ee94bb0bc1b1d740b57c641ed2b49f3eb44d89b98dba494788c4e91f71bc5bb6aa46364250ebbd685a1475c2c110c6f0023e8d4858e16164f268270901fd3e9dc7008913c5f24c59b0daf96eb5a8ca6d4a8fbfd0056b81eac02df289b1aff7f19aed42057ea30bb97cbef1cf527d097eca1985f3346a159c4310b18eaee094efa5aaa552afe5dbaa67c7a48a8d9a068035af3e45de4c0b11cb0124d672aa43906d2ef4c7213cb3085a1bcc7a758816238f2accf61961d6a33bdfe4701160490db83a19e87d8532eddc05e45bfaeff189b8d94ffedeab7edc95c4793170fecc8d48859a4a9f65fee3e84624bd239b67b99666fb8aaccc5767d88fcbc6957eb4df0e160d0a1465bd7178c7eca4d0a73a056b71215bbf12e37', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620463607956843, 7691620009524762621, 8602074395777579470, 1795919011985, 1795919011985, 701, 42, NULL, 2, 0, 'Payin-01', '\x37ed61d8e7211edac42b9e0868935092', 'https://acme.example/cb', '\x0102007c4f125bafc87cd909f4ede32c6891e6ba3e7cbec2d9df38e5b562c2b881190631f5e9541f1269a1593b9fcfc56f0c199a60bb3ba01a95e063102a9282c98373cf21c0a329b75528cb0abee7f7600dbde7dee69a113e1ed314c91f3f1c6b0819d06a6ad7a17d1eb16f4fc5c3414e277e1fb7e2b9e52aadb0ade119db5b543ffdf11b8a8f004f4e2da57d298e774fe26582cf40408c62cc8dde24ebd9b3ce8164ab84a505b3126cc6c6940dd19dc85b91a8c28a363583b001cc043e9e99f42e906ad26a2adee687d3a7c19af0b4736229e5e0fc291d53bb229615b72d0e7301a72caf9d248c51f82317515271df6257792e6f0a2699bbda260e5c16ed43c23913957b31df927208451c847dd44adaf858299f9d22b273a0139a7eda96cdc5579499886349e9a8ba208b8c4abe2a701b90234e64274e50d351f0245a876a86b06c9a8ad48261526fb73a4c3ccaa648134d28c1693eb977d3c3fd52579df22251eabef0484d', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620463649899797, 7691620009524762621, 8602074395777579470, 1795919011995, NULL, 702, 42, NULL, 0, 0, 'Payin-02', '\x4d4d454f24ca833434c60a2062c82528', 'https://acme.example/cb', '\x010200d50dd22de8ac63ea2187096fa1a921c478f3dc306ada1f42f6ca7906b44a148d9dd9cc2ec26f1ac77cbeb1a6d8f9a52e626128cfc35635b8a21d7581a2505294a08a9713babe767d2256c132f2607c09f8abd70f33093447863d2feeac66cc1df039bd29ed08044570675fb29d16d32ddfa3fa12aeb472e2a59598a0ddb36c5d2aabcc5b1eec37d80057ea8fea4db457c9e288bbfdee85b51fb3a34c747a0f8ab95b960a0d08940e616a564cf2ab8563b4944874e4a8b7dc51e3b10eaaf03a2b4c1a4bba99c2b70f868397fc6d3e5e72e670c40111dbb2b7745daf3bbc4b07c42659c371a58c61d64c552b043236a5e95c36fd223562288f1d0b4fa0114fcbd15c2ce2465f64336bb5b8ceb4256b955e71b0b27742b85e6fb6ab43d1d44cc9dd93fc777cb21a4cafa0aba6643851a78e253b7460b63ffa3422bebb971373fb40145148aeb72b6e70e4c77027405254be3e8f73c4e09fa51f7f4022a94c8245a2164c504e', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620463872198814, -6997062750425824360, 8602074395777579470, 1795919012048, 1795919012048, 701, NULL, NULL, 2, 0, 'Payout-01', '\xb7e673c0056ca1460931d2c21fcdd118', 'https://acme.example/cb', '\x01020061959931a7502472c4ad0c0fc2ee2c5f955ffca0f5f0a4cc418b2caf70e6b485ceee20023dc7b7fe6907a01b9d27e5675f3cce165a142ce4029916fd51b8966159d2325662cd3592dce3bd5b511df481167a7c75d3c4d07f035b483600eaf7ceb01c3e31a5dfc2b326ccdd033e5f0785474e72ccb40deea4c9ce2baf5fa76509', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620463968668024, -6997062750425824360, 8602074395777579470, 1795919012071, NULL, 702, NULL, NULL, 0, 1, 'Payout-02', '\x04941960ab0280e75c44c56450129e6e', 'https://acme.example/cb', '\x0102002142217fdbc0c1751705a0e8e21c9d7e9ee5436413e25368df3e10f67fa169f36bc08f4487e8d05adaa1bd5504bf073fbb4ed1b0a5e401c9f23bba0b72809182c105efbf7fb4f26ef7e326a3c1ef8e9d9437a28700aeed13f7ec12fb3cbc4354675886251528d603a710908a3741316610d97620294a89af80496a3e3ee187c9', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620463712814446, -6997062750425824360, 8602074395777579470, 1795919012010, 1795919012100, 700, NULL, NULL, 1, 1, 'Payout-00', '\x328ce9871b32a4f75fa103a8070220ed', 'https://acme.example/cb', '\x01020086a571baf8d8c2ad00b8f638fde9642b888db6d560eaafcfc5d2c6e33ff22d1408e8c27657b631046441e086ced1ae2237c917324b0a6366b6a30630b2a17c3488c7fd66dcbb2c5dcf4df4321f526eceb1274c5d5a62795d8fb8c3567c8e63f7a8b3056645a438c37ad413d8c810c66914448fb0f4189eae36bf283735437ea6', NULL, NULL, NULL, NULL, 1, 1795919012100, 0, NULL, NULL);
INSERT INTO public.operations VALUES (252620464031581555, -7414245587598539661, -8602074395777579471, 1795919012086, NULL, 700, NULL, NULL, 0, 0, 'Deposit-00', '\x829cfdb4b14b2cceabfb7a371d3e6b34', 'https://acme.example/cb', '\x01020039221f249b0dcbbc1a2d6c5fc810ec6c4075625f220c25438af23ae054e1370eabebb9eff108443790ddad6cd983b6e77edb877c01725ae8c589f32effea5bfb9028fc6517a1917fc0469a0026e833c411facc37233c0ade1cf87718606a70a3d0d6a8bba8a246afb2eac7f6f20aadf8803665936a0e58b155a234632ee047dada9cc54b204eee6c5211b4f632b2d6210e3c447f7a48f088021d50c11cd3d795833ed6a9fcf42163f67afdcf10a22abd51bc0ff253714deca499ad9602aa270460fe66d3c08b6d337d4d7bf2383b901b3135d7feb386316b03a39f5adaefeef0f262744020901e93f6ca7d9af13e73a8747850aab8cbabb6202c501828c5aca78dd6e7823b1d2a3f59ea63fdb15fad225559032e85bbe1b784c06771a9cbc483e0074684ece4da31ee8702d9e3a98f18e80eeb10b3fb8288134cb0c3481d6d8ca25eca5422', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620464203548737, -7414245587598539661, -8602074395777579471, 1795919012127, 1795919012127, 701, NULL, NULL, 2, 0, 'Deposit-01', '\x89095f7c7d3eea469c030cde399f7b8b', 'https://acme.example/cb', '\x0102000837af26f71365a0bc120be670cee06349b4678ad517704b734bd2e5d2b3e122ebf12f315da8ee706f2a82451c5b223b4da610d60f1b3c319fe361d8d30ce3f4184d3fdedfa8ef9265fe32b80c4cf6af653d50ad88d630529d9d1cd3d97595d4ecfee63c58ebf3ebecb94e82de497e071923aa82099ebeff32ef2c02102dcef46ad139402546f88f4733bafa012925ce6d4775ffead197c79f579e945687190cd357d018eca429c463b7a6386de7ecaec9d839ddb8e1956c6e60ed838515dbcc831ae38988278add99489386e25fb2d65ff3fe2362bd9ee05a28647272ae19e7052ec88eddfa7432332383ae9c1e4de86e1824269809576b6dc50366efcc71bd0e491a0274ec350bace4e2cf5715c2a8c48b77695b99bf574af508323e5816ba4a3c527cc969fa35313e5fb52accfd3cdf049e287e7917b9143e6a4ddc8905c1599ab6a876', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620464325184925, -7414245587598539661, -8602074395777579471, 1795919012156, NULL, 702, NULL, NULL, 0, 0, 'Deposit-02', '\x41179d31fbe68f7f9c9c8c32dbeb0e1a', 'https://acme.example/cb', '\x010200b3485b0e32a874d9bcb21b8c3652962971670d11cef9056cc9249b8541cef47c32ccb8307b417b50202a8f160e208855bb18e94b77164155d3a08383322ccb185472d584e7166c802e95bb5610d04a27922d775b6fe5d7f29474b8894ef4351df7e1ae11cbe3fc3a8a5a1e493034d49980e4b6f655876dbc93d5445f685c969e0192f2652082f12f2bfed57a33dbfef6aedd1ba3db9c8f02d0a63980e4844461ad45fd30bdc81b65e8c444543298d64e9f38c69ffda63f6a9e2e6fcf49574d06ce35d0dde3051bd4119c9d61bd89b2761268cab39874e8298f794a11b3f9cee2fd1050863e342deb041de059d51c80742141eaffb13ac5f0279560d0db8826eae8c46e85ae6ae15ba8be420cea5dc0caac35112449e2166a0067af76f7f204f78e6d7ed48427430061c70d9c3898891677c85647eb812554f2e3976114bb327deedff31d4b', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620464497150520, -2199221742483317089, -8602074395777579471, 1795919012197, 1795919012197, 701, NULL, NULL, 2, 0, 'Withdrawal-01', '\x954022ec480039eaaa5d00c66cdd4f8e', 'https://acme.example/cb', '\x0102001515335bc39f126dba19bfeb1c24368389b429ea7fe658879fcfd5c8b89baff85aea6c09b4b9730db59a8b115e9415002f930af6682a', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620464576840791, -2199221742483317089, -8602074395777579471, 1795919012216, NULL, 702, NULL, NULL, 0, 1, 'Withdrawal-02', '\x34b4976370fd0e30fbc6a6ed6ed5474c', 'https://acme.example/cb', '\x010200932319272ddc989d00ba4e795a8ac1b09a6680175ea281bdcbeb389f74902720f86b00dd8117f8991d9aba595ac1dfe5d53c375ae170', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252620464425845011, -2199221742483317089, -8602074395777579471, 1795919012180, 1795919012238, 700, NULL, NULL, 1, 1, 'Withdrawal-00', '\xbf32a57ee5e27d71169a570c9535872d', 'https://acme.example/cb', '\x0102009aca5190123c52405f5103743298f3ab8eec4e6f16679a7c12c183799b9f3ad6b1b355b19bd331db182fc186f2f80f08c9d2573f3dda', NULL, NULL, NULL, NULL, 1, 1795919012238, 0, NULL, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\xfd5581759e3ed359e8480d4278da39f5', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252620463607956843, 1795919011985, 1795919015405, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252620463872198814, 1795919012048, 1795919015805, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252620463712814446, 1795919012100, 1795919016429, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252620463968668024, 1795919012071, 1795919012142, 1, 2, 0, 'card-eur', NULL);
INSERT INTO public.tasks VALUES (252620464203548737, 1795919012127, 1795919016570, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252620464497150520, 1795919012197, 1795919016395, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252620464425845011, 1795919012238, 1795919012238, 0, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252620464576840791, 1795919012216, 1795919012288, 1, 2, 0, 'card-eur', NULL);
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
CREATE INDEX operations_by_merchant ON public.operations USING btree (listed, transaction_id, context, status, has_job) WHERE ((status <> 0) OR ((listed >= 0) AND (has_job = 1)));
CREATE INDEX operations_failed ON public.operations USING btree (status, transaction_id, context) WHERE (status > 1);
CREATE INDEX pending_v1 ON public.operations USING btree (listed, transaction_id, context, status, has_job) WHERE ((status = 0) AND (has_job = 0) AND (listed >= 0));
CREATE INDEX pending_v2 ON public.operations USING btree (status, transaction_id, context, listed, has_job) WHERE ((status < 1) AND (listed < 0));
CREATE INDEX resolutions_by_operation ON public.resolutions USING btree (transaction_id, id);
CREATE UNIQUE INDEX resolutions_waiting ON public.resolutions USING btree (transaction_id) WHERE (state = 0);
CREATE INDEX tasks_by_due ON public.tasks USING btree (kind, queue, due_at, key);
CREATE INDEX tasks_retried ON public.tasks USING btree (queued_at) WHERE ((kind = 0) AND (attempts > 2));
