//! Random histories against a simple model: after any failure and any reopening, balances equal the model's and an audit
//! is clean. `PAYBRIDGE_SEED` repeats a run, `PAYBRIDGE_LONG=1` makes many more.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::*;
use crate::domain::{Amount, CustomerAccountId, FailureCause, Kind, Operation, Preparation, State, Status, UnixDay};
use crate::store::Resolutions as _;
use crate::store::conformance::{audited, fresh_id, reported};
use crate::store::{
    AskOutcome, CallbackSubject, ConfirmOutcome, CreateOutcome, DailyLimit, InsertOutcome, JobEnd, NewResolution,
    Reservations, ResolutionId, ResolveOutcome, ResultSource,
};

const MERCHANTS: [&str; 3] = ["acme", "bolt", "cosy"];
const CURRENCIES: [&str; 2] = ["EUR", "USD"];
const ORDERS: u64 = 80;

/// Numbers that depend on the seed alone (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }
}

/// The operators of histories.
const OPERATORS: [&str; 2] = ["ada", "bob"];

type OrderName = (String, Direction, String);
type CustomerDay = (UnixDay, String, Direction, i64);

#[derive(Default)]
struct Model {
    balances: BTreeMap<(String, String), Balance>,
    opened: HashSet<String>,
    usage: HashMap<CustomerDay, (u32, u64)>,
    operations: HashMap<TransactionId, (Operation, Option<CustomerDay>)>,
    orders: HashMap<OrderName, TransactionId>,
    reserved: HashSet<OrderName>,
    reported: HashSet<TransactionId>,
    /// The resolution of an operation that waits, with its user and its result.
    waiting: HashMap<TransactionId, (ResolutionId, &'static str, Outcome)>,
}

impl Model {
    fn balance(&mut self, operation: &Operation) -> &mut Balance {
        let key = (operation.merchant.as_str().to_owned(), operation.currency.as_str().to_owned());
        self.opened.insert(key.0.clone());
        self.balances.entry(key).or_default()
    }

    fn available(&self, operation: &Operation) -> i64 {
        let key = (operation.merchant.as_str().to_owned(), operation.currency.as_str().to_owned());
        self.balances.get(&key).map_or(0, |balance| balance.available)
    }

    fn open(&mut self, merchant: &str, opening: &[(Currency, Amount)]) {
        if self.opened.insert(merchant.to_owned()) {
            for (currency, amount) in opening {
                let key = (merchant.to_owned(), currency.as_str().to_owned());
                self.balances.entry(key).or_default().available += hundredths(*amount);
            }
        }
    }

    /// Returns the reply that the store must give, and updates the model.
    fn create(&mut self, draft: &NewOperation) -> &'static str {
        let operation = &draft.operation;
        let name = name_of(operation);
        if self.reserved.contains(&name) {
            return "reserved";
        }
        if self.orders.contains_key(&name) {
            return "existing";
        }
        let merchant = operation.merchant.as_str();
        if let Some(opening) = &draft.opening {
            self.open(merchant, opening);
        }
        let (answer, counted) = self.judge(draft);
        let mut operation = operation.clone();
        if answer != "as drafted" {
            operation.state = State::Finished { outcome: Outcome::Failed, at: operation.created_at };
        }
        let amount = hundredths(operation.amount);
        match (operation.direction(), operation.state.status()) {
            (Direction::Payin, Status::Success) => self.balance(&operation).available += amount,
            (Direction::Payout, Status::Success) => self.balance(&operation).available -= amount,
            (Direction::Payout, Status::Pending) => {
                let balance = self.balance(&operation);
                balance.available -= amount;
                balance.held += amount;
            }
            _ => {}
        }
        if operation.state != State::Pending {
            self.reported.insert(operation.id);
        }
        self.orders.insert(name, operation.id);
        self.operations.insert(operation.id, (operation, counted));
        answer
    }

    fn judge(&mut self, draft: &NewOperation) -> (&'static str, Option<CustomerDay>) {
        let operation = &draft.operation;
        if operation.state != State::Pending {
            return ("as drafted", None);
        }
        let counted = draft.daily_limit.map(|limit| {
            let customer = operation.customer_account_id.unwrap().0;
            (limit, (limit.day, operation.merchant.as_str().to_owned(), operation.direction(), customer))
        });
        if let Some((limit, key)) = &counted {
            let (operations, amount) = self.usage.get(key).copied().unwrap_or_default();
            let over_number = limit.operations.is_some_and(|most| operations + 1 > most);
            let amount = amount + operation.amount.hundredths();
            if over_number || limit.amount.is_some_and(|most| amount > most.hundredths()) {
                return ("over the limit", None);
            }
        }
        let payout = operation.direction() == Direction::Payout;
        if payout && draft.enforce_balance && self.available(operation) < hundredths(operation.amount) {
            return ("not covered", None);
        }
        if let Some((_, key)) = &counted {
            let usage = self.usage.entry(key.clone()).or_default();
            *usage = (usage.0 + 1, usage.1 + operation.amount.hundredths());
        }
        ("as drafted", counted.map(|(_, key)| key))
    }

    fn complete(&mut self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> CompletionOutcome {
        let Some((operation, counted)) = self.operations.get(&id).cloned() else { return CompletionOutcome::Unknown };
        let finished = match operation.state.clone().finish(outcome, at) {
            Ok(Ok(finished)) => finished,
            Ok(Err(_)) => return CompletionOutcome::AlreadyCompleted,
            Err(contradiction) => return CompletionOutcome::Contradicts(contradiction.completed),
        };
        let (amount, status) = (hundredths(operation.amount), finished.status());
        match (operation.direction(), status) {
            (Direction::Payin, Status::Success) => self.balance(&operation).available += amount,
            (Direction::Payout, Status::Success) => self.balance(&operation).held -= amount,
            (Direction::Payout, _) => {
                let balance = self.balance(&operation);
                balance.held -= amount;
                balance.available += amount;
            }
            _ => {}
        }
        if let (Status::Failed, Some(key)) = (status, counted) {
            let usage = self.usage.get_mut(&key).unwrap();
            *usage = (usage.0 - 1, usage.1 - operation.amount.hundredths());
        }
        self.reported.insert(id);
        self.operations.get_mut(&id).unwrap().0.state = finished;
        CompletionOutcome::Completed
    }

    fn reserve(&mut self, name: OrderName) -> Reservations {
        if self.orders.contains_key(&name) {
            Reservations { operations: 1, ..Reservations::default() }
        } else if self.reserved.insert(name) {
            Reservations { new: 1, ..Reservations::default() }
        } else {
            Reservations { known: 1, ..Reservations::default() }
        }
    }
}

fn name_of(operation: &Operation) -> OrderName {
    (operation.merchant.as_str().to_owned(), operation.direction(), operation.order_id.as_str().to_owned())
}

fn hundredths(amount: Amount) -> i64 {
    amount.hundredths().cast_signed()
}

fn an_opening() -> Arc<[(Currency, Amount)]> {
    CURRENCIES.map(|code| (Currency::new(code).unwrap(), Amount::from_hundredths(500).unwrap())).into()
}

fn random_draft(chance: &mut Chance) -> NewOperation {
    let (name, text) = (chance.of(&MERCHANTS), chance.below(ORDERS).to_string());
    let mut draft = if chance.one_in(3) { deposit(name, &text) } else { withdrawal(name, &text) };
    let operation = &mut draft.operation;
    operation.amount = Amount::from_hundredths(1 + chance.below(300)).unwrap();
    operation.currency = Currency::new(chance.of(&CURRENCIES)).unwrap();
    operation.customer_account_id = Some(CustomerAccountId(chance.below(2).cast_signed()));
    draft.enforce_balance = chance.one_in(2);
    if chance.one_in(2) {
        draft.daily_limit = Some(DailyLimit {
            day: UnixDay(100 + i32::try_from(chance.below(2)).unwrap()),
            operations: chance.one_in(2).then_some(2),
            amount: chance.one_in(2).then(|| Amount::from_hundredths(400).unwrap()),
        });
    }
    if chance.one_in(4) {
        draft.opening = Some(an_opening());
    }
    match chance.below(10) {
        0 => {
            operation.state = State::Finished { outcome: Outcome::Failed, at: NOW };
            draft.failure = Some(FailureCause::Provider);
        }
        1 => operation.state = State::Finished { outcome: Outcome::Success { payer: None }, at: NOW },
        _ => draft.provider_job = Some(NOW),
    }
    draft
}

fn stated(creation: &InsertOutcome) -> &'static str {
    match creation {
        InsertOutcome::Created(CreateOutcome::AsDrafted) => "as drafted",
        InsertOutcome::Created(CreateOutcome::OverDailyLimit) => "over the limit",
        InsertOutcome::Created(CreateOutcome::NotCovered) => "not covered",
        InsertOutcome::Existing(_) => "existing",
        InsertOutcome::Reserved => "reserved",
        InsertOutcome::IdTaken => "taken",
    }
}

struct History {
    place: Place,
    /// `None` only while it is reopened.
    open: Option<SqliteStore>,
    faults: Arc<Faults>,
    chance: Chance,
    model: Model,
    ids: Vec<TransactionId>,
}

impl History {
    fn new(seed: u64) -> Self {
        let place = Place::new();
        let (store, faults) = place.open_faulty();
        Self { place, open: Some(store), faults, chance: Chance(seed), model: Model::default(), ids: Vec::new() }
    }

    async fn step(&mut self) {
        let fails = self.chance.one_in(12);
        self.faults.failing_commits(fails);
        match self.chance.below(28) {
            0..10 => self.create(fails).await,
            10..17 => self.complete(fails).await,
            17 => self.reserve(fails).await,
            18 => self.prepare(fails).await,
            19 | 20 => self.open_ledger(fails).await,
            21 | 22 => self.resolve(fails).await,
            23 | 24 => self.confirm(fails).await,
            25 => self.ask(fails).await,
            26 => self.end_job(fails).await,
            _ => self.reopen(),
        }
        if fails {
            self.faults.failing_commits(false);
            while self.store().probe().await.is_err() {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn create(&mut self, fails: bool) {
        let draft = random_draft(&mut self.chance);
        let id = draft.operation.id;
        // A failed commit does not reach the model.
        let expected = if fails { "" } else { self.model.create(&draft) };
        match self.store().create(draft).await {
            Ok(creation) => assert_eq!(stated(&creation), expected),
            Err(error) => assert!(fails, "{error}"),
        }
        if self.model.operations.contains_key(&id) {
            self.ids.push(id);
        }
    }

    async fn complete(&mut self, fails: bool) {
        let Some(id) = (!self.ids.is_empty()).then(|| self.chance.of(&self.ids)) else { return };
        let outcome = if self.chance.one_in(2) { Outcome::Failed } else { Outcome::Success { payer: None } };
        match self.store().complete(id, outcome.clone(), ResultSource::PROVIDER, NOW).await {
            Ok(completed) => assert_eq!(completed, self.model.complete(id, outcome, NOW)),
            Err(error) => assert!(fails, "{error}"),
        }
    }

    async fn resolve(&mut self, fails: bool) {
        let Some(id) = (!self.ids.is_empty()).then(|| self.chance.of(&self.ids)) else { return };
        let outcome = if self.chance.one_in(2) { Outcome::Failed } else { Outcome::Success { payer: None } };
        let (user, needs_confirmation) = (self.chance.of(&OPERATORS), self.chance.one_in(2));
        let number = ResolutionId(fresh_id(&merchant(MERCHANTS[0])));
        let new = NewResolution {
            id: number,
            transaction_id: id,
            outcome: outcome.clone(),
            reason: "by the statement".into(),
            user: user.into(),
            at: NOW,
            needs_confirmation,
        };
        let state = self.model.operations[&id].0.state.clone();
        match self.store().resolve(new).await {
            Ok(resolved) if state != State::Pending => assert_eq!(resolved, ResolveOutcome::Finished(state.status())),
            Ok(resolved) if needs_confirmation => {
                assert_eq!(resolved, ResolveOutcome::Waits);
                self.model.waiting.insert(id, (number, user, outcome));
            }
            Ok(resolved) => {
                assert_eq!(resolved, ResolveOutcome::Resolved);
                assert_eq!(self.model.complete(id, outcome, NOW), CompletionOutcome::Completed);
            }
            Err(error) => assert!(fails, "{error}"),
        }
    }

    async fn confirm(&mut self, fails: bool) {
        let Some(id) = self.model.waiting.keys().min().copied() else { return };
        let (number, maker, outcome) = self.model.waiting[&id].clone();
        let user = self.chance.of(&OPERATORS);
        let state = self.model.operations[&id].0.state.clone();
        match self.store().confirm(id, number, user.into(), None, NOW).await {
            Ok(confirmed) if state != State::Pending => {
                assert_eq!(confirmed, ConfirmOutcome::Finished(state.status()), "a result made it void");
                self.model.waiting.remove(&id);
            }
            Ok(confirmed) if user == maker => assert_eq!(confirmed, ConfirmOutcome::SameOperator),
            Ok(confirmed) => {
                assert_eq!(self.model.complete(id, outcome, NOW), CompletionOutcome::Completed);
                let status = self.model.operations[&id].0.state.status();
                assert_eq!(confirmed, ConfirmOutcome::Resolved(status));
                self.model.waiting.remove(&id);
            }
            Err(error) => assert!(fails, "{error}"),
        }
    }

    async fn ask(&mut self, fails: bool) {
        let Some(id) = (!self.ids.is_empty()).then(|| self.chance.of(&self.ids)) else { return };
        let state = &self.model.operations[&id].0.state;
        match self.store().ask_again(id, NOW).await {
            Ok(called) if *state != State::Pending => assert_eq!(called, AskOutcome::Finished(state.status())),
            Ok(called) => assert_eq!(called, AskOutcome::Due),
            Err(error) => assert!(fails, "{error}"),
        }
    }

    async fn end_job(&mut self, fails: bool) {
        let Some(id) = (!self.ids.is_empty()).then(|| self.chance.of(&self.ids)) else { return };
        let end = self.chance.of(&[JobEnd::ReportAwaited, JobEnd::CustomerAwaited, JobEnd::GivenUp]);
        if let Err(error) = self.store().end_provider_job(id, end, NOW).await {
            assert!(fails, "{error}");
        }
    }

    async fn reserve(&mut self, fails: bool) {
        let (name, text) = (self.chance.of(&MERCHANTS), self.chance.below(ORDERS).to_string());
        let direction = if self.chance.one_in(2) { Direction::Payin } else { Direction::Payout };
        match self.store().reserve(&merchant(name), direction, &[order(&text)], NOW).await {
            Ok(reservations) => assert_eq!(reservations, self.model.reserve((name.to_owned(), direction, text))),
            Err(error) => assert!(fails, "{error}"),
        }
    }

    async fn open_ledger(&mut self, fails: bool) {
        let name = self.chance.of(&MERCHANTS);
        let opening = an_opening();
        match self.store().open_ledger(&merchant(name), Arc::clone(&opening), NOW).await {
            Ok(()) => self.model.open(name, &opening),
            Err(error) => assert!(fails, "{error}"),
        }
    }

    async fn prepare(&mut self, fails: bool) {
        let Some(id) = (!self.ids.is_empty()).then(|| self.chance.of(&self.ids)) else { return };
        let (operation, _) = &self.model.operations[&id];
        let pending = operation.state == State::Pending && matches!(operation.kind, Kind::Deposit(_));
        match self.store().prepare(id, Preparation::Stopped, JobEnd::ReportAwaited, NOW).await {
            Ok(kept) => assert_eq!(kept, pending),
            Err(error) => assert!(fails, "{error}"),
        }
    }

    fn store(&self) -> &SqliteStore {
        self.open.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.open = None;
        let (store, faults) = self.place.open_faulty();
        (self.open, self.faults) = (Some(store), faults);
    }

    async fn check(&self) {
        audited(self.store()).await;
        let mut balances = BTreeMap::new();
        for name in MERCHANTS {
            for (currency, balance) in self.store().balances(&merchant(name)).await.unwrap() {
                balances.insert((name.to_owned(), currency.as_str().to_owned()), balance);
            }
        }
        assert_eq!(balances, self.model.balances);
        let reported: Vec<_> = reported(self.store()).await.iter().map(|callback| callback.id.subject()).collect();
        assert_eq!(reported.len(), self.model.reported.len());
        let expected: HashSet<_> = self.model.reported.iter().map(|id| CallbackSubject::Operation(*id)).collect();
        assert_eq!(reported.into_iter().collect::<HashSet<_>>(), expected);
        for (id, (operation, _)) in &self.model.operations {
            assert_eq!(self.store().by_id(*id).await.unwrap().unwrap().operation, *operation);
        }
    }
}

// keeps D055
#[tokio::test]
async fn random_histories_keep_the_books() {
    let given = std::env::var("PAYBRIDGE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| SystemRandomness::default().number());
    let _ = writeln!(std::io::stderr(), "PAYBRIDGE_SEED={seed}");
    let histories = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 200 } else { 6 };
    for number in 0..histories {
        let mut history = History::new(seed.wrapping_add(number));
        for step in 0..300 {
            history.step().await;
            if step % 50 == 0 {
                history.check().await;
            }
        }
        history.check().await;
    }
}
