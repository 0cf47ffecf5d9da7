-- order_key of operations and journal (here and in code, see rekeying.rs): 6 bytes of a keyed hash of merchant, direction and
-- all but the last two characters of the order_id, then 10 bytes of the keyed hash that it was before. Orders that are
-- numbered one after the other lie side by side in the indexes.

-- reserved_ids.order_key is the ten bytes alone: what had been reserved before is known by no others.
UPDATE reserved_ids SET order_key = substr(order_key, 1, 10);
