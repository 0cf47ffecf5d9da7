//! Paybridge: a TLS reverse proxy that lets v1 merchants use a v2 payments API, with a durable v2 engine inside.

pub mod auth;
pub mod cli;
pub mod clock;
pub mod domain;
pub mod engine;
pub mod failure;
pub mod http;
pub mod provider;
pub mod rules;
pub mod store;
pub mod telemetry;
pub mod upstream;
pub mod v1;
pub mod v2;
pub mod wire;
