//! The v2 engine: decides what becomes of a create, a status question or a result. No HTTP, no JSON, no SQL.

use std::sync::Arc;

use crate::clock::{Clock, Random};
use crate::store::Store;

/// The embedded v2 engine.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}
