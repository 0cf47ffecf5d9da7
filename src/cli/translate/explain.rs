//! `--explain`: shows where every member of the v2 body came from and by which rule, which v1 members are missing from
//! it, and what the embedded engine adds and drops by its current rules.

use std::io::{self, Write};

use crate::cli::columns::plain;
use crate::engine::AcceptedRequest;
use crate::rules::Merchant;
use crate::v1::translate::{LeftOut, MemberSource, Translated, Translation};

/// Longer cells do not widen their column; the rest of their line moves to the right.
const MAX_WIDTH: usize = 48;

/// Writes the explanation of a translation; `accepted` is the embedded engine's result, unless it rejects the request.
///
/// # Errors
/// The output cannot be written.
pub(super) fn explain(
    translation: &Translation<'_>,
    merchant: &Merchant,
    accepted: Option<&AcceptedRequest>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut forwarded: Vec<[String; 3]> = Vec::new();
    for (prefix, members) in [("", &translation.members), ("fields.", &translation.fields)] {
        forwarded.extend(members.iter().map(|member| {
            let target = format!("{prefix}{}", shown(member_name(member)));
            [target, format!("<- {}", source(&member.source, merchant)), member.rule.to_owned()]
        }));
    }
    let mut rest: Vec<[String; 3]> = Vec::new();
    rest.extend(relayed(translation, merchant));
    let left_out = |left_out: &LeftOut<'_>| [shown(&left_out.name), "-- not forwarded".into(), left_out.reason.into()];
    rest.extend(translation.left_out.iter().map(left_out));
    let engine_rows = accepted.map_or_else(Vec::new, |accepted| engine_changes(translation, merchant, accepted));
    write_tables(&[forwarded, rest, engine_rows], out)
}

/// Returns the name of a member as the body spells it, without the quotes.
fn member_name<'m>(member: &'m Translated<'_>) -> &'m str {
    let name = member.raw_name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    name.unwrap_or(&member.raw_name)
}

fn source(source: &MemberSource<'_>, merchant: &Merchant) -> String {
    match source {
        MemberSource::MerchantRule(key) => rule(merchant, key),
        MemberSource::PaymentData(_) | MemberSource::Body(_) | MemberSource::Relay => shown(&source.to_string()),
    }
}

fn rule(merchant: &Merchant, key: &str) -> String {
    format!("merchants/{}.toml [v1] {key}", merchant.id)
}

/// Returns a row for the address that the relay calls, if callbacks go through it.
fn relayed(translation: &Translation<'_>, merchant: &Merchant) -> Option<[String; 3]> {
    if !translation.members.iter().any(|member| member.source == MemberSource::Relay) {
        return None;
    }
    let row = |from: String, how: &str| Some(["(v1 callback)".to_owned(), format!("<- {from}"), how.to_owned()]);
    match &translation.relayed_to {
        Some((_, from @ MemberSource::MerchantRule(_))) => {
            row(source(from, merchant), "filled in: the request names none")
        }
        Some((_, from)) => row(source(from, merchant), "kept by the relay, which sends results there in v1 shape"),
        None => row("nothing".to_owned(), "no v1 callback is sent: no address is named"),
    }
}

/// Returns rows for what the engine adds to a request and what it drops.
fn engine_changes(translation: &Translation<'_>, merchant: &Merchant, accepted: &AcceptedRequest) -> Vec<[String; 3]> {
    let shop = &accepted.shop.code;
    let mut rows = Vec::new();
    if !translation.members.iter().any(|member| member_name(member) == "method") {
        let from = format!("<- merchants/{}.toml default_shop", merchant.id);
        rows.push(["(shop)".to_owned(), from, format!("the engine uses {shop}: the request names none")]);
    }
    let defaults: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&accepted.fields.defaults).unwrap_or_default();
    for name in defaults.keys() {
        let from = format!("<- the schema of shops/{shop}.toml");
        rows.push([format!("fields.{}", shown(name)), from, "the engine adds the schema's default".to_owned()]);
    }
    for member in &translation.fields {
        if let MemberSource::PaymentData(name) = &member.source
            && !accepted.kept.keeps(name)
        {
            let why = format!("the engine drops it: the schema of shops/{shop}.toml does not name it");
            rows.push([format!("fields.{}", shown(member_name(member))), "-- not kept".to_owned(), why]);
        }
    }
    rows
}

/// Writes tables with common column widths, separated by an empty line.
fn write_tables(tables: &[Vec<[String; 3]>], out: &mut dyn Write) -> io::Result<()> {
    let width = |cell: fn(&[String; 3]) -> &String| {
        let widths = tables.iter().flatten().map(|row| cell(row).chars().count());
        widths.filter(|width| *width <= MAX_WIDTH).max().unwrap_or(0)
    };
    let (first, second) = (width(|[first, _, _]| first), width(|[_, second, _]| second));
    for (number, rows) in tables.iter().filter(|rows| !rows.is_empty()).enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        for [target, source, how] in rows {
            writeln!(out, "{target:<first$}  {source:<second$}  {how}")?;
        }
    }
    Ok(())
}

/// Escapes a name chosen by others for display on a terminal.
fn shown(name: &str) -> String {
    plain(name).into_owned()
}
