//! `paybridge man`: manual pages, made from the same definitions as `--help`.

use std::io::Write;

use clap::CommandFactory as _;
use clap_mangen::Man as Page;

use super::args::{Arguments, Man};
use super::outcome::{CliError, ExitOutcome};

/// Prints the page of a command as roff, or writes the pages of all commands into a directory, one file each.
///
/// # Errors
/// There is no such command, or a page cannot be written.
pub fn run(args: &Man, out: &mut dyn Write) -> ExitOutcome {
    let mut command = Arguments::command();
    if let Some(directory) = &args.dir {
        return clap_mangen::generate_to(command, directory)
            .map_err(|error| CliError::failed(format!("cannot write into {}: {error}", directory.display())));
    }
    command.build();
    let mut named = &command;
    for name in &args.command {
        named = named
            .find_subcommand(name)
            .ok_or_else(|| CliError::Usage(format!("there is no command `{}`", args.command.join(" "))))?;
    }
    let mut page = Vec::new();
    Page::new(named.clone()).render(&mut page)?;
    Ok(out.write_all(&page)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(command: &[&str]) -> Result<String, CliError> {
        let mut out = Vec::new();
        let command = command.iter().map(|&name| name.to_owned()).collect();
        run(&Man { command, dir: None }, &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_command_has_a_page() {
        let all = printed(&[]).unwrap();
        assert!(all.starts_with(".ie") && all.contains("PAYBRIDGE_RULES") | all.contains("import\\-ids"), "{all}");
        let copy = printed(&["store", "copy"]).unwrap();
        assert!(copy.contains("paybridge\\-store\\-copy") && copy.contains(".SH OPTIONS"), "{copy}");
        assert!(matches!(printed(&["store", "nothing"]), Err(CliError::Usage(_))));
    }

    #[test]
    fn all_pages_are_written_into_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let write = |dir: std::path::PathBuf| run(&Man { command: Vec::new(), dir: Some(dir) }, &mut Vec::new());
        write(directory.path().to_owned()).unwrap();
        for page in ["paybridge.1", "paybridge-serve.1", "paybridge-store-copy.1", "paybridge-man.1"] {
            assert!(directory.path().join(page).is_file(), "{page}");
        }
        assert!(write(directory.path().join("missing")).is_err());
    }
}
