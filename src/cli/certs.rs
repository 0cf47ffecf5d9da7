//! `paybridge certs`: creates a local CA and a server certificate.

use std::io::Write;

use super::args::Certs;
use super::{CliError, ExitOutcome};
use crate::certs::{self, DEFAULT_NAMES, Files};
use crate::domain::UnixMillis;

/// Creates the files and prints their paths.
///
/// # Errors
/// The files cannot be created, or exist and are not to be replaced.
pub fn run(asked: &Certs, now: UnixMillis, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let defaults = || DEFAULT_NAMES.map(str::to_owned).to_vec();
    let names = if asked.names.is_empty() { defaults() } else { asked.names.clone() };
    let made = certs::make(&Files::in_directory(&asked.dir), &names, now, asked.force).map_err(CliError::failed)?;
    if made.new_ca {
        writeln!(out, "{}\n{}", made.files.ca.display(), made.files.ca_key.display())?;
    }
    writeln!(out, "{}\n{}", made.files.certificate.display(), made.files.key.display())?;
    let ca = if made.new_ca { "a new CA" } else { "the existing CA" };
    writeln!(err, "signed by {ca} for {}; clients trust {}", names.join(", "), made.files.ca.display())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_to_stdout_and_nothing_is_replaced_unasked() {
        let directory = tempfile::tempdir().unwrap();
        let mut asked = Certs { dir: directory.path().into(), names: Vec::new(), force: false };
        let run = |asked: &Certs| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let outcome = run(asked, UnixMillis(1_772_409_600_000), &mut out, &mut err);
            (outcome.is_ok(), String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
        };
        let (done, out, err) = run(&asked);
        assert!(done && err.contains("a new CA for localhost, 127.0.0.1, ::1;"), "{err}");
        let names: Vec<_> = out.lines().map(|line| line.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["ca.pem", "ca.key", "server.pem", "server.key"]);
        assert!(!run(&asked).0);
        asked.force = true;
        let (done, out, _) = run(&asked);
        assert!(done && out.lines().count() == 2, "the CA stays: {out}");
    }
}
