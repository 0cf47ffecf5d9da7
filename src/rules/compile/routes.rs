//! Builds the table of v1 routes from all dialects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{BUILT_IN_DIALECT, Context, ShopsAndDialects};
use crate::domain::{MerchantId, Recipe};
use crate::names::quoted;
use crate::rules::problems::{FileId, Span};
use crate::rules::{Dialect, Merchant, V1Route};

impl Context<'_> {
    /// Returns the v1 routes by path. Dialects that share a route must name the same headers: these are read before the
    /// merchant, and so its dialect, is known (contract section 4).
    pub(super) fn routes(
        &mut self,
        parts: &ShopsAndDialects,
        headers: &HashMap<Box<str>, (FileId, [Option<Span>; 3])>,
        merchants: &HashMap<MerchantId, Arc<Merchant>>,
    ) -> HashMap<Box<str>, Vec<V1Route>> {
        let used = |name: &str| merchants.values().any(|merchant| &*merchant.v1.dialect.name == name);
        let alone = parts.dialects.len() == 1;
        // The built-in dialect without a file and without a merchant takes no paths from the others.
        let serves = |name: &str| name != BUILT_IN_DIALECT || alone || headers.contains_key(name) || used(name);
        let dialects: BTreeMap<&str, &Arc<Dialect>> = parts
            .dialects
            .iter()
            .filter_map(|(name, dialect)| Some((&**name, dialect.as_ref()?)))
            .filter(|(name, _)| serves(name))
            .collect();
        let mut table: HashMap<Box<str>, Vec<V1Route>> = HashMap::new();
        // Each pair of conflicting dialects is reported once, however many routes it shares.
        let mut conflicts: HashSet<(Box<str>, &str)> = HashSet::new();
        for (name, dialect) in &dialects {
            for (endpoint, method, path) in &dialect.routes {
                let routes = table.entry(path.clone()).or_default();
                let Some(route) = routes.iter_mut().find(|route| route.method == *method) else {
                    routes.push(V1Route {
                        method: method.clone(),
                        api_key: dialect.signature.api_key.clone(),
                        endpoints: vec![((*name).into(), *endpoint)],
                    });
                    continue;
                };
                if let Some((other, _)) = route.endpoints.first()
                    && let Some(first) = dialects.get(&**other)
                    && let Some(different) = different_header(&first.signature, &dialect.signature)
                    && conflicts.insert((other.clone(), *name))
                {
                    let message = format!(
                        "the dialects {} and {} share the route {method} {path}, so their `[signature]` must name \
                         the same headers",
                        quoted(other),
                        quoted(name)
                    );
                    // Reported at the header in one of the two files, else at the start of one.
                    let files = || [*name, other].into_iter().filter_map(|name| headers.get(name));
                    let place = files().find_map(|(file, at)| Some((*file, at.get(different)?.clone()?)));
                    if let Some((file, span)) = place.or_else(|| files().map(|(file, _)| (*file, 0..0)).next()) {
                        self.findings.add(file, span, message);
                    }
                }
                route.endpoints.push(((*name).into(), *endpoint));
            }
        }
        table
    }
}

/// Returns the index of the first header that two recipes name differently: of the API key, the signature or the
/// timestamp.
fn different_header(a: &Recipe, b: &Recipe) -> Option<usize> {
    let pairs = [(&a.api_key, &b.api_key), (&a.signature, &b.signature), (&a.timestamp, &b.timestamp)];
    pairs.iter().position(|(one, other)| one != other)
}
