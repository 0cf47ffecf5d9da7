//! Options and values that several commands have.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, Args, ValueEnum, ValueHint};

use crate::domain::MerchantId;

/// The rules option that most commands have.
#[derive(Debug, Args)]
pub struct Rules {
    /// The directory of the rule files: gateway.toml, dialects/, merchants/, shops/, lists/, pages/
    #[arg(
        long,
        value_name = "DIR",
        env = "PAYBRIDGE_RULES",
        default_value = DEFAULT_RULES,
        value_hint = ValueHint::DirPath,
        value_parser = RulesDirectory,
    )]
    pub rules: PathBuf,
}

const DEFAULT_RULES: &str = "rules";

/// A path; an empty environment variable counts as unset.
#[derive(Debug, Clone)]
struct RulesDirectory;

impl TypedValueParser for RulesDirectory {
    type Value = PathBuf;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<PathBuf, clap::Error> {
        PathBufValueParser::new().parse_ref(command, argument, value)
    }

    fn parse_ref_(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<PathBuf, clap::Error> {
        if source == ValueSource::EnvVariable && value.is_empty() {
            return Ok(PathBuf::from(DEFAULT_RULES));
        }
        self.parse_ref(command, argument, value)
    }
}

/// The output format of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// An API version, in the sense of how a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InterfaceArg {
    /// Signed by the recipe of the merchant's v1 dialect
    V1,
    /// Signed over the raw body
    V2,
}

pub(super) fn merchant_id(text: &str) -> Result<MerchantId, String> {
    MerchantId::new(text).map_err(|invalid| invalid.reason().to_owned())
}
