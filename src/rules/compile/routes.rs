//! Builds the table of v1 routes from all dialects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{BUILT_IN_DIALECT, Context, ShopsAndDialects};
use crate::domain::{MerchantId, Recipe};
use crate::names::quoted;
use crate::rules::problems::{FileId, Span};
use crate::rules::{Dialect, Merchant, V1Route};

/// The routes of all dialects.
pub(super) struct Routes {
    pub(super) by_path: HashMap<Box<str>, Vec<V1Route>>,
    /// See [`RuleSet::legacy_dialect`](crate::rules::RuleSet::legacy_dialect).
    pub(super) legacy_dialect: Option<Arc<Dialect>>,
}

/// The places of the headers that a dialect's file names: of the API key, the signature and the timestamp.
type HeaderPlaces = HashMap<Box<str>, (FileId, [Option<Span>; 3])>;

impl Context<'_> {
    /// Returns the v1 routes by path. Dialects that share a route must name the same headers: these are read before the
    /// merchant, and so its dialect, is known (contract section 4). All dialects share the forwarded paths.
    pub(super) fn routes(
        &mut self,
        parts: &ShopsAndDialects,
        headers: &HeaderPlaces,
        merchants: &HashMap<MerchantId, Arc<Merchant>>,
    ) -> Routes {
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
                self.refuse_forwarding(name, path);
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
                    && different_header(&first.signature, &dialect.signature).is_some()
                    && conflicts.insert((other.clone(), *name))
                {
                    let shared = format!("share the route {method} {path}");
                    self.refuse_headers(headers, (other, first), (name, dialect), &shared);
                }
                route.endpoints.push(((*name).into(), *endpoint));
            }
        }
        let legacy_dialect = if self.legacy_paths.is_empty() { None } else { self.legacy_dialect(&dialects, headers) };
        Routes { by_path: table, legacy_dialect }
    }

    /// Returns a dialect for the headers of requests to `[legacy] paths`, and notes dialects with other headers.
    fn legacy_dialect(
        &mut self,
        dialects: &BTreeMap<&str, &Arc<Dialect>>,
        headers: &HeaderPlaces,
    ) -> Option<Arc<Dialect>> {
        let (first_name, first) = dialects.first_key_value()?;
        for (name, dialect) in dialects {
            if different_header(&first.signature, &dialect.signature).is_some() {
                let shared = "share the paths of `[legacy] paths` in gateway.toml";
                self.refuse_headers(headers, (first_name, first), (name, dialect), shared);
            }
        }
        Some(Arc::clone(first))
    }

    /// Notes two dialects that share requests and name different headers, at the header in one of the two files, or else
    /// at the start of one.
    fn refuse_headers(
        &mut self,
        headers: &HeaderPlaces,
        (one, first): (&str, &Dialect),
        (other, second): (&str, &Dialect),
        shared: &str,
    ) {
        let message = format!(
            "the dialects {} and {} {shared}, so their `[signature]` must name the same headers",
            quoted(one),
            quoted(other)
        );
        let different = different_header(&first.signature, &second.signature).unwrap_or_default();
        let files = || [other, one].into_iter().filter_map(|name| headers.get(name));
        let place = files().find_map(|(file, at)| Some((*file, at.get(different)?.clone()?)));
        if let Some((file, span)) = place.or_else(|| files().map(|(file, _)| (*file, 0..0)).next()) {
            self.diagnostics.add(file, span, message);
        }
    }

    /// Notes `[legacy] paths` that a path of a dialect is below: a create in another spelling would be forwarded there
    /// without a home.
    fn refuse_forwarding(&mut self, dialect: &str, path: &str) {
        for (file, prefix) in &self.legacy_paths {
            let (path_in_lower, prefix_in_lower) = (path.to_ascii_lowercase(), prefix.get_ref().to_ascii_lowercase());
            let below = path_in_lower.strip_prefix(prefix_in_lower.trim_end_matches('/'));
            if below.is_some_and(|below| below.is_empty() || below.starts_with('/')) {
                let message = format!(
                    "`legacy.paths`: {} is the beginning of {path} of the dialect {}, which is forwarded by its merchant's \
                     `v1.mode`",
                    quoted(prefix.get_ref()),
                    quoted(dialect)
                );
                self.diagnostics.add(*file, prefix.span(), message);
            }
        }
    }
}

/// Returns the index of the first header that two recipes name differently: of the API key, the signature or the
/// timestamp.
fn different_header(a: &Recipe, b: &Recipe) -> Option<usize> {
    let pairs = [(&a.api_key, &b.api_key), (&a.signature, &b.signature), (&a.timestamp, &b.timestamp)];
    pairs.iter().position(|(one, other)| one != other)
}
