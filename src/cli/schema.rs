//! `paybridge schema`: prints the JSON Schema of a kind of rule file, for editors.

use std::io::{self, Write};

use crate::rules::{FileKind, file_schema};

/// Prints the schema of a kind of rule file, indented.
///
/// # Errors
/// The output cannot be written.
pub fn run(kind: FileKind, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:#}", file_schema(kind))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The `#:schema` lines of the shipped rules refer to the files in `rules/schemas`, which must match this version.
    #[test]
    fn the_shipped_schemas_are_up_to_date() {
        for kind in FileKind::ALL {
            let mut printed = Vec::new();
            run(kind, &mut printed).unwrap();
            let name = format!("rules/schemas/{}.schema.json", kind.as_str());
            let shipped = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(&name)).unwrap_or_default();
            assert!(
                String::from_utf8_lossy(&shipped).lines().eq(String::from_utf8_lossy(&printed).lines()),
                "{name} is out of date: cargo run -- schema {} > {name}",
                kind.as_str()
            );
        }
    }
}
