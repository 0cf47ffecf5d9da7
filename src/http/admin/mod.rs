//! The admin listener: HTTP/1 for probes, metrics, an API and the operators' console (contract sections 1 and 13).
//!
//! `docs/operations.md` describes what it replies to programs,
//! [`crate::console`] has the pages.
//!
//! `routes` has the one table of all paths, the pages too, with the role that each needs. A request passes these
//! checks in this order (`server`): `Host` must be a loopback name, the listening address or one of `[admin] hosts` (an
//! attacker's name that resolves to this address is none of them), unless it is a probe or carries a user's bearer token; no page
//! of another origin may have made it, but a link may lead to a page of the console; it must have a user, by token or by
//! session (`access`), except for probes, the sign-in form and static files; and the user must have the route's role.
//! Without users and token, on loopback, every request is made by the user `local`, an operator.

mod access;
mod actions;
mod api;
mod chrome;
mod console;
mod context;
mod failures;
mod form;
mod guard;
mod listen;
mod operations_api;
mod parameters;
mod refused;
mod reply;
mod request;
mod routes;
mod rules;
mod samples;
mod server;
mod sessions;
mod source;
#[cfg(test)]
mod tests;

pub use self::listen::{Admin, AdminTls, BindError};
pub use self::rules::{CertificateInfo, ProblemInfo, RulesInfo};
pub use self::source::{AdminSource, Pending, SampleRequest};
