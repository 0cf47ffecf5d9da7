//! What is printed of a callback: for people, or one JSON object a line. No secret and no signature is shown, and nothing
//! that was sent moves a terminal's cursor.

use std::fmt::Write as _;

use http::{HeaderName, header};
use jiff::Timestamp;
use serde::Serialize;

use super::answer::Decision;
use super::verify::{Check, Findings, Received, Style, Verdict};
use crate::cli::sign::shown;

/// The header with a callback's id.
pub const CALLBACK_ID: HeaderName = HeaderName::from_static("x-callback-id");
/// The header that a sample has.
pub const SAMPLE: HeaderName = HeaderName::from_static("x-callback-sample");

/// A callback and what is to be said of it.
pub struct Report<'r> {
    /// How many came until now, this one included.
    pub number: u64,
    /// As it came.
    pub received: &'r Received,
    /// Its signatures.
    pub findings: &'r Findings,
    /// How often its id came, this time included; `None` without an id.
    pub times_seen: Option<u64>,
    /// What becomes of it.
    pub decision: Decision,
}

impl Report<'_> {
    fn is_sample(&self) -> bool {
        self.received.headers.get(SAMPLE).is_some_and(|value| value == "true")
    }

    fn target(&self) -> String {
        let Received { path, query, .. } = self.received;
        query.as_ref().map_or_else(|| path.clone(), |query| format!("{path}?{query}"))
    }

    /// Names and texts of the headers that matter, signatures aside.
    fn headers(&self) -> Vec<(HeaderName, String)> {
        let own = [CALLBACK_ID, SAMPLE].into_iter().chain(self.findings.shown.iter().cloned());
        let names = own.chain([header::CONTENT_TYPE, header::USER_AGENT]);
        let is_signature = |name: &HeaderName| self.findings.checks.iter().any(|check| check.header == name);
        let mut headers = Vec::new();
        for name in names.filter(|name| !is_signature(name)) {
            for value in self.received.headers.get_all(&name) {
                headers.push((name.clone(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
            }
        }
        headers
    }

    /// For people: some lines, and an empty one.
    #[must_use]
    pub fn text(&self) -> String {
        let (method, target) = (&self.received.method, visible(&self.target()));
        let what = match (self.is_sample(), self.times_seen) {
            (true, _) => ", a sample".to_owned(),
            (false, Some(times)) if times > 1 => format!(", a repeat: its id came {times} times"),
            (false, Some(_)) => String::new(),
            (false, None) => ", without X-Callback-Id".to_owned(),
        };
        let mut text = format!("{} #{} {method} {target}{what}\n", time(self.received), self.number);
        let mut line = |name: &HeaderName, value: &str| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "  {:<20} {}", spelled(name), visible(value));
        };
        for (name, value) in self.headers() {
            line(&name, &(value + &self.age(&name)));
        }
        for Check { header, verdict } in &self.findings.checks {
            let said = match verdict {
                Verdict::Verified(signer) => format!("verified: {signer}"),
                Verdict::Wrong(reason) => format!("WRONG: {reason}"),
                Verdict::Missing => "missing".to_owned(),
            };
            line(header, &said);
        }
        text.push_str(&self.body());
        let Decision { answer, delay, .. } = self.decision;
        let delay = if delay.is_zero() { String::new() } else { format!(" after {} ms", delay.as_millis()) };
        text + "  -> " + &answer.to_string() + &delay + "\n\n"
    }

    /// How old the time in a header is, for those that count seconds or milliseconds.
    fn age(&self, name: &HeaderName) -> String {
        let age = || {
            let text = self.received.headers.get(name)?.to_str().ok()?;
            let number: i64 = text.parse().ok()?;
            let seconds = if text.len() > 11 { number / 1000 } else { number };
            let age = self.received.at.seconds().checked_sub(seconds)?;
            Some(if age < 0 { format!(" ({} s ahead)", age.unsigned_abs()) } else { format!(" ({age} s ago)") })
        };
        if name.as_str().contains("time") { age().unwrap_or_default() } else { String::new() }
    }

    fn body(&self) -> String {
        let body = &self.received.body;
        let text = if body.is_empty() { "(no body)".into() } else { String::from_utf8_lossy(body) };
        text.lines().fold(String::new(), |lines, line| lines + "  " + &visible(line) + "\n")
    }

    /// For programs: one JSON object and a line end.
    #[must_use]
    pub fn json(&self) -> String {
        let line = Line {
            received_at: time(self.received),
            number: self.number,
            method: self.received.method.as_str(),
            target: self.target(),
            style: match self.findings.style {
                Style::V1 => "v1",
                Style::V2 => "v2",
            },
            callback_id: self.received.headers.get(CALLBACK_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into()),
            times_seen: self.times_seen,
            sample: self.is_sample(),
            headers: self.headers().into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            signatures: self.findings.checks.iter().map(signature).collect(),
            body: String::from_utf8_lossy(&self.received.body).into_owned(),
            answer: self.decision.answer.to_string(),
        };
        // Text and numbers always serialize.
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }
}

/// The line of a callback.
#[derive(Serialize)]
struct Line<'a> {
    received_at: String,
    number: u64,
    method: &'a str,
    target: String,
    style: &'a str,
    callback_id: Option<String>,
    times_seen: Option<u64>,
    sample: bool,
    headers: Vec<(String, String)>,
    signatures: Vec<Signature<'a>>,
    body: String,
    answer: String,
}

#[derive(Serialize)]
struct Signature<'a> {
    header: &'a str,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    merchant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

fn signature(check: &Check) -> Signature<'_> {
    let blank = Signature { header: check.header.as_str(), result: "missing", merchant: None, key: None, reason: None };
    match &check.verdict {
        Verdict::Verified(signer) => {
            Signature { result: "verified", merchant: Some(signer.merchant.as_str()), key: Some(&signer.key), ..blank }
        }
        Verdict::Wrong(reason) => Signature { result: "wrong", reason: Some(reason), ..blank },
        Verdict::Missing => blank,
    }
}

fn time(received: &Received) -> String {
    let time = Timestamp::from_millisecond(received.at.0).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

/// As documents write it: those of Standard Webhooks in lowercase.
fn spelled(name: &HeaderName) -> String {
    if name.as_str().starts_with("webhook-") { name.to_string() } else { shown(name) }
}

/// Text that came from elsewhere, with what does not show itself escaped.
pub fn visible(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\'' | '\\' => c.to_string(),
        c => c.escape_debug().to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests;
