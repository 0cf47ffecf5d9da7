//! Reads bodies, and lists, from a file or from standard input.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read, Seek, Write};
use std::path::Path;

use super::outcome::CliError;
use crate::domain::wide;

/// The longest pipe that is kept in memory, in bytes.
const MAX_PIPE_BYTES: u64 = 256 * 1024 * 1024;

/// Reads a body of at most `limit` bytes; from standard input if the path is missing or `-`.
///
/// # Errors
/// The body cannot be read, or is longer.
pub fn read(path: Option<&Path>, limit: usize, err: &mut dyn Write) -> Result<Vec<u8>, CliError> {
    if let Some(path) = path.filter(|path| *path != Path::new("-")) {
        let unreadable = |cause: io::Error| CliError::failed(format!("{}: {cause}", path.display()));
        return bounded(File::open(path).map_err(unreadable)?, limit, &path.display().to_string());
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        writeln!(err, "reading the body from standard input; end it with Ctrl-D")?;
    }
    bounded(stdin.lock(), limit, "standard input")
}

fn bounded(source: impl Read, limit: usize, name: &str) -> Result<Vec<u8>, CliError> {
    let mut body = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    source.take(most).read_to_end(&mut body).map_err(|cause| CliError::failed(format!("{name}: {cause}")))?;
    if body.len() > limit {
        return Err(CliError::failed(format!("{name} is over the limit of {limit} bytes ([limits] body)")));
    }
    Ok(body)
}

/// An input that can be read twice.
pub(super) trait RereadableSource: Read + Seek {}
impl<T: Read + Seek> RereadableSource for T {}

/// Opens a list of ids, or reads a pipe to its end; standard input if the path is `-`. Also returns its name for messages.
///
/// # Errors
/// It cannot be read, or the pipe is too long.
pub(super) fn rereadable(path: &Path, err: &mut dyn Write) -> Result<(String, Box<dyn RereadableSource>), CliError> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let unreadable = |cause: io::Error| CliError::failed(format!("{name}: {cause}"));
    let stream: Box<dyn Read> = if path == Path::new("-") {
        if io::stdin().is_terminal() {
            writeln!(err, "reading ids from standard input; end them with Ctrl-D")?;
        }
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_file() {
            return Ok((name, Box::new(file)));
        }
        Box::new(file)
    };
    let mut held = Vec::new();
    stream.take(MAX_PIPE_BYTES + 1).read_to_end(&mut held).map_err(unreadable)?;
    if wide(held.len()) > MAX_PIPE_BYTES {
        return Err(CliError::failed(format!(
            "{name}: more than {MAX_PIPE_BYTES} bytes: name a file instead of a pipe"
        )));
    }
    Ok((name, Box::new(Cursor::new(held))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_bounded() {
        assert_eq!(bounded(&b"1234"[..], 4, "x").unwrap(), b"1234");
        assert!(
            matches!(bounded(&b"12345"[..], 4, "x"), Err(CliError::Failed(text)) if text.contains("limit of 4 bytes"))
        );
        let missing = read(Some(Path::new("/no/such/file")), 4, &mut Vec::new());
        assert!(matches!(missing, Err(CliError::Failed(text)) if text.starts_with("/no/such/file: ")));
    }
}
