//! Creates, repeats and statuses.

use super::*;

pub async fn deposits(world: &World) {
    let wire = world.wire;
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        let id = format!("in-{number}");
        let created = world.create_by(protocol, &ACME, wire.payin(), &payin(&id)).await;
        let link = created.redirect_url.clone().expect("a link");
        assert!(link.contains(&format!("/pay/{}?", created.transaction_id)), "{link}");

        let respelt = with(payin(&id), "amount", Some("0010.5".into()));
        assert_eq!(world.create_by(protocol, &ACME, wire.payin(), &respelt).await, created, "a repeat");
        let other = wire.post(&ACME, wire.payin(), &with(payin(&id), "amount", Some("10.51".into())));
        let why = world.refused_by(protocol, &other, 409).await;
        assert!(why.contains("external_id") && why.contains("amount") && !why.contains("10.51"), "{why}");

        for query in [format!("external_id={id}"), format!("shop_code=card-eur&external_id={id}")] {
            let reply = world.send_by(protocol, &wire.get(&ACME, &wire.payin_status(&query))).await.expect(200);
            let expected = Seen {
                transaction_id: created.transaction_id.clone(),
                external_id: id.clone(),
                status: wire.words[0].to_owned(),
                amount: "10.50".to_owned(),
                currency: "EUR".to_owned(),
                shop_code: "card-eur".to_owned(),
                account_number: None,
            };
            assert_eq!((wire.seen)(&reply.json()), expected);
        }
        for query in [format!("external_id={id}&shop_code=slow-eur"), "external_id=nobody".to_owned()] {
            world.refused_by(protocol, &wire.get(&ACME, &wire.payin_status(&query)), 404).await;
        }
        world.refused_by(protocol, &wire.get(&GAMMA, &wire.payin_status(&format!("external_id={id}"))), 404).await;
    }
    let unnamed = with(payin("unnamed"), "shop_code", None);
    world.create(&ACME, wire.payin(), &unnamed).await;
    let seen = world.seen(&ACME, &wire.payin_status("external_id=unnamed")).await;
    assert_eq!(seen.shop_code, "card-eur", "the selected shop's code");
    let odd = "q\"b\\s/ü 付款 😀";
    let created = world.create(&ACME, wire.payin(), &payin(odd)).await;
    let target = wire.payin_status("external_id=q%22b%5Cs/%C3%BC+%E4%BB%98%E6%AC%BE%20%F0%9F%98%80");
    let seen = world.seen(&ACME, &target).await;
    assert_eq!((seen.external_id.as_str(), seen.transaction_id), (odd, created.transaction_id));
}

pub async fn withdrawals(world: &World) {
    let wire = world.wire;
    for (id, amount, shown, word) in
        [("done", "7.25", "7.25", 1), ("lost", "7.01", "7.01", 2), ("whole", "7", "7.00", 1)]
    {
        let body = with(payout(id), "amount", Some(amount.into()));
        let created = world.create(&ACME, wire.payout(), &body).await;
        assert_eq!(created.redirect_url, None);
        let target = wire.payout_status(&format!("external_id={id}"));
        let seen = eventually("the withdrawal comes to a result", async || {
            let seen = world.seen(&ACME, &target).await;
            (seen.status != wire.words[0]).then_some(seen)
        })
        .await;
        assert_eq!((seen.status.as_str(), seen.amount.as_str()), (wire.words[word], shown));
        assert_eq!(seen.account_number.as_deref(), Some("400012******1234"));
        assert_eq!(world.create(&ACME, wire.payout(), &body).await, created, "a repeat of what has ended");
    }
    // Each kind has its own ids, on its own path.
    world.refused(&wire.get(&ACME, &wire.payin_status("external_id=done")), 404).await;
}

pub async fn empty_lists(world: &World) {
    let wire = world.wire;
    let body = |id: &str, list: Value| with(payout(id), "paymentData", Some(list));
    let empty = wire.post(&ACME, wire.payout(), &body("php", json!([])));
    if wire.empty_list_is_object {
        world.create(&ACME, wire.payout(), &body("php", json!([]))).await;
        world.create(&ACME, wire.payout(), &body("php", json!({}))).await;
    } else {
        let why = world.refused(&empty, 400).await;
        assert!(why.contains("paymentData"), "{why}");
        world.refused(&wire.get(&ACME, &wire.payout_status("external_id=php")), 404).await;
    }
    let why = world.refused(&wire.post(&ACME, wire.payout(), &body("list", json!([1]))), 400).await;
    assert!(why.contains("paymentData"), "{why}");
    world.refused(&wire.get(&ACME, &wire.payout_status("external_id=list")), 404).await;
}
