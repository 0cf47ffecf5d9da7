PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'01B40466E673206080EA4A58B0D07D9FEB02BC2609DB9134289A88D2D402EC93CE9CE0D7C76D44507285566E351F55342910E41C68C8B0EBCCAA8E0F78');
INSERT INTO data_keys VALUES (2, 'seal', X'01C4E3C2F7AFAB0BE80F1C69C0BAF8D48D5E00C06C8E94D24E2DDD72173F87EBF4C092CD171FF5B7EC465FC988EC5C2941C2B5F9DFB45BDD4B0D302960');
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
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'832D5B2D9E1563B855E4909FC833ABDF');
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
INSERT INTO contexts VALUES (-2950933423277186125, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (2077944728779262254, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (2489390606494998488, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (8781706299138962455, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'1E1CDD9392971E75FBB3F856594D03C3', 0, 252340241683759496);
INSERT INTO homes VALUES (X'1E1CDD9392972DAC6B2808BA2F86B44F', 0, 252340241637625159);
INSERT INTO homes VALUES (X'1E1CDD9392977D19583A52C870446B5C', 0, 252340241541155792);
INSERT INTO homes VALUES (X'28A02C8621E06D7505B06487733A1E1A', 3, 252340242459705344);
INSERT INTO homes VALUES (X'691DB9A2CAEB2778E4737482E0843227', 0, 252340241721511491);
INSERT INTO homes VALUES (X'691DB9A2CAEBAFACE24C9854D4AF2718', 0, 252340241813785411);
INSERT INTO homes VALUES (X'691DB9A2CAEBBBEAF3EAEFE796A32ED0', 0, 252340241855725826);
INSERT INTO homes VALUES (X'980AFFF56D2863BA1EBB99E6A8146D49', 0, 252340241239163991);
INSERT INTO homes VALUES (X'980AFFF56D2899A3D91BD4A426AFAB6C', 0, 252340241339828190);
INSERT INTO homes VALUES (X'980AFFF56D28DD097B40516759A531CD', 0, 252340241381772490);
INSERT INTO homes VALUES (X'C43F84989D0D3409A9ED9CE6614B38C8', 0, 252340241474047105);
INSERT INTO homes VALUES (X'C43F84989D0DD23C85811E64ED6DC85E', 0, 252340241448878794);
INSERT INTO homes VALUES (X'C43F84989D0DDF9A91078D933A3C4663', 0, 252340241402741431);
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
  queried_at          INTEGER,                -- when an operator last had its provider called anew
  CHECK (CASE status WHEN 0 THEN finished_at IS NULL AND payer IS NULL AND cause IS NULL
    WHEN 1 THEN finished_at IS NOT NULL AND cause IS NULL
    WHEN 2 THEN finished_at IS NOT NULL AND payer IS NULL AND cause IS NOT NULL ELSE 0 END),
  CHECK (coalesce(cause, 1) = 0 OR (cause_code IS NULL AND cause_text IS NULL))
) STRICT;
INSERT INTO operations VALUES (252340241239163991, 8781706299138962455, 8990682890528391947, 0, 0, 1795852201766, NULL, 700, 42, NULL, 'Payin-00', X'6F11142DFE1EC2D17D78928B31110AFF', 'https://acme.example/cb', X'010200578BAB844E11D0264BF1F8BB842761FB63F18B546BD34862BD96E3C8BABC877C7FCB7A3525CD934C29FDC792E384AF48D6FB1AFFE2B661E1D8CD14917B8010604BD765E1CBA4F33C9F3A7CAD35751E18A0BA84765754C1FCDA11FAAAF28C312760D9A0D8F8B11D4C1D95F5BD53E911090472DF8AF23963B6F147639C61D094894AE4D69EB7948E037A84F0088C9F5EA92B6EAB46135C7179B4E9D3B845CDED88BE1ED6068F64F544D848A5F23FCFA6A17B45A785ADA2A6FC4E52771CD1443F9038511EC702DBC55B424694F752B6C8B8E75B1699573B5D259D9903A6446B178E62C15C29AAF54C80FC332C93A86CECAF8C3F4BE901FADC255979005C67D5C84C20AFAEF1BC022C83F094EE0618295D1DFFBC18A0BC4A6C30E19D4EACC5CDA1A089DE492041BBFC07F39C512E731EC408E19BF165E6EC5EC09EBEB751D252D10F108E83A8A6EDF2EBC6FAA6E9D333811D9B939F4E9BBA68AC5BD1756777F6DAE53B538D15', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241339828190, 8781706299138962455, 8990682890528391947, 2, 0, 1795852201790, 1795852201790, 701, 42, NULL, 'Payin-01', X'3760ED9E94F055E6FF3B02CDF547DFDD', 'https://acme.example/cb', X'01020007E628EDF812E2FC4B280ED101D400B99023BCF0F838845D725474FED8D71FD15B4E256EE98A1D46F23DD97E0D57BA8A2CD3F2A82F3BE95DAA0D191267683CC5D838E95317278336AE963EFAEC23B5065738EAD5B3335DED6386359D1959954C7AD7679E47976A4B387D110B38D3DAB34C2C6B7261602FFC8C033D21BA28F6B18977B277278546DEBC03341571046916D1830B8066B9CFC2C66632D0A51C976DEDDB41318BC0115AAD4E792BD3059869C0E9DA3D5C524EE0BF41AA6B805827BBE3F5CAF9305173542BBE2F6D2CFD9175104FA497C7DAFF5012024BB884197BB24FCCCDEA5CA14D7C45A8C7C7AB6068A283B1246F06A32742140A3031E220D5A0E8A268E94F440DF3B661E9AD6D713E4D11E18733FF4EA78BAF44B6AECE1D2AF9AE1E8E9C01697CD3421AC6341673414BA1BA95DB2790F43BCE6B2A454F3C1224D03604B9446D55BABA1DFF2242FF9C81DED8801820930DF7810693F600ED0C432B19DCF8', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241381772490, 8781706299138962455, 8990682890528391947, 0, 0, 1795852201800, NULL, 702, 42, NULL, 'Payin-02', X'2312BAC8A2234BB22337B1088C8CE231', 'https://acme.example/cb', X'010200A0C20B6F7F6BBC495C02E395AC5ED92C77084BFE5A9DC65F8519DA4B3CA44AC4CFFECEA1F8C15B1DC18E4E6DA196B62604813157848EFA7CF5506681F6874C96F368089DE4E8A387BCEED7B94DDEB8FDF01F9BFCB2E97A9CE4FE022E0142C08DBF9F70FF8D5A3C0C1AC533B4B072CB84CB2DA2C53CC9FD0BF30FAFB888FEEF3ADAE24A80BDE4AE9AF7CCEF67FA0869CF25EE35117A9197FD9663EF76674984968E09DF3ABE5C0B0984A4D46B372E6B428D76860EA19241656315C798524F815D54D3560F6271117A3F390FEC5842B1C1C65BD7B3C4A803A3810B2C2C0F4E0EB3C6CD4FE182CC1BEF14155384BFD573DBECE7E3B4A1A59375EA9034313C55B85E12E84D28495869DD0B14D6209B96BD5BB28FA0FE2DCAB86E04C32B611E6D0C9716E0D0DE7F8CD08FE343453FD1E080415B451D22B8BC13C3EAFCAE88AE01815F7DBB66691FDFA0439215927B9C3C07610263511789DA2E6428242A789769457248B99114', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241402741431, 2489390606494998488, 8990682890528391947, 1, 1, 1795852201805, 1795852201863, 700, NULL, NULL, 'Payout-00', X'FD0E7B0ED37BA46ABC647FDDC5278995', 'https://acme.example/cb', X'010200BF1BEF553DA75342B29E5D37E0BF1758092FA1A096FA485E922F1718F647DC2E2680ECCB48056170DBCCA7492D851CD321C816AD739AC7EA5BDF800486B36F4EB222C4306494DD926852BBA3303053414E778DF6225D56FA0A5F8DF9AF83F325C7EB4319BF7F13C13CB5EDDC439A9256C46BF55877C4E483CD0F3085BA754ED3', NULL, NULL, NULL, NULL, 1, 1795852201863, NULL);
INSERT INTO operations VALUES (252340241448878794, 2489390606494998488, 8990682890528391947, 2, 0, 1795852201816, 1795852201816, 701, NULL, NULL, 'Payout-01', X'E3324620BA27B28F624F04D26511CB92', 'https://acme.example/cb', X'010200925F44A4FF6EEB7D71BA3D454EC44464AFEF14762258C0317FB38C05848E7685501A6977F40644E5F69594844E65EEC468BDCC1159FAA6F9C1E4EA5E8284EB9536770ADA3030F37CAD02D29F21EC2A4D98FA7B3E9770E490CB279B79E09D10533DB86E3A67AC1C2ABD94145FE1589B7A6F2E523FD739E45AA2A94F510DC881D6', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241474047105, 2489390606494998488, 8990682890528391947, 0, 1, 1795852201822, NULL, 702, NULL, NULL, 'Payout-02', X'CB300E11BE4F881BD007D4AA4071C2C9', 'https://acme.example/cb', X'01020071FEDCA0CCB4AD2AF27535D820F5B9ABE5636B6A9A227F185C351B2B5829D9450A9A9F369A1392610236F55EE2D867A14299E310D83C16EC7E23FA7AF1286D2626BDEEDEE083E5B0C1E02956ADF91730BB242E34D70F006DBFC81F97C00C7427052769645ADC5F0AA18C992BCC0F2C0F61199B7865A79B321CE03689790512A6', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241541155792, -2950933423277186125, -8990682890528391948, 0, 0, 1795852201838, NULL, 700, NULL, NULL, 'Deposit-00', X'2629722DB10492B368CEB5FF29C1EA91', 'https://acme.example/cb', X'010200A3A2862724EB7F58909C9C1FD91C45414C10954C0E94EA18CCF2E437E32AD2398BCD037F20F8DEB848A5B17346B7A72078F56FDF34D740A81D39587CCF50FE465BE4DC931B50A26F4F5AA975415D4A87D065A202802CA12B738E688A2596659AEDE7F11A690E7F8B7786E5B5D3BE6D0939A02360953D30C50B7686EDF4EB6F87E35E9A4E174165A36A70DBA3C9E20DDADD49E996F4FD52BD3852208F78AB29882C601ECA047C849B9D3201E9A790925A9230B11D65BF64E5881CBCA3B365150122FD6E455571D23EDDC1324DB09EBDA8206A82A4CBD240BF78353BF75B4C48B60209E6E1ADC747C3384D5ADB74596EECF5A50F39BE8FE4E60B916D38D12E8865204B9E619AE9714C4C698808562B45B757D747834B5DB568D2283D317F4F5F8C107A3D291D18E8445ADC303FA86F10DC482621C96EF9D48603A3703F06B64E3DC4DEC60999', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241637625159, -2950933423277186125, -8990682890528391948, 2, 0, 1795852201861, 1795852201861, 701, NULL, NULL, 'Deposit-01', X'049F51707D5E5019B85171AF98A05DD1', 'https://acme.example/cb', X'010200EB7BE2172EE9A22E3669A2DFE0B8C5C7DEDE863B0887FD995DD6D0F69F6418EEE08F60823D721B2416F1A35E9A7D58465E25FFAD60BACAE4265839462FB4C09452F4A88EE19B95DA02E47BBEFE8927D8AA96FF0FCC5B546A7E696895A4F4903ABDB491111C30A11EF77D52BAF57113913498B51C84BCF715CFA81E1A19C864520167802AE240E861A5C7D55CFD0D0B3CD711363120AC43D5BAF6CC3BCDB345792B84263636D1141F5883AD6F2B1EEA5BD2DEA7C3FFD4E3DD7F255D90CFA42FB007AAF0812C1D56811C700147C2F38D9B73330999DA40211ADF00FB96CCD74BE5CF1954FF5EEDCF100B4CC9A5BEE8865EC5CA3BA894A1CF65E11B53185CBAA3AFF3FF09A94400A4C1C0D55B628E189A32839DC90BFAB650FAA3898ED09F5C4519DEE467D8C6A1F7086FD393DCDDB499B1F60991CAB94FC4170035D12EA4378ACC23187D7083', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241683759496, -2950933423277186125, -8990682890528391948, 0, 0, 1795852201872, NULL, 702, NULL, NULL, 'Deposit-02', X'82A2D8EA6BBFE57C8C2EDB4EC5DB7B99', 'https://acme.example/cb', X'0102006DE7100B16F3F6DD8CEAD088E7F9A03778F3CCBF0C75FD0D7CB320FBED96AD0EE43187ADD369F78B8F406A18B239C8109E68ABFD6DA21366C13FF64EE846DFC11A4B22E45B2F3EFE5AE62B0FCC77CE26FCD2C40E2B08E9E26137B4FB4F9ECF79F2B9F8CC3B51E36B3DD83D81E22CD0E66DD882C2DA3EBDCA06018E79B30B907B500BA5AD3766E73AF1BAAC1D99E1FD5952855B3D8ADACF70AD76920C7C72E1C10E738AF803B38D429F494C4B00C0D2A7A844AF3C7CB9D98E87AFDFC6AB0BD4ED0183BF794EBB3E8C97AF2F0CBA10F55A611D456E42DC288BFBE39413A9EF330DEBCADF42C4C4460BEA0AC94E305CD8278DDBE712F1231D8FE93578FE86B3102EE5D777680D4E037F50030A865EAF99EF967E666C15E85DA0B2938E4AC1844D0B3F2BBB207AE4A96B274CEAF33A2C285BB4F1829670FEB41B3EF14E22AA077CC523955C895A', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241721511491, 2077944728779262254, -8990682890528391948, 1, 1, 1795852201881, 1795852201941, 700, NULL, NULL, 'Withdrawal-00', X'4D87E61C3988B1915CB9C5650B17E5D4', 'https://acme.example/cb', X'010200FA426C06146A3AA3FF5B3B041BC58898B59EBAFB03E49D173AE5BF1FEA5538BE500034C7B00A83D4532738E68343B32818054DE18167', NULL, NULL, NULL, NULL, 1, 1795852201941, NULL);
INSERT INTO operations VALUES (252340241813785411, 2077944728779262254, -8990682890528391948, 2, 0, 1795852201903, 1795852201903, 701, NULL, NULL, 'Withdrawal-01', X'020A72A4A6E5076F7D227BEAA853E7A6', 'https://acme.example/cb', X'01020095EB821AC7D4E04BC82D5CB8D1681DFCF2A87AF29C3734B954611B0CBCC7FA3FF3A49E04468B4B9D8844B2A63FEDE930A521BCFDB2E7', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252340241855725826, 2077944728779262254, -8990682890528391948, 0, 1, 1795852201913, NULL, 702, NULL, NULL, 'Withdrawal-02', X'FC68C916DB69CF937098DFAE57E0AEB6', 'https://acme.example/cb', X'010200A23B5F44C3CC5114B554A8C20506D188CC20DA69C1C07637FB3063DCBDDCDDD937B7F43324DF55A20FDB2A62476124E12EEA197C242D', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE INDEX operations_by_merchant ON operations (listed, transaction_id, context, status);
CREATE INDEX operations_by_status ON operations (status, transaction_id, context)
  WHERE status = 2 OR (status = 0 AND has_job = 0);
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
INSERT INTO entries VALUES (252340241402741431, 2, 'EUR', 2, -700, 'acme', 1795852201805);
INSERT INTO entries VALUES (252340241402741431, 2, 'EUR', 3, 700, 'acme', 1795852201805);
INSERT INTO entries VALUES (252340241402741431, 3, 'EUR', 0, 700, 'acme', 1795852201863);
INSERT INTO entries VALUES (252340241402741431, 3, 'EUR', 3, -700, 'acme', 1795852201863);
INSERT INTO entries VALUES (252340241474047105, 2, 'EUR', 2, -702, 'acme', 1795852201822);
INSERT INTO entries VALUES (252340241474047105, 2, 'EUR', 3, 702, 'acme', 1795852201822);
INSERT INTO entries VALUES (252340241721511491, 2, 'EUR', 2, -700, 'acme', 1795852201881);
INSERT INTO entries VALUES (252340241721511491, 2, 'EUR', 3, 700, 'acme', 1795852201881);
INSERT INTO entries VALUES (252340241721511491, 3, 'EUR', 0, 700, 'acme', 1795852201941);
INSERT INTO entries VALUES (252340241721511491, 3, 'EUR', 3, -700, 'acme', 1795852201941);
INSERT INTO entries VALUES (252340241855725826, 2, 'EUR', 2, -702, 'acme', 1795852201913);
INSERT INTO entries VALUES (252340241855725826, 2, 'EUR', 3, 702, 'acme', 1795852201913);
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
INSERT INTO tasks VALUES (1, 252340241339828190, 'acme https://acme.example:443', 1795852201790, 0, 1795852206078, 1);
INSERT INTO tasks VALUES (1, 252340241402741431, 'acme https://acme.example:443', 1795852201863, 0, 1795852204896, 1);
INSERT INTO tasks VALUES (1, 252340241448878794, 'acme https://acme.example:443', 1795852201816, 0, 1795852205851, 1);
INSERT INTO tasks VALUES (1, 252340241637625159, 'acme https://acme.example:443', 1795852201861, 0, 1795852205390, 1);
INSERT INTO tasks VALUES (1, 252340241721511491, 'acme https://acme.example:443', 1795852201941, 0, 1795852201941, 0);
INSERT INTO tasks VALUES (1, 252340241813785411, 'acme https://acme.example:443', 1795852201903, 0, 1795852206417, 1);
INSERT INTO tasks VALUES (2, 252340241474047105, 'card-eur', 1795852201822, 0, 1795852201889, 1);
INSERT INTO tasks VALUES (2, 252340241855725826, 'card-eur', 1795852201913, 0, 1795852201973, 1);
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
INSERT INTO callbacks VALUES (252340241339828190, -7736055061274281971, 'acme', 'https://acme.example:443', 0, 1795852201790, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252340241402741431, -7841544959342700151, 'acme', 'https://acme.example:443', 0, 1795852201863, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252340241448878794, -4828088677845155080, 'acme', 'https://acme.example:443', 0, 1795852201816, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252340241637625159, 5818354979406095648, 'acme', 'https://acme.example:443', 0, 1795852201861, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252340241721511491, -4074740040363563393, 'acme', 'https://acme.example:443', 0, 1795852201941, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252340241813785411, 964256449524146749, 'acme', 'https://acme.example:443', 0, 1795852201903, 1, NULL, 'name not found');
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
INSERT INTO callback_tries VALUES (252340241339828190, 1, 1795852201809, 55281, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252340241402741431, 1, 1795852201879, 6225, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252340241448878794, 1, 1795852201834, 31459, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252340241637625159, 1, 1795852201879, 6302, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252340241813785411, 1, 1795852201931, 1486, NULL, 'name not found');
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
INSERT INTO actions VALUES (252340242446248699, 1795852202054, 1795852202058, 'cli:0', '', '', '29692780fcaebb93fe1c5fa044409fed', 'ids.import', 'acme', '{"file":"/tmp/.tmp6CcKWb/ids.txt","kind":"payin","lines":"1"}', '2a5133e2a24f4c6e', X'492056207CCB3BB2CC6F1C3162525824', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
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
