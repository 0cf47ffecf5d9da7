//! Errors: in the dialect's shape once the caller is proven, in the default one before.

use super::*;

pub async fn of_proven_callers(world: &World) {
    let wire = world.wire;
    world.create(&ACME, wire.payin(), &payin("taken")).await;
    let post = |body: &Value| wire.post(&ACME, wire.payin(), body);
    let refused: &[(Request, u16, &str)] = &[
        (post(&with(payin("bad"), "amount", Some(json!(10.5)))), 400, "amount"),
        (post(&with(payin("bad"), "paymentData.bank_code", Some("NOBODY".into()))), 400, "paymentData.bank_code"),
        (post(&with(payin("bad"), "shop_code", Some("off-eur".into()))), 400, "shop_code"),
        (post(&with(payin("bad"), "имя", Some(json!(1)))), 400, "имя"),
        (post(&with(payin("bad"), "card_number", Some("4000123412341234".into()))), 400, "card_number"),
        (wire.post(&ACME, wire.payin(), &"{"), 400, ""),
        (wire.post(&ACME, wire.payin(), &"[]"), 400, ""),
        (wire.post(&ACME, &format!("{}?amount=1", wire.payin()), &payin("bad")), 400, "query"),
        (post(&with(payin("taken"), "currency", Some("USD".into()))), 409, "currency"),
        (wire.get(&ACME, &wire.payin_status("external_id=bad")), 404, ""),
        (wire.get(&ACME, &wire.payin_status("shop_code=card-eur")), 400, "external_id"),
        (wire.get(&ACME, &wire.payin_status("external_id=a&external_id=b")), 400, "external_id"),
        (wire.get(&ACME, wire.paths[2]), 400, "external_id"),
        (wire.get(&ACME, &wire.payout_status("external_id=taken")), 404, ""),
    ];
    for protocol in PROTOCOLS {
        for (request, status, stated) in refused {
            let why = world.refused_by(protocol, &request.clone().header("X-Request-Id", "mine-1"), *status).await;
            assert!(why.contains(stated), "{stated:?} in {why:?}");
            assert!(!["order_id", "fields", "account_number"].iter().any(|word| why.contains(word)), "{why}");
        }
    }
    world.assert_nothing_stored("bad").await;
}

pub async fn of_others(world: &World) {
    let (wire, client) = (world.wire, &world.client);
    let good = wire.post(&ACME, wire.payin(), &payin("shy"));
    let [_, signature, _] = wire.headers;
    let huge = with(payin("shy"), "paymentData.extra", Some(json!({ "x": "x".repeat(70_000) })));
    let refused: &[(Request, u16)] = &[
        (good.clone().replace(signature, Some(&(wire.mac)(b"nobody's", b""))), 401),
        (wire.post(&Key { name: "nobody", ..ACME }, wire.payin(), &payin("shy")), 401),
        (wire.post(&Key { v1: Some("acme-v1-hush-old"), ..ACME }, wire.payin(), &payin("shy")), 401),
        (wire.post(&ACME_NOWHERE, wire.payin(), &payin("shy")), 403),
        (wire.post(&ACME, &format!("{}/x", wire.paths[4]), &payin("shy")), 404),
        (wire.post(&ACME, &wire.payin().to_uppercase(), &payin("shy")), 404),
        (wire.post(&ACME, wire.payin(), &huge), 413),
        (good.clone().replace("Content-Type", None), 415),
        (good.clone().replace("Content-Type", Some("text/plain")), 415),
        (good.clone().header("Content-Encoding", "gzip"), 415),
    ];
    for protocol in PROTOCOLS {
        for (request, status) in refused {
            client.send_by(protocol, request).await.expect(*status);
        }
        let reply = client.send_by(protocol, &wire.get(&ACME, wire.payout())).await.expect(405);
        assert_eq!(reply.header("allow"), "POST");
    }
    // Two at once, then one a second: the same request again and again is soon too often.
    let often = wire.post(&ACME_LIMITED, wire.payin(), &payin("often"));
    let limited = eventually("the key is limited", async || {
        let reply = world.send(&often).await;
        (reply.status != 200).then_some(reply)
    })
    .await;
    limited.expect(429).check(Some(&often));
    world.assert_nothing_stored("shy").await;
}
