//! Paybridge: a TLS reverse proxy that lets v1 merchants use a v2 payments API, with a durable v2 engine inside.
//!
//! # Map
//!
//! A module imports only from rows below its own; a test of the repository keeps this true.
//!
//! | module | holds |
//! |---|---|
//! | [`cli`] | one file a subcommand |
//! | [`app`] | composition root: rules, store, engine, clock, listeners, drain, notifications to systemd |
//! | [`http`] | listener (TCP, sockets of the service manager, PROXY, TLS, message framing, limits), router (one table), admission, reply (errors to HTTP, one match), admin |
//! | [`callback`] | callbacks of the outbox: claim, compose, sign, send, back off, resend; the relay of a v2 engine's callbacks; samples |
//! | [`console`] | the console's pages as pure rendering: templates show the documents that the admin API serializes, too; plots; its stylesheet and script |
//! | [`pages`] | customers' pages of a deposit: entry link, return link, the sandbox's hosted page |
//! | [`homes`] | where a v1 request goes: by the home of its order, and by the merchant's mode |
//! | [`shadow`] | what v2 would do with the creates of merchants whose v1 service is still the old one: the check (pure), its counts, the report of readiness, the explanation of one body |
//! | [`v1`] | the gateway's front: create, repeats of v1 bodies, status, balance, history, translate (pure), reply |
//! | [`legacy`] | the old v1 service: requests are forwarded as they are |
//! | [`service`] | the v2 service: the engine in this process, or a remote one |
//! | [`remote`] | the remote v2 service: an engine elsewhere, whose creates the journal records; recovery at start |
//! | [`v2`] | what calls of a v2 service have in common |
//! | [`provider`] | payment providers: the sandbox, HTTP providers and their reports, their jobs |
//! | [`queue_worker`] | the worker of the durable queue, for callbacks and for providers' jobs |
//! | [`engine`] | create, decide (pure), repeat, report, query, the next action of a customer: no HTTP, no SQL |
//! | [`operations`] | operations after their creation, as operators see them: the list and its filter, the timeline of one, what operators do about it |
//! | [`deps`] | what all services need of their process: store, rules, outbound, clock, random, metrics |
//! | [`auth`] | signatures of requests and links, callers (the only place that makes a [`auth::Caller`]), addresses |
//! | [`wire`] | the JSON shapes of both API versions, and how their members are read |
//! | [`certs`] | a local CA and a server pair |
//! | [`outbound`] | the HTTPS client: pooled, bounded in time and size, with an egress policy, trusting what the rules name |
//! | [`rules`] | raw (how tables are declared and read), setting (the value of a key as it is compared, and what its change means), compile (one file for each kind of rule file, with the declarations of its keys), the snapshot, watching and live reload (the only `ArcSwap` of rules), problems and how they are shown, inspect (the further checks of `check`), diff, the JSON Schemas of the files |
//! | [`store`] | the trait [`store::Store`] and the journal of a remote engine; what a create, a result, a callback and a change of the journal do in a transaction, homes of orders, the durable queue, counts of checked creates and audits, once for both backends; conversion of rows; SQLite and PostgreSQL; sealing at rest |
//! | [`trust`] | certificates and keys in PEM; which servers' certificates are trusted |
//! | [`error`] | the errors of a request, knowing no HTTP |
//! | [`telemetry`] | metrics, the history of the last hour, the log, access lines |
//! | [`store_settings`] | where a store is, and which keys open it, as `[store]` names them |
//! | [`traffic`] | each merchant's requests and refusals, counted beside its rules |
//! | [`slots`] | tables of counters by name, without locks |
//! | [`build_info`] | version, commit and target of this binary |
//! | [`connection_error`] | why a connection failed, in plain words |
//! | [`backoff`] | the wait before the next attempt |
//! | [`reply_room`] | how many bytes of replies wait on one connection |
//! | [`clock`] | time and randomness, injected |
//! | [`domain`] | amounts, ids, URLs, accounts, operations, create requests with their `fields`, fingerprints, ledger accounts, secrets, signature recipes |
//! | [`json`] | the strict JSON reader, and how strings are written |
//! | [`names`] | names in messages: how they are shown, and which known name was probably meant |
//!
//! # The straight line of a v1 create
//!
//! `http::listener` (bytes, framing, TLS) → `http::router` (one table; [`http::router::Route`] is the request's purpose,
//! up to its handler) → `http::admission` (gives a [`auth::Caller`] and a [`auth::SignedBody`]) →
//! [`v1::V1Frontend::create`] → [`v1::translate`] (the v2 request and its bytes) → [`service::V2Service::create_from_v1`] (signs
//! the bytes: the proof that a native caller's signature gives for its own) → [`engine::Engine::create`] →
//! [`store::Store::create`] (one commit, shared with the creates that wait with it), and back up the same modules, typed,
//! to `http::reply`. From the end of the body read it runs in a task of its own, so that a caller who hangs up cannot
//! abandon a commit half way.
//!
//! Where `[legacy]` names an old v1 service, [`homes`] stands before the v1 front: a request goes to the home of its order,
//! here or there. For an order without one, the merchant's mode decides, and [`store::OrderHomes::claim`] is on disk before
//! [`legacy::Legacy`] forwards the create.
//!
//! With a remote engine, [`remote::Remote`] is the v2 service: [`store::Journal::record_create`] (on disk before the request
//! leaves) → [`outbound`] → the engine's response, read strictly → [`store::Journal::answer`] (on disk before the merchant
//! gets it), or `cancel`, or `mark_unknown`. Native v2 requests are forwarded unchanged.
//!
//! # Order inside a create
//!
//! Shape (every rule that needs no rule file) → an existing order (same request: its reply; other, or created through the
//! other API version: 409) or a reservation for v1 (409) → today's rules (else 400) → commit. Whether a request is the same is
//! decided by a keyed hash of what the merchant sent, in canonical form, and never by today's rules; `engine::repeat` does
//! so, and nothing else. A unique key (merchant, direction, `order_id`) decides races, and the loser reads the winner.
//!
//! Today's rules are tried first and their refusal is held back until the order was looked for, so that a new order costs no
//! extra read; the caller observes the order above. Nothing is remembered: where today's rules accept, the commit finds
//! the order, and where they refuse, one indexed read does.
//!
//! A new order that today's rules accept exists from there on, and may be created FAILED, which its caller reads from the
//! status. In this order: the shop's lists of refused customers, then the provider's decision (both before the commit, in
//! [`engine`]), then the customer's daily limit and the balance (inside the commit, where they cannot be raced). The
//! merchant's opening balances are posted before either, by its first operation, or by its first v1 balance request if
//! that comes earlier.
//!
//! # Invariants
//!
//! - A 200 is sent only after the commit that holds its operation is on disk.
//! - Every order has one home, for ever: here, or with the old v1 service. A v1 create reaches the old service only after its
//!   claim is on disk, and an order that is at home there is never created here. One that was lost with a store is at home
//!   nowhere: it is neither created nor forwarded.
//! - Money is a whole number of hundredths ([`domain::Amount`]); no binary float is on its way.
//! - A rejected request stores nothing.
//! - A state is terminal once ([`domain::State`]); a result, its ledger entries and its callback commit
//!   together.
//! - The entries of a merchant and currency sum to zero at every commit ([`domain::Posting`]).
//! - No v1 create reaches a remote engine before the journal holds it, and no entry of the journal is ever sent with
//!   another body.
//! - A callback is queued in the commit of the result that it reports, keeps its id, and stays queued until its receiver
//!   has answered.
//! - Addresses that the rules do not name are connected to on the public internet only ([`outbound`]).
//! - An operation that a payment check refused is never sent to a provider.
//! - One immutable [`rules::RuleSet`] serves a request from its first byte to its reply.
//! - Account numbers, payers and `fields` are sealed at rest; secrets, signatures and links reach no log.
//! - Everything has a bound.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::as_conversions, clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

pub mod app;
pub mod auth;
pub mod backoff;
pub mod build_info;
pub mod callback;
pub mod certs;
pub mod cli;
pub mod clock;
mod connection_error;
pub mod console;
pub mod deps;
pub mod domain;
pub mod engine;
pub mod error;
pub mod homes;
pub mod http;
pub mod json;
pub mod legacy;
mod names;
pub mod operations;
pub mod outbound;
pub mod pages;
pub mod provider;
mod queue_worker;
pub mod remote;
pub mod reply_room;
pub mod rules;
pub mod service;
pub mod shadow;
mod slots;
pub mod store;
pub mod store_settings;
pub mod telemetry;
pub mod traffic;
mod trust;
pub mod v1;
pub mod v2;
pub mod wire;
