//! The journal of a gateway before a remote engine, in the table of its name: one row an order, whichever node wrote it.

pub(super) mod entry_row;
#[cfg(test)]
mod tests;
