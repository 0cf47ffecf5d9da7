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
INSERT INTO public.actions VALUES (252552525780448337, 1795902814345, 1795902814350, 'cli:0', '', '', '77e446c4ae0332ff8a1e89aa892a8dbd', 'ids.import', 'acme', '{"file":"/tmp/.tmphsxZtR/ids.txt","kind":"payin","lines":"1"}', 'b557e63eeb28a55f', '\x569685d0895c0bfadf21b0b7f1bbd0a9', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252552525018353522, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525018353522, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525077072571, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525077072571, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525152570924, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525152570924, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525228065929, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525228065929, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525018353522, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525018353522, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525152570924, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252552525152570924, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252552524976409586, 1795902814194, 13055, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252552525039323341, 1795902814195, 12755, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252552525114821060, 1795902814195, 12955, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252552525194512827, 1795902814226, 1219, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252552525018353522, 1795902814236, 1044, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252552524976409586, 567860468484645441, 1795902814153, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252552525039323341, -5559633963398345782, 1795902814168, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252552525114821060, -7251523170093197655, 1795902814186, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252552525194512827, -2639883676285762056, 1795902814205, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252552525018353522, 8423036485650079505, 1795902814225, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252552525152570924, 4848657679571283925, 1795902814250, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.contexts VALUES (1328701094555250052, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (6679535987910195330, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (8435082052476770078, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (2863677057487490633, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x01b4e00283deba7293b1b018ab6a3b82933a4f772d5f83f226f53aeb95d8f65df02c66d415e016a808e8b3a1d9da7ebf6c30e10bbfb99278870e075f2f');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x01be50f9be180ed5ddfe059e317229960b3b7829c4abdb5495631b675a99cb26d5a92266fa60ed7280bbce62d79f464da4fc4de94ab78fcda1d1c1ef59');
INSERT INTO public.entries VALUES (252552525018353522, -700, 1795902814163, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525018353522, 700, 1795902814163, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525077072571, -702, 1795902814177, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525077072571, 702, 1795902814177, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525152570924, -700, 1795902814195, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525152570924, 700, 1795902814195, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525228065929, -702, 1795902814213, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525228065929, 702, 1795902814213, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525018353522, -700, 1795902814225, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525018353522, 700, 1795902814225, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525152570924, -700, 1795902814250, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252552525152570924, 700, 1795902814250, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252552524934465073, 0, '\xb22f0172b7764589b43036b7e8f94407');
INSERT INTO public.homes VALUES (252552524976409586, 0, '\xb22f0172b776077acd707ab219cd9c02');
INSERT INTO public.homes VALUES (252552525001575112, 0, '\xb22f0172b776b51e8402e41be5d3bcf9');
INSERT INTO public.homes VALUES (252552525018353522, 0, '\xe08454e8e68075d4a7e2f8b9f290198d');
INSERT INTO public.homes VALUES (252552525039323341, 0, '\xe08454e8e68026dd1f70d4e6a81f52fa');
INSERT INTO public.homes VALUES (252552525077072571, 0, '\xe08454e8e6803cacea6c45690211f7b2');
INSERT INTO public.homes VALUES (252552525098044806, 0, '\xcdc61ef8c8d45c6e3b904b1cb0b8e3eb');
INSERT INTO public.homes VALUES (252552525114821060, 0, '\xcdc61ef8c8d443e819e68418fc23a941');
INSERT INTO public.homes VALUES (252552525135790307, 0, '\xcdc61ef8c8d4372090a0fdf360078f41');
INSERT INTO public.homes VALUES (252552525152570924, 0, '\xe2da1268c5d3d15a7a798f30fbb7a346');
INSERT INTO public.homes VALUES (252552525194512827, 0, '\xe2da1268c5d3fdca303ccc93296f9e15');
INSERT INTO public.homes VALUES (252552525228065929, 0, '\xe2da1268c5d32c7342dc2ed4dd99a644');
INSERT INTO public.homes VALUES (252552525794295808, 3, '\x80eeb43c6f0131021d4295e9363ee67e');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252552524934465073, 1328701094555250052, 8393735305773060387, 1795902814143, NULL, 700, 42, NULL, 0, 0, 'Payin-00', '\xe985cb227892029da28c2f57b999aea6', 'https://acme.example/cb', '\x010200f399e39dd7947a44582cb185bf80fc77eb62bf71d8f97d2fe04be67455d6a01f118472959d6ed45ac3ed9bf78b7eba0185cd5f063b86aa38e5f1e15c1bb541694c380cb9d304286aca55fd813ce4a73e67964e10da348a64162e9cf92b2bf3e067b9cabce07f130f6f490226ff2ca6633a2cef3c4e93035f8f92831b1d69cc1f8ca269f798d2d208acf602d01551c91e1f65c2e75c0653aeac1e2dd785ca6c0da95a0ccda87d2fe17a9f5cfcbc2e39c9610dd928acb440becbf8856eb00cb8bed94d02b6f3e311a3c6e83d71a19f899a8b048581ac1075e5379b2ff533d14c90a145bfe5065be44ff91f7e666e5039940bda2c342a6185f9dbc676a21614d6412a744263f6b7340719a2a47dccc25a1327b9673e9311591f1e4364bf9a5082b10e66413823034bfbba362a9eda35e6327b57fab9d9bc464c51f6c50e31633bd989630db2bc02796fe0e9d568b7339f4c030587fe02dff13cc83f0f5309bc573d215eeeda', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552524976409586, 1328701094555250052, 8393735305773060387, 1795902814153, 1795902814153, 701, 42, NULL, 2, 0, 'Payin-01', '\x813afd83ce27fbd4e90c5c4cd4688bec', 'https://acme.example/cb', '\x01020056e0d0eb44b7fb4fe866f7faa144e591c91d642770b3f983a16bbc70ff71b94bdf49c1237fa2773b0f8f71adb05b14c10e86d6822c190f651ae45ffbe0c5150ecfb400e9625072199f1cf2da8b0d246ed9ac3bacfa4ecc921a03193d90aacafbe5d5dd65f745c9b75ab1977959c578f060b938a13763e793e5bc7f02ec1d0183382ca515c9aea93274d697028f62d185b56c9da609ab89b935f78191873bde4e711d1091c26d0e09753674c14087770529ab7374639f91e2d3424d4de4759976f2ed44818a7edeede6a988d0fde230abfe9c7b8cf08ee8153ee52f5f80d992cb8ac56a5cdf39790eb469c54a1ff75d3e0595dbf878a38325507f4dafe90f3baa21b8d7b49ec1c005d6e5fb798836660bd9174e753e2c705ba7708307b20f7086261ae56e37a667ac51cd081a8e91d92b2869ba6353547206b378c0e02cc8daa14b61191abb4bf6f74c7b4651aec376a0fdf80e27a88c5dd85d551695c68879e0ba116750', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525001575112, 1328701094555250052, 8393735305773060387, 1795902814159, NULL, 702, 42, NULL, 0, 0, 'Payin-02', '\x0ec89a19315a656aa0ad39d97ad11f79', 'https://acme.example/cb', '\x0102001842a79c23f331175b88459287b4b1792ec8306d794f10e904e82326b7f0e70f6dc6e380667fc9bf379685007ec6f32a48b0f6b1eb25512d22552b1fa062afdc4a45c927573c33fb058951eaa185f0d8a021e6c7a016178c3baabaec6ea54610f425483fdc8462a05c93f3d5dabc3001abfe8fa3b95d2a399530b2660d6b6be78eaba1a7712104e0934cbd537d28e4551d03324c1148bcb69b82f9393bf4b73e726a8d3ddfc1ece7f11193a2341ed4322364947108b2fe751411649f50bc38a8aeef9ccea1bf8c296876ffe009c3ce05588788ad420b8f9660c826fd40f75ca77307f5dc7dcdfba766ada5f6dfcbac82a52ccdb3716310bd8042952ee5886de4b185d55c409bb760e6d8752a82f07aeef7592afc38ebc006202d1af3b6bcf09cdceed50a21a59452df0658879b8dbc37b402225184fcac66f18a883379881a0b8ab2f58a24a26e5f5b4add41de7411bef072cc4e495b015628d15e53cff631ea435bff1d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525039323341, 6679535987910195330, 8393735305773060387, 1795902814168, 1795902814168, 701, NULL, NULL, 2, 0, 'Payout-01', '\x083f2d635e58e469391b6c633b395feb', 'https://acme.example/cb', '\x010200db26f9ff76dcbcf819315ecc8127f533e8b9764dd2b11032795e4898bc3adced59ca2199144aa0cc00b6e0b618218781281b03503207fef890ff28f0e469a9596ba541ec8e9864f8345625f38bdd92c380dd717297f9e0a6f727af606d0e51821136c69fdb35cfd6c84d37ee2e68eaaa6fd14ac3a750b546cd7fad11668ab220', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525077072571, 6679535987910195330, 8393735305773060387, 1795902814177, NULL, 702, NULL, NULL, 0, 1, 'Payout-02', '\x976d80bd30a0dba09cebfef3861d821f', 'https://acme.example/cb', '\x01020031cd6188b5cf6a18410f31ed73867f0dcb380ef9ec9bc067f257f427fd6bfb55dedacc11843c0cc5aaa6605834078c115ab60c5d87d3c5a1e3864cc6ca301b407229cf2aa39d120e5b030373d12327a51978c1c9423e5426e59e21dcb198340fdc68e3d87f8ff564f4683476e176dbcd7e17d66018bbd318bba4f2653416d4d5', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525098044806, 8435082052476770078, -8393735305773060388, 1795902814182, NULL, 700, NULL, NULL, 0, 0, 'Deposit-00', '\x697e086300813755756de163734ac5ff', 'https://acme.example/cb', '\x010200a8b76e3839513f41ed65cd6ad170bed698145827b71e5f4601a76855a816cdfffd8bfa0f8cc1ab17c14cdc4be1be2bd504ba2b8de31fb57850471593ab6bd048b277ed0fd438700e65ef420f51c86c082db0df5942a1433ebf421386ae1d887b1602fa61812305b835f0287fb01d2bdf6a68cea861e78c5d599d472ad726147b4621ae34e0ccfd9e2be65fa26be384aff5c529baf1343ef26fd5fb3acc6fbb2a68ce0767ae793c1cf277c6a28b549d5556da4a195872c332998363f69b8b3d26957f4e093cdf9e40c503ed5c1753c9dfc60704320c48f2b6d00aa7abefbf12f95930825a8f3d60558e6e288f906e72610590bee935efa9b8da3d46cad3f55de0e7d6540f695813b6dd142076df4596e7c27778c1e84fafe6bc4d0554df130a54560a67fd0ccb4cf1453de0c7e82567fb8f7dd60c2895ada3cbc292a89988b5aa3439951adc', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525114821060, 8435082052476770078, -8393735305773060388, 1795902814186, 1795902814186, 701, NULL, NULL, 2, 0, 'Deposit-01', '\x2e2bae8b47506e3b6923f9cae3ac4f05', 'https://acme.example/cb', '\x010200340dc06242ccc632a0fbd7b7456e32742b2a07b2c3cb29ef84e8c380fcd642d7e80c0274dde5ee96200e9fb044a867ac856ed30f86a70472e81c95aa3eea2942a73e72ce4c708ae8de431d46108701d1f223a8929d8864cbde3067f90cd3b395045e1b262861b396ae8700624c42f51430be7c333d5ad46687c44c0de1fc16823cac3905660b58952bceab01f6bab42ddca2d827279274a48d1b8c8e118f008f9dd8a026fefa4be57a1b1f2075c80902409614014e37666c4aa8700bdbffc4265654b4e176324039edc7d40d11ade7033ea65d411da2f14775c822393f8d8bacc031f119fcc1074cbe7b5222d88bd1312c139500a77d70c8d926d7eb3b5398fdaf735fef47e3622d9979eb2e9aba4c0f951f029f7927499fcc87bb5bce385b7f87fedbdcdae3841a239157cdbdf4d5e8dfc55f165a8949708e720825ae22082a0e1292ee9e', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525135790307, 8435082052476770078, -8393735305773060388, 1795902814191, NULL, 702, NULL, NULL, 0, 0, 'Deposit-02', '\x5e5693d01a72b10fd3cf54f79702138e', 'https://acme.example/cb', '\x01020089f6e27e0336fc18cd67d1241b373ba27dcd318cbc28052b4f9b83ef167bfd5f8a67cc683940f0c3364d90d58a88d1c6bbbb5d769b0c0db9e7369bd8bae7028be653ca9006a4f9f94aacc81e1507dee2c2119a9870a99c47b37af11c98e101b8fb13031f3b5a7d94bda3d348e4d72adb587426b103cc6f74bcc3a9806269251048ca084171fd625355fca0e2fd6daaa2b7ab27eb2deba4dccce319e98dbf4341376641879496de54f40faa6084190176b1851cc0f1e3d9d642d3317b51c960d780fd7765843f39d071e9967db8aae9ae49a4e703a3cbfa51a2c2cb448529106c610eb8da0054d9e37f8cba02aaf29b489d049e6492c2d18d9a8f21b0bc4b3af04a470d2a9a8f63288f1c04d0a032ba210907314532b64947a79bb16100df042a36b99e8049ce48d0debe802f24e1cbed3f8df41815bbead3f9677971218382ba922f808a4f', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525194512827, 2863677057487490633, -8393735305773060388, 1795902814205, 1795902814205, 701, NULL, NULL, 2, 0, 'Withdrawal-01', '\x994ad9ec12a81f6dd3fca79f28d0cb70', 'https://acme.example/cb', '\x010200087375248e343fb54c61c7619bfdfa6b3041f2e1a6a45226e7ba2b9ff9ddd572ff0b323d992274a9111b3aa58dd788e44c48c3ad5d87', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525228065929, 2863677057487490633, -8393735305773060388, 1795902814213, NULL, 702, NULL, NULL, 0, 1, 'Withdrawal-02', '\x52b0a526d76092c5d5febc2cb7ecf181', 'https://acme.example/cb', '\x0102008273118efcde78a5161d540d8766721274d6ff974fa01c917004a40dc9c14ce3ab4e3ff007f9c579e95c93bb3bfef598fd8a6cc77419', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252552525018353522, 6679535987910195330, 8393735305773060387, 1795902814163, 1795902814225, 700, NULL, NULL, 1, 1, 'Payout-00', '\x1b09ceefb2329656e155906e8c3b530b', 'https://acme.example/cb', '\x010200ead99fee0f648f4ba367e6164169cc16c6a82ac620757245557953ec255e4f7ea45546e7d2ce438fe382b030271cd5f4065024730e1c70b0bc231a604805f399a40e66cbbe94dd737f1d4451a6020ee0dc39669659035b321e461a9fe791f113a1ace22e2f9b8f071fa4eb1464db55f3b60d2da042c2bba6a396cdb1e8b41f3e', NULL, NULL, NULL, NULL, 1, 1795902814225, 0, NULL, NULL);
INSERT INTO public.operations VALUES (252552525152570924, 2863677057487490633, -8393735305773060388, 1795902814195, 1795902814250, 700, NULL, NULL, 1, 1, 'Withdrawal-00', '\x33ce0b72dd9ef0c92e36f5ab2ee66850', 'https://acme.example/cb', '\x01020022f5373cfef71a2df847c17edfe19d42d8cd91564f408d12b95e89ebcb77989c1d6d24b5df6e0dee57f24b06118c40c0785492516375', NULL, NULL, NULL, NULL, 1, 1795902814250, 0, NULL, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\x5013b0820b84d49b78269ef9eade3940', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252552524976409586, 1795902814153, 1795902817246, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252552525039323341, 1795902814168, 1795902817280, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252552525114821060, 1795902814186, 1795902816924, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252552525194512827, 1795902814205, 1795902818654, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252552525018353522, 1795902814225, 1795902818793, 1, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252552525077072571, 1795902814177, 1795902814235, 1, 2, 0, 'card-eur', NULL);
INSERT INTO public.tasks VALUES (252552525152570924, 1795902814250, 1795902814250, 0, 1, 0, 'acme https://acme.example:443', NULL);
INSERT INTO public.tasks VALUES (252552525228065929, 1795902814213, 1795902814270, 1, 2, 0, 'card-eur', NULL);
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
