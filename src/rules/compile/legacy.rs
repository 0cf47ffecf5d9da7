//! Compiles `[legacy]` of `gateway.toml`: the old v1 service.

use std::path::Path;

use super::{Context, FileContext, origin_of};
use crate::domain::service_url;
use crate::rules::raw::{BoundedDuration, List, Size, raw_table};
use crate::rules::{LegacyRules, ServerRules};

raw_table! {
    /// `[legacy]`.
    struct RawLegacy {
        /// The address of the old v1 service: `https://host[:port]`, no path. It must not be the gateway's own
        /// `public_url`.
        url: String = required where {
            "pattern": "^[Hh][Tt][Tt][Pp][Ss]://[^/?#]+/?$",
            "examples": ["https://v1.example.com"],
        },
        /// Trusted roots for the old service in addition to the system's: PEM files, their paths relative to this file.
        trust: List<String> = [] where { "examples": [["../certs/ca.pem"]] },
        /// How long a forwarded request may take, from the name lookup to the last byte of the reply: a span of time.
        timeout: BoundedDuration = "10s",
        /// The largest body of a reply: a size such as `"1MiB"`, or a number of bytes, at least 1 KiB. A larger one is
        /// 502.
        reply_limit: Size<1024> = "1MiB",
        /// Prefixes of further v1 paths that are forwarded, of every merchant. None may be the beginning of a path that
        /// a dialect names.
        paths: List<String> = [] where { "examples": [["/api/v1/refunds"]] },
    }
}

impl Context<'_> {
    pub(super) fn legacy(
        &mut self,
        here: FileContext<'_>,
        raw: &RawLegacy,
        server: &ServerRules,
        generated_ca: Option<&Path>,
    ) -> LegacyRules {
        let trust = self.trusted_certificates(here, "legacy.trust", &raw.trust.0, generated_ca);
        let url = raw.url.given().and_then(|url| match service_url(url.get_ref()) {
            Ok(own) if origin_of(&own) == origin_of(&server.public_url) => {
                let message =
                    "`legacy.url` is this gateway's own `server.public_url`: it would send every request to itself";
                self.problem(here, url.span(), message);
                None
            }
            Ok(url) => Some(url),
            Err(invalid) => {
                self.problem(here, url.span(), format!("`legacy.url` {invalid}"));
                None
            }
        });
        for path in raw.paths.0.iter().filter(|path| !is_path_prefix(path.get_ref())) {
            let message = "`legacy.paths` must hold paths such as \"/api/v1/refunds\": visible ASCII that begins with `/`, \
                           without `//`, dot segments, `\\`, `%`, `?` and `#`";
            self.problem(here, path.span(), message);
        }
        let paths = raw.paths.0.iter().filter(|path| is_path_prefix(path.get_ref()));
        self.legacy_paths = paths.map(|path| (here.file, path.clone())).collect();
        LegacyRules {
            url: url.unwrap_or_default(),
            trust,
            timeout: raw.timeout.0,
            reply_limit: raw.reply_limit.0,
            paths: raw.paths.values().map(|path| path.as_str().into()).collect(),
        }
    }
}

/// Reports whether a text can be the beginning of a forwarded path, spelled in the only way that there is.
fn is_path_prefix(text: &str) -> bool {
    let is_segment = |segment: &str| !matches!(segment, "." | "..");
    text.starts_with('/')
        && text.len() > 1
        && !text.contains("//")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\%?#;".contains(&byte))
        && text.split('/').all(is_segment)
}
