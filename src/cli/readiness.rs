//! `paybridge readiness`: shows whether merchants can move to v2.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use super::args::{Format, ReadinessArgs};
use super::columns::{aligned, plain};
use super::outcome::{CliError, ExitOutcome, load, merchant, on_runtime};
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::shadow::{
    Finding, MerchantReadiness, Minimums, Readiness, ReadinessRow, read_readiness, reported_merchants,
};
use crate::store::{StoreAccess, open_beside};

/// Writes the readiness report, from the counts in the store.
///
/// # Errors
/// The rules or the store cannot be used, there is no such merchant, or a merchant is not ready.
pub fn run(args: &ReadinessArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let rules = load(&args.rules.rules, err)?;
    let merchants = match &args.merchant {
        Some(id) => vec![Arc::clone(merchant(&rules, id)?)],
        None => reported_merchants(&rules),
    };
    let minimums = Minimums { creates: args.min_creates, days: args.min_days };
    // An empty shop selects the row of the shops that no rule has, so it is not checked.
    if let Some(shop) = args.shop.as_deref().filter(|shop| !shop.is_empty() && !rules.shops.contains_key(*shop)) {
        return Err(CliError::failed(rules.no_such_shop(shop)));
    }
    let report = on_runtime(async {
        let random = Arc::new(SystemRandomness::default());
        let store =
            open_beside(&rules.gateway.store, StoreAccess::Read, random, Arc::default()).map_err(CliError::failed)?;
        let read = read_readiness(&*store, &rules, &merchants, minimums, SystemClock.now()).await;
        store.close().await.map_err(CliError::failed)?;
        Ok(read?)
    })?;
    let report = report.selected(args.shop.as_deref(), args.direction);
    if report.merchants.is_empty() {
        let reason =
            if merchants.is_empty() { "all are in mode translate" } else { "none has such a shop and direction" };
        writeln!(err, "no merchant to report on: {reason}")?;
    }
    write_report(&report, args, out, err)?;
    if report.is_ready(args.merchant.is_some() || is_selected(args)) { Ok(()) } else { Err(CliError::NotReady) }
}

const fn is_selected(args: &ReadinessArgs) -> bool {
    args.shop.is_some() || args.direction.is_some()
}

fn write_report(report: &Readiness, args: &ReadinessArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    match args.format {
        Format::Json => writeln!(out, "{}", serde_json::to_string(report).map_err(CliError::failed)?)?,
        Format::Text => write_text(report, out)?,
    }
    if let Some(note) = report.note {
        writeln!(err, "note: {note}")?;
    }
    Ok(())
}

const ROWS: [&str; 10] =
    ["MERCHANT", "SHOP", "DIRECTION", "VERDICT", "SINCE", "CREATES", "CREATED", "REFUSED", "UNCHECKED", "IDS"];
const FINDINGS: [&str; 6] = ["COUNT", "MERCHANT", "SHOP", "DIRECTION", "MEMBER", "REASON"];

/// Writes a table of shops, then a table for each kind of finding.
fn write_text(report: &Readiness, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = all_rows(report).map(|(merchant, row)| cells(merchant, row)).collect();
    if !rows.is_empty() {
        aligned(&ROWS.map(Cow::Borrowed), &rows, out)?;
    }
    // A merchant without a shop has no row.
    for merchant in report.merchants.iter().filter(|merchant| merchant.rows.is_empty()) {
        writeln!(
            out,
            "{}: {}: no shop is enabled and nothing was checked",
            merchant.merchant,
            merchant.verdict.as_str()
        )?;
    }
    write_findings("Blockers: accepted by the old service, refused by v2", report, |row| &row.blockers, out)?;
    write_findings("Widenings: refused by the old service, accepted by v2", report, |row| &row.widenings, out)?;
    write_findings("Losses: members that v2 would leave out", report, |row| &row.losses, out)
}

fn all_rows(report: &Readiness) -> impl Iterator<Item = (&MerchantReadiness, &ReadinessRow)> {
    report.merchants.iter().flat_map(|merchant| merchant.rows.iter().map(move |row| (merchant, row)))
}

fn cells<'r>(merchant: &'r MerchantReadiness, row: &'r ReadinessRow) -> [Cow<'r, str>; 10] {
    [
        Cow::from(&*merchant.merchant),
        shop(row),
        row.direction.into(),
        row.verdict.as_str().into(),
        row.since.as_deref().unwrap_or("-").into(),
        row.creates.to_string().into(),
        percent(row.would_create, row.creates).into(),
        percent(row.would_refuse, row.creates).into(),
        (row.not_checked + row.not_compared).to_string().into(),
        if row.ids_complete { "complete" } else { "incomplete" }.into(),
    ]
}

fn shop(row: &ReadinessRow) -> Cow<'_, str> {
    if row.shop.is_empty() { "(unknown)".into() } else { Cow::from(&*row.shop) }
}

/// Formats `part` as a percentage of `total`, rounded down; `-` if `total` is 0.
fn percent(part: u64, total: u64) -> String {
    let tenths = (u128::from(part) * 1000).checked_div(u128::from(total));
    tenths.map_or_else(|| "-".to_owned(), |tenths| format!("{}.{}%", tenths / 10, tenths % 10))
}

fn write_findings(
    title: &str,
    report: &Readiness,
    findings_of: impl Fn(&ReadinessRow) -> &Vec<Finding>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let all = all_rows(report)
        .flat_map(|(merchant, row)| findings_of(row).iter().map(move |finding| (merchant, row, finding)));
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return Ok(());
    }
    let line = |(merchant, row, finding): &(&MerchantReadiness, &ReadinessRow, &Finding)| {
        let reason = match &finding.rule {
            Some(rule) if rule.file.is_empty() => format!("{} (no rule can change it)", finding.reason),
            Some(rule) => format!("{} (change {}: {})", finding.reason, rule.file, rule.key),
            None => finding.reason.clone().into(),
        };
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { plain(text).into_owned() };
        [
            Cow::from(finding.count.to_string()),
            merchant.merchant.to_string().into(),
            shop(row).into_owned().into(),
            row.direction.into(),
            or_dash(&finding.member).into(),
            or_dash(&reason).into(),
        ]
    };
    let lines: Vec<_> = all.iter().map(line).collect();
    writeln!(out, "\n{title}")?;
    aligned(&FINDINGS.map(Cow::Borrowed), &lines, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Rules;
    use crate::cli::outcome::exit_code;
    use crate::domain::{Direction, MerchantId, UnixMillis};
    use crate::engine::tests::World;
    use crate::store::{CheckClass, CheckCount};

    /// Runs the command on the world's store, which stays open; returns the exit code and the output.
    async fn report(world: &World, merchant: Option<&str>, min_creates: u64, format: Format) -> (u8, String) {
        report_on(world, merchant, None, min_creates, format).await
    }

    async fn report_on(
        world: &World,
        merchant: Option<&str>,
        shop: Option<&str>,
        min_creates: u64,
        format: Format,
    ) -> (u8, String) {
        let args = ReadinessArgs {
            rules: Rules { rules: world.rules_directory() },
            merchant: merchant.map(|id| MerchantId::new(id).unwrap()),
            shop: shop.map(str::to_owned),
            direction: None,
            min_creates,
            min_days: 7,
            format,
        };
        let ran = tokio::task::spawn_blocking(move || {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let outcome = run(&args, &mut out, &mut err);
            (exit_code(outcome, &mut err), String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
        });
        ran.await.unwrap()
    }

    async fn add(world: &World, class: CheckClass, shop: &str, count: u64, rule: [&str; 4]) {
        let merchant = MerchantId::new("acme").unwrap();
        let rules = world.rules().merchants[&merchant].rules_fingerprint;
        let [member, reason, file, key] = rule.map(Box::from);
        let since = UnixMillis(1_767_323_045_678);
        let (shop, direction) = (shop.into(), Direction::Payin);
        let samples = vec!["{}".into()];
        let count =
            CheckCount { merchant, rules, shop, direction, class, member, reason, file, key, count, since, samples };
        world.engine.store().add_check_counts(vec![count], since).await.unwrap();
    }

    #[tokio::test]
    async fn the_exit_code_is_0_only_when_all_are_ready() {
        let legacy = "\n[legacy]\nurl = \"https://v1.example\"\n";
        let world = World::new();
        let (code, text) = report(&world, None, 0, Format::Text).await;
        assert_eq!((code, text.as_str()), (0, "no merchant to report on: all are in mode translate\n"));
        let (code, text) = report_on(&world, None, Some("card"), 0, Format::Text).await;
        assert_eq!((code, text.as_str()), (4, "no merchant to report on: all are in mode translate\n"));
        let gateway = std::fs::read_to_string(world.rules_directory().join("gateway.toml")).unwrap();
        world.edit("gateway.toml", &format!("{gateway}{legacy}"));
        world.replace("merchants/other.toml", "[v1]", "[v1]\nmode = \"shadow\"");
        let both = "payin = true\npayout = true\n";
        world.replace("merchants/acme.toml", &format!("{both}[shops.spare]\n{both}"), "payout = false\n");
        let acme = Some("acme");
        let (code, text) = report(&world, acme, 1000, Format::Text).await;
        assert!(code == 4 && text.contains("card  payin      not ready  -") && text.contains("incomplete"), "{text}");
        world
            .engine
            .store()
            .mark_complete(&MerchantId::new("acme").unwrap(), Direction::Payin, UnixMillis(0))
            .await
            .unwrap();
        let (code, text) = report(&world, acme, 1000, Format::Text).await;
        assert!(code == 4 && text.contains("card  payin      no traffic  -"), "{text}");
        let (code, text) = report_on(&world, acme, Some("spare"), 0, Format::Text).await;
        assert_eq!((code, text.as_str()), (4, "no merchant to report on: none has such a shop and direction\n"));
        let (code, text) = report_on(&world, acme, Some("crad"), 0, Format::Text).await;
        assert_eq!((code, text.as_str()), (1, "error: there is no shop `crad` in the rules (did you mean `card`?)\n"));
        add(&world, CheckClass::WouldCreate, "card", 999, [""; 4]).await;
        add(&world, CheckClass::WouldRefuse, "card", 1, [""; 4]).await;
        let (code, text) = report(&world, acme, 1000, Format::Text).await;
        assert_eq!(code, 0, "{text}");
        assert_eq!(
            text,
            "MERCHANT  SHOP  DIRECTION  VERDICT  SINCE                     CREATES  CREATED  REFUSED  UNCHECKED  IDS\n\
             acme      card  payin      ready    2026-01-02T03:04:05.678Z  1000     99.9%    0.1%     0          complete\n"
        );
        assert_eq!(report(&world, acme, 1001, Format::Text).await.0, 4);
        // The other merchant, which alone is in another mode than `translate`, has no traffic.
        let (code, text) = report(&world, None, 1000, Format::Text).await;
        assert!(code == 4 && text.contains("other ") && !text.contains("acme"), "{text}");
        let (code, json) = report(&world, acme, 1000, Format::Json).await;
        assert!(code == 0 && json.starts_with(r#"{"merchants":[{"merchant":"acme","verdict":"ready","#), "{json}");
        let place = ["paymentData.bank_code", "must be listed", "lists/banks.txt", "banks"];
        add(&world, CheckClass::Blocker, "card", 3, place).await;
        add(&world, CheckClass::Blocker, "", 1, ["amount", "is required", "", ""]).await;
        add(&world, CheckClass::Widening, "card", 2, [""; 4]).await;
        let (code, text) = report(&world, acme, 1000, Format::Text).await;
        assert_eq!(code, 4);
        let (_, findings) = text.split_once("\n\n").unwrap();
        assert_eq!(
            findings,
            "Blockers: accepted by the old service, refused by v2\n\
             COUNT  MERCHANT  SHOP       DIRECTION  MEMBER                 REASON\n\
             1      acme      (unknown)  payin      amount                 is required (no rule can change it)\n\
             3      acme      card       payin      paymentData.bank_code  must be listed (change lists/banks.txt: banks)\n\
             \nWidenings: refused by the old service, accepted by v2\n\
             COUNT  MERCHANT  SHOP  DIRECTION  MEMBER  REASON\n\
             2      acme      card  payin      -       -\n"
        );
        // A change of the rules that creates are checked by starts new counts.
        world.replace("lists/banks.txt", "b2", "b3");
        let (code, text) = report(&world, acme, 1000, Format::Text).await;
        assert!(code == 4 && text.contains("no traffic") && !text.contains("Blockers"), "{text}");
        assert_eq!(report(&world, Some("nothing"), 0, Format::Text).await.0, 1);
    }
}
