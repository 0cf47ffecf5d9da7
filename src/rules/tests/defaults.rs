//! Every key has the default of the contract.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::domain::Currency;
use crate::rules::{
    AccountRule, AdminListen, CallbackStyle, EngineRules, IdPolicy, ProviderRules, Role, UnknownFields,
};
use crate::store_settings::StoreUrl;

#[test]
fn gateway_defaults() {
    let rules = Rules::bare();
    let base = rules.0.path();
    let gateway = rules.load().gateway;
    let seconds = Duration::from_secs;
    assert_eq!(gateway.server.listen, "127.0.0.1:8443".parse().unwrap());
    assert_eq!(&*gateway.server.public_url, "https://localhost:8443");
    assert_eq!((gateway.server.shutdown_grace, gateway.server.drain_delay), (seconds(30), seconds(0)));
    assert_eq!(gateway.tls.certificate, base.join("certs/server.pem"));
    assert_eq!(gateway.tls.key, base.join("certs/server.key"));
    assert!(!gateway.tls.generate && gateway.tls.client_ca.is_none());
    let admin = gateway.admin;
    assert_eq!(admin.listen, AdminListen::Tcp("127.0.0.1:9090".parse().unwrap()));
    assert!(admin.token.is_none() && admin.hosts.is_empty() && admin.users.is_empty());
    assert!(!admin.tls && !admin.plain && !admin.read_only && admin.is_open);
    assert_eq!(gateway.store.url, StoreUrl::Sqlite(base.join("data/paybridge.db")));
    assert_eq!(gateway.store.keys.create_at.as_deref(), Some(&*base.join("secrets/store.key")));
    assert!(gateway.store.keys.keys.is_empty());
    assert_eq!(gateway.engine, EngineRules::Embedded);
    assert!(gateway.pages.secret.is_none());
    assert_eq!(gateway.pages.default_secret, base.join("secrets/pages.key"));
    assert_eq!(gateway.pages.link_lifetime, seconds(30 * 60));
    assert_eq!(gateway.pages.return_lifetime, seconds(7 * 86400));
    let callbacks = &gateway.callbacks;
    assert_eq!((callbacks.timeout, callbacks.first_retry), (seconds(10), seconds(5)));
    assert_eq!((callbacks.max_retry, callbacks.give_up_after), (seconds(3600), seconds(3 * 86400)));
    assert_eq!(callbacks.forget_after, seconds(90 * 86400));
    assert!(!callbacks.allow_private_addresses && callbacks.trust.is_empty());
    let limits = &gateway.limits;
    assert_eq!((limits.body, limits.head, limits.connections), (65536, 16384, 10_000));
    assert_eq!(
        (limits.head_timeout, limits.body_timeout, limits.idle_timeout),
        (seconds(10), seconds(10), seconds(75))
    );
    let quota = limits.unauthenticated_per_ip;
    assert_eq!((quota.per_second.get(), quota.burst.get()), (50, 100));
    assert!(!gateway.clients.proxy_protocol && gateway.clients.trusted_proxies.is_empty());
}

#[test]
fn shop_defaults() {
    let rules = Rules::small().load();
    let shop = &rules.shops["s"];
    assert_eq!(shop.currency, Currency::new("EUR").unwrap());
    assert!(shop.active && shop.payment_method.is_none());
    assert!(shop.payin.schema.is_none() && shop.payout.schema.is_none());
    assert!(shop.payin.browser_return);
    assert!(matches!(shop.account, AccountRule::Any));
    assert!(matches!(shop.provider, ProviderRules::Sandbox { delay } if delay == Duration::from_secs(1)));
}

#[test]
fn merchant_defaults() {
    let rules = Rules::small().load();
    let merchant = &rules.merchants["m"];
    assert_eq!(&*merchant.name, "m");
    assert!(merchant.default_shop.is_none());
    let access = &merchant.shops["s"];
    assert!(access.payin && access.payout);
    let v1 = &merchant.v1;
    assert_eq!(&*v1.dialect.name, "v1");
    assert_eq!(v1.callbacks, CallbackStyle::V1);
    assert!(v1.callback_url.is_none() && v1.return_url.is_none() && v1.notices.is_empty());
    assert_eq!((v1.non_numeric_user_id, v1.unknown_fields), (IdPolicy::Reject, UnknownFields::Reject));
    assert!(!v1.allow_http_callbacks);
    assert!(!merchant.balance.enforce && merchant.balance.opening.is_empty());
    let key = rules.api_key("k").unwrap().api_key();
    assert!(key.rate_limit.is_none() && key.shops.is_none());
    assert!(rules.api_key("K").is_none());
}

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
