//! The gateway's front: what legacy merchants speak (contract sections 4 and 5).

mod balance;
mod create;
mod history;
pub(crate) mod query;
mod relay;
pub mod reply;
mod status;
pub mod translate;

pub use balance::balance;
pub use create::{create, v2_body};
pub use history::transactions;
pub use relay::relay_url;
pub use status::status;
