//! Rows as CSV (RFC 4180) or as JSON lines, and new files for them.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use csv::{Terminator, Writer, WriterBuilder};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer as _};

use super::args::ExportFormat;
use super::outcome::CliError;
use crate::clock::{Random as _, SystemRandomness};

/// A value of a row.
#[derive(Debug, Clone)]
pub(super) enum Cell<'a> {
    /// There is none: empty in CSV, null in JSON.
    Empty,
    /// A text that others chose, such as an id, a name or a reason.
    Foreign(Cow<'a, str>),
    /// A text of the gateway: an amount, a time, a state, an account.
    Own(Cow<'a, str>),
    /// A number.
    Number(i64),
    /// A JSON document: a text in CSV.
    Json(&'a str),
}

impl<'a> Cell<'a> {
    /// Returns a cell of a text that others chose.
    pub(super) fn foreign(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Foreign(text.into())
    }

    /// Returns a cell of a text of the gateway.
    pub(super) fn own(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Own(text.into())
    }

    /// Returns the cell of a value that may be absent.
    pub(super) fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Empty, cell)
    }

    /// Returns the text in a table for people.
    pub(super) fn plain(self) -> Cow<'a, str> {
        match self {
            Self::Empty => Cow::Borrowed("-"),
            Self::Foreign(text) | Self::Own(text) => text,
            Self::Number(number) => number.to_string().into(),
            Self::Json(text) => text.into(),
        }
    }

    /// Returns the text in CSV. A text of others that a spreadsheet would run begins with an apostrophe.
    fn csv(self) -> Cow<'a, str> {
        match &self {
            Self::Empty => Cow::Borrowed(""),
            Self::Foreign(text) if text.starts_with(FORMULA) => format!("'{text}").into(),
            Self::Foreign(_) | Self::Own(_) | Self::Number(_) | Self::Json(_) => self.plain(),
        }
    }
}

/// The first characters of a formula, also as wide characters, and of a cell in which one may follow.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

impl Serialize for Cell<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Empty => serializer.serialize_none(),
            Self::Foreign(text) | Self::Own(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Json(text) => match serde_json::from_str::<serde_json::Value>(text) {
                Ok(document) => document.serialize(serializer),
                Err(_) => serializer.serialize_str(text),
            },
        }
    }
}

/// Writes rows in a format.
pub(super) enum RowWriter<'w> {
    Csv(Box<Writer<&'w mut dyn Write>>),
    Jsonl(io::BufWriter<&'w mut dyn Write>),
}

impl<'w> RowWriter<'w> {
    /// Starts writing, in CSV with the names of the columns.
    pub(super) fn start<'n>(
        format: ExportFormat,
        names: impl IntoIterator<Item = &'n str>,
        out: &'w mut dyn Write,
    ) -> io::Result<Self> {
        match format {
            ExportFormat::Csv => {
                let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
                writer.write_record(names)?;
                Ok(Self::Csv(Box::new(writer)))
            }
            ExportFormat::Jsonl => Ok(Self::Jsonl(io::BufWriter::new(out))),
        }
    }

    /// Writes a row: the names of the columns and the values.
    pub(super) fn row<'c>(&mut self, cells: impl Iterator<Item = (&'static str, Cell<'c>)>) -> io::Result<()> {
        match self {
            Self::Csv(writer) => {
                for (_, cell) in cells {
                    writer.write_field(cell.csv().as_bytes())?;
                }
                Ok(writer.write_record(None::<&[u8]>)?)
            }
            Self::Jsonl(writer) => {
                let mut serializer = serde_json::Serializer::new(&mut *writer);
                let mut object = serializer.serialize_map(None)?;
                for (name, cell) in cells {
                    object.serialize_entry(name, &cell)?;
                }
                object.end()?;
                writer.write_all(b"\n")
            }
        }
    }

    /// Writes what is buffered.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv(mut writer) => writer.flush(),
            Self::Jsonl(mut writer) => writer.flush(),
        }
    }
}

/// A file that gets its name when it is complete, and whose owner alone may read it.
pub(super) struct NewFile {
    file: File,
    /// Its name until then.
    temporary: PathBuf,
    path: PathBuf,
}

impl NewFile {
    /// Creates the file.
    ///
    /// # Errors
    /// The path exists, or the file cannot be created.
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(exists(path));
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{:016x}", SystemRandomness::default().number()));
        let temporary = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
        let file = file.map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?;
        Ok(Self { file, temporary, path: path.into() })
    }

    /// Returns the writer of its content.
    pub(super) const fn writer(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the complete file its name, unless a file has it by now.
    ///
    /// # Errors
    /// The path exists, or the file cannot be written.
    pub(super) fn publish(self) -> Result<(), CliError> {
        let named = self.file.sync_all().and_then(|()| match fs::hard_link(&self.temporary, &self.path) {
            // A file system without hard links.
            Err(_) if fs::symlink_metadata(&self.path).is_err() => fs::rename(&self.temporary, &self.path),
            linked => linked,
        });
        named.map_err(|error| {
            let is_taken = error.kind() == io::ErrorKind::AlreadyExists;
            if is_taken { exists(&self.path) } else { CliError::failed(format!("{}: {error}", self.path.display())) }
        })
    }
}

/// Removes the name that it had until it was complete.
impl Drop for NewFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

fn exists(path: &Path) -> CliError {
    CliError::failed(format!("{} exists and is not replaced", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: ExportFormat, rows: &[[Cell<'_>; 3]]) -> String {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let mut out = Vec::new();
        let mut writer = RowWriter::start(format, NAMES, &mut out).unwrap();
        for row in rows {
            writer.row(NAMES.into_iter().zip(row.iter().cloned())).unwrap();
        }
        writer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_rfc_4180_or_json_lines() {
        let rows = [
            [Cell::foreign("o,\"1\""), Cell::own("-10.50"), Cell::Empty],
            [Cell::foreign("a\r\nb"), Cell::Number(-7), Cell::Json(r#"{"x":"=1"}"#)],
        ];
        assert_eq!(
            written(ExportFormat::Csv, &rows),
            "a,b,c\r\n\"o,\"\"1\"\"\",-10.50,\r\n\"a\r\nb\",-7,\"{\"\"x\"\":\"\"=1\"\"}\"\r\n"
        );
        assert_eq!(
            written(ExportFormat::Jsonl, &rows),
            "{\"a\":\"o,\\\"1\\\"\",\"b\":\"-10.50\",\"c\":null}\n{\"a\":\"a\\r\\nb\",\"b\":-7,\"c\":{\"x\":\"=1\"}}\n"
        );
        assert_eq!(written(ExportFormat::Csv, &[]), "a,b,c\r\n");
        assert_eq!(written(ExportFormat::Jsonl, &[]), "");
    }

    #[test]
    fn a_spreadsheet_runs_no_text_of_others() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"] {
            assert_eq!(Cell::foreign(text).csv(), format!("'{text}"));
            assert_eq!(Cell::own(text).csv(), text);
            assert_eq!(serde_json::to_value(Cell::foreign(text)).unwrap(), text, "JSON has no apostrophes");
        }
        for text in ["", "a=1", "'=1", "1-1"] {
            assert_eq!(Cell::foreign(text).csv(), text);
        }
    }

    #[test]
    fn a_file_appears_when_it_is_complete_and_replaces_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.csv");
        let mut abandoned = NewFile::create(&path).unwrap();
        abandoned.writer().write_all(b"half").unwrap();
        drop(abandoned);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let (first, second) = (NewFile::create(&path).unwrap(), NewFile::create(&path).unwrap());
        first.publish().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        for refused in [second.publish().err(), NewFile::create(&path).err()] {
            assert!(matches!(refused, Some(CliError::Failed(reason)) if reason.ends_with("is not replaced")));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
