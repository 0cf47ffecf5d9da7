//! The endpoints of the API for operations after their creation (contract section 14).

use serde_json::json;

use super::actions;
use super::api::done;
use super::context::{AdminContext, HandlerResult};
use super::parameters::given;
use super::refused::Refused;
use super::reply;
use super::request::AdminRequest;
use crate::domain::TransactionId;
use crate::error::RequestError;
use crate::json::Object;
use crate::operations::{
    ActionRefusal, DEFAULT_LIMIT, MAX_OPERATIONS, OperationFilter, OperationTimeline, find, new_resolution, own_id,
    timeline,
};
use crate::store::{NewResolution, ResolutionId};
use crate::v1::query::{decoded, parameters};
use crate::wire::members::{read_object, read_parameter, required_parsed};

/// Answers `GET /api/operations`.
pub(super) async fn list(context: &AdminContext<'_>) -> HandlerResult {
    let [filter @ .., limit, after] = given(context.request.query, OperationFilter::PARAMETERS)?;
    let limit = read_parameter("limit", &limit, "must be a number from 1 to 200", |text| {
        text.parse().ok().filter(|limit| (1..=MAX_OPERATIONS).contains(limit))
    })?;
    let filter = OperationFilter::of(filter);
    let search = filter.search(&after, limit.unwrap_or(DEFAULT_LIMIT))?;
    let rules = context.source.rule_set();
    let found = find(context.source.store(), &rules, &search, &context.source.overdue()).await?;
    Ok(reply::document(&found))
}

/// Answers `GET /api/operations/{id}`, and what an action made of it.
pub(super) async fn show(context: &AdminContext<'_>) -> HandlerResult {
    Ok(reply::document(&shown(context).await?))
}

/// Returns the operation of the path with its timeline.
pub(super) async fn shown(context: &AdminContext<'_>) -> Result<OperationTimeline, Refused> {
    let source = &**context.source;
    let id = decoded(context.request.id).ok_or(ActionRefusal::Unknown)?;
    let found = timeline(source.store(), &source.rule_set(), &id, &source.overdue(), source.now()).await?;
    Ok(found.ok_or(ActionRefusal::Unknown)?)
}

/// Answers `POST /api/operations/{id}/ask`.
pub(super) async fn ask(context: &AdminContext<'_>) -> HandlerResult {
    parameters(context.request.query, [])?;
    let message = done(actions::ask(context, id(context)?).await?)??;
    Ok(reply::document(&json!({ "message": message })))
}

/// Answers `POST /api/operations/{id}/resolve`.
pub(super) async fn resolve(context: &AdminContext<'_>) -> HandlerResult {
    let id = id(context)?;
    let body = body(context, &["status", "reason"])?;
    let text = |name: &'static str| required_parsed(name, body.get(name), |text| Ok(text.to_owned()));
    let new = resolution(context, id, &text("status")?, &text("reason")?)?;
    let number = new.id;
    let waits = done(actions::resolve(context, new).await?)??;
    if waits {
        return Ok(reply::accepted(&json!({ "resolution": number.to_string() })));
    }
    show(context).await
}

/// Makes the resolution that a user requests.
pub(super) fn resolution(
    context: &AdminContext<'_>,
    id: TransactionId,
    status: &str,
    reason: &str,
) -> Result<NewResolution, Refused> {
    let (source, user) = (context.source, &context.request.user.name);
    check_resolver(context)?;
    let needs_confirmation = source.rule_set().gateway.admin.second_operator;
    let new = new_resolution(id, (status, reason), user, source.now(), source.random())?;
    Ok(NewResolution { needs_confirmation, ..new })
}

/// Returns why the user of a request cannot resolve and confirm: two operators with the same user could be one person.
pub(super) fn cannot_resolve(context: &AdminContext<'_>) -> Option<ActionRefusal> {
    let reason = "a user of [[admin.users]] has to resolve and to confirm, since admin.second_operator is set";
    let is_shared = ["local", "token"].contains(&&*context.request.user.name);
    (is_shared && context.source.rule_set().gateway.admin.second_operator).then_some(ActionRefusal::Forbidden(reason))
}

/// Refuses and logs an action of a user that cannot resolve and confirm.
pub(super) fn check_resolver(context: &AdminContext<'_>) -> Result<(), Refused> {
    let Some(refusal) = cannot_resolve(context) else { return Ok(()) };
    let AdminRequest { user, address, request_id, .. } = context.request;
    let user = &*user.name;
    tracing::warn!(user, %address, request_id, refused = "second_operator", "refused an action");
    Err(refusal.into())
}

/// Answers `POST /api/operations/{id}/confirm`.
pub(super) async fn confirm(context: &AdminContext<'_>) -> HandlerResult {
    let id = id(context)?;
    let body = body(context, &["resolution"])?;
    let number = required_parsed("resolution", body.get("resolution"), |text| Ok(text.to_owned()))?;
    check_resolver(context)?;
    done(actions::confirm(context, id, resolution_id(&number)).await?)??;
    show(context).await
}

/// Reads the number of a resolution. A malformed one names none, as number 1 does.
pub(super) fn resolution_id(text: &str) -> ResolutionId {
    ResolutionId(TransactionId::parse(text).unwrap_or_else(|_| TransactionId::first_of(crate::domain::UnixMillis(0))))
}

/// Answers `POST /api/operations/{id}/acknowledge`.
pub(super) async fn acknowledge(context: &AdminContext<'_>) -> HandlerResult {
    parameters(context.request.query, [])?;
    let id = id(context)?;
    done(actions::acknowledge(context, id).await?)??;
    show(context).await
}

/// Returns the id of the path, of an operation of this engine.
pub(super) fn id(context: &AdminContext<'_>) -> Result<TransactionId, Refused> {
    let id = decoded(context.request.id).unwrap_or_default();
    Ok(own_id(&context.source.rule_set(), &id)?)
}

/// Reads the body of an action, which has these members alone.
fn body<'b>(context: &'b AdminContext<'_>, members: &[&str]) -> Result<Object<'b>, Refused> {
    parameters(context.request.query, [])?;
    let body = read_object(&context.request.body)?;
    match body.0.iter().find(|member| !members.contains(&&*member.name)) {
        Some(unknown) => Err(RequestError::member(unknown.name.clone().into_owned(), "is unknown").into()),
        None => Ok(body),
    }
}
