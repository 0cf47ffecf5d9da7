//! v1 creates: read, translate, create, reply in the dialect.

use bytes::Bytes;

use super::translate::{TranslateError, translate};
use super::{V1Frontend, reply};
use crate::auth::SignedBody;
use crate::domain::{CallbackUrl, Direction, Fingerprint, MerchantId};
use crate::engine::CreateError;
use crate::error::ApiError;
use crate::rules::{CallbackStyle, Merchant};
use crate::store::{CallbackSender, V1Request};
use crate::telemetry::{Stage, Stopwatch};
use crate::v2::{ServiceCall, conflict, of_other_version, reserved};
use crate::wire::v1::{V1Create, read_create};

impl V1Frontend {
    /// Answers a v1 create: the body of the 200 reply in the caller's dialect. Errors name members in v1 words.
    ///
    /// # Errors
    /// Why nothing was created.
    pub async fn create(
        &self,
        call: ServiceCall<'_>,
        direction: Direction,
        body: &SignedBody,
    ) -> Result<Bytes, ApiError> {
        let create = read_create(direction, body.bytes()).inspect_err(|_| {
            self.metrics.translation_refused("shape");
        })?;
        let fingerprint = create.fingerprint(&self.fingerprint_key);
        let created = match self.translate(call, &create, fingerprint) {
            Ok((body, v1)) => self.service.create_from_v1(call, direction, body, v1).await,
            // A rule of the merchant refuses the body. The refusal counts only if the order is new.
            Err(untranslatable) => {
                let repeat = self.service.repeat(call, direction, &create.external_id, fingerprint).await;
                let Some(repeat) = repeat.transpose() else {
                    self.metrics.translation_refused(untranslatable.reason);
                    return Err(ApiError::Invalid(untranslatable.error));
                };
                repeat
            }
        };
        let created = created.map_err(|refusal| self.in_v1_words(refusal, &create))?;
        Ok(reply::created(&call.caller.merchant().v1.dialect, direction, &created))
    }

    /// Translates a create by the merchant's rules: the v2 body, and what is stored of the v1 one.
    fn translate(
        &self,
        call: ServiceCall<'_>,
        create: &V1Create<'_>,
        fingerprint: Fingerprint,
    ) -> Result<(Bytes, V1Request), TranslateError> {
        let watch = Stopwatch::start();
        let merchant = call.caller.merchant();
        let order = self.fingerprint_key.order_key(&merchant.id, create.direction, &create.external_id);
        let public_url = &call.caller.rules().gateway.server.public_url;
        let (body, relayed_to) = v2_body(merchant, public_url, order, create)?;
        self.metrics.stage(Stage::Translate, watch.elapsed());
        let members = create.not_held(&self.fingerprint_key, relayed_to.as_ref());
        let sender = match merchant.v1.callbacks {
            CallbackStyle::V1 => CallbackSender::Relayed(relayed_to),
            CallbackStyle::V2 => CallbackSender::Directly,
        };
        Ok((body, V1Request { fingerprint, members, sender, order }))
    }

    /// Words a refusal with the names of the v1 body.
    fn in_v1_words(&self, refusal: CreateError, create: &V1Create<'_>) -> ApiError {
        const ORDER: &str = "external_id";
        let named = |paths: Vec<String>| paths.iter().map(|path| create.v1_name(path).into_owned()).collect();
        match refusal {
            CreateError::Invalid(error) => ApiError::Invalid(error.renamed(|path| create.v1_name(path))),
            CreateError::OtherData(paths) => ApiError::Conflict(conflict(ORDER, named(paths))),
            CreateError::OtherBody(earlier) => {
                ApiError::Conflict(conflict(ORDER, create.differing(&self.fingerprint_key, &earlier)))
            }
            CreateError::OtherVersion => ApiError::Conflict(of_other_version(ORDER, "v2")),
            CreateError::Reserved => ApiError::Conflict(reserved(ORDER)),
            CreateError::Failed(error) => error,
        }
    }
}

/// Returns the bytes that are signed for a create, and the merchant's address that the relay calls with its result. `order`
/// is the store's key of the order.
///
/// # Errors
/// The merchant's first rule that refuses it.
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

/// Returns the address at which this gateway receives the v2 callback of an order:
/// `{public_url}/relay/{merchant}.{direction}.{code}`. `order` is the store's key of the order, a keyed hash, so that the
/// address cannot be guessed or used for another order. It is the same at every try of a create, so that two concurrent
/// tries send the engine the same body.
#[must_use]
pub fn relay_url(public_url: &str, merchant: &MerchantId, direction: Direction, order: Fingerprint) -> String {
    let mut url = String::with_capacity(public_url.len() + merchant.as_str().len() + 64);
    for piece in [public_url, "/relay/", merchant.as_str(), ".", direction.as_str(), "."] {
        url.push_str(piece);
    }
    url.push_str(&hex::encode(order.0));
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FingerprintKey, OrderId};

    #[test]
    fn one_address_for_each_order() {
        let fingerprint_key = FingerprintKey::new(&[5; 32]);
        let merchant = MerchantId::new("acme").unwrap();
        let url = |direction, order: &str| {
            let order = fingerprint_key.order_key(&merchant, direction, &OrderId::new(order).unwrap());
            relay_url("https://gw.example", &merchant, direction, order)
        };
        let first = url(Direction::Payin, "o1");
        assert_eq!(first, url(Direction::Payin, "o1"));
        assert!(first.starts_with("https://gw.example/relay/acme.payin."), "{first}");
        assert_ne!(first, url(Direction::Payin, "o2"));
        assert_ne!(first.rsplit('.').next(), url(Direction::Payout, "o1").rsplit('.').next());
    }
}
