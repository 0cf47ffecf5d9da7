//! Handles reports that an HTTP provider sends by itself: `POST /providers/{shop}/events` (contract section 8).

use bytes::Bytes;

use super::http::reply;
use crate::auth::SignedBody;
use crate::domain::{Answer, Operation, ProviderKind, ShopCode, Status, TransactionId};
use crate::engine::{Engine, Reported};
use crate::error::{ApiError, Conflict, RequestError};
use crate::rules::{HttpProvider, ProviderRules, RuleSet};
use crate::wire::members::{read_object, required_parsed};

/// Returns the HTTP provider of the shop that a report's path names. The shop may be closed for new operations: those
/// it has must still be completed.
#[must_use]
pub fn provider_of<'r>(rules: &'r RuleSet, shop: &str) -> Option<(&'r ShopCode, &'r HttpProvider)> {
    let (code, shop) = rules.shops.get_key_value(shop)?;
    match &shop.provider {
        ProviderRules::Http(provider) => Some((code, provider)),
        ProviderRules::Sandbox { .. } => None,
    }
}

/// Processes a report of a shop's provider. Returns the body of the 200 reply, with the operation's status after the
/// report. A repeated report gets the same reply.
///
/// # Errors
/// The report is malformed, names an operation of another shop ([`ApiError::NotFound`]) or contradicts the operation's
/// result ([`ApiError::Conflict`]), or the store is unavailable: then nothing was recorded.
pub async fn take(engine: &Engine, shop: &ShopCode, body: &SignedBody) -> Result<Answer, ApiError> {
    let report = read_object(body.bytes())?;
    let id = required_parsed("transaction_id", report.get("transaction_id"), |text| Ok(text.to_owned()))?;
    // A malformed id names no operation.
    let id = TransactionId::parse(&id).map_err(|_| ApiError::NotFound)?;
    let operation = operation(engine, shop, id).await?;
    let report = reply::read(&report, &operation)?;
    match engine.report(ProviderKind::Http, shop, id, report).await? {
        Reported::Taken | Reported::Repeated => {
            let status = self::operation(engine, shop, id).await?.state.status();
            Ok(Answer { body: reply(id, status), transaction_id: Some(id.digits().as_str().into()) })
        }
        Reported::Contradicts(status) => {
            let reason = format!("contradicts the operation's final status {}, which is kept", status.as_str());
            let conflict = Conflict::from(RequestError::member("status", reason));
            Err(ApiError::Conflict(conflict.with(id.digits().as_str())))
        }
        Reported::Unknown => Err(ApiError::NotFound),
    }
}

async fn operation(engine: &Engine, shop: &ShopCode, id: TransactionId) -> Result<Operation, ApiError> {
    let stored = engine.store().by_id(id).await?;
    // An operation created for the sandbox is excluded: this provider cannot report its result.
    let is_own = |operation: &Operation| operation.shop == *shop && operation.provider == ProviderKind::Http;
    stored.map(|stored| stored.operation).filter(is_own).ok_or(ApiError::NotFound)
}

fn reply(id: TransactionId, status: Status) -> Bytes {
    format!(r#"{{"transaction_id":"{id}","status":"{}"}}"#, status.as_str()).into()
}
