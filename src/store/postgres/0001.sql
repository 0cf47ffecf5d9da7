-- The tables of SQLite (../sqlite/0001.sql) with the same columns, ordered by width, so that rows are small; and what several
-- nodes need. Every table of operations is keyed by transaction_id, which ascends with time. Times are milliseconds since 1970,
-- amounts hundredths. Text is compared byte by byte.

CREATE TABLE data_keys (
  id      integer PRIMARY KEY,
  purpose text NOT NULL,                      -- seal | compare
  wrapped bytea NOT NULL                      -- see store::vault
);

-- The time until which a copy of a backup knows orders: it is not served before it was adopted. Empty: no backup, or adopted.
CREATE TABLE backup_mark (
  id          integer PRIMARY KEY CHECK (id = 1),
  known_until bigint NOT NULL
);

-- The formats that the store was given, one after the other (see store::format).
CREATE TABLE paybridge_formats (
  format  bigint PRIMARY KEY,
  state   smallint NOT NULL,                  -- 0 added: releases of the format before serve the store, too; 1 they are locked
                                              -- out; 2 narrowed
  hash    bytea NOT NULL,                     -- of what all formats up to this one do, and of the recipe of fingerprints
  release text NOT NULL,                      -- the release that added it
  CONSTRAINT paybridge_formats_state CHECK (state IN (0, 1, 2))
);

-- The properties that many operations share: one row for each combination.
CREATE TABLE contexts (
  id             bigint PRIMARY KEY,          -- from the keyed hash of the other columns
  direction      smallint NOT NULL,           -- 0 payin, 1 payout
  provider       smallint NOT NULL,           -- 0 sandbox, 1 http
  origin         smallint NOT NULL,           -- 0 v2; 1 v1, called back by the engine; 2 v1, called back through the relay
  merchant       text COLLATE "C" NOT NULL,
  api_key        text NOT NULL,
  shop           text COLLATE "C" NOT NULL,   -- the selected shop
  currency       text COLLATE "C" NOT NULL,
  method         text,                        -- the shop that the request named
  payment_method text,
  kept           text                         -- JSON array of the names that the schema kept, sorted; NULL: no schema
);
CREATE INDEX contexts_by_merchant ON contexts (merchant);

-- The tables of a store that is the unfinished copy of another one, with the count of copied rows. No gateway serves it. Empty:
-- it is no unfinished copy.
CREATE TABLE copying (
  name   text PRIMARY KEY,
  copied bigint NOT NULL
);

-- Updated to prove that the store can commit.
CREATE TABLE probe (
  id    integer PRIMARY KEY CHECK (id = 1),
  count bigint NOT NULL
);
INSERT INTO probe VALUES (1, 0);

-- Where the order of a merchant, direction and order_id is stored, for ever. Six bytes of the key are a hash of all but the
-- last two characters of the order_id, so that orders with consecutive numbers are neighbours.
CREATE TABLE homes (
  ref       bigint NOT NULL,                  -- operations.transaction_id; journal.entry; 2 to 5: when, as a transaction_id
  home      smallint NOT NULL,                -- 0 an operation, 1 a journal entry, 2 the old v1 service (claimed),
                                              -- 3 the old v1 service (imported), 4 a remote engine (native order),
                                              -- 5 nowhere: lost with the store that was restored from a backup
  order_key bytea PRIMARY KEY                 -- keyed hash of the three, 16 bytes
);

CREATE TABLE operations (
  transaction_id      bigint PRIMARY KEY,
  context             bigint NOT NULL,        -- contexts.id
  listed              bigint NOT NULL,        -- the number of the merchant, whose v1 list has it; of v2, its complement
  created_at          bigint NOT NULL,
  finished_at         bigint,                 -- NULL while PENDING
  amount              bigint NOT NULL,
  customer_account_id bigint,
  counted_day         integer,                -- the day for which it counts in daily_usage; NULL: it does not count
  status              smallint NOT NULL,      -- 0 PENDING, 1 SUCCESS, 2 FAILED
  has_job             smallint NOT NULL,      -- 1: made with a provider's job, which tasks has while it is PENDING; else 0
  order_id            text COLLATE "C" NOT NULL,
  fingerprint         bytea NOT NULL,         -- keyed hash of the canonical request or of the v1 body, 16 bytes
  callback_url        text,                   -- the merchant's callback address; NULL: none
  sealed              bytea NOT NULL,         -- see store::rows::details
  payer               bytea,                  -- sealed
  cause               smallint,               -- why it is FAILED: 0 its provider, 1 the customer's address, 2 the customer's account,
                                              -- 3 the daily limit, 4 the balance, 5 an operator
  cause_code          text COLLATE "C",       -- the provider's own words
  cause_text          text COLLATE "C",
  job_attempts        integer,                -- tasks.attempts when its result came; NULL: its provider was not called, or PENDING
  job_ended_at        bigint,                 -- when its provider answered, was given up, or last gave no result; NULL: not known
  job_kind            smallint,               -- tasks.kind then
  job_failure         text COLLATE "C",       -- tasks.failure then
  CONSTRAINT operations_state CHECK (CASE status WHEN 0 THEN finished_at IS NULL AND payer IS NULL AND cause IS NULL
    WHEN 1 THEN finished_at IS NOT NULL AND cause IS NULL
    WHEN 2 THEN finished_at IS NOT NULL AND payer IS NULL AND cause IS NOT NULL ELSE false END),
  CONSTRAINT operations_cause CHECK (coalesce(cause, 1) = 0 OR (cause_code IS NULL AND cause_text IS NULL))
);

-- A new operation with the key of its order, as creates pass it. A release that adds a column adds another type beside this one,
-- which nodes of the older release continue to use.
CREATE TYPE new_operation AS (
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
  cause smallint,
  has_job smallint
);

-- A merchant's operations, but for those of the next two indexes, which cost a create less. The indexes cover the filters of lists, so
-- that skipped operations cost no row once they were vacuumed.
CREATE INDEX operations_by_merchant ON operations (listed, transaction_id, context, status, has_job)
  WHERE status <> 0 OR (listed >= 0 AND has_job = 1);
-- The PENDING ones that were created through v1 without a job, which tasks may lack.
CREATE INDEX pending_v1 ON operations (listed, transaction_id, context, status, has_job)
  WHERE status = 0 AND has_job = 0 AND listed >= 0;
-- The PENDING ones that were created through v2. Those of one merchant are found by passing over the others. An equal sign in
-- this condition or the next one would let the planner pass over all operations by their key instead.
CREATE INDEX pending_v2 ON operations (status, transaction_id, context, listed, has_job) WHERE status < 1 AND listed < 0;
CREATE INDEX operations_failed ON operations (status, transaction_id, context) WHERE status > 1;

-- The double-entry ledger: two entries for each posting, which sum to zero. The key makes a second posting of a kind for the
-- same operation impossible. An opening posts in several currencies.
CREATE TABLE entries (
  transaction_id bigint NOT NULL,             -- the operation; of an opening without one, a number below zero
  amount         bigint NOT NULL,             -- signed
  posted_at      bigint NOT NULL,
  posting        smallint NOT NULL,           -- 0 opened, 1 credited, 2 held, 3 taken, 4 released
  account        smallint NOT NULL,           -- 0 outside, 1 opening, 2 available, 3 held
  currency       text COLLATE "C" NOT NULL,
  merchant       text COLLATE "C" NOT NULL,
  PRIMARY KEY (transaction_id, posting, currency, account)
);

-- A balance is its row here plus the changes that were not folded into it yet. A create that decides by a balance locks the row;
-- all others add changes and wait for no lock.
CREATE TABLE accounts (
  balance  bigint NOT NULL,                   -- signed
  account  smallint NOT NULL,                 -- as entries.account
  merchant text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  PRIMARY KEY (merchant, currency, account)
);

-- One change for each entry, until it is folded.
CREATE TABLE balance_changes (
  transaction_id bigint NOT NULL,             -- as in entries
  amount         bigint NOT NULL,
  posting        smallint NOT NULL,
  account        smallint NOT NULL,
  merchant       text COLLATE "C" NOT NULL,
  currency       text COLLATE "C" NOT NULL,
  PRIMARY KEY (merchant, currency, account, transaction_id, posting)
);

-- The merchants that are known: they have operations, or their ledger was opened.
CREATE TABLE merchants (
  merchant text COLLATE "C" PRIMARY KEY
);

-- The operations of a customer on a UTC day (days since 1970), counted for limits. Old days are deleted.
CREATE TABLE daily_usage (
  operations          bigint NOT NULL,
  amount              bigint NOT NULL,
  customer_account_id bigint NOT NULL,
  day                 integer NOT NULL,
  direction           smallint NOT NULL,      -- 0 payin, 1 payout
  merchant            text COLLATE "C" NOT NULL,
  shop                text COLLATE "C" NOT NULL,
  PRIMARY KEY (day, merchant, shop, direction, customer_account_id)
);

-- The durable task queue. A row is deleted when its work ends.
CREATE TABLE tasks (
  key       bigint NOT NULL,                  -- operations.transaction_id; journal.entry, negated
  queued_at bigint NOT NULL,                  -- or queued again
  due_at    bigint NOT NULL,                  -- kinds 2 to 4: when the job ended
  attempts  integer NOT NULL,                 -- claims since queued_at
  kind      smallint NOT NULL,                -- 0 a job of a provider, 1 a callback; kept of an ended job while its operation is
                                              -- PENDING: 2 the provider is to report, 3 it was given up, 4 the customer is to pay
  state     smallint NOT NULL,                -- 0 waiting until due_at, 1 leased until due_at
  queue     text COLLATE "C" NOT NULL,        -- the shop; callbacks.merchant, a space, callbacks.target
  failure   text COLLATE "C",                 -- why an attempt of a provider's job last gave no result
  failed_at bigint,                           -- when it did
  PRIMARY KEY (kind, key),
  CONSTRAINT tasks_state CHECK (CASE state WHEN 0 THEN attempts >= 0 WHEN 1 THEN attempts > 0 ELSE false END)
);
CREATE INDEX tasks_by_due ON tasks (kind, queue, due_at, key);
-- The jobs that providers do not answer; empty while they do.
CREATE INDEX tasks_retried ON tasks (queued_at) WHERE kind = 0 AND attempts > 2;

-- The pages and instructions for the customers of pending deposits.
CREATE TABLE preparations (
  transaction_id bigint PRIMARY KEY,
  sealed         bytea NOT NULL
);

-- The times when operators had the provider of a PENDING operation called anew.
CREATE TABLE provider_queries (
  transaction_id bigint NOT NULL,
  queried_at     bigint NOT NULL,
  job_attempts   integer,                     -- of the ended job whose place a new one took, as of operations; NULL: none had ended
  job_ended_at   bigint,
  job_kind       smallint,
  job_failure    text COLLATE "C",
  PRIMARY KEY (transaction_id, queried_at)
);

-- The results that operators set by hand. One that waits takes effect when another operator confirms it; it is void when the
-- operation got its result otherwise.
CREATE TABLE resolutions (
  id              bigint PRIMARY KEY,         -- has the form of a transaction_id
  transaction_id  bigint NOT NULL,
  status          smallint NOT NULL,          -- 1 SUCCESS, 2 FAILED
  reason          text COLLATE "C" NOT NULL,
  made_by         text COLLATE "C" NOT NULL,  -- the user
  made_at         bigint NOT NULL,
  state           smallint NOT NULL,          -- 0 waits, 1 took effect, 2 another one took its place
  confirmed_by    text COLLATE "C"            -- the other user
);
CREATE UNIQUE INDEX resolutions_waiting ON resolutions (transaction_id) WHERE state = 0;
CREATE INDEX resolutions_by_operation ON resolutions (transaction_id, id);

-- Reports of providers that contradict the result of their operation: the first of each.
CREATE TABLE contradictions (
  transaction_id  bigint PRIMARY KEY,
  status          smallint NOT NULL,          -- as reported: 1 SUCCESS, 2 FAILED
  reported_at     bigint NOT NULL,
  acknowledged_by text COLLATE "C",           -- the user; NULL: not acknowledged
  acknowledged_at bigint,
  CONSTRAINT contradictions_acknowledged CHECK ((acknowledged_by IS NULL) = (acknowledged_at IS NULL))
);
CREATE INDEX contradictions_open ON contradictions (transaction_id) WHERE acknowledged_at IS NULL;

-- The creates that were forwarded to a remote engine, each written before its request is sent.
CREATE TABLE journal (
  entry           bigint PRIMARY KEY,         -- has the form of a transaction_id
  created_at      bigint NOT NULL,
  doubted_at      bigint,                     -- when a request was last given up or sent again; NULL: neither, or answered
  amount          bigint NOT NULL,
  direction       smallint NOT NULL,          -- 0 payin, 1 payout
  state           smallint NOT NULL,          -- 0 open, 1 in doubt, 2 answered
  status          smallint NOT NULL,          -- as last received: 0 PENDING, 1 SUCCESS, 2 FAILED
  order_key       bytea NOT NULL,             -- homes.order_key
  fingerprint     bytea NOT NULL,             -- as operations.fingerprint
  currency        text COLLATE "C" NOT NULL,
  merchant        text COLLATE "C" NOT NULL,
  order_id        text COLLATE "C" NOT NULL,
  api_key         text NOT NULL,
  shop            text COLLATE "C" NOT NULL,  -- the selected shop; '': not known
  v1_callback_url text,
  transaction_id  text COLLATE "C",           -- the engine's id of the operation
  redirect_url    text,
  account         bytea,                      -- sealed; as last received
  body            bytea NOT NULL,             -- sealed: the v2 body, for sending it again and for comparing repeats
  CONSTRAINT journal_state CHECK (CASE state WHEN 2 THEN transaction_id IS NOT NULL AND doubted_at IS NULL
    WHEN 1 THEN doubted_at IS NOT NULL WHEN 0 THEN true ELSE false END),
  CONSTRAINT journal_answer
    CHECK (state = 2 OR (status = 0 AND transaction_id IS NULL AND redirect_url IS NULL AND account IS NULL))
);
CREATE UNIQUE INDEX journal_by_transaction ON journal (transaction_id);
CREATE INDEX journal_open ON journal (entry) WHERE state = 0;
CREATE INDEX journal_in_doubt ON journal (entry) WHERE state = 1;
CREATE INDEX journal_by_v1 ON journal (merchant, created_at, entry, direction, shop, currency, status) WHERE state = 2;

-- The callbacks of merchants, each queued in the commit of its result. A pending one has a task.
CREATE TABLE callbacks (
  key         bigint PRIMARY KEY,             -- as tasks.key
  nonce       bigint NOT NULL,                -- random: part of the callback's id
  queued_at   bigint NOT NULL,                -- or last resent
  tries       bigint NOT NULL,                -- in all
  state       smallint NOT NULL,              -- 0 pending, 1 delivered, 2 failed
  last_status integer,                        -- of the last try that counted, if the receiver answered
  merchant    text COLLATE "C" NOT NULL,
  target      text COLLATE "C" NOT NULL,      -- scheme, host and port; 'engine': a remote engine confirms the status first
  last_error  text,                           -- of the last try that counted, or of giving up
  CONSTRAINT callbacks_outcome CHECK (last_status IS NULL OR last_error IS NULL),
  CONSTRAINT callbacks_state CHECK (CASE state WHEN 0 THEN true WHEN 1 THEN tries > 0
    WHEN 2 THEN last_status IS NOT NULL OR last_error IS NOT NULL ELSE false END)
);

-- The lists of all merchants and of one, in the order of the list.
CREATE INDEX callbacks_by_time ON callbacks (state, queued_at, key);
CREATE INDEX callbacks_by_merchant ON callbacks (merchant, state, queued_at, key);

-- The latest tries of a callback.
CREATE TABLE callback_tries (
  key         bigint NOT NULL,                -- callbacks.key
  began_at    bigint NOT NULL,
  duration_us bigint NOT NULL,
  number      bigint NOT NULL,                -- from 1
  status      integer,                        -- if the receiver answered
  error       text,                           -- if it did not
  PRIMARY KEY (key, number)
);

-- Delivered and failed callbacks that were queued until this time may have been deleted. Empty: none was.
CREATE TABLE forgotten (
  id    integer PRIMARY KEY CHECK (id = 1),
  until bigint NOT NULL
);

-- Counts of creates that were checked without being made, by merchant and by the rules that checked them.
CREATE TABLE check_counts (
  count      bigint NOT NULL,
  since      bigint NOT NULL,                 -- when the first was checked
  updated_at bigint NOT NULL,
  direction  smallint NOT NULL,               -- 0 payin, 1 payout
  class      smallint NOT NULL,               -- see store::checks::CheckClass
  merchant   text COLLATE "C" NOT NULL,
  rules      bytea NOT NULL,                  -- hash of the merchant's rules, 16 bytes
  id         bytea NOT NULL,                  -- keyed hash of merchant, rules, shop, direction, class, member, reason, file, key
  shop       text COLLATE "C" NOT NULL,       -- '': no shop of the rules
  member     text NOT NULL,                   -- of the v1 body; '': the class has none
  reason     text NOT NULL,
  file       text NOT NULL,                   -- of the rule to change; '': none
  key        text NOT NULL,
  samples    text NOT NULL,                   -- JSON array of JSON texts: names, lengths and shapes, never values
  PRIMARY KEY (merchant, rules, id)
);

-- The merchants whose ids of the old v1 service were all imported, by direction.
CREATE TABLE complete_ids (
  complete_at bigint NOT NULL,
  direction   smallint NOT NULL,              -- 0 payin, 1 payout
  merchant    text COLLATE "C" NOT NULL,
  PRIMARY KEY (merchant, direction)
);

-- The audit trail: the actions of operators, and the commands that change something. A row is written before the action
-- takes effect, and never deleted.
CREATE TABLE actions (
  id              bigint PRIMARY KEY,         -- ascends with time, as a transaction_id does
  began_at        bigint NOT NULL,
  ended_at        bigint,                     -- NULL: unfinished
  user_name       text COLLATE "C" NOT NULL,
  role            text NOT NULL,              -- '': a command
  address         text NOT NULL,              -- '': a command
  request_id      text NOT NULL,
  action          text COLLATE "C" NOT NULL,  -- the kind of action
  target          text NOT NULL,
  parameters      text NOT NULL,              -- JSON object of texts
  rules_version   text NOT NULL,
  idempotency_key bytea,                      -- 16 bytes; NULL: none
  outcome         text,                       -- for people; NULL: unfinished
  CONSTRAINT actions_end CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX actions_by_idempotency_key ON actions (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX actions_by_user ON actions (user_name, id);
CREATE INDEX actions_by_action ON actions (action, id);
CREATE INDEX actions_by_both ON actions (user_name, action, id);

-- Queues change all the time: deleted rows are to be vacuumed while there are few.
ALTER TABLE tasks           SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
-- Each callback leaves the index of those that are pending once.
ALTER TABLE callbacks       SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
ALTER TABLE balance_changes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
