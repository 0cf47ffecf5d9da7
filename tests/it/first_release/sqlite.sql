PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'0128A8AE790A2A37B6B97F57B3F8E1F1F75F1F9DD099964EE9EDC44833A19722CEAA5DE1A7751BD812B7DC304955C0B993363444C89265854D3BF20572');
INSERT INTO data_keys VALUES (2, 'seal', X'0110646E96AC65405884D7486EA4FC91AC9AD77542830D8090CD917AEF3717ECB239B66C849D198BECA9AEB4A2B588047A109B190B6E897282DB4D444B');
CREATE TABLE moved (
  target TEXT NOT NULL
) STRICT;
CREATE TABLE paybridge_formats (
  format  INTEGER PRIMARY KEY,
  state   INTEGER NOT NULL,                   -- 0 added: releases of the format before serve the store, too; 1 they are locked
                                              -- out; 2 narrowed
  release TEXT NOT NULL,                      -- the release that added it
  hash    BLOB NOT NULL,                      -- of what all formats up to this one do, and of the recipe of fingerprints
  CHECK (state IN (0, 1, 2))
) STRICT;
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'FAB469E501EDA0B18F530C438DD7AFF5');
CREATE TABLE contexts (
  id             INTEGER PRIMARY KEY,         -- from the keyed hash of the other columns
  direction      INTEGER NOT NULL,            -- 0 payin, 1 payout
  provider       INTEGER NOT NULL,            -- 0 sandbox, 1 http
  origin         INTEGER NOT NULL,            -- 0 v2; 1 v1, called back by the engine; 2 v1, called back through the relay
  merchant       TEXT NOT NULL,
  api_key        TEXT NOT NULL,
  shop           TEXT NOT NULL,               -- the selected shop
  currency       TEXT NOT NULL,
  method         TEXT,                        -- the shop that the request named
  payment_method TEXT,
  kept           TEXT                         -- JSON array of the names that the schema kept, sorted; NULL: no schema
) STRICT;
INSERT INTO contexts VALUES (-6847081555676854259, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (-4827446127685125562, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (1336406096313786550, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (1796600878602723093, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order)
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 4: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'406754A4F74D048568B41D15BCB3C3EA', 0, 252295093176289930);
INSERT INTO homes VALUES (X'406754A4F74D153121280E01C2B783E9', 0, 252295093100792309);
INSERT INTO homes VALUES (X'406754A4F74DE8CED6C19A4584B06542', 0, 252295093205648026);
INSERT INTO homes VALUES (X'42D2910D1E4B1F010B8B5C2880ADFB41', 0, 252295093729937249);
INSERT INTO homes VALUES (X'42D2910D1E4B722FFD4BE6A11D082832', 0, 252295093788656593);
INSERT INTO homes VALUES (X'42D2910D1E4BD8904338357D27486E0D', 0, 252295093587331478);
INSERT INTO homes VALUES (X'81E898449A6D103F3991CC5B5E02470D', 0, 252295093864155611);
INSERT INTO homes VALUES (X'81E898449A6D365D8D007010C84A0C28', 0, 252295093901903051);
INSERT INTO homes VALUES (X'81E898449A6D46ADC9127094F32B2E5B', 0, 252295093931263435);
INSERT INTO homes VALUES (X'8853CC0A4B32B103B838DA4FCAE8C243', 3, 252295095189553152);
INSERT INTO homes VALUES (X'D9ECB643DBE842B939EA7700BA117B4A', 0, 252295093247591456);
INSERT INTO homes VALUES (X'D9ECB643DBE8CDE0B713CA106A23DB67', 0, 252295093469891056);
INSERT INTO homes VALUES (X'D9ECB643DBE8D2CB3C7FDDA8DC0EF462', 0, 252295093348254698);
CREATE TABLE operations (
  transaction_id      INTEGER PRIMARY KEY,
  context             INTEGER NOT NULL,       -- contexts.id
  listed              INTEGER NOT NULL,       -- the number of the merchant, whose v1 list has it; of v2, its complement
  status              INTEGER NOT NULL,       -- 0 PENDING, 1 SUCCESS, 2 FAILED
  created_at          INTEGER NOT NULL,
  finished_at         INTEGER,                -- NULL while PENDING
  amount              INTEGER NOT NULL,
  customer_account_id INTEGER,
  counted_day         INTEGER,                -- the day for which it counts in daily_usage; NULL: it does not count
  order_id            TEXT NOT NULL,
  fingerprint         BLOB NOT NULL,          -- keyed hash of the canonical request or of the v1 body, 16 bytes
  callback_url        TEXT,                   -- the merchant's callback address; NULL: none
  sealed              BLOB NOT NULL,          -- see store::rows::details
  payer               BLOB,                   -- sealed
  cause               INTEGER,                -- why it is FAILED: 0 its provider, 1 the customer's address, 2 the customer's account,
                                              -- 3 the daily limit, 4 the balance, 5 an operator
  cause_code          TEXT,                   -- the provider's own words
  cause_text          TEXT,
  job_attempts        INTEGER,                -- how often its provider was called; NULL: never, or PENDING
  job_ended_at        INTEGER,                -- when the provider last answered, or was given up
  queried_at          INTEGER,                -- when an operator last had its provider called anew
  CHECK (CASE status WHEN 0 THEN finished_at IS NULL AND payer IS NULL AND cause IS NULL
    WHEN 1 THEN finished_at IS NOT NULL AND cause IS NULL
    WHEN 2 THEN finished_at IS NOT NULL AND payer IS NULL AND cause IS NOT NULL ELSE 0 END),
  CHECK (coalesce(cause, 1) = 0 OR (cause_code IS NULL AND cause_text IS NULL))
) STRICT;
INSERT INTO operations VALUES (252295093100792309, 1336406096313786550, 7926306265498653784, 0, 1795841437611, NULL, 700, 42, NULL, 'Payin-00', X'5AEC882B9DFCC34ED9E50F9BAA4D211A', 'https://acme.example/cb', X'0102002A414755572D4240B42978B978D4DC169A0B9F47C365F5C6B6FE0D5B5CC8C13DFB14C7ED25FDECDF34A3D86E5875C97B691E27DCA6581A148874E51F579A60ADB192062265BDE4F80CF041D854146F3D6B57F7D6DF03A19805FDAFA6D0D4F400E3260621A0FD68D6FB2AC4D700DEE6169388E152C77B880A6DB58E3C47BE4C9BEDF1C175B55E77193BE14C0AE0AC26883CDC2D52596AE780F1DE1C80D63840A7C4863429E53E14301CE6C19D4BAFB8F08D2D7FF752940551F532C87DAEE81CB020B6F352B1096938EA0A4B4927AFCA307D4B405037E4B0816F414D13148300B24F06EE38E0AA87CA375C08C5A67E22BF02C3FF5CE1914BEAC7E140F5FFB94020DAC44AD11498B7AA4976B3A36997453E82C54D4B2187C920B68EBE244594B8C62B4465B9B510BD6F70AAE7FC0DF9E913DE49336FCD72965F28A22195546611C2D04ABB47E671ABB91DE4A4BB383588D452DF362F3B30253225B44E94FE3E29EB9C874746', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093176289930, 1336406096313786550, 7926306265498653784, 2, 1795841437629, 1795841437629, 701, 42, NULL, 'Payin-01', X'9F9EC34B8762CEAD0C62F17416EC88C0', 'https://acme.example/cb', X'0102005D8AD047F034FA29CFD71E8E36B408CC4456B340B68AFC74C2D801F65F21474EB9CA07768B83CCAC3B30EA869A8AD39453F9FB7BA8D60FCD9CB426029BCB991E546FD942B8681E768C0181B0DB4BCAB4BB497FB32C161E5E90841E54045B469B9B929ACA446C94E0B59B2965594EC6E31B27D4423172F318D47B5FB43547E9B387FD9845D2E700D847D05A56D19A85CB7E6CEE56B46ABB45044EA9A23205FE523967CF0A2E017AA4504C88F3D955A57D87586CCFC70B7560846F11380320D96C7D36C8BDF930BD9A766B61406367DB78FBD58A96AF0D9643957000A88AFB363322B42FB0C495EB6A138ECADC857E7BA6685E6BEFDA8914ABFDE0AE0A3C1BB33491A2862ADCAC9E8F29E588F774577D2837E7D7194A6AEB2E76819EF19DACB04C2897051B33BA1072197A825F33AFE61A5B458071AB7230CEB128291E817574013D3D78A522515A88E3D39487BA5F8BB156EB5E118DAE463C61DEBB2407C468CD9AB14E5A', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093205648026, 1336406096313786550, 7926306265498653784, 0, 1795841437636, NULL, 702, 42, NULL, 'Payin-02', X'4523F3E285C5B2CC4F2922009ABFA126', 'https://acme.example/cb', X'010200863393DBAB55A0631E1BC77A2608673D7EE85452BDF596613FBB13D9E6A85EA6596270F2EA79DC4F308A97FB347E14899A9B2E98C34FDC11E6939EB2F0CDFED4FAB3563568F013250E9BC9CEDADB4EDB5E2FC2DFBB618CF942D613C3ED4AFC8DA61265D69307CA06316C88DFA66E2655FB23CC9E38E7B36754092A63C05B877F8C4C08DE5D5520FA9530B4FCEC7493E83F5D2132D3DDBD70A7E7DC800496E8E003AB4002E41EDD7D6650B4CA5B367D1DF41D78D9EA429AE51D0AB58217F93B2EDAA32B52B243A5C1F27785EE7B22AFBBA15CB1608DA835B76157A9E94D20DE897B8E2B958C675934D6D76449B3F27A391758F44F0114153B66304CCB76A357AB0933254E4F6F947E544899EB88F2FCC645119741243C13AD860CAC22955716DFCE53A07C3B710151C29468CA49977DA2427E11E6B1C1A4FC6CBD432706EFB9A2516CDA7E0B70066ECA7C436F15319B1826BB711FA339FC0A71328D43C89168ACF8F4E9F9', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093247591456, -6847081555676854259, 7926306265498653784, 1, 1795841437646, 1795841437729, 700, NULL, NULL, 'Payout-00', X'129343082647E237958F0DC578337C4C', 'https://acme.example/cb', X'0102007B4C37B343A65AC62113120FA5BF1097E3EA4CA0EF6D9906BAEA3958C182E3BF1C00D9851C65F38802F01AE4F343A9D9B0EB41D7661977A62811450BB0268643A4ECD59E3451F4658DCD57B1273DB017E3FCD85BCD031D6CA80CED7386B8A509470455635C102F68AFA45E09B3E038EDD3751B7D88FC95892B41B5BDCBBFC20A', NULL, NULL, NULL, NULL, 1, 1795841437729, NULL);
INSERT INTO operations VALUES (252295093348254698, -6847081555676854259, 7926306265498653784, 2, 1795841437670, 1795841437670, 701, NULL, NULL, 'Payout-01', X'045441FC6273272A5DD508108FA5FB89', 'https://acme.example/cb', X'010200E2BF1DE3BF8304C928945ADF0C3ACB53F4BE74BE91BE5092804C37F49746D49804AA27F198D162CE3950CE4B9A8985710BD74D7EF0CE56D8CD61CB2DC37E69C1E80FA791BEEED59680A8094C9BDBCFE8EDBD51C11B9985D50589251561C19439B4F1C127226CB20FE051598821F732F05137829D44982EFA490C35B61F56B3CB', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093469891056, -6847081555676854259, 7926306265498653784, 0, 1795841437699, NULL, 702, NULL, NULL, 'Payout-02', X'6AE5A29BC4C8BEA635776AFD53AC2DB4', 'https://acme.example/cb', X'010200E306937B058AF829895F923FA9A0C21EA2E6FEF3EF4D2BB2B6629524D0C7CFA39EF8EA107B4939C3EB448389BED4A2ABBFAB6C5B32182422285ECE558B48BF3D06B85443E6FF7CBA8A4F13AC724BC5CEB20397E8783BD3A25129BA5CAA2219E089D17780118E50A43667848B8CA49F22C7551A613B9E30D35DAF2908330BA0B0', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093587331478, -4827446127685125562, -7926306265498653785, 0, 1795841437727, NULL, 700, NULL, NULL, 'Deposit-00', X'A8674153636AA8C03A0455C34B140C77', 'https://acme.example/cb', X'010200A33E6719F9F03AB6E1846899D558A8181E8BD33BBB31EFC5B332A7A5AF6898A8FE8ED917084E04A6C23F15B0E40AE610E9FFAF9F513F1A97882E4D64FF93956D4B730F5470C7F1088601E5C130968B22FA9B3DF6C47D02B82080C836FEEE1405448FC60A7C958D13851D2B7218416D5550D48005F3C32497FD2478F1DFF38901494B05CFB2E473D067D3B45716026F27E52EC64CBCA5FA7B09321DD65847EE17DB458E780C02D772C397AB21FB8660A5410933C04148866D9A637C5568ADFEA25339753609024BFE25B1D503CA05B04CBBC448AB4502F26A83568FF77A1FDEC6E282DFECF2884CECF4E80D18D5B6F1F5D3FE717DA325B4795FC8A29E2A57DE5702F378AEB8E781AA1D2CB6B9439658BFF60566D953ABF22D8698BD5FE3866EB04B016748E0537283EEEF5FFEB7E4A02B192F2EE291AE94B4FD56ABA27FF1A613C5CFEF9AFE', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093729937249, -4827446127685125562, -7926306265498653785, 2, 1795841437761, 1795841437761, 701, NULL, NULL, 'Deposit-01', X'61B0F89173BE22DEC1D5CA3312FBDEEE', 'https://acme.example/cb', X'01020006830B2538887E6425FA1F4EB819F1AA90836CC150B55FBBF05456C45F7B5096146464CE763AA411CA3DFFA43C7D4B6508CF1E16DFDD67F48F880CBFD5C92850A85470A0DB78528E44264844E6B4A1C6BB4A8AF803849DC16834AD423B47120662A8E86EC9CA5D6F331F32CEDD29F9480B9F4B32E2FEBAECD67B87C49D78DF7A0C3D759191AC038424201484F17469C152B985CEB0EE47ECF98A85D6BD8CDDFC13B571D937598C7C8F95886840E307DB4739EAD5D280D02794284D6F3A1454FB89045F41D7A796789B6EF67529D0C3D905117BE34B643B5BAA07ABEDCFE86417A2BC818661DA9B881331E561C77D5FD7713C160A5A6A4FC4B709C6F394EA1D3154CBE0BA740CA9620FABB5E1B47AF00908C83B240391994F0D7F3ECD96DAF4D565A9575BD068D14E078BAC949ECEE2E0609AB72E098B693F2084A993F372F46AF610BBE820', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093788656593, -4827446127685125562, -7926306265498653785, 0, 1795841437775, NULL, 702, NULL, NULL, 'Deposit-02', X'50D542D2E061533D4137279F5CE6D6CE', 'https://acme.example/cb', X'010200FF104710C9613D444172C9886C090229931D0A720ED85AECF588242A084C5244D580D906948BAEBB1D81C6E3B1D01A1B5005278E4B07C83AA660F19D112BA76CCE23BA018DD0DE44DF8C46C3739C2DE329FC3116241973BAE53E1BA5FC044F06CB40259141285DD27C66C9B2770D0583F4909F08B9D2E4BF0B1B9DD8162D0018079150CF0A56816BBA47014C3910A11BD782D4E6E72311351CC62E011CDE7448D13108735B2AEF469920BF7F79804B93C9CBB17C69DD78A110FCF20D420AA2B687AFF34190BA701711B07A7E8658A63BA10436B3C4007D46A51934BB63DE247DD8CD9CDA4F899A7FD5954A0B73A9E9C1A362EB6E9566325A21DB492EF8C82BD564A562C1BB2E5894CBEECDF6872B38645AD1330421D04B9FD6BD90489A4A035B7F5D250C9DED76DE64F6FB642BC30F09E6EDE547C930F4CFF3B8A9373DB1977A64DDF6C32B', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093864155611, 1796600878602723093, -7926306265498653785, 1, 1795841437793, 1795841437871, 700, NULL, NULL, 'Withdrawal-00', X'268C6CFDE6A3C37B6F3F66CCEEE9DFAF', 'https://acme.example/cb', X'010200E0CEFAFD4EFFE9D263426648F5AC6C1C96655D82A97FA2DC6990AD2B3440071E0532468D6ECBF515FDFAA0C1E6C4266A3424EAF35593', NULL, NULL, NULL, NULL, 1, 1795841437871, NULL);
INSERT INTO operations VALUES (252295093901903051, 1796600878602723093, -7926306265498653785, 2, 1795841437802, 1795841437802, 701, NULL, NULL, 'Withdrawal-01', X'6479370F41F3CD73DA83B8318DB4098F', 'https://acme.example/cb', X'010200E76FED19973F4C5786BD211C506516B37DBBA5F2FB8746C155B6655406E34BD1DA2EDE5EECE114A84D4761E750322DC252DF4827F311', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252295093931263435, 1796600878602723093, -7926306265498653785, 0, 1795841437809, NULL, 702, NULL, NULL, 'Withdrawal-02', X'CAA02E1639B86226CF5102DA3C5CE474', 'https://acme.example/cb', X'01020050DC177B59ADB8877D0173B0C508390203DC0F01B4023A0075C562CB99E0F413D0C723D868526F943D5AC5D205FF1B124F3D7ACD1FDE', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE INDEX operations_by_merchant ON operations (listed, transaction_id, context, status);
CREATE INDEX operations_by_status ON operations (status, transaction_id, context) WHERE status <> 1;
CREATE TABLE entries (
  transaction_id INTEGER NOT NULL,            -- the operation; of an opening without one, a number below zero
  posting        INTEGER NOT NULL,            -- 0 opened, 1 credited, 2 held, 3 taken, 4 released
  currency       TEXT NOT NULL,
  account        INTEGER NOT NULL,            -- 0 outside, 1 opening, 2 available, 3 held
  amount         INTEGER NOT NULL,            -- signed
  merchant       TEXT NOT NULL,
  posted_at      INTEGER NOT NULL,
  PRIMARY KEY (transaction_id, posting, currency, account)
) STRICT, WITHOUT ROWID;
INSERT INTO entries VALUES (252295093247591456, 2, 'EUR', 2, -700, 'acme', 1795841437646);
INSERT INTO entries VALUES (252295093247591456, 2, 'EUR', 3, 700, 'acme', 1795841437646);
INSERT INTO entries VALUES (252295093247591456, 3, 'EUR', 0, 700, 'acme', 1795841437729);
INSERT INTO entries VALUES (252295093247591456, 3, 'EUR', 3, -700, 'acme', 1795841437729);
INSERT INTO entries VALUES (252295093469891056, 2, 'EUR', 2, -702, 'acme', 1795841437699);
INSERT INTO entries VALUES (252295093469891056, 2, 'EUR', 3, 702, 'acme', 1795841437699);
INSERT INTO entries VALUES (252295093864155611, 2, 'EUR', 2, -700, 'acme', 1795841437793);
INSERT INTO entries VALUES (252295093864155611, 2, 'EUR', 3, 700, 'acme', 1795841437793);
INSERT INTO entries VALUES (252295093864155611, 3, 'EUR', 0, 700, 'acme', 1795841437871);
INSERT INTO entries VALUES (252295093864155611, 3, 'EUR', 3, -700, 'acme', 1795841437871);
INSERT INTO entries VALUES (252295093931263435, 2, 'EUR', 2, -702, 'acme', 1795841437809);
INSERT INTO entries VALUES (252295093931263435, 2, 'EUR', 3, 702, 'acme', 1795841437809);
CREATE TABLE accounts (
  merchant TEXT NOT NULL,
  currency TEXT NOT NULL,
  account  INTEGER NOT NULL,                  -- as entries.account
  balance  INTEGER NOT NULL,                  -- signed
  PRIMARY KEY (merchant, currency, account)
) STRICT, WITHOUT ROWID;
INSERT INTO accounts VALUES ('acme', 'EUR', 0, 1400);
INSERT INTO accounts VALUES ('acme', 'EUR', 2, -2804);
INSERT INTO accounts VALUES ('acme', 'EUR', 3, 1404);
CREATE TABLE merchants (
  merchant TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO merchants VALUES ('acme');
CREATE TABLE daily_usage (
  day                 INTEGER NOT NULL,
  merchant            TEXT NOT NULL,
  shop                TEXT NOT NULL,
  direction           INTEGER NOT NULL,       -- 0 payin, 1 payout
  customer_account_id INTEGER NOT NULL,
  operations          INTEGER NOT NULL,
  amount              INTEGER NOT NULL,
  PRIMARY KEY (day, merchant, shop, direction, customer_account_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
  kind      INTEGER NOT NULL,                 -- 0 a job of a provider, 1 a callback; kept of an ended job while its operation is
                                              -- PENDING: 2 the provider is to report, 3 it was given up, 4 the customer is to pay
  key       INTEGER NOT NULL,                 -- operations.transaction_id; journal.entry, negated
  queue     TEXT NOT NULL,                    -- the shop; callbacks.merchant, a space, callbacks.target
  queued_at INTEGER NOT NULL,                 -- or queued again
  state     INTEGER NOT NULL,                 -- 0 waiting until due_at, 1 leased until due_at
  due_at    INTEGER NOT NULL,                 -- 2 to 4: when the job ended
  attempts  INTEGER NOT NULL,                 -- claims since queued_at
  PRIMARY KEY (kind, key),
  CHECK (CASE state WHEN 0 THEN attempts >= 0 WHEN 1 THEN attempts > 0 ELSE 0 END)
) STRICT, WITHOUT ROWID;
INSERT INTO tasks VALUES (1, 252295093176289930, 'acme https://acme.example:443', 1795841437629, 0, 1795841442127, 1);
INSERT INTO tasks VALUES (1, 252295093247591456, 'acme https://acme.example:443', 1795841437729, 0, 1795841441943, 1);
INSERT INTO tasks VALUES (1, 252295093348254698, 'acme https://acme.example:443', 1795841437670, 0, 1795841440824, 1);
INSERT INTO tasks VALUES (1, 252295093729937249, 'acme https://acme.example:443', 1795841437761, 0, 1795841440563, 1);
INSERT INTO tasks VALUES (1, 252295093864155611, 'acme https://acme.example:443', 1795841437871, 0, 1795841437871, 0);
INSERT INTO tasks VALUES (1, 252295093901903051, 'acme https://acme.example:443', 1795841437802, 0, 1795841441382, 1);
CREATE INDEX tasks_by_due ON tasks (kind, queue, due_at, key);
CREATE INDEX tasks_retried ON tasks (queued_at) WHERE kind = 0 AND attempts > 2;
CREATE TABLE preparations (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  sealed         BLOB NOT NULL
) STRICT;
CREATE TABLE resolutions (
  id              INTEGER PRIMARY KEY,        -- has the form of a transaction_id
  transaction_id  INTEGER NOT NULL,
  status          INTEGER NOT NULL,           -- 1 SUCCESS, 2 FAILED
  reason          TEXT NOT NULL,
  made_by         TEXT NOT NULL,              -- the user
  made_at         INTEGER NOT NULL,
  state           INTEGER NOT NULL,           -- 0 waits, 1 took effect, 2 another one took its place
  confirmed_by    TEXT                        -- the other user
) STRICT;
CREATE UNIQUE INDEX resolutions_waiting ON resolutions (transaction_id) WHERE state = 0;
CREATE INDEX resolutions_by_operation ON resolutions (transaction_id, id);
CREATE TABLE contradictions (
  transaction_id  INTEGER PRIMARY KEY,
  status          INTEGER NOT NULL,           -- as reported: 1 SUCCESS, 2 FAILED
  reported_at     INTEGER NOT NULL,
  acknowledged_by TEXT,                       -- the user; NULL: not acknowledged
  acknowledged_at INTEGER,
  CHECK ((acknowledged_by IS NULL) = (acknowledged_at IS NULL))
) STRICT;
CREATE INDEX contradictions_open ON contradictions (transaction_id) WHERE acknowledged_at IS NULL;
CREATE TABLE journal (
  entry           INTEGER PRIMARY KEY,        -- has the form of a transaction_id
  order_key       BLOB NOT NULL,              -- homes.order_key
  direction       INTEGER NOT NULL,           -- 0 payin, 1 payout
  state           INTEGER NOT NULL,           -- 0 open, 1 in doubt, 2 answered
  doubted_at      INTEGER,                    -- when a request was last given up or sent again; NULL: neither, or answered
  status          INTEGER NOT NULL,           -- as last received: 0 PENDING, 1 SUCCESS, 2 FAILED
  created_at      INTEGER NOT NULL,
  amount          INTEGER NOT NULL,
  fingerprint     BLOB NOT NULL,              -- as operations.fingerprint
  currency        TEXT NOT NULL,
  merchant        TEXT NOT NULL,
  order_id        TEXT NOT NULL,
  api_key         TEXT NOT NULL,
  shop            TEXT NOT NULL,              -- the selected shop; '': not known
  v1_callback_url TEXT,
  transaction_id  TEXT,                       -- the engine's id of the operation
  redirect_url    TEXT,
  account         BLOB,                       -- sealed; as last received
  body            BLOB NOT NULL,              -- sealed: the v2 body, for sending it again and for comparing repeats
  CHECK (CASE state WHEN 2 THEN transaction_id IS NOT NULL AND doubted_at IS NULL
    WHEN 1 THEN doubted_at IS NOT NULL WHEN 0 THEN 1 ELSE 0 END),
  CHECK (state = 2 OR (status = 0 AND transaction_id IS NULL AND redirect_url IS NULL AND account IS NULL))
) STRICT;
CREATE UNIQUE INDEX journal_by_transaction ON journal (transaction_id);
CREATE INDEX journal_open ON journal (entry) WHERE state = 0;
CREATE INDEX journal_in_doubt ON journal (entry) WHERE state = 1;
CREATE INDEX journal_by_v1 ON journal (merchant, created_at, entry, direction, shop, currency, status) WHERE state = 2;
CREATE TABLE callbacks (
  key         INTEGER PRIMARY KEY,            -- as tasks.key
  nonce       INTEGER NOT NULL,               -- random: part of the callback's id
  merchant    TEXT NOT NULL,
  target      TEXT NOT NULL,                  -- scheme, host and port; 'engine': a remote engine confirms the status first
  state       INTEGER NOT NULL,               -- 0 pending, 1 delivered, 2 failed
  queued_at   INTEGER NOT NULL,               -- or last resent
  tries       INTEGER NOT NULL,               -- in all
  last_status INTEGER,                        -- of the last try that counted, if the receiver answered
  last_error  TEXT,                           -- of the last try that counted, or of giving up
  CHECK (last_status IS NULL OR last_error IS NULL),
  CHECK (CASE state WHEN 0 THEN 1 WHEN 1 THEN tries > 0
    WHEN 2 THEN coalesce(last_status, last_error) IS NOT NULL ELSE 0 END)
) STRICT;
INSERT INTO callbacks VALUES (252295093176289930, -4583730969792651578, 'acme', 'https://acme.example:443', 0, 1795841437629, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252295093247591456, 581419964159634043, 'acme', 'https://acme.example:443', 0, 1795841437729, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252295093348254698, 7343544321182937099, 'acme', 'https://acme.example:443', 0, 1795841437670, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252295093729937249, 902282200148625677, 'acme', 'https://acme.example:443', 0, 1795841437761, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252295093864155611, 8191169548331508842, 'acme', 'https://acme.example:443', 0, 1795841437871, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252295093901903051, -4062059953761498057, 'acme', 'https://acme.example:443', 0, 1795841437802, 1, NULL, 'name not found');
CREATE INDEX callbacks_by_time ON callbacks (state, queued_at, key);
CREATE INDEX callbacks_by_merchant ON callbacks (merchant, state, queued_at, key);
CREATE TABLE callback_tries (
  key         INTEGER NOT NULL,               -- callbacks.key
  number      INTEGER NOT NULL,               -- from 1
  began_at    INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  status      INTEGER,                        -- if the receiver answered
  error       TEXT,                           -- if it did not
  PRIMARY KEY (key, number)
) STRICT, WITHOUT ROWID;
INSERT INTO callback_tries VALUES (252295093176289930, 1, 1795841437651, 32077, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252295093247591456, 1, 1795841437790, 10377, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252295093348254698, 1, 1795841437722, 5836, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252295093729937249, 1, 1795841437860, 9507, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252295093901903051, 1, 1795841437930, 6770, NULL, 'name not found');
CREATE TABLE forgotten (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  until INTEGER NOT NULL
) STRICT;
CREATE TABLE check_counts (
  merchant   TEXT NOT NULL,
  rules      BLOB NOT NULL,                   -- hash of the merchant's rules, 16 bytes
  id         BLOB NOT NULL,                   -- keyed hash of the two and of the seven columns that follow, 16 bytes
  shop       TEXT NOT NULL,                   -- '': no shop of the rules
  direction  INTEGER NOT NULL,                -- 0 payin, 1 payout
  class      INTEGER NOT NULL,                -- see store::checks::CheckClass
  member     TEXT NOT NULL,                   -- of the v1 body; '': the class has none
  reason     TEXT NOT NULL,
  file       TEXT NOT NULL,                   -- of the rule to change; '': none
  key        TEXT NOT NULL,
  count      INTEGER NOT NULL,
  since      INTEGER NOT NULL,                -- when the first was checked
  updated_at INTEGER NOT NULL,
  samples    TEXT NOT NULL,                   -- JSON array of JSON texts: names, lengths and shapes, never values
  PRIMARY KEY (merchant, rules, id)
) STRICT;
CREATE TABLE complete_ids (
  merchant    TEXT NOT NULL,
  direction   INTEGER NOT NULL,               -- 0 payin, 1 payout
  complete_at INTEGER NOT NULL,
  PRIMARY KEY (merchant, direction)
) STRICT, WITHOUT ROWID;
CREATE TABLE actions (
  id              INTEGER PRIMARY KEY,        -- ascends with time, as a transaction_id does
  began_at        INTEGER NOT NULL,
  ended_at        INTEGER,                    -- NULL: unfinished
  user_name       TEXT NOT NULL,
  role            TEXT NOT NULL,              -- '': a command
  address         TEXT NOT NULL,              -- '': a command
  request_id      TEXT NOT NULL,
  action          TEXT NOT NULL,              -- the kind of action
  target          TEXT NOT NULL,
  parameters      TEXT NOT NULL,              -- JSON object of texts
  rules_version   TEXT NOT NULL,
  idempotency_key BLOB,                       -- 16 bytes; NULL: none
  outcome         TEXT,                       -- for people; NULL: unfinished
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT;
INSERT INTO actions VALUES (252295095106295052, 1795841438089, 1795841438124, 'cli:0', '', '', '23be73de88f0ed49ed8ce3189852f4ea', 'ids.import', 'acme', '{"file":"/tmp/.tmpg84w8s/ids.txt","kind":"payin","lines":"1"}', 'ecd12f173317baf6', X'F73E9BD4D152D3F15EBEA9CB8D21F116', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
CREATE UNIQUE INDEX actions_by_idempotency_key ON actions (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX actions_by_user ON actions (user_name, id);
CREATE INDEX actions_by_action ON actions (action, id);
CREATE INDEX actions_by_both ON actions (user_name, action, id);
CREATE TABLE probe (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  count INTEGER NOT NULL
) STRICT;
INSERT INTO probe VALUES (1, 1);
CREATE TABLE probe_room (
  filler BLOB NOT NULL
) STRICT;
