-- Every table of operations is keyed by transaction_id, whose bits 12 to 21 are the bucket (a hash of the merchant, 0 to
-- 1023). Times are milliseconds since 1970, amounts hundredths.

CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- store::vault
) STRICT;

-- Where the store was copied to, which serves in its place; empty: it was not.
CREATE TABLE moved (
  target TEXT NOT NULL
) STRICT;

-- Until 0.1.0: the hash of this schema and of what fingerprints are made of (store::format).
CREATE TABLE format (
  hash BLOB NOT NULL
) STRICT;

-- What many operations have in common: one row for every combination that there is.
CREATE TABLE contexts (
  id             INTEGER PRIMARY KEY,         -- from the keyed hash of all the others
  direction      INTEGER NOT NULL,            -- 0 payin, 1 payout
  provider       INTEGER NOT NULL,            -- 0 sandbox, 1 http
  origin         INTEGER NOT NULL,            -- 0 v2; 1 v1, told by the engine; 2 v1, told by the relay
  merchant       TEXT NOT NULL,
  api_key        TEXT NOT NULL,
  shop           TEXT NOT NULL,               -- the selected shop
  currency       TEXT NOT NULL,
  method         TEXT,                        -- the shop that the request named
  payment_method TEXT,
  kept           TEXT                         -- JSON array of the names that the schema kept, sorted; NULL: there was no schema
) STRICT;
CREATE INDEX contexts_by_merchant ON contexts (merchant);

-- Where the order of a merchant, direction and order_id lives, for ever. Six bytes of the key are a hash of all but the last two
-- characters of the order_id: orders that are numbered one after the other lie side by side.
CREATE TABLE homes (
  order_key BLOB PRIMARY KEY,                 -- keyed hash of the three, 16 bytes
  home      INTEGER NOT NULL,                 -- 0 an operation, 1 an entry of the journal, 2 the old v1 service (claimed),
                                              -- 3 the same (imported), 4 a remote engine, as a native order
  ref       INTEGER NOT NULL                  -- operations.transaction_id, journal.entry, when it was claimed or imported
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
  transaction_id      INTEGER PRIMARY KEY,    -- ascends with time: inserts go to the end
  context             INTEGER NOT NULL,       -- contexts.id
  listed              INTEGER,                -- the number of the merchant on whose v1 list it is; NULL: made through v2
  status              INTEGER NOT NULL,       -- 0 PENDING, 1 SUCCESS, 2 FAILED
  created_at          INTEGER NOT NULL,
  finished_at         INTEGER,                -- NULL while PENDING
  amount              INTEGER NOT NULL,
  customer_account_id INTEGER,
  counted_day         INTEGER,                -- the day under which it counts in daily_usage; NULL: it does not
  order_id            TEXT NOT NULL,
  fingerprint              BLOB NOT NULL,          -- keyed hash of the canonical request, or of the v1 body that it came from, 16 bytes
  callback_url        TEXT,                   -- where its result is told; NULL: nobody is
  sealed              BLOB NOT NULL,          -- store::rows::details
  payer               BLOB,                   -- sealed
  CHECK ((status = 0) = (finished_at IS NULL))
) STRICT;

-- A merchant's v1 list, newest last. It holds all that the list is filtered by: entries that are left out cost no look at
-- their rows. Native operations are not in it.
CREATE INDEX v1_list ON operations (listed, transaction_id, context, status) WHERE listed IS NOT NULL;

-- The double-entry ledger: two rows a posting, which sum to zero. Its key makes a second posting of a kind for the same
-- operation impossible. The currency is in it for the opening alone, which one operation books in several.
CREATE TABLE entries (
  transaction_id INTEGER NOT NULL,            -- of an opening: the operation in whose commit it was booked, or a number below zero
  posting        INTEGER NOT NULL,            -- 0 opened, 1 credited, 2 held, 3 taken, 4 released
  currency       TEXT NOT NULL,
  account        INTEGER NOT NULL,            -- 0 outside, 1 opening, 2 available, 3 held
  amount         INTEGER NOT NULL,            -- signed
  merchant       TEXT NOT NULL,
  booked_at      INTEGER NOT NULL,
  PRIMARY KEY (transaction_id, posting, currency, account)
) STRICT, WITHOUT ROWID;

-- The running sums of the entries, kept in the same commits.
CREATE TABLE accounts (
  merchant TEXT NOT NULL,
  currency TEXT NOT NULL,
  account  INTEGER NOT NULL,
  balance  INTEGER NOT NULL,                  -- signed
  PRIMARY KEY (merchant, currency, account)
) STRICT, WITHOUT ROWID;

-- Merchants that are known: they have operations, or their ledger was opened before.
CREATE TABLE merchants (
  merchant TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- What customers did on a UTC day (days since 1970), counted for their limits; old days are removed.
CREATE TABLE daily_usage (
  day                 INTEGER NOT NULL,
  merchant            TEXT NOT NULL,
  shop                TEXT NOT NULL,
  direction           INTEGER NOT NULL,
  customer_account_id INTEGER NOT NULL,
  operations          INTEGER NOT NULL,
  amount              INTEGER NOT NULL,
  PRIMARY KEY (day, merchant, shop, direction, customer_account_id)
) STRICT, WITHOUT ROWID;

-- What has to be done, by when, and who is at it. Rows leave when the work ends.
CREATE TABLE tasks (
  kind      INTEGER NOT NULL,                 -- 0 a provider has to be asked, 1 a merchant has to be told
  key       INTEGER NOT NULL,                 -- operations.transaction_id, or journal.entry below zero
  queue     TEXT NOT NULL,                    -- the shop; callbacks.merchant, a space, callbacks.target
  queued_at INTEGER NOT NULL,                 -- or queued anew
  due_at    INTEGER NOT NULL,
  leased    INTEGER NOT NULL,                 -- 1: claimed, and due_at is the end of the lease
  attempts  INTEGER NOT NULL,                 -- claims since it was queued
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_due ON tasks (kind, queue, due_at, key);
-- Jobs that providers do not answer; it has none while they do.
CREATE INDEX tasks_retried ON tasks (queued_at) WHERE kind = 0 AND attempts > 2;

-- How customers of pending deposits go on.
CREATE TABLE preparations (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  sealed         BLOB NOT NULL
) STRICT;

-- What passed through this gateway to a remote engine: written before the request leaves.
CREATE TABLE journal (
  entry           INTEGER PRIMARY KEY,        -- made as a transaction_id is
  order_key       BLOB NOT NULL,              -- of its home
  direction       INTEGER NOT NULL,           -- 0 payin, 1 payout
  state           INTEGER NOT NULL,           -- 0 open, 1 in doubt, 2 answered
  doubted_at      INTEGER,                    -- when a request for it was last given up, or sent again
  status          INTEGER NOT NULL,           -- as last heard of the engine: 0 PENDING, 1 SUCCESS, 2 FAILED
  created_at      INTEGER NOT NULL,
  amount          INTEGER NOT NULL,
  fingerprint          BLOB NOT NULL,              -- as operations.fingerprint
  currency        TEXT NOT NULL,
  merchant        TEXT NOT NULL,
  order_id        TEXT NOT NULL,
  api_key         TEXT NOT NULL,
  shop            TEXT NOT NULL,              -- the selected shop; '' where it is not known
  v1_callback_url TEXT,
  transaction_id  TEXT,                       -- the engine's; NULL until it answered
  redirect_url    TEXT,
  account         BLOB,                       -- sealed: as last heard of the engine
  body            BLOB NOT NULL               -- sealed: the v2 body to be sent again, by which conflicts are told apart, too
) STRICT;
CREATE UNIQUE INDEX journal_by_transaction ON journal (transaction_id);
CREATE INDEX journal_open ON journal (entry) WHERE state = 0;
CREATE INDEX journal_in_doubt ON journal (entry) WHERE state = 1;
CREATE INDEX journal_by_v1 ON journal (merchant, created_at, entry, direction, shop, currency, status) WHERE state = 2;

-- What merchants are told, queued with the result, and what became of it. A pending one has a task.
CREATE TABLE callbacks (
  key         INTEGER PRIMARY KEY,            -- as tasks.key
  nonce       INTEGER NOT NULL,               -- random: with the key, the callback's name
  merchant    TEXT NOT NULL,
  target      TEXT NOT NULL,                  -- scheme, host and port; 'engine': a remote engine tells the status first
  state       INTEGER NOT NULL,               -- 0 pending, 1 delivered, 2 failed
  queued_at   INTEGER NOT NULL,               -- or last resent
  tries       INTEGER NOT NULL,               -- in all
  last_status INTEGER,                        -- of the last try that counted; NULL: none was answered
  last_error  TEXT                            -- why it was not answered, or given up without a try
) STRICT;

-- The list, of all merchants and of one: with the key, so that it is in the list's order.
CREATE INDEX callbacks_by_time ON callbacks (state, queued_at, key);
CREATE INDEX callbacks_by_merchant ON callbacks (merchant, state, queued_at, key);

-- A callback's latest tries, by their number.
CREATE TABLE callback_tries (
  key         INTEGER NOT NULL,               -- callbacks.key
  number      INTEGER NOT NULL,               -- from 1
  began_at    INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  status      INTEGER,                        -- of these two, one
  error       TEXT,
  PRIMARY KEY (key, number)
) STRICT, WITHOUT ROWID;

-- Until when callbacks were queued of which those that were delivered or given up may be forgotten. Empty: none was.
CREATE TABLE forgotten (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  until INTEGER NOT NULL
) STRICT;

-- Creates that were checked without being made, counted by merchant and by the rules that they were checked by.
CREATE TABLE check_counts (
  merchant   TEXT NOT NULL,
  rules      BLOB NOT NULL,                   -- hash of the merchant's rules, 16 bytes
  id         BLOB NOT NULL,                   -- keyed hash of the two and of the seven that follow, 16 bytes
  shop       TEXT NOT NULL,                   -- '': no shop of the rules
  direction  INTEGER NOT NULL,                -- 0 payin, 1 payout
  class      INTEGER NOT NULL,                -- store::checks::CheckClass
  member     TEXT NOT NULL,                   -- of the v1 body; '' where the class has none
  reason     TEXT NOT NULL,
  file       TEXT NOT NULL,                   -- of the rule to change; '' where there is none
  key        TEXT NOT NULL,
  count      INTEGER NOT NULL,
  since      INTEGER NOT NULL,                -- when the first of them was checked
  updated_at INTEGER NOT NULL,
  samples    TEXT NOT NULL,                   -- JSON array of JSON texts: names, lengths and shapes, never values
  PRIMARY KEY (merchant, rules, id)
) STRICT;

-- The merchants of which all ids that the old v1 service has were imported, by direction.
CREATE TABLE complete_ids (
  merchant    TEXT NOT NULL,
  direction   INTEGER NOT NULL,               -- 0 payin, 1 payout
  complete_at INTEGER NOT NULL,
  PRIMARY KEY (merchant, direction)
) STRICT, WITHOUT ROWID;

-- What operators did, and commands that change something: written before it takes effect. Never deleted.
CREATE TABLE actions (
  id            INTEGER PRIMARY KEY,          -- ascends with time, as a transaction_id does
  began_at      INTEGER NOT NULL,
  ended_at      INTEGER,                      -- NULL: it is unfinished
  user_name     TEXT NOT NULL,
  role          TEXT NOT NULL,                -- '': of a command, as the address
  address       TEXT NOT NULL,
  request_id    TEXT NOT NULL,
  action        TEXT NOT NULL,                -- its kind
  target        TEXT NOT NULL,
  parameters    TEXT NOT NULL,                -- JSON object of texts
  rules_version TEXT NOT NULL,
  form          BLOB,                         -- the one-time key of the form that was sent, 16 bytes; NULL: there was none
  outcome       TEXT,                         -- for people
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT;
CREATE UNIQUE INDEX actions_by_form ON actions (form) WHERE form IS NOT NULL;
CREATE INDEX actions_by_user ON actions (user_name, id);
CREATE INDEX actions_by_action ON actions (action, id);
CREATE INDEX actions_by_both ON actions (user_name, action, id);

-- Written to prove that the store can commit.
CREATE TABLE probe (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  count INTEGER NOT NULL
) STRICT;
INSERT INTO probe VALUES (1, 0);

-- Filled and emptied again after a failed commit, to prove that the disk has room for operations.
CREATE TABLE probe_room (
  filler BLOB NOT NULL
) STRICT;
