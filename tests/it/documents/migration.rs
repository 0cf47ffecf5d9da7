//! `docs/migration.md` from its beginning to its end, before the stub of an old service: the rule files are edited as the
//! page shows, the commands run in their order, and print what the page shows.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use regex::Regex;

use super::{PATIENCE, page, run, shipped};
use crate::support::gateway::free_port;
use crate::support::tools::in_path;
use crate::support::{Gateway, within};

/// The stub of an old v1 service.
struct OldService {
    child: Child,
    printed: BufReader<ChildStdout>,
}

impl OldService {
    /// Starts it with the certificate that a gateway has made.
    fn start(gateway: &Gateway, port: u16) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_paybridge"))
            .args(["stub", "legacy", "--listen", &format!("127.0.0.1:{port}")])
            .current_dir(gateway.root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the stub starts");
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        assert_eq!(line, format!("listening on https://127.0.0.1:{port}\n"));
        Self { child, printed }
    }

    /// Ends it, and returns the requests that it answered.
    fn end(&mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.printed.by_ref().lines().map(|line| line.unwrap()).collect()
    }
}

impl Drop for OldService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The blocks of code of a page, each with its language.
fn fences(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').unwrap_or((block, ""))).collect()
}

/// Writes the keys of a section, as a block of a page shows them, into a rule file.
fn edit(text: &str, block: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut wanted = block.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let section = wanted.next().unwrap();
    let start = lines.iter().position(|line| *line == section).unwrap_or_else(|| {
        lines.push(section);
        lines.len() - 1
    });
    for setting in wanted {
        let (key, _) = setting.split_once(" = ").unwrap_or_else(|| panic!("{setting} sets a key"));
        let section = lines[start + 1..].iter().take_while(|line| !line.starts_with('['));
        match section.into_iter().position(|line| line.starts_with(&format!("{key} = "))) {
            Some(found) => lines[start + 1 + found] = setting,
            None => lines.insert(start + 1, setting),
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn edits_replace_and_add_keys() {
    let text = "a = 1\n[v1]\n# mode = \"x\"\nmode = \"a\"\n[other]\npercent = 2\n";
    let edited = edit(text, "# rules/x.toml\n[v1]\nmode = \"b\"\npercent = 1");
    assert_eq!(edited, "a = 1\n[v1]\npercent = 1\n# mode = \"x\"\nmode = \"b\"\n[other]\npercent = 2\n");
    assert_eq!(edit("a = 1\n", "[v1]\nb = 2"), "a = 1\n[v1]\nb = 2\n");
}

/// Whether a command printed what a page shows. `…` stands for what differs each time, and times differ, too.
fn is_as_shown(printed: &str, shown: &str) -> bool {
    let time = Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+Z").unwrap();
    let (printed, shown) = (time.replace_all(printed, "<time>"), time.replace_all(shown, "<time>"));
    let mut rest = &*printed;
    shown.replace("2…", "…").split('…').all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Runs commands until they print what a page shows: a report may be some seconds old.
async fn report(gateway: &Gateway, commands: &str, shown: &str) {
    let all_ready = shown.contains(" ready ") && !shown.contains("not ready");
    let code = if all_ready { 0 } else { 4 };
    let commands = format!("code=0\n{commands} || code=$?\ntest $code = {code}");
    let mut printed = String::new();
    let as_shown = async || {
        printed = run(gateway, &commands);
        is_as_shown(&printed, shown).then_some(())
    };
    let done = within(PATIENCE, as_shown).await;
    assert!(done.is_some(), "{commands}\nprinted\n{printed}\nand not\n{shown}");
}

#[tokio::test]
async fn a_move_goes_as_the_page_shows() {
    if in_path("curl", ".ci/run clients").is_none() {
        return;
    }
    let (gateway, _) = shipped();
    let port = free_port();
    let mut old = OldService::start(&gateway, port);
    let ports = [("localhost:8444", port), ("localhost:8443", gateway.public.port())];
    let page = ports
        .iter()
        .fold(page("docs/migration.md"), |page, (shown, port)| page.replace(shown, &format!("localhost:{port}")));
    let (mut edits, mut outputs) = (0, 0);
    let mut commands = None;
    for (language, block) in fences(&page) {
        let before = commands.take();
        match (language, before) {
            ("toml", _) => {
                let file = block.lines().next().and_then(|line| line.strip_prefix("# rules/"));
                let file = file.unwrap_or_else(|| panic!("names no file: {block}"));
                let path = gateway.rules_dir().join(file);
                std::fs::write(&path, edit(&std::fs::read_to_string(&path).unwrap(), block)).unwrap();
                let reload =
                    format!("POST /api/rules/reload HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", gateway.admin);
                let (status, body) = gateway.admin_request(&reload).unwrap();
                assert_eq!(status, 200, "{block}\n{body}");
                edits += 1;
            }
            ("sh", _) if block.contains("stub legacy") => {}
            ("sh", _) if block.starts_with("paybridge readiness") => commands = Some((block, None)),
            ("sh", _) => commands = Some((block, Some(run(&gateway, block)))),
            (_, Some((commands, None))) => {
                report(&gateway, commands, block).await;
                outputs += 1;
            }
            (_, Some((commands, Some(printed)))) => {
                assert!(is_as_shown(&printed, block), "{commands}\nprinted\n{printed}\nand not\n{block}");
                outputs += 1;
            }
            (_, None) => {}
        }
    }
    assert!(edits >= 10 && outputs >= 9, "the page is read: {edits} edits, {outputs} outputs");
    // Of the orders, the last one alone was made here, and the old service has no request for it.
    let create = "POST /api/v1/payin -> 200";
    let status = "GET /api/v1/payin/status?external_id=move-2 -> 200";
    assert_eq!(old.end(), [create, create, create, create, status]);
    let checked = String::from_utf8(gateway.store_check().stdout).unwrap();
    assert!(checked.starts_with("checked 1 "), "{checked}");
}
