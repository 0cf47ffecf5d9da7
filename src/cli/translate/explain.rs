//! `--explain`: prints what becomes of every member.

use std::io::{self, Write};

use crate::cli::columns::plain;
use crate::shadow::{ExplainedMember, MemberFate};

/// Longer cells do not widen their column; the rest of their line moves to the right.
const MAX_WIDTH: usize = 48;

/// Writes the fate of each member: first the v2 body's, then the v1 callback's address and the members left out, then those
/// that the engine changes.
///
/// # Errors
/// The output cannot be written.
pub(super) fn write_members(members: &[ExplainedMember], out: &mut dyn Write) -> io::Result<()> {
    use MemberFate::{Added, Dropped, Forwarded, LeftOut, Relayed};
    let tables = [&[Forwarded][..], &[Relayed, LeftOut], &[Added, Dropped]];
    let rows = |fates: &[MemberFate]| {
        members.iter().filter(|member| fates.contains(&member.fate)).map(row).collect::<Vec<_>>()
    };
    write_tables(&tables.map(rows), out)
}

fn row(member: &ExplainedMember) -> [String; 3] {
    let name = |name: &Option<String>| plain(name.as_deref().unwrap_or_default()).into_owned();
    let from = member.v1_name.as_ref().or(member.filled_from.as_ref());
    let from = format!("<- {}", plain(from.map_or("nothing", String::as_str)));
    let (target, source) = match member.fate {
        MemberFate::Forwarded | MemberFate::Added => (name(&member.v2_name), from),
        MemberFate::Relayed => ("(v1 callback)".to_owned(), from),
        MemberFate::LeftOut => (name(&member.v1_name), "-- not forwarded".to_owned()),
        MemberFate::Dropped => (name(&member.v2_name), "-- not kept".to_owned()),
    };
    [target, source, member.rule.clone()]
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
