//! Where translated v1 requests go: the embedded engine now, a remote one later.

use std::sync::Arc;

use crate::engine::Engine;

/// The v2 service behind the gateway.
#[derive(Clone)]
pub enum Upstream {
    /// In this process.
    Embedded(Arc<Engine>),
}
