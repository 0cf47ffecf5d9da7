//! The composition root: builds the process from its rules, runs it until a signal ends it, and drains it.

mod descriptors;
mod incomplete_ids;
mod life;
mod live_tls;
mod notify;
mod process_control;
mod reloads;

use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::auth::signatures::PageSecret;
use crate::callback::CallbackHandler;
use crate::certs;
use crate::clock::{Clock, Random, SystemClock, SystemRandomness};
use crate::deps::Deps;
use crate::domain::Secret;
use crate::engine::Engine;
use crate::http::admin::Admin;
use crate::http::gateway::{Gateway, GatewayServices};
use crate::http::listener::{self, Handle, Listener, ListenerSettings, PassedSockets, available_workers};
use crate::provider::{ProviderHandler, Providers};
use crate::queue_worker::QueueWorker;
use crate::remote::{Recovery, Remote};
use crate::rules::{
    AdminListen, EngineRules, LiveRules, LoadOptions, Loader, PageRules, Problems, ReloadOutcome, RuleSet,
};
use crate::service::V2Service;
use crate::shadow::ShadowChecks;
use crate::store::{Holds, OpenError, Opened, Store, open_store, secret_file};
use crate::store_settings::StoreUrl;
use crate::telemetry::{AccessLog, Metrics, RefusedRequests};
use life::Life;
use live_tls::LiveTls;
use notify::ServiceManager;
use process_control::ProcessControl;
use reloads::ReloadCause;

/// How long background work may take to finish during a drain; callbacks may take longer (see `Process::drain`).
const WORKER_GRACE: Duration = Duration::from_secs(5);

/// The inputs of a process.
pub struct Start<'a> {
    /// The rules directory.
    pub rules: &'a Path,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// Receives one line for each request.
    pub access: Arc<dyn AccessLog>,
    /// The sockets that the service manager passed.
    pub sockets: PassedSockets,
}

/// How a process that served has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every request in flight was replied to.
    Drained,
    /// `shutdown_grace` ran out while requests were in flight. Everything that was acknowledged is on disk all the
    /// same.
    Cut,
    /// A second signal arrived before the drain was over.
    AtOnce,
    /// A newer release has locked this one out of the store; states so.
    LockedOut(String),
}

/// Why a process does not start: one line, or all problems of the rules.
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

/// Runs the gateway until a signal ends it. Calls `on_ready` once, when every listener accepts.
///
/// # Errors
/// Returns why the process cannot start.
pub fn run(start: Start<'_>, on_ready: impl FnOnce(&RuleSet)) -> Result<Ended, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::other)?;
    let ended = runtime.block_on(async {
        let signals = Signals::new().map_err(StartError::other)?;
        let process = Process::start(start).await?;
        let rules = process.rules.current();
        let (public, admin) = (shown(process.listener.addresses()), shown(&process.admin));
        tracing::info!(%public, %admin, engine = %rules.gateway.engine, rules_version = %rules.version, "ready");
        on_ready(&rules);
        Ok(process.serve(signals, ServiceManager::of_this_process()).await)
    });
    // A reload or a probe that still runs must not delay the exit.
    runtime.shutdown_background();
    ended
}

/// The parts of a running process.
struct Process {
    deps: Deps,
    rules: Arc<LiveRules>,
    control: Arc<ProcessControl>,
    checks: Arc<ShadowChecks>,
    listener: Handle,
    admin: Vec<AdminListen>,
    tasks: JoinSet<()>,
    workers: JoinSet<()>,
    /// Dropped to stop the workers.
    stop_workers: Vec<oneshot::Sender<()>>,
}

/// Background work that depends on the engine.
enum Work {
    /// Sends the embedded engine's operations to their providers.
    Provider(QueueWorker<ProviderHandler>),
    /// Finds out from the remote engine what became of the creates that the last process left open.
    Recovery(Recovery),
}

/// The v2 service of a process.
struct RunningService {
    service: V2Service,
    /// The embedded engine, when it is the service.
    engine: Option<Arc<Engine>>,
    /// The remote engine, when it is the service.
    remote: Option<Remote>,
    work: Work,
}

/// Builds the v2 service that the rules name, and the background work that belongs to it.
async fn v2_service(deps: &Deps, page_secret: PageSecret) -> Result<RunningService, StartError> {
    match deps.rules.load().gateway.engine.clone() {
        EngineRules::Embedded => {
            let providers = Arc::new(Providers::default());
            let engine = Arc::new(Engine::new(deps.clone(), providers.clone(), page_secret));
            let handler = ProviderHandler::new(deps.clone(), Arc::clone(&engine), providers);
            Ok(RunningService {
                service: V2Service::Embedded(Arc::clone(&engine)),
                work: Work::Provider(QueueWorker::new(handler)),
                engine: Some(engine),
                remote: None,
            })
        }
        EngineRules::Remote(engine) => {
            let remote = Remote::new(engine, deps.clone());
            // Before the first request, so that creates of this process are not taken for the last one's.
            let recovery = remote.recovery().await.map_err(StartError::other)?;
            Ok(RunningService {
                service: V2Service::Remote(remote.clone()),
                work: Work::Recovery(recovery),
                engine: None,
                remote: Some(remote),
            })
        }
    }
}

impl Process {
    async fn start(start: Start<'_>) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let random: Arc<dyn Random> = Arc::new(SystemRandomness::default());
        let metrics = start.metrics;
        metrics.started(clock.now());
        let mut loader = Loader::new(start.rules, LoadOptions::default());
        let mut first = loader.load(clock.now(), None).map_err(|problems| StartError::Rules(Arc::new(problems)))?;
        // Both ports are bound before anything is written, so that a second start beside a running process changes
        // nothing.
        let (socket, admin) = listeners(start.sockets, &mut first).await?;
        let created_certificates = create_certificates(&first, &*clock)?;
        let workers = available_workers();
        let room = descriptors::room_for_connections(descriptors::raise(), workers);
        let tls = Arc::new(LiveTls::new(&first.gateway, room).map_err(StartError::other)?);
        let (store, page_secret) = open(&first, &clock, &random, &metrics)?;
        let admin_tls = first.gateway.admin.tls.then(|| tls.admin());
        let clients = first.gateway.clients.clone();
        let rules = go_live(loader, first, created_certificates, &clock)?;
        let current_rules = rules.current();
        metrics.reload(true, &current_rules.version);
        metrics.rules_loaded(current_rules.loaded_at);

        let deps = Deps { store, rules: rules.shared(), outbound: Arc::default(), clock, random, metrics };
        let RunningService { service, engine, remote, work } = v2_service(&deps, page_secret).await?;
        let callbacks = QueueWorker::new(CallbackHandler::new(deps.clone(), remote));
        let checks = Arc::new(ShadowChecks::start(deps.clone()).map_err(StartError::other)?);
        let checked = Some(Arc::clone(&checks));
        let refused = Arc::<RefusedRequests>::default();
        let services = GatewayServices {
            engine,
            checks: checked,
            service,
            access_log: start.access,
            refused: Arc::clone(&refused),
        };
        let gateway = Gateway::new(deps.clone(), services);
        let settings = ListenerSettings {
            rules: tls.settings(),
            clients,
            metrics: Arc::clone(&deps.metrics),
            clock: Arc::clone(&deps.clock),
            workers,
            trim_idle_after: listener::TRIM_IDLE_AFTER,
        };
        let listener = socket.serve(gateway, settings).map_err(StartError::other)?;
        let control = Arc::new(ProcessControl::new(deps.clone(), Arc::clone(&rules), tls, listener.slots(), refused));
        control.check_ids();
        let mut tasks = JoinSet::new();
        let places = admin.places().to_vec();
        tasks.spawn(admin.serve(Arc::new(Arc::clone(&control)), admin_tls, Arc::clone(&deps.random)));
        tasks.spawn(Arc::clone(&control).reload_on_change());
        tasks.spawn(Arc::clone(&control).check_each_minute());
        tasks.spawn(Arc::clone(&control).record_history());
        let (workers, stop_workers) = start_workers(callbacks, work);
        Ok(Self { deps, rules, control, checks, listener, admin: places, tasks, workers, stop_workers })
    }

    /// Serves until a signal, or until this release is locked out of the store, then drains (contract sections 1 and 15).
    async fn serve(mut self, mut signals: Signals, manager: ServiceManager) -> Ended {
        let manager = Arc::new(manager);
        let control = Arc::clone(&self.control);
        manager.ready(|| control.status()).await;
        self.keep_alive(Arc::clone(&manager));
        let mut locked_out = pin!(control.locked_out());
        let locked_out = loop {
            tokio::select! {
                received = signals.next() => match received {
                    Received::Reload => {
                        manager.reloading(|| control.status()).await;
                        self.control.reload(ReloadCause::Signal).await;
                        manager.ready(|| control.status()).await;
                    }
                    Received::End => break None,
                },
                reason = &mut locked_out => break Some(reason),
            }
        };
        if let Some(reason) = &locked_out {
            tracing::error!(reason, "this gateway leaves the store");
            self.leave_store(reason);
        }
        tracing::info!("draining; a second signal ends the process at once");
        self.control.start_draining();
        self.listener.disconnect_clients();
        manager.stopping(|| control.status()).await;
        let ended = tokio::select! {
            ended = self.drain() => ended,
            () = signals.next_ending() => {
                tracing::warn!("received a second signal; exiting at once");
                Ended::AtOnce
            }
        };
        locked_out.map_or(ended, Ended::LockedOut)
    }

    /// Refuses all further requests that need the store.
    fn leave_store(&mut self, reason: &str) {
        self.control.set_locked_out(reason);
        let store = Arc::clone(&self.deps.store);
        self.tasks.spawn(async move { drop(store.close().await) });
    }

    /// Starts sending signs of life to the service manager, until the end of the drain.
    fn keep_alive(&mut self, manager: Arc<ServiceManager>) {
        let life = Life {
            listener: self.listener.watchdog(),
            control: Arc::clone(&self.control),
            store_is_inside: matches!(self.rules.current().gateway.store.url, StoreUrl::Sqlite(_)),
        };
        self.tasks.spawn(async move { manager.keep_alive(|| life.proof(), || life.control.status()).await });
    }

    async fn drain(mut self) -> Ended {
        let rules = self.rules.current();
        let (server, callbacks) = (&rules.gateway.server, &rules.gateway.callbacks);
        tokio::time::sleep(server.drain_delay).await;
        // No job is claimed from here on. Jobs that are claimed are finished now, not at the end of their lease; open
        // creates of a remote engine are left to the next start.
        self.stop_workers.clear();
        // Outgoing connections live on the listener's threads, which end only when all their tasks have ended.
        self.deps.outbound.retire();
        let finish_workers = async {
            let all = async { while self.workers.join_next().await.is_some() {} };
            // An attempt that is cut off is repeated by the next start, though its receiver may have had it.
            let grace = WORKER_GRACE.max(callbacks.timeout + Duration::from_secs(1)).min(server.shutdown_grace);
            if tokio::time::timeout(grace, all).await.is_err() {
                tracing::warn!("background work was not finished in time; the next start continues it");
            }
            self.workers.shutdown().await;
        };
        let (drained, ()) = tokio::join!(self.listener.drain(server.shutdown_grace), finish_workers);
        self.tasks.shutdown().await;
        self.checks.close().await;
        if let Err(error) = self.deps.store.close().await {
            tracing::warn!(%error, "the store could not be closed cleanly; nothing that was acknowledged is lost");
        }
        if drained { Ended::Drained } else { Ended::Cut }
    }
}

/// Returns the public and the admin listener: of the sockets that the service manager passed, or bound as the rules say.
async fn listeners(passed: PassedSockets, rules: &mut RuleSet) -> Result<(Listener, Admin), StartError> {
    let PassedSockets { public, admin } = passed;
    let public = if public.is_empty() { Listener::bind(rules.gateway.server.listen) } else { Listener::of(public) };
    let public = public.map_err(StartError::other)?;
    if admin.is_empty() {
        let admin = Admin::bind(&rules.gateway.admin.listen).await.map_err(StartError::other)?;
        return Ok((public, admin));
    }
    let admin = Admin::of_passed(admin).map_err(StartError::other)?;
    for place in admin.places() {
        rules.gateway.admin.accept_at(place).map_err(StartError::Other)?;
    }
    Ok((public, admin))
}

fn shown(places: &[impl ToString]) -> String {
    places.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Creates a local authority and a server certificate if the rules request it and both files are missing. Returns
/// whether it did.
fn create_certificates(rules: &RuleSet, clock: &dyn Clock) -> Result<bool, StartError> {
    let names = certs::names_of(&rules.gateway.server);
    let made = certs::ensure(&rules.gateway.tls, &names, clock.now()).map_err(StartError::other)?;
    if let Some(made) = &made {
        tracing::info!(certificate = %made.files.certificate.display(), "created a server certificate");
    }
    Ok(made.is_some())
}

/// Starts the background work. It stops when the returned senders are dropped.
fn start_workers(callbacks: QueueWorker<CallbackHandler>, work: Work) -> (JoinSet<()>, Vec<oneshot::Sender<()>>) {
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

/// Puts the first rules in force, after the files that they name and that were missing were created.
fn go_live(
    mut loader: Loader,
    first: RuleSet,
    created_certificates: bool,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<LiveRules>, StartError> {
    let keys = &first.gateway.store.keys;
    if let Some(made) = &keys.create_at
        && keys.keys.is_empty()
    {
        loader.made(made);
    }
    let rules = LiveRules::new(loader, first, Arc::clone(clock));
    // The rules may trust the authority that was created just now.
    if created_certificates && let ReloadOutcome::Refused(problems) = rules.reload() {
        return Err(StartError::Rules(problems));
    }
    Ok(Arc::new(rules))
}

/// Opens the store, and loads the secret that signs links.
fn open(
    rules: &RuleSet,
    clock: &Arc<dyn Clock>,
    random: &Arc<dyn Random>,
    metrics: &Arc<Metrics>,
) -> Result<(Arc<dyn Store>, PageSecret), StartError> {
    let gateway = &rules.gateway;
    // A new secret on one of several nodes would break the links that the other nodes give out. So the secret must
    // exist, and its file is read first: without it no store is created either.
    let is_single_node = matches!(gateway.store.url, StoreUrl::Sqlite(_));
    let shared = if is_single_node { None } else { Some(page_secret(&gateway.pages, is_single_node, false, random)?) };
    let opened = open_store(&gateway.store, Arc::clone(clock), Arc::clone(random), Arc::clone(metrics));
    let Opened { store, holds } = opened.map_err(StartError::other)?;
    check_owner(&gateway.engine, holds)?;
    // A new secret in a store with operations would break the links that were given out.
    let secret = shared.map_or_else(|| page_secret(&gateway.pages, is_single_node, !holds.any(), random), Ok)?;
    Ok((store, PageSecret::new(secret)))
}

/// Returns the secret that signs links: from the rules, or from its default file, which is created if `may_create` is
/// set.
fn page_secret(
    pages: &PageRules,
    is_single_node: bool,
    may_create: bool,
    random: &Arc<dyn Random>,
) -> Result<Secret, StartError> {
    let default = &pages.default_secret;
    Ok(match &pages.secret {
        // The default file is created even so: the rules may drop their secret later, and then the file is needed.
        Some(secrets) => secret_file(default, is_single_node, &**random).map_or_else(
            |error| {
                tracing::warn!(%error, "keep pages.secret in the rules while this file is missing");
                secrets.signing().clone()
            },
            |secret| Secret::new(&secret),
        ),
        None => default_page_secret(default, may_create, &**random)?,
    })
}

/// Checks that the store was filled by the kind of engine that the rules name: the other kind cannot continue its
/// operations.
fn check_owner(engine: &EngineRules, holds: Holds) -> Result<(), StartError> {
    let found = match engine {
        EngineRules::Embedded if holds.journal => {
            "the store holds operations of a remote engine, and engine.url is \"embedded\""
        }
        EngineRules::Remote(_) if holds.operations => {
            "the store holds operations of the embedded engine, and engine.url names a remote one"
        }
        EngineRules::Embedded | EngineRules::Remote(_) => return Ok(()),
    };
    Err(StartError::Other(format!(
        "{found}: set engine.url to the engine that this store belongs to, or store.url to another store"
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

/// The signals that the process handles.
struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
    /// Handled so that a write beyond the file size limit fails like a full disk instead of ending the process.
    _file_size: Signal,
}

/// What a signal requests.
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

    struct NoAccessLog;

    impl AccessLog for NoAccessLog {
        fn line(&self, _: &AccessLine<'_>) {}
    }

    #[tokio::test]
    async fn a_first_start_leaves_nothing_to_reload() {
        let directory = tempfile::tempdir().unwrap();
        let rules = directory.path().join("rules");
        std::fs::create_dir(&rules).unwrap();
        let gateway = "[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[tls]\ngenerate = true\n\
                       [callbacks]\ntrust = [\"../certs/ca.pem\"]\n";
        std::fs::write(rules.join("gateway.toml"), gateway).unwrap();
        for start in ["all files are created", "all files exist"] {
            let metrics = Arc::<Metrics>::default();
            let process = Start {
                rules: &rules,
                metrics: Arc::clone(&metrics),
                access: Arc::new(NoAccessLog),
                sockets: PassedSockets::default(),
            };
            let process = Process::start(process).await.unwrap();
            let trusted = &process.rules.current().gateway.callbacks.trust;
            assert_eq!(trusted.len(), 1, "{start}: an authority that was just created is trusted");
            assert!(process.rules.changes().is_none(), "{start}: the watcher's first look would find a change");
            let seen = metrics.render();
            assert!(seen.contains("paybridge_reloads_total{result=\"accepted\"} 1\n"), "{start}: {seen}");
            let ReloadOutcome::Loaded { external_files_changed, .. } = process.rules.reload() else {
                panic!("{start}")
            };
            assert!(!external_files_changed, "{start}: a secret that the process created itself is no change");
            assert_eq!(process.drain().await, Ended::Drained);
        }
        assert!(
            directory.path().join("secrets/store.key").exists() && directory.path().join("certs/server.pem").exists()
        );
    }
}
