//! The command line: what is printed where, and the exit codes.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::request::ACME;
use crate::support::rules::write_file;
use crate::support::{self, Client, Gateway, Reply, Request, Rules, deposit, payin, text};

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs a command in a directory, with this on its stdin.
fn run_in(directory: &Path, arguments: &[&str], stdin: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("PAYBRIDGE_RULES")
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no stdin may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn world(rules: &Rules) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    rules.write(root.path(), 8443, 9090);
    root
}

#[test]
fn check_is_content_with_good_rules() {
    let root = world(&Rules::default());
    let ran = run_in(root.path(), &["check"], "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let elsewhere = tempfile::tempdir().unwrap();
    let rules = root.path().join("rules");
    assert_eq!(run_in(elsewhere.path(), &["check", "--rules", rules.to_str().unwrap()], "").code, Some(0));
    assert_eq!(run_in(elsewhere.path(), &["check"], "").code, Some(1), "no rules here");
    let by_environment = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .arg("check")
        .current_dir(elsewhere.path())
        .env("PAYBRIDGE_RULES", &rules)
        .output()
        .unwrap();
    assert_eq!(by_environment.status.code(), Some(0));
    let by_empty_environment = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .arg("check")
        .current_dir(root.path())
        .env("PAYBRIDGE_RULES", "")
        .output()
        .unwrap();
    assert_eq!(by_empty_environment.status.code(), Some(0), "as if it were not set");
    assert_eq!(run_in(root.path(), &["check", "--rules", ""], "").code, Some(2));
    assert!(!root.path().join("data").exists() && !root.path().join("certs").exists(), "a check makes nothing");
}

#[test]
fn the_shipped_rules_are_good() {
    let ran = run_in(Path::new(env!("CARGO_MANIFEST_DIR")), &["check"], "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
}

#[test]
fn schema_prints_what_rules_that_serve_fit() {
    let root = world(&Rules::default());
    let rules = root.path().join("rules");
    let dialects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/dialects");
    for (kind, directories) in [
        ("gateway", vec![rules.clone()]),
        ("merchant", vec![rules.join("merchants")]),
        ("shop", vec![rules.join("shops")]),
        ("dialect", vec![dialects]),
    ] {
        let printed = run_in(root.path(), &["schema", kind], "");
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
        let schema: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
        let schema = jsonschema::draft202012::new(&schema).unwrap();
        let files = directories.iter().flat_map(|directory| std::fs::read_dir(directory).unwrap());
        let files: Vec<_> = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "toml"))
            .collect();
        assert!(!files.is_empty(), "{kind}");
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            let read = |text: &str| serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
            let refusal = schema.validate(&read(&text)).err().map(|error| error.to_string());
            assert_eq!(refusal, None, "{}", path.display());
            assert!(!schema.is_valid(&read(&format!("misspelt = 1\n{text}"))), "{}", path.display());
        }
    }
    assert_eq!(run_in(root.path(), &["schema", "list"], "").code, Some(2));
}

#[test]
fn check_names_every_problem_with_its_place() {
    let rules = Rules::default()
        .edit("merchants/acme.toml", "name = \"Acme Ltd\"", "name = \"Acme Ltd\"\nnaem = 1")
        .edit("merchants/acme.toml", "\"127.0.0.0/8\"", "\"127.0.0.1/8\"")
        .edit("merchants/gamma.toml", "callbacks = \"v2\"", "callbacks = \"v3\"\nmode = \"shadow\"")
        .edit("shops/card-eur.toml", "currency = \"EUR\"", "currency = \"EURO\"")
        .edit("shops/half-eur.toml", "[provider]\nkind = \"sandbox\"", "[payout]\naccount = 7")
        .edit("shops/mobile.json", "\"type\":\"object\"", "\"type\":\"objekt\"")
        .edit("shops/card-eur.payout.json", "\"holder\"", "\"account_number\"")
        .with("limits", "body = \"64 KB!\"\nbodies = 3")
        .with("engine", "url = \"http://v2.example.com\"")
        .file("shops/torn.toml", "currency = \"EUR\nactive = true\n")
        .file("dialects/odd.toml", "[signature]\npayload = \"{nonsense}\"\nwindow = \"5 fortnights\"\n")
        .file("merchants/delta.toml", "name = \"Delta\"\ndefault_shop = \"nowhere\"\n[shops.nowhere]\npayin = true\n");
    let root = world(&rules);
    let ran = run_in(root.path(), &["check"], "");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let stated = ran.out + &ran.err;
    for place in [
        "merchants/acme.toml:2:1",
        "merchants/acme.toml:",
        "merchants/gamma.toml:",
        "shops/card-eur.toml:1:12",
        "shops/half-eur.toml:",
        "shops/mobile.json:1:",
        "shops/card-eur.payout.json:1:",
        "gateway.toml:",
        "shops/torn.toml:1:",
        "dialects/odd.toml:2:",
        "dialects/odd.toml:3:",
        "merchants/delta.toml:3:",
    ] {
        assert!(stated.contains(place), "{place} is not named:\n{stated}");
    }
    for word in ["naem", "EURO", "127.0.0.1/8", "bodies", "http://v2.example.com", "nonsense", "shadow"] {
        assert!(stated.contains(word), "{word} is not shown:\n{stated}");
    }
    for secret in support::request::KEYS.iter().flat_map(|key| [key.v1, key.v2]).flatten() {
        assert!(!stated.contains(secret), "a secret is shown:\n{stated}");
    }
}

#[test]
fn secrets_come_from_files_and_the_environment_and_are_never_shown() {
    let rules = Rules::default()
        .edit("merchants/acme.toml", "\"acme-v1-hush-7Wq\"", "\"file:../../secrets/acme\"")
        .edit("merchants/acme.toml", "\"acme-v2-hush-9Xz\"", "\"env:PAYBRIDGE_TEST_SECRET_THAT_IS_NOT_SET\"");
    let root = world(&rules);
    write_file(&root.path().join("secrets/acme"), "from-a-file-hush\n");
    let ran = run_in(root.path(), &["check"], "");
    assert_eq!(ran.code, Some(1));
    let stated = ran.out + &ran.err;
    assert!(stated.contains("PAYBRIDGE_TEST_SECRET_THAT_IS_NOT_SET") && !stated.contains("from-a-file"), "{stated}");
    let ran = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .arg("check")
        .current_dir(root.path())
        .env("PAYBRIDGE_TEST_SECRET_THAT_IS_NOT_SET", "from-the-environment-hush")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn other_names_in_the_rules_directory_are_ignored() {
    let rules = Rules::default()
        .file("merchants/.acme.toml.swp", "garbage")
        .file("merchants/acme.toml~", "garbage")
        .file("merchants/#acme.toml#", "garbage")
        .file("shops/.hidden.toml", "garbage")
        .file("README.md", "garbage")
        .file("..data/merchants/x.toml", "garbage");
    let ran = run_in(world(&rules).path(), &["check"], "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let ran = run_in(world(&rules.file("merchants/my shop.toml", "garbage")).path(), &["check"], "");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("rules/merchants/my shop.toml:1:1: warning: the file is not read"), "{}", ran.err);
}

#[test]
fn addresses_and_the_store_may_come_from_the_environment() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("rules")).unwrap();
    let gateway = "[server]\nlisten = \"env:PB_LISTEN\"\npublic_url = \"env:PB_URL\"\n[admin]\nlisten = \"env:PB_ADMIN\"\n\
                   [store]\nurl = \"env:PB_STORE\"\n[tls]\ngenerate = true\n";
    std::fs::write(root.path().join("rules/gateway.toml"), gateway).unwrap();
    let check = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut check = Command::new(env!("CARGO_BIN_EXE_paybridge"));
        check.arg("check").args(arguments).current_dir(root.path()).env_remove("PAYBRIDGE_RULES");
        let output = check.envs(variables.iter().copied()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let right = [
        ("PB_LISTEN", "127.0.0.1:9443"),
        ("PB_URL", "https://localhost:9443"),
        ("PB_ADMIN", "unix:admin.sock"),
        ("PB_STORE", "sqlite:../data/x.db"),
    ];
    assert_eq!(check(&[], &right).0, Some(0), "{}", check(&[], &right).1);
    assert_eq!(check(&["--no-secrets"], &[]).0, Some(0), "{}", check(&["--no-secrets"], &[]).1);
    for (index, (name, _)) in right.into_iter().enumerate() {
        let mut wrong = right;
        wrong[index].1 = "hush";
        let (code, err) = check(&[], &wrong);
        assert!(code == Some(1) && err.contains(&format!("the environment variable `{name}` must be")), "{err}");
        assert!(!err.contains("hush"), "{err}");
    }
}

#[test]
fn translate_prints_the_v2_body_or_why_not() {
    let root = world(&Rules::default());
    let arguments = ["translate", "--merchant", "acme", "--kind", "payin"];
    let ran = run_in(root.path(), &arguments, &payin("piped").to_string());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let v2: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(text(&v2, "order_id"), "piped");
    let ran = run_in(root.path(), &arguments, "{}");
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    assert!(ran.err.contains("external_id") || ran.err.contains("amount"), "{}", ran.err);
    for (arguments, code) in [
        (&["translate", "--kind", "payin"][..], 2),
        (&["translate", "--merchant", "acme"], 2),
        (&["translate", "--merchant", "acme", "--kind", "refund"], 2),
        (&["translate", "--merchant", "nobody", "--kind", "payin"], 1),
        (&["translate", "--merchant", "acme", "--kind", "payin", "no-such-file.json"], 1),
    ] {
        let ran = run_in(root.path(), arguments, "{}");
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.is_empty() && !ran.err.contains("panicked"), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn translate_leaves_a_remote_engines_rules_to_it() {
    let embedded = world(&Rules::default());
    let remote = world(&Rules::default().with("engine", "url = \"https://v2.example.com\""));
    let note = "note: the remote engine applies its own rules, which are not known here\n";
    let translate = |root: &tempfile::TempDir, extra: &[&str], body: &str| {
        let arguments = [&["translate", "--merchant", "acme", "--kind", "payin"], extra].concat();
        let ran = run_in(root.path(), &arguments, body);
        assert_eq!(ran.code, Some(0), "{extra:?}: {}", ran.err);
        ran
    };
    let good = support::bodies::with(payin("here"), "shop_code", None).to_string();
    let ran = translate(&embedded, &["--explain"], &good);
    assert!(ran.out.contains("the engine uses") && ran.err.is_empty(), "{}{}", ran.out, ran.err);
    let ran = translate(&remote, &["--explain"], &good);
    assert!(ran.out.contains("\n\n") && !ran.out.contains("the engine "), "{}", ran.out);
    assert_eq!(ran.err, note);

    let refused = support::bodies::with(payin("there"), "shop_code", Some("nowhere".into())).to_string();
    for extra in [&[][..], &["--explain"]] {
        let ran = translate(&embedded, extra, &refused);
        assert!(ran.err.contains("note: the engine would reject this now: "), "{extra:?}: {}", ran.err);
        assert_eq!(translate(&remote, extra, &refused).err, note, "{extra:?}");
    }
}

/// Sends a request with exactly the headers that `sign` printed.
async fn send_signed(client: &Client, method: &str, target: &str, headers: &str, body: &str) -> Reply {
    let mut request = Request::new(method, target, body);
    for line in headers.lines() {
        let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no header: {line}"));
        request = request.header(name, value);
    }
    if method == "POST" && request.value("content-type").is_none() {
        request = request.header("Content-Type", "application/json");
    }
    client.send(&request).await
}

#[tokio::test]
async fn what_sign_prints_is_let_in() {
    let gateway = Gateway::start(&Rules::default());
    let (client, root) = (gateway.client(), gateway.root.path());
    let sign = |arguments: &[&str], body: &str| {
        let ran = run_in(root, &[&["sign"], arguments].concat(), body);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
        assert!(!(ran.out.clone() + &ran.err).contains("hush"), "a secret is shown");
        ran.out
    };
    let v1 = payin("signed").to_string();
    let headers = sign(&["v1", "--key", "acme-live", "--method", "POST", "--target", "/api/v1/payin"], &v1);
    send_signed(&client, "POST", "/api/v1/payin", &headers, &v1).await.expect(200);
    write_file(&root.join("body.json"), &v1);
    let headers = sign(&["v1", "--key", "acme-live", "--target", "/api/v1/payin", "body.json"], "");
    send_signed(&client, "POST", "/api/v1/payin", &headers, &v1).await.expect(200);
    let target = "/api/v1/payin/status?external_id=signed";
    let headers = sign(&["v1", "--key", "acme-live", "--method", "GET", "--target", target], "");
    send_signed(&client, "GET", target, &headers, "").await.expect(200);
    let v2 = deposit("signed-2").to_string();
    let headers = sign(&["v2", "--key", "acme-live"], &v2);
    let reply = send_signed(&client, "POST", "/api/v2/deposits", &headers, &v2).await.expect(200).json();
    let target = format!("/api/v2/transactions/{}", text(&reply, "transaction_id"));
    let headers = sign(&["v2", "--key", "acme-live", "--method", "GET", "--target", &target], "");
    send_signed(&client, "GET", &target, &headers, "").await.expect(200);
    for (arguments, code) in [
        (&["sign", "v1", "--key", "nobody"][..], 1),
        (&["sign", "v1", "--key", "acme-native"], 1),
        (&["sign", "v3", "--key", "acme-live"], 2),
        (&["sign", "v1"], 2),
    ] {
        let ran = run_in(root, arguments, "{}");
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.err);
    }
}

#[tokio::test]
async fn certs_are_made_and_served() {
    let gateway = Gateway::prepare(&Rules::default().with("tls", "generate = false"));
    let ran =
        run_in(gateway.root.path(), &["certs", "--dir", "certs", "--name", "localhost", "--name", "pay.example"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let before = std::fs::read(gateway.root.path().join("certs/server.key")).unwrap();
    let mut gateway = gateway;
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    gateway.client().send(&Request::status(&ACME, "1")).await.expect(404);
    run_in(gateway.root.path(), &["certs", "--dir", "certs"], "");
    assert_eq!(std::fs::read(gateway.root.path().join("certs/server.key")).unwrap(), before, "nothing is overwritten");
}

#[tokio::test]
async fn serve_prints_a_curl_line_that_creates_a_deposit() {
    let rules = Rules::default();
    let gateway = Gateway::start(&rules);
    let log = support::eventually("the banner", async || Some(gateway.log()).filter(|log| log.contains("curl "))).await;
    let line = log.lines().find(|line| line.trim_start().starts_with("curl ")).unwrap().trim();
    assert!(line.contains("--cacert"), "{line}");
    let arguments = shell_words(line);
    let value = |name: &str| arguments.iter().position(|word| word == name).map(|at| arguments[at + 1].as_str());
    let headers: Vec<_> = arguments.windows(2).filter(|pair| pair[0] == "-H").map(|pair| pair[1].clone()).collect();
    let body = value("-d").or_else(|| value("--data-binary")).or_else(|| value("--data")).expect("a body");
    let ca = gateway.root.path().join(value("--cacert").unwrap());
    let client = Client::new(gateway.public, &ca);
    let url = arguments.iter().find(|word| word.starts_with("https://")).expect("an address");
    assert!(url.ends_with("/api/v1/payin"), "{url}");
    send_signed(&client, "POST", "/api/v1/payin", &headers.join("\n"), body).await.expect(200);
}

#[tokio::test]
async fn serve_signs_nothing_outside_development() {
    let mut gateway = Gateway::prepare(&Rules::default().with("tls", "generate = false"));
    assert_eq!(run_in(gateway.root.path(), &["certs", "--dir", "certs"], "").code, Some(0));
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let log =
        support::eventually("the banner", async || Some(gateway.log()).filter(|log| log.contains("paybridge sign")))
            .await;
    assert!(!log.contains("curl ") && !log.to_lowercase().contains("signature"), "{log}");
}

/// The words of a line as a POSIX shell reads them, where only single quotes quote.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words
}

#[test]
fn help_completions_and_bad_usage() {
    let root = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| run_in(root.path(), arguments, "");
    for command in ["serve", "check", "translate", "sign", "certs", "completions", "man"] {
        let ran = run(&[command, "--help"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{command}");
        assert!(ran.out.contains("Usage:") && ran.out.len() > 200, "{command} --help teaches nothing:\n{}", ran.out);
        assert!(run(&["--help"]).out.contains(command), "{command} is not in --help");
    }
    let version = run(&["--version"]).out;
    let parts = format!(
        r"^paybridge {} \(([0-9a-f]{{12}}(-dirty)?|unknown) ([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|unknown)\) [a-z0-9_]+-[a-z0-9_-]+\n$",
        regex::escape(env!("CARGO_PKG_VERSION"))
    );
    assert!(regex::Regex::new(&parts).unwrap().is_match(&version), "{version}");
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&["completions", shell]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}");
        assert!(ran.out.contains("translate"), "{shell}");
    }
    for usage in [&[][..], &["nonsense"], &["serve", "--nonsense"], &["completions", "tcsh9"], &["check", "--rules"]] {
        let ran = run(usage);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{usage:?}");
        assert!(!ran.err.is_empty(), "{usage:?}");
    }
}

/// What a command prints as one JSON document.
fn json(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

#[tokio::test]
async fn callbacks_are_listed_shown_and_sent_again() {
    // Nobody listens there.
    let dead = format!("https://127.0.0.1:{}/cb", support::gateway::free_port());
    let times = "first_retry = \"100ms\"\nmax_retry = \"100ms\"\ngive_up_after = \"200ms\"";
    let mut gateway = Gateway::start(&Rules::default().with("callbacks", times));
    let (client, root) = (gateway.client(), gateway.root.path().to_owned());
    let run = |arguments: &[&str]| run_in(&root, &[&["callbacks"], arguments].concat(), "");
    assert_eq!(run(&["list"]).out, "", "there is nothing yet");
    for order in ["odd\n1", "o-2"] {
        let mut body = deposit(order);
        (body["callback_url"], body["amount"]) = (dead.as_str().into(), 10.01.into());
        client.send(&Request::deposit(&ACME, &body)).await.expect(200);
    }
    let failed = || json(&run(&["list", "--state", "failed", "--format", "json"]));
    let list = support::eventually("callbacks are given up", async || {
        Some(failed()).filter(|list| list["callbacks"].as_array().unwrap().len() == 2)
    })
    .await;
    let newest = &list["callbacks"][0];
    assert_eq!((text(newest, "order_id"), text(newest, "merchant"), text(newest, "kind")), ("o-2", "acme", "v2"));
    assert_eq!(list["next"], serde_json::Value::Null);

    let table = run(&["list", "--merchant", "acme"]);
    assert!(table.out.starts_with("ID ") && table.out.contains(r"odd\u{a}1"), "{}", table.out);
    assert_eq!(table.out.lines().count(), 3, "{}", table.out);
    let first = run(&["list", "--limit", "1"]);
    let place = first.err.trim().strip_prefix("there are more: --after ").unwrap();
    assert_eq!(run(&["list", "--limit", "1", "--after", place]).out.lines().count(), 2);

    let id = text(newest, "id");
    let shown = json(&run(&["show", id, "--format", "json"]));
    assert_eq!((text(&shown, "state"), text(&shown, "url")), ("failed", dead.as_str()));
    let tries = shown["tries"].as_array().unwrap().len();
    assert!(tries > 0 && shown["tries"][0]["error"].is_string(), "{shown}");
    assert!(run(&["show", id]).out.contains(&format!("id             {id}\n")));
    let unknown = "cb_00000000000000010000000000000001";
    let ran = run(&["show", unknown]);
    assert!(ran.code == Some(1) && ran.err.contains(unknown) && ran.out.is_empty(), "{}", ran.err);
    assert_eq!(run(&["show", "cb_1"]).code, Some(2));

    let ran = run(&["resend", id, "--wait", "30s"]);
    assert!(ran.code == Some(1) && ran.out.starts_with(&format!("{id} ")), "{}{}", ran.out, ran.err);
    let again = json(&run(&["show", id, "--format", "json"]))["tries"].as_array().unwrap().len();
    assert!(again > tries, "the gateway tried it");
    support::eventually("both are given up again", async || {
        Some(failed()).filter(|list| list["callbacks"].as_array().unwrap().len() == 2)
    })
    .await;
    gateway.kill();
    let ran = run(&["resend", "--failed", "--since", "1h"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "2 callbacks queued\n"), "{}", ran.err);
    assert_eq!(run(&["resend", "--failed"]).out, "0 callbacks queued\n");
    let ran = run(&["resend", id, "--wait", "100ms"]);
    assert!(ran.code == Some(1) && ran.out.contains("not tried yet"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_sample_reaches_a_receiver_and_the_store_knows_nothing_of_it() {
    let receiver = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?a=1", receiver.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = receiver.accept().unwrap();
        let mut request = Vec::new();
        let mut chunk = [0; 4096];
        while !request.ends_with(b"}") {
            let length = std::io::Read::read(&mut socket, &mut chunk).unwrap();
            assert!(length > 0, "cut short");
            request.extend_from_slice(&chunk[..length]);
        }
        socket.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap()
    });
    let root = world(&Rules::default());
    let sample = ["callbacks", "sample", "--merchant", "beta", "--url"];
    let ran = run_in(root.path(), &[&sample[..], &[&url, "--kind", "v1", "--format", "json"]].concat(), "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let reported = json(&ran);
    assert_eq!(
        (&reported["status"], text(&reported, "kind"), text(&reported, "url")),
        (&202.into(), "v1", url.as_str())
    );
    let request = serving.join().unwrap();
    let head = request.to_lowercase();
    assert!(
        head.starts_with("post /hook?a=1 http/1.1\r\n") && head.contains("\r\nx-callback-sample: true\r\n"),
        "{head}"
    );
    assert!(head.contains(&format!("\r\nx-callback-id: {}\r\n", text(&reported, "id"))), "{head}");
    assert!(request.ends_with(&format!("\r\n\r\n{}", text(&reported, "body"))), "{request}");
    assert!(text(&reported, "body").starts_with(r#"{"external_id":"sample-"#), "{reported}");
    for header in ["x-api-key", "x-timestamp", "x-signature"] {
        assert!(head.contains(&format!("\r\n{header}: ")), "{header}");
    }
    assert!(!root.path().join("data").exists(), "no store was made");

    // Nobody listens there any more.
    let ran = run_in(root.path(), &[&sample[..], &[&url, "--kind", "v1"]].concat(), "");
    assert!(ran.code == Some(1) && ran.out.contains("\nno answer: "), "{}{}", ran.out, ran.err);
    let ran = run_in(root.path(), &[&sample[..], &[&url, "--kind", "v2"]].concat(), "");
    assert!(ran.code == Some(1) && ran.err.contains("https://"), "{}{}", ran.out, ran.err);
    let ran = run_in(root.path(), &[&sample[..], &[&url, "--key", "nobody"]].concat(), "");
    assert!(ran.code == Some(1) && ran.err.contains("no such API key"), "{}{}", ran.out, ran.err);
    assert_eq!(run_in(root.path(), &["callbacks", "sample", "--merchant", "nobody"], "").code, Some(1));
}
