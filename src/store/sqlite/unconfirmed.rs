//! When the disk does not confirm what a checkpoint moved.
//!
//! After a failed fsync the kernel takes for written what it has lost, and says so once. SQLite confirms only the last of
//! the passes of a checkpoint, so that among the lost there may be pages which earlier ones moved. It counts these as moved
//! for as long as any connection is open: the next checkpoint would leave them out, and then cut the log, the only place
//! where they still are. A new process reads the whole log again, and moves all of it.

use std::io::{self, Write as _};

use rusqlite::ffi;

/// Ends the process at once after such an error; nothing happens after others.
pub(super) fn end_process_if(error: &rusqlite::Error) {
    if is_unconfirmed(error) {
        end_process(error);
    }
}

fn is_unconfirmed(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_FSYNC)
}

#[expect(
    clippy::disallowed_methods,
    reason = "on the way to main, connections are closed, and the last of them cuts the log"
)]
fn end_process(error: &rusqlite::Error) -> ! {
    let reported = "the store's log could not be moved into its file; a new start moves all of it again";
    // Not through the log, whose thread would need time.
    let _ = writeln!(io::stderr(), "paybridge: {reported}: {error}");
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_disk_did_not_confirm_ends_the_process() {
        let unconfirmed = |code| is_unconfirmed(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert!(unconfirmed(ffi::SQLITE_IOERR_FSYNC));
        for other in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_FULL, ffi::SQLITE_BUSY] {
            assert!(!unconfirmed(other), "{other}");
        }
    }
}
