//! Programs of others: where they are, of which version, and as whom they run.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::machine::first_line;
use crate::support::tools;

/// Says how to install what is missing.
const INSTALLER: &str = "benches/compare.sh";

/// A file of this benchmark: how the other servers are configured, read anew in every run.
pub fn own(file: &str) -> PathBuf {
    tools::root().join("benches/compare").join(file)
}

/// What such a file says.
pub fn written(file: &str) -> String {
    std::fs::read_to_string(own(file)).unwrap()
}

/// A program, wherever Debian puts it.
pub fn program(name: &str) -> Option<PathBuf> {
    let elsewhere = [Path::new("/usr/sbin").join(name), Path::new("/usr/local/sbin").join(name)];
    elsewhere.into_iter().find(|path| path.is_file()).or_else(|| tools::in_path(name, INSTALLER))
}

/// A file that has to be there for a program.
pub fn file(path: PathBuf, what: &str) -> Option<PathBuf> {
    if path.exists() { Some(path) } else { tools::missing(what, INSTALLER) }
}

/// The directory of PostgreSQL's programs, the newest there is.
pub fn postgres() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let version = |path: &PathBuf| path.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let newest =
        installed.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").is_file()).max_by_key(version);
    newest.or_else(|| Some(tools::in_path("initdb", INSTALLER)?.parent()?.to_owned()))
}

/// What the other programs say of themselves.
pub fn versions() -> Vec<(&'static str, String)> {
    let of = |name: &str, argument: &str| match find(name) {
        Some(program) => first_line(&program.to_string_lossy(), &[argument]),
        None => "not installed".to_owned(),
    };
    let postgres = || find("postgres").or_else(|| Some(postgres()?.join("postgres")));
    vec![
        ("nginx", of("nginx", "-v").replace("nginx version: ", "")),
        ("haproxy", of("haproxy", "-v")),
        ("node", of("node", "--version")),
        ("postgres", postgres().map_or_else(String::new, |path| first_line(&path.to_string_lossy(), &["--version"]))),
        ("openssl", first_line("openssl", &["version"])),
    ]
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places.map(|place| place.join(name)).find(|program| program.is_file())
}

/// Whether this process is root's, and PostgreSQL would not run as it is.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user and group that a server runs as that does not run as root: `postgres` where Debian's package made it, else
/// `nobody`.
pub fn humble_user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map_while(|id| id.parse::<u32>().ok());
        Some((ids.next()?, ids.next()?))
    };
    ids("postgres").or_else(|| ids("nobody")).expect("a user who is not root")
}

/// Whether anybody may enter this directory and those above it.
pub fn others_may_enter(directory: &Path) -> bool {
    let directory = directory.canonicalize().unwrap();
    let open = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 1 == 1);
    !is_root() || directory.ancestors().all(open)
}

/// Lets anybody enter a directory.
pub fn let_others_enter(directory: &Path) {
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
}
