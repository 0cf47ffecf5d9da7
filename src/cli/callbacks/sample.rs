//! `paybridge callbacks sample`: sends one callback marked as a sample from this machine.

use std::io::Write;

use super::super::args::{Format, InterfaceArg, SampleCallback};
use super::super::columns::plain;
use super::super::outcome::{CliError, ExitOutcome, merchant, ok_if, write_json};
use super::table;
use crate::auth::Interface;
use crate::callback::listing::sample_document;
use crate::callback::{Sample, Sampled, sample};
use crate::clock::{SystemClock, SystemRandomness};
use crate::outbound::Outbound;
use crate::rules::RuleSet;
use crate::store::TryOutcome;

pub(super) async fn run(rules: &RuleSet, args: &SampleCallback, out: &mut dyn Write) -> ExitOutcome {
    let wanted = Sample {
        merchant: merchant(rules, &args.merchant)?,
        api_key: args.key.as_deref(),
        through: args.through.map(|through| match through {
            InterfaceArg::V1 => Interface::V1,
            InterfaceArg::V2 => Interface::V2,
        }),
        url: args.url.as_ref(),
    };
    let (outbound, random) = (Outbound::default(), SystemRandomness::default());
    let sampled = sample(rules, &outbound, &SystemClock, &random, &wanted).await.map_err(CliError::failed)?;
    match args.format {
        Format::Json => write_json(&sample_document(&sampled), out)?,
        Format::Text => write_text(&sampled, out)?,
    }
    ok_if(sampled.tried.outcome.is_delivered())
}

fn write_text(sampled: &Sampled, out: &mut dyn Write) -> ExitOutcome {
    let Sampled { id, through, url, body, tried } = sampled;
    writeln!(out, "POST {} ({}, {id})", url.as_str(), through.as_str())?;
    writeln!(out, "{}", plain(body))?;
    let (outcome, took) = (table::outcome(&tried.outcome), tried.duration.as_millis());
    match &tried.outcome {
        TryOutcome::Status(_) => writeln!(out, "answered {outcome} in {took} ms")?,
        TryOutcome::Error(_) => writeln!(out, "no answer: {} (after {took} ms)", plain(&outcome))?,
    }
    Ok(())
}
