//! v1 dialects: the same scenarios over the default one, over one that differs from it in every key, and over one that
//! shares its routes and signs otherwise (contract section 4); dialects beside each other; and secrets that are being
//! rotated (section 2).

mod beside;
mod errors;
mod lists;
mod notices;
mod operations;
mod rotation;
mod signatures;
mod signing;
mod wire;

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::{ACME, ACME_LIMITED, ACME_NOWHERE, BETA, GAMMA, Key, PROTOCOLS, Protocol};
use crate::support::stored::assert_transaction_id;
use crate::support::{Client, Gateway, Reply, Request, Rules, deposit, eventually, payin, payout};
use wire::{Created, MERIDIAN, STRAND, Seen, V1, Wire};

/// A gateway whose merchants `acme` and `gamma` speak a dialect, while `beta` keeps to the default one.
struct World {
    gateway: Gateway,
    client: Client,
    wire: &'static Wire,
}

fn rules(wire: &Wire) -> Rules {
    let Some(file) = wire.file else { return Rules::default() };
    let (name, stated) = (format!("v1.dialect = \"{}\"\n", wire.name), "name = \"Acme Ltd\"\n");
    Rules::default()
        .file(&format!("dialects/{}.toml", wire.name), file)
        .edit("merchants/acme.toml", stated, &format!("{stated}{name}"))
        .edit("merchants/gamma.toml", "[v1]\n", &format!("[v1]\ndialect = \"{}\"\n", wire.name))
}

impl World {
    fn of(wire: &'static Wire) -> Self {
        let gateway = Gateway::start(&rules(wire));
        let client = gateway.client();
        Self { gateway, client, wire }
    }

    /// Sends a request whose reply has the dialect's shape.
    async fn send_by(&self, protocol: Protocol, request: &Request) -> Reply {
        self.client.send_shaped(protocol, request).await
    }

    async fn send(&self, request: &Request) -> Reply {
        self.send_by(Protocol::Http1, request).await
    }

    async fn create(&self, key: &Key, path: &str, body: &Value) -> Created {
        self.create_by(Protocol::Http1, key, path, body).await
    }

    async fn create_by(&self, protocol: Protocol, key: &Key, path: &str, body: &Value) -> Created {
        let reply = self.send_by(protocol, &self.wire.post(key, path, body)).await.expect(200);
        let created = (self.wire.created)(&reply.json());
        assert_transaction_id(&created.transaction_id);
        assert_eq!(created.external_id, body["external_id"], "{reply:?}");
        created
    }

    async fn seen(&self, key: &Key, target: &str) -> Seen {
        (self.wire.seen)(&self.send(&self.wire.get(key, target)).await.expect(200).json())
    }

    /// The refusal of a proven caller, in the dialect's shape.
    async fn refused_by(&self, protocol: Protocol, request: &Request, status: u16) -> String {
        let reply = self.send_by(protocol, request).await.expect(status);
        let (code, message) = (self.wire.error)(&reply.json());
        assert_eq!(code, status, "{reply:?}");
        assert!(!message.is_empty(), "{reply:?}");
        message
    }

    async fn refused(&self, request: &Request, status: u16) -> String {
        self.refused_by(Protocol::Http1, request, status).await
    }

    /// Asserts that no payin is stored under an id: it is not found, and free for another create.
    async fn assert_nothing_stored(&self, id: &str) {
        self.refused(&self.wire.get(&ACME, &self.wire.payin_status(&format!("external_id={id}"))), 404).await;
        let other = with(payin(id), "amount", Some("991.17".into()));
        self.create(&ACME, self.wire.payin(), &other).await;
    }
}

/// Every scenario with every dialect, each as a test of its own.
macro_rules! scenarios {
    ($($dialect:ident: $wire:ident),* ; $($name:ident => $scenario:path),* $(,)?) => {
        scenarios!(@dialects [$($dialect: $wire),*] ($($name => $scenario),*));
    };
    (@dialects [$($dialect:ident: $wire:ident),*] $list:tt) => {
        $(scenarios!(@one $dialect $wire $list);)*
    };
    (@one $dialect:ident $wire:ident ($($name:ident => $scenario:path),*)) => {
        mod $dialect {
            $(
                #[tokio::test]
                async fn $name() {
                    $scenario(&super::World::of(&super::$wire)).await;
                }
            )*
        }
    };
}

scenarios! {
    v1: V1, meridian: MERIDIAN, strand: STRAND;
    deposits_are_made_repeated_and_shown => crate::dialects::operations::deposits,
    withdrawals_are_made_and_come_to_a_result => crate::dialects::operations::withdrawals,
    balances_and_histories_are_reported_in_the_dialects_words => crate::dialects::lists::reported,
    phps_empty_list_is_what_the_dialect_says => crate::dialects::operations::empty_lists,
    errors_of_proven_callers_have_the_dialects_shape => crate::dialects::errors::of_proven_callers,
    errors_before_that_have_the_default_shape => crate::dialects::errors::of_others,
    signatures_cover_what_the_recipe_names => crate::dialects::signatures::cover,
    timestamps_are_in_the_dialects_format_and_window => crate::dialects::signatures::times,
    authentication_headers_are_sent_once_in_any_case => crate::dialects::signatures::headers,
    targets_are_signed_as_sent => crate::dialects::signatures::targets,
    notices_stand_on_every_reply_to_a_proven_caller => crate::dialects::notices::stand,
    what_sign_prints_is_let_in => crate::dialects::signing::prints,
}

#[test]
fn the_page_of_dialects_shows_the_dialect_that_is_tested() {
    let page = include_str!("../../../docs/dialects.md");
    let (_, rest) = page.split_once("meridian.toml").unwrap();
    let shown = rest.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(shown.starts_with("[signature]\n") && MERIDIAN.file.unwrap().contains(shown), "{shown}");
}
