//! What is signed, when, and how it is written.

use super::wire::{hex, now, sha256, sha512, unix, unix_millis};
use super::*;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

pub async fn cover(world: &World) {
    let wire = world.wire;
    let [api_key, signature, timestamp] = wire.headers;
    let good = wire.post(&ACME, wire.payin(), &payin("sealed"));
    let elsewhere = wire.post(&ACME, wire.payout(), &payout("sealed"));
    let tampered = [
        Request { body: payin("sealed").to_string().replace("10.50", "99.50").into(), ..good.clone() },
        Request { body: format!("{} ", payin("sealed")).into(), ..good.clone() },
        Request { target: wire.payout().to_owned(), body: payout("sealed").to_string().into(), ..good.clone() },
        good.clone().replace(signature, elsewhere.value(signature)),
        good.clone().replace(timestamp, Some(&(wire.timestamp)(now(-7)))),
        good.clone().replace(api_key, Some(GAMMA.name)),
        good.clone().replace(signature, Some("")),
        good.clone().replace(api_key, None),
        good.clone().replace(signature, None),
        good.clone().replace(timestamp, None),
    ];
    for request in &tampered {
        world.client.send(request).await.expect(401);
    }
    // What is signed by another hash, or written in another way.
    let at = (wire.timestamp)(now(0));
    let good = wire.signed_at(&ACME, "POST", wire.payin(), &payin("sealed").to_string(), &at);
    let signed = wire::Signed {
        api_key: ACME.name,
        timestamp: &at,
        method: "POST",
        target: wire.payin(),
        body: &payin("sealed").to_string(),
    };
    let (secret, payload) = (ACME.v1.unwrap().as_bytes(), (wire.payload)(&signed));
    let right = (wire.mac)(secret, payload.as_bytes());
    let hashes = [sha256(secret, payload.as_bytes()), sha512(secret, payload.as_bytes())];
    for bytes in &hashes {
        let base64 = BASE64_STANDARD.encode(bytes);
        let url_safe = format!("{}==", base64.trim_end_matches('=').replace('+', "-").replace('/', "_"));
        for written in [hex(bytes), base64.clone(), url_safe, format!("sha={base64}"), hex(bytes)[..32].to_owned()] {
            if written != right {
                world.client.send(&good.clone().replace(signature, Some(&written))).await.expect(401);
            }
        }
    }
    world.assert_nothing_stored("sealed").await;

    let upper = wire.post(&ACME, wire.payin(), &payin("upper"));
    let shouted = upper.value(signature).unwrap().to_uppercase();
    let is_hex = right.bytes().all(|byte| byte.is_ascii_hexdigit());
    let upper = upper.replace(signature, Some(&shouted));
    world.client.send_shaped(Protocol::Http1, &upper).await.expect(if is_hex { 200 } else { 401 });
}

pub async fn times(world: &World) {
    let wire = world.wire;
    let at = |id: &str, timestamp: &str| wire.signed_at(&ACME, "POST", wire.payin(), &payin(id).to_string(), timestamp);
    for (id, seconds) in [("early", 60 - wire.window), ("late", wire.window - 60), ("now", 0)] {
        world.send(&at(id, &(wire.timestamp)(now(seconds)))).await.expect(200);
    }
    for seconds in [-wire.window - 60, wire.window + 60, -1_000_000_000] {
        world.client.send(&at("stale", &(wire.timestamp)(now(seconds)))).await.expect(401);
    }
    let mine = (wire.timestamp)(now(0));
    let formats = [unix(now(0)), unix_millis(now(0)), now(0).to_string()];
    let foreign = formats.into_iter().filter(|text| text.len() != mine.len());
    let malformed = ["now", "-1", "0x65", "1e9", "1700000000.5", "99999999999999999999", "2026-01-01", ""];
    for text in foreign.chain(malformed.map(str::to_owned)) {
        world.client.send(&at("stale", &text)).await.expect(401);
    }
    world.assert_nothing_stored("stale").await;
    if mine.ends_with('Z') {
        let (local, lower) = (now(7200).to_string().replace('Z', "+02:00"), mine.to_lowercase());
        let precise = mine.replace('Z', ".123456789Z");
        for (number, text) in [local, lower, precise].iter().enumerate() {
            world.send(&at(&format!("spelt-{number}"), text)).await.expect(200);
        }
    }
}

pub async fn headers(world: &World) {
    let wire = world.wire;
    for (number, case) in [str::to_uppercase, str::to_lowercase].into_iter().enumerate() {
        let mut request = wire.post(&ACME, wire.payin(), &payin(&format!("case-{number}")));
        request.headers = request.headers.into_iter().map(|(name, value)| (case(&name), value)).collect();
        world.send(&request).await.expect(200);
    }
    for protocol in PROTOCOLS {
        for name in wire.headers {
            let request = wire.post(&ACME, wire.payin(), &payin("twice"));
            let value = request.value(name).unwrap().to_owned();
            world.client.send_by(protocol, &request.header(name, &value)).await.expect(400);
        }
    }
    world.assert_nothing_stored("twice").await;
}

pub async fn targets(world: &World) {
    let wire = world.wire;
    let id = "a/b c+é&=?#%";
    world.create(&ACME, wire.payin(), &payin(id)).await;
    for query in [
        "external_id=a%2Fb%20c%2B%C3%A9%26%3D%3F%23%25",
        "external_id=a%2fb+c%2b%c3%a9%26%3d%3f%23%25",
        "external_id=a/b%20c%2B%C3%A9%26=?%23%25",
        "%65xternal_id=a/b%20c%2B%C3%A9%26=?%23%25&shop_code=card-eur",
        "shop_code=card-eur&&external_id=a/b%20c%2B%C3%A9%26=?%23%25&",
    ] {
        let request = wire.get(&ACME, &wire.payin_status(query));
        for protocol in PROTOCOLS {
            let reply = world.send_by(protocol, &request).await.expect(200);
            assert_eq!((wire.seen)(&reply.json()).external_id, id, "{query}");
        }
        let absolute = Request { target: format!("https://localhost{}", request.target), ..request };
        world.send(&absolute).await.expect(200);
    }
    // Signed with one target, sent with another: refused where the recipe covers what differs.
    let bare = wire.paths[2];
    for (signed, sent, otherwise) in [
        (wire.payin_status("external_id=one"), wire.payin_status("external_id=two"), 404),
        (wire.payin_status("external_id=%C3%A9"), wire.payin_status("external_id=%c3%a9"), 404),
        (bare.to_owned(), format!("{bare}?"), 400),
        (format!("{bare}?"), format!("{bare}?"), 400),
    ] {
        let request = Request { target: sent.clone(), ..wire.get(&ACME, &signed) };
        for protocol in PROTOCOLS {
            if wire.tells_apart(&signed, &sent) {
                world.client.send_by(protocol, &request).await.expect(401);
            } else {
                world.refused_by(protocol, &request, otherwise).await;
            }
        }
    }
}
