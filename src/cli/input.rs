//! Reads bodies from a file or from standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use super::outcome::CliError;

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
