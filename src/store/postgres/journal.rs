//! The journal of creates at a remote engine: one row for each order, whichever node wrote it.

pub(super) mod entry_row;
#[cfg(test)]
mod tests;
