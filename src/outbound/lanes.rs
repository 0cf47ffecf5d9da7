//! Clients with the same options, each with connections of its own. An HTTP/2 server allows only so many open requests on a
//! connection, and further ones wait in it: behind requests that the server may hold open for long, of one merchant perhaps.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::client::{self, Client, Connector};

/// The most requests of a client at a time: HTTP/2 servers should allow 100 on a connection (RFC 9113, section 6.5.2).
const REQUESTS_PER_LANE: usize = 64;
/// The most clients; requests beyond share the last one.
const LANES: usize = 64;

/// The clients of one set of options.
pub(super) struct Lanes {
    connector: Connector,
    /// The most of them.
    limit: usize,
    open: Mutex<Vec<(Client, Arc<Semaphore>)>>,
}

/// A client, for one request until its response was read.
pub(super) struct Lane {
    pub client: Client,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Lanes {
    /// Makes clients that connect with `connector`; `of_rules`: to hosts that the rules name. All requests to other hosts,
    /// whose connections are limited, share one client.
    pub(super) fn new(connector: Connector, of_rules: bool) -> Self {
        Self { connector, limit: if of_rules { LANES } else { 1 }, open: Mutex::default() }
    }

    /// Returns the first client with few enough requests, so that connections are reused; a new one if there is none.
    pub(super) fn lane(&self) -> Lane {
        let mut lanes = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for (client, permits) in &*lanes {
            if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
                return Lane { client: client.clone(), _permit: Some(permit) };
            }
        }
        if let Some((client, _)) = lanes.last().filter(|_| lanes.len() >= self.limit) {
            return Lane { client: client.clone(), _permit: None };
        }
        let (client, permits) = (client::build(self.connector.clone()), Arc::new(Semaphore::new(REQUESTS_PER_LANE)));
        lanes.push((client.clone(), Arc::clone(&permits)));
        Lane { client, _permit: permits.try_acquire_owned().ok() }
    }
}
