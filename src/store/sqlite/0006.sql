-- The keys of orders, made anew here and in code (see rekeying.rs): 6 bytes of a keyed hash of merchant, direction and all but
-- the last two characters of the order_id, then 10 bytes of the keyed hash that they were before. Orders that are numbered one
-- after the other lie side by side in the indexes. With a new name, so that a process of an earlier release that is still
-- running finds nothing and stores nothing under the old ones.
ALTER TABLE operations RENAME COLUMN order_key TO sorted_key;
ALTER TABLE journal RENAME COLUMN order_key TO sorted_key;

-- Of what had been reserved before, nothing is known but the hash.
ALTER TABLE reserved_ids RENAME COLUMN order_key TO order_hash;     -- the last ten bytes of operations.sorted_key
UPDATE reserved_ids SET order_hash = substr(order_hash, 1, 10);

-- The codes of relay addresses that engines were given before, which were the old keys.
CREATE TABLE relay_codes_of_version_5 (
  code  BLOB PRIMARY KEY,
  entry INTEGER NOT NULL                      -- journal.entry
) STRICT, WITHOUT ROWID;

INSERT INTO relay_codes_of_version_5 SELECT sorted_key, entry FROM journal;
