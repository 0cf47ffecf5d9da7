//! Today's rules for a create, as a pure function from a request and a snapshot of the rules to what it may become.

use std::sync::Arc;

use super::FailureCause;
use super::checks;
use crate::domain::{CreateRequest, Direction, RequestKind, SchemaFields};
use crate::failure::RequestError;
use crate::rules::{ApiKey, FieldProblem, Merchant, Shop};
use crate::store::Fields;

/// A request that today's rules accept.
#[derive(Debug)]
pub struct AcceptedRequest {
    /// The shop that serves it.
    pub shop: Arc<Shop>,
    /// Which members of `fields` the shop's schema keeps.
    pub kept: SchemaFields,
    /// The `fields` to be stored.
    pub fields: Fields,
    /// Why the shop's payment checks let it be created FAILED, if they do.
    pub failure: Option<FailureCause>,
}

/// Applies today's rules to a request, in this order: shop, currency, account, `fields`, payment checks. What the checks
/// refuse is accepted as an operation that failed.
///
/// # Errors
/// The first rule that refuses it, named by its v2 member.
pub fn check_rules(
    merchant: &Merchant,
    api_key: &ApiKey,
    request: &CreateRequest<'_>,
) -> Result<AcceptedRequest, RequestError> {
    let direction = request.kind.direction();
    let shop = select_shop(merchant, api_key, direction, request.method.as_deref())?;
    if request.currency != shop.currency {
        return Err(RequestError::member("currency", "must be the currency of the shop"));
    }
    if let RequestKind::Withdrawal { account_number, .. } = &request.kind {
        shop.account.check(account_number).map_err(|invalid| RequestError::invalid("account_number", &invalid))?;
    }
    let (kept, fields) = check_fields(merchant, request, &shop)?;
    let failure = checks::refusal(&shop.checks, request);
    Ok(AcceptedRequest { shop, kept, fields, failure })
}

/// The shop that a request names, or the merchant's default. Unknown, inactive and not enabled shops are the same to the
/// caller.
fn select_shop(
    merchant: &Merchant,
    api_key: &ApiKey,
    direction: Direction,
    method: Option<&str>,
) -> Result<Arc<Shop>, RequestError> {
    let (code, reason) = match (method, &merchant.default_shop) {
        (Some(named), _) => (named, "must be the code of an active shop that is enabled for this operation"),
        (None, Some(default)) => {
            (default.as_str(), "must be given: the default shop is not enabled for this operation")
        }
        (None, None) => return Err(RequestError::member("method", "is required: there is no default shop")),
    };
    merchant
        .shops
        .get(code)
        .filter(|access| access.enabled(direction) && access.shop.active && api_key.may_use(&access.shop.code))
        .map(|access| Arc::clone(&access.shop))
        .ok_or_else(|| RequestError::member("method", reason))
}

/// Applies the shop's schema to `fields` and reduces them to what it keeps.
fn check_fields(
    merchant: &Merchant,
    request: &CreateRequest<'_>,
    shop: &Shop,
) -> Result<(SchemaFields, Fields), RequestError> {
    let Some(schema) = &shop.side(request.kind.direction()).schema else {
        let sent = request.fields.reduced(&SchemaFields::Everything).text().into();
        return Ok((SchemaFields::Everything, Fields { sent, ..Fields::default() }));
    };
    let kept = SchemaFields::Names(Arc::clone(schema.kept()));
    let reduced = request.fields.reduced(&kept);
    let defaults = schema.check_fields(&merchant.id, &reduced).map_err(request_error)?;
    let sent = reduced.text().into();
    Ok((kept, Fields { sent, defaults, ..Fields::default() }))
}

fn request_error(problem: FieldProblem) -> RequestError {
    let path = if problem.path.is_empty() { "fields".to_owned() } else { format!("fields.{}", problem.path) };
    RequestError::member(path, problem.reason)
}
