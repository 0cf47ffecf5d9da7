//! What an operator does about callbacks that were given up, beside a gateway that serves and on its admin listener.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::Value;

use paybridge::store::CallbackState;

use crate::callbacks::book::Book;
use crate::callbacks::verify::assert_v2;
use crate::callbacks::{a_while, assert_all, path, quick, rules, withdraw};
use crate::console::{encoded, page};
use crate::support::receiver::{Play, Received, Receiver};
use crate::support::request::ACME;
use crate::support::{Gateway, eventually, text};

fn paybridge(gateway: &Gateway, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .arg("callbacks")
        .args(arguments)
        .arg("--rules")
        .arg(gateway.rules_dir())
        .current_dir(gateway.root.path())
        .output()
        .unwrap()
}

#[track_caller]
pub fn prints(gateway: &Gateway, arguments: &[&str]) -> String {
    let output = paybridge(gateway, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The ids of a list, in any order.
fn ids(list: &Value) -> Vec<String> {
    let mut ids: Vec<_> = list["callbacks"].as_array().unwrap().iter().map(|one| text(one, "id").to_owned()).collect();
    ids.sort();
    ids
}

/// Orders whose receiver said that it is gone, and the first try of each.
pub async fn given_up(gateway: &Gateway, receiver: &Receiver, orders: &[&str]) -> Vec<Received> {
    let book = Book::of(gateway);
    let mut calls = Vec::new();
    for order_id in orders {
        withdraw(gateway, receiver, order_id).await;
        let call = receiver.got(&path(order_id), 1).await.remove(0);
        book.becomes(&call, CallbackState::Failed).await;
        calls.push(call);
    }
    calls
}

pub fn moody() -> (Arc<AtomicU16>, Receiver) {
    let says = Arc::new(AtomicU16::new(410));
    let script = says.clone();
    (says, Receiver::start(move |_, _| Play::Say(script.load(Ordering::Relaxed))))
}

pub async fn reported_again(receiver: &Receiver, order_id: &str) {
    let tries = receiver.got(&path(order_id), 2).await;
    assert_all(&tries, |one| assert_v2(one, ACME.v2.unwrap(), order_id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_resends_under_the_same_id() {
    let (says, receiver) = moody();
    let gateway = quick(&receiver);
    let calls = given_up(&gateway, &receiver, &["one", "two", "three"]).await;
    let mut expected: Vec<_> = calls.iter().map(|call| call.id().to_owned()).collect();
    let list = || serde_json::from_str(&prints(&gateway, &["list", "--state", "failed", "--format", "json"])).unwrap();
    let first = expected[0].clone();
    expected.sort();
    assert_eq!(ids(&list()), expected);

    says.store(200, Ordering::Relaxed);
    prints(&gateway, &["resend", &first, "--wait", "30s"]);
    reported_again(&receiver, "one").await;
    expected.retain(|id| *id != first);
    assert_eq!(ids(&list()), expected);
    assert!(prints(&gateway, &["show", &first]).contains("410"), "the try before is kept");

    prints(&gateway, &["resend", "--failed", "--merchant", "acme"]);
    reported_again(&receiver, "two").await;
    reported_again(&receiver, "three").await;
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 6, "each once more");
    assert!(ids(&list()).is_empty());
    let unknown = paybridge(&gateway, &["resend", "cb_00000000000000010000000000000000"]);
    assert_eq!(unknown.status.code(), Some(1));
}

/// A receiver is back: its callbacks do not wait out their times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_callbacks_of_a_receiver_are_sent_now() {
    let (says, receiver) = moody();
    says.store(503, Ordering::Relaxed);
    let keys = "first_retry = \"30m\"\nmax_retry = \"30m\"\ntimeout = \"2s\"";
    let gateway = Gateway::start(&rules(&[&receiver], keys));
    let book = Book::of(&gateway);
    let orders = ["one", "two", "three"];
    for order_id in orders {
        withdraw(&gateway, &receiver, order_id).await;
        let call = receiver.got(&path(order_id), 1).await.remove(0);
        eventually("it was tried", async || (book.received(&call).await.0.tries == 1).then_some(())).await;
    }
    let origin = receiver.url("");
    let ask = |members: &str| {
        let target = format!("/api/callbacks/resend?state=pending&receiver={}{members}", encoded(&origin));
        let request = format!("POST {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", gateway.admin);
        let (status, body) = gateway.admin_request(&request).expect("an answer");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    says.store(200, Ordering::Relaxed);
    assert_eq!(ask("&merchant=beta")["resent"], 0);
    let first = ask("&merchant=acme&limit=1");
    assert_eq!(first["resent"], 1);
    eventually("one is sent", async || (receiver.count() == 4).then_some(())).await;
    let count = page(&gateway, &format!("/callbacks/resend?state=pending&receiver={}", encoded(&origin)));
    assert!(count.contains("<b>2</b> pending callbacks wait"), "{count}");
    let list = page(&gateway, "/callbacks?state=pending&merchant=acme");
    assert!(list.contains("Send all pending of this receiver now"), "{list}");
    let form = format!("state=pending&receiver={}&merchant=acme", encoded(&origin));
    let (status, refused) = gateway.console_post("/callbacks/resend", "", "state=pending&merchant=acme");
    assert!(status == 400 && refused.contains("Receiver"), "{refused}");
    let done = gateway.console_act("/callbacks/resend", &form);
    assert!(done.starts_with("/callbacks?state=pending&merchant=acme&result="), "{done}");
    for order_id in orders {
        reported_again(&receiver, order_id).await;
    }
    eventually("the outcome is shown", async || page(&gateway, &done).contains("2 queued (local, ").then_some(()))
        .await;
    let of_action = |row: &String| row.contains("callbacks.resend_pending") && row.contains(&origin);
    assert_eq!(gateway.actions().iter().filter(|row| of_action(row)).count(), 3);
    assert_eq!(prints(&gateway, &["resend", "--pending", "--receiver", &origin]), "0 callbacks queued\n");
}

#[tokio::test]
async fn the_admin_listener_resends_under_the_same_id() {
    let (says, receiver) = moody();
    let gateway = quick(&receiver);
    let calls = given_up(&gateway, &receiver, &["one", "two"]).await;
    let ask = |method: &str, target: &str| {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", gateway.admin);
        let (status, body) = gateway.admin_request(&request).expect("an answer");
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    assert_eq!(ids(&ask("GET", "/api/callbacks?state=failed").1).len(), 2);
    says.store(200, Ordering::Relaxed);
    assert_eq!(ask("POST", &format!("/api/callbacks/{}/resend", calls[0].id())).0, 200);
    reported_again(&receiver, "one").await;
    let (status, resent) = ask("POST", "/api/callbacks/resend?state=failed");
    assert_eq!((status, &resent["resent"]), (200, &Value::from(1)));
    reported_again(&receiver, "two").await;
    // A try is recorded after its receiver has answered.
    let shown = eventually("both tries", async || {
        let shown = ask("GET", &format!("/api/callbacks/{}", calls[0].id())).1;
        (shown["tries"].as_array().map(Vec::len) == Some(2)).then_some(shown)
    });
    assert_eq!(text(&shown.await, "order_id"), "one");
}
