//! Other programs: their paths, versions and users.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::machine::first_line;
use crate::support::tools;

/// The script that prints how to install missing programs.
const INSTALLER: &str = "benches/compare.sh";

/// Returns the path of a file of this benchmark, such as the configuration of another server.
pub fn own(file: &str) -> PathBuf {
    tools::root().join("benches/compare").join(file)
}

/// Returns the content of such a file.
pub fn written(file: &str) -> String {
    std::fs::read_to_string(own(file)).unwrap()
}

/// Finds a program in any of Debian's directories.
pub fn program(name: &str) -> Option<PathBuf> {
    let elsewhere = [Path::new("/usr/sbin").join(name), Path::new("/usr/local/sbin").join(name)];
    elsewhere.into_iter().find(|path| path.is_file()).or_else(|| tools::in_path(name, INSTALLER))
}

/// Returns a file that a program needs, if it exists.
pub fn file(path: PathBuf, what: &str) -> Option<PathBuf> {
    if path.exists() { Some(path) } else { tools::missing(what, INSTALLER) }
}

/// Returns the directory of PostgreSQL's programs, of the newest version.
pub fn postgres() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let version = |path: &PathBuf| path.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let newest =
        installed.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").is_file()).max_by_key(version);
    newest.or_else(|| Some(tools::in_path("initdb", INSTALLER)?.parent()?.to_owned()))
}

/// Returns the versions that the other programs print.
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

/// Reports whether this process runs as root, which PostgreSQL refuses.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the user and group for servers that refuse to run as root: `postgres` if Debian's package created it, else
/// `nobody`.
pub fn humble_user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map_while(|id| id.parse::<u32>().ok());
        Some((ids.next()?, ids.next()?))
    };
    ids("postgres").or_else(|| ids("nobody")).expect("a user that is not root")
}

/// Reports whether every user may enter this directory and its parents.
pub fn others_may_enter(directory: &Path) -> bool {
    let directory = directory.canonicalize().unwrap();
    let open = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 1 == 1);
    !is_root() || directory.ancestors().all(open)
}

/// Lets every user enter a directory.
pub fn let_others_enter(directory: &Path) {
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
}
