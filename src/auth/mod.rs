//! Authentication: [`Caller`] and [`SignedBody`], the proofs of it, can only be created here.

pub mod callers;
pub mod per_address;
pub mod signatures;

pub use callers::{AdmittedKey, Caller, Interface, KnownKey, SignedBody, V1Head};
pub use per_address::PerAddress;
