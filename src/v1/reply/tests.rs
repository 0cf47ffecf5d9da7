//! Replies by template: the values that they are given are those that the templates were tried with when they were
//! loaded, and what is no JSON is not sent.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::domain::{Amount, CreateReply, Direction, OrderId, RedirectUrl, Status, UnixMillis};
use crate::rules::{LoadOptions, load, reply_samples};
use crate::v1::create::created_reply;

/// A dialect with these templates, which is checked as the gateway checks it.
fn dialect(replies: &[(&str, &str)]) -> Arc<Dialect> {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("dialects")).unwrap();
    fs::write(directory.path().join("gateway.toml"), "").unwrap();
    let lines: Vec<_> = replies.iter().map(|(name, template)| format!("{name} = '''{template}'''")).collect();
    let lines = lines.join("\n");
    fs::write(
        directory.path().join("dialects/d.toml"),
        format!("[statuses]\nPENDING = \"new\"\nSUCCESS = \"done\"\nFAILED = \"lost\"\n[replies]\n{lines}"),
    )
    .unwrap();
    let rules = load(directory.path(), UnixMillis(0), None, LoadOptions::default());
    Arc::clone(&rules.unwrap_or_else(|problems| panic!("{problems}")).dialects["d"])
}

fn made(external_id: &str, redirect_url: Option<&str>) -> CreateReply {
    CreateReply {
        transaction_id: "77".into(),
        order_id: OrderId::new(external_id).unwrap(),
        redirect_url: redirect_url.map(|url| RedirectUrl::new(url.to_owned())),
    }
}

fn shown(external_id: &str, account_number: Option<&str>) -> OperationView {
    OperationView {
        transaction_id: "77".into(),
        external_id: OrderId::new(external_id).unwrap(),
        direction: Direction::Payout,
        status: Status::Success,
        amount: Amount::from_hundredths(1050).unwrap(),
        currency: Currency::new("EUR").unwrap(),
        shop_code: "card-eur".into(),
        account_number: account_number.map(str::to_owned),
        created_at: UnixMillis(1_767_323_045_678),
    }
}

/// Every real reply of a dialect, with its name. Each kind is there with and without what is optional.
fn real(dialect: &Dialect, external_id: &str) -> Vec<(&'static str, Value)> {
    let balance = Balance { available: -7, held: 100 };
    let shown = [shown(external_id, None), shown(external_id, Some("411111******1111"))];
    let place = PagePlace { page: 2, per_page: 50 };
    let page = |items: &[OperationView]| transactions(dialect, &Page { items: items.to_vec(), has_more: true }, place);
    let balances = |codes: &[&str]| codes.iter().map(|code| (Currency::new(code).unwrap(), balance)).collect();
    let replies = [
        ("payin", created_reply(dialect, Direction::Payin, &made(external_id, Some("https://pay.example/pay/77?a=b")))),
        ("payout", created_reply(dialect, Direction::Payout, &made(external_id, None))),
        ("status", status(dialect, &shown[0])),
        ("status", status(dialect, &shown[1])),
        ("balance", super::balance(dialect, &balances(&[]))),
        ("balance", super::balance(dialect, &balances(&["EUR", "USD"]))),
        ("transactions", page(&[])),
        ("transactions", page(&shown)),
        ("callback", callback(dialect, &shown[0])),
        ("callback", callback(dialect, &shown[1])),
    ];
    replies.map(|(name, body)| (name, serde_json::from_slice(&body).unwrap())).into()
}

/// The names of all members at any depth.
fn members(value: &Value, prefix: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                into.insert(format!("{prefix}.{name}"));
                members(value, &format!("{prefix}.{name}"), into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| members(item, prefix, into)),
        _ => {}
    }
}

fn members_of<'a>(values: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    values.into_iter().for_each(|value| members(value, "", &mut found));
    found
}

#[test]
fn every_template_is_given_the_values_it_was_tried_with() {
    let names = ["payin", "payout", "status", "balance", "transactions", "callback"];
    let words = &dialect(&[]).statuses;
    let templates = names.map(|name| {
        let members: Vec<_> = reply_samples(name, words)[0]
            .as_object()
            .unwrap()
            .keys()
            .map(|key| format!("\"{key}\": {{{{ {key} }}}}"))
            .collect();
        (name, format!("{{\"by_template\": {{ {} }} }}", members.join(", ")))
    });
    let templates: Vec<_> = templates.iter().map(|(name, template)| (*name, template.as_str())).collect();
    let replies = real(&dialect(&templates), "o\"1");
    for name in names {
        let samples = reply_samples(name, words);
        let real: Vec<_> =
            replies.iter().filter(|(of, _)| *of == name).map(|(_, reply)| &reply["by_template"]).collect();
        assert!(real.iter().all(|reply| reply.is_object()), "{name}: {real:?}");
        assert_eq!(members_of(real), members_of(&samples), "{name}");
    }
}

#[test]
fn what_a_template_cannot_write_is_reported_in_the_default_shape() {
    let on_boom = |name: &'static str, otherwise: &str| {
        let tested =
            if name == "transactions" { "transactions and transactions[0].external_id" } else { "external_id" };
        format!("{{% if {tested} == \"boom\" %}}{otherwise}{{% else %}}\"fine\"{{% endif %}}")
    };
    for otherwise in ["{{ external_id|safe }}", "{{ 1 / 0 }}", "{{ nothing }}", ""] {
        let names = ["payin", "payout", "status", "transactions", "callback"];
        let templates = names.map(|name| (name, on_boom(name, otherwise)));
        let templates: Vec<_> = templates.iter().map(|(name, template)| (*name, template.as_str())).collect();
        let (shaped, default) = (dialect(&templates), dialect(&[]));
        assert!(real(&shaped, "o-1").iter().filter(|(name, _)| names.contains(name)).all(|(_, body)| body == "fine"));
        let filled = |replies: Vec<(&'static str, Value)>| -> Vec<_> {
            replies.into_iter().filter(|(_, body)| body["transactions"] != json!([]) && body != "fine").collect()
        };
        assert_eq!(filled(real(&shaped, "boom")), filled(real(&default, "boom")), "{otherwise}");
    }
}
