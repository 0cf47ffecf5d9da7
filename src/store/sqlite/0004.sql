-- An operation remembers its kind of provider; its job need not repeat it.
ALTER TABLE provider_jobs DROP COLUMN provider;

-- Short keyed hashes of the members of a v1 body, by which a conflict is told apart; NULL: made before they were kept.
ALTER TABLE operations ADD COLUMN v1_members BLOB;

-- 1: v1_digest is there. A column of its own, compared with a constant, so that SQLite knows that the index below holds
-- all that its readers ask for.
ALTER TABLE operations ADD COLUMN from_v1 INTEGER NOT NULL DEFAULT 0;
UPDATE operations SET from_v1 = 1 WHERE v1_digest IS NOT NULL;

-- A merchant's v1 history in lanes, each in the order of its last column, the transaction_id that ends every index of this
-- table: every filter is some of the lanes, and a page is merged from their ends. Native operations are not in it.
CREATE INDEX operations_by_v1 ON operations (merchant, direction, shop, currency, status) WHERE from_v1 = 1;

-- What passed through this gateway to a remote engine: written before the request leaves.
CREATE TABLE journal (
  entry           INTEGER PRIMARY KEY AUTOINCREMENT,  -- ascends with time
  order_key       BLOB NOT NULL,              -- as operations.order_key
  direction       INTEGER NOT NULL,           -- 0 payin, 1 payout
  state           INTEGER NOT NULL,           -- 0 open, 1 in doubt, 2 answered
  doubted_at      INTEGER,                    -- when a request for it was last given up; of those in doubt
  place           INTEGER,                    -- in its merchant's list, by created_at and then entry; NULL until it was answered
  status          INTEGER NOT NULL,           -- as last heard of the engine: 0 PENDING, 1 SUCCESS, 2 FAILED
  created_at      INTEGER NOT NULL,
  amount          INTEGER NOT NULL,           -- hundredths
  v1_digest       BLOB NOT NULL,              -- as operations.v1_digest
  v1_members      BLOB,                       -- as operations.v1_members
  currency        TEXT NOT NULL,
  merchant        TEXT NOT NULL,
  order_id        TEXT NOT NULL,
  api_key         TEXT NOT NULL,
  shop            TEXT NOT NULL,              -- the selected shop; '' where it is not known (lanes have no NULL)
  v1_callback_url TEXT,
  transaction_id  TEXT,                       -- the engine's; NULL until it answered
  redirect_url    TEXT,
  account         BLOB,                       -- sealed: as last heard of the engine
  body            BLOB                        -- sealed: the v2 body to be sent again; NULL once it was answered
) STRICT;

CREATE UNIQUE INDEX journal_by_order ON journal (order_key);
CREATE UNIQUE INDEX journal_by_transaction ON journal (transaction_id);
CREATE INDEX journal_open ON journal (entry) WHERE state = 0;
CREATE INDEX journal_by_v1 ON journal (merchant, direction, shop, currency, status, place) WHERE state = 2;
CREATE INDEX journal_by_place ON journal (place) WHERE state = 2;

-- From here on an opening may be booked before its merchant has operations, with an entries.transaction_id of its own:
-- like an operation's, but below zero. merchants are those that have operations or were opened so.
