//! The gateway's front: what legacy merchants speak (contract sections 4 and 5).

mod create;
mod query;
mod relay;
mod reply;
mod status;
pub mod translate;

pub use create::create;
pub use relay::relay_url;
pub use status::status;
