//! Compiles `shops/<code>.toml` and the schemas that they name.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use regex::Regex;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::provider::{RawProvider, expected_within};
use super::reconcile::RawReconcile;
use super::{Context, FileContext, ReadFile};
use crate::domain::{Amount, Currency, CustomerAccountId, Direction, ShopCode};
use crate::names::quoted;
use crate::rules::files::{ContentHash, FileRole, RuleFile, RuleFiles, content_hash};
use crate::rules::raw::{Cidr, DisplayName, Field, FromToml, List, RawReader, Visible, raw_table};
use crate::rules::schema::AllowedLists;
use crate::rules::setting::Effect::{Allows, Neither, Refuses, TakesAway};
use crate::rules::setting::{OnChange, SettingEntry, Settings};
use crate::rules::{AccountRule, AddressSet, DailyLimits, DirectionRules, FieldsSchema, PaymentChecks, Shop};

raw_table! {
    /// `shops/<code>.toml`: one shop, its currency, schemas, checks and provider. The file's name is the shop's code.
    struct RawShop {
        /// The shop's name, which customers read on payment pages: 1 to 100 characters. Without it, the code is shown.
        name: DisplayName where { "examples": ["Cards in euro"] }
            => OnChange::always(Neither).meaning("what customers read on payment pages")
                .or_else(|_, at| Some(at.file_stem())),
        /// The only currency that the shop accepts: 3 letters.
        currency: Currency = required => OnChange::always(Refuses).meaning("operations in the old currency get 400"),
        /// Whether the shop accepts operations. `false`: new operations are 400.
        active: bool = true
            => OnChange::when("true", Allows, TakesAway).meaning("whether new operations are accepted"),
        /// The `method` of the status record when the create request names none: 1 to 64 visible ASCII characters.
        /// `card` and `mobile` also decide the default of `payout.account`.
        payment_method: Visible<64> where { "examples": ["card", "mobile"] }
            => OnChange::always(Refuses).meaning("`method` of a status whose request named no shop"),
        /// Deposits.
        payin: RawPayin = section,
        /// Withdrawals.
        payout: RawPayout = section,
        /// Limits on customers and amounts. An operation that fails a check is created FAILED: the reply is HTTP 200,
        /// the provider does not receive it, and no money moves.
        checks: RawChecks = section,
        /// The system that moves the money.
        provider: RawProvider = required => OnChange::always(Refuses).checks_no_create(),
        /// How the provider's statement is compared with the operations.
        reconcile: RawReconcile
            => OnChange::always(Neither).meaning("how `reconcile` reads a statement").checks_no_create(),
    }
}

raw_table! {
    /// `[payin]`.
    struct RawPayin {
        /// The JSON Schema of `fields`: the name of a `.json` file in the same directory. Without it every `fields`
        /// object is accepted.
        schema: String where { "pattern": SCHEMA_NAME, "examples": ["card-eur.payin.json"] }
            => OnChange::always(Refuses).read_by(schema_entry),
        /// Whether pages offer the signed return link, and HTTP providers receive it.
        browser_return: bool = true => OnChange::always(Neither),
    }
}

raw_table! {
    /// `[payout]`.
    struct RawPayout {
        /// The JSON Schema of `fields`: the name of a `.json` file in the same directory. Without it every `fields`
        /// object is accepted.
        schema: String where { "pattern": SCHEMA_NAME, "examples": ["card-eur.payout.json"] }
            => OnChange::always(Refuses).read_by(schema_entry),
        /// The format of a recipient's account. Without it `payment_method` decides: `card`, `mobile`, else any.
        ///
        /// - `"card"`: 12 to 19 digits
        /// - `"mobile"`: `+` and 8 to 15 digits
        /// - `{ pattern = "^[A-Z]{2}[0-9]{10,32}$" }`: a regular expression without look-around and back-references. It
        ///   matches anywhere: anchor it. `\d`, `\w` and `\s` mean ASCII
        account: AccountRule
            => OnChange::when("any", Allows, Refuses)
                .or_else(|settings, _| Some(account_of_method(settings).to_owned())),
    }
}

/// Reads the name of a schema for comparison.
fn schema_entry(text: &str, _: &Path) -> SettingEntry {
    SettingEntry::spelled(text, schema_name(text).to_owned())
}

/// Returns the format of accounts without `payout.account`.
fn account_of_method(settings: &Settings) -> &str {
    let method = settings.first("payment_method").filter(|method| ["card", "mobile"].contains(method));
    method.unwrap_or("any")
}

/// The pattern of the names of schemas.
const SCHEMA_NAME: &str = r"^(\./)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\.json$";

raw_table! {
    /// `account = { pattern = "..." }`.
    struct RawPattern {
        /// A regular expression without look-around and back-references. It matches anywhere: anchor it. `\d`, `\w` and
        /// `\s` mean ASCII.
        pattern: Regex = required where { "examples": ["^[A-Z]{2}[0-9]{10,32}$"] },
    }
}

impl FromToml for AccountRule {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(text) if text == "card" => Some(Self::Card),
            DeValue::String(text) if text == "mobile" => Some(Self::Mobile),
            DeValue::Table(_) => RawPattern::from_toml(value, reader)?.pattern.get().cloned().map(Self::Pattern),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                reader.wrong(value.span(), "must be `card`, `mobile` or { pattern = \"...\" }");
                None
            }
        }
    }

    fn schema() -> Value {
        json!({
            "anyOf": [{ "type": "string", "enum": ["card", "mobile"] }, RawPattern::schema()],
        })
    }
}

raw_table! {
    /// `[checks]`.
    struct RawChecks {
        /// Refused addresses of customers: addresses and networks, compared with `fields.merchant_user_ip` if it was
        /// sent. The connection's address is never used instead. IPv4-mapped IPv6 counts as IPv4.
        refused_addresses: List<Cidr> = []
            => OnChange::entries(Refuses, Allows).meaning("operations of these are created FAILED"),
        /// Refused customers: signed 64-bit integers, compared with `customer_account_id` if it was sent.
        refused_accounts: List<i64> = []
            => OnChange::entries(Refuses, Allows).meaning("operations of these are created FAILED"),
        /// How much one customer may deposit on one UTC day in this shop.
        payin: RawDailyLimits = section,
        /// How much one customer may withdraw on one UTC day in this shop.
        payout: RawDailyLimits = section,
    }
}

raw_table! {
    /// `[checks.payin]` and `[checks.payout]`.
    struct RawDailyLimits {
        /// How many operations of this direction one customer may have on one UTC day: 1 to 1000000. Without it, any
        /// number.
        operations_per_day: u32 => OnChange::more(),
        /// The largest sum of a customer's operations of this direction on one UTC day, in the shop's currency, as a
        /// string. Without it, any sum.
        amount_per_day: Amount where { "examples": ["2500.00"] } => OnChange::more(),
    }
}

/// Compiled schemas, by a hash of their input: text, direction and all lists. Shops with the same schema share one, and
/// a reload reuses those that did not change.
type Schemas = HashMap<ContentHash, Arc<FieldsSchema>>;

/// What all shops of a rule set share while they are compiled.
struct SharedInput {
    lists: AllowedLists,
    /// The hash of all list files.
    lists_hash: ContentHash,
    schemas: Schemas,
}

impl Context<'_> {
    pub(super) fn shops(&mut self) -> (HashMap<ShopCode, Option<Arc<Shop>>>, Schemas) {
        let lists = self.lists();
        let mut shared = SharedInput { lists, lists_hash: lists_hash(self.files), schemas: Schemas::new() };
        let mut shops = HashMap::new();
        for (role, file) in self.files {
            let FileRole::Shop(name) = role else { continue };
            let Ok(code) = ShopCode::new(name) else { continue };
            let shop = self.shop(&code, file, &mut shared).map(Arc::new);
            shops.insert(code, shop);
        }
        (shops, shared.schemas)
    }

    fn shop(&mut self, code: &ShopCode, file: &RuleFile, shared: &mut SharedInput) -> Option<Shop> {
        let ReadFile { context, raw, document } = self.read::<RawShop>(file)?;
        let payin = self.schema(context, &raw.payin.schema, Direction::Payin, shared);
        let payout = self.schema(context, &raw.payout.schema, Direction::Payout, shared);
        let payment_method = raw.payment_method.get().map(|method| method.0.clone());
        // Without the key the payment method decides, for card and mobile shops (promises P161 and P162).
        let account = raw.payout.account.get().cloned().unwrap_or(match payment_method.as_deref() {
            Some("card") => AccountRule::Card,
            Some("mobile") => AccountRule::Mobile,
            _ => AccountRule::Any,
        });
        let provider = self.provider(context, &raw.provider);
        let reconcile = self.reconcile(context, &raw.reconcile);
        let shop = Shop {
            code: code.clone(),
            name: raw.name.get().map_or_else(|| code.as_str().into(), |name| name.0.clone()),
            currency: *raw.currency.get()?,
            active: *raw.active,
            payment_method: payment_method.map(Arc::from),
            payin: DirectionRules {
                schema: payin,
                schema_file: schema_file(&raw.payin.schema),
                browser_return: *raw.payin.browser_return,
            },
            payout: DirectionRules {
                schema: payout,
                schema_file: schema_file(&raw.payout.schema),
                browser_return: false,
            },
            account,
            checks: checks(&raw.checks),
            provider: provider?,
            expected_within: expected_within(&raw.provider),
            reconcile,
        };
        self.hash_shop(&shop, &document);
        Some(shop)
    }

    fn schema(
        &mut self,
        context: FileContext<'_>,
        field: &Field<String>,
        direction: Direction,
        shared: &mut SharedInput,
    ) -> Option<Arc<FieldsSchema>> {
        let named = field.given()?;
        let name = schema_name(named.get_ref());
        let Some(file) = self.files.get(&FileRole::Schema(name.to_owned())) else {
            let message = format!("`schema`: {} must be the name of a .json file in the same directory", quoted(name));
            let known = self
                .files
                .keys()
                .filter_map(|role| if let FileRole::Schema(name) = role { Some(name.as_str()) } else { None });
            self.unknown_name(context, named, ("shops", ""), message, known);
            return None;
        };
        let hash = content_hash(&[&file.hash[..], direction.as_str().as_bytes(), &shared.lists_hash].concat());
        let before = self.previous.and_then(|rules| rules.schemas.get(&hash));
        if let Some(schema) = shared.schemas.get(&hash).or(before).map(Arc::clone) {
            shared.schemas.insert(hash, Arc::clone(&schema));
            return Some(schema);
        }
        let id = self.diagnostics.file(&file.path, Arc::clone(&file.text));
        match FieldsSchema::read(&file.text, direction, &shared.lists) {
            Ok(schema) => Some(Arc::clone(shared.schemas.entry(hash).or_insert(Arc::new(schema)))),
            Err(problems) => {
                for problem in problems {
                    self.diagnostics.add_with(id, problem.span, problem.message, problem.suggestion);
                }
                None
            }
        }
    }
}

/// Returns a hash of all lists and their names.
fn lists_hash(files: &RuleFiles) -> ContentHash {
    let lists = files.iter().filter(|(role, _)| matches!(role, FileRole::List { .. }));
    let all: Vec<u8> =
        lists.flat_map(|(_, file)| [file.path.as_os_str().as_encoded_bytes(), &file.hash].concat()).collect();
    content_hash(&all)
}

fn checks(raw: &RawChecks) -> PaymentChecks {
    let limits = |raw: &RawDailyLimits| DailyLimits {
        operations: raw.operations_per_day.get().copied(),
        amount: raw.amount_per_day.get().copied(),
    };
    PaymentChecks {
        refused_addresses: AddressSet::new(raw.refused_addresses.values().map(|prefix| prefix.0)),
        refused_accounts: raw.refused_accounts.values().copied().map(CustomerAccountId).collect(),
        payin: limits(&raw.payin),
        payout: limits(&raw.payout),
    }
}

/// Returns the name of a schema's file; empty without one.
fn schema_file(named: &Field<String>) -> Box<str> {
    named.get().map_or("", |named| schema_name(named)).into()
}

/// Removes the optional `./` from the name of a schema file.
fn schema_name(named: &str) -> &str {
    named.strip_prefix("./").unwrap_or(named)
}
