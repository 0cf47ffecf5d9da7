PRAGMA application_id = 1346531943;
PRAGMA user_version = 1;
CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- see store::vault
) STRICT;
INSERT INTO data_keys VALUES (1, 'compare', X'0103654D424834965C00273118766C0A5AA5C21483F32FA2A4EC48D001838FA6A865DB8B760759E8206D7C9F268B49189F303D20CE665D397DBCAB5254');
INSERT INTO data_keys VALUES (2, 'seal', X'01D94213077BD18E5D91DE71CEFB255C01938A9A87DD74D92EDF68010AB4EF1F4113FF9614E27D9E7410389BAE1E9673A64E295136AB317C89C6798577');
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
INSERT INTO paybridge_formats VALUES (1, 2, '0.1.0', X'2CA27C8F0D81BC7354FF4247E089C803');
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
INSERT INTO contexts VALUES (-9130251734209384854, 1, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (-674657573315976147, 1, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["holder","last_name","merchant_user_ip"]');
INSERT INTO contexts VALUES (1114171264785726946, 0, 0, 2, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
INSERT INTO contexts VALUES (5445058668592840344, 0, 0, 0, 'acme', 'acme-live', 'card-eur', 'EUR', 'card-eur', 'card', '["bank_code","card","channel","email","extra","first_name","level","merchant_user_ip","phone","ratio"]');
CREATE INDEX contexts_by_merchant ON contexts (merchant);
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  ref       INTEGER NOT NULL                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
) STRICT, WITHOUT ROWID;
INSERT INTO homes VALUES (X'6D3E9663F8703418242A084C39B79B56', 0, 252306919997885231);
INSERT INTO homes VALUES (X'6D3E9663F87071202CA7B129EE774EB0', 0, 252306919960136367);
INSERT INTO homes VALUES (X'6D3E9663F870D96BF70BC79400DB4975', 0, 252306920018857296);
INSERT INTO homes VALUES (X'739F2E628E252C41266E7DB2798B8097', 0, 252306920098545955);
INSERT INTO homes VALUES (X'739F2E628E255BB396BE521C62F034FE', 0, 252306920127908760);
INSERT INTO homes VALUES (X'739F2E628E2566E53A57E910F12A16C4', 0, 252306920148881346);
INSERT INTO homes VALUES (X'B7131D119A87E31CD6F015D6A85DF00F', 3, 252306920740274176);
INSERT INTO homes VALUES (X'F63305F54557B72EAE9857CE1F24E7B2', 0, 252306920174045198);
INSERT INTO homes VALUES (X'F63305F54557E86A9C5AD7F8ECD8247C', 0, 252306920215988172);
INSERT INTO homes VALUES (X'F63305F54557F6CEEA63EAB1C763CC66', 0, 252306920199210462);
INSERT INTO homes VALUES (X'F8D329589A4C5D381101306BA8C8CABC', 0, 252306920056606038);
INSERT INTO homes VALUES (X'F8D329589A4C9D07CB810AE64DCA6CA6', 0, 252306920035632345);
INSERT INTO homes VALUES (X'F8D329589A4CB9AE716F55C0E1DD7054', 0, 252306920073380746);
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
INSERT INTO operations VALUES (252306919960136367, 1114171264785726946, 6595850588526949570, 0, 1795844257354, NULL, 700, 42, NULL, 'Payin-00', X'1541E6748959D326CB51BA471D662DB6', 'https://acme.example/cb', X'0102003F476952C2E8728CEC20641F7F4DA381E79BC0A534BEA5AA284A364A66102E447C46AB2981DC8C808BBFC940397508E5F5918FEA64F6ABB412DC587F5CB5BAF4BFD781A4CD4F8B30AD0CA92AFF90D0EFD1022948A3351A9666E018DE20B87C4E8983EE16DC35150732804BA33B06410E6E136160CB92EBF8F1C6234C59482A92EAA6532415AB0D36179C3A588DE3C1BEA56299B8764048939C18834AAB7E6CE48E18042AEC826EC830724962DAA1F1FE73E8A80587197E1DE4BB0924981BA9483BA4EBC5013E0EAD0B4C038818D67BC086BB72C78529CA05D4A7614BD84C20294F8BC317B33D2DA411B94FE47E16326DC61FEE878B757C1F38761B060738F7ACF0E8AD01AA5FE3DC8FF965B0CDB6F93DCAFEEB4F47F360DF0FC89494AEA375148F8B3BE38A819AFA00D8809338040592B8EB007BB1480745E28F2B536C58405E334D0476B0CDD49719B316A39C3068658814E0CBD6382FD41A83A2EE582D009C64E9E867', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306919997885231, 1114171264785726946, 6595850588526949570, 2, 1795844257363, 1795844257363, 701, 42, NULL, 'Payin-01', X'0930FB010748C5BBC0DBCB558FF194B7', 'https://acme.example/cb', X'010200652CDB4EF90322CC508A03F620B9B1BE285FC751BA265332414E2D662D24C42D7531A924676CF46F62000D7DA89A8FC1538A5C9DB76CDAC580D7AAC8FA16F238BE64D18DC9EE8057E9A2A4D7D660353C28839CC63B6C6E3D9EDDA598923562DDF2BE49A0F3F0164A0B13D029DE4C7E602D6F625B2D74EE59098D07D6D30B73A952098AB818BB15B16BF3EF74BA9D642C14A6A806C00B1F79B2DA24D6E50EB7AA226D9955212EFC9D67F5D750C2BF2913F0167FD7A9B7E345F842BF091BB99BC5B4CAF3443AE1474CA5984E110A316BD8897FF898D703CEC9034DDAD5540857F9B341858D2EB78016B46DBF642242A95FC52A0512CE610F945C2D29BCBD6E1B3D186D1EC0C49B900CC232B581B1B17C2745DCFD5707DE80AAE266C05EE0CF01A5A716C66DDC973E8C9E514F374C90035C996B1C9F7D338C4E72081778876CD49514B930AD40E3C509B405DA77684EC412D471551C3EAAB07168620A8BA2F8AF959444BBB8', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920018857296, 1114171264785726946, 6595850588526949570, 0, 1795844257368, NULL, 702, 42, NULL, 'Payin-02', X'0ECBB9F50081FA2A28909293182931BC', 'https://acme.example/cb', X'0102000D6287AE655185DD28DF06A946957499BE445E41C8FEA3E02EA4DBDCB22BFECDFD2027509704A9674DC4E1334DAFFCCCE9ABFD174C5A4CE23F71F70885FFD14FDBBF5ABC1933824B3BE8E2BBF4EEEDCA7D02BA4B34CFBC03D79A57343283C19AE7A488D38B49E832378EC86A16C6163B669C12635D5B07A4B4B372BA37DE659D5521292B403417C128010588C58123945695123425BAB30F7492DCDF17B305D2B7C3A6CF2183DA9830C97E03AAC8AA705ADD50C9DA57B025C86803A4198E1291AE43671C725F68033597BB77D206F4D4E34B5C8A69DE96154FC6DAA1B774621A2DE2D561E0B93AF2C22E8C6A2895D9BE2F8763FCB0053616AAA528CB71A7622E0BC5D1ABC17D92554AFAB04FB58A5BC7B363F8DA64BBEB2E21C2E6C573B212C7AD3A0630832CE7E68CE1F8149AB7F5434CBEAF15BD6E7D5658C9627E7A0B4F4DFD36053EA6AE1D93CD3AC4CB596525E0FB196490346A6E835A175D5B618B8F32396E2AD9', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920035632345, -674657573315976147, 6595850588526949570, 1, 1795844257372, 1795844257443, 700, NULL, NULL, 'Payout-00', X'BFD7B0554479F6B0181F7202316FE6AE', 'https://acme.example/cb', X'01020054BD775C2746B8205122CACEFF36CFD708F0A4B7C7D07548444A5AF001A9BEB35D2A6AF57687B82DCE7FDD3270DD85256B624DB1BBE4976FCCF038521B7BE4702133504DDFA75245FF94BAAAC75E8298A1BE6EBBEE9CBF2E9F8DE6C31CAE6C99147AD7E7E8A3A88CEA0E74BFCB0073B2DDB69DDE2F72626E32D4D363AB38A44D', NULL, NULL, NULL, NULL, 1, 1795844257443, NULL);
INSERT INTO operations VALUES (252306920056606038, -674657573315976147, 6595850588526949570, 2, 1795844257377, 1795844257377, 701, NULL, NULL, 'Payout-01', X'9603E4D41FA6DA757E18064DC20B1FF9', 'https://acme.example/cb', X'010200D8B19140E91E41BE4D2EA86BDFFBCEAAB962E0C933FF8A2E1A0904EA544D6FC95066911A88A04F1E6CD7B1A3F52CD554F76F73BB29A1CEAD3B49AF18D7C2CF0B02161294851A09FC4D96E10B1584CE80229139E941E5F4516AC051B627995D5737E778F8E7491752F60DAE2B1C2FE39E6530B38C23096DE377D87E30E864B390', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920073380746, -674657573315976147, 6595850588526949570, 0, 1795844257381, NULL, 702, NULL, NULL, 'Payout-02', X'0132500E729E9C8936E41718C9B9C558', 'https://acme.example/cb', X'010200B808A05C443A5FDC17AA7ED4EEB7DF6818AF94B4A7FF2156740CF64EF3601188D51586C1202FB4AE5D5429859FCE179C435C179F90C7BB1CDFA8CADEF12ED38F01E462FA17B95549472124999B781FD6CAB6C049A1DA4991CBEB5D01C13DBFFE46E291B91F085CFBF3662CA7D21DE919E7227B83565D5C0806B537526BC22B91', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920098545955, 5445058668592840344, -6595850588526949571, 0, 1795844257387, NULL, 700, NULL, NULL, 'Deposit-00', X'CBE66B6B179B92AA6021655796EE4A3F', 'https://acme.example/cb', X'01020038A7D1E76988EEC658436F486E5792D6FF0EA014C1588C1FF01DEAEA0674928C782CE7A6A2D5BF4E75A61B72D8DEA3FAA9364F76F56F97C3387FFAD3ACBAA5151715D5C51F199072B6FFEA7D56DBC311AD1D6077DF8BA1E24AD402CCAAF309A1196FB7683FCB0136AB52EB6EC453D5BDB33DD3A35E84E49DFF0DA58E25BE9FCABABC2D56DDCCFB8EC22D25457BC7B54914FC9355998818F39A940CED8B41EFAD8EDD9059C2AEE77C5686A3643BE5E5E952648527EBBB5A55721A891F74E8448FFEF6D574A18F636780890BBB24A9CECFD9DA66669D06A5EE4CA0D37DAE7C0E21C3AEDCD0BDAFE1E7704B16ED16979F86A4168B76B0985B43A2B4765B4C47BB3D5AA1304146D9717223EDF663D0DAB726EA6B05DC7267E2B0E16E4276ACF4E0EE31C717C9A18427410949CE03088B0BCE5CBCF69EC5569F0FD5C7B371710DD649FAEC2D7CCA', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920127908760, 5445058668592840344, -6595850588526949571, 2, 1795844257394, 1795844257394, 701, NULL, NULL, 'Deposit-01', X'DFA5ACECA4D8EF9584047BBFCA7A2024', 'https://acme.example/cb', X'010200D2A0F75FF05195D2447C4B78545AB8671B81D2982A1BE2CDD1873A879C0F50C0B15E3137C07050B3076559852961EA6A44B817D4EAE70F04AAB9E319E372C02C021F8C78726754E0C5A708D2B022E51893A2F683F5AAF639FF7189865A02F3700AF27B30104F5AFEB8E2E0C9D6CCE2E54DA42B1854543FA8BC71E6FD1C6D4A9FA6FD535286A7C64303300F59BC840373647F63DCA8FC13F448C05988FDCBFE05C929FACFAF85A729B44AF55268250A0B384F262D178248EE8F278227D417A65DF7598C6AA17A1EAA8DB5C2FA2CECB2FA288F6771A2EC099DAB41A76A5F1FB12F5D997610E37E09F7F67427250C1319890CE3198793C21B1C64E83D5E536793BDD6857FB663133BDAB44B7A2C63B64CBFA9403281FE855B4EC02AC50B72412F930AB19BE058A6C5033AF0F09830C03D2141DCD1AA4B2DFEADCB6C9E4F81AB833158E4E6F400', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920148881346, 5445058668592840344, -6595850588526949571, 0, 1795844257399, NULL, 702, NULL, NULL, 'Deposit-02', X'F719B9E4BCD2FEDA44FC8F65DEBF1AD9', 'https://acme.example/cb', X'010200591D3BCA4828D7AB3E57C711208E3D8440F79121AD34BE45E49D41E6824D500E4BB5B2138D95807F5524BB028B1C78EB7A2A815EA62D6F4824C31239B622F4310E3798F9F4A707D606E6D024094D867E85B34A276C448B00C3E752CC066CA39B79F40E72196DE4AC89F73CDBE90A0284C13B20CA388BB04F3466C6FDF23C13EC425399FF341B1E071C3F1C031998C3C27A67A045B5C33B8C4F830EA05F6B01E8759BECEB066769FBEFBE76EB39F0681FDCC47FC4150317099C2567029BA8DB2F4C0DB1021088E6F47CDAB7E1A2A87FB3C871DE7C11E3B824938B1EB1966E0D6FCD2C11ED45F8820F6E5773A6A6B9928BD54AA7AED3C974FF5926ED04954274213C5FE563A49718E3A3874A3FE6863C23E3A7757AA5ED8A4E86C4D4B8C7587D7BD336CFCD256F0C0684350AF15173C18E2239DBDEA09CA38E97862AE2A23C9F4EB1B2E2E19F', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920174045198, -9130251734209384854, -6595850588526949571, 1, 1795844257405, 1795844257458, 700, NULL, NULL, 'Withdrawal-00', X'74AC7F7347E083B11D3959BE318ED95E', 'https://acme.example/cb', X'01020064DC2A6E3268A573305E4ABE5BD59291033EEC5F23E6837A97E2C6260F022FCC5807782CB1B8DA3BF65959FCAA99277DDDCB68381DC6', NULL, NULL, NULL, NULL, 1, 1795844257458, NULL);
INSERT INTO operations VALUES (252306920199210462, -9130251734209384854, -6595850588526949571, 2, 1795844257411, 1795844257411, 701, NULL, NULL, 'Withdrawal-01', X'DDFF8C9B24F40F97B056AB5C9C8C9658', 'https://acme.example/cb', X'01020069C99AAA448FBE27F072B6977DF408422733B16FFFC1AAAB376DC3A715FF1AFB0C70E4911FCB580D0472638F31EF5163F07865A799AD', NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO operations VALUES (252306920215988172, -9130251734209384854, -6595850588526949571, 0, 1795844257415, NULL, 702, NULL, NULL, 'Withdrawal-02', X'C5A82BC3E4E31EEF8F7BE2D4AD7F5671', 'https://acme.example/cb', X'010200AD6C1F11E6B3F433BE03B65AD8B496EC7F34D28AD11373F85A3C8C4C93573CBA252CB448C9C1BA0A3A1FBCA4B9C7313D4B581A18E4CE', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
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
INSERT INTO entries VALUES (252306920035632345, 2, 'EUR', 2, -700, 'acme', 1795844257372);
INSERT INTO entries VALUES (252306920035632345, 2, 'EUR', 3, 700, 'acme', 1795844257372);
INSERT INTO entries VALUES (252306920035632345, 3, 'EUR', 0, 700, 'acme', 1795844257443);
INSERT INTO entries VALUES (252306920035632345, 3, 'EUR', 3, -700, 'acme', 1795844257443);
INSERT INTO entries VALUES (252306920073380746, 2, 'EUR', 2, -702, 'acme', 1795844257381);
INSERT INTO entries VALUES (252306920073380746, 2, 'EUR', 3, 702, 'acme', 1795844257381);
INSERT INTO entries VALUES (252306920174045198, 2, 'EUR', 2, -700, 'acme', 1795844257405);
INSERT INTO entries VALUES (252306920174045198, 2, 'EUR', 3, 700, 'acme', 1795844257405);
INSERT INTO entries VALUES (252306920174045198, 3, 'EUR', 0, 700, 'acme', 1795844257458);
INSERT INTO entries VALUES (252306920174045198, 3, 'EUR', 3, -700, 'acme', 1795844257458);
INSERT INTO entries VALUES (252306920215988172, 2, 'EUR', 2, -702, 'acme', 1795844257415);
INSERT INTO entries VALUES (252306920215988172, 2, 'EUR', 3, 702, 'acme', 1795844257415);
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
INSERT INTO tasks VALUES (1, 252306919997885231, 'acme https://acme.example:443', 1795844257363, 0, 1795844260392, 1);
INSERT INTO tasks VALUES (1, 252306920035632345, 'acme https://acme.example:443', 1795844257443, 0, 1795844262144, 1);
INSERT INTO tasks VALUES (1, 252306920056606038, 'acme https://acme.example:443', 1795844257377, 0, 1795844261625, 1);
INSERT INTO tasks VALUES (1, 252306920127908760, 'acme https://acme.example:443', 1795844257394, 0, 1795844260871, 1);
INSERT INTO tasks VALUES (1, 252306920174045198, 'acme https://acme.example:443', 1795844257458, 0, 1795844257458, 0);
INSERT INTO tasks VALUES (1, 252306920199210462, 'acme https://acme.example:443', 1795844257411, 0, 1795844261132, 1);
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
INSERT INTO callbacks VALUES (252306919997885231, -7480163661290204749, 'acme', 'https://acme.example:443', 0, 1795844257363, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252306920035632345, -7541391202318034750, 'acme', 'https://acme.example:443', 0, 1795844257443, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252306920056606038, 1830074397381338984, 'acme', 'https://acme.example:443', 0, 1795844257377, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252306920127908760, -6002396778492161308, 'acme', 'https://acme.example:443', 0, 1795844257394, 1, NULL, 'name not found');
INSERT INTO callbacks VALUES (252306920174045198, 7206245657832431445, 'acme', 'https://acme.example:443', 0, 1795844257458, 0, NULL, NULL);
INSERT INTO callbacks VALUES (252306920199210462, -5571025921769055881, 'acme', 'https://acme.example:443', 0, 1795844257411, 1, NULL, 'name not found');
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
INSERT INTO callback_tries VALUES (252306919997885231, 1, 1795844257383, 54497, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252306920035632345, 1, 1795844257450, 1611, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252306920056606038, 1, 1795844257383, 54223, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252306920127908760, 1, 1795844257402, 35776, NULL, 'name not found');
INSERT INTO callback_tries VALUES (252306920199210462, 1, 1795844257436, 561, NULL, 'name not found');
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
INSERT INTO actions VALUES (252306920726521361, 1795844257537, 1795844257541, 'cli:0', '', '', 'bcd783763d5406ed31ad348430a22469', 'ids.import', 'acme', '{"file":"/tmp/.tmpHkXd93/ids.txt","kind":"payin","lines":"1"}', '07db9ce285b37044', X'9D5B1E1DFC1EF9068E3715F345F97A4C', '1 new, 0 reserved before, 0 skipped (operations here), 1 line');
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
