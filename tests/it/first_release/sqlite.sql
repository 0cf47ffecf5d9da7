PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'01D8FD8B29FCA95A7543BDFE552706DF373958654F1F7FD29ED4B18CB438FA29856BE99B1AB2DD8BD72D082402748CACAA4FF15AAF733BBBBA7C267BA5');
INSERT INTO data_keys VALUES (2, 'seal', X'01AAC76518CCC4CB9CAB77F616932082EECA758630B088CE10D7ED87A45324E1BBE1CF03CD5211B0D0AC132380B757F2FE2608F93EA96ACF5A88AA3C1F');
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
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'0749B5B718F6AE4F955DB27F3034D0A7');
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
INSERT INTO contexts VALUES (-4742532391234586662, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (-4150346864636315805, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (2704764562492528397, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (5836937296459751435, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'25DB9A293627814BD839923F06C1871E', 3, 252620447153700864);
INSERT INTO homes VALUES (X'28AD7F4046E128621F3F33CB771343F5', 0, 252620446398729274);
INSERT INTO homes VALUES (X'28AD7F4046E1345A653903083F1E5411', 0, 252620446285483851);
INSERT INTO homes VALUES (X'28AD7F4046E1406CA9FE025CA24A824B', 0, 252620446205789950);
INSERT INTO homes VALUES (X'3C538B686B7B557F01DDC038EB19EE70', 0, 252620446587470651);
INSERT INTO homes VALUES (X'3C538B686B7BC0D5940F1E90D37547A3', 0, 252620446474226706);
INSERT INTO homes VALUES (X'3C538B686B7BE10F313773830ACCBECF', 0, 252620446570693494);
INSERT INTO homes VALUES (X'649E46EA65CA3407257DE1A3A198D48D', 0, 252620445836691418);
INSERT INTO homes VALUES (X'649E46EA65CA3B62A11F4F2727DDCFF3', 0, 252620445618587455);
INSERT INTO homes VALUES (X'649E46EA65CA578C068C7A7893D6815D', 0, 252620445765389102);
INSERT INTO homes VALUES (X'D125C5AAD878ABF064A2EB8C589CCDA4', 0, 252620446138682697);
INSERT INTO homes VALUES (X'D125C5AAD878BEA574BCDB398B00FBB0', 0, 252620446117708957);
INSERT INTO homes VALUES (X'D125C5AAD878C7164456F7BBD4A51B9A', 0, 252620445916385149);
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
INSERT INTO operations VALUES (252620445618587455, -4150346864636315805, 2662403013555040346, 0, 0, 1795919007696, NULL, 700, 42, NULL, 'Payin-00', X'92344D653AE9D40C756FB793FA8693B8', 'https://acme.example/cb', X'01020098F063A5F0E9E39573ABAE72ECAAEC9C189C15ACD87919CC226329289724191F29A31FD3D13879ECA9CCF58A4826BA564673E0497758E98A7738E12DF632FD1F01F4C7BCA77CF198B0B52A9F9B9490C5F3DD198CAF62C404F5E428C40ED565B8204D2173152A1599821AF87AF51A00C1F62CCAB0FF32662D67F5C4AA88AB0B06AEFBA92759AD9B6C0A5C865C11396BB3E737953A49D182B01D39DC476A7C2434D46C91C43F87C027333E60714002E7DAC05E938F92A7EA81CD438C25F78FCE547D348E2CE2913E3F3F942419F16B4027BF5037F924B6B065D266C934EB7BB0DF414363AC0B20312775C241E901C6BC55FA545BF6D218E6BA3B90A3D831D47905CA85389F56851896D1C238BA15F878F35B7520C33A55D6DE11F7E5DCA2068D9DAFE19B9EEDA53D5688531C8CB24927DD78A34B9D79135B4B37804B93A1448EF1DDCCB9649F5284F3B8E63012B475A5E1490AC015B8AA8A0CD1DBA134550AF550C96B0124', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620445765389102, -4150346864636315805, 2662403013555040346, 2, 0, 1795919007731, 1795919007731, 701, 42, NULL, 'Payin-01', X'8C4119A9B11734CDCB3EE50DFBEF8067', 'https://acme.example/cb', X'01020095CEFDD19AF198B94E8E2B813A54793794082C4CC69F06AC99C88BC09D6F98122D946948855DBDA3955DDD4511B940C10E2BE97A8F01AA37027B68163341A798A6BF2A9014BF4D42BBF43556D7E2DE9873F2FA7FE4E221313D8BB327BFDEDF32554E6E0820A149A1E9DE3A1FFA025C90EA1A55D5032460F7F3A2254FE69FB67CBB7B5B87DA0F4AE8D56FE273982152061222309F27D1EE47D3A3564C25EAF89C6E630FD196447FD88CBDE9689B1B9077B5A05FD7DE4200E697A24F1D80BBB7350CF7302C908B866ED6192162F254B32D93B7482CB3DDDBA9E1DA9D4B8518B19ED9E0A230934CC7A90C69CC2A1BEFAD6F4D0AD8284C371C97880FF2B5D1CE41403C1E58862C184D9405C124877D19CAF965182B4B2A8730C7058108A9EF50694013EF09CB5A110292E66E765E8411889443D96ECD46BFC07C461603407154BDDE371CA4A84DDE8195711C512FEFBBE28D9C0335D95C06FC11089FE3FDB319A5F0A363ECD6', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620445836691418, -4150346864636315805, 2662403013555040346, 0, 0, 1795919007748, NULL, 702, 42, NULL, 'Payin-02', X'3E21992A42AF2BD7A4B48CC3FA2663FE', 'https://acme.example/cb', X'01020053DAD69BB3D1727DD6536FC8ECC377C593AC116C18E48533D2E65B054FC5379F39265F0896DFB10C8169A2D19DF7206A5463144E8C378FAC296CF6F1869AB9FBE22526F48865A961A53ECAA73560AC2C84C61E338CDFC0C05612E902637CF7A1797F62869DF7FFEFEC69DC17F235E705CE339EB38DA648E9B244170A272C012ECF6756BA532850BC5359696F860204FB449DDCC3B1FA2F20385A87DCDB286680ECDB0BB4E20A8706E4939DF0D76BFEC333515D25F24676DF735EE69F483D2AA32C5344939771000137A33E1B5DB3FE83034BBE05FBCC1384DA2094892964B92B479DA65A6ED3898FEBF4E692B2D78432390F90565550CA587267B6DC1B7C28A4A26A659DB7C3534E7E0B4A44176996A9AFB366E9FAF64C94B14C1EAA890788644D85FBEF96A239D9C8CCC7FF7C592CC28F2D6FC0A6F061CBA74745465D930559513F2AE672C8A8F3A6E4712968343F24323D68014FDC7924DE4E602D06805AA10E1C48A4', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620445916385149, -4742532391234586662, 2662403013555040346, 1, 1, 1795919007767, 1795919007832, 700, NULL, NULL, 'Payout-00', X'AA6166A555984CD2258DD323C2A28362', 'https://acme.example/cb', X'010200A5C3A103FAD60BF20AE6A711D24537477CF2878C0ADC7965F7F82EEF761734A33173CEF9757AE9369E9988D5A2B707A8C2F679D6C34B3B3461FAAB140362AE31876C6F6958DAFEAF6E2838166EDB141861F5869F5BED3FA1CD033043962887928FABCD97F6B27836105690F26DD760B195870E083FEDAF380F884D9F90C8516F', NULL, NULL, NULL, NULL, 1, 1795919007832, 0, NULL, NULL);
INSERT INTO operations VALUES (252620446117708957, -4742532391234586662, 2662403013555040346, 2, 0, 1795919007815, 1795919007815, 701, NULL, NULL, 'Payout-01', X'D2F5266CA0BED9F1C81F0DF46ED62EB6', 'https://acme.example/cb', X'010200F67D2B037BACB35C6D1593DCEB7EB7BF5DC324AA6AD83DF258475289575666344918B97A568D065E2187029420C0F2F58B11BFDF6C248AE59E542BEA0DDA655FAE27A13529F4DDB96ADFE969951D42C49DE006E3D7AF9E2106D71B7E2D30E60BC4C4057369CF23C50EC35440285408F7168702119E3B12589400E1BD0FE38A55', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620446138682697, -4742532391234586662, 2662403013555040346, 0, 1, 1795919007820, NULL, 702, NULL, NULL, 'Payout-02', X'B132989882059BA8EB263DF4F99C34DA', 'https://acme.example/cb', X'0102006AA1928D049A9C667B624739BE81F584ACB20B47CC25F7E2E45C0EA81527F5960F55AE9BD11D4BB23562567748428B98A9148E59BE299CA4E291BC0DE30576976F3CA87EBB8F4411BE791FEBAFE70A383666D06BEE15F481DF7AF826E4F05F57B5B37FFF4F61BB594F55C86094B9FF6F1AA063855EED9676717A711C2E5CF98B', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620446205789950, 5836937296459751435, -2662403013555040347, 0, 0, 1795919007836, NULL, 700, NULL, NULL, 'Deposit-00', X'B256B84184A452C4E92A545D0A004318', 'https://acme.example/cb', X'0102009560E6686E8E9BB620E1D833F4EA37BB06F81FD93C8E3A17A7A5A0F93281461573063D8FB5B91CBE759F9903199FCAFED9680A7340966C50CCD4F1E5111208C5DC3A7CE184085BCBDE8804592C38DFCFFFCF2845A45D341007BF62A5E55AB52DC9CFA1CFA6BF2FDFDB6F62A9E4D1CAB150580CA802575B4FFB10E54B82DD04248C056ECF26717F69BB6CEE1E40FDDB625F1BD81F757C1BFF9B56968D9B40786A43A83B407CB040859E43BAE5063B846A0410453C57A93295BA62F052DF9E39C00C744397A33DC6635201693E975679DD7ED981E21DF2004A1D0E70C25AFA459918D1E9307A7CDF3791957AC28ED174DB38015A1EA00E51F8613B0741D7B3D207996B945FADE53725953D8EE3427E4081E628E41C4CB35C1AAA780DC87D47803B06F0A00D7BEB2C5F1A83278FBCA240989D2063B9986B839A8C5E7548D1BA62BBB25060D24D', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620446285483851, 5836937296459751435, -2662403013555040347, 2, 0, 1795919007855, 1795919007855, 701, NULL, NULL, 'Deposit-01', X'FE9DBED0DD7D1169E45DC32261944D7A', 'https://acme.example/cb', X'010200D652D3B7EAA32E0AC07B088820DAFAB2D5F63A5999FDAF1F07608960AA60EB55A52E4F4A55DB11C76E69027A8D4FD15011D21EC0AFC4E89AD4D020ABB28DC5F8F0FA29789438AF3997329BECDC0A0CE9B552843DE2F3A31AE1356D9A81E7B5847E3716C10AA4E6E52CE4B4A16FAB8F1BE64CA890C46AF5243CD946803A8F830A6F7F4C2B4AA97032B63D7D4172EB79F11FB2A5CB8831F1CF5F21A77C16E635DFFE1C273A05CC786A93B9BD1161D895D1BEEDCD1D9DE069A559024D4F4A53D6A4EAEAB78E0E43E282CA5C5B6ADC46D91EEAA96BDB6CD5B913110B2042D09ABABB53DEECE1C33AD6B9B3E5D3796CB61DE8F2E0BD733F262CF0C19BD9E71B2E931067B33FD93B47091142537CAD90428C0AF8E903E56FA4EDCF203CD1102FFA801EC588E5B25DBDFFD7261EE61C921DF98A6871809216F6A7D95EEEF7C2FDF323A398C5980CE1', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620446398729274, 5836937296459751435, -2662403013555040347, 0, 0, 1795919007882, NULL, 702, NULL, NULL, 'Deposit-02', X'E2BCCB17D73480A8ABF9C858FFC662FA', 'https://acme.example/cb', X'010200AFB9364D4DC60EDE83C9001139E5FCB52F4389E3EDC379C33EA9AA3DB55791EA10583A17FA2FFEE3D561776B241A90C8AB769FC5E6B1E5F68B829CC1875CA6713E0D1277D7611E01D15D6F10A499EB1D597D0EDE5E4E2D06BCC9B2AA4443D14BF730DDF0C410171888D7A6211BF3DF54C7167095A707CAD3764485BE0428609E14F41DA7F300F6DC65EAD93828778C281B45F36F61B0B5325F7635F426C4CA009B57662F3BC43567D2457502E7D117863C70EC5093AB5F584EDC682B252147D107F32E791AB29DBFEA0E403A9C39303227A0DB39B75EA8CCE27965CB5D8CC19A5E300F8391FB9CFA8F3C3468016481A75B480BE75095271FCBD2DB006AFF622C34D3A05B0147F1A25DADDE8C0E122C206087DD0FF603437C9116012B39C52030A4A29BA7CB3089F2E0A91B8EDEDF5AAC12AF955FFC621631B0783A7522C0CEAAD08F44ED68', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620446474226706, 2704764562492528397, -2662403013555040347, 1, 1, 1795919007900, 1795919007960, 700, NULL, NULL, 'Withdrawal-00', X'7E524E50EE4ACBB4D551DC9F93F39C4B', 'https://acme.example/cb', X'0102001CF2D24C223DB630FFCDB9E11CCB69782A5D425B859791B158D0F90423720020309FEA2CA3AFC6A7D26D8DB9DA42EB7F415AE01EFD64', NULL, NULL, NULL, NULL, 1, 1795919007960, 0, NULL, NULL);
INSERT INTO operations VALUES (252620446570693494, 2704764562492528397, -2662403013555040347, 2, 0, 1795919007923, 1795919007923, 701, NULL, NULL, 'Withdrawal-01', X'B5A5371BEE24A103A6BF6ABBF1E16E2E', 'https://acme.example/cb', X'010200E51D2F4460AC013FFE4FC67A70685EB97E48357F5E53079473E8C8E359874A34A4C5226248F7592AB28877F6B7F3EB347E894982F455', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252620446587470651, 2704764562492528397, -2662403013555040347, 0, 1, 1795919007927, NULL, 702, NULL, NULL, 'Withdrawal-02', X'14811CE17650F951CB1F4A3964DD088D', 'https://acme.example/cb', X'0102002306212BC6583DF8B30A6DB34CD69D03CBF7E197AA9A6525F1AC40E6FC89E058930CB58EE18D7ECA2DE4ADB9F9C6CAEE6C205A2BBF9F', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
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
INSERT INTO entries VALUES (252620445916385149, 2, 'EUR', 2, -700, 'acme', 1795919007767);
INSERT INTO entries VALUES (252620445916385149, 2, 'EUR', 3, 700, 'acme', 1795919007767);
INSERT INTO entries VALUES (252620445916385149, 3, 'EUR', 0, 700, 'acme', 1795919007832);
INSERT INTO entries VALUES (252620445916385149, 3, 'EUR', 3, -700, 'acme', 1795919007832);
INSERT INTO entries VALUES (252620446138682697, 2, 'EUR', 2, -702, 'acme', 1795919007820);
INSERT INTO entries VALUES (252620446138682697, 2, 'EUR', 3, 702, 'acme', 1795919007820);
INSERT INTO entries VALUES (252620446474226706, 2, 'EUR', 2, -700, 'acme', 1795919007900);
INSERT INTO entries VALUES (252620446474226706, 2, 'EUR', 3, 700, 'acme', 1795919007900);
INSERT INTO entries VALUES (252620446474226706, 3, 'EUR', 0, 700, 'acme', 1795919007960);
INSERT INTO entries VALUES (252620446474226706, 3, 'EUR', 3, -700, 'acme', 1795919007960);
INSERT INTO entries VALUES (252620446587470651, 2, 'EUR', 2, -702, 'acme', 1795919007927);
INSERT INTO entries VALUES (252620446587470651, 2, 'EUR', 3, 702, 'acme', 1795919007927);
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
INSERT INTO tasks VALUES (1, 252620445765389102, 'acme https://acme.example:443', 1795919007731, 0, 1795919011445, 1, NULL);
INSERT INTO tasks VALUES (1, 252620445916385149, 'acme https://acme.example:443', 1795919007832, 0, 1795919010382, 1, NULL);
INSERT INTO tasks VALUES (1, 252620446117708957, 'acme https://acme.example:443', 1795919007815, 0, 1795919011021, 1, NULL);
INSERT INTO tasks VALUES (1, 252620446285483851, 'acme https://acme.example:443', 1795919007855, 0, 1795919011018, 1, NULL);
INSERT INTO tasks VALUES (1, 252620446474226706, 'acme https://acme.example:443', 1795919007960, 0, 1795919007960, 0, NULL);
INSERT INTO tasks VALUES (1, 252620446570693494, 'acme https://acme.example:443', 1795919007923, 0, 1795919011618, 1, NULL);
INSERT INTO tasks VALUES (2, 252620446138682697, 'card-eur', 1795919007820, 0, 1795919007884, 1, NULL);
INSERT INTO tasks VALUES (2, 252620446587470651, 'card-eur', 1795919007927, 0, 1795919007982, 1, NULL);
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
INSERT INTO callbacks VALUES (252620445765389102, 5615267946007032469, 'acme', 'https://acme.example:443', 0, 1795919007731, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252620445916385149, -5612971957621416309, 'acme', 'https://acme.example:443', 0, 1795919007832, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252620446117708957, 5860958718393188713, 'acme', 'https://acme.example:443', 0, 1795919007815, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252620446285483851, -242710303923190974, 'acme', 'https://acme.example:443', 0, 1795919007855, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252620446474226706, 6903577078364746013, 'acme', 'https://acme.example:443', 0, 1795919007960, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252620446570693494, -2150804745572090154, 'acme', 'https://acme.example:443', 0, 1795919007923, 1, NULL, 'name not found');
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
INSERT INTO callback_tries VALUES (252620445765389102, 1, 1795919007795, 51421, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252620445916385149, 1, 1795919007873, 5202, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252620446117708957, 1, 1795919007832, 14472, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252620446285483851, 1, 1795919007899, 1630, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252620446570693494, 1, 1795919007932, 3412, NULL, 'name not found');
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
INSERT INTO actions VALUES (252620447144781027, 1795919008060, 1795919008067, 'cli:0', '', '', 'ce60e019b70e4cb528506d09ab92beb8', 'ids.import', 'acme', '{"file":"/tmp/.tmpdBtavk/ids.txt","kind":"payin","lines":"1"}', '9e943b4a940fcd68', X'C1E736D547A240CF246A618C13867B5B', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
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
