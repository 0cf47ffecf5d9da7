//! `[admin]`: the admin listener, and the people who may use it.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{Secret, Secrets};

/// Where the admin listener accepts connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminListen {
    /// A TCP address and port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl AdminListen {
    /// Reports whether only this machine can connect.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Reports whether users other than its owner may connect to a Unix socket. Who connects writes to it.
    fn others_may_connect(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Unix(path) => path.metadata().is_ok_and(|found| found.permissions().mode() & 0o022 != 0),
        }
    }
}

impl fmt::Display for AdminListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The rights of a user of the console, the greater the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Acts.
    Operator,
}

impl Role {
    /// Returns the name of the role, as rule files write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
        }
    }
}

/// A user who may sign in. A reload keeps the same `Arc` of a user whose role and token did not change: so a session knows
/// whether they ever did.
#[derive(Debug)]
pub struct AdminUser {
    /// The name, unique among the users.
    pub name: Box<str>,
    /// What the user may do.
    pub role: Role,
    /// The token, or several during a rotation.
    pub token: Secrets,
}

/// `[admin]`.
#[derive(Debug, Clone)]
pub struct AdminRules {
    /// Where the listener accepts connections.
    pub listen: AdminListen,
    /// The user `token`, an operator; `None`: `[admin] token` is absent.
    pub token: Option<Arc<AdminUser>>,
    /// Whether the listener uses TLS, with the public listener's certificate.
    pub tls: bool,
    /// Whether plain HTTP is allowed beyond loopback.
    pub plain: bool,
    /// The names that `Host` may contain besides loopback and the listening address, in lower case.
    pub hosts: Vec<Box<str>>,
    /// Whether every action is refused.
    pub read_only: bool,
    /// Whether a result that an operator sets needs another operator's confirmation.
    pub second_operator: bool,
    /// `[[admin.users]]`.
    pub users: Vec<Arc<AdminUser>>,
    /// Whether only this machine can connect: to `listen`, and to the sockets that the service manager passed.
    pub is_local: bool,
    /// Whether no user signs in: every request is made by the user `local`, an operator.
    pub is_open: bool,
}

impl AdminRules {
    /// Returns every user who may sign in.
    pub fn accounts(&self) -> impl Iterator<Item = &Arc<AdminUser>> {
        self.users.iter().chain(&self.token)
    }

    /// Reports whether the user `token` has the same tokens.
    pub(super) fn has_same_token(&self, other: &Self) -> bool {
        let tokens = |rules: &'_ Self| {
            let secrets = rules.token.iter().flat_map(|user| user.token.verifying());
            secrets.map(Secret::expose).map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        tokens(self) == tokens(other)
    }

    /// Notes that the listener accepts connections at a socket of the service manager, too.
    ///
    /// # Errors
    /// What the rules lack for a socket that other machines or users can reach, in one line.
    pub fn accept_at(&mut self, socket: &AdminListen) -> Result<(), String> {
        let reach = match (socket.is_loopback(), socket.others_may_connect()) {
            (true, false) => return Ok(()),
            (true, true) => "is open to other users of this machine",
            (false, _) => "is not on loopback",
        };
        (self.is_local, self.is_open) = (false, false);
        let lacks = if self.accounts().next().is_none() {
            "`admin.token` or an `[[admin.users]]` is required"
        } else if !socket.is_loopback() && !self.tls && !self.plain {
            "`admin.tls = true`, or `admin.plain = true`, is required"
        } else {
            return Ok(());
        };
        Err(format!("the service manager's socket `admin` at {socket} {reach}: {lacks}"))
    }

    /// Reports whether requests need no user: only this machine can connect, and there are no users.
    pub(super) fn needs_no_user(&self) -> bool {
        self.is_local && self.accounts().next().is_none()
    }
}
