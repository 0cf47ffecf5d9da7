//! `paybridge stub`: small services to try things with on one machine: an old v1 service for `docs/migration.md`, and an
//! HTTP provider for `docs/providers.md`. The command is hidden, since neither is for operators. It is part of this binary,
//! so that a rehearsal builds nothing.

mod legacy;
mod provider;
mod server;

use std::io::Write;

use clap::Subcommand;

use super::outcome::{ExitOutcome, on_runtime};

/// The services.
#[derive(Debug, Subcommand)]
#[command(after_help = STUB_EXAMPLES)]
pub enum Stub {
    /// Answer as an old v1 service
    Legacy(legacy::LegacyArgs),
    /// Answer as an HTTP provider
    Provider(provider::ProviderArgs),
}

const STUB_EXAMPLES: &str = "\
They move no money, and keep everything in memory until they are ended. A gateway that has started has made the certificates.

Examples:
  paybridge stub legacy
  PROVIDER_SECRET=hush paybridge stub provider";

/// Serves until the process is ended.
///
/// # Errors
/// The address or a certificate cannot be used, or the output cannot be written.
pub fn run(stub: Stub, out: &mut dyn Write) -> ExitOutcome {
    on_runtime(async {
        match stub {
            Stub::Legacy(args) => legacy::run(&args, out).await,
            Stub::Provider(args) => provider::run(args, out).await,
        }
    })
}
