//! `paybridge certs`: creates a local CA and a server certificate.

use std::io::Write;

use super::args::Certs;
use super::outcome::{CliError, ExitOutcome};
use crate::certs::{self, DEFAULT_NAMES, Files};
use crate::domain::UnixMillis;

/// Creates the files and prints their paths.
///
/// # Errors
/// The files cannot be created, or exist and are not to be replaced.
pub fn run(args: &Certs, now: UnixMillis, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let defaults = || DEFAULT_NAMES.map(str::to_owned).to_vec();
    let names = if args.names.is_empty() { defaults() } else { args.names.clone() };
    let created = certs::make(&Files::in_directory(&args.dir), &names, now, args.force).map_err(CliError::failed)?;
    if created.new_ca {
        writeln!(out, "{}\n{}", created.files.ca.display(), created.files.ca_key.display())?;
    }
    writeln!(out, "{}\n{}", created.files.certificate.display(), created.files.key.display())?;
    let ca = if created.new_ca { "a new CA" } else { "the existing CA" };
    writeln!(err, "signed by {ca} for {}; clients trust {}", names.join(", "), created.files.ca.display())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_to_stdout_and_files_are_replaced_only_with_force() {
        let directory = tempfile::tempdir().unwrap();
        let mut args = Certs { dir: directory.path().into(), names: Vec::new(), force: false };
        let run = |args: &Certs| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let outcome = run(args, UnixMillis(1_772_409_600_000), &mut out, &mut err);
            (outcome.is_ok(), String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
        };
        let (done, out, err) = run(&args);
        assert!(done && err.contains("a new CA for localhost, 127.0.0.1, ::1;"), "{err}");
        let names: Vec<_> = out.lines().map(|line| line.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["ca.pem", "ca.key", "server.pem", "server.key"]);
        assert!(!run(&args).0);
        args.force = true;
        let (done, out, _) = run(&args);
        assert!(done && out.lines().count() == 2, "the CA stays: {out}");
    }
}
