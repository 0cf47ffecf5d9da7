//! Secrets change without one refused request (contract section 2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

const OLD: Key = Key { name: "gamma-live", v1: Some("gamma-v1-hush-4Qs"), v2: Some("gamma-v2-hush-6Uv") };
const NEW: Key = Key { name: "gamma-live", v1: Some("gamma-v1-hush-new"), v2: Some("gamma-v2-hush-new") };

/// How a merchant's file names the secrets of an interface, and the files beside it that they are in.
struct Place {
    secret: fn(interface: &str, age: &str) -> String,
    in_files: bool,
}

const LITERAL: Place = Place { secret: |interface, age| literal(interface, age).to_owned(), in_files: false };
const IN_FILES: Place =
    Place { secret: |interface, age| format!("file:../../secrets/{interface}.{age}"), in_files: true };
const IN_ENVIRONMENT: Place = Place {
    secret: |interface, age| format!("env:TEST_{}_{}", interface.to_uppercase(), age.to_uppercase()),
    in_files: false,
};

const SECRETS: [(&str, &str); 4] = [("v1", "old"), ("v1", "new"), ("v2", "old"), ("v2", "new")];

fn literal(interface: &str, age: &str) -> &'static str {
    let key = if age == "old" { OLD } else { NEW };
    if interface == "v1" { key.v1.unwrap() } else { key.v2.unwrap() }
}

impl Place {
    fn rules(&self, ages: &[&str]) -> Rules {
        let list = |interface| {
            let secrets: Vec<_> = ages.iter().map(|age| format!("\"{}\"", (self.secret)(interface, age))).collect();
            if let [one] = &secrets[..] { one.clone() } else { format!("[{}]", secrets.join(", ")) }
        };
        Rules::default().edit("merchants/gamma.toml", "\"gamma-v1-hush-4Qs\"", &list("v1")).edit(
            "merchants/gamma.toml",
            "\"gamma-v2-hush-6Uv\"",
            &list("v2"),
        )
    }

    /// A gateway with the old secrets, while the new ones are where they will be looked for.
    fn start(&self) -> Gateway {
        let mut gateway = Gateway::prepare(&self.rules(&["old"]));
        if self.in_files {
            for (interface, age) in SECRETS {
                let path = gateway.root.path().join(format!("secrets/{interface}.{age}"));
                crate::support::rules::write_file(&path, &format!("{}\n", literal(interface, age)));
            }
        }
        let environment = SECRETS.map(|(interface, age)| {
            (format!("TEST_{}_{}", interface.to_uppercase(), age.to_uppercase()), literal(interface, age).to_owned())
        });
        gateway.environment.extend(environment);
        gateway.spawn();
        assert!(gateway.wait_ready(), "{}", gateway.log());
        gateway
    }
}

/// Puts rules in force and waits for them.
async fn reload(gateway: &Gateway, rules: &Rules) {
    let version = || gateway.admin_get("/api/rules").map(|(_, text)| serde_json::from_str::<Value>(&text).unwrap());
    let before = version().unwrap();
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    eventually("the rules are in force", async || {
        let now = version()?;
        // All files are written anew: a reload in the middle may see half of one, and keeps the rules that are in force.
        (now["version"] != before["version"] && now["error"].is_null()).then_some(())
    })
    .await;
}

/// Clients that create by v1 and v2 without a pause until they are told to stop, each request with the secrets in use.
struct Traffic {
    new: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
    clients: Vec<tokio::task::JoinHandle<()>>,
}

impl Traffic {
    fn start(client: &Client) -> Self {
        let (new, stop, sent) = <(Arc<AtomicBool>, Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let clients = (0..4)
            .map(|number| {
                let (client, new, stop, sent) = (client.clone(), new.clone(), stop.clone(), sent.clone());
                tokio::spawn(async move {
                    let mut connection = client.connect().await;
                    for turn in 0.. {
                        if stop.load(Ordering::SeqCst) {
                            break;
                        }
                        let key = if new.load(Ordering::SeqCst) { NEW } else { OLD };
                        let id = format!("t-{number}-{turn}");
                        connection.send(&Request::payin(&key, &payin(&id))).await.expect(200);
                        connection.send(&Request::deposit(&key, &deposit(&format!("n{id}")))).await.expect(200);
                        sent.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        Self { new, stop, sent, clients }
    }

    /// Waits until every client must have begun and ended a request since now.
    async fn goes_on(&self) {
        let enough = self.sent.load(Ordering::SeqCst) + 3 * self.clients.len();
        eventually("the traffic goes on", async || {
            let failed = self.clients.iter().any(tokio::task::JoinHandle::is_finished);
            assert!(!failed, "a client was refused");
            (self.sent.load(Ordering::SeqCst) >= enough).then_some(())
        })
        .await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.await.unwrap();
        }
    }
}

async fn rotate(place: &Place) {
    let gateway = place.start();
    let client = gateway.client();
    let refused = async |key: Key, id: &str| {
        client.send(&Request::payin(&key, &payin(id))).await.expect(401);
        client.send(&Request::deposit(&key, &deposit(id))).await.expect(401);
    };
    refused(NEW, "too-early").await;
    let traffic = Traffic::start(&client);
    traffic.goes_on().await;
    // The order in which operators are told to do it: accept the new one, sign with it, drop the old one.
    reload(&gateway, &place.rules(&["old", "new"])).await;
    traffic.goes_on().await;
    reload(&gateway, &place.rules(&["new", "old"])).await;
    traffic.goes_on().await;
    traffic.new.store(true, Ordering::SeqCst);
    traffic.goes_on().await;
    client.send(&Request::payin(&OLD, &payin("still"))).await.expect(200);
    reload(&gateway, &place.rules(&["new"])).await;
    traffic.goes_on().await;
    refused(OLD, "too-late").await;
    // What was made with the old secrets is the same to the new ones.
    client.send(&Request::payin(&NEW, &payin("still"))).await.expect(200);
    traffic.end().await;
    for hidden in SECRETS.map(|(interface, age)| literal(interface, age)) {
        assert!(!gateway.log().contains(hidden), "a secret is in the log");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn literal_secrets_rotate_under_traffic() {
    rotate(&LITERAL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_in_files_rotate_under_traffic() {
    rotate(&IN_FILES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_in_the_environment_rotate_under_traffic() {
    rotate(&IN_ENVIRONMENT).await;
}
