//! What moves the money behind a shop (contract section 8).

mod sandbox;
mod worker;

pub use worker::{Providers, Worker};
