//! What goes wrong on the way to a receiver, and at it: each is tried again, and then told.

use std::sync::Arc;

use crate::callbacks::verify::assert_v2;
use crate::callbacks::{a_while, assert_all, assert_one, create, path, rules, withdraw, withdrawal};
use crate::support::receiver::{Identity, Manner, Play, Receiver};
use crate::support::request::ACME;
use crate::support::{Gateway, Request};

/// Short enough that faults that end by themselves only then are waited for.
const IMPATIENT: &str = "first_retry = \"100ms\"\nmax_retry = \"400ms\"\ntimeout = \"3s\"";

/// Twice, before all is well.
const TIMES: usize = 2;

#[tokio::test]
async fn every_fault_of_an_answer_is_tried_again() {
    let faults = [
        Play::Cut,
        Play::CutInHead,
        Play::Garbage,
        Play::Drip,
        Play::EndlessHead,
        Play::Hang,
        Play::EndlessBody(500),
        Play::MissingBody(503),
        Play::Say(101),
    ];
    let receivers: Vec<_> = faults
        .iter()
        .map(|fault| {
            let fault = fault.clone();
            Receiver::start(move |_, before| if before < TIMES { fault.clone() } else { Play::Say(200) })
        })
        .collect();
    let gateway = Gateway::start(&rules(&receivers.iter().collect::<Vec<_>>(), IMPATIENT));
    for (number, receiver) in receivers.iter().enumerate() {
        withdraw(&gateway, receiver, &format!("order-{number}")).await;
    }
    for (number, receiver) in receivers.iter().enumerate() {
        let order_id = format!("order-{number}");
        let tries = receiver.got(&path(&order_id), TIMES + 1).await;
        assert_all(&tries, |received| assert_v2(received, ACME.v2.unwrap(), &order_id));
    }
    a_while(&gateway).await;
    for (receiver, fault) in receivers.iter().zip(&faults) {
        assert_eq!(receiver.count(), TIMES + 1, "{fault:?}");
    }
}

#[tokio::test]
async fn every_fault_of_a_connection_is_tried_again() {
    const FAULTS: [Manner; 5] = [Manner::Close, Manner::CloseInside, Manner::Mute, Manner::OtherName, Manner::OtherCa];
    let receivers = FAULTS.map(|fault| {
        Receiver::with(move |number| if number < TIMES { fault } else { Manner::Serve }, |_, _| Play::Say(200))
    });
    let gateway = Gateway::start(&rules(&receivers.each_ref(), IMPATIENT));
    for receiver in &receivers {
        withdraw(&gateway, receiver, &format!("order-{}", receiver.address.port())).await;
    }
    for (receiver, fault) in receivers.iter().zip(FAULTS) {
        let order_id = format!("order-{}", receiver.address.port());
        let reported = receiver.got(&path(&order_id), 1).await;
        assert_v2(&reported[0], ACME.v2.unwrap(), &order_id);
        assert!(reported[0].connection >= TIMES, "{fault:?}");
    }
    a_while(&gateway).await;
    assert!(receivers.iter().all(|receiver| receiver.count() == 1));
}

/// A receiver that is not there yet is told when it is.
#[tokio::test]
async fn a_port_that_refuses_is_tried_again() {
    let identity = Arc::new(Identity::new(&["http/1.1"]));
    let start = |port| Receiver::on(port, &identity, |_| Manner::Serve, |_, _| Play::Say(200));
    let receiver = start(0);
    let (port, gateway) = (receiver.address.port(), Gateway::start(&rules(&[&receiver], IMPATIENT)));
    let request = Request::withdrawal(&ACME, &withdrawal(&receiver, "early", "7.25"));
    drop(receiver);
    create(&gateway, &request).await;
    a_while(&gateway).await;
    assert_v2(&start(port).got(&path("early"), 1).await[0], ACME.v2.unwrap(), "early");
}

#[tokio::test]
async fn redirects_are_never_followed() {
    const REDIRECTS: [u16; 6] = [300, 301, 302, 303, 307, 308];
    let elsewhere = Receiver::good();
    let there = elsewhere.url("/cb/elsewhere");
    let receiver = Receiver::start(move |received, before| {
        let status = received.target.rsplit('/').next().unwrap().parse().unwrap();
        let lines = format!("Location: {there}\r\n");
        if before < TIMES { Play::With(status, lines) } else { Play::Say(200) }
    });
    let gateway = Gateway::start(&rules(&[&receiver, &elsewhere], IMPATIENT));
    for status in REDIRECTS {
        withdraw(&gateway, &receiver, &status.to_string()).await;
    }
    for status in REDIRECTS {
        let tries = receiver.got(&path(&status.to_string()), TIMES + 1).await;
        assert_one(&tries);
    }
    assert_eq!(elsewhere.connections(), 0, "somebody was sent elsewhere");
}
