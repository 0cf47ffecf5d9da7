//! Compiles `[legacy]` of `gateway.toml`: the old v1 service.

use std::path::Path;

use http::HeaderName;

use super::dialect::RESERVED_HEADERS;
use super::spellings::certificates;
use super::{Context, FileContext, origin_of};
use crate::domain::service_url;
use crate::rules::raw::{BoundedDuration, FieldName, List, Size, raw_table};
use crate::rules::setting::Effect::{Allows, Neither, Refuses, TakesAway};
use crate::rules::setting::OnChange;
use crate::rules::{LegacyRules, ServerRules};

raw_table! {
    /// `[legacy]`.
    struct RawLegacy {
        /// The address of the old v1 service: `https://host[:port]`, no path. It must not be the gateway's own
        /// `public_url`.
        url: String = required where {
            "pattern": "^[Hh][Tt][Tt][Pp][Ss]://[^/?#]+/?$",
            "examples": ["https://v1.example.com"],
        } => OnChange::always(Refuses).meaning("requests are forwarded there"),
        /// Trusted roots for the old service in addition to the system's: PEM files, their paths relative to this file.
        trust: List<String> = [] where { "examples": [["../certs/ca.pem"]] }
            => OnChange::always(Refuses).read_by(certificates),
        /// How long a forwarded request may take, from the name lookup to the last byte of the reply: a span of time.
        timeout: BoundedDuration = "10s" => OnChange::more(),
        /// The largest body of a reply: a size such as `"1MiB"`, or a number of bytes, at least 1 KiB. A larger one is
        /// 502.
        reply_limit: Size<1024> = "1MiB" => OnChange::more(),
        /// Further v1 paths that are forwarded, of every merchant, with all paths below them: `"/api/v1/refunds"` is one
        /// with `/api/v1/refunds/7`, not with `/api/v1/refunds-admin`. No path of a dialect may be below one of them.
        paths: List<String> = [] where { "examples": [["/api/v1/refunds"]] }
            => OnChange::entries(Allows, TakesAway).meaning("further v1 paths that are forwarded"),
        /// Headers that are set to the caller's address in forwarded requests, for an old service that reads it from one
        /// of them. `X-Forwarded-For` is always set; all other headers that name a client's address are left out.
        client_address_headers: List<FieldName> = [] where { "examples": [["X-Real-IP"]] }
            => OnChange::entries(Neither, Refuses)
                .meaning("headers that name the caller's address to the old v1 service"),
    }
}

impl Context<'_> {
    pub(super) fn legacy(
        &mut self,
        context: FileContext<'_>,
        raw: &RawLegacy,
        server: &ServerRules,
        generated_ca: Option<&Path>,
    ) -> LegacyRules {
        let trust = self.trusted_certificates(context, "legacy.trust", &raw.trust.0, generated_ca);
        let url = raw.url.given().and_then(|url| match service_url(url.get_ref()) {
            Ok(own) if origin_of(&own) == origin_of(&server.public_url) => {
                let message =
                    "`legacy.url` is this gateway's own `server.public_url`: it would send every request to itself";
                self.problem(context, url.span(), message);
                None
            }
            Ok(url) => Some(url),
            Err(invalid) => {
                self.problem(context, url.span(), format!("`legacy.url` {invalid}"));
                None
            }
        });
        for path in raw.paths.0.iter().filter(|path| !is_path_prefix(path.get_ref())) {
            let message = "`legacy.paths` must hold paths such as \"/api/v1/refunds\": visible ASCII that begins with `/`, \
                           without `//`, dot segments, `\\`, `%`, `?` and `#`";
            self.problem(context, path.span(), message);
        }
        let paths = raw.paths.0.iter().filter(|path| is_path_prefix(path.get_ref()));
        for name in raw.client_address_headers.0.iter().filter(|name| has_other_meaning(name.get_ref())) {
            let message = "`legacy.client_address_headers` cannot name a header that has another meaning";
            self.problem(context, name.span(), message);
        }
        self.legacy_paths = paths.map(|path| (context.file, path.clone())).collect();
        LegacyRules {
            url: url.unwrap_or_default(),
            trust,
            timeout: raw.timeout.0,
            reply_limit: raw.reply_limit.0,
            paths: raw.paths.values().map(|path| path.as_str().into()).collect(),
            client_address_headers: raw.client_address_headers.values().map(|name| HeaderName::clone(name)).collect(),
        }
    }
}

/// Reports whether a header cannot name a client's address, also as servers read it that take `_` for `-`.
fn has_other_meaning(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    let of_addresses = ["x-forwarded-for", "x-real-ip"].contains(&name.as_str());
    let of_callers =
        ["authorization", "proxy-authorization", "x-original-url", "x-rewrite-url"].contains(&name.as_str());
    of_callers || (!of_addresses && RESERVED_HEADERS.split(' ').any(|reserved| reserved == name))
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
