PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'0178E7A16C5830C3BCE84BE1454A396758C6F74E2CA056F71C67EBAA2CFC698384D42D3B4639326DCED9E376A45BD2A91B2A69D7CA22967A22DD4B17EF');
INSERT INTO data_keys VALUES (2, 'seal', X'0171D163BCA22D2B021FF3A790B6BE5689A2AE18923DC638D89AC67C147281718EA46B9A12281DF36B4E1FB2B80175ACD652D47211FE7CA22B5F7AE109');
CREATE TABLE moved (
  target TEXT NOT NULL
) STRICT;
CREATE TABLE backup_mark (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  known_until INTEGER NOT NULL
) STRICT;
CREATE TABLE paybridge_formats (
  format  INTEGER PRIMARY KEY,
  state   INTEGER NOT NULL,                   -- 0 added: releases of the format before serve the store, too; 1 they are locked
                                              -- out; 2 narrowed
  release TEXT NOT NULL,                      -- the release that added it
  hash    BLOB NOT NULL,                      -- of what all formats up to this one do, and of the recipe of fingerprints
  CHECK (state IN (0, 1, 2))
) STRICT;
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'1A587083275152FA836A4CB6D237B702');
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
INSERT INTO contexts VALUES (-981004798840730979, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (2359729047672544956, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (4151301555738352964, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (5143353481012228338, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'3171F7A358B73B9EA7AF07B406670E71', 0, 252611709885793974);
INSERT INTO homes VALUES (X'3171F7A358B76C2E1F833AEFA08E9397', 0, 252611709910959457);
INSERT INTO homes VALUES (X'3171F7A358B7F6DA6822E29F0BE4D85D', 0, 252611709864821016);
INSERT INTO homes VALUES (X'5C4869CEBAB867FF7BA036595D01BBD8', 0, 252611709797712889);
INSERT INTO homes VALUES (X'5C4869CEBAB87E76111B60279F213DC3', 0, 252611709759967196);
INSERT INTO homes VALUES (X'5C4869CEBAB8FC67FEA866ACDE9B6593', 0, 252611709780938018);
INSERT INTO homes VALUES (X'5E539321E4752DFADE488A4FBFE91B8B', 0, 252611709848045583);
INSERT INTO homes VALUES (X'5E539321E47540D754E0D9C809E785A5', 0, 252611709814489237);
INSERT INTO homes VALUES (X'5E539321E475E6B3BD401E1DE0613C0E', 0, 252611709831267840);
INSERT INTO homes VALUES (X'6C9EA80662045DE05F17F15B5FF2B462', 0, 252611709948708587);
INSERT INTO homes VALUES (X'6C9EA80662046568576BA2CB0A53A33C', 0, 252611709927736033);
INSERT INTO homes VALUES (X'6C9EA80662047A2BCECF503E14B7D935', 0, 252611709965486257);
INSERT INTO homes VALUES (X'78E528911483F78EB112B1AD2C676716', 3, 252611710347165696);
CREATE TABLE operations (
  transaction_id      INTEGER PRIMARY KEY,
  context             INTEGER NOT NULL,       -- contexts.id
  listed              INTEGER NOT NULL,       -- the number of the merchant, whose v1 list has it; of v2, its complement
  status              INTEGER NOT NULL,       -- 0 PENDING, 1 SUCCESS, 2 FAILED
  has_job             INTEGER NOT NULL,       -- 1: made with a provider's job, which tasks has while it is PENDING; else 0
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
  job_kind            INTEGER,                -- tasks.kind then
  job_failure         TEXT,                   -- tasks.failure then
  queried_at          INTEGER,                -- when an operator last had its provider called anew
  CHECK (CASE status WHEN 0 THEN finished_at IS NULL AND payer IS NULL AND cause IS NULL
    WHEN 1 THEN finished_at IS NOT NULL AND cause IS NULL
    WHEN 2 THEN finished_at IS NOT NULL AND payer IS NULL AND cause IS NOT NULL ELSE 0 END),
  CHECK (coalesce(cause, 1) = 0 OR (cause_code IS NULL AND cause_text IS NULL))
) STRICT;
INSERT INTO operations VALUES (252611709759967196, 4151301555738352964, 6988865311439278538, 0, 0, 1795916924905, NULL, 700, 42, NULL, 'Payin-00', X'A94EC123F6DB203385E7E06D9F42007A', 'https://acme.example/cb', X'010200455B83901C339400A10A5FD4D78BF2ED3163AEBE595A63BA6A911A00EFFB88BFB194238F2D5F5C552718B1AE3717D35093BF414725AF8DFA8F5A6B67D00C0E9FC056CBEEC9C561260322E67C4CE25A2E0D8A67011EBE65E7ED6A0BA1D30873B9E0D1EBBD8339CC1ABBF8B0359D5118E2A25B5B86FAFC0B2073032664AC1295A86451FF2D145A0172A5B25341A7D1C8A6300CF8CA4547BCB626EA9AABA7E3934C442C5201CF0D7173CEEEED12BA84F33A65FD9783ACB9E4764DD39C94318F577D48541BB1D3EFD8FAA1B8D7C9BB4B27C5EDEF2BAB1C7A6F5E40EF82F1E3E1E469BFC23AEE2652F4844833EF480C6828C87AAA2C36BDD112EF1CD30F8402FAA7842A3255FE3B7DBF473FC5FC97FF3B92416EA8D14FA53222A69EAF2AA37350E67A8923528CA41FF7E64FE10B4478FD9193D505397B06423A11181724EB8BF2DF7D44CE8E881F7DB352D9221E484A28355C5E7F791CF0493026CC5751A173F1EDD60D7F6A34', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709780938018, 4151301555738352964, 6988865311439278538, 2, 0, 1795916924910, 1795916924910, 701, 42, NULL, 'Payin-01', X'76EF17B62D44E7C06BD7E3D632CF39A2', 'https://acme.example/cb', X'0102008911D113F7D8600755243DB9B7594B5363F6AECC6D3E5EA81E58598C569A7D2DA786701F0EE84F9FBFCE8255E6047022A8D6EAA30EFAEC009F43E3ADE3A05DF94ED2C6E78CBA17B4B7D8E08E0BE34F59E38632BFDD9B0AD1681752B5682DE37D47A20C13775DFF88461726AB0B17696C488297DEEABABF1ACF1F500EBB258742E99E275E88925D0FC5B7D1CD345A34EF7CBD3B89779D7EDB1977A1AB8B93CE53EC8483C77801A4F81DBA854490D53B74E875E7DEA570EC866CD24014EA34E55F01762E2E53C41E5641150718B85CAC2057BCF008C21D9559FDA548BAD211CC46BE0C0A8EA2E06626BC444DDEE37CDB550F378D1CAA0A3B96C1458EE1AE135248DCE946F61D7D7E91A3757E43B585F05A23137DA1D490DBBD76C45CACF11C1885AF7BCB82F469BCE338E769EE3A268967327E27086E62BFF02254CC157BB13B0D54C1C8B11897C45823F0E2A0155E4A916D84AF4615830F2CD025E5AAAC7A5D8E5CDDC5F6', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709797712889, 4151301555738352964, 6988865311439278538, 0, 0, 1795916924914, NULL, 702, 42, NULL, 'Payin-02', X'B0DAF5E7A59D460C66A781DB4C88AAEE', 'https://acme.example/cb', X'0102004B671F9A99E393C891E491FA7BB9569A56B333D6CAE1B584F9A592D34E4D77CAFF5243B8B91F330F70932CD934F451EA93849833E84D7AF2AB77B5B64F118487F8A81B7B716A0D5B50405FCF02EB22A0B02BF563188DBC03FCE7531EE57743535E67DA10329F720C67658445C6D7CFEB0F7C692FFF68F433AF4E203222B85EBE79FDA7D626C95465D494F1580617C9BC2CFA6F2ABE94E684FA573A190062E6CF6B0C60B832B57FBD369394176463E9238834C67A880612B9F6C201B33163E0AD4A2359202342CC24F06BA61DAAAE45E8F44CBE1F7C1E7E840F3886E2AC01529660C0BEB6AE07D66C4D44E4B57F3983A72C8C44102F3A58FFD585EA4A292E9CE2B725D9D47D8D6479F053369B94900C7109430BEC798D431ADEF5B53E559FE0F3073F059AFF58C341D5C41830382F36F76FD0F78F7BABBD9F912154874DC72DE83ECAF718E6A72118816EFC61B0805AA588E551B7CEDDDE7742D5B8B8B832F54ABF3E7135', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709814489237, 2359729047672544956, 6988865311439278538, 1, 1, 1795916924918, 1795916924972, 700, NULL, NULL, 'Payout-00', X'46BCC4F9C34C6C9D121F8F6A33BA406B', 'https://acme.example/cb', X'0102006FB245683EEF768BF3D3BBF0A7F2CF135E90AB91CDF6AF435826EAB7CDB998963840BFBA92F155CE5E77C424822935CB070C6AD0E83C6210CF5F812AF161A13E4CD7D5F88312C7DA3D0BEC37A4C4AC6F8928CF25B2760F86E5FAAF581CEEA458166ABFB36CAFBE640B61352106CE7C0DFCE20EEA46004E6897B92EB3BF959FF2', NULL, NULL, NULL, NULL, 1, 1795916924972, 0, NULL, NULL);
INSERT INTO operations VALUES (252611709831267840, 2359729047672544956, 6988865311439278538, 2, 0, 1795916924922, 1795916924922, 701, NULL, NULL, 'Payout-01', X'C81DB7B520E9CEC7D58976907F0AF776', 'https://acme.example/cb', X'0102005C70603205F9165934E0811EA0BE9B3B81606D450917F4A2CBDA50BF1B9FFB3666DFC94119F355556939A95B75785086642B62EF922AEBF9970BEC064AE5EC76CCA42D2E5B4748913EBE605F84AEE009B7B4512A9E6E571EB4CB94C1B349014234CE6D34AC77D2E816A13CBD83CE28F09B56FEB5405D197BCF62E865D8639575', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709848045583, 2359729047672544956, 6988865311439278538, 0, 1, 1795916924926, NULL, 702, NULL, NULL, 'Payout-02', X'03145FF7EDFA1C47A5C3DB0C3CF7FFFA', 'https://acme.example/cb', X'0102006FBAB9C37493EE4503C0CEF0B60A9C4365028017DEC3DC8D722259996C69FCB8A205EAADC347537F6CF0658F340E8AA9587080EF6E1A609CA2B28E7855C0C802C0AA913528947FEE91F2D19500E759ADD865111B57A68D8C23CAB2E2E0E57B5480210273D0C6839077ED61CBAEBEE9BBEE23D8C251B4B2B6CF89F765015F14E7', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709864821016, -981004798840730979, -6988865311439278539, 0, 0, 1795916924930, NULL, 700, NULL, NULL, 'Deposit-00', X'76CD8475202FD6DD9A244622E2AB82E0', 'https://acme.example/cb', X'010200EEBAB877ED21A3CC2FF785AA97F82DDC370313D5B22A9B5240DBDD69BFC08665ADDEA64B3CFDC5975E372F2DCBEB5B2CE47DF0213166669BE4EC2CA27D54C1EE9E7F83C28F63CFC6D4DA54CC9AF4ABEB74C34E8A1BFA8D77FEB7988ACEAB4ABE158F2C73A77F313AAA148A7689701600ECB2D2A97570C88541E35458E0FF16C4A4ED06C713AA7557C6A0C39452048C7BE6CF53FE0814C15195152C8E4875FFE47F0793D9D36CD86B0770CE4D454B699824738D69650F07B99AC8482FC0369897633A6C92ACB6DB32181779C1776F885AB7D6D8A78E4EAC728768F27109EF0C698FD7E817C665DE1944FA292E5AEF637FFFCBA86067CEBB968A826839A384F414E3B14C3CB08614A4260DF93B84F9ED4ACB3CA32D45C735E378D3CEA200DA9AE929E3CD9DFE38B9D3B7E90CC72296E1C662E4AFE837860645965F78AF2314747F8AA012A443', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709885793974, -981004798840730979, -6988865311439278539, 2, 0, 1795916924935, 1795916924935, 701, NULL, NULL, 'Deposit-01', X'1CA6828769776F680E41254AD74DD9A6', 'https://acme.example/cb', X'0102009A8F71DA7B5A70F6A8E466D6008F03B3E4EF089956C2B22D3576000E874007E130DC18ABCD5FBCFFB92FE8855875597D960E9FA76BE6DD82D7F1A03E68C98C95349FA3C96BF7932ABABDE4C0E049392256B817D1B1E1DE8613F4FBDAF4D786D3FB7708BC90800F3CCF79929293580F1D3134327E0ABE9D03AAE2D0E42CFA145BBED3C1D8355D0FEA0C404700A5FFB8E4C85EA972B8D3E9008EC55188E3D570A58AB2F0E543A3FDC82BEF172CA8734312D7D9450FA737422B2A663E3A99B489FD2AC5DAB00ED6E6A6CC0089DF9C0A202BE9C2AB3385B857C56C2C2D4D5CE95D1486E081A980CA52C48FF0821DB178179E7408456843B3C37CE48D3947361A62A6DAB073F3BD6D9F4981842B1641EBAD4C9B184E055BB5CED9715A10A373366CD072DE0DAE4C1EE562B1C592270DAA8B074D3D44154CBBBF5FE0981F7299843495B8DF8A7088', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709910959457, -981004798840730979, -6988865311439278539, 0, 0, 1795916924941, NULL, 702, NULL, NULL, 'Deposit-02', X'B5268DF46D50A0857C8F273985B442A2', 'https://acme.example/cb', X'0102004A2BC0441084EF266ACDC457CF32126D958DAFB7C353330B76D6C535FDB65B96C38D17C0376CFA50616479FB127DBEAC0A3338886BAEC510C431B44B92461DF4A303003305F0511BA632BAFF816E37326C9EE1F7E89B8BFCB4DC5371CEEBED12A7972F3B5E60FFA1D95B52D40A12FE7C2B6F4EB47D494F3138D9FF0550C879BE630CE97349CD2E1CB6D213C7F32B45BA47C7D8E730B9286D0167F322A78AE83D095623CCE849CC58866D1C3334F7DCEDC0705AB56EBE337C353B469FF08B729F1AD5C45D46C6FF9FD5009606BEA8648FA9512891F44104BF9911DFA54C867E08B93409CE68A45D8CD5D805A1F4C5EE088975CB1B56D82E10946E9F69E385B29371A3570CC571DB7189603F3AC874A100183EFEAFFC20C35A735A4BA259FDB5B937883128915B17A8039D882E650CA66970F89771D7BE9532AE2E59B45FBA976137D716C23A', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709927736033, 5143353481012228338, -6988865311439278539, 1, 1, 1795916924945, 1795916925000, 700, NULL, NULL, 'Withdrawal-00', X'EEDB5742E48C3178827B2AC36D72EE5E', 'https://acme.example/cb', X'010200DB0389693DA91C28BF5501F7EC07B64418E03F3E7CABCB30C5334494D1AD4CF418075985E4572FEAFDE6AB95345452D43FE3059C9898', NULL, NULL, NULL, NULL, 1, 1795916925000, 0, NULL, NULL);
INSERT INTO operations VALUES (252611709948708587, 5143353481012228338, -6988865311439278539, 2, 0, 1795916924950, 1795916924950, 701, NULL, NULL, 'Withdrawal-01', X'37FAE57DFA2DE66CC2AF9ABAAA947D9A', 'https://acme.example/cb', X'010200ED3F4A2A8D8CC23EDC9F7984733334C4146725EBA438CEF9E84BC1D48494A8DFEABE9AF224815E9A2AFB11148DBFCAE376756015F8BB', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252611709965486257, 5143353481012228338, -6988865311439278539, 0, 1, 1795916924954, NULL, 702, NULL, NULL, 'Withdrawal-02', X'846D713189C6D51E4595F79D5C43D571', 'https://acme.example/cb', X'010200571AC34ECA021BF436AE5073A13EC6679488ACA076525A60FA65ABC7253F179C6300F3D3247C4EC5C731D49FDC40982ED864B0D0C4D5', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE INDEX operations_by_merchant ON operations (listed, transaction_id, context, status, has_job)
  WHERE status <> 0 OR (listed >= 0 AND has_job = 1);
CREATE INDEX pending_v1 ON operations (listed, transaction_id, context, status, has_job)
  WHERE status = 0 AND has_job = 0 AND listed >= 0;
CREATE INDEX pending_v2 ON operations (transaction_id, context, listed, has_job) WHERE status = 0 AND listed < 0;
CREATE INDEX operations_failed ON operations (transaction_id, context) WHERE status = 2;
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
INSERT INTO entries VALUES (252611709814489237, 2, 'EUR', 2, -700, 'acme', 1795916924918);
INSERT INTO entries VALUES (252611709814489237, 2, 'EUR', 3, 700, 'acme', 1795916924918);
INSERT INTO entries VALUES (252611709814489237, 3, 'EUR', 0, 700, 'acme', 1795916924972);
INSERT INTO entries VALUES (252611709814489237, 3, 'EUR', 3, -700, 'acme', 1795916924972);
INSERT INTO entries VALUES (252611709848045583, 2, 'EUR', 2, -702, 'acme', 1795916924926);
INSERT INTO entries VALUES (252611709848045583, 2, 'EUR', 3, 702, 'acme', 1795916924926);
INSERT INTO entries VALUES (252611709927736033, 2, 'EUR', 2, -700, 'acme', 1795916924945);
INSERT INTO entries VALUES (252611709927736033, 2, 'EUR', 3, 700, 'acme', 1795916924945);
INSERT INTO entries VALUES (252611709927736033, 3, 'EUR', 0, 700, 'acme', 1795916925000);
INSERT INTO entries VALUES (252611709927736033, 3, 'EUR', 3, -700, 'acme', 1795916925000);
INSERT INTO entries VALUES (252611709965486257, 2, 'EUR', 2, -702, 'acme', 1795916924954);
INSERT INTO entries VALUES (252611709965486257, 2, 'EUR', 3, 702, 'acme', 1795916924954);
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
  failure   TEXT,                             -- why an attempt of a provider's job last gave no result
  PRIMARY KEY (kind, key),
  CHECK (CASE state WHEN 0 THEN attempts >= 0 WHEN 1 THEN attempts > 0 ELSE 0 END)
) STRICT, WITHOUT ROWID;
INSERT INTO tasks VALUES (1, 252611709780938018, 'acme https://acme.example:443', 1795916924910, 0, 1795916928296, 1, NULL);
INSERT INTO tasks VALUES (1, 252611709814489237, 'acme https://acme.example:443', 1795916924972, 0, 1795916929624, 1, NULL);
INSERT INTO tasks VALUES (1, 252611709831267840, 'acme https://acme.example:443', 1795916924922, 0, 1795916927527, 1, NULL);
INSERT INTO tasks VALUES (1, 252611709885793974, 'acme https://acme.example:443', 1795916924935, 0, 1795916929374, 1, NULL);
INSERT INTO tasks VALUES (1, 252611709927736033, 'acme https://acme.example:443', 1795916925000, 0, 1795916925000, 0, NULL);
INSERT INTO tasks VALUES (1, 252611709948708587, 'acme https://acme.example:443', 1795916924950, 0, 1795916928679, 1, NULL);
INSERT INTO tasks VALUES (2, 252611709848045583, 'card-eur', 1795916924926, 0, 1795916924980, 1, NULL);
INSERT INTO tasks VALUES (2, 252611709965486257, 'card-eur', 1795916924954, 0, 1795916925007, 1, NULL);
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
INSERT INTO callbacks VALUES (252611709780938018, -6007757035226625869, 'acme', 'https://acme.example:443', 0, 1795916924910, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252611709814489237, 4919435852870324599, 'acme', 'https://acme.example:443', 0, 1795916924972, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252611709831267840, 6471301184416673934, 'acme', 'https://acme.example:443', 0, 1795916924922, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252611709885793974, 675838755342477337, 'acme', 'https://acme.example:443', 0, 1795916924935, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252611709927736033, -4126466260769261546, 'acme', 'https://acme.example:443', 0, 1795916925000, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252611709948708587, -8421883832973303872, 'acme', 'https://acme.example:443', 0, 1795916924950, 1, NULL, 'name not found');
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
INSERT INTO callback_tries VALUES (252611709780938018, 1, 1795916924927, 31656, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252611709814489237, 1, 1795916924985, 2055, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252611709831267840, 1, 1795916924932, 26631, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252611709885793974, 1, 1795916924939, 19414, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252611709948708587, 1, 1795916924962, 1546, NULL, 'name not found');
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
INSERT INTO actions VALUES (252611710337642184, 1795916925043, 1795916925046, 'cli:0', '', '', '29325ff27764eecc6e92e36b7836f39e', 'ids.import', 'acme', '{"file":"/tmp/.tmpD1R40I/ids.txt","kind":"payin","lines":"1"}', 'eb98f3853be53423', X'6B0DE7847879532CC67EF2609F615409', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
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
