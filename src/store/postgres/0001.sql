-- Every key of what belongs to a merchant begins with the bucket (0 to 1023, a hash of the merchant), so that tables can be
-- partitioned by it, and spread over machines. A transaction_id names its bucket in bits 12 to 21. Times are milliseconds since 1970, amounts hundredths. Text is compared byte by byte.

CREATE TABLE data_keys (
  id      integer PRIMARY KEY,
  purpose text NOT NULL,                      -- seal | compare
  wrapped bytea NOT NULL                      -- store::vault
);

-- Until 0.1.0: the hash of this schema and of what fingerprints are made of (store::format).
CREATE TABLE format (
  hash bytea NOT NULL
);

-- What many operations have in common: one row for every combination that there is.
CREATE TABLE contexts (
  id             bigint NOT NULL,             -- from the keyed hash of all the others
  bucket         smallint NOT NULL,
  direction      smallint NOT NULL,           -- 0 payin, 1 payout
  provider       smallint NOT NULL,           -- 0 sandbox, 1 http
  origin         smallint NOT NULL,           -- 0 v2; 1 v1, told by the engine; 2 v1, told by the relay
  merchant       text COLLATE "C" NOT NULL,
  api_key        text NOT NULL,
  shop           text COLLATE "C" NOT NULL,   -- the selected shop
  currency       text COLLATE "C" NOT NULL,
  method         text,                        -- the shop that the request named
  payment_method text,
  kept           text,                        -- JSON array of the names that the schema kept, sorted; NULL: there was no schema
  PRIMARY KEY (bucket, id)
);

-- A store that is the unfinished copy of another one: its tables, and how many rows each has by now. No gateway serves it.
-- Empty else.
CREATE TABLE copying (
  name   text PRIMARY KEY,
  copied bigint NOT NULL
);

-- Written to prove that the store can commit.
CREATE TABLE probe (
  id    integer PRIMARY KEY CHECK (id = 1),
  count bigint NOT NULL
);
INSERT INTO probe VALUES (1, 0);

-- Where the order of a merchant, direction and order_id lives, for ever.
CREATE TABLE homes (
  ref       bigint NOT NULL,                  -- operations.transaction_id, journal.entry, when it was claimed or imported
  bucket    smallint NOT NULL,
  home      smallint NOT NULL,                -- 0 an operation, 1 an entry of the journal, 3 the old v1 service
  order_key bytea NOT NULL,                   -- keyed hash of the three, 16 bytes
  PRIMARY KEY (bucket, order_key)
);

CREATE TABLE operations (
  transaction_id      bigint NOT NULL,        -- ascends with time
  context             bigint NOT NULL,        -- contexts.id
  listed              bigint,                 -- the number of the merchant on whose v1 list it is; NULL: made through v2
  created_at          bigint NOT NULL,
  finished_at         bigint,                 -- NULL while PENDING
  amount              bigint NOT NULL,
  customer_account_id bigint,
  counted_day         integer,                -- the day under which it counts in daily_usage; NULL: it does not
  bucket              smallint NOT NULL,
  status              smallint NOT NULL,      -- 0 PENDING, 1 SUCCESS, 2 FAILED
  order_id            text COLLATE "C" NOT NULL,
  fingerprint              bytea NOT NULL,         -- keyed hash of the canonical request, or of the v1 body that it came from, 16 bytes
  callback_url        text,                   -- where its result is told; NULL: nobody is
  sealed              bytea NOT NULL,         -- store::rows::details
  payer               bytea,                  -- sealed
  PRIMARY KEY (bucket, transaction_id),
  CONSTRAINT finished_when_it_has_a_result CHECK ((status = 0) = (finished_at IS NULL))
);

-- A row of it on its way. What adds a column makes another type beside this one, which nodes of the older release go on to use.
CREATE TYPE new_operation AS (
  transaction_id bigint,
  context bigint,
  listed bigint,
  created_at bigint,
  finished_at bigint,
  amount bigint,
  customer_account_id bigint,
  counted_day integer,
  bucket smallint,
  status smallint,
  order_key bytea,
  order_id text,
  fingerprint bytea,
  callback_url text,
  sealed bytea,
  payer bytea
);

-- A merchant's v1 list, newest last. It holds all that the list is filtered by: entries that are left out cost no look at
-- their rows, once they were vacuumed. Native operations are not in it.
CREATE INDEX v1_list ON operations (bucket, listed, transaction_id, context, status) WHERE listed IS NOT NULL;

-- The double-entry ledger: two rows a posting, which sum to zero. Its key makes a second posting of a kind for the same
-- operation impossible.
CREATE TABLE entries (
  transaction_id bigint NOT NULL,             -- of an opening: the operation in whose commit it was booked, or a number below zero
  amount         bigint NOT NULL,             -- signed
  booked_at      bigint NOT NULL,
  bucket         smallint NOT NULL,
  posting        smallint NOT NULL,           -- 0 opened, 1 credited, 2 held, 3 taken, 4 released
  account        smallint NOT NULL,           -- 0 outside, 1 opening, 2 available, 3 held
  currency       text COLLATE "C" NOT NULL,
  merchant       text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, transaction_id, posting, currency, account)
);

-- A balance is its row here and the changes that were not folded into it yet. Whoever has to decide by a balance locks the
-- row; everybody else only adds a change, and waits for nobody.
CREATE TABLE accounts (
  balance  bigint NOT NULL,
  bucket   smallint NOT NULL,
  account  smallint NOT NULL,
  merchant text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, merchant, currency, account)
);

CREATE TABLE balance_changes (
  amount   bigint NOT NULL,
  bucket   smallint NOT NULL,
  account  smallint NOT NULL,
  merchant text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL
);
CREATE INDEX balance_changes_by_account ON balance_changes (bucket, merchant, currency, account);

-- Merchants that are known: they have operations, or their ledger was opened before.
CREATE TABLE merchants (
  bucket   smallint NOT NULL,
  merchant text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, merchant)
);

-- What customers did on a UTC day (days since 1970), counted for their limits; old days are removed.
CREATE TABLE daily_usage (
  operations          bigint NOT NULL,
  amount              bigint NOT NULL,
  customer_account_id bigint NOT NULL,
  day                 integer NOT NULL,
  bucket              smallint NOT NULL,
  direction           smallint NOT NULL,
  merchant            text COLLATE "C" NOT NULL,
  shop                text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, day, merchant, shop, direction, customer_account_id)
);

-- What has to be done, by when, and who is at it. Rows leave when the work ends.
CREATE TABLE tasks (
  key       bigint NOT NULL,                  -- operations.transaction_id, or journal.entry below zero
  queued_at bigint NOT NULL,                  -- or queued anew
  due_at    bigint NOT NULL,
  attempts  integer NOT NULL,                 -- claims since it was queued
  bucket    smallint NOT NULL,
  kind      smallint NOT NULL,                -- 0 a provider has to be asked, 1 a merchant has to be told
  leased    boolean NOT NULL,                 -- claimed, and due_at is the end of the lease
  queue     text COLLATE "C" NOT NULL,        -- the shop; callbacks.merchant, a space, callbacks.target
  PRIMARY KEY (bucket, kind, key)
);
-- Claims ask for a queue's work in all buckets.
CREATE INDEX tasks_by_due ON tasks (kind, queue, due_at, key);
-- Jobs that providers do not answer; it has none while they do.
CREATE INDEX tasks_retried ON tasks (queued_at) WHERE kind = 0 AND attempts > 2;

-- How customers of pending deposits go on.
CREATE TABLE preparations (
  transaction_id bigint NOT NULL,
  bucket         smallint NOT NULL,
  sealed         bytea NOT NULL,
  PRIMARY KEY (bucket, transaction_id)
);

-- What passed through this gateway to a remote engine: written before the request leaves.
CREATE TABLE journal (
  entry           bigint NOT NULL,            -- made as a transaction_id is: ascends with time and names its bucket
  created_at      bigint NOT NULL,
  doubted_at      bigint,                     -- when a request for it was last given up, or sent again
  amount          bigint NOT NULL,
  bucket          smallint NOT NULL,
  direction       smallint NOT NULL,          -- 0 payin, 1 payout
  state           smallint NOT NULL,          -- 0 open, 1 in doubt, 2 answered
  status          smallint NOT NULL,          -- as last heard of the engine: 0 PENDING, 1 SUCCESS, 2 FAILED
  order_key       bytea NOT NULL,             -- of its home
  fingerprint          bytea NOT NULL,             -- as operations.fingerprint
  currency        text COLLATE "C" NOT NULL,
  merchant        text COLLATE "C" NOT NULL,
  order_id        text COLLATE "C" NOT NULL,
  api_key         text NOT NULL,
  shop            text COLLATE "C" NOT NULL,  -- the selected shop; '' where it is not known
  v1_callback_url text,
  transaction_id  text COLLATE "C",           -- the engine's; NULL until it answered
  redirect_url    text,
  account         bytea,                      -- sealed: as last heard of the engine
  body            bytea NOT NULL,             -- sealed: the v2 body to be sent again, by which conflicts are told apart, too
  PRIMARY KEY (bucket, entry)
);
CREATE INDEX journal_by_transaction ON journal (transaction_id) WHERE transaction_id IS NOT NULL;
CREATE INDEX journal_open ON journal (entry) WHERE state = 0;
CREATE INDEX journal_in_doubt ON journal (entry) WHERE state = 1;
CREATE INDEX journal_by_v1 ON journal (bucket, merchant, created_at, entry, direction, shop, currency, status)
  WHERE state = 2;

-- What merchants are told, queued with the result, and what became of it. A pending one has a task.
CREATE TABLE callbacks (
  key         bigint NOT NULL,                -- as tasks.key
  nonce       bigint NOT NULL,                -- random: with the key, the callback's name
  queued_at   bigint NOT NULL,                -- or last resent
  tries       bigint NOT NULL,                -- in all
  bucket      smallint NOT NULL,
  state       smallint NOT NULL,              -- 0 pending, 1 delivered, 2 failed
  last_status integer,                        -- of the last try that counted; NULL: none was answered
  merchant    text COLLATE "C" NOT NULL,
  target      text COLLATE "C" NOT NULL,      -- scheme, host and port; 'engine': a remote engine tells the status first
  last_error  text,                           -- why it was not answered, or given up without a try
  PRIMARY KEY (bucket, key)
);
-- Lists and ages ask in all buckets, or of a merchant.
CREATE INDEX callbacks_by_time ON callbacks (state, queued_at, key);
CREATE INDEX callbacks_by_merchant ON callbacks (bucket, merchant, state, queued_at, key);

-- A callback's latest tries, by their number.
CREATE TABLE callback_tries (
  key         bigint NOT NULL,
  began_at    bigint NOT NULL,
  duration_us bigint NOT NULL,
  number      bigint NOT NULL,                -- from 1
  bucket      smallint NOT NULL,
  status      integer,                        -- of these two, one
  error       text,
  PRIMARY KEY (bucket, key, number)
);

-- Until when callbacks were queued of which those that were delivered or given up may be forgotten. Empty: none was.
CREATE TABLE forgotten (
  id    integer PRIMARY KEY CHECK (id = 1),
  until bigint NOT NULL
);

-- Creates that were checked without being made, counted by merchant and by the rules that they were checked by.
CREATE TABLE check_counts (
  count      bigint NOT NULL,
  since      bigint NOT NULL,                 -- when the first of them was checked
  updated_at bigint NOT NULL,
  bucket     smallint NOT NULL,
  direction  smallint NOT NULL,               -- 0 payin, 1 payout
  class      smallint NOT NULL,               -- store::checks::CheckClass
  merchant   text COLLATE "C" NOT NULL,
  rules      bytea NOT NULL,                  -- hash of the merchant's rules, 16 bytes
  id         bytea NOT NULL,                  -- keyed hash of what the class counts, by whom and why, 16 bytes
  shop       text COLLATE "C" NOT NULL,       -- '': no shop of the rules
  member     text NOT NULL,                   -- of the v1 body; '' where the class has none
  reason     text NOT NULL,
  file       text NOT NULL,                   -- of the rule to change; '' where there is none
  key        text NOT NULL,
  samples    text NOT NULL,                   -- JSON array of JSON texts: names, lengths and shapes, never values
  PRIMARY KEY (bucket, merchant, rules, id)
);

-- The merchants of which all ids that the old v1 service has were imported, by direction.
CREATE TABLE complete_ids (
  complete_at bigint NOT NULL,
  bucket      smallint NOT NULL,
  direction   smallint NOT NULL,              -- 0 payin, 1 payout
  merchant    text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket, merchant, direction)
);

-- What operators did, and commands that change something: written before it takes effect. Never deleted. It belongs to no
-- merchant, and so to no bucket.
CREATE TABLE actions (
  id            bigint PRIMARY KEY,           -- ascends with time, as a transaction_id does
  began_at      bigint NOT NULL,
  ended_at      bigint,                       -- NULL: it is unfinished
  user_name     text COLLATE "C" NOT NULL,
  role          text NOT NULL,                -- '': of a command, as the address
  address       text NOT NULL,
  request_id    text NOT NULL,
  action        text COLLATE "C" NOT NULL,    -- its kind
  target        text NOT NULL,
  parameters    text NOT NULL,                -- JSON object of texts
  rules_version text NOT NULL,
  form          bytea,                        -- the one-time key of the form that was sent, 16 bytes; NULL: there was none
  outcome       text,                         -- for people
  CONSTRAINT ended_when_it_has_an_outcome CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX actions_by_form ON actions (form) WHERE form IS NOT NULL;
CREATE INDEX actions_by_user ON actions (user_name, id);
CREATE INDEX actions_by_action ON actions (action, id);
CREATE INDEX actions_by_both ON actions (user_name, action, id);

-- Queues turn over all the time: what was deleted is to be cleaned away while it is little.
ALTER TABLE tasks           SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
-- Each callback leaves the index of those that are pending once.
ALTER TABLE callbacks       SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
ALTER TABLE balance_changes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
