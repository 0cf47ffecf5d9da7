-- Filled and emptied again after a failed commit, to prove that the disk has room for operations.
CREATE TABLE probe_room (
  filler BLOB NOT NULL
) STRICT;
