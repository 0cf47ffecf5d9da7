//! The drills: gateways, nodes and databases are killed over and over, and nothing that was acknowledged is lost or doubled.
//! `cargo test` runs a few rounds of each, `.ci/full` (`PAYBRIDGE_LONG=1`) many.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../support/mod.rs"]
mod support;

mod crash;
mod failover;
mod homes;
mod nodes;
mod restore;
