-- Until when callbacks were queued of which those that were delivered or given up may be forgotten.
CREATE TABLE forgotten (
  until INTEGER NOT NULL                      -- milliseconds since 1970
) STRICT;

INSERT INTO forgotten VALUES (0);
