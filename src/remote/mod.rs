//! A remote v2 service behind the gateway (contract section 6).
//!
//! A v1 create is recorded in the journal before it is sent, so that neither a crash nor a lost response loses an operation.
//! Repeats, statuses and histories of v1 are answered from the journal. An entry without a response is resolved by sending the
//! same body again, which v2 treats as a repeat. Native v2 requests pass through unchanged and are not recorded.

mod callbacks;
mod client;
mod deadline;
mod exchange;
mod history;
mod messages;
mod native;
mod orders;
mod outages;
mod recovery;
mod refresher;
mod resolve;
mod responses;
#[cfg(test)]
mod tests;
mod v1;

pub use callbacks::EngineCallback;
pub use client::Remote;
pub use recovery::Recovery;
pub use v1::{is_final, shown};
