//! Reads where the admin listener of a running gateway is. Rules that are wrong elsewhere do not matter: the gateway serves
//! with the last good ones.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

use super::secrets::from_environment;
use super::{FileContext, RawGateway};
use crate::rules::AdminListen;
use crate::rules::files::{self, GATEWAY};
use crate::rules::problems::{Diagnostics, Problems};
use crate::rules::raw::{self, OrVariable};

/// Where the admin listener is, and how it proves that it is the gateway's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminProbe {
    /// Where it accepts connections.
    pub listen: AdminListen,
    /// The certificate chain, PEM, that it serves TLS with; `None`: plain HTTP.
    pub certificate: Option<PathBuf>,
}

/// Reads the keys of `[admin]` and `[tls]` that a probe of the admin listener needs. Reads one file and may block.
///
/// # Errors
/// The file cannot be read, is no TOML, or one of these keys is wrong.
pub fn admin_probe(directory: &Path) -> Result<AdminProbe, Problems> {
    let mut diagnostics = Diagnostics::default();
    let probe = read(&directory.join(GATEWAY), &mut diagnostics);
    diagnostics.into_problems()?;
    Ok(probe.expect("what cannot be read is a problem"))
}

fn read(path: &Path, diagnostics: &mut Diagnostics) -> Option<AdminProbe> {
    let text = files::text(path).map_err(|note| note.add_to(diagnostics)).ok()?;
    let file = diagnostics.file(path, text.as_str());
    let mut document = raw::parse::<RawGateway>(&text, file, diagnostics)?;
    retain(&mut document, |section, value| match section {
        "admin" => retain(value, |key, _| matches!(key, "listen" | "tls")),
        "tls" => retain(value, |key, _| key == "certificate"),
        _ => false,
    });
    let raw = raw::read::<RawGateway>(&document, file, diagnostics)?;
    let context = FileContext { file, path };
    let listen = match &*raw.admin.listen {
        OrVariable::Written(listen) => Ok(listen.clone()),
        OrVariable::Variable(variable) => from_environment(variable),
    };
    let wrong = |why| {
        let at = raw.admin.listen.place().unwrap_or_default();
        diagnostics.add(file, at, format!("`admin.listen`: the environment variable {why}"));
    };
    let listen = listen.map_err(wrong).ok()?.resolved(context);
    let certificate = raw.admin.tls.then(|| raw.tls.rules(context).certificate);
    Some(AdminProbe { listen, certificate })
}

/// Keeps some keys of a table. Returns that its own key is kept: a value that is no table is reported later.
fn retain(value: &mut Spanned<DeValue<'_>>, keep: impl Fn(&str, &mut Spanned<DeValue<'_>>) -> bool) -> bool {
    if let DeValue::Table(table) = value.get_mut() {
        let keys = std::mem::take(table).into_iter();
        *table = keys.filter_map(|(key, mut value)| keep(key.get_ref(), &mut value).then_some((key, value))).collect();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(gateway: &str) -> Result<(String, Option<PathBuf>), String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("rules")).unwrap();
        std::fs::write(directory.path().join("rules/gateway.toml"), gateway).unwrap();
        let found = admin_probe(&directory.path().join("rules")).map_err(|problems| problems.to_string())?;
        let certificate = found.certificate.map(|path| path.strip_prefix(directory.path()).unwrap().to_owned());
        Ok((found.listen.to_string().replace(directory.path().to_str().unwrap(), ""), certificate))
    }

    #[test]
    fn only_the_listener_is_read() {
        let default = ("127.0.0.1:9090".to_owned(), None);
        assert_eq!(probe(""), Ok(default.clone()));
        let elsewhere =
            "[store]\nurl = 7\nkyes = []\n[admin]\ntoken = \"env:NOT_SET\"\nuser = 1\n[tls]\nkey = 1\n[x]\n";
        assert_eq!(probe(elsewhere), Ok(default));
        assert_eq!(
            probe("[admin]\nlisten = \"[::]:9\"\ntls = true\n[tls]\ncertificate = \"../a.pem\""),
            Ok(("[::]:9".to_owned(), Some("a.pem".into())))
        );
        assert_eq!(
            probe("[admin]\ntls = true\nlisten = \"unix:../admin.sock\""),
            Ok(("unix:/admin.sock".to_owned(), Some("certs/server.pem".into())))
        );
    }

    #[test]
    fn wrong_places_are_problems() {
        for (gateway, reason) in [
            ("[admin", "not valid TOML"),
            ("admin = 1", "`admin` must be a table"),
            ("[admin]\nlisten = 9090", "`admin.listen` must be"),
            ("[admin]\nlisten = \"env:PAYBRIDGE_NOT_SET\"", "`PAYBRIDGE_NOT_SET` is not set"),
            ("[admin]\ntls = 1", "`admin.tls` must be"),
            ("[tls]\ncertificate = 1", "`tls.certificate` must be"),
        ] {
            let error = probe(gateway).unwrap_err();
            assert!(error.contains(reason), "{gateway}: {error}");
        }
        assert!(admin_probe(Path::new("/nowhere")).unwrap_err().to_string().contains("gateway.toml"));
    }
}
