//! The end of v1, announced to the merchants whose rules say so.

use super::*;

const NOTICES: [&str; 3] = ["deprecation", "sunset", "link"];

#[track_caller]
fn assert_announced(reply: &Reply) {
    // The first moments, UTC, of 2026-06-30 and 2027-06-30.
    assert_eq!(reply.header("deprecation"), "@1782777600");
    assert_eq!(reply.header("sunset"), "Wed, 30 Jun 2027 00:00:00 GMT");
    let url = "<https://docs.example/v2>";
    assert_eq!(reply.header("link"), format!("{url}; rel=\"deprecation\", {url}; rel=\"sunset\""));
}

#[track_caller]
fn assert_silent(reply: &Reply) {
    for name in NOTICES {
        assert!(reply.all(name).is_empty(), "{name} in {reply:?}");
    }
}

pub async fn stand(world: &World) {
    let wire = world.wire;
    for protocol in PROTOCOLS {
        let proven = [
            (wire.post(&GAMMA, wire.payin(), &payin("told")), 200),
            (wire.get(&GAMMA, &wire.payin_status("external_id=told")), 200),
            (wire.get(&GAMMA, &wire.payin_status("external_id=untold")), 404),
            (wire.post(&GAMMA, wire.payin(), &with(payin("told"), "amount", Some("1.00".into()))), 409),
            (wire.post(&GAMMA, wire.payin(), &"{}"), 400),
            (wire.post(&GAMMA, &format!("{}?a=b", wire.payin()), &payin("told")), 400),
        ];
        for (request, status) in proven {
            assert_announced(&world.send_by(protocol, &request).await.expect(status));
        }
        let unproven = [
            (wire.post(&Key { v1: Some("guessed"), ..GAMMA }, wire.payin(), &payin("told")), 401),
            (wire.get(&GAMMA, wire.payout()), 405),
            (wire.get(&GAMMA, "/nowhere"), 404),
            (Request::deposit(&GAMMA, &deposit("native")), 200),
            (Request::status(&GAMMA, "1"), 404),
        ];
        for (request, status) in unproven {
            assert_silent(&world.client.send_by(protocol, &request).await.expect(status));
        }
        assert_silent(&world.send_by(protocol, &wire.post(&ACME, wire.payin(), &payin("told"))).await.expect(200));
    }
}
