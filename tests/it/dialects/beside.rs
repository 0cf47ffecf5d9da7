//! Dialects beside each other in one gateway.

use super::*;

/// Both serve at once, and neither opens the other's door.
#[tokio::test]
async fn dialects_of_other_routes_stay_apart() {
    let world = World::of(&MERIDIAN);
    world.create(&ACME, MERIDIAN.payin(), &payin("here")).await;
    world.send(&V1.post(&BETA, V1.payin(), &payin("here"))).await.expect(200);
    // The headers of one are no headers to the other.
    for crossed in [
        V1.post(&ACME, V1.payin(), &payin("crossed")),
        V1.post(&BETA, MERIDIAN.payin(), &payin("crossed")),
        MERIDIAN.post(&BETA, MERIDIAN.payin(), &payin("crossed")),
        MERIDIAN.post(&ACME, V1.payin(), &payin("crossed")),
        Request { target: V1.payin().to_owned(), ..MERIDIAN.post(&ACME, MERIDIAN.payin(), &payin("crossed")) },
    ] {
        let reply = world.send(&crossed).await;
        assert!([401, 404].contains(&reply.status), "{crossed:?}: {reply:?}");
    }
    // A path of another dialect does not exist for a merchant, which only its signature lets it know. The path's headers
    // carry what its own recipe signs.
    let there = Wire { headers: V1.headers, ..MERIDIAN };
    let (code, _) = (MERIDIAN.error)(&world.send(&there.post(&ACME, V1.payin(), &payin("crossed"))).await.json());
    assert_eq!(code, 404);
    let here = Wire { headers: MERIDIAN.headers, ..V1 };
    world.client.send(&here.post(&BETA, MERIDIAN.payin(), &payin("crossed"))).await.expect(404);
    let forged = Key { v1: Some("guessed"), ..BETA };
    world.client.send(&here.post(&forged, MERIDIAN.payin(), &payin("crossed"))).await.expect(401);
    world.assert_nothing_stored("crossed").await;

    let reply = world.client.send(&Request::new("PUT", MERIDIAN.payin(), "")).await.expect(405);
    assert_eq!(reply.header("allow"), "GET, POST");
}

/// The API key tells whose recipe a request on a shared route is signed by.
#[tokio::test]
async fn dialects_of_the_same_routes_are_reported_apart_by_the_key() {
    let world = World::of(&STRAND);
    for protocol in PROTOCOLS {
        world.send_by(protocol, &STRAND.post(&ACME, STRAND.payin(), &payin("shared"))).await.expect(200);
        world.send_by(protocol, &V1.post(&BETA, V1.payin(), &payin("shared"))).await.expect(200);
        world.client.send_by(protocol, &V1.post(&ACME, V1.payin(), &payin("shared"))).await.expect(401);
        world.client.send_by(protocol, &STRAND.post(&BETA, STRAND.payin(), &payin("shared"))).await.expect(401);
    }
}

/// A path may be one endpoint to one merchant and another to the next.
#[tokio::test]
async fn a_path_is_what_the_merchants_dialect_says() {
    let swapped = "[routes]\npayin = \"POST /api/v1/payout\"\npayout = \"POST /api/v1/payin\"\n\
        payin_status = \"GET /api/v1/payout/status\"\npayout_status = \"GET /api/v1/payin/status\"\n\
        balance = \"GET /api/v1/payin\"\ntransactions = \"GET /api/v1/Payin\"\n";
    let stated = "name = \"Acme Ltd\"\n";
    let rules = Rules::default().file("dialects/swapped.toml", swapped).edit(
        "merchants/acme.toml",
        stated,
        &format!("{stated}v1.dialect = \"swapped\"\n"),
    );
    let gateway = Gateway::start(&rules);
    let world = World { client: gateway.client(), gateway, wire: &V1 };
    let made = world.create(&ACME, V1.payout(), &payin("swapped")).await;
    assert!(made.redirect_url.is_some(), "a deposit");
    assert_eq!(world.create(&ACME, V1.payin(), &payout("swapped")).await.redirect_url, None, "a withdrawal");
    assert!(world.create(&BETA, V1.payin(), &payin("plain")).await.redirect_url.is_some());
    assert_eq!(world.seen(&ACME, &V1.payout_status("external_id=swapped")).await.transaction_id, made.transaction_id);
    world.refused(&V1.get(&BETA, "/api/v1/payin"), 404).await;
    world.refused(&V1.get(&ACME, "/api/v1/balance"), 404).await;
    let reply = world.client.send(&Request::new("DELETE", "/api/v1/payin", "")).await.expect(405);
    assert_eq!(reply.header("allow"), "GET, POST");
}

/// A merchant moves from one dialect to another without a restart.
#[tokio::test]
async fn a_dialect_is_put_in_force_live() {
    let gateway = Gateway::start(&Rules::default());
    let world = World { client: gateway.client(), gateway, wire: &MERIDIAN };
    let before = world.send(&V1.post(&ACME, V1.payin(), &payin("moved"))).await.expect(200);
    rules(&MERIDIAN).write(world.gateway.root.path(), world.gateway.public.port(), world.gateway.admin.port());
    eventually("the dialect is in force", async || {
        (world.send(&MERIDIAN.get(&ACME, &MERIDIAN.payin_status("external_id=moved"))).await.status == 200)
            .then_some(())
    })
    .await;
    let after = world.create(&ACME, MERIDIAN.payin(), &payin("moved")).await;
    assert_eq!(after, (V1.created)(&before.json()), "a repeat is the same in any dialect");
}
