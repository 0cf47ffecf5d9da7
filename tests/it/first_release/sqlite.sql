PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'01E376E8A262BA11CC9CEE02D24ECDDD8E1EBE3590009A53F5CF26880F475BAFE74E2029C5FBAD428604A684F861A5CFD477F9B6497458E26E0C441EE9');
INSERT INTO data_keys VALUES (2, 'seal', X'01D1F1341970674409718CBD8B9294BE6839F780687F540C206B9B4D5E11E073A17BAD59B52EFE2902D72E678CBD17CA37B7F2D954FAD549B8D0B7889C');
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
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'8A19E1DDB345299FD4BFBD7445F0D3EC');
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
INSERT INTO contexts VALUES (-7477065179740733783, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (2528944905027307032, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (3854501024635116538, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (5635334115052545183, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'11F9161217C43DC3DBAF38E93FDECA2D', 0, 252552516726213212);
INSERT INTO homes VALUES (X'11F9161217C461EA66EA2F472EA1E833', 0, 252552516696850645);
INSERT INTO homes VALUES (X'11F9161217C4E9A180ABD56895D6D18E', 0, 252552516742991768);
INSERT INTO homes VALUES (X'6B5BF671450C5B93925C5BA96999042B', 3, 252552517363744768);
INSERT INTO homes VALUES (X'9E272350FB76050ED96AE7898D3988DE', 0, 252552516805906176);
INSERT INTO homes VALUES (X'9E272350FB7630598638B04F2586F12F', 0, 252552516822681783);
INSERT INTO homes VALUES (X'9E272350FB76FE4533C7D075078186F4', 0, 252552516835266480);
INSERT INTO homes VALUES (X'B88514CA20F641103CC6B5925A11E7D5', 0, 252552516629743040);
INSERT INTO homes VALUES (X'B88514CA20F668FFA87EDF87F18B69FB', 0, 252552516663299966);
INSERT INTO homes VALUES (X'B88514CA20F69A0F6CB972EEE99BAF0F', 0, 252552516684267592);
INSERT INTO homes VALUES (X'F269EA57153F7E256FFE2576B8B76839', 0, 252552516772350890);
INSERT INTO homes VALUES (X'F269EA57153FA7C6656EF5326BF3C1D4', 0, 252552516789125548);
INSERT INTO homes VALUES (X'F269EA57153FEC936618F73C6904A7B0', 0, 252552516755573354);
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
INSERT INTO operations VALUES (252552516629743040, 5635334115052545183, 5610188281931116742, 0, 0, 1795902812163, NULL, 700, 42, NULL, 'Payin-00', X'C6B0B71CB596ACB745DEA3DA42C45340', 'https://acme.example/cb', X'01020056552B330259FA29C09F3236D0A68458AB1332FBFCB1B66761FC6C46154B770FD6AB0BC0BDAC50EA50094707C4E93ABB0A2F82D6026EAAFBFF6A4723B3FE1F588FE423C043C195DC29BE49DF6D631B70E40AB20272F9300D4F4CB1DB477D29316C9D14EC9DC7054AFB3F3122992824D9855CC9664466973A4E4B5F8E92D10C09E97C64D337ED386BC9A76C06ECFA1A1FD31B6A5D935DA2050F8A4093C4959ABDEF061E0D9ABDD3821400E51C4ADFB55082BBFAF292A200F585EE2A0A9978CB15E38ABA09C1C9D7E305F57837ACB03F85BBA9F56F29BA0A30B62113816A1BBD4085B2F5D43758FB9CF8C4BE363D81877304C493B463333F6362FF15D432901CD27B4944184493A79AC9595A38FE7AB91041A599F381A787FCD7546C06BEAD6750FB41E6B9498C548A8CFFA0DA3B35DC15485BD1C3628F4A284EAC729C09C9942B3457239421FE08711D713763E0DA83C3B58B29877B87E88FE82263415F4015647E9BE049', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516663299966, 5635334115052545183, 5610188281931116742, 2, 0, 1795902812171, 1795902812171, 701, 42, NULL, 'Payin-01', X'4428BF8C370420EF24F387FAE7DEE7AD', 'https://acme.example/cb', X'01020048EB98DA4566D188EB0347D5BD90507547D4743799FFE391E258E9173FE9508B3A72B01B34B71A86E9090D8E2D32C66D57B45D5889F09B1D8E85AA24B7708A7EE93D8DF491FD711B4B6140C5540DBB26E35AA5D26880F4E400F0F122A129D4390FEBCBFD0AC8AEA64F037C7330F11A89469B2229317D7017BFC4DCD3A68FA7ED9E12317D095BF9CB5D354AFE57A9FEFEE234396EC18DB65542071FBC13A569AFBA443A63D023547D34969FC42CB9D30DBBFC5624919C9548DF161AB221A9F9FEE576AF5AFB2D1F113E10F128388370D864B7995B4EACBA61F0EB983830AD3A33C013BC3AF1D1A86DBA4827A995D42BCF273484B6ABCED02C3E6F9B2FD1D0703A2CEA66555B098C2CE292315B97EC615C9012E5942E62F2CC63A18CC6DF55DCCB7022282BFEB3D63544A4B090A6CE7646699DF7231B31F2BDBBAB2F2DFBA59CD8C27BD9F1DF554CDE8546007476CD768C64C867BE1F904903049C719DC4E4D92C343E9B05', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516684267592, 5635334115052545183, 5610188281931116742, 0, 0, 1795902812176, NULL, 702, 42, NULL, 'Payin-02', X'F8F260094E154D26FC68F849C694AFB9', 'https://acme.example/cb', X'010200E74D0541599355DE59FB221DC369A4ABBED6FD693F982750D7A5F79290AE6BA485FA523F0BBA7CD288292D87BEA7BEB7BC0826BFE86FE4424D3F5D311891065BFF3220B449056FF4B580E6C5DB02C97A3C90415398CC7CF6E88FC0555D44836959322E91E6A2BD009EAD211D4A99CB0374CA73458AECE79411FEB84E1B4EBEAB3B997AA59994ABBD6BAE58101A71D69EA52B8954A194140694366B62F28D47F17644B31692EAF1B6D941571141492D01E18B3A3790E0FDE957E7E2047BDA12D54E517BDAC18A6943B263145D5DE30BE277D419C51C5319651A810B3D442693BDE3A4406941590FBBC6B55144DEDD79AC3D96E2005DCB6FF99458FD000C0A2C637021F6BD6C1288A59ABDB92A71D1F70DFEA6AFCD35137B525B0C9916F1326DD3F9D51D9BA9B1440008078971833543B00D2EBA3EF4FE21CEB32B1DAAE0C4568558DF789E1E41892A5733E00D78766C99ABC08E8DDA83C7B72EE990496FE8AD26DCD52759', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516696850645, 2528944905027307032, 5610188281931116742, 1, 1, 1795902812179, 1795902812232, 700, NULL, NULL, 'Payout-00', X'F39C84738789AA4FB83849DCB3BC393D', 'https://acme.example/cb', X'0102001450D3F1F4D699D8CFBD4D3A95C2E11BE7B51E359AAED81DF731A7EE0935FECAE0EE9A7C490EE21FD7B464476BFBB634171DBCD374226302C6ACF5EF04AAA163976E21523553F483E0B76B4390018686AADAB340C45895731EACC97D6849EE781E4515575E80BD9BFE19A15F540E16979F354DF8064B2B3BFE03466FFB099E55', NULL, NULL, NULL, NULL, 1, 1795902812232, 0, NULL, NULL);
INSERT INTO operations VALUES (252552516726213212, 2528944905027307032, 5610188281931116742, 2, 0, 1795902812186, 1795902812186, 701, NULL, NULL, 'Payout-01', X'51B25C1A75396ED1147C20FB1008C745', 'https://acme.example/cb', X'010200F638C196ED7963ABE93A3D23C3A396FEE9C9FDB961D64BF3E88A9CBDDD0FAEFAB74089E6A26F18B8342266B2E9A3E321955B9A28AA2203745F732F99A7A96D8CC38289828BB5CB5DD898E24AB9D98A137220039AFFC41D66D8B8FBEF27578214936ECF48C1101DAFF3394731669B91A4F5CB831A69FE8ABBC363443621906AB5', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516742991768, 2528944905027307032, 5610188281931116742, 0, 1, 1795902812190, NULL, 702, NULL, NULL, 'Payout-02', X'2F8E1018BB6BCFBCF3D766FC27038BFD', 'https://acme.example/cb', X'010200233D0CE727B0F14078B66569D214FFD19472FEB00DD0D65B2D53632F3E4C8F70FE9C7AB385B48F703EDA390EEFA55193D21C5D9DB496A5995B743AA3FF244C08506E9B3E97C424158DF5D5C98BA7710AACB3E16850FF8D25E9C77873A864878673EEA2847C2C8D3D2755B101B5F6F614D3BF9C5E990FAFEAC7CAD256CE2DE561', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516755573354, 3854501024635116538, -5610188281931116743, 0, 0, 1795902812193, NULL, 700, NULL, NULL, 'Deposit-00', X'27113053B0B8A5D8602F931C1BF33AD7', 'https://acme.example/cb', X'0102000019B4C5F3FC5C9307C85E84F9795564CED4161BFBEA3EB2E3992AE69F8A99540200B45A9A2BDF580822DE5C16A754DF08E827E8EAF8C94D163E59E7ACF9553C820A0DB37D28E3965467B2F9DFDA8214C47B495C5502190590B88ECA84274FF3AC3FF6AA2391183435B9BA4BEE7F16F6C7501DA6A1C39A0F5927A1E7EE2E38BAE60EE8E14BD45BA43D9462A75C671A5AB86E7F1B820FAA0F8631970550E66FFE7AFD382694E898486021FEADCEE8A91CDDB2D18DE4254FF3D1D0FC47114519B129A7B1B3ECA71F3EB2F649020806867B68173E5779C9BBB23093B74244034E9C9BE4161DFE32C1BA131AD15A8BCB15866819C8914B1C0403A9B5CD11423F78181D473364744C6AFBE341F159D865133D1289B4FF3512967EBA2FA88CD14878FFA328AACED44993A6BD7E731371369280E7F6CE5719B02E88C10ED20576C69B629D5367A26D', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516772350890, 3854501024635116538, -5610188281931116743, 2, 0, 1795902812197, 1795902812197, 701, NULL, NULL, 'Deposit-01', X'272766ED1D33B8EFBA7B69AC3543C392', 'https://acme.example/cb', X'010200BA71914AF92426381053270786390AD5638179C1D8DE41E187A66A536DF1C20B88624AB71E153FD2448335E31EBAA1EE54BFB3649879FB477D735A9840672C5A4E9706C44A743D51EDFBEC088B4B4307CFEAE3A59D607FC33CB8E5B4FE2DD96562AF9149E81121C7B13FBF0AF1671441E71BF3D65A9F61760FB7DF839B7603B03A86098FC5C4DD80BAB6E73FB7622819E203DFC27DAF0F3876EE85E3D43398D99CE80C9A9BFA3AC2E270C745A3D2018E237E42E47D812677A6BDF4730D2FA52787BBF03907A0A29431E8EC6CB50B6A2D7EFC84678330B61EAB77F9224912194142602BC9B689D3D1EF8C2E225654B8D3A13C97CA2C073D5D472C8151B8674733BD53B34448CDB6360CB74D19817BB01909826B47CAFFC83F26C4C884232D63DFA3A1B6B5167D168744441840930B2715265307A5812A14FCEC0EAB9E1DB4CC8291116902BB', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516789125548, 3854501024635116538, -5610188281931116743, 0, 0, 1795902812201, NULL, 702, NULL, NULL, 'Deposit-02', X'C76068741F0643B46FB9C80F87169BC3', 'https://acme.example/cb', X'010200F14F0E599ACB9674520EA0569F175B5898208914430B4ACA90EE5965A6E8965E61AE6D9969D493B3C3016F5DC85F357D69EA46901567DABE923C05B7FAFD90D854F2A5F4C9E2622230985E9713D014E61399133208A4539859774FD5343F8EAA12183367BFEB37BD639945F6458C9825360138562770A42A244AA19FE0F788CE2EED4C7A913B71FF49E459CA873C305609969A0D62D1EA0D9E9FB7ABB1B54FF83A57D00851864A4ECF015387680A079423E3159D5654C2AEB0B2D4345469CDD4AAB50FDE2089F322907C1C86B5355936333B9B3F7F114C9CAE27FF2BFD021ADAF913132F088CC1EBBA6419907D69E7326DAD9742491CC8E19E57052F4207A6B0FC2286BEF80516B3A532A9465DD82CE23E5E4499DB0C8223DDA016FA6841D59E882F9BF5F316512E2731AE134E891261BA0D4A782DDC102DD56D06331066DC4B30A05520F0', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516805906176, -7477065179740733783, -5610188281931116743, 1, 1, 1795902812205, 1795902812258, 700, NULL, NULL, 'Withdrawal-00', X'38020E3C76EF7FCA604BA5994D2F4CC6', 'https://acme.example/cb', X'0102009D3D949E9E2D3D128988CE9AF1904CDCD0FD883BFD469C951A0D48F0BEDC44904E004CF628369CD165AFB29AF611995A8AE8DFA88D7D', NULL, NULL, NULL, NULL, 1, 1795902812258, 0, NULL, NULL);
INSERT INTO operations VALUES (252552516822681783, -7477065179740733783, -5610188281931116743, 2, 0, 1795902812209, 1795902812209, 701, NULL, NULL, 'Withdrawal-01', X'0ECF57978DE016ECEE2789C33BF6E6B0', 'https://acme.example/cb', X'010200D490E2E90B26F5B27AFB40AB7724AC3E4C774E3195B2F32A770B5C27DF884A1E812EE38004477FC58FBBEB5F087880D5D9CF8780E693', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252552516835266480, -7477065179740733783, -5610188281931116743, 0, 1, 1795902812212, NULL, 702, NULL, NULL, 'Withdrawal-02', X'04AA0A878496C9B7BCF9598752A3A4A4', 'https://acme.example/cb', X'010200B08E877735C19E4D772BA9B9C3BA25D0682D6E076BB9772379261CC52773596B174372DA5E1B4B2E2B21F1AC6F6CA4AA88A086490469', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
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
INSERT INTO entries VALUES (252552516696850645, 2, 'EUR', 2, -700, 'acme', 1795902812179);
INSERT INTO entries VALUES (252552516696850645, 2, 'EUR', 3, 700, 'acme', 1795902812179);
INSERT INTO entries VALUES (252552516696850645, 3, 'EUR', 0, 700, 'acme', 1795902812232);
INSERT INTO entries VALUES (252552516696850645, 3, 'EUR', 3, -700, 'acme', 1795902812232);
INSERT INTO entries VALUES (252552516742991768, 2, 'EUR', 2, -702, 'acme', 1795902812190);
INSERT INTO entries VALUES (252552516742991768, 2, 'EUR', 3, 702, 'acme', 1795902812190);
INSERT INTO entries VALUES (252552516805906176, 2, 'EUR', 2, -700, 'acme', 1795902812205);
INSERT INTO entries VALUES (252552516805906176, 2, 'EUR', 3, 700, 'acme', 1795902812205);
INSERT INTO entries VALUES (252552516805906176, 3, 'EUR', 0, 700, 'acme', 1795902812258);
INSERT INTO entries VALUES (252552516805906176, 3, 'EUR', 3, -700, 'acme', 1795902812258);
INSERT INTO entries VALUES (252552516835266480, 2, 'EUR', 2, -702, 'acme', 1795902812212);
INSERT INTO entries VALUES (252552516835266480, 2, 'EUR', 3, 702, 'acme', 1795902812212);
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
INSERT INTO tasks VALUES (1, 252552516663299966, 'acme https://acme.example:443', 1795902812171, 0, 1795902814919, 1, NULL);
INSERT INTO tasks VALUES (1, 252552516696850645, 'acme https://acme.example:443', 1795902812232, 0, 1795902817130, 1, NULL);
INSERT INTO tasks VALUES (1, 252552516726213212, 'acme https://acme.example:443', 1795902812186, 0, 1795902816450, 1, NULL);
INSERT INTO tasks VALUES (1, 252552516772350890, 'acme https://acme.example:443', 1795902812197, 0, 1795902816537, 1, NULL);
INSERT INTO tasks VALUES (1, 252552516805906176, 'acme https://acme.example:443', 1795902812258, 0, 1795902812258, 0, NULL);
INSERT INTO tasks VALUES (1, 252552516822681783, 'acme https://acme.example:443', 1795902812209, 0, 1795902816191, 1, NULL);
INSERT INTO tasks VALUES (2, 252552516742991768, 'card-eur', 1795902812190, 0, 1795902812243, 1, NULL);
INSERT INTO tasks VALUES (2, 252552516835266480, 'card-eur', 1795902812212, 0, 1795902812264, 1, NULL);
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
INSERT INTO callbacks VALUES (252552516663299966, -2935567148451481136, 'acme', 'https://acme.example:443', 0, 1795902812171, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252552516696850645, 3809461978292694980, 'acme', 'https://acme.example:443', 0, 1795902812232, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252552516726213212, 598305340215936756, 'acme', 'https://acme.example:443', 0, 1795902812186, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252552516772350890, -3201727645519298548, 'acme', 'https://acme.example:443', 0, 1795902812197, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252552516805906176, -8598182649872670305, 'acme', 'https://acme.example:443', 0, 1795902812258, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252552516822681783, -9126377066887518424, 'acme', 'https://acme.example:443', 0, 1795902812209, 1, NULL, 'name not found');
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
INSERT INTO callback_tries VALUES (252552516663299966, 1, 1795902812179, 47208, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252552516696850645, 1, 1795902812236, 1245, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252552516726213212, 1, 1795902812192, 34401, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252552516772350890, 1, 1795902812202, 24255, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252552516822681783, 1, 1795902812217, 9206, NULL, 'name not found');
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
INSERT INTO actions VALUES (252552517354459149, 1795902812336, 1795902812339, 'cli:0', '', '', 'c119f4a0ffd96020a99f23a7ed2395a9', 'ids.import', 'acme', '{"file":"/tmp/.tmpd2mnTs/ids.txt","kind":"payin","lines":"1"}', 'cc750c21a9ac42e5', X'6B9678836F1F6510BD308DC1B945BB59', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
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
