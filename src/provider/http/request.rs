//! Writes the body of a request to a provider (docs/providers.md).

use std::fmt::Write as _;

use crate::domain::{Fields, Kind, MERCHANT_USER_IP, Operation, RedirectUrl, UnixMillis};
use crate::json::{self, Node, write_string};

/// The content of a request to a provider. It holds account numbers and a customer's link, so it has no `Debug`.
#[derive(Clone, Copy)]
pub(crate) struct ProviderBody<'a> {
    pub operation: &'a Operation,
    pub fields: &'a Fields,
    /// The start of the URL to which the provider sends reports.
    pub public_url: &'a str,
    /// Where the provider's page sends a deposit's customer back, if the shop offers a return.
    pub return_url: Option<&'a RedirectUrl>,
}

/// Writes the body of a request. The same content always gives the same bytes.
pub(super) fn body(request: ProviderBody<'_>) -> String {
    let ProviderBody { operation, fields, public_url, return_url } = request;
    let mut body = Writer { text: String::with_capacity(1024 + fields.sent.len() + fields.defaults.len()) };
    body.string("transaction_id", &operation.id.to_string());
    body.string("direction", operation.direction().as_str());
    body.string("merchant", operation.merchant.as_str());
    body.string("order_id", operation.order_id.as_str());
    body.string("shop", operation.shop.as_str());
    body.optional("payment_method", operation.payment_method.as_deref());
    body.string("amount", &operation.amount.to_string());
    body.string("currency", operation.currency.as_str());
    body.string("created_at", &rfc3339(operation.created_at));
    if let Some(account) = operation.customer_account_id {
        body.raw("customer_account_id", &account.to_string());
    }
    body.optional("customer_ip", customer_ip(fields).as_deref());
    if let Kind::Withdrawal(withdrawal) = &operation.kind {
        body.string("account_number", withdrawal.account_number.expose());
        body.optional("account_channel", withdrawal.account_channel.as_deref());
    }
    body.raw("fields", &with_defaults(fields));
    body.string("events_url", &events_url(public_url, operation.shop.as_str()));
    body.optional("return_url", return_url.map(RedirectUrl::expose));
    body.text.push('}');
    body.text
}

/// Returns the URL to which the provider of a shop sends reports.
fn events_url(public_url: &str, shop: &str) -> String {
    format!("{}/providers/{shop}/events", public_url.trim_end_matches('/'))
}

struct Writer {
    text: String,
}

impl Writer {
    fn name(&mut self, name: &str) {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        write_string(&mut self.text, name);
        self.text.push(':');
    }

    fn string(&mut self, name: &str, value: &str) {
        self.name(name);
        write_string(&mut self.text, value);
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(name, value);
        }
    }

    fn raw(&mut self, name: &str, value: &str) {
        self.name(name);
        let _ = write!(self.text, "{value}");
    }
}

fn rfc3339(moment: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(moment.0).unwrap_or(jiff::Timestamp::MAX).to_string()
}

/// Returns the customer's IP address as the merchant sent it: a schema's default never replaces it.
fn customer_ip(fields: &Fields) -> Option<String> {
    let Ok(json::Value { node: Node::Object(sent), .. }) = json::read(fields.sent.as_bytes()) else { return None };
    sent.get(MERCHANT_USER_IP)?.as_str().map(str::to_owned)
}

/// Joins the members that were sent and those that the schema's defaults added, which never share a name, into one
/// object. They are joined as text, so that every value keeps its bytes.
fn with_defaults(fields: &Fields) -> String {
    let inside =
        |object: &str| object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(str::to_owned);
    let (sent, defaults) = (inside(&fields.sent).unwrap_or_default(), inside(&fields.defaults).unwrap_or_default());
    let comma = if sent.trim().is_empty() || defaults.trim().is_empty() { "" } else { "," };
    format!("{{{sent}{comma}{defaults}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::testing::deposit;

    const PUBLIC_URL: &str = "https://pay.example";

    fn fields(sent: &str, defaults: &str) -> Fields {
        Fields { sent: sent.to_owned().into(), defaults: defaults.to_owned().into(), ..Fields::default() }
    }

    #[test]
    fn a_deposit_omits_absent_members() {
        let mut operation = deposit();
        operation.customer_account_id = None;
        operation.payment_method = None;
        let fields = fields(r#"{"merchant_user_ip":null}"#, "{}");
        let text =
            body(ProviderBody { operation: &operation, fields: &fields, public_url: PUBLIC_URL, return_url: None });
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut members: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(
            members,
            [
                "amount",
                "created_at",
                "currency",
                "direction",
                "events_url",
                "fields",
                "merchant",
                "order_id",
                "shop",
                "transaction_id"
            ]
        );
        assert_eq!(value["fields"], serde_json::json!({ "merchant_user_ip": null }));
    }

    #[test]
    fn members_and_defaults_are_joined() {
        for (sent, defaults, joined) in [
            ("{}", "{}", "{}"),
            ("{}", r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"b":"}"}"#, "{}", r#"{"b":"}"}"#),
            (r#"{"b":{}}"#, r#"{"a":{}}"#, r#"{"b":{},"a":{}}"#),
        ] {
            assert_eq!(with_defaults(&fields(sent, defaults)), joined);
        }
    }

    #[test]
    fn a_default_never_replaces_the_customers_address() {
        assert_eq!(customer_ip(&fields("{}", r#"{"merchant_user_ip":"192.0.2.1"}"#)), None);
        assert_eq!(customer_ip(&fields(r#"{"merchant_user_ip":"192.0.2.2"}"#, "{}")).as_deref(), Some("192.0.2.2"));
    }

    #[test]
    fn the_documented_examples_are_real() {
        use std::time::Duration;

        use crate::auth::signatures;
        use crate::auth::signatures::sign_v2;
        use crate::domain::Secret;
        use crate::domain::{Currency, CustomerAccountId, MerchantId, OrderId, ShopCode, TransactionId};

        let documented = include_str!("../../../docs/providers.md");
        let operation = Operation {
            id: TransactionId::parse("7320951846201344").unwrap(),
            merchant: MerchantId::new("acme").unwrap(),
            order_id: OrderId::new("order-1001").unwrap(),
            currency: Currency::new("EUR").unwrap(),
            shop: ShopCode::new("bank-eur").unwrap(),
            payment_method: Some("bank".into()),
            customer_account_id: Some(CustomerAccountId(42)),
            created_at: UnixMillis(1_795_237_200_123),
            ..deposit()
        };
        let fields = fields(r#"{"merchant_user_ip":"203.0.113.9","bank_code":"BANK-A"}"#, r#"{"channel":"web"}"#);
        let public_url = "https://localhost:8443";
        let expires = operation.created_at.plus(Duration::from_hours(7 * 24)).seconds();
        let link =
            signatures::sign_link(&Secret::new(b"page-secret"), public_url, signatures::RETURN, operation.id, expires);
        let return_url = RedirectUrl::new(link);
        let request =
            body(ProviderBody { operation: &operation, fields: &fields, public_url, return_url: Some(&return_url) });
        let report =
            r#"{"transaction_id":"7320951846201344","status":"SUCCESS","payer_account":"DE02120300000000202051"}"#;
        for text in [request.as_str(), report] {
            let signature = sign_v2(&Secret::new(b"provider-secret"), text.as_bytes());
            assert!(documented.contains(&format!("\n{text}\n")), "{text}");
            assert!(documented.contains(&format!("X-Signature: {signature}\n")), "{signature}");
        }
    }
}
