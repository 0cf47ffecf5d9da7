//! Every refusal is explained by its access line and counted: `reason`, `member` and `transaction_id` are in the line, and
//! the metric, the merchant's page and the overview count under the same names.

use serde_json::json;

use crate::console::page;
use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::{Gateway, Request, Rules, deposit, eventually, payin, text, withdrawal};

/// The access line of a request id.
async fn line(gateway: &Gateway, request_id: &str) -> String {
    let named = format!(" request_id={request_id} ");
    eventually("an access line", async || gateway.log().lines().find(|line| line.contains(&named)).map(str::to_owned))
        .await
}

/// The value of a field.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

#[tokio::test]
async fn every_refusal_has_a_reason_and_is_counted() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let v1 = client.send(&Request::payin(&ACME, &payin("v1-1"))).await.expect(200).json();
    let v2 = client.send(&Request::deposit(&ACME, &deposit("v2-1"))).await.expect(200).json();
    let (v1, v2) = (text(&v1, "transaction_id"), text(&v2, "transaction_id"));
    let changed = with(with(deposit("v2-1"), "amount", Some(json!(11))), "customer_account_id", Some(json!(7)));
    let none = None::<&str>;
    let cases = [
        (Request::payin(&ACME, &payin("v1-1")), 200, none, none, Some(v1)),
        (Request::v1_status(&ACME, "payin", "v1-1"), 200, none, none, Some(v1)),
        (Request::status(&ACME, v2), 200, none, none, Some(v2)),
        (Request::deposit(&ACME, &changed), 409, Some("conflict"), Some("amount,customer_account_id"), Some(v2)),
        (Request::deposit(&ACME, &deposit("v1-1")), 409, Some("conflict"), Some("order_id"), Some(v1)),
        (Request::payin(&ACME, &payin("v2-1")), 409, Some("conflict"), Some("external_id"), Some(v2)),
        (
            Request::payin(&ACME, &with(payin("v1-1"), "shop_code", None)),
            409,
            Some("conflict"),
            Some("shop_code"),
            Some(v1),
        ),
        (
            Request::deposit(&ACME, &with(deposit("v2-2"), "currency", Some(json!("usd")))),
            400,
            Some("invalid"),
            Some("currency"),
            None,
        ),
        (
            Request::withdrawal(&ACME, &with(withdrawal("v2-3"), "account_number", None)),
            400,
            Some("invalid"),
            Some("account_number"),
            None,
        ),
        (
            Request::payin(&ACME, &with(payin("v1-2"), "amount", Some(json!(5)))),
            400,
            Some("shape"),
            Some("amount"),
            None,
        ),
        (Request::status(&ACME, "7"), 404, Some("not_found"), none, None),
        (Request::v1_status(&ACME, "payin", "unknown"), 404, Some("not_found"), none, None),
        (Request::v1_status(&ACME, "payin", ""), 400, Some("invalid"), Some("external_id"), None),
    ];
    for (number, (request, status, reason, member, id)) in cases.into_iter().enumerate() {
        let request_id = format!("refusal-{number}");
        let reply = client.send(&request.header("X-Request-Id", &request_id)).await;
        assert_eq!(reply.status, status, "{number}: {reply:?}");
        let line = line(&gateway, &request_id).await;
        let found = ["reason", "member", "transaction_id"].map(|name| field(&line, name));
        assert_eq!(found, [reason, member, id], "{number}: {line}");
    }
    let metrics = gateway.admin_get("/metrics").unwrap().1;
    let merchant = page(&gateway, "/merchants/acme");
    for (reason, count) in [("conflict", 4), ("invalid", 3), ("not_found", 2), ("shape", 1)] {
        assert!(metrics.contains(&format!("paybridge_refusals_total{{reason=\"{reason}\"}} {count}\n")), "{metrics}");
        let row = format!("<th scope=\"row\">{reason}</th><td class=\"n\">{count}</td>");
        assert!(merchant.contains(&row), "{reason}: {merchant}");
    }
}
