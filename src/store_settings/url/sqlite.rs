//! The path in a `sqlite:` URL. It is the name of a file and nothing else. Parameters, fragments and encoded characters are
//! refused: taken as part of the name, they would lead to a new, empty store, in which every repeat is made anew.

/// What the message of every error begins with.
const NEEDED: &str = "must be \"sqlite:\" and the path of a file";

/// What begins parameters, a fragment or an encoded character in a URL.
const SPECIAL: [char; 3] = ['?', '#', '%'];

/// What a store needs that was made under such a name before it was refused.
const RENAME: &str = "a store whose file has the longer name is renamed first, with its -wal and -shm files";

/// Checks the path after `sqlite:`.
///
/// # Errors
/// It is empty, or another tool would read it as another file: what to write, as for [`super::StoreUrl::parse`]. What
/// follows a `?` or `#` is not shown, since other tools put passwords there.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    if is_unambiguous(path) {
        return Ok(());
    }
    if path.is_empty() {
        return Err(format!("{NEEDED}, as in \"sqlite:../data/paybridge.db\""));
    }
    if path.contains('\0') {
        return Err(format!("{NEEDED}, without a null character"));
    }
    if path.starts_with(":memory:") {
        return Err(format!("{NEEDED}: a store in memory would lose every order"));
    }
    if let Some(rest) = path.strip_prefix("//") {
        return Err(without_slashes(rest));
    }
    if let Some(rest) = after_file_scheme(path) {
        return Err(format!("{NEEDED}, without file:: {}; {RENAME}", advice(rest)));
    }
    let fault = match path.chars().find(|c| SPECIAL.contains(c)) {
        Some(mark @ ('?' | '#')) => format!("without {mark} and what follows it"),
        _ => "whose characters are not encoded with %".to_owned(),
    };
    Err(format!("{NEEDED}, {fault}: {}; {RENAME}", advice(path)))
}

/// Reports whether all tools read the path as the same file.
fn is_unambiguous(path: &str) -> bool {
    let has_other_meaning = path.starts_with("//") || path.starts_with(":memory:") || after_file_scheme(path).is_some();
    !path.is_empty() && !path.contains(SPECIAL) && !path.contains('\0') && !has_other_meaning
}

fn after_file_scheme(path: &str) -> Option<&str> {
    path.split_at_checked(5).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("file:")).map(|(_, rest)| rest)
}

/// Refuses `sqlite://`. After three slashes, some tools read an absolute path and some a relative one.
fn without_slashes(rest: &str) -> String {
    let relative = meant(rest.trim_start_matches('/'));
    let advice = match &relative {
        Some(path) if rest.starts_with('/') => {
            format!("write \"sqlite:/{path}\" for an absolute path, \"sqlite:{path}\" for a relative one")
        }
        _ => advice(rest),
    };
    format!("{NEEDED}, without //: {advice}")
}

/// Returns what to write for a path of another tool.
fn advice(path: &str) -> String {
    match meant(path) {
        Some(meant) => format!("write \"sqlite:{meant}\""),
        None => "its path has no ?, # or %".to_owned(),
    }
}

/// Returns the path that another tool would read: without parameters and fragment, and decoded. `None`: it cannot be
/// written after `sqlite:`.
fn meant(path: &str) -> Option<String> {
    let path = path.split(['?', '#']).next()?;
    let (first, encoded) = path.split_once('%').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let mut bytes = first.as_bytes().to_vec();
    for part in encoded.into_iter().flat_map(|rest| rest.split('%')) {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.extend(hex::decode(digits).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let decoded = String::from_utf8(bytes).ok()?;
    (is_unambiguous(&decoded) && !decoded.contains(char::is_control)).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_name_of_a_file() {
        for path in ["../data/paybridge.db", "/var/lib/pay bridge/x.db", "x", "übung.db", "a:b&c=d.db", "./file:x"] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn what_other_tools_read_differently_is_refused_with_what_to_write() {
        for (path, instead) in [
            ("../data/paybridge.db?mode=rwc", "write \"sqlite:../data/paybridge.db\""),
            ("/data/paybridge.db?", "write \"sqlite:/data/paybridge.db\""),
            ("../data/paybridge.db#x", "write \"sqlite:../data/paybridge.db\""),
            ("../my%20data/paybridge.db", "write \"sqlite:../my data/paybridge.db\""),
            ("../my%20data/p.db?mode=rwc&key=SECRET#SECRET", "write \"sqlite:../my data/p.db\""),
            ("../a%3Fb.db", "has no ?, # or %"),
            ("../a%2", "has no ?, # or %"),
            ("100%.db", "has no ?, # or %"),
            ("%ff.db", "has no ?, # or %"),
            ("%é.db", "has no ?, # or %"),
            ("?mode=memory&cache=shared", "without ?"),
            ("//data/paybridge.db", "write \"sqlite:data/paybridge.db\""),
            ("//./data/paybridge.db?mode=rwc", "write \"sqlite:./data/paybridge.db\""),
            ("///var/x.db", "write \"sqlite:/var/x.db\" for an absolute path, \"sqlite:var/x.db\" for a relative one"),
            ("////var/x.db", "write \"sqlite:/var/x.db\" for an absolute path"),
            ("//", "without //"),
            ("//:memory:", "without //"),
            ("file:x.db", "write \"sqlite:x.db\""),
            ("FILE:/var/x.db?mode=ro", "write \"sqlite:/var/x.db\""),
            ("file:///var/x.db", "without file:"),
            ("", "as in \"sqlite:../data/paybridge.db\""),
            (":memory:", "in memory"),
            (":memory:?cache=shared", "in memory"),
            ("a\0b", "null"),
        ] {
            let why = check_path(path).unwrap_err();
            assert!(why.starts_with(NEEDED) && why.contains(instead) && !why.contains("SECRET"), "{path}: {why}");
        }
    }
}
