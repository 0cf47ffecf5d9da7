//! Callbacks: merchants are told of results, at least once, in their own dialect (contract section 10).
//!
//! ```text
//! the commit of a result --> outbox --> claim --> compose, sign --> connect safely --> send --> record
//!                              ^                                                                  |
//!                              +---------------------- back off ----------------------------------+
//! ```
//!
//! A row stays in the outbox until a receiver has answered with a 2xx, so that the work of a process that died is taken up
//! again: callbacks come at least once, under the same name. Nothing is sent inside a transaction. What a remote engine
//! announces comes in by [`relay`], and its row waits for the engine's own word first.

mod job;
mod letter;
pub mod listing;
pub mod relay;
mod sample;
mod send;
mod targets;
mod worker;

pub use sample::{Sample, SampleError, SampleKind, Sampled, sample};
pub use worker::{CallbackDeps, CallbackWorker};
