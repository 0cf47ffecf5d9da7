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
INSERT INTO public.actions VALUES (252295114363871061, 1795841442680, 1795841442725, 'cli:0', '', '', '176b9e6d13bb7d814f59eb9f08982e52', 'ids.import', 'acme', '{"file":"/tmp/.tmpXslzuW/ids.txt","kind":"payin","lines":"1"}', '264276cd796d99cd', '\xebdc216d6e74b66c27d60405e9c02ac0', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
INSERT INTO public.balance_changes VALUES (252295112776273581, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295112776273581, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295112990182855, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295112990182855, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295112776273581, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295112776273581, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295113267007116, -700, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295113267007116, 700, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295113401221326, -702, 2, 2, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295113401221326, 702, 2, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295113267007116, -700, 3, 3, 'acme', 'EUR');
INSERT INTO public.balance_changes VALUES (252295113267007116, 700, 3, 0, 'acme', 'EUR');
INSERT INTO public.callback_tries VALUES (252295112637860856, 1795841442359, 38356, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252295112843381896, 1795841442364, 33311, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252295113157953490, 1795841442454, 2903, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252295112776273581, 1795841442566, 1630, 1, NULL, 'name not found');
INSERT INTO public.callback_tries VALUES (252295113321532792, 1795841442589, 1629, 1, NULL, 'name not found');
INSERT INTO public.callbacks VALUES (252295112637860856, 5278506363357312515, 1795841442269, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252295112843381896, -7947642416176643986, 1795841442318, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252295113157953490, -8787851751727591775, 1795841442393, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252295113267007116, -6702215936512962979, 1795841442484, 0, 0, NULL, 'acme', 'https://acme.example:443', NULL);
INSERT INTO public.callbacks VALUES (252295112776273581, 2372225553479021786, 1795841442401, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.callbacks VALUES (252295113321532792, 5111173442216428413, 1795841442432, 1, 0, NULL, 'acme', 'https://acme.example:443', 'name not found');
INSERT INTO public.contexts VALUES (-4921495758257281632, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (10938847909533237, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.contexts VALUES (-6603288171536105256, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO public.contexts VALUES (-4948090865513450369, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO public.data_keys VALUES (1, 'compare', '\x01ed2b172a603301bdba48d608275d050b7ddc39f11ad9dce20192e843bb1408ec2db8934db373f1afb680d4b4e3e55c26aec1aa6267e4960faad1d013');
INSERT INTO public.data_keys VALUES (2, 'seal', '\x016228d4cd9d504dd34ccf5ac8550f42e8218b657304884b47df918dd0cc6a4fc586685f5e1572fd76a9bace655c803e5398403ae405fde89b621acf50');
INSERT INTO public.entries VALUES (252295112776273581, -700, 1795841442302, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295112776273581, 700, 1795841442302, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295112990182855, -702, 1795841442353, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295112990182855, 702, 1795841442353, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295112776273581, -700, 1795841442401, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295112776273581, 700, 1795841442401, 3, 0, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295113267007116, -700, 1795841442419, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295113267007116, 700, 1795841442419, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295113401221326, -702, 1795841442451, 2, 2, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295113401221326, 702, 1795841442451, 2, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295113267007116, -700, 1795841442484, 3, 3, 'EUR', 'acme');
INSERT INTO public.entries VALUES (252295113267007116, 700, 1795841442484, 3, 0, 'EUR', 'acme');
INSERT INTO public.homes VALUES (252295112310704911, 0, '\x28bf7204bf6e0ecb88777a6901d867f4');
INSERT INTO public.homes VALUES (252295112637860856, 0, '\x28bf7204bf6ee0e6732a63152a137a11');
INSERT INTO public.homes VALUES (252295112717551782, 0, '\x28bf7204bf6e02aa21167cb18adec214');
INSERT INTO public.homes VALUES (252295112776273581, 0, '\xc27d57c56ce280b5f2a912302469789d');
INSERT INTO public.homes VALUES (252295112843381896, 0, '\xc27d57c56ce2964af858736439ecbdad');
INSERT INTO public.homes VALUES (252295112990182855, 0, '\xc27d57c56ce210c50b6c7c22504696fa');
INSERT INTO public.homes VALUES (252295113053094365, 0, '\x4e782bd53319d01ed9033555f0f2bf82');
INSERT INTO public.homes VALUES (252295113157953490, 0, '\x4e782bd53319fd1ace9ab03a08cd6c50');
INSERT INTO public.homes VALUES (252295113212480471, 0, '\x4e782bd53319c50b5d42557de04735e8');
INSERT INTO public.homes VALUES (252295113267007116, 0, '\x3a5ca0574d6a3269ce78f768f014fbce');
INSERT INTO public.homes VALUES (252295113321532792, 0, '\x3a5ca0574d6a65538cef4d88ab0e1fd2');
INSERT INTO public.homes VALUES (252295113401221326, 0, '\x3a5ca0574d6a60f14fdedf1d8c3e57c0');
INSERT INTO public.homes VALUES (252295114462380032, 3, '\x46dcff4b5bcbbeaab2d9fe70948a7d1d');
INSERT INTO public.merchants VALUES ('acme');
INSERT INTO public.operations VALUES (252295112310704911, -4921495758257281632, 1739529354187852961, 1795841442191, NULL, 700, 42, NULL, 0, 'Payin-00', '\x6576521062e682651d73d642af9bf124', 'https://acme.example/cb', '\x01020022fe0624ff345ce8c28b930a4119e2c488a83adb5a1331075e6503f75005e97bdbbc3b34297dc440300efee26f401fec884ec82ad309a9224bb1cc36a76af7788c8bc456553c7741b1dc51cc9d5814484a4940aed4c04eee7bce77b88e7a7260d76391511c71643460d6e94db105335b2f1fb3006dbb1d019f03deb7add8d61dbc8e55a9cafbad7bb2ed25890fa32ad2ade5f59392c9fdda38ea6034b9dfc3d36a63554f81fb28e426abe50e495485bc34ec163f80f1a20e272d4b2e5a2678aac5d958ccc4aa1cdceeca9422cb21c6ad568d0306b259637689202b0b4b57f3aaa052f317611d768eebc98efed566e3fc0536d216417979ef97c0ec978f660eb1761505299e7329e0d4ab8ba6252265ff054b6b704ef520329996c7c1a41a3adb708febab76989f174774caae22a1e64ea35fc7fef434dee1c0101aafc20a0dda28fd4db8ae2c4043ed50316527df6468477093209eba1eb4f165ef18c90d60e35115d831', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295112637860856, -4921495758257281632, 1739529354187852961, 1795841442269, 1795841442269, 701, 42, NULL, 2, 'Payin-01', '\xbb9919b87abde826f85f64ddb48bf687', 'https://acme.example/cb', '\x0102008759d06b2f06f45561d510e6d9386e31b6ecb07ee323f00808432c284b1a85ed52c33702264ed296137cd8f8ff09428f9a57fe8b5f5c1b8d173abe23744a0d6ce505e400763f85aa314cf1b444696e015753e39068577af60932fb44e837d8606c5aef8078777958ee1566f393318e9c763d9719eef3d1849f2e28a499b1d820e5b8e85c170f1c80ab5a2e09d99f29aab0a333188d7ab34c103a87b6c2c97920765a99bb34aebaf2f727e3fba3b6655bd89cd18a3aba4125304bf2fc147523a720b74f47a194a8c997a3be900e6fe9619761c81b8ea3abd4659f4095da076665b12e0b5d9f5b349ea7bb1d55bbde8d828e91186e5a54f39a736821d1352b3f0a364c5116211d91650d8770ba59c6b0abd6dd3e93bb1de0b211f1e395aaab8923e2141cd346dad6d8a72ef9b4eb46f6b9b846f496990ee056a998b7bbcdd73649aaf56de2ce5658759ebc81dfd0f51e63856c84d8dd7900dd6c80d8e82aabc8136433aad6', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295112717551782, -4921495758257281632, 1739529354187852961, 1795841442288, NULL, 702, 42, NULL, 0, 'Payin-02', '\x3d7475671308ad347c3cfeba5820d87c', 'https://acme.example/cb', '\x010200c2e45089ff0d510a26f29368845cbb95888a95d54935f5833cd3fddd9de9946ef66774f14c391fd836ce10ff22b242860b3bcb75dfc4c5f5a3c298d3e6fbbc2618dd1f690558d09934d92c414b429457f912df0cfc05cf43f47af49f1e3d0fb9b6b3737fffeecef93f45d6770f33df858f0e69f229c21a81f899bc61a9f658768168508a7c00e58582d6f1fa4b5c189cce518e18d4f895d08354d462b94279637feb77d64166ce2d91f2c2569a2c66795dbbb04acf217a525ee7bd41f4b0fcc8c17448ba942e3fa114cf75108818fc76a488b69bd9aa634a5c784604bc0c02faf09fa8518cb63d7f31f8521de945c3ccf06c19e4898b5f355352cc549481e4ff3beace0b89d1bfe94071c8dff4d4a1e686313e47df5a582b7ed5e9c64ba139e09e9e67981f5e421e50e2bd3a34b02c6c1d418a1323c17310bcbf12eb2d3f4d2f0d27c361b4edf1d479ca39b30a0f4f9c8250ce280e917d8f1f5aeccaa651c2c7e9988d32', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295112843381896, 10938847909533237, 1739529354187852961, 1795841442318, 1795841442318, 701, NULL, NULL, 2, 'Payout-01', '\xf16bc620f55c53d9cd0506d469e0f76e', 'https://acme.example/cb', '\x0102004f4dd97643e40c286e57d08e2d04caa0eaf3857cd379f936eacfb42bd7e6e43ff935efc3a93cf0725746044adea3503f6a97308b53bbcd3816822d392221a3a7893b3249cf7f5fc6de031792f658ad4dff3db47de5afa16342ab3f87d7b0a90e27dc7ee063b20a5ae77d11566590b956868974c5df71e572c5ec0459ae840777', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295112990182855, 10938847909533237, 1739529354187852961, 1795841442353, NULL, 702, NULL, NULL, 0, 'Payout-02', '\x5988dd7e887e30a5e8ede50d35026410', 'https://acme.example/cb', '\x0102006c61b2d5f5c117fc504087078a98090e18581df15190274eb2742de5d1ad7ca57616dc76b554adabae34d85384b34a6506e0140e03346feb36455a840000659bbde51716dd6ec3841c11e39dfea5983073aca5b97b4a86c9c615ff59e3506ce7a8068fc9fa7ff3f5525ac922ec6e52c825d5654b45d20456a27687b5f077b7b9', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295113053094365, -6603288171536105256, -1739529354187852962, 1795841442368, NULL, 700, NULL, NULL, 0, 'Deposit-00', '\x92fa7bdcacf7b6e8b1d1b5924ad5e147', 'https://acme.example/cb', '\x0102005f246b8e0ca3ecc8cfc864a6adc4b19ebe6db1d943273e4d36b6cdef36c6f6bb3391ec70769acd10f1fc86242780cc044959f8bf1bb4e5a8c103ec27d7341074670c519748c8f3002423c706f3d6f6bb7e4a9f96a1e25340efbbb4d8a739fe82d6c046bc0cb48f1af6e61fc31694a8581132702d54848103f54d1d443f7a9f74fbc69d2f784d2e726cb9c1585991565e1a42e3f4db14aceb679c67ac4ed88744a2839aac01f8871e814bf6e9025a8da12e8bdbb5340c3d5f24bee1d7f5b19f727aa270a344b327f77d4f58e7051960f23be960b7880bc5daaf346af6f29490fd0b5ccb02ed28982f717cb23db778993733f6fa82fb7fc4892164e00a1fec20bc821610b318c1245c04a8eb14dffb7f6057fcfafc219c0de7a5945059a960d334c2d47c346519b7fcd4ac7b615fd2a5f90a7c9b6b529656034d4400ff8736fa888e6eac528d', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295113157953490, -6603288171536105256, -1739529354187852962, 1795841442393, 1795841442393, 701, NULL, NULL, 2, 'Deposit-01', '\x5efbb141f23ab81bd8e15c8ee0ea4eb2', 'https://acme.example/cb', '\x0102004670f2a98d20b030f57928d76c056a0caae05443281d3b7d1fca3f6def4ccbd310b10e316503d4f5361f19597494e256c0d2c201796f0b7857eeb2418f1d7686e01b3a409bf3a7c0538b0b0e2a390628e7e66a021a3c2071c4c6f0b1240c4cf170827682013d86c875918668483833ca8cfac3738610cd6f7ff5189009723f533209ca043c2323f92c91027e566a4d06fc44d0154c6be3a5ebdb977bd399acd42a7ab4becbf796d3d55f4f4c8b110d6e209c56e2e39baf7adaad50975fd7f32897dd7e995420aff0d71c8bd2fc868e6f200626648d097c2a660d0ca1a83bb69a34719da3716e4ab2ebc4368dadac34ca742c5d33662cdc39c7f92960f82686ca869826e84c694f658b67b61b5010f8964f5726ed336eb701f543cf7be9b088f6f1ec3f128a6e11100c924b316d0e7d3c71a9fc73b5ecc331d5fbfaec942615aa9ff323354e', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295113212480471, -6603288171536105256, -1739529354187852962, 1795841442406, NULL, 702, NULL, NULL, 0, 'Deposit-02', '\x7ba8235073ff090e61eb61db11c96c9b', 'https://acme.example/cb', '\x010200de5bb9d496cba5814239d5702f2da66a0a296336b9dfdc3fcf845cca070c7e8b714227473922d78a2b4a77a8a87fd6684896590b86a03636dfe60a8ed44098ef1a3c8cad23e7f6cb0f89a44197330a9147888a01ce91e4f2dce1fe7cb0ac01e1b3878bcc8572f2d116bdce5ee0995409df8d2602ede9245caeba2b36b271d03144ab4a7f1f286bbe3f44886e7a4001c49f0ea8d2c4b68dc3359450a681eba9f589cf998e68eae38e10bafa9e4f413a6ce75b7d43746950e090d5e311db562b8ec3092137d4c65d798fcc91e5a457f3b67357494d54f44ef60e27484848a35bf02b738668b60c9401efc17e525523f341cdb96d46f920a393b47312719bac1327342bec4cd523fe6660cc929b747fc5885395c47ced731918c8b234053a6b3a3a6cd21d66761e70cc8818252b843606517a1faa8ec2248cf6800322f9f9dc7d4a29174321af', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295112776273581, 10938847909533237, 1739529354187852961, 1795841442302, 1795841442401, 700, NULL, NULL, 1, 'Payout-00', '\x728e1d999ef7ff1a68e50ccbfd6f9453', 'https://acme.example/cb', '\x010200f01e2168396088e95ff7c184e6c85d67f1f693f61638e3718c4feefbb1bae7351b09320491095f3977a5b3ebf5b32c6e9b4e7d0b088dd234d14dd077af64c4a737fe798231485122048d2bdf926a7fdd1465a12bc286d185e28231b1db43ec702913942de475888391c53706e7fc7bd2358a5572f0c61b4357b6b3fb5433b782', NULL, NULL, NULL, NULL, 1, 1795841442401, NULL);
INSERT INTO public.operations VALUES (252295113321532792, -4948090865513450369, -1739529354187852962, 1795841442432, 1795841442432, 701, NULL, NULL, 2, 'Withdrawal-01', '\x5ff5f893b05816740d5f54babfd06cef', 'https://acme.example/cb', '\x010200ab71047b5930b593304d5b07acf7df0e7e5f82ce29b0d1dd62e1cd1fc8e167c722c4421b16d0acaaee4a5404ca5634e375534a04c1f4', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295113401221326, -4948090865513450369, -1739529354187852962, 1795841442451, NULL, 702, NULL, NULL, 0, 'Withdrawal-02', '\x886340ceed483b5d82425dea2ec3380e', 'https://acme.example/cb', '\x0102007372813c6507c79f1ebfd0832f145021469271f54361cda74fced0a7775245fdf5841de31e7bbb19d99b02b54369cefbcbc824a17f05', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.operations VALUES (252295113267007116, -4948090865513450369, -1739529354187852962, 1795841442419, 1795841442484, 700, NULL, NULL, 1, 'Withdrawal-00', '\x71f7767b03193ae91a7b45aa6139c2f9', 'https://acme.example/cb', '\x010200bf291f310149ad654bc41709d1278ff6648c5a62b38fc45fda4a5cc42be8c5717db79b4f4ae7c7eecaae87342455875a619cd3a704d2', NULL, NULL, NULL, NULL, 1, 1795841442484, NULL);
INSERT INTO public.paybridge_formats VALUES (1, 2, '\xa7e0c96302bd57262c26a83fa69a569f', '0.1.0');
INSERT INTO public.probe VALUES (1, 1);
INSERT INTO public.tasks VALUES (252295112637860856, 1795841442269, 1795841445353, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252295112843381896, 1795841442318, 1795841445103, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252295113157953490, 1795841442393, 1795841445235, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252295113267007116, 1795841442484, 1795841442484, 0, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252295112776273581, 1795841442401, 1795841447282, 1, 1, 0, 'acme https://acme.example:443');
INSERT INTO public.tasks VALUES (252295113321532792, 1795841442432, 1795841446563, 1, 1, 0, 'acme https://acme.example:443');
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (merchant, currency, account);
ALTER TABLE ONLY public.actions
    ADD CONSTRAINT actions_pkey PRIMARY KEY (id);
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
