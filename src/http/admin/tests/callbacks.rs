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
async fn pending_callbacks_of_a_receiver_are_made_due() {
    let world = World::new();
    for order in ["o1", "o2", "o3"] {
        world.failed_callback(order).await;
    }
    let admin = start_with_world(world).await;
    assert_eq!(json(&admin, "POST /api/callbacks/resend?state=failed").await.1["resent"], 3);
    let (store, now) = (admin.source.store(), admin.source.now());
    let target = CallbackTarget::new(&MerchantId::new("acme").unwrap(), "https://a.example:443");
    let claim = |lease_until| CallbackClaim { shares: vec![(target.clone(), 9)], now, lease_until };
    let jobs = store.claim_callbacks(claim(now.plus(Duration::from_mins(1)))).await.unwrap();
    for job in &jobs[..2] {
        let outcome = TryOutcome::Status(503);
        let tried = CallbackTry { at: now, duration: Duration::from_millis(7), outcome };
        let next = CallbackNext::RetryAt(now.plus(Duration::from_hours(1)));
        store.callback_tried(job.lease(), tried, next).await.unwrap();
    }
    let line = "POST /api/callbacks/resend?state=pending&receiver=https%3A%2F%2Fa.example";
    for (members, resent) in [("&merchant=other", 0), ("%3A444", 0)] {
        let expected = serde_json::json!({ "resent": resent, "next": null });
        assert_eq!(json(&admin, &format!("{line}{members}")).await, (200, expected), "{members}");
    }
    assert_eq!(admin.status(&format!("{line}&merchant=unknown"), &[LOCAL]).await, 404);
    let (status, first) = json(&admin, &format!("{line}&merchant=acme&limit=1")).await;
    assert_eq!((status, &first["resent"]), (200, &1.into()));
    let rest = format!("{line}&after={}", first["next"].as_str().unwrap());
    assert_eq!(json(&admin, &rest).await.1, serde_json::json!({ "resent": 1, "next": null }));
    let due = store.claim_callbacks(claim(now.plus(Duration::from_mins(2)))).await.unwrap();
    let mut sent: Vec<_> = due.iter().map(|job| (job.id, job.attempts)).collect();
    sent.sort_by_key(|(id, _)| id.to_string());
    let mut expected: Vec<_> = jobs[..2].iter().map(|job| (job.id, 1)).collect();
    expected.sort_by_key(|(id, _)| id.to_string());
    assert_eq!(sent, expected, "the one that is being sent is left alone");
    let query = crate::store::ActionQuery { limit: 9, ..crate::store::ActionQuery::default() };
    let rows = store.actions(query).await.unwrap();
    let rows: Vec<_> = rows.iter().filter(|row| &*row.action == "callbacks.resend_pending").collect();
    assert!(rows.len() == 4 && rows.iter().any(|row| &*row.parameters == r#"{"merchant":"acme"}"#), "{rows:?}");
    assert!(rows.iter().filter(|row| &*row.target == "https://a.example:443").count() == 3, "{rows:?}");
    assert!(rows.iter().all(|row| row.end.is_some()), "{rows:?}");
}

/// The body is as the receiver gets it, but for card numbers; rules without the merchant have none.
#[tokio::test]
async fn a_callback_is_shown_with_its_body_and_without_its_query() {
    let (world, card) = (World::new(), "4111111111111111");
    let ids = [world.failed_callback("o1").await, world.failed_callback(card).await];
    let admin = start_with_world(world).await;
    let body_of = async |id| {
        let (status, shown) = json(&admin, &format!("GET /api/callbacks/{id}")).await;
        assert_eq!((status, &shown["no_body"]), (200, &serde_json::Value::Null), "{shown}");
        shown["body"].as_str().unwrap().to_owned()
    };
    assert_eq!(body_of(&ids[0]).await, r#"{"order_id":"o1"}"#);
    assert_eq!(body_of(&ids[1]).await, r#"{"order_id":"411111******1111"}"#);
    let (status, page) = admin.send(&format!("GET /callbacks/{}", ids[1]), &[LOCAL]).await;
    assert!(status == 200 && page.contains("{&quot;order_id&quot;:&quot;411111******1111&quot;}</pre>"), "{page}");

    let world = World::new();
    let id = world.failed_callback("o1").await;
    let merchants = world.rules_directory().join("merchants");
    std::fs::rename(merchants.join("acme.toml"), merchants.join("emca.toml")).unwrap();
    let admin = start_with_world(world).await;
    let shown = json(&admin, &format!("GET /api/callbacks/{id}")).await.1;
    let reason = "the rules have no such merchant";
    assert_eq!((&shown["body"], &shown["no_body"]), (&serde_json::Value::Null, &reason.into()));
    let (status, page) = admin.send(&format!("GET /callbacks/{id}"), &[LOCAL]).await;
    assert!(status == 200 && page.contains(reason) && !page.contains("<pre"), "{page}");
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
