//! Every refusal is explained by its access line and counted: `reason`, `member` and `transaction_id` are in the line, and
//! the metric, the merchant's page and the overview count under the same names.

use serde_json::json;

use crate::console::page;
use crate::legacy;
use crate::remote::Pair;
use crate::support::bodies::with;
use crate::support::receiver::Receiver;
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
    every_refusal_is_explained(&Gateway::start(&Rules::default()), true).await;
}

#[tokio::test]
async fn every_refusal_of_a_remote_engine_has_a_reason_and_is_counted() {
    every_refusal_is_explained(&Pair::start().gateway, false).await;
}

#[tokio::test]
async fn every_refusal_beside_the_old_service_has_a_reason() {
    let old = Receiver::start(|_, _| {
        legacy::answer(422, "Content-Type: application/json\r\n", r#"{"error":{"code":422,"message":"no"}}"#)
    });
    let gateway = Gateway::start(&legacy::rules(&old, "", "mode = \"legacy\""));
    let client = gateway.client();
    client.send(&Request::deposit(&ACME, &deposit("native"))).await.expect(200);
    let cases = [
        (Request::payin(&ACME, &payin("o-1")), 422, "legacy_refusal", None),
        (Request::v1_status(&ACME, "payin", "o-1"), 422, "legacy_refusal", None),
        (Request::deposit(&ACME, &deposit("o-1")), 409, "conflict", Some("order_id")),
        (Request::payin(&ACME, &payin("native")), 409, "conflict", Some("external_id")),
        (
            Request::payin(&ACME, &with(payin("o-2"), "external_id", Some(json!({})))),
            400,
            "invalid",
            Some("external_id"),
        ),
        (Request::deposit(&ACME, &with(deposit("o-3"), "order_id", Some(json!({})))), 400, "invalid", Some("order_id")),
    ];
    for (number, (request, status, reason, member)) in cases.into_iter().enumerate() {
        let request_id = format!("refusal-{number}");
        let reply = client.send(&request.header("X-Request-Id", &request_id)).await;
        assert_eq!(reply.status, status, "{number}: {reply:?}");
        let line = line(&gateway, &request_id).await;
        assert_eq!((field(&line, "reason"), field(&line, "member")), (Some(reason), member), "{number}: {line}");
    }
}

/// `embedded`: the gateway knows the operations of native creates.
async fn every_refusal_is_explained(gateway: &Gateway, embedded: bool) {
    let client = gateway.client();
    let v1 = client.send(&Request::payin(&ACME, &payin("v1-1"))).await.expect(200).json();
    let v2 = client.send(&Request::deposit(&ACME, &deposit("v2-1"))).await.expect(200).json();
    let (v1, v2) = (text(&v1, "transaction_id"), text(&v2, "transaction_id"));
    let changed = with(with(deposit("v2-1"), "amount", Some(json!(11))), "customer_account_id", Some(json!(7)));
    let none = None::<&str>;
    let native = embedded.then_some(v2);
    // To a remote engine a v1 create is one more native one.
    let of_native = if embedded { "external_id" } else { "merchant_user_id,callback_url,paymentData.return_user_url" };
    let cases = [
        (Request::payin(&ACME, &payin("v1-1")), 200, none, none, Some(v1)),
        (Request::v1_status(&ACME, "payin", "v1-1"), 200, none, none, Some(v1)),
        (Request::status(&ACME, v2), 200, none, none, Some(v2)),
        (Request::deposit(&ACME, &changed), 409, Some("conflict"), Some("amount,customer_account_id"), native),
        (Request::deposit(&ACME, &deposit("v1-1")), 409, Some("conflict"), Some("order_id"), Some(v1)),
        (Request::payin(&ACME, &payin("v2-1")), 409, Some("conflict"), Some(of_native), native),
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
        let line = line(gateway, &request_id).await;
        let found = ["reason", "member", "transaction_id"].map(|name| field(&line, name));
        assert_eq!(found, [reason, member, id], "{number}: {line}");
    }
    let metrics = gateway.admin_get("/metrics").unwrap().1;
    let merchant = page(gateway, "/merchants/acme");
    for (reason, count) in [("conflict", 4), ("invalid", 3), ("not_found", 2), ("shape", 1)] {
        assert!(metrics.contains(&format!("paybridge_refusals_total{{reason=\"{reason}\"}} {count}\n")), "{metrics}");
        let row = format!("<th scope=\"row\">{reason}</th><td class=\"n\">{count}</td>");
        assert!(merchant.contains(&row), "{reason}: {merchant}");
    }
}
