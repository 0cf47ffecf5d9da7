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
INSERT INTO public.actions VALUES (252611717078288467, 1795916926650, 1795916926655, 'cli:0', '', '', '38af44edddc54d6ecbf4657cae6e6073', 'ids.import', 'acme', '{"file":"/tmp/.tmpk8RATu/ids.txt","kind":"payin","lines":"1"}', 'd630d1b799b91fe5', '\xab85b902e90758e7627882750e1b24b9', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252611716235970730, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716235970730, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716294689916, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716294689916, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716386966874, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716386966874, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716437296006, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716437296006, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716235970730, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716235970730, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716386966874, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252611716386966874, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252611716412129655, 1795916926516, 17108, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252611716269526473, 1795916926516, 19499, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252611716185639297, 1795916926516, 19549, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252611716345023230, 1795916926516, 19193, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252611716235970730, 1795916926572, 3656, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252611716412129655, -6336298084358269874, 1795916926491, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252611716269526473, -9095669457319254341, 1795916926457, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252611716185639297, 5490458670842978843, 1795916926437, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252611716345023230, 8825019575938749967, 1795916926475, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252611716386966874, 1985154038871853837, 1795916926575, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.callbacks VALUES (252611716235970730, 5435683854906906417, 1795916926512, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.contexts VALUES (3563982104292129346, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (-8734844597184177321, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (7118684595243235088, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (5301716255694755694, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x0108a51bb70b41c44c6f7ab27bb06169d58d9733ea65022c9d94e9046c650d6c6760b061725ea398f1dc2ce88303783a55eae8cd9d130352b370b81652');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x019f0a554386d8dfb3a8fe0e555da822eadc056556fd7437a02c2dd30863916e3f3225c7fb7d3112061b51e192fd1253adb302fa12ce16ba8de12ca60e');
INSERT INTO public.entries VALUES (252611716235970730, -700, 1795916926449, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716235970730, 700, 1795916926449, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716294689916, -702, 1795916926463, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716294689916, 702, 1795916926463, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716386966874, -700, 1795916926485, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716386966874, 700, 1795916926485, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716437296006, -702, 1795916926497, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716437296006, 702, 1795916926497, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716235970730, -700, 1795916926512, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716235970730, 700, 1795916926512, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716386966874, -700, 1795916926575, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252611716386966874, 700, 1795916926575, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252611716135306192, 0, '\x3477b763060f08d0eacd9df0f924566b');
INSERT INTO public.homes VALUES (252611716185639297, 0, '\x3477b763060fcd1a2e89dc294c901fcd');
INSERT INTO public.homes VALUES (252611716210804577, 0, '\x3477b763060f062e947cbbd0a3b8ba21');
INSERT INTO public.homes VALUES (252611716235970730, 0, '\xc4665cd0874857994b204e49464f6261');
INSERT INTO public.homes VALUES (252611716269526473, 0, '\xc4665cd08748d5ab7033d8cbee459f90');
INSERT INTO public.homes VALUES (252611716294689916, 0, '\xc4665cd08748c9d16f8d51877fedc13c');
INSERT INTO public.homes VALUES (252611716324051178, 0, '\x24e9605e2a905afe4bf260c91a5b3a92');
INSERT INTO public.homes VALUES (252611716345023230, 0, '\x24e9605e2a90e7ec3edc0ea635236550');
INSERT INTO public.homes VALUES (252611716370186764, 0, '\x24e9605e2a9000af51d199badd222937');
INSERT INTO public.homes VALUES (252611716386966874, 0, '\x5d6c2ef69c0ded173c7fac6b49612277');
INSERT INTO public.homes VALUES (252611716412129655, 0, '\x5d6c2ef69c0db939b3da3dd3ad4c829e');
INSERT INTO public.homes VALUES (252611716437296006, 0, '\x5d6c2ef69c0ddbdf8669234380a97c85');
INSERT INTO public.homes VALUES (252611717095800832, 3, '\xb7bb0c0ddae6c6cb5aab20d73b08550b');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252611716135306192, 3563982104292129346, 7153165259460920461, 1795916926425, NULL, 700, 42, NULL, 0, 0, 'Payin-00', '\x3f003afbff18daf6ac7864433785675f', 'https://acme.example/cb', '\x010200b710d72ff4aa2cc4d172b8ea691201136a0a7afc39c9648efbacda1078d553049c1f6d2cc8c247ec918a2233113ec9bdbfad9c2aa3849123e08675f91c6458bd639eff478f96ca5ea870c4d5bb5707a0120ddd6edd4d6853f7f0e3f66875d733363673ae3a026b18b42f24baafd8ecfa2535dbfe30cf2fc5305d7836a2bfb5268e2d2ecce0125b537ce6518a598315a64d14b5f9bce562819e757a885b7d18b7784aed323d2e3083d60b875b64adc04730a5db9f8dbbaad16fa797fa3cb1c2181d6e2fc723f36391e0e1e53f276ae0bc9eb3e8314fd562f1984db96db9db6806869a85b22a0a7a8829df1f8dcb8650d83aa7924a13d1347adaaf8945b85f0124a279a0d306fd4389a4994aa3c417695c0fbe0039ba44df8406b0c901a6e6c341c024ecc40763eb1a86adb6f9093c0090efe116835a70e5bab914a11ecb6f53c4892af36af4d80307f0a4f353282348db8c018e77431af9b218519c4e6824c2792334a48d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716185639297, 3563982104292129346, 7153165259460920461, 1795916926437, 1795916926437, 701, 42, NULL, 2, 0, 'Payin-01', '\x993aaec8f55ed371b6fe4eb7ac2dc1cd', 'https://acme.example/cb', '\x010200a62159cd6f9d229e3ad3861970697e1ae93e2d606264ce2a3b0d4f48681c648ba4b03420fae96281d277521637f05f2fb420ba5ad1b2628393b68767556beee896bed64f8cd7a9887cdc14dde60c2023bda2b149da084ee35c4b74fa26e78bcd9cfeb466d7abcb6398a36b919e3e2f7fb01f6a81ebdc2e48c9289d659bd6f3cf93e1750ce607bbec6075d33ebad4bf4149b2e426e248b886208c265feeff158dcae1b8eac3a19a82049d3bb8005d2371b28b9b57084320a5ceec24724a7d2b16c8a4ef019ed0e22a7a0d5a177ff89011d9ea77718022e10881e11527efa455b5f0b7ed42a660b766ddf52b14476a9a6c00ec3d5de1ce415d127300370b5eb64e83c73d5b2ee80ae5f19c475e0082c97760885bb8483d393b2ee1a7b2f1e9cc66cb0ebb4a34f0da7678f6a070e10ef261b45101cc4b2784e4e949a2b652b12ec3b8d7a15c0939ee98e7a715284d272ef8babf247fe8c537a3bc59641384de807abf02d208', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716210804577, 3563982104292129346, 7153165259460920461, 1795916926443, NULL, 702, 42, NULL, 0, 0, 'Payin-02', '\xd0730bcb67b094931f603d28cdbbd940', 'https://acme.example/cb', '\x01020046dadfb9129153b153ba7117542fb1d4185228f9841f0242a4939effccaad2cdfe1564254cb5bab1caea3005abd137e77e92b34f1033a1a37f9dfccc269bc002d0fd36c45335dd48e1a4d91db8418b4f4d5360f6f2c475a81db69d787845c7063ef700f13a5f7c94ebb3b6ad00a4b2def3f33c5686a7794a09d9480cb7e43b41b5c3970a30b6a39dd408517f3aa747059f4d61bb6bf3b174e98b177868d5da8b7533660b6aaefaadaf3e57803fc66e499fe1294728696fe2a9bda19c7ee2697171c3b93776c59f5225a28f43ca0ca54eebfd0d3b646b0296396375e62c94fe86cb9136948d7996188318be6500415200b5125d5561709cb886655d636667c54741f5a9651a783e51656bd4bb9a37224a6699a0b2ce891fcc1bfe9f3398ad47b89feed75913162956aeef32275fdfee5e99e7f0972d6181b47336d8c76eb59a5bad5e7894d2f1480521104e44dcbd9e5585d1bf8aa877598734e6cb84ff57be5488fefcb7', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716269526473, -8734844597184177321, 7153165259460920461, 1795916926457, 1795916926457, 701, NULL, NULL, 2, 0, 'Payout-01', '\x53875aa61cb7f43c2ec33d4d2de9f2ac', 'https://acme.example/cb', '\x0102004d0fce299550d1d46633907339bce70d4c908cf09753cd9520525f4bbd702938dd6ce5a3d53aba07fb15d2bba5fb720c315ed5ef80f51b29b17f83ba733fa4e037ac3bc88d35e5acd63cbf4ebd1fe308ac303bd6bb3090df8ffb486674cf403ae1a2568ede76da4f5850490422fe303a2514c82999e3ccc672d4d5c6ae684aa3', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716294689916, -8734844597184177321, 7153165259460920461, 1795916926463, NULL, 702, NULL, NULL, 0, 1, 'Payout-02', '\x1c2ce0525c6fec19ecc09dd39f0d0813', 'https://acme.example/cb', '\x010200e142a33d35075a021c093cf09776bd43fd27fa49ea4cc6de509eaa16df1b899fe12964acc396e227e1c6ae865b608b34d3fd9d3bfe45f1a9f4b607c3d2d88a9b4dd746d3d985dcfd17331b9aafcf5f8dbecf748221ea8700a4faecddd8049d6a2fd8f0bd7085b92bfe2b9174c54b5faf3131d1bea4236b9845ae70435415e035', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716324051178, 7118684595243235088, -7153165259460920462, 1795916926470, NULL, 700, NULL, NULL, 0, 0, 'Deposit-00', '\x2cf6e0e10faa89c05515023c820106b4', 'https://acme.example/cb', '\x010200189d3f8088da8d77f32c03f556c9807d4cff89b6a6b98353f6408c4482fa84c924c1c08bc7818b90164f1b3ceab16e2d5789e8f7da0d0955bd39cfd87cfdf279f1108b567ac38d2b0b0d37d678e75a6ffd978274b5ac5b0d9c64c52c33964677d259ea931b7b4a2bc6a2385c8b046c2f0a97b324c0e89f8b43f67a9d726da5a564a9f0adaab02432a219ecb1297b10705b49605961cdbbb4d6f22a609e7503e9ad780d6d88007df37395289678bd60dbcae0917f6560cb495aecaf6f0698da08e9299391cf21df14921c4f09e6709b18ebd7cd11bfe5026802e5d74eab1bc6d38d0ef6629edc392846e2464266194cdc0cd08484a1f19d5f43dd30a0025f573fce481b18d1dffe9130f1799308547b3461a58ff992e12340845096891719ed8c225b15403bed2067a5400b8c4498cee694d89135d1800901157aa42e6e44dc119bb5361cc8', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716345023230, 7118684595243235088, -7153165259460920462, 1795916926475, 1795916926475, 701, NULL, NULL, 2, 0, 'Deposit-01', '\x9b40bad5fec95350929c9c205bf4e95b', 'https://acme.example/cb', '\x010200f9c6ef794f86e7d87f030e2d633145813c7beaf80574fc90fff3b7fd718942aacb980119303c143409584552aec71cb34621c33597da916978752e1492949a047a446ab3e4adabaa1870118125c51500b7b3ddae47dc553200251d194913649bbbe58131728120c714d2af9683aae3ae40a1cf19e799892ad5f552e53ef1bb1b1f28b22e504d5f132e498e43c46de50abccd933ceadc270c55cbcd77d4721fea900693fb3d7f82046110192c50cf2027c04ea2718e108046f5256a743d790685148fd750676ca2a34b3e83d461f8fc732f9af225b681176b532e2071d37f7cb6e503d69549335116d8ac514f4abe2f6be65fc0c51e166aaa8dfc912eca149fd86d91f3fcc969e9b4742c310e93d74fd66dde97f6256c0eca7ebc7c6c4e996543fdfd4f0f99975d0a4c00bed66db7f96b01418c9d15d855b3b732325a7a465d0787d00d3a21', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716370186764, 7118684595243235088, -7153165259460920462, 1795916926481, NULL, 702, NULL, NULL, 0, 0, 'Deposit-02', '\x9a9a5a28c1e906286f9f99d82af1c327', 'https://acme.example/cb', '\x010200f8edc790f72f8d0dad9363884a0d487301c918b8dfb70953879e92733b2114e5b517888cf9b045079dff4cf9a743fcce9f4787734f251dbd96153c13bae58fe0aa90d616803dda3088a4cb8f1922ba2c3e5996d676bd2e923a353e6314ad3fc06e7b14291e3a19299cbe73734c1ccb4243112249a3ca7ce380461cf7d5439bd2047c167726c5960868722fe7a8c0eb6f49ff47c5a6e2fb7f5642e55a8f612078d192f91f9e04cd073e15864b9f221821c7ca9dce05a2d8a2b0d9ca81668c47fcc54eb23802bdf39849101c19a0e037a9cf5c0db264685e8e22d36e701b9ba47a8c5ceca070aeb4a56649c28d3de48f4af5f97f41e5a5261c3dcddf1dd68efbabf77a29d59ba0a76cb557d2dc3bba0a4b7e63b4f381fe62fd31d81e16d2d6c6d74cc391fdbc35a8a179d42badd31b6ada806bd46b44652568062f09ecc3a23459335bd5d130', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716412129655, 5301716255694755694, -7153165259460920462, 1795916926491, 1795916926491, 701, NULL, NULL, 2, 0, 'Withdrawal-01', '\x5131d72cb32a5618481b49f89ec5b0e3', 'https://acme.example/cb', '\x0102009177ed48d51da5c853ff5cb9a968f74cb8e90d086fc6b24909a8a4d503a2d2ca4d2e8604d2455c5aeb5546955623e984b259a48be51a', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716437296006, 5301716255694755694, -7153165259460920462, 1795916926497, NULL, 702, NULL, NULL, 0, 1, 'Withdrawal-02', '\x9c355cf4e467ddf06be2a11f62b0dc78', 'https://acme.example/cb', '\x010200d6d1b2072ce9c9402e48a04e9148358495884d3898434f765f6b9d647517392a1640a08e4f9a22e85f62166331ff051ce1d1ba29c758', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252611716235970730, -8734844597184177321, 7153165259460920461, 1795916926449, 1795916926512, 700, NULL, NULL, 1, 1, 'Payout-00', '\x40f6f37b256106f5efeb04c7872ceac0', 'https://acme.example/cb', '\x01020017f691005a096a2802bfcde34f32d43dd382f314478d71081783c59a8b5a8a54cd9f60b27381c6c8a297812315b82299c0af5c6c6ba13b74f42cb7053966392fea197c1c6afeeb9699909e2131918eb271aaeda7d4e94af160bb7ebfd102a9636b2de9f707bb288923a5756f831b4ce4b249d6b38be30c34ae2270ee9e8f8264', NULL, NULL, NULL, NULL, 1, 1795916926512, 0, NULL, NULL);
INSERT INTO public.operations VALUES (252611716386966874, 5301716255694755694, -7153165259460920462, 1795916926485, 1795916926575, 700, NULL, NULL, 1, 1, 'Withdrawal-00', '\x313eef1a1c4852fbe088b4fadafac047', 'https://acme.example/cb', '\x0102007b9937afd2b5665db0b19a6b89f3d7129dd67b5ebcc1b0509c304e8fdd29408b06dfcc873c1240100b54ecb9fd58daa6a61f15430183', NULL, NULL, NULL, NULL, 1, 1795916926575, 0, NULL, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\x35a96af56319f2fddddb51c16c929909', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252611716294689916, 1795916926463, 1795916926531, 1, 2, 0, 'card-eur', NULL);
INSERT INTO public.tasks VALUES (252611716412129655, 1795916926491, 1795916929531, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252611716269526473, 1795916926457, 1795916929540, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252611716185639297, 1795916926437, 1795916930091, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252611716345023230, 1795916926475, 1795916930272, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252611716386966874, 1795916926575, 1795916926575, 0, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252611716235970730, 1795916926512, 1795916931223, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252611716437296006, 1795916926497, 1795916926584, 1, 2, 0, 'card-eur', NULL);
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
