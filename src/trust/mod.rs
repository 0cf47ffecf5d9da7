//! Certificates and keys in PEM, as every part reads them; and which certificates of servers are trusted: those that an
//! authority issued, and those that the rules name themselves (pins).

mod pem;
mod verifier;

pub(crate) use self::pem::{certificates, private_key};
pub(crate) use self::verifier::{client_config, pinned_client_config};
