//! Drafts as the engine creates them from v1 deposits, for benchmarks that call the store directly.

use std::sync::Arc;

use paybridge::domain::{
    Amount, BrowserUrl, Bucket, CallbackSender, CallbackUrl, Currency, CustomerAccountId, Deposit, Fields,
    FingerprintInput, FingerprintKey, Kind, MerchantId, Operation, OrderId, ProviderKind, RedirectUrl, SchemaFields,
    ShopCode, State, TransactionId, UnixMillis,
};
use paybridge::store::{NewOperation, RequestFingerprint};

/// The members that the shop's schema keeps.
const KEPT: [&str; 3] = ["email", "first_name", "merchant_user_ip"];

/// Creates drafts of one merchant.
pub struct Drafts {
    merchant: MerchantId,
    shop: ShopCode,
    fingerprint_key: FingerprintKey,
    kept: Arc<[Box<str>]>,
}

impl Drafts {
    /// Creates the source of drafts for a merchant and a shop; `fingerprint_key` is the store's.
    pub fn new(merchant: &str, shop: &str, fingerprint_key: FingerprintKey) -> Self {
        Self {
            merchant: MerchantId::new(merchant).unwrap(),
            shop: ShopCode::new(shop).unwrap(),
            fingerprint_key,
            kept: KEPT.map(Box::from).into(),
        }
    }

    /// Returns a pending deposit under this `order_id`, created at `now`; `random` distinguishes those of one millisecond.
    pub fn deposit(&self, order_id: &str, now: UnixMillis, random: u64) -> NewOperation {
        let id = TransactionId::compose(now, Bucket::of(&self.merchant), random);
        let fingerprint = |purpose: &str| {
            let mut parts = FingerprintInput::of(purpose);
            parts.part(order_id.as_bytes());
            self.fingerprint_key.fingerprint(&parts)
        };
        let reported = CallbackUrl::new("https://acme.example/cb").unwrap();
        NewOperation {
            operation: self.operation(id, order_id, now),
            order_key: None,
            api_key: "acme-live".into(),
            failure: None,
            fields: Fields {
                sent: r#"{"email":"ann@example.com","merchant_user_ip":"203.0.113.9"}"#.into(),
                defaults: r#"{"channel":"web"}"#.into(),
                ..Fields::default()
            },
            comparison: RequestFingerprint {
                fingerprint: fingerprint("v2 create"),
                kept: SchemaFields::Names(Arc::clone(&self.kept)),
            },
            v1: Some(CallbackSender::Relayed(Some(reported))),
            provider_job: Some(UnixMillis(now.0 + 50)),
            opening: None,
            enforce_balance: false,
            daily_limit: None,
        }
    }

    fn operation(&self, id: TransactionId, order_id: &str, now: UnixMillis) -> Operation {
        let back = BrowserUrl::new("https://acme.example/done?x=1").unwrap();
        let link = format!("https://localhost:8443/pay/{id}?expires=1780001800&signature={}", "5f".repeat(32));
        Operation {
            id,
            merchant: self.merchant.clone(),
            order_id: OrderId::new(order_id).unwrap(),
            amount: Amount::from_hundredths(1050).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            method: Some(self.shop.clone()),
            shop: self.shop.clone(),
            payment_method: Some("card".into()),
            customer_account_id: Some(CustomerAccountId(42)),
            callback_url: CallbackUrl::new("https://localhost:8443/relay/5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f").unwrap(),
            kind: Kind::Deposit(Deposit {
                success_url: back.clone(),
                pending_url: back.clone(),
                fail_url: back,
                redirect_url: RedirectUrl::new(link),
            }),
            provider: ProviderKind::Sandbox,
            state: State::Pending,
            created_at: now,
        }
    }
}
