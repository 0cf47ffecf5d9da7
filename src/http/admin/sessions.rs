//! The signed-in users, and their sessions in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::clock::Random;
use crate::rules::{AdminRules, AdminUser, Role};

/// How long a session lives without a request, and at most.
pub(super) const IDLE: Duration = Duration::from_mins(30);
pub(super) const MAX_SESSION_AGE: Duration = Duration::from_hours(12);

/// The most sessions. One more ends the one that was not used for longest.
pub(super) const MOST_SESSIONS: usize = 256;

/// The most sessions of one user, so that none signs the others out.
pub(super) const MOST_OF_A_USER: usize = 16;

/// The user who makes a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SignedIn {
    /// The name: of `[[admin.users]]`, `token`, or `local` where no user signs in.
    pub name: Box<str>,
    pub role: Role,
    /// Whether there is a session to sign out of.
    pub has_session: bool,
}

/// The hash of a session's id, so that the memory of the process holds no id.
type IdHash = [u8; 32];

/// The sessions of the process.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<IdHash, Session>>);

struct Session {
    user: Arc<AdminUser>,
    started: Instant,
    used: Instant,
}

impl Session {
    fn is_alive(&self, now: Instant, admin: &AdminRules) -> bool {
        // A user whose role or token ever changed is another value.
        now < self.used + IDLE
            && now < self.started + MAX_SESSION_AGE
            && admin.accounts().any(|user| Arc::ptr_eq(user, &self.user))
    }
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, HashMap<IdHash, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a session and returns its id: 256 random bits in hexadecimal.
    pub(super) fn start(&self, user: Arc<AdminUser>, now: Instant, random: &dyn Random) -> String {
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        let id = hex::encode(bytes);
        let mut open = self.open();
        let is_own = |session: &Session| session.user.name == user.name;
        let is_full = open.values().filter(|session| is_own(session)).count() >= MOST_OF_A_USER;
        let candidates = open.iter().filter(|(_, session)| !is_full || is_own(session));
        if (is_full || open.len() >= MOST_SESSIONS)
            && let Some(oldest) = candidates.min_by_key(|(_, session)| session.used).map(|(id, _)| *id)
        {
            open.remove(&oldest);
        }
        open.insert(hashed(&id), Session { user, started: now, used: now });
        id
    }

    /// Returns the user of a session that lives. `is_use`: the request is a person's, and starts the idle time anew.
    pub(super) fn user(&self, id: &str, now: Instant, admin: &AdminRules, is_use: bool) -> Option<Arc<AdminUser>> {
        let (id, mut open) = (hashed(id), self.open());
        let session = open.get_mut(&id)?;
        if !session.is_alive(now, admin) {
            open.remove(&id);
            return None;
        }
        if is_use {
            session.used = now;
        }
        Some(Arc::clone(&session.user))
    }

    /// Ends a session.
    pub(super) fn end(&self, id: &str) {
        self.open().remove(&hashed(id));
    }
}

fn hashed(id: &str) -> IdHash {
    Sha256::digest(id).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock, SystemRandomness};
    use crate::domain::{Secret, Secrets};
    use crate::rules::AdminListen;

    const SECOND: Duration = Duration::from_secs(1);

    fn user() -> Arc<AdminUser> {
        named("ada")
    }

    fn named(name: &str) -> Arc<AdminUser> {
        let token = Secrets::new(vec![Secret::new(b"ada-token-of-16-or-more")]).unwrap();
        Arc::new(AdminUser { name: name.into(), role: Role::Viewer, token })
    }

    fn admin(users: Vec<Arc<AdminUser>>) -> AdminRules {
        AdminRules {
            listen: AdminListen::Unix("admin.sock".into()),
            token: None,
            tls: false,
            plain: false,
            hosts: Vec::new(),
            read_only: false,
            second_operator: false,
            users,
            is_local: true,
            is_open: false,
        }
    }

    #[test]
    fn a_session_ends_by_idleness_by_age_and_with_its_user() {
        let (sessions, random, ada) = (Sessions::default(), SystemRandomness::default(), user());
        let rules = admin(vec![Arc::clone(&ada)]);
        let (start, almost_idle) = (SystemClock.monotonic(), IDLE.saturating_sub(SECOND));
        let id = sessions.start(Arc::clone(&ada), start, &random);
        assert_eq!(id.len(), 64);
        assert!(sessions.user("", start, &rules, true).is_none());
        let mut now = start;
        while now < start + MAX_SESSION_AGE {
            assert!(sessions.user(&id, now, &rules, true).is_some(), "{now:?}");
            now += almost_idle;
        }
        assert!(sessions.user(&id, start + MAX_SESSION_AGE, &rules, true).is_none(), "as old as can be");

        let id = sessions.start(Arc::clone(&ada), start, &random);
        assert!(sessions.user(&id, start + almost_idle, &rules, false).is_some());
        assert!(sessions.user(&id, start + IDLE, &rules, true).is_none(), "a script's refresh is no use");
        assert!(sessions.user(&id, start, &rules, true).is_none(), "it is gone for good");

        for changed in [admin(vec![user()]), admin(Vec::new())] {
            let id = sessions.start(Arc::clone(&ada), start, &random);
            assert!(sessions.user(&id, start, &changed, true).is_none());
        }
        let id = sessions.start(ada, start, &random);
        sessions.end(&id);
        assert!(sessions.user(&id, start, &rules, true).is_none());
    }

    #[test]
    fn one_session_too_many_ends_the_one_unused_for_longest() {
        let (sessions, random) = (Sessions::default(), SystemRandomness::default());
        let users: Vec<_> = (0..=MOST_SESSIONS / MOST_OF_A_USER).map(|number| named(&format!("u{number}"))).collect();
        let rules = admin(users.clone());
        let began = SystemClock.monotonic();
        let now = |second: usize| began + SECOND * u32::try_from(second).unwrap();
        let start = |at: usize| sessions.start(Arc::clone(&users[at / MOST_OF_A_USER]), now(at), &random);
        let ids: Vec<_> = (0..MOST_SESSIONS).map(start).collect();
        let lives = |id: &str| sessions.user(id, now(400), &rules, true).is_some();
        assert!(lives(&ids[0]) && lives(&ids[16]));
        // One more of a user with as many as possible ends that user's.
        sessions.start(Arc::clone(&users[1]), now(401), &random);
        assert!(lives(&ids[0]) && lives(&ids[16]) && !lives(&ids[17]) && lives(&ids[32]));
        // One more of another ends the one that was not used for longest.
        sessions.start(Arc::clone(users.last().unwrap()), now(402), &random);
        assert_eq!(sessions.open().len(), MOST_SESSIONS);
        assert!(lives(&ids[0]) && !lives(&ids[1]));
    }
}
