//! The journal of creates at a remote engine: one row for each order, whichever node wrote it.

#[cfg(test)]
mod tests;
