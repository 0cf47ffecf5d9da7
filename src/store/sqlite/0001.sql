-- Every table is keyed by transaction_id, whose bits 12 to 21 are the bucket (a hash of the merchant, 0 to 1023):
-- (transaction_id >> 12) & 1023 partitions them all. order_key is unique within a merchant, so within a bucket.

CREATE TABLE data_keys (
  id      INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,                      -- seal | compare
  wrapped BLOB NOT NULL                       -- store::vault
) STRICT;

-- The lists of names that schemas kept at creation, each stored once. The same in every partition.
CREATE TABLE kept_names (
  id    INTEGER PRIMARY KEY,                  -- from the keyed hash of the list
  names TEXT NOT NULL                         -- JSON array, sorted
) STRICT;

CREATE TABLE operations (
  transaction_id      INTEGER PRIMARY KEY,    -- ascends with time: inserts go to the end
  order_key           BLOB NOT NULL,          -- keyed hash of merchant, direction and order_id, 16 bytes
  direction           INTEGER NOT NULL,       -- 0 payin, 1 payout
  status              INTEGER NOT NULL,       -- 0 PENDING, 1 SUCCESS, 2 FAILED
  created_at          INTEGER NOT NULL,       -- milliseconds since 1970, as all times
  finished_at         INTEGER,                -- NULL while PENDING
  amount              INTEGER NOT NULL,       -- hundredths
  customer_account_id INTEGER,
  kept                INTEGER,                -- kept_names.id; NULL: there was no schema
  digest              BLOB NOT NULL,          -- keyed hash of the canonical request, 16 bytes
  v1_digest           BLOB,                   -- keyed hash of the v1 body; NULL: not made from v1
  currency            TEXT NOT NULL,
  merchant            TEXT NOT NULL,
  order_id            TEXT NOT NULL,
  api_key             TEXT NOT NULL,
  shop                TEXT NOT NULL,
  method              TEXT,
  payment_method      TEXT,
  callback_url        TEXT NOT NULL,
  v1_callback_url     TEXT,
  success_url         TEXT,                   -- of a payin, as the next three
  pending_url         TEXT,                   -- NULL: the same as success_url
  fail_url            TEXT,                   -- NULL: the same as success_url
  redirect_url        TEXT,
  account             BLOB,                   -- sealed: of a payout, account_number and account_channel
  payer               BLOB,                   -- sealed
  fields              BLOB NOT NULL           -- sealed
) STRICT;

CREATE UNIQUE INDEX operations_by_order ON operations (order_key);

CREATE TABLE provider_jobs (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  due_at         INTEGER NOT NULL,
  attempts       INTEGER NOT NULL
) STRICT;

CREATE INDEX provider_jobs_by_due ON provider_jobs (due_at);

-- Written to prove that the store can commit.
CREATE TABLE probe (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  count INTEGER NOT NULL
) STRICT;

INSERT INTO probe VALUES (1, 0);
