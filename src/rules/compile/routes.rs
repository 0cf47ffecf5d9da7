//! The paths of all dialects together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::dialect::DialectPlaces;
use super::{BUILT_IN_DIALECT, Context, Parts};
use crate::domain::MerchantId;
use crate::rules::problems::quoted;
use crate::rules::{Dialect, Merchant, Recipe, V1Route};

impl Context<'_> {
    /// The table of v1 paths. Dialects that share a route must share the names of the headers that are read before the
    /// merchant, and so the dialect, is known (contract section 4).
    pub(super) fn routes(
        &mut self,
        parts: &Parts,
        places: &HashMap<Box<str>, DialectPlaces>,
        merchants: &HashMap<MerchantId, Arc<Merchant>>,
    ) -> HashMap<Box<str>, Vec<V1Route>> {
        let used = |name: &str| merchants.values().any(|merchant| &*merchant.v1.dialect.name == name);
        let written = |name: &str| places.get(name).is_some_and(|places| places.file.is_some());
        let alone = parts.dialects.len() == 1;
        // The built-in dialect that nobody wrote down and nobody uses takes no paths from the others.
        let serves = |name: &str| name != BUILT_IN_DIALECT || alone || written(name) || used(name);
        let dialects: BTreeMap<&str, &Arc<Dialect>> = parts
            .dialects
            .iter()
            .filter_map(|(name, dialect)| Some((&**name, dialect.as_ref()?)))
            .filter(|(name, _)| serves(name))
            .collect();
        let mut table: HashMap<Box<str>, Vec<V1Route>> = HashMap::new();
        // Dialects that share all their routes are told once.
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
                    && !same_headers(&first.signature, &dialect.signature)
                    && conflicts.insert((other.clone(), *name))
                {
                    let message = format!(
                        "the dialects {} and {} share the route {method} {path}, so that their `[signature]` must \
                         name the same headers",
                        quoted(other),
                        quoted(name)
                    );
                    self.route_problem(places, [name, other], *endpoint, message);
                }
                route.endpoints.push(((*name).into(), *endpoint));
            }
        }
        table
    }

    /// Points at the route in the first of two dialects that is written in a file.
    fn route_problem(
        &mut self,
        places: &HashMap<Box<str>, DialectPlaces>,
        dialects: [&str; 2],
        endpoint: crate::rules::Endpoint,
        message: String,
    ) {
        let mut known = dialects.iter().filter_map(|name| places.get(*name));
        if let Some((file, places)) = known.find_map(|places| Some((places.file?, places))) {
            self.findings.add(file, places.routes.get(&endpoint).cloned().unwrap_or(0..0), message);
        }
    }
}

fn same_headers(a: &Recipe, b: &Recipe) -> bool {
    (&a.api_key, &a.signature, &a.timestamp) == (&b.api_key, &b.signature, &b.timestamp)
}
