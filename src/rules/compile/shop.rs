//! `shops/<code>.toml` and the schemas they name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use toml::Spanned;

use super::{Context, Here};
use crate::domain::{Direction, ShopCode};
use crate::rules::files::{ContentHash, Role, RuleFile};
use crate::rules::json_places::Places;
use crate::rules::problems::{did_you_mean, quoted};
use crate::rules::raw::{Field, RawAccount, RawChecks, RawPayout, RawShop};
use crate::rules::schema::Lists;
use crate::rules::{AccountRule, FieldsSchema, Shop, ShopSide};

/// How large a compiled pattern may be, in bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// What the schemas of all shops share.
struct Schemas {
    lists: Lists,
    /// Lists of kept names, each once.
    kept_names: HashSet<Arc<[Box<str>]>>,
    /// By text: shops share one of the same text.
    compiled: HashMap<(ContentHash, Direction), Arc<FieldsSchema>>,
}

impl Context<'_> {
    pub(super) fn shops(&mut self) -> HashMap<ShopCode, Option<Arc<Shop>>> {
        let mut schemas = Schemas { lists: self.lists(), kept_names: HashSet::new(), compiled: HashMap::new() };
        let mut shops = HashMap::new();
        for (role, file) in self.files {
            let Role::Shop(name) = role else { continue };
            let Ok(code) = ShopCode::new(name) else { continue };
            let shop = self.shop_file(&code, file, &mut schemas);
            shops.insert(code, shop);
        }
        shops
    }

    fn shop_file(&mut self, code: &ShopCode, file: &RuleFile, schemas: &mut Schemas) -> Option<Arc<Shop>> {
        let (here, raw) = self.read::<RawShop>(file)?;
        self.shop(here, code, &raw, schemas).map(Arc::new)
    }

    fn shop(&mut self, here: Here<'_>, code: &ShopCode, raw: &RawShop, schemas: &mut Schemas) -> Option<Shop> {
        if raw.currency.is_absent() {
            self.problem(here, 0..0, "`currency` is required, such as `currency = \"EUR\"`");
        }
        let payin = raw.payin.get();
        let payin = ShopSide {
            schema: payin.and_then(|side| self.schema(here, &side.schema, Direction::Payin, schemas)),
            browser_return: payin.is_none_or(|side| side.browser_return.or(true)),
        };
        let payout = raw.payout.get();
        let schema = payout.and_then(|side| self.schema(here, &side.schema, Direction::Payout, schemas));
        let payment_method = self.payment_method(here, &raw.payment_method);
        let account = self.account(here, payout, payment_method.as_deref());
        let checks = self.checks(here, raw.checks.get().unwrap_or(&RawChecks::default()));
        let provider = self.provider(here, &raw.provider);
        Some(Shop {
            code: code.clone(),
            name: self.name_for_people(here, "name", &raw.name).unwrap_or_else(|| code.as_str().into()),
            currency: *raw.currency.get()?,
            active: raw.active.or(true),
            payment_method,
            payin,
            payout: ShopSide { schema, browser_return: false },
            account,
            checks,
            provider: provider?,
        })
    }

    fn payment_method(&mut self, here: Here<'_>, field: &Field<String>) -> Option<Box<str>> {
        let given = field.given()?;
        let text = given.get_ref();
        if !(1..=64).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.problem(here, given.span(), "`payment_method` must be 1 to 64 visible ASCII characters");
        }
        Some(text.as_str().into())
    }

    /// Without the key, a shop's payment method decides: merchant-api-v2 words the rule for card and mobile shops.
    fn account(&mut self, here: Here<'_>, side: Option<&RawPayout>, payment_method: Option<&str>) -> AccountRule {
        match (side.and_then(|side| side.account.get()), payment_method) {
            (Some(RawAccount::Card), _) | (None, Some("card")) => AccountRule::Card,
            (Some(RawAccount::Mobile), _) | (None, Some("mobile")) => AccountRule::Mobile,
            (Some(RawAccount::Pattern(pattern)), _) => self.pattern(here, pattern),
            (None, _) => AccountRule::Any,
        }
    }

    fn pattern(&mut self, here: Here<'_>, pattern: &Spanned<String>) -> AccountRule {
        if let Ok(regex) = regex::RegexBuilder::new(pattern.get_ref()).size_limit(LARGEST_PATTERN).build() {
            return AccountRule::Pattern(regex);
        }
        let message = "`payout.account.pattern` must be a regular expression without look-around or back-references";
        self.problem(here, pattern.span(), message);
        AccountRule::Any
    }

    fn schema(
        &mut self,
        here: Here<'_>,
        field: &Field<String>,
        direction: Direction,
        schemas: &mut Schemas,
    ) -> Option<Arc<FieldsSchema>> {
        let named = field.given()?;
        let name = schema_name(named.get_ref());
        let Some(file) = self.files.get(&Role::Schema(name.to_owned())) else {
            if !self.findings.unread("shops", name) {
                self.missing_schema(here, named, name);
            }
            return None;
        };
        if let Some(schema) = schemas.compiled.get(&(file.hash, direction)) {
            return Some(Arc::clone(schema));
        }
        self.schema_file(file, direction, schemas)
    }

    fn schema_file(
        &mut self,
        file: &RuleFile,
        direction: Direction,
        schemas: &mut Schemas,
    ) -> Option<Arc<FieldsSchema>> {
        let found = self.findings.count();
        let id = self.findings.file(&file.path, Arc::clone(&file.text));
        let schema: Value = match serde_json::from_str(&file.text) {
            Ok(schema) => schema,
            Err(error) => {
                let at = byte_of(&file.text, error.line(), error.column());
                self.findings.add(id, at..at + 1, format!("not valid JSON: {}", json_reason(&error)));
                return None;
            }
        };
        let places = Places::of(&file.text);
        for (key, span) in &places.duplicates {
            self.findings.add(id, span.clone(), format!("the key {} is there twice", quoted(key)));
        }
        match FieldsSchema::compile(&schema, direction, &schemas.lists) {
            Ok(mut schema) => {
                schema.share_kept(&mut schemas.kept_names);
                let schema = Arc::new(schema);
                if self.findings.count() == found {
                    schemas.compiled.insert((file.hash, direction), Arc::clone(&schema));
                }
                Some(schema)
            }
            Err(problems) => {
                for problem in problems {
                    let message = format!("{} (the {direction} schema of a shop)", problem.message);
                    self.findings.add_with(id, places.nearest(&problem.at), message, problem.suggestion);
                }
                None
            }
        }
    }

    fn missing_schema(&mut self, here: Here<'_>, named: &Spanned<String>, name: &str) {
        let known = self.files.keys().filter_map(|role| match role {
            Role::Schema(name) => Some(name.as_str()),
            _ => None,
        });
        let suggestion = did_you_mean(name, known);
        let message = format!("{} must be the name of a .json file beside this one", quoted(name));
        self.findings.add_with(here.file, named.span(), format!("`schema`: {message}"), suggestion);
    }
}

/// The file that a shop means by the name of a schema.
fn schema_name(named: &str) -> &str {
    named.strip_prefix("./").unwrap_or(named)
}

/// The byte that a line and column of the JSON parser mean; its columns count bytes.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

/// The parser's words without its place, which is shown already.
fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
