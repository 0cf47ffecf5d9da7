-- Who tells a merchant: 1, the relay at v1_callback_url (nobody where that is NULL); 0, the engine at callback_url.
ALTER TABLE operations ADD COLUMN relayed INTEGER NOT NULL DEFAULT 0;
UPDATE operations SET relayed = 1 WHERE from_v1 = 1 AND (v1_callback_url IS NOT NULL OR callback_url LIKE '%/relay/%');
