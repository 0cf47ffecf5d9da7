//! Callbacks in a dialect: its three headers, by its recipe over method, path and body.

use super::{Holder, Keys, Received, Verdict, once};
use crate::auth::signatures::{V1Input, verify_v1};
use crate::auth::timestamps::is_fresh;
use crate::rules::{Recipe, Secrets};

/// The headers of the callback's dialect and what its signature is worth, where it is one of a dialect: it has a header in
/// which some merchant's dialect has the API key. `None` for others, such as those with headers of Standard Webhooks.
pub fn check<'k>(keys: &'k Keys<'_>, received: &Received) -> Option<(&'k Recipe, Verdict)> {
    if received.headers.keys().any(|name| name.as_str().starts_with("webhook-")) {
        return None;
    }
    let recipes = keys.all.iter().map(|holder| &holder.merchant.v1.dialect.signature);
    let recipes: Vec<_> = recipes.filter(|recipe| received.headers.contains_key(&recipe.api_key)).collect();
    if let Some((holder, key)) = recipes.iter().find_map(|recipe| holder(keys, received, recipe)) {
        let recipe = &holder.merchant.v1.dialect.signature;
        return Some((recipe, worth(keys, received, &holder, key)));
    }
    recipes.first().map(|recipe| {
        let unknown = || format!("{} names no API key of the rules", recipe.api_key);
        (*recipe, Verdict::Wrong(once(received, &recipe.api_key).err().unwrap_or_else(unknown)))
    })
}

/// The key that the header of a recipe names, if its merchant's dialect has it there.
fn holder<'k, 'r>(keys: &'k Keys<'_>, received: &'r Received, recipe: &Recipe) -> Option<(Holder<'k>, &'r str)> {
    let key = once(received, &recipe.api_key).ok()??;
    let holder = keys.all.iter().find(|holder| *holder.key.key == *key)?;
    (holder.merchant.v1.dialect.signature.api_key == recipe.api_key).then_some((*holder, key))
}

fn worth(keys: &Keys<'_>, received: &Received, holder: &Holder<'_>, key: &str) -> Verdict {
    let recipe = &holder.merchant.v1.dialect.signature;
    let (timestamp, signature) = match (once(received, &recipe.timestamp), once(received, &recipe.signature)) {
        (Err(reason), _) | (_, Err(reason)) => return Verdict::Wrong(reason),
        (_, Ok(None)) => return Verdict::Missing,
        (Ok(None), _) => return Verdict::Wrong(format!("{} is missing", recipe.timestamp)),
        (Ok(Some(timestamp)), Ok(Some(signature))) => (timestamp, signature),
    };
    let verifies = |secrets: &Secrets, body: &[u8]| {
        let (method, path, query) = (received.method.as_str(), received.path.as_str(), received.query.as_deref());
        let input = V1Input { timestamp, method, path, query, api_key: key, body };
        verify_v1(recipe, secrets, &input, signature.as_bytes())
    };
    let reason = match &holder.key.v1_secrets {
        _ if !keys.counts(holder.merchant) => format!("the API key is of another merchant: {}", holder.signer()),
        None => format!("the API key has no v1_secret: {}", holder.signer()),
        Some(secrets) if verifies(secrets, &received.body) => {
            if is_fresh(recipe, timestamp.as_bytes(), received.at) {
                return Verdict::Verified(holder.signer());
            }
            let (header, window) = (&recipe.timestamp, recipe.window.as_secs());
            format!("it is right, but {header} is malformed or not within {window} s of now")
        }
        Some(_) if holder.key.v2_secrets.as_ref().is_some_and(|secrets| verifies(secrets, &received.body)) => {
            "made with the v2_secret: callbacks in a dialect are signed with the v1_secret".to_owned()
        }
        Some(_) => format!(
            "the v1_secret does not make it over this method, path, timestamp and body by the recipe of dialect {} ({})",
            holder.merchant.v1.dialect.name,
            holder.signer()
        ),
    };
    Verdict::Wrong(reason)
}
