//! A disk is lost, and its store restored from a backup: of a thousand orders that were made since, none is made twice, here or
//! at the old v1 service (contract section 15).

use std::fmt::Write as _;

use crate::support::receiver::{Play, Receiver};
use crate::support::request::ACME;
use crate::support::stored::CREATES;
use crate::support::{Gateway, Rules};

/// How many orders are made after the backup.
const LOST: usize = 1000;

fn rules(old: &Receiver, mode: &str) -> Rules {
    let (url, ca) = (old.url(""), old.ca());
    let named = "name = \"Acme Ltd\"\n";
    Rules::default().with("legacy", &format!("url = \"{url}\"\ntrust = [\"{}\"]", ca.display())).edit(
        "merchants/acme.toml",
        named,
        &format!("{named}v1 = {{ mode = \"{mode}\" }}\n"),
    )
}

#[tokio::test]
async fn a_thousand_lost_orders_are_not_made_anew() {
    let old = Receiver::start(|_, _| Play::Say(200));
    let mut gateway = Gateway::start_on_file(&rules(&old, "translate"));
    let mut connection = gateway.client().connect().await;
    for kind in CREATES {
        connection.send(&kind.request(&ACME, kind.body(&format!("kept-{kind:?}")).to_string())).await.expect(200);
    }
    let copy = gateway.root.path().join("copy.db");
    assert!(gateway.store_command("backup").arg(&copy).output().unwrap().status.success());

    let mut ids = "merchant,direction,order_id\n".to_owned();
    let lost: Vec<_> = CREATES.into_iter().cycle().take(LOST).zip(0..).collect();
    for (kind, number) in &lost {
        let id = format!("lost-{number}");
        connection.send(&kind.request(&ACME, kind.body(&id).to_string())).await.expect(200);
        let direction = if number % 2 == 0 { "payin" } else { "payout" };
        let _ = writeln!(ids, "acme,{direction},{id}");
    }
    gateway.kill();
    let data = gateway.root.path().join("data");
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(&copy, data.join("paybridge.db")).unwrap();

    assert_eq!(gateway.command().output().unwrap().status.code(), Some(1), "it is not served");
    let file = gateway.root.path().join("lost.csv");
    std::fs::write(&file, ids).unwrap();
    let adopted = gateway.store_command("adopt").arg("--ids").arg(&file).output().unwrap();
    let stated = String::from_utf8_lossy(&adopted.stdout).into_owned();
    assert!(stated.starts_with(&format!("{LOST} lost, 0 skipped")), "{stated}{adopted:?}");
    gateway.restart();
    for mode in ["translate", "legacy", "shadow", "staged"] {
        gateway.reload_with(&rules(&old, mode));
        let mut connection = gateway.client().connect().await;
        for (kind, number) in &lost {
            let body = kind.body(&format!("lost-{number}")).to_string();
            connection.send(&kind.request(&ACME, body)).await.expect(409);
        }
    }
    assert_eq!(old.count(), 0, "the old service saw none of them");
    let checked = gateway.store_check();
    let stated = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success() && stated.starts_with("checked 4 operations"), "{stated}");
}
