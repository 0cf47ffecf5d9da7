PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'019AD2F84AD588A590F3D1E2DDD389CA8CDE3DCD5A927ADF7BB409E710D7291CDE4B39D577A32B76511561D27F0665C7FD1930FE99B1C33939F9839990');
INSERT INTO data_keys VALUES (2, 'seal', X'013847419EE5F37EE68CE7653DE21C2B62B80049A64D817D3B0D41937FD61AE3599E29C7C427D91F7C5D05F5DE2274CC04A35E51D2B89EE3E76BEB061C');
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
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'72D346C48FA940DB906AF911666B456E');
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
INSERT INTO contexts VALUES (-5635246919933047729, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (-4215883620004159353, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (-3510536939050157337, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (6161717206390677376, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'53B9A306992359F53DEF66B315EBC0E5', 0, 252753045259600849);
INSERT INTO homes VALUES (X'53B9A3069923B5E0D0F6288D5A4B560E', 0, 252753045293157874);
INSERT INTO homes VALUES (X'53B9A3069923DD53683256B628159BF6', 0, 252753045326711142);
INSERT INTO homes VALUES (X'9891D8A36D211A5480186A5FB39C0237', 0, 252753045494481503);
INSERT INTO homes VALUES (X'9891D8A36D2136F95C7C19B6EE340FD7', 0, 252753045444149750);
INSERT INTO homes VALUES (X'9891D8A36D2162461E223CD7E963D70A', 0, 252753045381236456);
INSERT INTO homes VALUES (X'E8DF67F80BA8D56ACFBA91D44879C798', 3, 252753046517891072);
INSERT INTO homes VALUES (X'EA7C4ECD9D7E84E1D35692C8DAAFD329', 0, 252753045540622145);
INSERT INTO homes VALUES (X'EA7C4ECD9D7EC6FEE468F7C2587C50B5', 0, 252753045674838207);
INSERT INTO homes VALUES (X'EA7C4ECD9D7EDE2EE92CFABF6A7B065E', 0, 252753045616119528);
INSERT INTO homes VALUES (X'EADF4C0494B53FBDEB508BBA399B77AD', 0, 252753045729365596);
INSERT INTO homes VALUES (X'EADF4C0494B59895E2548F3A75B15E89', 0, 252753045804861140);
INSERT INTO homes VALUES (X'EADF4C0494B5DF8FE4A479420208ACD5', 0, 252753045842609019);
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
  job_attempts        INTEGER,                -- tasks.attempts when its result came; NULL: its provider was not called, or PENDING
  job_ended_at        INTEGER,                -- when its provider answered, was given up, or last gave no result; NULL: not known
  job_kind            INTEGER,                -- tasks.kind then
  job_failure         TEXT,                   -- tasks.failure then
  CHECK (CASE status WHEN 0 THEN finished_at IS NULL AND payer IS NULL AND cause IS NULL
    WHEN 1 THEN finished_at IS NOT NULL AND cause IS NULL
    WHEN 2 THEN finished_at IS NOT NULL AND payer IS NULL AND cause IS NOT NULL ELSE 0 END),
  CHECK (coalesce(cause, 1) = 0 OR (cause_code IS NULL AND cause_text IS NULL))
) STRICT;
INSERT INTO operations VALUES (252753045259600849, -5635246919933047729, 3252895842266021898, 0, 0, 1795950621914, NULL, 700, 42, NULL, 'Payin-00', X'0C08CEAC95BCE2BB4DD56D4F3FFCD7F9', 'https://acme.example/cb', X'0102007F3C768AD654B8804D9034576CF9E88A1A97035D877DED81FBAFFFC1EC23385DA521E8F4935729701F77A00D3FB5244F4B6383106CAE5F6B65410F20E9B16D56E7542E0A6A0007A913BE29219F8D71F0CDA1BA61375578E2632B476BFB618947F459B3C0895930133EE232ACCCD3EA0906F25AFDD43CDAB3A9696243CCBA8C7E8EECE3014E58671D53EB5300A5B43816605E85BF2DC966364166876F1F2A362E3C7BE370580E0E10883A63B51BB7C1C66CD956A11872643BA59B76866785BEAD368423EA59CD304C2F7490C193236706D0FAECCE74E41476F1CA9E97B76024E7CE3245A898B14A4A5DA311CC79712BF1732A9E256174774993F1FD6BB016A4DE7603A4D5D6857DFF649D9F3EF05356654F465D10269619164DD1AD4A88F89973C6DB185BE494FCF6041E6C0A70E632036A1D2A262F227520D09455CCA87625C67876B3B19E3D278876B13023AA172AF6992EC10650BA45A36F2CC5E3E1C2E719978AC3C0', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045293157874, -5635246919933047729, 3252895842266021898, 2, 0, 1795950621922, 1795950621922, 701, 42, NULL, 'Payin-01', X'7E822E2339F87B4E5E3A9A7D8C43FDD4', 'https://acme.example/cb', X'010200103FD1240DC78D43F48082D697BE0A27338477CACD1837EBFEAD4838336F6200D4ED9D93381721E0F0200FC2F6AD2EB45591D219D3884D916F975C5DD0F25F82BDFE762987378474DA20CC238FD29E9CA09C8355250B867F5E7CDC73DB025229BFD5259CE6E0816DABF75B42C428204D5255831B4B481BAC613C9A280BFBC87984097FF7F75BC0FCEC5A63638819B06DE5C3DCF1767DC62AC02CBF6F93999A8DEE26BCC1B51E4F1D15267E0AAE4C6B3B156BB0110FDC011A5030D2B799D72D6C35F40A29861E6514F31F17F81F28A9AD0DAFC08B0F13FDE1F3CAEAFEC1BC2036EE5B70186F4ADA8324CF030FB8170C504D3A6497B46EEEA5C29CAC0E35CF91BFE9771FD707645CE7D3AA3CBE202101689E849BA21AF077069409BE1F419F782B5908D9098162566A605348C06979BB3F4F6C887917450654CB1BB8C8D4B795B990BB1FC054E9D5C7B030CB3A0F20D88CF78234E9A9BDECEED1658B673EC4CB333A48AE05', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045326711142, -5635246919933047729, 3252895842266021898, 0, 0, 1795950621930, NULL, 702, 42, NULL, 'Payin-02', X'4539EF55F24B442C34170B20DE298E43', 'https://acme.example/cb', X'010200865F9BDC78FEAD26BB8FFA446FDF3C00255996F472F27AFC4F841172C454A1100CBA10D58EF3FCE1938A8EA91046922DCABE79CE73E417CC387DDCAAB5F0C0B5619DB2A22DB088B961F377C7F0C18A5AEBC27D10C78BD2F3FE61FF155A42CA763BD40E2FA95DE35C66528DCB41518230CCA35E5F766C0E7A0104CD9275D49CCC35DB14E7E68042D33F32C945847603B3B12B2691D0E004C84C3F53E35B60CB49CC44C5A9D863EC7C6D05F45B4E67CA12972B85BFEABD27AB1C58D499DE552301CCA5DA0D28D3CF57B9CA02F94DCBC8F9D17F59674681FC5DD75EF03F80AC895900AED60B91314A7CA7AACFD49C9A9D587F4F158A9EB601A7B01AA7716944DF7A89218052A4D5B62D68DF73DDC91CB57ED77CF3AAEEB3601164C7E6E0C89237E8346C182498B289FD6D3B58C5AC2D0D260C4D808B544EC93FAB175E00073EFABB9B9ACE52A208D9778B772EC70C338AAD9BF8A6E4A8CFFD40BE419EF129E81FFED7280737', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045381236456, 6161717206390677376, 3252895842266021898, 1, 1, 1795950621943, 1795950622006, 700, NULL, NULL, 'Payout-00', X'4C7A386F539CDAA395F61C540D051207', 'https://acme.example/cb', X'0102006A0FCE2E89EDDF5FEE170EDD99554FCA30FA1E3B1170F7023A25520DAA8AABA783E2E3C2E97084D1EBCD072002369094F24BF7E627161835EC5A8CC6CF874E7159E3D0F2B95AC7A4958206FA51D68B04F6152200192C038CC82BDE800069DC3DC248B626BFD93A677A3A126CB332F5B4FDA6A70438B8740142AFD45F3ECC0458', NULL, NULL, NULL, NULL, 1, 1795950622006, 0, NULL);
INSERT INTO operations VALUES (252753045444149750, 6161717206390677376, 3252895842266021898, 2, 0, 1795950621958, 1795950621958, 701, NULL, NULL, 'Payout-01', X'03CE198120719075FF0E08FC36CFD1E3', 'https://acme.example/cb', X'010200BA05FB5D2A5C8D87B7136CEF253BD59FE66B424AD80299A077F1E63B981367AB2E0EA7C9ECE4241B520A23CB3FE85AC8D59D9550D6C522C32715FF548C517573621E8058F5A9B749B916CE9F44AE997325284C9F9E8AF6A2B911CA3E6689F268223BC8DA8BF04877809D61FBD4FD56F4BFF9248973240D6CABECD405A4D7A5C6', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045494481503, 6161717206390677376, 3252895842266021898, 0, 1, 1795950621970, NULL, 702, NULL, NULL, 'Payout-02', X'2AA6A7C4E37CBB1892AE2E682F7F2774', 'https://acme.example/cb', X'01020079CC0E2B03CD5C6CF8B3B32CA18F29CC9B2C06E33CA5FAF95A856E12D94B6D7594C7D8A09E94FD24553DEAF959FCEEC6CE429399864244C9BA59AE9E47CA4606EE24E0A3B7EEEC2A154BC970FAFF2D2A6C186637E6AEE4DE79F2743B16370516C4B494DD10F7EEF23D4D0448CB76BAEDFFAD1FDB176988836BA4B441DAC90030', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045540622145, -3510536939050157337, -3252895842266021899, 0, 0, 1795950621981, NULL, 700, NULL, NULL, 'Deposit-00', X'3817B2E47B4C5FE1559D311923A11F93', 'https://acme.example/cb', X'010200CCD3858E93631842A9FD57C4F9AB63D6E09DB38045F474B9B418200322B915578B133FA57B679FD0BE02537F4D09071CBEC1EA656CFF6A40BA74C30DD9D3C74085EB34962889BDC4386D374E1F24C44C2C254263638B1A65AC46A3A44BF801741C7EAF7F301AD3CAF0546A47D0B528CFA1FCC9CD26309875BDD15326E3C55BB8DBA221A3157340798E46850B7B5E569CBE1477A1BC4047135FD86E41EE290DD4DB0005F3DA31AC516A8E9DF8DFB5117E3AB5FC1DD8D266FDA778D90835290071BE18C80A328D396726A0C12B45544A17856CB038EF972E3260DD8B1A0A673B9527A5D509C2EA713E3E930664B14631FF76428BA3040590302C9D54EC9D3E54F847D0D966D761974A671E457DD7DCADE6A984A472EC2F18A4B0A6B55503503742EACED1A9D88D7040B4A7BF34CF4D65F4BDC330B849EBBD5A612C8ACCED32CBC465A295318C', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045616119528, -3510536939050157337, -3252895842266021899, 2, 0, 1795950621999, 1795950621999, 701, NULL, NULL, 'Deposit-01', X'E13AD2F1F50AB3A1BF170610D1F47AD2', 'https://acme.example/cb', X'010200C7B671AEA54A17ECEFD0FF88C94FCFE128704E8B7A5A01415B570ABA5CE921F802A8398BB86CEAD9C38D65B0FA6F65CEDC772551E89FD156080BD6BF90E0F9D40DAB500EA645C96E74597727EA88F5F62E816AD60AD32F637330309A5DCE8F8A7F36095E2BE6249D7CBDDF667B336CD67498E172A4EC6D095A67C13723121711BAD5C1822EB8453796573432B8A257AAB36F2867B850546A4909AB70A8E84584830179D9F16E3568F2857F77B1DC7B38C6C95B38F632BE09ED8E0C2E3F584FFF6CE31A3BF565DCE80547D52CA7F92CAF94243854004F851D0FA4895A1F76DE814FDF70CF93245A42B3BE751FFF20ADC6CB2DA98110DB2AD9F664AAE7DD85747067E4ED2C6F538EEBF25A371F450FAF4E1146750A53E2AA6DA384482222BCEF8517003EBDA0AEB85F5F1CBA5D4CD825E1C2769604F2EB4C5FF0DE361921E4036D4D7DB2A1E9', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045674838207, -3510536939050157337, -3252895842266021899, 0, 0, 1795950622013, NULL, 702, NULL, NULL, 'Deposit-02', X'14E4C197FAD4FA0FB4C1D6C50C46D43D', 'https://acme.example/cb', X'010200EB18A7E4DE31C1FA5F1BD974F1D3C14D6497A30509DF9115C7AEF20DC27A7DA8835C995F3183EEA8011A517811C0D556E3CE11A3CD9E45A7AF921D96BCF13D7001E40A2489989159DDD61EA7328FCF1DAF25EA1C086491AEF7DFFE93F99BA1D699B961C2459F31D0ECB8329F3F71983D6F4944ED1C18217FAC9AC20F86CBDA041381EDBEA86E9B7F372EB16A633FFC0D71FD36A170FBDC56CF7ECD4A31BDCF5E0598A0C7102C3E6F79F5833E4BF21E62A8B8BC23C66E6D2BCD1B92E5898D9087F9BEB73340686D85B3394E63138B67A4C3D4DF5940505BE17000AE5D1157538CF7093EA8DCA2CE40629C401002E64FE0AF8FE1A68B91D755FAAB480A276AD94E997A863159FD8653816B3BD86F828BA762595CCCB87CE9D7E3488460187CB65DC7ED92241D1E7A4F093BACCB3A808D5A5424A2A8177ACAB19E954C18DD2C0C3BD2CA2AE5C2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045729365596, -4215883620004159353, -3252895842266021899, 1, 1, 1795950622026, 1795950622088, 700, NULL, NULL, 'Withdrawal-00', X'2E6D383AABB9EE987C02BA096A0F6336', 'https://acme.example/cb', X'010200B90F12E9FC218FFA3FEF9AABEB50D7FBFFBD6D1E8EEA1140191835BCF7493D14CAEE5024AB5E0401379AC744F0FC541B8853A00A9B27', NULL, NULL, NULL, NULL, 1, 1795950622088, 0, NULL);
INSERT INTO operations VALUES (252753045804861140, -4215883620004159353, -3252895842266021899, 2, 0, 1795950622044, 1795950622044, 701, NULL, NULL, 'Withdrawal-01', X'5E2E879AF9A5609A7701E8821557BE92', 'https://acme.example/cb', X'010200E008B67C9FC7CE738177D1C676102CEB0ABFE67CF2A070EF15133F0EBE358A505DDFA7C273CB2A61087C1916576B82F2A878D625ACDA', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252753045842609019, -4215883620004159353, -3252895842266021899, 0, 1, 1795950622053, NULL, 702, NULL, NULL, 'Withdrawal-02', X'5DEBCD49BE01250A050CE77C6ECD7DBD', 'https://acme.example/cb', X'0102008249FCBC94408E9AE02F5BAB7DBCE5933D45EFAEB1AC43DAE95E990F926DFD43497BE32ED9E5A92B70BE76DE94FA428676114D74DF61', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
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
INSERT INTO entries VALUES (252753045381236456, 2, 'EUR', 2, -700, 'acme', 1795950621943);
INSERT INTO entries VALUES (252753045381236456, 2, 'EUR', 3, 700, 'acme', 1795950621943);
INSERT INTO entries VALUES (252753045381236456, 3, 'EUR', 0, 700, 'acme', 1795950622006);
INSERT INTO entries VALUES (252753045381236456, 3, 'EUR', 3, -700, 'acme', 1795950622006);
INSERT INTO entries VALUES (252753045494481503, 2, 'EUR', 2, -702, 'acme', 1795950621970);
INSERT INTO entries VALUES (252753045494481503, 2, 'EUR', 3, 702, 'acme', 1795950621970);
INSERT INTO entries VALUES (252753045729365596, 2, 'EUR', 2, -700, 'acme', 1795950622026);
INSERT INTO entries VALUES (252753045729365596, 2, 'EUR', 3, 700, 'acme', 1795950622026);
INSERT INTO entries VALUES (252753045729365596, 3, 'EUR', 0, 700, 'acme', 1795950622088);
INSERT INTO entries VALUES (252753045729365596, 3, 'EUR', 3, -700, 'acme', 1795950622088);
INSERT INTO entries VALUES (252753045842609019, 2, 'EUR', 2, -702, 'acme', 1795950622053);
INSERT INTO entries VALUES (252753045842609019, 2, 'EUR', 3, 702, 'acme', 1795950622053);
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
  failed_at INTEGER,                          -- when it did
  PRIMARY KEY (kind, key),
  CHECK (CASE state WHEN 0 THEN attempts >= 0 WHEN 1 THEN attempts > 0 ELSE 0 END)
) STRICT, WITHOUT ROWID;
INSERT INTO tasks VALUES (1, 252753045293157874, 'acme https://acme.example:443', 1795950621922, 0, 1795950626183, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252753045381236456, 'acme https://acme.example:443', 1795950622006, 0, 1795950624560, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252753045444149750, 'acme https://acme.example:443', 1795950621958, 0, 1795950624530, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252753045616119528, 'acme https://acme.example:443', 1795950621999, 0, 1795950626213, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252753045729365596, 'acme https://acme.example:443', 1795950622088, 0, 1795950622088, 0, NULL, NULL);
INSERT INTO tasks VALUES (1, 252753045804861140, 'acme https://acme.example:443', 1795950622044, 0, 1795950626508, 1, NULL, NULL);
INSERT INTO tasks VALUES (2, 252753045494481503, 'card-eur', 1795950621970, 0, 1795950622033, 1, NULL, NULL);
INSERT INTO tasks VALUES (2, 252753045842609019, 'card-eur', 1795950622053, 0, 1795950622115, 1, NULL, NULL);
CREATE INDEX tasks_by_due ON tasks (kind, queue, due_at, key);
CREATE INDEX tasks_retried ON tasks (queued_at) WHERE kind = 0 AND attempts > 2;
CREATE TABLE preparations (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  sealed         BLOB NOT NULL
) STRICT;
CREATE TABLE provider_queries (
  transaction_id INTEGER NOT NULL,
  queried_at     INTEGER NOT NULL,
  job_attempts   INTEGER,                     -- of the ended job whose place a new one took, as of operations; NULL: none had ended
  job_ended_at   INTEGER,
  job_kind       INTEGER,
  job_failure    TEXT,
  PRIMARY KEY (transaction_id, queried_at)
) STRICT, WITHOUT ROWID;
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
INSERT INTO callbacks VALUES (252753045293157874, 2898907533402017123, 'acme', 'https://acme.example:443', 0, 1795950621922, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252753045381236456, 493086242690910559, 'acme', 'https://acme.example:443', 0, 1795950622006, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252753045444149750, 737291955714073157, 'acme', 'https://acme.example:443', 0, 1795950621958, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252753045616119528, 3625719558693252724, 'acme', 'https://acme.example:443', 0, 1795950621999, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252753045729365596, 6650371245584692058, 'acme', 'https://acme.example:443', 0, 1795950622088, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252753045804861140, -8082914228090191203, 'acme', 'https://acme.example:443', 0, 1795950622044, 1, NULL, 'name not found');
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
INSERT INTO callback_tries VALUES (252753045293157874, 1, 1795950621940, 10692, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252753045381236456, 1, 1795950622045, 4613, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252753045444149750, 1, 1795950621966, 3054, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252753045616119528, 1, 1795950622024, 2880, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252753045804861140, 1, 1795950622089, 6916, NULL, 'name not found');
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
INSERT INTO actions VALUES (252753046462556427, 1795950622201, 1795950622218, 'cli:0', '', '', '0f995cd0093652defa0c75a6397f74ed', 'ids.import', 'acme', '{"file":"/tmp/.tmpe4vuUs/ids.txt","kind":"payin","lines":"1"}', '2be01a2bc69fe35c', X'01B91E817782874834BB949EE6BF5C0A', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
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
