-- A made-up next format (the feature next-format): a column and a table more.
ALTER TABLE operations ADD COLUMN region text;
CREATE TABLE regions (
  region text PRIMARY KEY
);
INSERT INTO regions (region) VALUES ('home');
