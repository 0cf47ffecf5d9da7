//! Tables for people: aligned columns, the same on terminals and in pipes. Text from others is escaped so that it can
//! neither move the cursor nor disguise itself.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

pub(super) use crate::domain::visible as plain;

/// The most characters of a cell in a list.
pub(super) const MAX_WIDTH: usize = 48;

/// Formats a duration in one unit, rounded down.
pub(super) fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Truncates a cell to [`MAX_WIDTH`] characters.
pub(super) fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_WIDTH) {
        Some(_) => text.chars().take(MAX_WIDTH - 1).chain(['…']).collect::<String>().into(),
        None => text,
    }
}

/// Writes rows with aligned columns below a line of headings.
///
/// # Errors
/// The output cannot be written.
pub(super) fn aligned<const N: usize>(
    headings: &[Cow<'_, str>; N],
    rows: &[[Cow<'_, str>; N]],
    out: &mut dyn Write,
) -> io::Result<()> {
    let lines = || std::iter::once(headings).chain(rows);
    let mut widths = [0; N];
    for line in lines() {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    for line in lines() {
        let (last, cells) = line.split_last().unzip();
        for (cell, width) in cells.into_iter().flatten().zip(widths) {
            write!(out, "{cell:<width$}  ")?;
        }
        writeln!(out, "{}", last.map_or("", |last| last))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let shown = |seconds| age(Duration::from_secs(seconds));
        assert_eq!(
            [0, 59, 60, 3599, 3600, 86_399, 86_400, 864_000].map(shown),
            ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "10d"]
        );
    }
}
