//! The endpoints of callbacks: lists, and what is sent again.

use super::*;

/// Requests a list; returns its orders and the cursor of the next slice.
async fn orders(admin: &Running, query: &str) -> (Vec<String>, Option<String>) {
    let (status, list) = json(admin, &format!("GET /api/callbacks{query}")).await;
    assert_eq!(status, 200, "{query}: {list}");
    let order = |callback: &serde_json::Value| callback["order_id"].as_str().unwrap().to_owned();
    let orders = list["callbacks"].as_array().unwrap().iter().map(order).collect();
    (orders, list["next"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn callbacks_are_listed_shown_and_resent() {
    let world = World::new();
    let mut ids = Vec::new();
    for order in ["o1", "o2", "o3"] {
        ids.push(world.failed_callback(order).await);
        world.clock.advance(Duration::from_mins(1));
    }
    let admin = start_with_world(world).await;
    let all = |orders: &[&str]| orders.iter().map(|order| (*order).to_owned()).collect::<Vec<_>>();
    assert_eq!(orders(&admin, "").await, (all(&["o3", "o2", "o1"]), None));
    let (first, next) = orders(&admin, "?limit=2").await;
    assert_eq!(first, all(&["o3", "o2"]));
    let rest = orders(&admin, &format!("?limit=2&after={}", next.unwrap())).await;
    assert_eq!(rest, (all(&["o1"]), None));
    for (query, found) in [
        ("?state=failed", &["o3", "o2", "o1"][..]),
        ("?state=delivered,pending", &[]),
        ("?merchant=acme&order_id=o2", &["o2"]),
        ("?merchant=other", &[]),
        ("?since=2m", &["o3", "o2"]),
        ("?until=2m", &["o2", "o1"]),
        ("?since=2026-05-28T20:28:00Z", &["o3"]),
        ("?since=2026-05-28&until=2026-05-28", &["o3", "o2", "o1"]),
        ("?until=2026-05-27", &[]),
        ("?merchant=+acme%0A&since=%092m+&state=+failed+", &["o3", "o2"]),
    ] {
        assert_eq!(orders(&admin, query).await.0, all(found), "{query}");
    }

    let one = format!("GET /api/callbacks/{}", ids[0]);
    let (status, shown) = json(&admin, &one).await;
    assert_eq!((status, &shown["state"], &shown["tries"][0]["status"]), (200, &"failed".into(), &410.into()));
    let again = format!("POST /api/callbacks/{}/resend", ids[0]);
    let (status, shown) = json(&admin, &again).await;
    assert_eq!((status, &shown["state"], &shown["id"]), (200, &"pending".into(), &ids[0].to_string().into()));
    let source = &admin.source;
    let claim = CallbackClaim {
        shares: vec![(CallbackTarget::new(&MerchantId::new("acme").unwrap(), "https://a.example:443"), 9)],
        now: source.now(),
        lease_until: source.now().plus(Duration::from_mins(1)),
    };
    assert_eq!(source.store().claim_callbacks(claim).await.unwrap().len(), 1, "it was queued");
    assert_eq!(admin.status(&again, &[LOCAL]).await, 409);
    let unknown = "cb_00000000000000010000000000000001";
    for line in [
        format!("GET /api/callbacks/{unknown}"),
        format!("POST /api/callbacks/{unknown}/resend"),
        "GET /api/callbacks/x".to_owned(),
        "GET /api/callbacks/".to_owned(),
        "POST /api/callbacks//resend".to_owned(),
        "GET /api/callbacks/a/b".to_owned(),
    ] {
        assert_eq!(admin.status(&line, &[LOCAL]).await, 404, "{line}");
    }

    let (status, resent) = json(&admin, "POST /api/callbacks/resend?state=failed&merchant=acme&limit=1").await;
    assert_eq!((status, &resent["resent"]), (200, &1.into()));
    let line = format!("POST /api/callbacks/resend?state=failed&after={}", resent["next"].as_str().unwrap());
    assert_eq!(json(&admin, &line).await.1, serde_json::json!({ "resent": 1, "next": null }));
    assert_eq!(orders(&admin, "?state=failed").await.0, all(&[]));
    assert_eq!(json(&admin, "POST /api/callbacks/resend?state=failed").await.1["resent"], 0);
}

#[tokio::test]
async fn callbacks_are_listed_of_merchants_that_the_rules_or_the_store_know() {
    let world = World::new();
    world.failed_callback("o1").await;
    let merchants = world.rules_directory().join("merchants");
    std::fs::rename(merchants.join("acme.toml"), merchants.join("emca.toml")).unwrap();
    let admin = start_with_world(world).await;
    assert!(!admin.source.rule_set().merchants.contains_key("acme"), "it was removed");
    assert_eq!(orders(&admin, "?merchant=acme").await.0, ["o1"]);
    assert!(orders(&admin, "?merchant=acme&state=pending").await.0.is_empty());
    assert!(orders(&admin, "?merchant=emca").await.0.is_empty());
    for line in ["GET /api/callbacks?merchant=emcaa", "POST /api/callbacks/resend?state=failed&merchant=emcaa"] {
        let (status, unknown) = json(&admin, line).await;
        let message = "there is no merchant `emcaa` in the rules (did you mean `emca`?)";
        assert_eq!((status, &unknown["error"]["message"]), (404, &message.into()), "{line}");
    }
    let actions = admin
        .source
        .store()
        .actions(crate::store::ActionQuery { limit: 9, ..crate::store::ActionQuery::default() })
        .await
        .unwrap();
    assert!(actions.is_empty(), "a refused action has no row");
}
