-- A made-up next format (the feature next-format): a column and a table more.
ALTER TABLE operations ADD COLUMN region TEXT;
CREATE TABLE regions (
  region TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO regions (region) VALUES ('home');
