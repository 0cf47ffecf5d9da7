//! Who calls, and proof of it: [`Caller`] and [`SignedBody`] can only be made here.

pub mod addresses;
pub mod callers;
pub mod links;
pub mod signatures;

pub use callers::{Caller, SignedBody};
