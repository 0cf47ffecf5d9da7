//! Expensive rule files: the number of reported problems and the time to find them are limited.

use std::time::Duration;

use super::*;

/// The most time for one set of files. It only catches tests that hang; all others take much less.
const MAX_READ_TIME: Duration = Duration::from_mins(2);

/// Runs a function; fails the test if it does not return within [`MAX_READ_TIME`].
pub(super) fn assert_ends<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::spawn(move || {
        let result = run();
        // The receiver is gone if the time has passed.
        let _ = done.send(());
        result
    });
    assert_ne!(
        ended.recv_timeout(MAX_READ_TIME),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout),
        "{what} does not end"
    );
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[test]
fn the_number_of_reported_problems_is_limited() {
    let rules = Rules::small().with("merchants/n.toml", "x = 1\n");
    assert_eq!(rules.refused().len(), 1);
    let unknown = (0..250).map(|n| format!("key{n} = 1\n")).collect::<Vec<_>>().concat();
    let rules = Rules::small().with("merchants/n.toml", &unknown);
    let problems = rules.problems();
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100], "merchants/n.toml:251:1: 150 more problems are not shown");
    let rendered = rules.refused().rendered();
    assert!(rendered.len() < 100 << 10, "{} bytes", rendered.len());
    for n in 0..20 {
        rules.put(&format!("merchants/n{n:02}.toml"), &unknown);
    }
    let problems = rules.problems();
    assert_eq!(problems.len(), 1001);
    assert!(problems[1000].ends_with(": 4250 more problems are not shown"), "{}", problems[1000]);
}

/// Entries with a rule file's name that are no regular files, and could block or never end, are not read.
#[cfg(unix)]
#[test]
fn special_files_are_not_read() {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let fifo = |path: &Path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let reported = |rules: Rules| assert_ends("not a regular file", move || rules.problems());
    for place in ["merchants/n.toml", "shops/n.toml", "shops/n.json", "dialects/n.toml", "lists/n.txt", "lists/m/n.txt"]
    {
        let places = |make: &dyn Fn(&Path)| {
            let rules = Rules::small().with("lists/m/a.txt", "a").with("dialects/d.toml", "");
            make(&rules.path().join(place));
            reported(rules)
        };
        let refused = [format!("{place}:1:1: is not a regular file")];
        assert_eq!(places(&|path| fifo(path)), refused);
        assert_eq!(places(&|path| drop(UnixListener::bind(path).unwrap())), refused);
        assert_eq!(places(&|path| symlink("/dev/zero", path).unwrap()), refused);
        assert_eq!(places(&|path| symlink("/dev", path).unwrap()), refused);
        let circle = places(&|path| symlink(path.file_name().unwrap(), path).unwrap());
        assert!(circle.len() == 1 && circle[0].starts_with(&format!("{place}:1:1: cannot be read: ")), "{circle:?}");
    }
    let rules = Rules::small();
    for name in [&b"\xff.toml"[..], b"a\xe9.toml", b"\n.toml"] {
        fs::write(rules.path().join("merchants").join(std::ffi::OsStr::from_bytes(name)), "wrong").unwrap();
    }
    assert_eq!(rules.load().merchants.len(), 1, "invalid names are ignored");
}

/// Reading secrets and certificates is limited too.
#[cfg(unix)]
#[test]
fn secrets_that_never_end_are_refused() {
    let rules = Rules::small();
    let path = rules.0.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    fs::write(rules.0.path().join("huge"), vec![b'x'; 1 << 20]).unwrap();
    for secret in ["file:../../pipe", "file:/dev/zero", "file:/dev/stdin", "file:.", "file:..", "file:../../huge"] {
        let rules = Rules::small().with("merchants/m.toml", MERCHANT.replace("\"two\"", &format!("\"{secret}\"")));
        fs::rename(&path, rules.0.path().join("pipe")).unwrap();
        fs::rename(path.with_file_name("huge"), rules.0.path().join("huge")).unwrap();
        let problems = assert_ends(secret, {
            let (from, back) = (rules.0.path().to_owned(), path.parent().unwrap().to_owned());
            move || {
                let problems = rules.problems();
                for name in ["pipe", "huge"] {
                    fs::rename(from.join(name), back.join(name)).unwrap();
                }
                problems
            }
        });
        assert!(problems.len() == 1 && problems[0].starts_with("merchants/m.toml:4:13: "), "{secret}: {problems:?}");
    }
}
