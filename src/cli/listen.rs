//! `paybridge listen`: a receiver of callbacks for merchants' developers. It shows what comes and which signatures verify,
//! and answers as it is told to.

pub mod answer;
mod report;
mod seen;
mod server;
mod verify;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::args::{Format, Listen};
use super::{Outcome, Stop, merchant, on_runtime};
use crate::certs;
use crate::clock::{Clock, SystemClock};
use crate::http::listener::tls::server_tls;
use crate::rules::{RuleSet, TlsRules};
use answer::Decision;
use report::{CALLBACK_ID, Report};
use seen::Seen;
use server::{Event, Server};
use verify::{Keys, Received};

/// How many events wait for the one who prints.
const EVENTS: usize = 64;
/// How long answers that are on their way have at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Listens until a signal, or until so many callbacks came as asked for.
///
/// # Errors
/// The address cannot be listened at, the certificate cannot be used, or nobody takes the output.
pub fn run(rules: &RuleSet, asked: &Listen, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    if let Some(id) = &asked.merchant {
        merchant(rules, id)?;
    }
    let tls = if asked.plain { None } else { Some(acceptor(rules)?) };
    on_runtime(async {
        let signals = Signals::new().map_err(Stop::failed)?;
        let listener = TcpListener::bind(asked.address).await;
        let listener =
            listener.map_err(|error| Stop::failed(format!("cannot listen at {}: {error}", asked.address)))?;
        announce(rules, asked, listener.local_addr()?, err)?;
        let keys = Keys::new(rules, asked.merchant.as_ref());
        let desk = Desk { keys, asked, seen: Seen::default(), number: 0, out, err };
        serve(desk, listener, tls, signals).await
    })
}

/// The rules' own certificate and key, made where `serve` would make them. No certificate is asked of senders.
fn acceptor(rules: &RuleSet) -> Result<TlsAcceptor, Stop> {
    let (tls, names) = (&rules.gateway.tls, certs::names_of(&rules.gateway.server));
    certs::ensure(tls, &names, SystemClock.now()).map_err(Stop::failed)?;
    let tls = server_tls(&TlsRules { client_ca: None, ..tls.clone() })
        .map_err(|error| Stop::failed(format!("{error} (`paybridge certs` makes a pair; --plain goes without)")))?;
    Ok(TlsAcceptor::from(Arc::new(tls.config)))
}

/// Where it listens, how callbacks get here, and what of the rules keeps the gateway from sending them.
fn announce(rules: &RuleSet, asked: &Listen, address: SocketAddr, err: &mut dyn Write) -> Outcome {
    let scheme = if asked.plain { "http" } else { "https" };
    let ip = address.ip();
    let host = if ip.is_loopback() || ip.is_unspecified() { "localhost".to_owned() } else { ip.to_string() };
    let port = address.port();
    writeln!(err, "listening at {scheme}://{address}; callback_url: {scheme}://{host}:{port}/cb (any path will do)")?;
    let callbacks = &rules.gateway.callbacks;
    if !callbacks.allow_private_addresses && host == "localhost" {
        writeln!(
            err,
            "note: a gateway with these rules sends nothing here: [callbacks] allow_private_addresses = true"
        )?;
    }
    if asked.plain {
        writeln!(err, "note: plain http is for v1 merchants with allow_http_callbacks = true")?;
    } else if callbacks.trust.is_empty() && rules.gateway.tls.generate {
        let ca = certs::Files::of_rules(&rules.gateway.tls).ca;
        let ca = ca.display();
        writeln!(
            err,
            "note: a gateway with these rules does not trust this certificate: [callbacks] trust names {ca}"
        )?;
    }
    Ok(err.flush()?)
}

async fn serve(mut desk: Desk<'_>, listener: TcpListener, tls: Option<TlsAcceptor>, mut signals: Signals) -> Outcome {
    let (events, mut coming) = mpsc::channel(EVENTS);
    let graceful = GracefulShutdown::new();
    {
        let mut serving = std::pin::pin!(Server::new(tls, events).run(listener, &graceful));
        loop {
            tokio::select! {
                () = &mut serving => break,
                () = signals.next() => return Ok(()),
                event = coming.recv() => if let Some(event) = event && desk.take(event)? { break },
            }
        }
    }
    drop(coming);
    // The last callback is answered before the process ends.
    let _ = tokio::time::timeout(desk.asked.delay + LAST_ANSWERS, graceful.shutdown()).await;
    Ok(())
}

/// Where every callback is looked at, one at a time.
struct Desk<'a> {
    keys: Keys<'a>,
    asked: &'a Listen,
    seen: Seen,
    /// How many callbacks came.
    number: u64,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Desk<'_> {
    /// Tells of an event and decides; whether it was the last one.
    fn take(&mut self, event: Event) -> Result<bool, Stop> {
        match event {
            Event::Refused(line) => {
                writeln!(self.err, "refused: {}", report::visible(&line))?;
                Ok(false)
            }
            Event::Came(received, decide) => {
                let decision = self.look_at(&received)?;
                // Whoever asked may be gone.
                let _ = decide.send(decision);
                Ok(self.asked.count.is_some_and(|count| self.number >= NonZeroU64::get(count)))
            }
        }
    }

    fn look_at(&mut self, received: &Received) -> Result<Decision, Stop> {
        let decision = self.decision();
        self.number += 1;
        let times_seen = received.headers.get(CALLBACK_ID).map(|id| self.seen.count(id.as_bytes()));
        let findings = self.keys.check(received);
        let report = Report { number: self.number, received, findings: &findings, times_seen, decision };
        let text = match self.asked.format {
            Format::Text => report.text(),
            Format::Json => report.json(),
        };
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        Ok(decision)
    }

    /// What becomes of the next callback: answers are given in turn, the last one from then on.
    fn decision(&self) -> Decision {
        let answers = &self.asked.answer;
        let turn = usize::try_from(self.number).unwrap_or(usize::MAX).min(answers.len().saturating_sub(1));
        Decision { answer: answers[turn], delay: self.asked.delay, retry_after: self.asked.retry_after }
    }
}

/// What ends the listener.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}
