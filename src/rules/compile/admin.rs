//! Compiles `[admin]` of `gateway.toml`.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::spellings::folded_text;
use super::{Context, FileContext};
use crate::domain::{Secret, Secrets, is_host};
use crate::names::quoted;
use crate::rules::raw::{DisplayName, Field, FromToml, List, OrVariable, RawReader, RawSecrets, from_words, raw_table};
use crate::rules::setting::Effect::{Allows, Refuses, TakesAway};
use crate::rules::setting::{OnChange, SettingEntry, restart_value};
use crate::rules::{AdminListen, AdminRules, AdminUser, Role};

/// The fewest characters of a token.
const SHORTEST_TOKEN: usize = 16;

/// The most users. Every request with a token compares it with those of all.
const MOST_USERS: usize = 256;

/// The name of the user of `admin.token`.
const TOKEN_USER: &str = "token";

/// What begins names in the audit trail that are not users of the console.
const COMMANDS: &str = "cli:";

raw_table! {
    /// `[admin]`.
    struct RawAdmin {
        /// Where the console, `/healthz`, `/readyz`, `/metrics` and `/api/...` are served: an address and port, or
        /// `unix:` and the path of a socket, relative to this file, that only the process's own user can connect to.
        ///
        /// Beyond loopback, `token` or a user is required, and `tls` or `plain`. `"env:NAME"` names the environment variable
        /// that holds the address.
        listen: OrVariable<RawListen> = "127.0.0.1:9090"
            => OnChange::always(Refuses).restart(restart_value!(admin.listen)),
        /// The bearer token of the user `token`, an operator: a secret or a list of secrets, `"env:NAME"`,
        /// `"file:PATH"` or the secret itself, each of at least 16 characters.
        token: RawSecrets where { "examples": ["env:PAYBRIDGE_ADMIN_TOKEN"] }
            => OnChange::secret_with(
                (Refuses, "the admin listener now requires a token"),
                (Allows, "the admin listener no longer requires a token"),
            )
            .restart(restart_value!(admin.token, |running, new| running.admin.has_same_token(&new.admin))),
        /// Whether the listener uses TLS, with the certificate of the public listener and without its `client_ca`.
        tls: bool = false => OnChange::always(Refuses).restart(restart_value!(admin.tls)),
        /// Whether plain HTTP is allowed beyond loopback: where a proxy, or the network itself, protects tokens.
        plain: bool = false
            => OnChange::when("true", Allows, Refuses).meaning("whether plain HTTP is allowed beyond loopback")
                .restart(restart_value!(admin.plain)),
        /// Host names that `Host` may contain besides loopback and the listening address, without a port. A request
        /// with a token may contain any, and so may probes.
        hosts: List<String> = [] where { "examples": [["console.example"]] }
            => OnChange::entries(Allows, Refuses).meaning("the host names that the admin listener accepts")
                .in_any_case()
                .restart(restart_value!(admin.hosts)),
        /// `true`: no user can change anything through the admin listener, and `paybridge operations` does not act. Takes
        /// effect at once.
        read_only: bool = false
            => OnChange::when("false", Allows, Refuses).meaning("whether the admin listener refuses every action"),
        /// `true`: a result that an operator sets by hand takes effect when another operator confirms it. It needs two
        /// operators in `[[admin.users]]`. Takes effect at once.
        second_operator: bool = false
            => OnChange::when("false", Allows, Refuses).meaning("whether results by hand need a second operator"),
        /// The people who may sign in to the console. Takes effect at once.
        users: List<RawAdminUser> where { "maxItems": MOST_USERS },
    }
}

raw_table! {
    /// An element of `[[admin.users]]`: a person who may sign in to the console. Changes take effect at once.
    struct RawAdminUser {
        /// The name in logs and in the audit trail: 1 to 100 characters, unique. `token`, `local` and names that begin
        /// with `cli:` have a meaning of their own.
        name: DisplayName = required where { "examples": ["ada"] } => OnChange::name(),
        /// What the user may do.
        ///
        /// - `viewer`: look
        /// - `operator`: also act
        role: Role = required => OnChange::when("operator", Allows, TakesAway).meaning("what the user may do"),
        /// What the user signs in with, also the user's bearer token for the API: a secret or a list of secrets,
        /// `"env:NAME"`, `"file:PATH"` or the secret itself, each of at least 16 characters. Any change of it ends the
        /// user's sessions.
        token: RawSecrets = required where { "examples": ["env:ADA_TOKEN"] },
    }
}

from_words! {
    Role {
        "viewer" => Role::Viewer,
        "operator" => Role::Operator,
    }
}

/// `[admin] listen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) enum RawListen {
    Tcp(SocketAddr),
    /// The path of a socket, as written.
    Unix(Box<str>),
}

impl RawListen {
    /// Returns the address, or the path of the socket relative to the file that names it.
    pub(super) fn resolved(self, context: FileContext<'_>) -> AdminListen {
        match self {
            Self::Tcp(address) => AdminListen::Tcp(address),
            Self::Unix(path) => AdminListen::Unix(context.relative(&path)),
        }
    }
}

impl FromToml for RawListen {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let expected = "an IP address and port such as \"127.0.0.1:9090\", or \"unix:\" and the path of a socket";
        reader.parsed(value, expected, |text| match text.strip_prefix("unix:") {
            Some(path) => (!path.is_empty() && !path.contains('\0')).then(|| Self::Unix(path.into())),
            None => text.parse().ok().map(Self::Tcp),
        })
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": r"^(unix:[\s\S]+|([0-9.]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+)$",
            "examples": ["127.0.0.1:9090", "unix:/run/paybridge/admin.sock"],
        })
    }

    fn entry(text: &str) -> SettingEntry {
        match text.strip_prefix("unix:") {
            Some(path) => SettingEntry::spelled(text, folded_text(path)),
            None => SocketAddr::entry(text),
        }
    }
}

/// The tokens of users so far, each with its user.
type SeenTokens = Vec<(Secret, Box<str>)>;

impl Context<'_> {
    pub(super) fn admin(&mut self, context: FileContext<'_>, raw: &RawAdmin) -> AdminRules {
        // What is not read is as if it was left out.
        let listen = self
            .value(context, "admin.listen", &raw.listen)
            .map_or(AdminListen::Tcp(SocketAddr::from(([127, 0, 0, 1], 9090))), |listen| listen.resolved(context));
        self.check_exposure(context, raw, &listen);
        for host in raw.hosts.0.iter().filter(|host| !is_host(host.get_ref())) {
            self.problem(context, host.span(), "`admin.hosts` must hold host names or IP addresses, without a port");
        }
        let mut seen = SeenTokens::new();
        let token = self.tokens(context, TOKEN_USER, &raw.token, &mut seen);
        let users = self.admin_users(context, &raw.users, &mut seen);
        self.check_operators(context, raw, &users);
        AdminRules {
            token: token.map(|token| self.kept(AdminUser { name: TOKEN_USER.into(), role: Role::Operator, token })),
            tls: *raw.tls,
            plain: *raw.plain,
            hosts: raw.hosts.values().map(|host| host.to_ascii_lowercase().into()).collect(),
            read_only: *raw.read_only,
            second_operator: *raw.second_operator,
            is_local: listen.is_loopback(),
            is_open: listen.is_loopback() && raw.token.is_absent() && users.is_empty(),
            listen,
            users,
        }
    }

    /// Notes that a second operator is required where there are no two.
    fn check_operators(&mut self, context: FileContext<'_>, raw: &RawAdmin, users: &[Arc<AdminUser>]) {
        let operators = users.iter().filter(|user| user.role == Role::Operator).count();
        // The users of a list that is wrong are not known.
        let known = raw.users.get().map_or(0, |users| users.0.len());
        if let Some(at) = raw.second_operator.place().filter(|_| *raw.second_operator)
            && operators < 2
            && users.len() == known
            && !raw.users.is_wrong()
        {
            let message = "`admin.second_operator` needs two `[[admin.users]]` with the role `operator`";
            self.problem(context, at, message);
        }
    }

    /// Notes what a listener that other machines can reach lacks.
    fn check_exposure(&mut self, context: FileContext<'_>, raw: &RawAdmin, listen: &AdminListen) {
        let Some(at) = raw.listen.place().filter(|_| !listen.is_loopback()) else { return };
        if raw.token.is_absent() && raw.users.get().is_none_or(|users| users.0.is_empty()) && !raw.users.is_wrong() {
            let message = "`admin.token` or an `[[admin.users]]` is required when `admin.listen` is not on loopback";
            self.problem(context, at.clone(), message);
        }
        if !*raw.tls && !*raw.plain && !raw.tls.is_wrong && !raw.plain.is_wrong {
            let message = "`admin.listen` is not on loopback, and tokens would cross the network unprotected";
            let advice = "set `admin.tls = true`, or `admin.plain = true` where a proxy or the network protects them";
            self.diagnostics.add_with(context.file, at, message, Some(advice.to_owned()));
        }
    }

    fn admin_users(
        &mut self,
        context: FileContext<'_>,
        raw: &Field<List<RawAdminUser>>,
        seen: &mut SeenTokens,
    ) -> Vec<Arc<AdminUser>> {
        let list = raw.get().map_or(&[][..], |users| &users.0);
        if let Some(first) = list.get(MOST_USERS) {
            self.problem(context, first.span(), format!("`admin.users` must have {MOST_USERS} users at most"));
            return Vec::new();
        }
        let mut users: Vec<Arc<AdminUser>> = Vec::new();
        for raw in list.iter().map(Spanned::get_ref) {
            let name = raw.name.get().map_or("", |name| &name.0);
            if let Some(at) = raw.name.place()
                && let Some(reason) = wrong_name(name, &users)
            {
                self.problem(context, at, format!("`admin.users.name` {reason}"));
            }
            let token = self.tokens(context, name, &raw.token, seen);
            if let (Some(token), Some(role)) = (token, raw.role.get()) {
                users.push(self.kept(AdminUser { name: name.into(), role: *role, token }));
            }
        }
        users
    }

    /// Returns the tokens of a user; notes those that are too short or that another user has. Tokens that are not read
    /// (`check --no-secrets`) are neither.
    fn tokens(
        &mut self,
        context: FileContext<'_>,
        user: &str,
        field: &Field<RawSecrets>,
        seen: &mut SeenTokens,
    ) -> Option<Secrets> {
        let tokens = self.secrets(context, field)?;
        for (raw, token) in field.get()?.0.iter().zip(tokens.verifying()) {
            if String::from_utf8_lossy(token.expose()).chars().count() < SHORTEST_TOKEN {
                let message = format!("a token must have at least {SHORTEST_TOKEN} characters");
                let advice = "make one with `openssl rand -hex 32`".to_owned();
                self.diagnostics.add_with(context.file, raw.span(), message, Some(advice));
            } else if let Some((_, owner)) = seen.iter().find(|(known, _)| known.expose() == token.expose()) {
                let message = format!("the token is taken: it is also a token of the user {}", quoted(owner));
                self.problem(context, raw.span(), message);
            }
        }
        seen.extend(tokens.verifying().map(|token| (token.clone(), user.into())));
        Some(tokens)
    }

    /// Returns the user of the rules in force when it is the same.
    fn kept(&self, user: AdminUser) -> Arc<AdminUser> {
        let bytes = |secrets: &Secrets| secrets.verifying().map(|one| one.expose().to_vec()).collect::<Vec<_>>();
        let is_same = |known: &&Arc<AdminUser>| {
            known.name == user.name && known.role == user.role && bytes(&known.token) == bytes(&user.token)
        };
        let known = self.previous.and_then(|rules| rules.gateway.admin.accounts().find(is_same));
        known.map_or_else(|| Arc::new(user), Arc::clone)
    }
}

/// Returns why a user cannot have a name.
fn wrong_name(name: &str, users: &[Arc<AdminUser>]) -> Option<String> {
    let reason = match name {
        TOKEN_USER => "must not be `token`: that is the user of `admin.token`".to_owned(),
        "local" => "must not be `local`: that is the user of a console without users and token".to_owned(),
        _ if name.starts_with(COMMANDS) => {
            format!("must not begin with `{COMMANDS}`: that names the users of commands in the audit trail")
        }
        _ if users.iter().any(|user| *user.name == *name) => format!("{} is taken by a user above", quoted(name)),
        _ => return None,
    };
    Some(reason)
}
