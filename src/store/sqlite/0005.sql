-- Who tells a merchant: 1, the relay at v1_callback_url (nobody where that is NULL); 0, the engine at callback_url.
ALTER TABLE operations ADD COLUMN relayed INTEGER NOT NULL DEFAULT 0;
UPDATE operations SET relayed = 1 WHERE from_v1 = 1 AND (v1_callback_url IS NOT NULL
  OR instr(callback_url, '/relay/' || merchant || '.' || CASE direction WHEN 0 THEN 'payin' ELSE 'payout' END || '.') > 0);

ALTER TABLE callbacks RENAME TO callbacks_of_version_4;

-- The outbox: what merchants must be told, queued with the result, and what became of it.
CREATE TABLE callbacks (
  key         INTEGER PRIMARY KEY,            -- operations.transaction_id, or journal.entry below zero
  nonce       INTEGER NOT NULL,               -- random: with the key, the callback's name
  merchant    TEXT NOT NULL,
  target      TEXT NOT NULL,                  -- scheme, host and port; 'engine': a remote engine tells the status first
  state       INTEGER NOT NULL,               -- 0 pending, 1 delivered, 2 failed
  queued_at   INTEGER NOT NULL,               -- or last resent
  due_at      INTEGER NOT NULL,
  leased      INTEGER NOT NULL,               -- 1: claimed, and due_at is the end of the lease
  attempts    INTEGER NOT NULL,               -- claims since it was queued or last resent
  tries       INTEGER NOT NULL,               -- in all
  last_status INTEGER,                        -- of the last try that counted; NULL: none was answered
  last_error  TEXT                            -- why it was not answered, or given up without a try
) STRICT;

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

-- What waited, and what callbacks = "v2" had forgotten. Their targets are named by code: see outbox::migrate.
INSERT INTO callbacks
  SELECT transaction_id, random(), merchant, '', 0, due_at, due_at, 0, 0, 0, NULL, NULL
  FROM callbacks_of_version_4 JOIN operations USING (transaction_id);

INSERT INTO callbacks
  SELECT transaction_id, random(), merchant, '', 0, finished_at, finished_at, 0, 0, 0, NULL, NULL FROM operations
  WHERE from_v1 = 1 AND relayed = 0 AND status <> 0
    AND transaction_id NOT IN (SELECT transaction_id FROM untold)
    AND transaction_id NOT IN (SELECT transaction_id FROM callbacks_of_version_4);

DROP TABLE callbacks_of_version_4;

-- The queues of the targets.
CREATE INDEX callbacks_by_due ON callbacks (target, due_at, key, attempts, queued_at, leased) WHERE state = 0;

-- The list: with the key, so that it is in the list's order, and all that is asked of rows that are left out.
CREATE INDEX callbacks_by_time ON callbacks (state, queued_at, key, merchant);
