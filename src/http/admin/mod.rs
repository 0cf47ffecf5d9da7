//! The admin listener: HTTP/1 for probes, metrics, an API and the operators' console (contract sections 1 and 13).
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | 200: the process is alive |
//! | `/readyz` | 200, or 503 with the reason |
//! | `/metrics` | the metrics, as Prometheus text 0.0.4 or, when `Accept` names it, as `OpenMetrics` |
//! | `/api/rules` | `{"version","loaded_at","error"}`, and also `needs_restart` (keys of `gateway.toml`), `problems` and `problem_count`, `warnings` and `warning_count`, `certificate` |
//! | `POST /api/rules/reload` | the same after a reload: 200, or 422 when the rules on disk are refused |
//! | `/api/requests` | `{"requests":[...]}`: the last refused and failed requests of this process, the newest first. `request_id`, `merchant`, `reason`, `limit` (1 to 1000, default 50) |
//! | `/api/callbacks` | `{"callbacks":[...],"next"}`: callbacks to merchants, the newest first. `state` (`pending`, `delivered`, `failed`, separated by commas; default `pending,failed`), `merchant`, `order_id` (with `merchant`), `since` and `until` (RFC 3339, a date in UTC, or an age such as `2h`), `limit` (1 to 1000, default 50), `after` (the `next` of an earlier answer) |
//! | `/api/callbacks/{id}` | one callback, with its `tries` |
//! | `POST /api/callbacks/{id}/resend` | queues it again and returns it: 200, 404, or 409 while it is being sent |
//! | `POST /api/callbacks/resend` | `{"resent","next"}`: queues failed callbacks again, 500 a request or `limit`. `state=failed` is required; `merchant`, `since`, `until`, `after` as above, until `next` is `null` |
//! | `POST /api/callbacks/sample` | sends `merchant` a callback that is marked as a sample and not stored, and returns the outcome. `key` (whose secret signs), `kind` (`v1`, `v2`), `url` |
//! | `/api/readiness` | whether merchants can move to v2, as `paybridge readiness --format json` prints it; `merchant`: this one alone; `shop` and `kind` (`payin`, `payout`) select rows |
//! | `/`, `/rules`, `/merchants`, `/operations`, `/callbacks`, `/requests`, `/explain`, `/audit` and below | the console's pages ([`crate::console`]). `result`: the id of the action that led to one, whose outcome it shows |
//! | `/sign-in`, `/sign-out` | the form that starts a session, and its end |
//! | `/api/openapi.json` | the v2 interface as an `OpenAPI` 3.1 document, as this binary serves it |
//!
//! `routes` has the one table of all paths, the console's pages too, with the role that each needs. A request passes these
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
