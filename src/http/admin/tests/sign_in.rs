//! Users, roles, sessions, and who may make which request.

use std::os::unix::fs::PermissionsExt as _;

use http::Method;
use tokio::net::{UnixListener, UnixStream};

use super::*;
use crate::http::admin::form::LARGEST_FORM;
use crate::http::admin::refused::RouteKind;
use crate::http::admin::routes::{AdminEndpoint, ROUTES, Verb};
use crate::http::admin::sessions::IDLE;
use crate::rules::Role;

const ADA: &str = "ada-token-of-16-or-more";
const BOB: &str = "bob-token-of-16-or-more";

/// Ada may act, Bob may look.
fn users() -> String {
    format!("{}{}", user("ada", "operator", ADA), user("bob", "viewer", BOB))
}

fn user(name: &str, role: &str, token: &str) -> String {
    format!("[[admin.users]]\nname = \"{name}\"\nrole = \"{role}\"\ntoken = \"{token}\"\n")
}

const OWN: &str = "Sec-Fetch-Site: same-origin";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

/// A link on another site.
const LINK: [&str; 3] = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];

impl Running {
    /// Posts a form.
    async fn post(&self, path: &str, headers: &[&str], form: &str) -> (u16, String) {
        let length = format!("Content-Length: {}", form.len());
        let all = [&[LOCAL, FORM, length.as_str()][..], headers].concat();
        // `send` ends the head, and the form follows it.
        let last = format!("{}\r\n\r\n{form}", all.last().unwrap());
        let mut lines = all.clone();
        *lines.last_mut().unwrap() = &last;
        self.send_raw(&format!("POST {path}"), &lines.join("\r\n")).await
    }

    async fn send_raw(&self, line: &str, rest: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        // A listener that refuses the form closes the connection before it has read all.
        let _ = socket.write_all(format!("{line} HTTP/1.1\r\nConnection: close\r\n{rest}").as_bytes()).await;
        let mut reply = Vec::new();
        let _ = socket.read_to_end(&mut reply).await;
        let reply = String::from_utf8(reply).unwrap();
        (reply.split(' ').nth(1).map_or(0, |status| status.parse().unwrap()), reply)
    }

    /// Signs in and returns the `Cookie` header.
    async fn sign_in(&self, token: &str) -> String {
        let (status, reply) = self.post("/sign-in", &[OWN], &format!("token={token}&to=%2Frules")).await;
        assert!(status == 303 && header(&reply, "location") == Some("/rules"), "{reply}");
        let cookie = header(&reply, "set-cookie").unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        format!("Cookie: other=1; {}", cookie.split(';').next().unwrap())
    }
}

fn header<'r>(reply: &'r str, name: &str) -> Option<&'r str> {
    let lines = reply.lines().take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.split_once(": "))
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

#[tokio::test]
async fn the_static_files_of_a_page_are_served_without_a_user() {
    let admin = start(&users()).await;
    let (_, page) = admin.send("GET /sign-in", &[LOCAL]).await;
    let page = page.replace("&#x2f;", "/");
    let paths: Vec<_> = page.split('"').filter(|part| part.starts_with("/console/")).collect();
    assert_eq!(paths.len(), 2, "{page}");
    for path in paths {
        assert_eq!(admin.status(&format!("GET {path}"), &[LOCAL]).await, 200, "{path}");
    }
    assert_eq!(admin.status("GET /console/other.css", &[LOCAL]).await, 404);
}

#[tokio::test]
async fn every_route_is_for_its_role_alone() {
    let admin = start(&users()).await;
    let (ada, bob) = (admin.sign_in(ADA).await, admin.sign_in(BOB).await);
    for route in ROUTES {
        let (line, is_post) = (route.path.replace("{id}", "x"), route.verb == Verb::Post);
        let line = format!("{} {line}", if is_post { Method::POST } else { Method::GET });
        let refuses = async |headers: &[&str]| {
            // Without a form, so that nothing is signed out or changed: 415 from the handler.
            let headers = [&[LOCAL][..], headers].concat();
            let (status, reply) = admin.send(&line, &headers).await;
            if route.kind == RouteKind::Page && status != 303 {
                for (name, value) in [
                    ("cache-control", "no-store"),
                    ("referrer-policy", "no-referrer"),
                    ("x-content-type-options", "nosniff"),
                    ("content-security-policy", reply::PAGE_POLICY),
                ] {
                    assert_eq!(header(&reply, name), Some(value), "{line}: {reply}");
                }
            }
            (matches!(status, 303 | 401 | 403)).then_some(status)
        };
        let without_user = match (route.role, route.kind) {
            (None, _) => None,
            (Some(_), RouteKind::Page) => Some(303),
            (Some(_), _) => Some(401),
        };
        // A program's POST has no form that could be refused: it would act.
        let answers = route.kind != RouteKind::Program || !is_post;
        // The search leads to another page.
        let leads_on = route.path == "/search";
        assert_eq!(refuses(&[]).await, without_user, "{line}");
        let is_form = matches!(route.endpoint, AdminEndpoint::SignInForm);
        let is_action = route.role == Some(Role::Operator);
        for by in [&[bob.as_str(), OWN][..], &[format!("Authorization: Bearer {BOB}").as_str()]] {
            if answers || is_action {
                let leads = leads_on || is_form && by[0] == bob;
                let expected = if is_action { Some(403) } else { leads.then_some(303) };
                assert_eq!(refuses(by).await, expected, "{line}");
            }
        }
        if answers {
            assert_eq!(refuses(&[&ada, OWN]).await, (is_form || leads_on).then_some(303), "{line}");
        }
        for foreign in ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: same-site"] {
            assert_eq!(refuses(&[&ada, foreign]).await, Some(403), "{line}: {foreign}");
        }
        let by_link = refuses(&LINK).await;
        let leads_to_a_page = route.kind == RouteKind::Page && !is_post;
        assert_eq!(by_link, if leads_to_a_page { without_user } else { Some(403) }, "{line}");
        if is_post {
            assert_eq!(refuses(&[&ada]).await, Some(403), "{line}: a session without an origin");
        }
        let by_any_name = if route.kind == RouteKind::Probe { 200 } else { 403 };
        assert_eq!(admin.status(&line, &["Host: evil.example", &ada, OWN]).await, by_any_name, "{line}");
        let (other, needed) = if is_post { ("GET", "POST") } else { ("POST", "GET") };
        let located = routes::locate(line.split(' ').nth(1).unwrap()).unwrap();
        if !located.allow().contains(other) {
            let (status, reply) = admin.send(&line.replacen(needed, other, 1), &[LOCAL, &ada, OWN]).await;
            assert_eq!((status, header(&reply, "allow")), (405, Some(&*located.allow())), "{line}");
        }
    }
    assert_eq!(admin.source.reloads.load(Ordering::SeqCst), 0, "nothing was done");
}

#[tokio::test]
async fn a_read_only_listener_refuses_every_action_at_once() {
    let admin = start("").await;
    assert_eq!(admin.status("POST /api/rules/reload", &[LOCAL]).await, 200);
    assert_eq!(admin.post("/rules/reload", &[], "").await.0, 303);
    admin.source.edit("read_only = true");
    for route in ROUTES.iter().filter(|route| route.verb == Verb::Post) {
        let path = route.path.replace("{id}", "x");
        let (status, reply) = admin.post(&path, &[], "").await;
        assert_eq!(status == 403, route.role == Some(Role::Operator), "{path}: {reply}");
    }
    assert_eq!(admin.source.reloads.load(Ordering::SeqCst), 2);
    admin.source.edit("");
    assert_eq!(admin.status("POST /api/rules/reload", &[LOCAL]).await, 200);
}

#[tokio::test]
async fn a_session_lasts_until_it_is_idle_signed_out_or_its_user_changes() {
    let admin = start(&users()).await;
    let (ada, bob) = (admin.sign_in(ADA).await, admin.sign_in(BOB).await);
    let has_session = async |cookie: &str| admin.status("GET /", &[LOCAL, cookie]).await == 200;
    assert!(has_session(&ada).await && has_session(&bob).await);
    assert!(!has_session(&ada.replace("=1; ", "=1; x")).await);
    assert_eq!(admin.status("GET /api/rules", &[LOCAL, &ada]).await, 200);
    let (_, page) = admin.send("GET /sign-in?to=%2Faudit", &[LOCAL, &ada]).await;
    assert_eq!(header(&page, "location"), Some("/audit"));

    // Another one's change ends no session; one's own does, and for good.
    admin.source.edit(&format!("{}{}", user("ada", "viewer", ADA), user("bob", "viewer", BOB)));
    admin.source.edit(&users());
    assert!(!has_session(&ada).await && has_session(&bob).await, "a role changed");
    let ada = admin.sign_in(ADA).await;
    admin.source.edit(&user("ada", "operator", ADA));
    assert!(has_session(&ada).await && !has_session(&bob).await, "a user was removed");
    admin.source.edit(&user("ada", "operator", BOB));
    assert!(!has_session(&ada).await, "a token changed");
    let wrong = format!("Authorization: Bearer {ADA}");
    assert_eq!(admin.status("GET /api/rules", &[LOCAL, &wrong]).await, 401);

    let (idle, other) = (admin.sign_in(BOB).await, admin.sign_in(BOB).await);
    admin.source.world.clock.set_ahead(86_400_000);
    admin.source.world.clock.advance(IDLE.saturating_sub(Duration::from_secs(1)));
    assert_eq!(admin.status("GET /", &[LOCAL, &idle, OWN, "X-Paybridge-Refresh: 1"]).await, 200);
    assert!(has_session(&other).await);
    admin.source.world.clock.advance(Duration::from_secs(1));
    assert!(!has_session(&idle).await && has_session(&other).await);
    assert_eq!(admin.post("/sign-out", &[&other], "").await.0, 403, "no origin");
    let (status, reply) = admin.post("/sign-out", &[&other, OWN], "").await;
    assert_eq!((status, header(&reply, "location")), (303, Some("/sign-in")));
    assert!(header(&reply, "set-cookie").unwrap().starts_with("paybridge_session=; Max-Age=0; "), "{reply}");
    assert!(!has_session(&other).await);
}

#[tokio::test]
async fn the_sign_in_form_returns_to_pages_alone_and_ends_in_no_loop() {
    let admin = start(&users()).await;
    let location = async |line: &str, headers: &[&str]| {
        let (status, reply) = admin.send(line, &[&[LOCAL][..], headers].concat()).await;
        assert_eq!(status, 303, "{reply}");
        header(&reply, "location").unwrap().to_owned()
    };
    assert_eq!(location("GET /", &[]).await, "/sign-in");
    assert_eq!(location("GET /mistyped", &["Accept: text/html;q=0.9"]).await, "/sign-in");
    let callbacks = "/callbacks?state=failed&merchant=a%2Db";
    let form = location(&format!("GET {callbacks}"), &LINK).await;
    assert_eq!(form, "/sign-in?to=/callbacks%3Fstate%3Dfailed%26merchant%3Da%252Db");
    assert_eq!(location("POST /callbacks/resend", &[OWN]).await, "/sign-in");

    // After a link the browser may have a session that it does not send: the form requests the page once more.
    let again = "<meta http-equiv=\"refresh\" content=\"0; url=&#x2f;callbacks?state=failed&amp;merchant=a%2Db\">";
    let (status, page) = admin.send(&format!("GET {form}"), &[&[LOCAL][..], &LINK].concat()).await;
    assert!(status == 200 && page.contains(again), "{page}");
    let ada = admin.sign_in(ADA).await;
    assert_eq!(admin.status(&format!("GET {callbacks}"), &[LOCAL, OWN, &ada]).await, 200);
    assert_eq!(location(&format!("GET {callbacks}"), &[OWN]).await, form);
    let (_, page) = admin.send(&format!("GET {form}"), &[LOCAL, OWN]).await;
    assert!(!page.contains("refresh") && page.contains("value=\"&#x2f;callbacks?state=failed&amp;"), "{page}");

    for bad in
        ["https%3A%2F%2Fevil.example", "%2F%2Fevil.example", "%2F%5Cevil.example", "%2Fsign-in", "%2Fapi%2Frules"]
    {
        let (_, reply) = admin.post("/sign-in", &[], &format!("token={ADA}&to={bad}")).await;
        assert_eq!(header(&reply, "location"), Some("/"), "{bad}");
        let (_, page) = admin.send(&format!("GET /sign-in?to={bad}"), &[LOCAL]).await;
        assert!(page.contains("name=\"to\" value=\"&#x2f;\"") && !page.contains("evil"), "{page}");
    }
    for (form, expected) in [("token=x&token=y", 400), ("token=%zz", 400), ("", 401), ("token=", 401)] {
        assert_eq!(admin.post("/sign-in", &[], form).await.0, expected, "{form}");
    }
    assert_eq!(admin.post("/sign-in", &[], &format!("a={}", "b".repeat(LARGEST_FORM))).await.0, 413);
    assert_eq!(admin.status("POST /sign-in", &[LOCAL]).await, 415);
}

#[tokio::test]
async fn ten_wrong_tokens_a_minute_are_an_address_s_and_right_ones_still_pass() {
    let admin = start(&users()).await;
    for _ in 0..5 {
        let (status, page) = admin.post("/sign-in", &[], "token=%22%3E%3Cb%3E").await;
        assert!(status == 401 && page.contains("this is no user") && !page.contains("<b>"), "{page}");
        assert_eq!(admin.status("GET /api/rules", &[LOCAL, "Authorization: Bearer wrong"]).await, 401);
        assert_eq!(admin.status("GET /api/rules", &[LOCAL]).await, 401, "no token is no wrong one");
    }
    for (status, reply) in [
        admin.post("/sign-in", &[], "token=wrong").await,
        admin.send("GET /api/rules", &[LOCAL, "Authorization: Bearer wrong"]).await,
        admin.send("GET /sign-in", &["Host: evil.example", "Authorization: Bearer wrong"]).await,
    ] {
        assert!(status == 429 && header(&reply, "retry-after").is_some(), "{reply}");
    }
    assert_eq!(admin.status("GET /healthz", &[LOCAL, "Authorization: Bearer wrong"]).await, 200, "a probe needs none");
    admin.sign_in(ADA).await;
    assert_eq!(admin.status("GET /api/rules", &[LOCAL, &format!("Authorization: Bearer {BOB}")]).await, 200);
    // The wall clock alone neither ends the wait nor makes it longer.
    for millis in [3_600_000, -7_200_000] {
        admin.source.world.clock.set_ahead(millis);
        let (status, reply) = admin.post("/sign-in", &[], "token=wrong").await;
        let wait: u64 = header(&reply, "retry-after").unwrap().parse().unwrap();
        assert!(status == 429 && wait <= 61, "{reply}");
    }
    admin.source.world.clock.advance(Duration::from_mins(1));
    assert_eq!(admin.post("/sign-in", &[], "token=wrong").await.0, 401);
}

#[tokio::test]
async fn a_console_is_open_only_while_there_is_no_user() {
    let admin = start("").await;
    let (_, page) = admin.send("GET /audit", &[LOCAL, "Authorization: Bearer any"]).await;
    assert!(page.contains("<b>local</b>, operator") && !page.contains("/sign-out"), "{page}");
    assert_eq!(header(&admin.send("GET /sign-in?to=/rules", &[LOCAL]).await.1, "location"), Some("/rules"));
    let token = format!("token = \"{ADA}\"");
    admin.source.edit(&token);
    assert_eq!(admin.status("GET /api/rules", &[LOCAL]).await, 200, "a token needs a restart");
    admin.source.edit(&user("bob", "viewer", BOB));
    assert_eq!(admin.status("GET /api/rules", &[LOCAL]).await, 401, "users are live");
    admin.source.edit(&token);
    assert_eq!(admin.status("GET /api/rules", &[LOCAL]).await, 401, "a token that is not in force opens nothing");
    admin.source.edit("");
    assert_eq!(admin.status("GET /api/rules", &[LOCAL]).await, 200);
}

#[tokio::test]
async fn a_proxy_with_tls_may_serve_a_configured_host() {
    let admin = start("").await;
    let reload = "POST /api/rules/reload";
    for (host, origin, expected) in [
        ("console.example", "https://console.example", 200),
        ("console.example:444", "https://console.example:444", 200),
        ("console.example", "http://console.example", 200),
        ("console.example", "https://console.example:444", 403),
        ("console.example", "ftp://console.example", 403),
        ("localhost", "https://localhost", 403),
    ] {
        let headers = [format!("Host: {host}"), format!("Origin: {origin}")];
        assert_eq!(admin.status(reload, &[&headers[0], &headers[1]]).await, expected, "{host} {origin}");
    }
}

#[tokio::test]
async fn a_unix_socket_is_its_owner_s_and_replaces_a_dead_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin.sock");
    let listen = AdminListen::Unix(path.clone());
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the socket of a process that has ended");
    let admin = Admin::bind(&listen).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let second = Admin::bind(&listen).await.unwrap_err().to_string();
    assert!(second.ends_with("another process serves this socket") && second.contains("unix:/"), "{second}");
    let mut serving = JoinSet::new();
    serving.spawn(admin.serve(Arc::new(Source::new("")), None, Arc::new(SystemRandomness::default())));
    for (host, expected) in [("localhost", "200"), ("console.example", "200"), ("evil.example", "403")] {
        let mut socket = UnixStream::connect(&path).await.unwrap();
        socket.write_all(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
        let mut reply = String::new();
        socket.read_to_string(&mut reply).await.unwrap();
        assert_eq!(reply.split(' ').nth(1), Some(expected), "{host}");
    }
    serving.shutdown().await;
    assert!(!path.exists(), "it is removed at the end");
    std::fs::write(&path, "a file").unwrap();
    let other = Admin::bind(&listen).await.unwrap_err().to_string();
    assert!(other.ends_with("the file is no socket"), "{other}");
}

#[tokio::test]
async fn tls_marks_the_cookie_and_names_the_origin() {
    let directory = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = crate::rules::TlsRules {
        certificate: directory.path().join("server.pem"),
        key: directory.path().join("server.key"),
        generate: false,
        client_ca: None,
    };
    std::fs::write(&tls.certificate, certified.cert.pem()).unwrap();
    std::fs::write(&tls.key, certified.signing_key.serialize_pem()).unwrap();
    let config = crate::http::listener::tls::server_tls(&tls).unwrap().admin;
    let admin = Admin::bind(&AdminListen::Tcp("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let [AdminListen::Tcp(address)] = *admin.places() else { panic!("{:?}", admin.places()) };
    let mut serving = JoinSet::new();
    let shared: AdminTls = Arc::new(arc_swap::ArcSwap::from_pointee(config));
    serving.spawn(admin.serve(Arc::new(Source::new(&users())), Some(shared), Arc::new(SystemRandomness::default())));

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let form = format!("token={ADA}");
    for (scheme, expected) in [("https", "303"), ("http", "403")] {
        let socket = TcpStream::connect(address).await.unwrap();
        let mut socket = connector.connect("localhost".try_into().unwrap(), socket).await.unwrap();
        let request = format!(
            "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: {scheme}://localhost\r\n{FORM}\r\n\
             Content-Length: {}\r\n\r\n{form}",
            form.len()
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        let _ = socket.read_to_end(&mut reply).await;
        let reply = String::from_utf8(reply).unwrap();
        assert_eq!(reply.split(' ').nth(1), Some(expected), "{reply}");
        if expected == "303" {
            let cookie = header(&reply, "set-cookie").unwrap();
            assert!(cookie.starts_with("__Host-paybridge_session=") && cookie.ends_with("; Secure"), "{cookie}");
        }
    }
}
