//! Reads CSV, record by record, with the number of the line on which each begins.

use std::collections::VecDeque;
use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder};

/// The records of a file. A byte order mark at its start is dropped, and so are empty lines.
pub(super) struct CsvRecords<R> {
    reader: csv::Reader<LineStarts<R>>,
    record: ByteRecord,
}

impl<R: Read> CsvRecords<R> {
    /// Reads a file from its start. Records may have different numbers of fields.
    pub(super) fn new(source: R, delimiter: u8) -> Self {
        let source = LineStarts { source, offset: 0, line: 1, is_inside: false, starts: VecDeque::new() };
        let mut builder = ReaderBuilder::new();
        let reader = builder.has_headers(false).flexible(true).delimiter(delimiter).from_reader(source);
        Self { reader, record: ByteRecord::new() }
    }

    /// Reads the next record; returns the number of its first line, from 1. `None`: there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(&mut self) -> io::Result<Option<u64>> {
        let position = self.reader.position().byte();
        let is_read = self.reader.read_byte_record(&mut self.record)?;
        Ok(is_read.then(|| self.reader.get_mut().line_at(position)))
    }

    /// Returns the record that was read.
    pub(super) const fn record(&self) -> &ByteRecord {
        &self.record
    }
}

/// A source that notes where its lines begin, so that a record has the number of its first line.
struct LineStarts<R> {
    source: R,
    /// How much was read.
    offset: u64,
    /// The number of the line that is being read.
    line: u64,
    /// Whether the line has begun: an empty one never does.
    is_inside: bool,
    /// The offsets and the numbers of lines.
    starts: VecDeque<(u64, u64)>,
}

impl<R> LineStarts<R> {
    /// Returns the number of the first line that begins at an offset or behind it. Forgets those before.
    fn line_at(&mut self, offset: u64) -> u64 {
        while self.starts.pop_front_if(|(start, _)| *start < offset).is_some() {}
        self.starts.front().map_or(self.line, |(_, line)| *line)
    }
}

impl<R: Read> Read for LineStarts<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        for byte in buffer.iter().take(length) {
            match byte {
                b'\n' => (self.line, self.is_inside) = (self.line + 1, false),
                b'\r' if !self.is_inside => {}
                _ if !self.is_inside => {
                    self.is_inside = true;
                    self.starts.push_back((self.offset, self.line));
                }
                _ => {}
            }
            self.offset += 1;
        }
        Ok(length)
    }
}
