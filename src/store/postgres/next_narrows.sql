-- The end of the upgrade: every operation has a region, and an index of the format before is gone.
UPDATE operations SET region = 'home' WHERE region IS NULL;
DROP INDEX actions_by_both;
