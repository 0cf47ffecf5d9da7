PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'0120D615531A5C5BF9D566BD001A9BE7779626C04A1F6B6A655B6021E7FCCCC416AC015872B45C5BA5E7ECB517B5F0949EAC685811B67CADD1A11E7B48');
INSERT INTO data_keys VALUES (2, 'seal', X'01467CF68A54044F841AE2E07473543592889112127978E90590E3498FC0B8779BF7446B3E683092A601CF5DB4E3B85F46AFF3B88FD91782D27E86E5D5');
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
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'5B308AD0A4F14F3398DB223DBDC830A5');
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
INSERT INTO contexts VALUES (-3523129537274943916, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (2392689362880484832, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (3398941078170347032, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (3463027692887137867, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'0EF4352B1B0216FAA06D801749DB4194', 0, 252743500764334552);
INSERT INTO homes VALUES (X'0EF4352B1B02AD011C05248EBF90763E', 0, 252743500844023891);
INSERT INTO homes VALUES (X'0EF4352B1B02B7FD3524D20FE51D29B5', 0, 252743500806278776);
INSERT INTO homes VALUES (X'3BE6201428F00FB1442FE9182A370A8E', 0, 252743500558812014);
INSERT INTO homes VALUES (X'3BE6201428F044F83AA2A92AB9DD838F', 0, 252743500646894121);
INSERT INTO homes VALUES (X'3BE6201428F0EE1E467C0C4CE37F9D8D', 0, 252743500592369344);
INSERT INTO homes VALUES (X'6CE15C1293113B9D016231B3AB266A25', 0, 252743500739166800);
INSERT INTO homes VALUES (X'6CE15C1293118857B099113326B55DEB', 0, 252743500688835771);
INSERT INTO homes VALUES (X'6CE15C129311E0BD46FCBF303937A930', 0, 252743500709809269);
INSERT INTO homes VALUES (X'C2F89DAE8C9C2BEFAD9A0D2BB12AD698', 3, 252743501892599808);
INSERT INTO homes VALUES (X'C3C02BFA479B349E971E04D102551CAB', 0, 252743501032769091);
INSERT INTO homes VALUES (X'C3C02BFA479B4C0DBCA27E85991112A5', 0, 252743500978244403);
INSERT INTO homes VALUES (X'C3C02BFA479BEDC24FD1794C0EAC2053', 0, 252743500995019996);
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
  job_ended_at        INTEGER,                -- when the provider last answered, was last called or was given up
  job_kind            INTEGER,                -- tasks.kind then
  job_failure         TEXT,                   -- tasks.failure then
  CHECK (CASE status WHEN 0 THEN finished_at IS NULL AND payer IS NULL AND cause IS NULL
    WHEN 1 THEN finished_at IS NOT NULL AND cause IS NULL
    WHEN 2 THEN finished_at IS NOT NULL AND payer IS NULL AND cause IS NOT NULL ELSE 0 END),
  CHECK (coalesce(cause, 1) = 0 OR (cause_code IS NULL AND cause_text IS NULL))
) STRICT;
INSERT INTO operations VALUES (252743500558812014, 3463027692887137867, 81814178366899230, 0, 0, 1795948346280, NULL, 700, 42, NULL, 'Payin-00', X'7081EFB0497B00A2903E632250FB019D', 'https://acme.example/cb', X'010200F732B7363A77CCB6750E88645E466B8802F59228582D1E8A1EE772A698E1DADF91DA9E0DE5B183F7573FF0B85AA344ED61E67AA2795A97FBE21A09F1EEA186B9BD899E633C2EDAF0C2B96D46991D6A4ECFE519A5E7923A8B2DB2E8DED89DBE40063E23A60B2716860FC14C5CCEBCB5B21B7D36FC7705021361EF8EA2A076AE1D81034CEF02257B0F01F1D8646ECC844DC5A5EC30FC13821B6DE39769468D1274700E9492F5E955173D0A4A0548C0CEEC982F7B893E690167F1092AC9F14BD18A325F44DE5F129F139E58E6E44322EBBB7579181E1E6B1D789AA5D46E405D54258B854529F6D09B162C6FFC60AFBB3A53F2DA2659082473CCC1479FD1A2E89440E8EFA1796DE03AECDB87F768ED163A5B0CAE7BD07BC631DF4192E8B228C5A8608CB0BA63F0BE17DE2BBDD5AC882A809EFF31233AB036C778113E2E5AB9EFC43B553922E60AED5A7DF1AD8352D9AA31D9CA3442A7A42CC0C0EDFC9B15C4CF5DE25D383BCB', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500592369344, 3463027692887137867, 81814178366899230, 2, 0, 1795948346288, 1795948346288, 701, 42, NULL, 'Payin-01', X'697EABEC7A17D3F9AC8F9720AD00D3AD', 'https://acme.example/cb', X'01020020FFB34086A6BDAAF0C0FC65460DCE324612A8951464930203C8DB8218F30878F62BE55659F970F65C03AD56C7D226B687EC073D78EF28FAFB95A4AD333F4A067554D30E94218476B5F8D2EF373A069299334B349F89844CF891B55C3518486E9CEFA2421B4B1652A53D6633B0C284836C444DA3035927703DCB2B0D087C9B4C08E0D6CEC4784788D41CC9C1DE5DF61F54A15B26C5C533EB5D978DF25A2D6C66364D777C9D66CFF269EFFB3534BB9846EA1A132617D90F85D511C81250472B7717339FE72D2DDF66A9B431CD6D7D98281B93259A35FC24D94B7C9F7172B555260189CAD294CD6C6DABFDB59E66C6C92ED0D018D5EB6E3E6C072C21DEC9CDA185C628A888887F93D8B24F3BA1296EAD82243FD9AA9F513B4181236F84505C92AA07AAED5F76694F25349DE87829FD67E4B1472B55F940B610E2E2E09A2DF9C6BB23036D256BBC8503353F9FDB11B2041CFD43D49D2D9FF27682530978933D359B92A5248A', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500646894121, 3463027692887137867, 81814178366899230, 0, 0, 1795948346301, NULL, 702, 42, NULL, 'Payin-02', X'105BAAF1A42D2D783FA5CF89D5691292', 'https://acme.example/cb', X'0102000A5B47AC08AC10788731648E0C49EDF9EC4BBEA519B74B801FF363EBA95CADFF1C55F8A66F11E568781757A32F8728CA1831ABAB9EF62F77C59CE9F208368626E8BA457518620D2F8B4E84F3BC6677CBD8AB4A3F4E8A97F41B678C86033F4F7E4D1A427A93AF2A14A245F456696FC5ED09A93724B82F15C0A87E4484AC7D1AF7652C35D3AFB886605EF92A59118AA8D63C0FD10FE183D57BFDEB97480FC19BE17C1ADE29A15BCDED16EFC538CE521E5A73A55346DE44ACB3967204B7D1B7B1E6046673E4F2A1A1D76D7330039759DCCA1996EBC440D7B7371CBA58B0F8B320A5943164A4E673D764D1DDB9665CB11C35CB0A4B5B43DC9DD62F848DA5D24994345294E4A03BD8759EDAF14A99A06A4BAAC301FCDF6C46C0783E12370FD5007C110749FC4262822921B68AE94C04F18094CD623505CA7053F1979B00C1A0EAD4E08C0A876FAB015FB7D7CED719BF319B36FB08950B90C204C0C2A6BFD56FB6F86D17F02C81', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500688835771, 3398941078170347032, 81814178366899230, 1, 1, 1795948346311, 1795948346381, 700, NULL, NULL, 'Payout-00', X'B1AB2D97EB2AE6C87E097C6D481EDBEB', 'https://acme.example/cb', X'010200271FA5A0C07208A1B5781D6464B4AA923A27A101AE4BB9C9A444FD31C1686AB9070693D013985E98FCEF8D5C8D9726EDB9B7285EF8ED04C89F4CC6B2689FEF741C45924078E3EA1D633ACF5F86D4D3F0129CD8105378B2373A233C21AD74CA2518B33D07965B7DB001308C93F5A68F399C5503FCD506F1D1C8F8325F1E936926', NULL, NULL, NULL, NULL, 1, 1795948346381, 0, NULL);
INSERT INTO operations VALUES (252743500709809269, 3398941078170347032, 81814178366899230, 2, 0, 1795948346316, 1795948346316, 701, NULL, NULL, 'Payout-01', X'725F5E047DC121AEFA4851D201E800F9', 'https://acme.example/cb', X'0102002CDEBFE1DC1373CA45FEBA81FC4E0FAB81BFE82A552547F4CFC62614187EC45FB21AA3DC8EF27CD6557D7755BB72DD6AB5141E869FE9D82F1B899B36482A977F474CCE91000F164CB60F605B72789EA6331058572D812642525CAED808C80745AD3086D5B3566D9C0925404EDA46C85FBB32DC00A310E03C918BC2A51C8B4E0B', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500739166800, 3398941078170347032, 81814178366899230, 0, 1, 1795948346323, NULL, 702, NULL, NULL, 'Payout-02', X'FAF404C77BA7152E81AA1EA637CF6F58', 'https://acme.example/cb', X'010200DC09B5EA720833DEE6F5120A3FFC57FDE3C6C06143DF4DD930E87680C759452D3B599A2FDBB5A14D22E13A9297B4E8051D3EB0E7C3488CDC5E1A279A7CB824ED62D4B434A5C8FBFEE5C519B8064C76963E9999FB716185407E5888DF5BAD81BF45A0BB27BDC454EBF21CE4F3C86719D644576C84B13398BEB6FF61CA213372E2', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500764334552, -3523129537274943916, -81814178366899231, 0, 0, 1795948346329, NULL, 700, NULL, NULL, 'Deposit-00', X'AE9F092B4C2EAE9580904A094117051A', 'https://acme.example/cb', X'01020044C5686FF875BF65E1D7520B69A2A5A640CFF22A6C148776DA269D207E36F90B547307B9D8A5291C2FA2C5524CE6CAFD72442C53DD2B9E13B9F33499DE368D3EDC426D52BC288734B2F157865252FC1C2D5EEB760BDE5E61C91082CCAAD35DD1E7E7603BC19549B795034022FE9AACDD8FDE454AC134A0735F52B1AE9A08674BB51C87E4A1340B69AE6FACB7B38FABF052D133C28C7443F8805909EAB450DDA095ED49836C5E2EC5297640A9059C1D4F301096D28DCBCA953481DB2DDD73CDBC6571433CD6AA81A54735A8CA2A74641A9183B4A8C839613231C5DD06553682BCBB886D232583359474613F77F816F3FB25D8DFF80372D6E9330685BEF3A9C1000BF83692A4A8ED07BBCCC712CC40BBB46B4D8986C083A8EBB4142D2DB73EC366E0F569E69022FAA463F2E53DA698FE8D4CEAE79D24F23C4BC9337DFDB64D6F567310AD6458', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500806278776, -3523129537274943916, -81814178366899231, 2, 0, 1795948346339, 1795948346339, 701, NULL, NULL, 'Deposit-01', X'E329A06CE557D360F85EBBA7DC4DA40B', 'https://acme.example/cb', X'01020009087FC470DC762316EA5458159262EE9BD7D025070A4EC0A231838E58C0F047E6D4F9D79907E997F18BBBDEDCC380F82E66A5C0E9A84F9971CE1A8EC46BB05836545ED336E6B419B0827B15C167F4E670DDB37AA62D05D3BDA9F1403C29708FDEE7271B24C047602F763232DCF520015E47345495CB7F98A44B044DFEB52D03D3639C4D43306C733EB859675A19B3AE9288DEEB4B7D003CDE65485ED6E0A85C04855E6F4153EBFCD79837018D1BB31E853BBC3C6FF5897261BA8560B1948D3FEB11F9BD3F1B3978506FFDA346F98938C314DA9208AEE9135C7DC9DEB87650FECD4B88D23EE66D5D49A3F26EB363D4E1E2424FAA0F5171DF833838F704166D1A11B13D5D2CFDCF772092E700175C809FBF4BACD9346F1E3DE81CA96FE6183529EE5841A0879F7EDD183CBDDAB9CFEEEB263CD99C25D6BBAE81DC4FDD98D1F64E92D7779447', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500844023891, -3523129537274943916, -81814178366899231, 0, 0, 1795948346348, NULL, 702, NULL, NULL, 'Deposit-02', X'C32161FB71D23F02F9A1A33313344CF1', 'https://acme.example/cb', X'010200C9CB49C39958CFF1C44D39B32D19AB95C5CF084335A84B5398CF7C4FD75475ADBC719F7FD325FAB3307712345FBF45DBB669F630AD4E2BCB1FD9EEFCBB9A825345469BD91771BEB8E0E15C79F15F77BE71BFDB932B5CD1CC8C0D836A2937D3610EAA287C41E9D16881D698AA99D611286CF5AF4BADA295CA9284A65A794C0D1DD96943E54F8D49927A46FF6F7F7B59F056A088234D0DBD542AB647FF805C481EC16574285777C329805EEC2E3991466E57846F8AA9109DB17FA83A3CAFA89953FA43785B9BE5AF1F2F6A66CB426760B61A040DE1FC667ECA74EF50178401F73B0463E3F7E469AB980A8E518A4C2C8B9D3178CB738A1A59CD675EE11C952088C74040AC3C02E3F136EA5157F9C021A42B8280183DEBF671B67E3D3D51975100ECB0E327A47E9FE8A42E02453F109BF58680D1F37AD7EC74F1809EC3ACEE89670A5756565BEC', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743500978244403, 2392689362880484832, -81814178366899231, 1, 1, 1795948346380, 1795948346442, 700, NULL, NULL, 'Withdrawal-00', X'860AFE053D9356AE35749F358118D390', 'https://acme.example/cb', X'0102000B6D7B7393ADA4AFA05DDE1DBA8385CA78B732DEEFD95D2DFFE56E316054DE2ED0BF494C7A2CDEC206134F517D1A762DC48B57902BAF', NULL, NULL, NULL, NULL, 1, 1795948346442, 0, NULL);
INSERT INTO operations VALUES (252743500995019996, 2392689362880484832, -81814178366899231, 2, 0, 1795948346384, 1795948346384, 701, NULL, NULL, 'Withdrawal-01', X'66B8BF785D418260AB5A17F90D0FA18D', 'https://acme.example/cb', X'0102002CCDE90E9930F683E343C453D6E04C6A0C81E2BEF3127C6C5B8C34E0E8E6099851563D3F88CD909B1F45EC4D1660551CC64EA3B473BC', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252743501032769091, 2392689362880484832, -81814178366899231, 0, 1, 1795948346393, NULL, 702, NULL, NULL, 'Withdrawal-02', X'C2F73CAB1D67306B25173ECB24BA5F87', 'https://acme.example/cb', X'0102001BA80A40C25B4B258048CCFE5A1AE9B0A154C797DE7F53EA039EDFB94A43D29872B8BCFADF425B3200D1F2D598652D159E372859D01B', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
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
INSERT INTO entries VALUES (252743500688835771, 2, 'EUR', 2, -700, 'acme', 1795948346311);
INSERT INTO entries VALUES (252743500688835771, 2, 'EUR', 3, 700, 'acme', 1795948346311);
INSERT INTO entries VALUES (252743500688835771, 3, 'EUR', 0, 700, 'acme', 1795948346381);
INSERT INTO entries VALUES (252743500688835771, 3, 'EUR', 3, -700, 'acme', 1795948346381);
INSERT INTO entries VALUES (252743500739166800, 2, 'EUR', 2, -702, 'acme', 1795948346323);
INSERT INTO entries VALUES (252743500739166800, 2, 'EUR', 3, 702, 'acme', 1795948346323);
INSERT INTO entries VALUES (252743500978244403, 2, 'EUR', 2, -700, 'acme', 1795948346380);
INSERT INTO entries VALUES (252743500978244403, 2, 'EUR', 3, 700, 'acme', 1795948346380);
INSERT INTO entries VALUES (252743500978244403, 3, 'EUR', 0, 700, 'acme', 1795948346442);
INSERT INTO entries VALUES (252743500978244403, 3, 'EUR', 3, -700, 'acme', 1795948346442);
INSERT INTO entries VALUES (252743501032769091, 2, 'EUR', 2, -702, 'acme', 1795948346393);
INSERT INTO entries VALUES (252743501032769091, 2, 'EUR', 3, 702, 'acme', 1795948346393);
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
INSERT INTO tasks VALUES (1, 252743500592369344, 'acme https://acme.example:443', 1795948346288, 0, 1795948349999, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252743500688835771, 'acme https://acme.example:443', 1795948346381, 0, 1795948349976, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252743500709809269, 'acme https://acme.example:443', 1795948346316, 0, 1795948350471, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252743500806278776, 'acme https://acme.example:443', 1795948346339, 0, 1795948349879, 1, NULL, NULL);
INSERT INTO tasks VALUES (1, 252743500978244403, 'acme https://acme.example:443', 1795948346442, 0, 1795948346442, 0, NULL, NULL);
INSERT INTO tasks VALUES (1, 252743500995019996, 'acme https://acme.example:443', 1795948346384, 0, 1795948351283, 1, NULL, NULL);
INSERT INTO tasks VALUES (2, 252743500739166800, 'card-eur', 1795948346323, 0, 1795948346395, 1, NULL, NULL);
INSERT INTO tasks VALUES (2, 252743501032769091, 'card-eur', 1795948346393, 0, 1795948346450, 1, NULL, NULL);
CREATE INDEX tasks_by_due ON tasks (kind, queue, due_at, key);
CREATE INDEX tasks_retried ON tasks (queued_at) WHERE kind = 0 AND attempts > 2;
CREATE TABLE preparations (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  sealed         BLOB NOT NULL
) STRICT;
CREATE TABLE provider_queries (
  transaction_id INTEGER NOT NULL,
  queried_at     INTEGER NOT NULL,
  job_attempts   INTEGER,                     -- of the ended job whose place a new one took, as operations.job_attempts;
                                              -- NULL: none had ended
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
INSERT INTO callbacks VALUES (252743500592369344, 2248160100695441742, 'acme', 'https://acme.example:443', 0, 1795948346288, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252743500688835771, -4331199604636202949, 'acme', 'https://acme.example:443', 0, 1795948346381, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252743500709809269, 4867859984762961997, 'acme', 'https://acme.example:443', 0, 1795948346316, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252743500806278776, 5412352060503068349, 'acme', 'https://acme.example:443', 0, 1795948346339, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252743500978244403, -8871050027560209826, 'acme', 'https://acme.example:443', 0, 1795948346442, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252743500995019996, -4226803761966995401, 'acme', 'https://acme.example:443', 0, 1795948346384, 1, NULL, 'name not found');
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
INSERT INTO callback_tries VALUES (252743500592369344, 1, 1795948346313, 50378, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252743500688835771, 1, 1795948346407, 2106, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252743500709809269, 1, 1795948346328, 35064, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252743500806278776, 1, 1795948346371, 15708, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252743500995019996, 1, 1795948346412, 14895, NULL, 'name not found');
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
INSERT INTO actions VALUES (252743501873025412, 1795948346593, 1795948346603, 'cli:0', '', '', '3dab4246b601f9cf11592a1a29c0ceff', 'ids.import', 'acme', '{"file":"/tmp/.tmpM87MbQ/ids.txt","kind":"payin","lines":"1"}', 'eb98f3853be53423', X'D8236B9A2C420537DAE116D10ACF00B5', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
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
