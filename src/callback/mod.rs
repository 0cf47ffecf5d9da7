//! Callbacks: delivers results to merchants, at least once, in each merchant's dialect (contract section 10).
//!
//! ```text
//! the commit of a result --> outbox --> claim --> compose, sign --> connect safely --> send --> record
//!                              ^                                                                  |
//!                              +---------------------- back off ----------------------------------+
//! ```
//!
//! A row stays in the outbox until its receiver has answered with a 2xx, so that another process continues the work of
//! one that died: callbacks are delivered at least once, always with the same id. Nothing is sent inside a transaction.
//! Callbacks from a remote engine are received by [`relay`]; their rows wait until the engine's status confirms the
//! result.

mod handler;
mod job;
pub mod listing;
mod message;
mod queues;
pub mod relay;
pub mod resend;
mod sample;
mod send;
mod targets;

pub use handler::CallbackHandler;
pub use sample::{Sample, SampleError, Sampled, sample};
