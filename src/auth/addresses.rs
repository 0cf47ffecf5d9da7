//! Which address a request counts as coming from.
