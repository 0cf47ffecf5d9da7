//! v1 creates: read, translate, forward, answer in the dialect.

use std::time::Instant;

use bytes::Bytes;

use super::translate::{TranslateError, translate};
use super::{relay_url, reply};
use crate::auth::{Caller, SignedBody};
use crate::domain::{CallbackUrl, CreateReply, Direction, Fingerprint, FingerprintKey};
use crate::engine::{ConflictDetail, CreateError, V1Repeat};
use crate::failure::{ApiError, RequestError};
use crate::rules::{CallbackStyle, Merchant};
use crate::store::{CallbackSender, V1Request};
use crate::telemetry::Stage;
use crate::upstream::Upstream;
use crate::v2::{conflict, of_other_version, reserved};
use crate::wire::v1::{V1Create, read_create};

/// Answers a v1 create: the body of the 200 reply in the caller's dialect. Complaints are in v1 words.
///
/// # Errors
/// Why nothing was created.
pub async fn create(
    upstream: &Upstream,
    caller: &Caller,
    direction: Direction,
    body: &SignedBody,
) -> Result<Bytes, ApiError> {
    let dialect = &caller.merchant().v1.dialect;
    let fingerprint_key = upstream.fingerprint_key();
    let create = read_create(direction, body.bytes()).inspect_err(|_| {
        upstream.metrics().translation_refused("shape");
    })?;
    let fingerprint = create.fingerprint(fingerprint_key);
    let order = fingerprint_key.order_key(&caller.merchant().id, direction, &create.external_id);
    let made = match forwarded(upstream, caller, &create, order, fingerprint) {
        Ok((body, v1)) => {
            let created = upstream.create(caller, direction, body, v1).await;
            created.map_err(|refused| in_v1_words(refused, &create, upstream.fingerprint_key()))?
        }
        Err(untranslatable) => answer_untranslatable(upstream, caller, &create, fingerprint, untranslatable).await?,
    };
    Ok(reply::created(dialect, direction, &made))
}

/// The v2 body that a create becomes, and what is kept of the v1 one.
fn forwarded(
    upstream: &Upstream,
    caller: &Caller,
    create: &V1Create<'_>,
    order: Fingerprint,
    fingerprint: Fingerprint,
) -> Result<(Bytes, V1Request), TranslateError> {
    let started = Instant::now();
    let public_url = &caller.rules().gateway.server.public_url;
    let (body, relayed_to) = v2_body(caller.merchant(), public_url, order, create)?;
    upstream.metrics().stage(Stage::Translate, started.elapsed());
    let members = create.not_held(upstream.fingerprint_key(), relayed_to.as_ref());
    let sender = match caller.merchant().v1.callbacks {
        CallbackStyle::V1 => CallbackSender::Relayed(relayed_to),
        CallbackStyle::V2 => CallbackSender::Directly,
    };
    Ok((body, V1Request { fingerprint, members, sender, order }))
}

/// The bytes that are signed and forwarded for a create, and whom the relay tells of its result. `order` is the store's key
/// of the order.
///
/// # Errors
/// The first rule of the merchant's that stands in the way.
pub fn v2_body(
    merchant: &Merchant,
    public_url: &str,
    order: Fingerprint,
    create: &V1Create<'_>,
) -> Result<(Bytes, Option<CallbackUrl>), TranslateError> {
    let relay = relay_url(public_url, &merchant.id, create.direction, order);
    let translation = translate(create, &merchant.v1, &relay)?;
    Ok((translation.to_body().into(), translation.relayed_to.map(|(url, _)| url)))
}

/// A rule of the merchant's stands in the way: that matters only if the order is new.
async fn answer_untranslatable(
    upstream: &Upstream,
    caller: &Caller,
    create: &V1Create<'_>,
    fingerprint: Fingerprint,
    untranslatable: TranslateError,
) -> Result<CreateReply, ApiError> {
    match upstream.v1_repeat(caller, create.direction, &create.external_id, fingerprint).await? {
        V1Repeat::Same(made) => Ok(made),
        V1Repeat::Other(earlier) => Err(ApiError::Conflict(conflict_of(create, upstream.fingerprint_key(), &earlier))),
        V1Repeat::Reserved => Err(ApiError::Conflict(reserved("external_id"))),
        V1Repeat::New => {
            upstream.metrics().translation_refused(untranslatable.reason);
            Err(ApiError::Invalid(untranslatable.complaint))
        }
    }
}

/// What the engine refused, told in the names of the v1 body.
fn in_v1_words(refused: CreateError, create: &V1Create<'_>, fingerprint_key: &FingerprintKey) -> ApiError {
    let named = |paths: Vec<String>| paths.iter().map(|path| create.v1_name(path).into_owned()).collect();
    match refused {
        CreateError::Invalid(complaint) => ApiError::Invalid(complaint.renamed(|path| create.v1_name(path))),
        CreateError::Differs(paths) => ApiError::Conflict(conflict("external_id", named(paths))),
        CreateError::Earlier(earlier) => ApiError::Conflict(conflict_of(create, fingerprint_key, &earlier)),
        CreateError::Reserved => ApiError::Conflict(reserved("external_id")),
        CreateError::Failed(failure) => failure,
    }
}

/// The complaint about a body whose `external_id` names what another body made, or a v2 request.
fn conflict_of(create: &V1Create<'_>, fingerprint_key: &FingerprintKey, earlier: &ConflictDetail) -> RequestError {
    match earlier {
        ConflictDetail::OfV2 => of_other_version("external_id", "v2"),
        ConflictDetail::OfV1(request) => conflict("external_id", create.differing(fingerprint_key, &request.held())),
    }
}
