//! Resolves names to the addresses that are connected to: only those that the egress policy allows, and only a few.
//!
//! The system's resolver blocks a thread as long as name servers are silent, and the store and reloads use the same
//! threads. So only a few names are looked up at once, no merchant's callbacks leave none of these places to others, and
//! each name is looked up once, however many requests need it.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::watch;
use tower_service::Service;

use super::egress::EgressPolicy;
use super::permits::{Permit, Permits, current_merchant};

/// The most names that are looked up at once.
const LOOKUPS: usize = 64;
/// The most addresses of a name that are tried: a name with hundreds cannot make the gateway scan a network.
const ADDRESSES: usize = 8;

/// Why a name has no usable address.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ResolveError {
    /// The lookup failed: the name is unknown, or no name server answers.
    #[error("the lookup failed")]
    Failed(#[source] Arc<io::Error>),
    /// The name has addresses, none of which is allowed.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

/// The error of a host without an allowed address.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the address is not public: {0}")]
pub(super) struct Forbidden(pub String);

/// The lookups of a process for one egress policy.
pub(super) struct Lookups {
    permits: Arc<Permits>,
    running: Mutex<HashMap<LookupKey, Arc<Lookup>>>,
    resolve: fn(&str) -> io::Result<Vec<SocketAddr>>,
}

type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;
/// The merchant that sends, and a name: a request that joined another merchant's lookup would wait for that one's permit.
type LookupKey = (Arc<str>, Name);
/// A running lookup; its result goes to all requests that wait for it.
type Lookup = watch::Sender<Option<Found>>;

impl Default for Lookups {
    fn default() -> Self {
        Self::by(system)
    }
}

impl Lookups {
    fn by(resolve: fn(&str) -> io::Result<Vec<SocketAddr>>) -> Self {
        Self { permits: Arc::new(Permits::new(LOOKUPS)), running: Mutex::default(), resolve }
    }

    async fn find(self: Arc<Self>, name: Name) -> Found {
        let mut lookup = self.join(&name);
        drop(self);
        let found = lookup.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        found.unwrap_or_else(|| Err(Arc::new(io::Error::other("the lookup was interrupted"))))
    }

    /// Joins the merchant's running lookup of this name, or starts one.
    fn join(self: &Arc<Self>, name: &Name) -> watch::Receiver<Option<Found>> {
        let key = (current_merchant(), name.clone());
        let mut running = self.running();
        if let Some(lookup) = running.get(&key) {
            return lookup.subscribe();
        }
        let (lookup, found) = watch::channel(None);
        let lookup = Arc::new(lookup);
        running.insert(key.clone(), Arc::clone(&lookup));
        tokio::spawn(Arc::clone(self).look_up(key, lookup));
        found
    }

    async fn look_up(self: Arc<Self>, key: LookupKey, lookup: Arc<Lookup>) {
        let permit = Arc::clone(&self.permits).acquire(Arc::clone(&key.0)).await;
        if self.is_abandoned(&key, &lookup) {
            return;
        }
        let found = self.resolve_blocking(key.1.clone(), permit).await;
        self.running().remove(&key);
        lookup.send_replace(Some(found));
    }

    /// Resolves a name on a blocking thread. The thread holds the permit: a caller that stops waiting releases neither.
    async fn resolve_blocking(&self, name: Name, permit: Permit) -> Found {
        let resolve = self.resolve;
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            resolve(name.as_str())
        });
        task.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(Arc::new)
    }

    /// Reports whether all callers left while the lookup waited for its permit; if so, removes it, so that no caller
    /// joins it any more.
    fn is_abandoned(&self, key: &LookupKey, lookup: &Lookup) -> bool {
        let mut running = self.running();
        let abandoned = lookup.receiver_count() == 0;
        if abandoned {
            running.remove(key);
        }
        abandoned
    }

    fn running(&self) -> MutexGuard<'_, HashMap<LookupKey, Arc<Lookup>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system(name: &str) -> io::Result<Vec<SocketAddr>> {
    Ok((name, 0).to_socket_addrs()?.collect())
}

/// Resolves names for a connector, which tries the addresses in the returned order.
#[derive(Clone)]
pub(super) struct Resolver {
    egress: EgressPolicy,
    lookups: Arc<Lookups>,
}

impl Resolver {
    /// Creates a resolver that shares these lookups, and their limit, with others.
    pub(super) const fn new(egress: EgressPolicy, lookups: Arc<Lookups>) -> Self {
        Self { egress, lookups }
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ResolveError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ResolveError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ResolveError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (egress, lookups) = (self.egress, Arc::clone(&self.lookups));
        Box::pin(async move {
            let found = lookups.find(name.clone()).await.map_err(ResolveError::Failed)?;
            Ok(allowed(egress, &name, found)?.into_iter())
        })
    }
}

/// Returns those of a name's addresses that may be connected to.
fn allowed(egress: EgressPolicy, name: &Name, mut found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Forbidden> {
    let had_some = !found.is_empty();
    found.retain(|address| egress.allows(address.ip()));
    if had_some && found.is_empty() {
        return Err(Forbidden(name.to_string()));
    }
    found.truncate(ADDRESSES);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::testing::until;
    use crate::outbound::on_behalf_of;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()
    }

    fn fake(host: &str) -> io::Result<Vec<SocketAddr>> {
        match host {
            "both.example" => Ok(addresses(&["10.0.0.1", "8.8.8.8", "::1", "2a00::1", "::ffff:127.0.0.1"])),
            "private.example" => Ok(addresses(&["10.0.0.1", "fd00::1"])),
            "many.example" => Ok((0..200).map(|last| SocketAddr::from(([8, 8, 8, last], 0))).collect()),
            _ => Err(io::Error::other("unknown name")),
        }
    }

    async fn resolved(egress: EgressPolicy, host: &str) -> Result<Vec<SocketAddr>, ResolveError> {
        let mut resolver = Resolver::new(egress, Arc::new(Lookups::by(fake)));
        resolver.call(name(host)).await.map(Iterator::collect)
    }

    #[tokio::test]
    async fn only_allowed_addresses_are_returned() {
        let both = resolved(EgressPolicy::PublicOnly, "both.example").await.unwrap();
        assert_eq!(both, addresses(&["8.8.8.8", "2a00::1"]));
        assert_eq!(resolved(EgressPolicy::Anywhere, "both.example").await.unwrap().len(), 5);
        let error = resolved(EgressPolicy::PublicOnly, "private.example").await.unwrap_err();
        assert!(matches!(error, ResolveError::Forbidden(_)));
        assert_eq!(error.to_string(), "the address is not public: private.example");
        let error = resolved(EgressPolicy::PublicOnly, "else.example").await.unwrap_err();
        assert!(matches!(error, ResolveError::Failed(_)), "{error}");
    }

    #[tokio::test]
    async fn the_addresses_of_a_name_are_limited() {
        for egress in [EgressPolicy::Anywhere, EgressPolicy::PublicOnly] {
            assert_eq!(resolved(egress, "many.example").await.unwrap().len(), ADDRESSES);
        }
    }

    #[tokio::test]
    async fn a_silent_name_server_holds_few_threads() {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        static ANSWERS: OnceLock<()> = OnceLock::new();
        fn silent(_: &str) -> io::Result<Vec<SocketAddr>> {
            STARTED.fetch_add(1, Ordering::SeqCst);
            ANSWERS.wait();
            fake("both.example")
        }
        const OF_A_MERCHANT: usize = LOOKUPS / 2;
        let lookups = Arc::new(Lookups::by(silent));
        let find = |host: String| tokio::spawn(on_behalf_of("acme", Arc::clone(&lookups).find(name(&host))));
        let waiting: Vec<_> = (0..LOOKUPS + 9).map(|number| find(format!("{number}.example"))).collect();
        let again: Vec<_> = (0..20).map(|_| find("0.example".to_owned())).collect();
        let started = || STARTED.load(Ordering::SeqCst);
        until("lookups wait", || started() == OF_A_MERCHANT && lookups.running().len() == LOOKUPS + 9).await;
        // Other merchants' names, and those of the rules, find permits.
        let beta = tokio::spawn(on_behalf_of("beta", Arc::clone(&lookups).find(name("beta.example"))));
        let of_rules = tokio::spawn(Arc::clone(&lookups).find(name("rules.example")));
        until("others are looked up", || started() == OF_A_MERCHANT + 2).await;
        // A caller that leaves frees no thread, and its name is not looked up if the lookup has not begun.
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        for gone in waiting {
            assert!(gone.await.unwrap_err().is_cancelled());
        }
        assert_eq!(lookups.permits.in_use(), OF_A_MERCHANT + 2);
        ANSWERS.set(()).unwrap();
        for found in again.into_iter().chain([beta, of_rules]) {
            assert!(found.await.unwrap().is_ok());
        }
        until("all end", || lookups.running().is_empty() && lookups.permits.in_use() == 0).await;
        assert_eq!(started(), OF_A_MERCHANT + 2);
    }
}
