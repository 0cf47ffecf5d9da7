//! The composition root: rules, store, engine, clock, listeners, signals, drain.

mod descriptors;
mod life;
mod live_tls;
mod notify;
mod operations;
mod reloads;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::callback;
use crate::certs;
use crate::clock::{Clock, Random, SystemClock, SystemRandomness};
use crate::engine::{Engine, PageSecret, Provider};
use crate::http::ConnectionInfo;
use crate::http::admin::Admin;
use crate::http::gateway::{Gateway, GatewayDeps};
use crate::http::listener::{self, Handle, Inbound, Listener, ListenerSettings, available_workers};
use crate::outbound::Outbound;
use crate::provider::{CurrentRules, ProviderDeps, ProviderWorker, Providers};
use crate::remote::{self, Recovery, Remote};
use crate::rules::{
    EngineRules, LiveRules, LoadOptions, Loader, PageRules, Problems, ReloadOutcome, RuleSet, Secret, StoreUrl,
};
use crate::store::{Holds, OpenError, Opened, Store, open_store, secret_file};
use crate::telemetry::{AccessLog, Metrics};
use crate::v2::{Embedded, V2Service};
use life::Life;
use live_tls::LiveTls;
use notify::ServiceManager;
use operations::Operations;
use reloads::ReloadCause;

/// How long the work in hand beside requests may take at the end, callbacks aside.
const WORKER_GRACE: Duration = Duration::from_secs(5);

/// What a process is started with.
pub struct Start<'a> {
    /// The rules directory.
    pub rules: &'a Path,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// Where a line for each request goes.
    pub access: Arc<dyn AccessLog>,
}

/// How a process that served has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every request in flight was answered.
    Drained,
    /// `shutdown_grace` was over while requests were in flight. What was acknowledged is on disk all the same.
    Cut,
    /// A second signal came before the drain was over.
    AtOnce,
}

/// Why a process does not start: one clear line each, but for the rules, which have all their problems told.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The rule files are wrong.
    #[error("the rules are wrong")]
    Rules(Arc<Problems>),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl StartError {
    fn other(error: impl std::fmt::Display) -> Self {
        Self::Other(error.to_string())
    }
}

/// Runs the gateway until a signal ends it. `announce` is called once, when every listener accepts.
///
/// # Errors
/// What keeps the process from starting.
pub fn run(start: Start<'_>, announce: impl FnOnce(&RuleSet)) -> Result<Ended, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::other)?;
    let ended = runtime.block_on(async {
        let signals = Signals::new().map_err(StartError::other)?;
        let process = Process::start(start).await?;
        let rules = process.rules.current();
        let (public, admin) = (process.listener.local_addr(), process.admin);
        tracing::info!(%public, %admin, engine = %rules.gateway.engine, rules_version = %rules.version, "ready");
        announce(&rules);
        Ok(process.serve(signals, ServiceManager::of_this_process()).await)
    });
    // A reload or a probe that still runs must not hold up the exit.
    runtime.shutdown_background();
    ended
}

/// The parts of a running process.
struct Process {
    rules: Arc<LiveRules>,
    store: Arc<dyn Store>,
    operations: Arc<Operations>,
    outbound: Arc<Outbound>,
    listener: Handle,
    admin: SocketAddr,
    tasks: JoinSet<()>,
    workers: JoinSet<()>,
    /// Dropped to stop them.
    stop_workers: Vec<oneshot::Sender<()>>,
}

/// What a process does beside serving.
enum Work {
    /// The embedded engine's operations wait for their providers.
    Provider(ProviderWorker),
    /// A remote engine is asked what became of the creates that the last process left.
    Recovery(Recovery),
}

/// The v2 service of a process.
struct RunningService {
    service: Arc<dyn V2Service>,
    /// The embedded engine, when it is the service.
    engine: Option<Arc<Engine>>,
    /// The remote engine, when it is the service.
    remote: Option<Remote>,
    work: Work,
}

/// What works beside requests is made of.
struct Shared {
    store: Arc<dyn Store>,
    rules: CurrentRules,
    outbound: Arc<Outbound>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
}

impl Shared {
    /// Builds the v2 service that the rules name, and what it does beside requests.
    async fn service(&self, engine: Arc<Engine>, providers: Arc<Providers>) -> Result<RunningService, StartError> {
        let (rules, outbound) = (Arc::clone(&self.rules), Arc::clone(&self.outbound));
        let (clock, random) = (Arc::clone(&self.clock), Arc::clone(&self.random));
        match (self.rules)().gateway.engine.clone() {
            EngineRules::Embedded => {
                let parts = ProviderDeps { engine: Arc::clone(&engine), rules, outbound, providers, clock, random };
                Ok(RunningService {
                    service: Arc::new(Embedded::new(Arc::clone(&engine))),
                    engine: Some(engine),
                    remote: None,
                    work: Work::Provider(ProviderWorker::new(parts)),
                })
            }
            EngineRules::Remote(engine) => {
                let (store, metrics) = (Arc::clone(&self.store), Arc::clone(&self.metrics));
                let remote = Remote::new(remote::RemoteDeps { engine, store, outbound, clock, metrics });
                // Before the first request: what it leaves open is not the last process's.
                let recovery = remote.recovery(rules, random).await.map_err(StartError::other)?;
                Ok(RunningService {
                    service: Arc::new(remote.clone()),
                    engine: None,
                    remote: Some(remote),
                    work: Work::Recovery(recovery),
                })
            }
        }
    }

    /// Builds the worker that delivers callbacks.
    fn callbacks(&self, remote: Option<Remote>) -> callback::CallbackWorker {
        callback::CallbackWorker::new(callback::CallbackDeps {
            store: Arc::clone(&self.store),
            remote,
            rules: Arc::clone(&self.rules),
            outbound: Arc::clone(&self.outbound),
            clock: Arc::clone(&self.clock),
            random: Arc::clone(&self.random),
            metrics: Arc::clone(&self.metrics),
        })
    }
}

impl Process {
    async fn start(start: Start<'_>) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let random: Arc<dyn Random> = Arc::new(SystemRandomness::default());
        let metrics = start.metrics;
        metrics.started(clock.now());
        let mut loader = Loader::new(start.rules, LoadOptions::default());
        let first = loader.load(clock.now(), None).map_err(|problems| StartError::Rules(Arc::new(problems)))?;
        // Both ports are taken before anything is written, so that a second start beside a running one changes nothing.
        let socket = Listener::bind(first.gateway.server.listen).map_err(StartError::other)?;
        let admin = Admin::bind(first.gateway.admin_listen).await.map_err(StartError::other)?;
        let made_certificates = make_certificates(&first, &*clock)?;
        let workers = available_workers();
        let room = descriptors::room_for_connections(descriptors::raise(), workers);
        let tls = Arc::new(LiveTls::new(&first.gateway, room).map_err(StartError::other)?);
        let (store, page_secret) = open(&first, &random, &metrics)?;
        let (token, hosts) = (first.gateway.admin_token.clone(), first.gateway.admin_hosts.clone());
        let clients = first.gateway.clients.clone();
        let rules = go_live(loader, first, made_certificates, &clock)?;
        let in_force = rules.current();
        metrics.reload(true, &in_force.version);
        metrics.rules_loaded(in_force.loaded_at);

        let providers = Arc::new(Providers::default());
        let engine = Arc::new(Engine::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&random),
            Arc::clone(&providers) as Arc<dyn Provider>,
            page_secret,
            Arc::clone(&metrics),
        ));
        let snapshot = Arc::clone(&rules);
        let current: CurrentRules = Arc::new(move || snapshot.current());
        let shared = Shared {
            store: Arc::clone(&store),
            rules: Arc::clone(&current),
            outbound: Arc::default(),
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            metrics: Arc::clone(&metrics),
        };
        let RunningService { service, engine, remote, work } = shared.service(engine, providers).await?;
        let callbacks = shared.callbacks(remote);
        let outbound = shared.outbound;
        let gateway = Gateway::new(GatewayDeps {
            rules: Arc::new(move || current()),
            store: Arc::clone(&store),
            engine,
            service,
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            metrics: Arc::clone(&metrics),
            access_log: start.access,
        });
        let (metrics_of_listener, rest_after) = (Arc::clone(&metrics), listener::REST_AFTER);
        let settings =
            ListenerSettings { rules: tls.settings(), clients, metrics: metrics_of_listener, workers, rest_after };
        let listener = socket.serve(Public(gateway), settings).map_err(StartError::other)?;
        let operations = Arc::new(Operations::new(operations::OperationsDeps {
            rules: Arc::clone(&rules),
            tls,
            clock,
            random,
            outbound: Arc::clone(&outbound),
            store: Arc::clone(&store),
            metrics,
            slots: listener.slots(),
        }));
        operations.watch();
        let mut tasks = JoinSet::new();
        let admin_address = admin.address();
        tasks.spawn(admin.serve(Arc::new(Arc::clone(&operations)), token, hosts));
        tasks.spawn(Arc::clone(&operations).watch_expiry());
        let (workers, stop_workers) = set_to_work(callbacks, work);
        Ok(Self { rules, store, operations, outbound, listener, admin: admin_address, tasks, workers, stop_workers })
    }

    /// Serves until a signal, then drains (contract section 1).
    async fn serve(mut self, mut signals: Signals, manager: ServiceManager) -> Ended {
        let manager = Arc::new(manager);
        manager.ready(&self.operations.status()).await;
        self.keep_alive(Arc::clone(&manager));
        while let Received::Reload = signals.next().await {
            manager.reloading().await;
            self.operations.reload(ReloadCause::Signal).await;
            manager.ready(&self.operations.status()).await;
        }
        tracing::info!("draining: a second signal ends the process at once");
        self.operations.start_draining();
        self.listener.send_clients_away();
        manager.stopping(&self.operations.status()).await;
        tokio::select! {
            ended = self.drain() => ended,
            () = signals.next_ending() => {
                tracing::warn!("a second signal: ending at once");
                Ended::AtOnce
            }
        }
    }

    /// Tells the service manager that the process lives, to the end of the drain.
    fn keep_alive(&mut self, manager: Arc<ServiceManager>) {
        let life = Life {
            listener: self.listener.pulse(),
            operations: Arc::clone(&self.operations),
            store_is_inside: matches!(self.rules.current().gateway.store.url, StoreUrl::Sqlite(_)),
        };
        self.tasks.spawn(async move { manager.keep_alive(|| life.proof()).await });
    }

    async fn drain(mut self) -> Ended {
        let rules = self.rules.current();
        let (server, callbacks) = (&rules.gateway.server, &rules.gateway.callbacks);
        tokio::time::sleep(server.drain_delay).await;
        // No job is claimed from here on. What the workers have claimed is done now, not at the end of its lease; what is
        // not recovered yet is found by the next start.
        self.stop_workers.clear();
        // Their connections live on the listener's threads, which wait for all that does.
        self.outbound.retire();
        let worked = async {
            let all = async { while self.workers.join_next().await.is_some() {} };
            // A try that is cut off is made again, though its receiver may have had it.
            let grace = WORKER_GRACE.max(callbacks.timeout + Duration::from_secs(1)).min(server.shutdown_grace);
            if tokio::time::timeout(grace, all).await.is_err() {
                tracing::warn!("work in hand beside requests is left for the next start");
            }
            self.workers.shutdown().await;
        };
        let (drained, ()) = tokio::join!(self.listener.drain(server.shutdown_grace), worked);
        self.tasks.shutdown().await;
        if let Err(error) = self.store.close().await {
            tracing::warn!(%error, "the store could not be closed in order; nothing that was acknowledged is lost");
        }
        if drained { Ended::Drained } else { Ended::Cut }
    }
}

/// Makes a local authority and a server pair where the rules ask for it and both files are missing. Whether it did.
fn make_certificates(rules: &RuleSet, clock: &dyn Clock) -> Result<bool, StartError> {
    let names = certs::names_of(&rules.gateway.server);
    let made = certs::ensure(&rules.gateway.tls, &names, clock.now()).map_err(StartError::other)?;
    if let Some(made) = &made {
        tracing::info!(certificate = %made.files.certificate.display(), "made a server certificate");
    }
    Ok(made.is_some())
}

/// Starts what the process does beside serving, and what stops it when it is dropped.
fn set_to_work(callbacks: callback::CallbackWorker, work: Work) -> (JoinSet<()>, Vec<oneshot::Sender<()>>) {
    let (stop_work, stop) = oneshot::channel();
    let (stop_callbacks, callbacks_stop) = oneshot::channel();
    let mut workers = JoinSet::new();
    workers.spawn(callbacks.run(callbacks_stop));
    match work {
        Work::Provider(worker) => workers.spawn(worker.run(stop)),
        Work::Recovery(recovery) => workers.spawn(recovery.run(stop)),
    };
    (workers, vec![stop_work, stop_callbacks])
}

/// Puts the first rules in force, when everything is made that they name and that was missing.
fn go_live(
    mut loader: Loader,
    first: RuleSet,
    made_certificates: bool,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<LiveRules>, StartError> {
    let keys = &first.gateway.store.keys;
    if let Some(made) = &keys.create_at
        && keys.keys.is_empty()
    {
        loader.made(made);
    }
    let rules = LiveRules::new(loader, first, Arc::clone(clock));
    // The authority that was missing until now may be one that the rules trust.
    if made_certificates && let ReloadOutcome::Refused(problems) = rules.reload() {
        return Err(StartError::Rules(problems));
    }
    Ok(Arc::new(rules))
}

/// Opens the store, and the secret that signs links where the rules name none.
fn open(
    rules: &RuleSet,
    random: &Arc<dyn Random>,
    metrics: &Arc<Metrics>,
) -> Result<(Arc<dyn Store>, PageSecret), StartError> {
    let gateway = &rules.gateway;
    // On one of several nodes a new secret would break the links that the others hand out. So none is made, and without one
    // no store is made either.
    let is_alone = matches!(gateway.store.url, StoreUrl::Sqlite(_));
    let shared = if is_alone { None } else { Some(page_secret(&gateway.pages, is_alone, false, random)?) };
    let Opened { store, holds } =
        open_store(&gateway.store, Arc::clone(random), Arc::clone(metrics)).map_err(StartError::other)?;
    check_owner(&gateway.engine, holds)?;
    // Beside operations a new secret would break the links that were handed out.
    let secret = shared.map_or_else(|| page_secret(&gateway.pages, is_alone, !holds.any(), random), Ok)?;
    Ok((store, PageSecret::new(secret)))
}

/// The secret that signs links: of the rules, or else of its default file, which is made where that is allowed.
fn page_secret(
    pages: &PageRules,
    is_alone: bool,
    may_create: bool,
    random: &Arc<dyn Random>,
) -> Result<Secret, StartError> {
    let default = &pages.default_secret;
    Ok(match &pages.secret {
        // There is one to fall back to when the rules name none any more.
        Some(secrets) => secret_file(default, is_alone, &**random).map_or_else(
            |error| {
                tracing::warn!(%error, "pages.secret must not be taken out of the rules while this file is missing");
                secrets.signing().clone()
            },
            |secret| Secret::new(&secret),
        ),
        None => default_page_secret(default, may_create, &**random)?,
    })
}

/// A store belongs to the kind of engine that it was filled before: the other one would know nothing of what it holds.
fn check_owner(engine: &EngineRules, holds: Holds) -> Result<(), StartError> {
    let found = match engine {
        EngineRules::Embedded if holds.journal => {
            "the store holds what passed through to a remote engine, and engine.url is \"embedded\""
        }
        EngineRules::Remote(_) if holds.operations => {
            "the store holds operations of the embedded engine, and engine.url names a remote one"
        }
        EngineRules::Embedded | EngineRules::Remote(_) => return Ok(()),
    };
    Err(StartError::Other(format!(
        "{found}: name the engine that this store belongs to, or another store in store.url"
    )))
}

fn default_page_secret(path: &Path, may_create: bool, random: &dyn Random) -> Result<Secret, StartError> {
    match secret_file(path, may_create, random) {
        Ok(secret) => Ok(Secret::new(&secret)),
        Err(OpenError::KeyMissing { path }) => Err(StartError::Other(format!(
            "{}: the default file of pages.secret is missing, and the store holds operations or is shared by several nodes: \
             restore it from a backup, put the same 32 bytes in base64 there on every node (openssl rand -base64 32), or \
             set pages.secret",
            path.display()
        ))),
        Err(error) => Err(StartError::other(error)),
    }
}

/// The public listener's service.
struct Public(Gateway);

impl listener::Service for Public {
    fn call(
        &self,
        request: Request<Inbound>,
        arrival: ConnectionInfo,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        self.0.handle(request, arrival)
    }
}

/// The signals that a process obeys.
struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
    /// Taken so that a file over its size limit fails like a full disk, and does not end the process.
    _file_size: Signal,
}

/// What a signal asks for.
enum Received {
    Reload,
    End,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.hangup.recv() => Received::Reload,
            _ = self.interrupt.recv() => Received::End,
            _ = self.terminate.recv() => Received::End,
        }
    }

    async fn next_ending(&mut self) {
        while let Received::Reload = self.next().await {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::AccessLine;

    struct Unheard;

    impl AccessLog for Unheard {
        fn line(&self, _: &AccessLine<'_>) {}
    }

    #[tokio::test]
    async fn a_first_start_leaves_nothing_to_be_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let rules = directory.path().join("rules");
        std::fs::create_dir(&rules).unwrap();
        let gateway = "[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[tls]\ngenerate = true\n\
                       [callbacks]\ntrust = [\"../certs/ca.pem\"]\n";
        std::fs::write(rules.join("gateway.toml"), gateway).unwrap();
        for start in ["with everything made", "with everything there"] {
            let metrics = Arc::<Metrics>::default();
            let process = Start { rules: &rules, metrics: Arc::clone(&metrics), access: Arc::new(Unheard) };
            let process = Process::start(process).await.unwrap();
            let trusted = &process.rules.current().gateway.callbacks.trust;
            assert_eq!(trusted.len(), 1, "{start}: an authority that was just made is trusted");
            assert!(!process.operations.stale(), "{start}: what the watcher's first look would find");
            let seen = metrics.render();
            assert!(seen.contains("paybridge_reloads_total{result=\"accepted\"} 1\n"), "{start}: {seen}");
            let ReloadOutcome::Loaded { elsewhere_changed, .. } = process.rules.reload() else { panic!("{start}") };
            assert!(!elsewhere_changed, "{start}: what it made itself is no other secret");
            assert_eq!(process.drain().await, Ended::Drained);
        }
        assert!(
            directory.path().join("secrets/store.key").exists() && directory.path().join("certs/server.pem").exists()
        );
    }
}
