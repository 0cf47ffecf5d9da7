//! Explains one v1 create: the origin and the rule of every member of the v2 body, the v1 members that are left out, what
//! the embedded engine adds and drops, and whether the create would be accepted.

use serde::Serialize;
use serde_json::Value as Json;

use super::masking::{masked_body, masked_json, masked_value};
use super::verdict::{Refusal, sample_relay_url, verdict};
use crate::auth::Interface;
use crate::domain::Direction;
use crate::domain::FailureCause;
use crate::engine::{AcceptedRequest, check_rules};
use crate::error::RequestError;
use crate::rules::{ApiKey, EngineRules, Merchant, RuleSet};
use crate::v1::translate::{BodyBytes, LeftOut, MemberSource, OriginOf, Origins, RuleError, TranslateError, translate};
use crate::wire::v1::{PAYMENT_DATA, V1Create, read_create};

/// A v1 body as it is shown to an operator. It holds no card number, however the body spells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The body.
    pub body: String,
    /// What becomes of its members; empty if it cannot be translated.
    pub members: Vec<ExplainedMember>,
    /// What would become of the create.
    pub verdict: ExplainedVerdict,
}

/// What would become of a v1 create whose order is new, if v2 got it now. The merchant's balance and the customer's daily
/// limit are not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ExplainedVerdict {
    /// An operation would be created.
    Accepted {
        /// The code of its shop.
        shop: Box<str>,
        /// Why it would be created FAILED, as a word of the metrics; `None`: it would be pending.
        failure: Option<&'static str>,
    },
    /// The create would be refused with status 400.
    Refused(Refusal),
    /// The body is longer than `[limits] body`: status 413. It is neither read nor shown.
    TooLong,
    /// It would be sent to the remote engine, whose rules are not known here.
    RemoteEngine,
    /// No API key of the merchant can call v1: status 401.
    NoKey,
}

/// What becomes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberFate {
    /// It is in the v2 body.
    Forwarded,
    /// The relay uses it: it is the address of the v1 callback.
    Relayed,
    /// It was sent and is not in the v2 body.
    LeftOut,
    /// The engine adds it.
    Added,
    /// The engine drops it.
    Dropped,
}

/// A member of a v1 body, of its v2 body, or of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedMember {
    /// What becomes of it.
    pub fate: MemberFate,
    /// Its name in the v1 body; `None`: it was not sent.
    pub v1_name: Option<String>,
    /// Its name in the v2 body; `None`: it is not in there.
    pub v2_name: Option<String>,
    /// The rule file and key that it comes from, or the gateway's relay; `None`: it comes from the v1 body, or from nowhere.
    pub filled_from: Option<String>,
    /// Its value as JSON text; `None`: there is none.
    pub value: Option<String>,
    /// The rule that was applied to it.
    pub rule: String,
}

/// A v1 create that was translated, and what today's rules make of it. Nothing is stored.
#[derive(Debug)]
pub struct DryRun<'a> {
    /// Where the members of the v2 body came from.
    pub origins: Origins<'a>,
    /// The v2 body. The relay's address in it ends with zeros.
    pub body: String,
    /// The embedded engine's result, errors in v1 words; `None`: the engine is a remote one, or no API key can call v1.
    pub outcome: Option<Result<AcceptedRequest, RequestError>>,
}

/// Explains a v1 create. Nothing is stored, and no order is looked for.
#[must_use]
pub fn explain(rules: &RuleSet, merchant: &Merchant, direction: Direction, body: &[u8]) -> Explanation {
    if body.len() > rules.gateway.limits.body {
        return Explanation { body: String::new(), members: Vec::new(), verdict: ExplainedVerdict::TooLong };
    }
    let create = read_create(direction, body).ok();
    let run = create.as_ref().and_then(|create| Some((create, dry_run(rules, merchant, create).ok()?)));
    let members = run.as_ref().map(|(create, run)| explained_members(create, merchant, run));
    let outcome = run.and_then(|(_, run)| run.outcome);
    let verdict = match (v1_key(merchant), outcome) {
        (None, _) => ExplainedVerdict::NoKey,
        (Some(_), Some(Ok(accepted))) => ExplainedVerdict::Accepted {
            shop: accepted.shop.code.as_str().into(),
            failure: accepted.failure.map(FailureCause::as_str),
        },
        (Some(key), Some(Err(_)) | None) => match verdict(rules, merchant, key, direction, body).refusal {
            Some(refusal) => ExplainedVerdict::Refused(refusal),
            None => ExplainedVerdict::RemoteEngine,
        },
    };
    Explanation { body: masked_body(body), members: members.unwrap_or_default(), verdict }
}

/// Translates a create and applies today's rules to it, as the first API key that can call v1.
///
/// # Errors
/// The merchant's first rule that refuses the body.
pub fn dry_run<'a>(rules: &RuleSet, merchant: &'a Merchant, create: &'a V1Create<'a>) -> Result<DryRun<'a>, RuleError> {
    let relay = sample_relay_url(rules, merchant, create.direction);
    let (mut body, mut origins) = (BodyBytes::default(), Origins::default());
    // A body that v2's shape refuses is whole all the same.
    let _ = translate(create, &merchant.v1, &relay, &mut body);
    let request = match translate(create, &merchant.v1, &relay, &mut origins) {
        Ok(translated) => Ok(translated.request),
        Err(TranslateError::Shape(error)) => Err(error),
        Err(TranslateError::Rule(error)) => return Err(error),
    };
    let api_key = v1_key(merchant).filter(|_| rules.gateway.engine == EngineRules::Embedded);
    let outcome = api_key.map(|api_key| {
        let check = |request| check_rules(merchant, api_key, &request, Interface::V1).map_err(|refusal| refusal.error);
        request.and_then(check).map_err(|error| error.renamed(|path| create.v1_name(path)))
    });
    Ok(DryRun { origins, body: body.into_text(), outcome })
}

fn v1_key(merchant: &Merchant) -> Option<&ApiKey> {
    merchant.api_keys.iter().find(|key| key.v1_secrets.is_some())
}

/// Returns the fate of each member of a create: first the members of the v2 body in their order, then the v1 callback's
/// address, the members left out, those that the engine adds, and those that it drops. Card numbers are masked in names and
/// values.
#[must_use]
pub fn explained_members(create: &V1Create<'_>, merchant: &Merchant, run: &DryRun<'_>) -> Vec<ExplainedMember> {
    let origins = &run.origins;
    let mut members: Vec<_> = [("", &origins.members), ("fields.", &origins.fields)]
        .into_iter()
        .flat_map(|(prefix, members)| members.iter().map(move |member| forwarded(prefix, member, merchant)))
        .collect();
    members.extend(relayed(origins, merchant));
    members.extend(origins.left_out.iter().map(|member| left_out(create, member)));
    if let Some(Ok(accepted)) = &run.outcome {
        members.extend(added(origins, merchant, accepted));
        members.extend(dropped(origins, accepted));
    }
    members
}

/// Splits a source into the v1 name and where the member was filled in from.
fn source(source: &MemberSource<'_>, merchant: &Merchant) -> (Option<String>, Option<String>) {
    match source {
        MemberSource::PaymentData(_) | MemberSource::Body(_) => (Some(masked_json(&source.to_string())), None),
        MemberSource::MerchantRule(key) => (None, Some(format!("merchants/{}.toml [v1] {key}", merchant.id))),
        MemberSource::Relay => (None, Some(source.to_string())),
    }
}

fn forwarded(prefix: &str, member: &OriginOf<'_>, merchant: &Merchant) -> ExplainedMember {
    let (v1_name, filled_from) = source(&member.source, merchant);
    let path = format!("{prefix}{}", member.name);
    ExplainedMember {
        fate: MemberFate::Forwarded,
        v1_name,
        v2_name: Some(masked_json(&path)),
        filled_from,
        value: Some(masked_value(&path, &member.raw_value)),
        rule: member.rule.to_owned(),
    }
}

/// Returns the address that the relay calls, if callbacks go through it.
fn relayed(origins: &Origins<'_>, merchant: &Merchant) -> Option<ExplainedMember> {
    if !origins.members.iter().any(|member| member.source == MemberSource::Relay) {
        return None;
    }
    let kept = origins.relayed_to.as_ref();
    let (v1_name, filled_from) = kept.map_or((None, None), |(_, from)| source(from, merchant));
    let rule = match (&v1_name, &filled_from) {
        (Some(_), _) => "kept by the relay, which sends results there in v1 shape",
        (None, Some(_)) => "filled in: the request names none",
        (None, None) => "no v1 callback is sent: no address is named",
    };
    let value = kept.map(|(url, _)| masked_json(&Json::from(url.as_str()).to_string()));
    Some(ExplainedMember {
        fate: MemberFate::Relayed,
        v1_name,
        v2_name: None,
        filled_from,
        value,
        rule: rule.to_owned(),
    })
}

fn left_out(create: &V1Create<'_>, member: &LeftOut<'_>) -> ExplainedMember {
    let name = member.name;
    let inner = name.strip_prefix(PAYMENT_DATA).and_then(|rest| rest.strip_prefix('.'));
    let sent =
        create.member(name).or_else(|| create.unknown().get(name)).or_else(|| create.payment_data()?.get(inner?));
    ExplainedMember {
        fate: MemberFate::LeftOut,
        v1_name: Some(masked_json(name)),
        v2_name: None,
        filled_from: None,
        value: sent.map(|value| masked_value(name, value.raw)),
        rule: member.reason.to_owned(),
    }
}

/// Returns what the engine adds: the shop that the request does not name, and the schema's defaults.
fn added(origins: &Origins<'_>, merchant: &Merchant, accepted: &AcceptedRequest) -> Vec<ExplainedMember> {
    let shop = &accepted.shop.code;
    let added = |name: String, from: String, value: &Json, rule: String| ExplainedMember {
        fate: MemberFate::Added,
        v1_name: None,
        v2_name: Some(name),
        filled_from: Some(from),
        value: Some(masked_json(&value.to_string())),
        rule,
    };
    let mut members = Vec::new();
    if !origins.members.iter().any(|member| member.name == "method") {
        let from = format!("merchants/{}.toml default_shop", merchant.id);
        let rule = format!("the engine uses {shop}: the request names none");
        members.push(added("(shop)".to_owned(), from, &Json::from(shop.as_str()), rule));
    }
    let defaults: serde_json::Map<String, Json> = serde_json::from_str(&accepted.fields.defaults).unwrap_or_default();
    members.extend(defaults.iter().map(|(name, value)| {
        let rule = "the engine adds the schema's default".to_owned();
        added(format!("fields.{name}"), format!("the schema of shops/{shop}.toml"), value, rule)
    }));
    members
}

/// Returns the members of `fields` that the engine drops.
fn dropped(origins: &Origins<'_>, accepted: &AcceptedRequest) -> Vec<ExplainedMember> {
    let rule = format!("the engine drops it: the schema of shops/{}.toml does not name it", accepted.shop.code);
    let is_dropped = |member: &&OriginOf<'_>| matches!(&member.source, MemberSource::PaymentData(name) if !accepted.kept.keeps(name));
    let member = |member: &OriginOf<'_>| {
        let path = format!("fields.{}", member.name);
        ExplainedMember {
            fate: MemberFate::Dropped,
            v1_name: Some(masked_json(&member.source.to_string())),
            v2_name: Some(masked_json(&path)),
            filled_from: None,
            value: Some(masked_value(&path, &member.raw_value)),
            rule: rule.clone(),
        }
    };
    origins.fields.iter().filter(is_dropped).map(member).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::Direction::{Payin, Payout};
    use crate::domain::MerchantId;
    use crate::shadow::tests::{RuleFixture, body};

    fn explained(rules: &RuleSet, direction: Direction, body: &str) -> Explanation {
        explain(rules, &rules.merchants[&MerchantId::new("acme").unwrap()], direction, body.as_bytes())
    }

    /// A member's fate, v1 name, v2 name, origin and value, `-` for what it has not.
    fn line(member: &ExplainedMember) -> String {
        let text = |text: &Option<String>| text.as_deref().unwrap_or("-").to_owned();
        let columns = [&member.v1_name, &member.v2_name, &member.filled_from, &member.value].map(text);
        assert!(!member.rule.is_empty(), "{member:?}");
        format!("{:?} {}", member.fate, columns.join(" | "))
    }

    #[test]
    fn every_member_is_explained() {
        let rules = RuleFixture::new();
        rules.put(
            "shops/card.payin.json",
            r#"{ "type": "object", "properties": { "bank_code": {}, "channel": { "default": "web" } } }"#,
        );
        let members = json!({
            "callback_url": "https://acme.example/4111111111111111",
            "paymentData": { "4111111111111111": [4_111_111_111_111_111_u64], "bank_code": "4111-1111-1111-1111" },
        });
        let sent = body(Payin, &members).replace("\"o1\"", r#""\u0034111 1111 1111 1111","merchant_user_id":null"#);
        let explained = explained(&rules.load(), Payin, &sent);
        let relay = "this gateway's relay address";
        let done = "merchants/acme.toml [v1] return_url | \"https://acme.example/done\"";
        let lines: Vec<_> = explained.members.iter().map(line).collect();
        let url = "\"https://localhost:8443/relay/acme.payin.00000000000000000000000000000000\"";
        let expected = [
            "Forwarded external_id | order_id | - | \"4111 1111 1111 1111\"",
            "Forwarded amount | amount | - | 10.5",
            "Forwarded currency | currency | - | \"EUR\"",
            &format!("Forwarded - | callback_url | {relay} | {url}"),
            &format!("Forwarded - | success_url | {done}"),
            &format!("Forwarded - | pending_url | {done}"),
            &format!("Forwarded - | fail_url | {done}"),
            "Forwarded paymentData.411111******1111 | fields.411111******1111 | - | [411111******1111]",
            "Forwarded paymentData.bank_code | fields.bank_code | - | \"4111-11**-****-1111\"",
            "Relayed callback_url | - | - | \"https://acme.example/411111******1111\"",
            "LeftOut merchant_user_id | - | - | null",
            "Added - | (shop) | merchants/acme.toml default_shop | \"card\"",
            "Added - | fields.channel | the schema of shops/card.toml | \"web\"",
            "Dropped paymentData.411111******1111 | fields.411111******1111 | - | [411111******1111]",
        ];
        assert_eq!(lines, expected);
        assert_eq!(explained.verdict, ExplainedVerdict::Accepted { shop: "card".into(), failure: None });
        assert!(!format!("{explained:?}").contains("1111111") && explained.body.contains("4111-11**-****-1111"));
    }

    #[test]
    fn an_account_is_masked_without_a_right_check_digit() {
        let rules = RuleFixture::new().load();
        let sent = body(Payout, &json!({ "card_number": "4111111111111112" }));
        let explained = explained(&rules, Payout, &sent);
        let account = explained.members.iter().find(|member| member.v1_name.as_deref() == Some("card_number")).unwrap();
        assert_eq!(line(account), "Forwarded card_number | account_number | - | \"411111******1112\"");
        assert!(!format!("{explained:?}").contains("4111111111"), "{explained:?}");
    }

    #[test]
    fn verdicts() {
        let fixture = RuleFixture::new();
        let rules = fixture.load();
        let refused = |rules: &RuleSet, sent: &str| {
            let explained = explained(rules, Payin, sent);
            let ExplainedVerdict::Refused(refusal) = explained.verdict else { panic!("{explained:?}") };
            assert_eq!(explained.body, sent);
            (refusal.member, refusal.key, explained.members.len())
        };
        let sent = |members| body(Payin, &members);
        assert_eq!(refused(&rules, "{"), ("".into(), "".into(), 0));
        assert_eq!(refused(&rules, &sent(json!({ "amount": 7 }))), ("amount".into(), "".into(), 0));
        assert_eq!(refused(&rules, &sent(json!({ "x": 7 }))), ("x".into(), "v1.unknown_fields".into(), 0));
        let foreign = sent(json!({ "shop_code": "foreign" }));
        let (member, key, members) = refused(&rules, &foreign);
        assert_eq!((&*member, &*key), ("shop_code", "shops.foreign"));
        assert!(members > 5, "a body that is translated is explained, although the engine refuses it");

        let long = sent(json!({ "x": "y".repeat(rules.gateway.limits.body) }));
        let too_long = Explanation { body: String::new(), members: Vec::new(), verdict: ExplainedVerdict::TooLong };
        assert_eq!(explained(&rules, Payin, &long), too_long);

        fixture.put(
            "shops/card.toml",
            "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n[checks]\nrefused_accounts = [7]\n",
        );
        let failing = explained(&fixture.load(), Payin, &sent(json!({ "merchant_user_id": "7" })));
        let expected = ExplainedVerdict::Accepted { shop: "card".into(), failure: Some("refused_account") };
        assert_eq!(failing.verdict, expected);

        fixture.put("gateway.toml", "[engine]\nurl = \"https://v2.example\"\n");
        let remote = fixture.load();
        assert_eq!(explained(&remote, Payin, &foreign).verdict, ExplainedVerdict::RemoteEngine);
        assert_eq!(refused(&remote, "{"), ("".into(), "".into(), 0));
        let merchant = fixture.text("merchants/acme.toml");
        fixture.put("merchants/acme.toml", &merchant.replace("v1_secret = \"a\"\n", ""));
        assert_eq!(explained(&fixture.load(), Payin, &foreign).verdict, ExplainedVerdict::NoKey);
    }
}
