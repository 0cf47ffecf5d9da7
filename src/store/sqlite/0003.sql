-- The double-entry ledger: two rows a posting, which sum to zero. Its key makes a second posting of a kind for the same
-- operation impossible. The currency is in it for the opening alone, which one operation books in several.
CREATE TABLE entries (
  transaction_id INTEGER NOT NULL,            -- of an opening: the operation in whose commit it was booked
  posting        INTEGER NOT NULL,            -- 0 opened, 1 credited, 2 held, 3 taken, 4 released
  currency       TEXT NOT NULL,
  account        INTEGER NOT NULL,            -- 0 outside, 1 opening, 2 available, 3 held
  amount         INTEGER NOT NULL,            -- signed hundredths
  merchant       TEXT NOT NULL,
  booked_at      INTEGER NOT NULL,
  PRIMARY KEY (transaction_id, posting, currency, account)
) STRICT, WITHOUT ROWID;

-- The running sums of the entries, kept in the same commits.
CREATE TABLE accounts (
  merchant TEXT NOT NULL,
  currency TEXT NOT NULL,
  account  INTEGER NOT NULL,
  balance  INTEGER NOT NULL,                  -- signed hundredths
  PRIMARY KEY (merchant, currency, account)
) STRICT, WITHOUT ROWID;

-- What the operations of earlier versions mean to the ledger: a deposit that succeeded was credited, a withdrawal that
-- did not fail was held, one that succeeded was taken.
INSERT INTO entries
  WITH postings (direction, status, posting, account, sign) AS (VALUES
    (0, 1, 1, 0, -1), (0, 1, 1, 2, 1),
    (1, 0, 2, 2, -1), (1, 0, 2, 3, 1),
    (1, 1, 2, 2, -1), (1, 1, 2, 3, 1), (1, 1, 3, 3, -1), (1, 1, 3, 0, 1))
  SELECT transaction_id, posting, currency, postings.account, sign * amount, merchant,
         CASE posting WHEN 2 THEN created_at ELSE finished_at END
  FROM operations JOIN postings USING (direction, status);

INSERT INTO accounts SELECT merchant, currency, account, sum(amount) FROM entries GROUP BY merchant, currency, account;

-- The outbox: what merchants must be told, queued with the result.
CREATE TABLE callbacks (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  callback_id    BLOB NOT NULL,               -- 16 random bytes, the same at every try
  due_at         INTEGER NOT NULL,
  attempts       INTEGER NOT NULL
) STRICT;

-- Operations that were finished before there was an outbox: nothing is told of them.
CREATE TABLE untold (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations
) STRICT;

INSERT INTO untold SELECT transaction_id FROM operations WHERE status <> 0;

-- What customers did on a UTC day (days since 1970), counted for their limits; old days are removed.
CREATE TABLE daily_usage (
  day                 INTEGER NOT NULL,
  merchant            TEXT NOT NULL,
  shop                TEXT NOT NULL,
  direction           INTEGER NOT NULL,
  customer_account_id INTEGER NOT NULL,
  operations          INTEGER NOT NULL,
  amount              INTEGER NOT NULL,       -- hundredths
  PRIMARY KEY (day, merchant, shop, direction, customer_account_id)
) STRICT, WITHOUT ROWID;

-- The day under which an operation counts in daily_usage; NULL: it does not.
ALTER TABLE operations ADD COLUMN counted_day INTEGER;

-- What moves an operation's money: 0 sandbox, 1 http.
ALTER TABLE operations ADD COLUMN provider INTEGER NOT NULL DEFAULT 0;

-- Merchants that have operations: an opening balance is booked with the first one and never again.
CREATE TABLE merchants (
  merchant TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

INSERT INTO merchants SELECT DISTINCT merchant FROM operations;

-- order_ids of the old v1 service.
CREATE TABLE reserved_ids (
  order_key BLOB PRIMARY KEY                  -- as operations.order_key
) STRICT, WITHOUT ROWID;

-- How customers of pending deposits go on.
CREATE TABLE preparations (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  sealed         BLOB NOT NULL
) STRICT;

CREATE TABLE provider_jobs_by_shop (
  transaction_id INTEGER PRIMARY KEY REFERENCES operations,
  shop           TEXT NOT NULL,
  provider       INTEGER NOT NULL,            -- 0 sandbox, 1 http
  due_at         INTEGER NOT NULL,
  attempts       INTEGER NOT NULL,
  leased         INTEGER NOT NULL             -- 1: claimed, and due_at is the end of the lease
) STRICT;

INSERT INTO provider_jobs_by_shop
  SELECT transaction_id, shop, 0, due_at, attempts, attempts > 0 FROM provider_jobs JOIN operations USING (transaction_id);

DROP TABLE provider_jobs;
ALTER TABLE provider_jobs_by_shop RENAME TO provider_jobs;
CREATE INDEX provider_jobs_by_due ON provider_jobs (shop, due_at);
