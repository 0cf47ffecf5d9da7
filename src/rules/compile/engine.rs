//! Compiles `[engine]` of `gateway.toml`: the v2 service behind the gateway.

use std::path::Path;

use http::HeaderName;
use toml::Spanned;

use super::spellings::certificates;
use super::{Context, FileContext, origin_of};
use crate::domain::{CallbackSignature, CallbackUrl, Encoding};
use crate::rules::raw::{BoundedDuration, FieldName, List, raw_table};
use crate::rules::setting::Effect::Refuses;
use crate::rules::setting::{OnChange, SettingEntry, restart_value};
use crate::rules::{EngineRules, GatewayRules, RemoteEngine, ServerRules};

/// The path that is appended to the address of a v2 service.
const API: &str = "/api/v2";

raw_table! {
    /// `[engine]`.
    struct RawEngine {
        /// `"embedded"`: the v2 service in this process. Or the `https://` address of a remote one, to which `/api/v2`
        /// is appended. It must not be the gateway's own `public_url`.
        url: String = "embedded" where {
            "pattern": "^(embedded|[Hh][Tt][Tt][Pp][Ss]://[!-~]+)$",
            "examples": ["embedded", "https://v2.example.com"],
        }
            => OnChange::always(Refuses).meaning("a store belongs to one kind of engine")
                .read_by(|text, _| SettingEntry::spelled(text, text.trim_end_matches('/').to_owned()))
                .restart(restart_value!(engine, |running, new| running.engine.to_string() == new.engine.to_string())),
        /// Trusted roots for a remote engine in addition to the system's: PEM files, their paths relative to this file.
        trust: List<String> = [] where { "examples": [["../certs/ca.pem"]] }
            => OnChange::always(Refuses).read_by(certificates)
                .restart(restart_value!(engine_trust, GatewayRules::has_same_engine_trust)),
        /// How long all requests to a remote engine for one request may take together: a span of time, at least `"1s"`.
        timeout: BoundedDuration<1000> = "10s"
            => OnChange::more().restart(restart_value!(engine_timeout)),
        /// How a remote engine signs its callbacks.
        callback_signature: RawCallbackSignature = { header = "X-Signature", payload = "{body}", encoding = "hex" }
            => OnChange::always(Refuses)
                .restart(restart_value!(callback_signature)),
    }
}

raw_table! {
    /// `[engine] callback_signature`.
    struct RawCallbackSignature {
        /// The header with the signature.
        header: FieldName = "X-Signature",
        /// The signed text. It must contain `{body}` or `{body_sha256}`, and may contain the placeholders of a
        /// dialect's payload.
        payload: String = "{body}" where { "pattern": r"\{body(_sha256)?\}" },
        /// The encoding of the signature.
        encoding: Encoding = "hex",
    }
}

impl Context<'_> {
    pub(super) fn engine(
        &mut self,
        context: FileContext<'_>,
        raw: &RawEngine,
        server: &ServerRules,
        generated_ca: Option<&Path>,
    ) -> EngineRules {
        let trust = self.trusted_certificates(context, "engine.trust", &raw.trust.0, generated_ca);
        let Some(url) = raw.url.given().filter(|url| *url.get_ref() != "embedded") else {
            return EngineRules::Embedded;
        };
        let base = self.engine_base(context, &url, server).unwrap_or_default();
        EngineRules::Remote(RemoteEngine { base, trust, timeout: raw.timeout.0 })
    }

    pub(super) fn callback_signature(
        &mut self,
        context: FileContext<'_>,
        raw: &RawCallbackSignature,
    ) -> CallbackSignature {
        self.check_header(context, &raw.header);
        let payload = self.signing_payload(context, "engine.callback_signature.payload", &raw.payload);
        CallbackSignature {
            header: HeaderName::clone(&raw.header),
            payload: payload.unwrap_or_default(),
            encoding: *raw.encoding,
        }
    }

    /// Returns the URL of a remote engine up to and including `/api/v2`.
    fn engine_base(
        &mut self,
        context: FileContext<'_>,
        url: &Spanned<&String>,
        server: &ServerRules,
    ) -> Option<Box<str>> {
        let text = url.get_ref();
        let reason = match CallbackUrl::new(text) {
            Err(invalid) if invalid.reason().starts_with("must be an ") => {
                format!("{}, or \"embedded\"", invalid.reason())
            }
            Err(invalid) => invalid.reason().to_owned(),
            Ok(_) if text.contains(['?', '#']) => "must not have a query or a fragment".to_owned(),
            Ok(_) if origin_of(text).is_some_and(|origin| Some(origin) == origin_of(&server.public_url)) => {
                "is this gateway's own `server.public_url`: it would send every request to itself".to_owned()
            }
            Ok(_) => {
                let base = text.trim_end_matches('/');
                if !base.ends_with(API) {
                    return Some(format!("{base}{API}").into());
                }
                format!("must not end in {API}, which is appended")
            }
        };
        self.problem(context, url.span(), format!("`engine.url` {reason}"));
        None
    }
}
