//! `paybridge store reopen`: lets a store that was moved be served again.

use std::io::Write;

use crate::cli::{Outcome, Stop};
use crate::rules::{RuleSet, StoreUrl};
use crate::store::sqlite;

/// Takes the mark of a moved store away, and says in one line where it had been moved to.
///
/// # Errors
/// The rules name no SQLite store, or it is being served or copied.
pub fn run(rules: &RuleSet, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let StoreUrl::Sqlite(path) = &rules.gateway.store.url else {
        let wanted = "store.url of the rules names a PostgreSQL database: name the file that is to be served again";
        return Err(Stop::failed(wanted));
    };
    let reopened = sqlite::reopen(path).map_err(Stop::failed)?;
    let path = path.display();
    let Some(to) = reopened else {
        return Ok(writeln!(out, "{path}: nothing to do: it was not moved")?);
    };
    writeln!(out, "{path}: is served again from now on; it had been moved to {to}")?;
    Ok(writeln!(err, "note: no gateway may serve {to} any more: each of the two would answer without the other")?)
}
