//! The black-box tests in one binary: a file or a folder a subject, over real TLS sockets and processes. `tests/drills` has
//! those that kill processes over and over.
//!
//! Tests share this process: none of them changes its environment, its working directory or its limits; children get
//! their own. A few run at once (`RUST_TEST_THREADS`, in `.cargo/config.toml`), since most of them wait.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../support/mod.rs"]
mod support;

mod admission;
mod alerts;
mod at_rest;
mod browser;
mod callbacks;
mod cli;
mod clients;
mod connections;
mod console;
mod contract;
mod corpus;
mod dialects;
mod documents;
mod export;
mod fields;
mod first_release;
mod golden;
mod hangups;
mod health;
mod import;
mod layering;
mod legacy;
mod listen;
mod listener;
mod openapi;
mod pages;
mod postgres_server;
mod process;
mod promise;
mod provider;
mod refusals;
mod reload;
mod remote;
mod sockets;
mod store_adopt;
mod store_backup;
mod store_check;
mod store_copy;
mod store_format;
mod store_rekey;
mod v1;
mod v1_lists;
mod v2;
