//! What keys are where they are stated.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::rules::{AdminListen, EngineRules, Role};
use crate::store_settings::StoreUrl;

#[test]
fn stated_values_replace_defaults() {
    let gateway = "\
        [server]\nlisten = \"[::1]:0\"\npublic_url = \"https://pay.example.com/\"\nshutdown_grace = \"250ms\"\n\
        [tls]\ncertificate = \"/etc/x.pem\"\nclient_ca = \"clients.pem\"\n\
        [admin]\nlisten = \"0.0.0.0:1\"\ntoken = [\"a-of-16-or-more-\", \"b-of-16-or-more-\"]\n\
        tls = true\nread_only = true\nhosts = [\"Console.Example\"]\n\
        [[admin.users]]\nname = \"ada\"\nrole = \"operator\"\ntoken = \"ada-of-16-or-more\"\n\
        [store]\nurl = \"sqlite:/var/x.db\"\n\
        [pages]\nsecret = \"p\"\n\
        [limits]\nbody = 1000\nhead = \"1MiB\"\nunauthenticated_per_ip = { per_second = 7 }\n\
        [clients]\nproxy_protocol = true\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]\n";
    let authority = rcgen::generate_simple_self_signed(["clients.example".to_owned()]).unwrap();
    let rules = Rules::bare().with("gateway.toml", gateway).with("clients.pem", authority.cert.pem());
    let gateway = rules.load().gateway;
    assert_eq!(&*gateway.server.public_url, "https://pay.example.com");
    assert_eq!(gateway.server.shutdown_grace, Duration::from_millis(250));
    assert_eq!(gateway.tls.certificate, Path::new("/etc/x.pem"));
    assert_eq!(gateway.tls.client_ca.unwrap(), rules.path().join("clients.pem"));
    let admin = gateway.admin;
    assert_eq!(admin.hosts, ["console.example".into()]);
    assert!(admin.tls && admin.read_only && !admin.plain && !admin.is_open);
    let shown: Vec<_> = admin.accounts().map(|user| (&*user.name, user.role, user.token.verifying().count())).collect();
    assert_eq!(shown, [("ada", Role::Operator, 1), ("token", Role::Operator, 2)]);
    assert_eq!(gateway.store.url, StoreUrl::Sqlite("/var/x.db".into()));
    assert_eq!(gateway.pages.secret.unwrap().signing().expose(), b"p");
    assert_eq!((gateway.limits.body, gateway.limits.head), (1000, 1 << 20));
    let quota = gateway.limits.unauthenticated_per_ip;
    assert_eq!((quota.per_second.get(), quota.burst.get()), (7, 7));
    assert_eq!(gateway.clients.trusted_proxies.len(), 2);
}

#[test]
fn a_unix_socket_needs_no_user() {
    let rules = Rules::bare().with("gateway.toml", "[admin]\nlisten = \"unix:../run/admin.sock\"\n");
    let admin = rules.load().gateway.admin;
    assert!(admin.is_open);
    assert_eq!(admin.listen, AdminListen::Unix(rules.0.path().join("run/admin.sock")));
    assert!(admin.listen.to_string().starts_with("unix:/"));
}

#[test]
fn a_remote_engine() {
    for (url, base) in [
        ("https://v2.example", "https://v2.example/api/v2"),
        ("https://v2.example:8443/", "https://v2.example:8443/api/v2"),
        ("https://v2.example/pay", "https://v2.example/pay/api/v2"),
        // The gateway's host with another port, or with a path that a load balancer routes elsewhere.
        ("https://localhost:8444", "https://localhost:8444/api/v2"),
        ("https://localhost", "https://localhost/api/v2"),
        ("https://localhost:8443/engine", "https://localhost:8443/engine/api/v2"),
    ] {
        let gateway = format!("[engine]\nurl = \"{url}\"\n");
        let EngineRules::Remote(engine) = Rules::bare().with("gateway.toml", gateway).load().gateway.engine else {
            panic!("not a remote engine")
        };
        assert_eq!((&*engine.base, engine.timeout), (base, Duration::from_secs(10)));
        assert!(engine.trust.is_empty());
    }
    let gateway = "[engine]\nurl = \"https://v2.example\"\ntrust = [\"ca.pem\"]\ntimeout = \"2s\"\n";
    let authority = rcgen::generate_simple_self_signed(["v2.example".to_owned()]).unwrap();
    let rules = Rules::bare().with("gateway.toml", gateway).with("ca.pem", authority.cert.pem());
    let (loader, first) = rules.loader();
    let EngineRules::Remote(engine) = first.gateway.engine else { panic!("not a remote engine") };
    assert_eq!((engine.trust.len(), engine.timeout), (1, Duration::from_secs(2)));
    assert!(
        loader.external_files().contains(&rules.path().join("ca.pem")),
        "the content of trusted files is part of the rules"
    );
}

#[test]
fn stated_v1_values_replace_defaults() {
    let merchant = "name = \"M\"\ndefault_shop = \"s\"\n[shops.s]\npayout = false\n\
        [v1]\ncallbacks = \"v1\"\ncallback_url = \"http://a.example/cb\"\nallow_http_callbacks = true\n\
        return_url = \"http://a.example/\"\nnon_numeric_user_id = \"omit\"\nunknown_fields = \"ignore\"\n\
        deprecated_since = \"2026-06-30\"\nsunset = 2027-06-30\nmigration_url = \"https://docs.example/v2\"\n\
        [balance]\nenforce = false\nopening = { EUR = \"10000.00\", kes = \"5\" }\n";
    let rules = Rules::small().with("merchants/m.toml", merchant).load();
    let merchant = &rules.merchants["m"];
    assert!(merchant.shops["s"].payin && !merchant.shops["s"].payout);
    assert!(merchant.v1.callback_url.as_ref().unwrap().is_plain_http());
    let notices: Vec<(&str, &str)> = merchant.v1.notices.iter().map(|(name, value)| (*name, &**value)).collect();
    assert_eq!(
        notices,
        [
            ("deprecation", "@1782777600"),
            ("sunset", "Wed, 30 Jun 2027 00:00:00 GMT"),
            ("link", "<https://docs.example/v2>; rel=\"deprecation\", <https://docs.example/v2>; rel=\"sunset\""),
        ]
    );
    let opening: Vec<String> = merchant.balance.opening.iter().map(|(c, a)| format!("{c} {a}")).collect();
    assert_eq!(opening, ["EUR 10000.00", "KES 5.00"]);
}

#[test]
fn the_payment_method_decides_the_account_unless_stated() {
    for (lines, account, fits) in [
        ("payment_method = \"card\"", "", "4111111111111111"),
        ("payment_method = \"mobile\"", "", "+254712345678"),
        ("payment_method = \"card\"", "account = \"mobile\"", "+254712345678"),
        ("", "account = \"card\"", "4111111111111111"),
        ("", "account = { pattern = \"^[A-Z]{2}[0-9]{10,32}$\" }", "DE44500105175407324931"),
    ] {
        let shop = format!("{lines}\n{SHOP}[payout]\n{account}");
        let rules = Rules::bare().with("shops/s.toml", shop).load();
        let check = |text: &str| rules.shops["s"].account.check(&crate::domain::AccountNumber::new(text).unwrap());
        assert!(check(fits).is_ok(), "{lines} {account}");
        assert!(check("no account").is_err(), "{lines} {account}");
    }
}
