//! HTTP: from the socket to a handler and back.

pub mod admin;
mod admission;
mod context;
pub mod gateway;
pub mod listener;
pub mod reply;
mod request_ids;
pub mod router;
