//! Random steps of operators, providers and merchants, and a simple model that states the answers of a store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use fastrand::Rng;

use super::{NOW, audited, deposit, fresh_id, merchant, order, reported, withdrawal};
use crate::domain::{
    Amount, Balance, Currency, CustomerAccountId, Direction, FailureCause, Kind, Operation, Outcome, Preparation,
    State, Status, TransactionId, UnixDay,
};
use crate::store::{
    AskOutcome, CallbackSubject, CompletionOutcome, ConfirmOutcome, CreateOutcome, DailyLimit, InsertOutcome, JobEnd,
    NewOperation, NewResolution, Reservations, ResolutionId, ResolutionState, ResolveOutcome, ResultSource, Store,
    StoreError,
};

const MERCHANTS: [&str; 3] = ["acme", "bolt", "cosy"];
const CURRENCIES: [&str; 2] = ["EUR", "USD"];
const ORDERS: u64 = 80;
const OPERATORS: [&str; 2] = ["ada", "bob"];

type OrderName = (String, Direction, String);
type CustomerDay = (UnixDay, String, Direction, i64);

/// A change of a store.
#[derive(Debug, Clone)]
pub(in crate::store) enum Step {
    Create(Box<NewOperation>),
    Report(TransactionId, Outcome),
    Resolve(NewResolution),
    Confirm(TransactionId, ResolutionId, &'static str),
    Ask(TransactionId),
    EndJob(TransactionId, JobEnd),
    Prepare(TransactionId),
    Reserve(OrderName),
    OpenLedger(&'static str),
}

impl Step {
    /// Makes the change; returns the store's answer.
    pub(in crate::store) async fn run(&self, store: &dyn Store) -> Result<String, StoreError> {
        Ok(match self.clone() {
            Self::Create(draft) => stated(&store.create(*draft).await?).to_owned(),
            Self::Report(id, outcome) => {
                format!("{:?}", store.complete(id, outcome, ResultSource::PROVIDER, NOW).await?)
            }
            Self::Resolve(new) => format!("{:?}", store.resolve(new).await?),
            Self::Confirm(id, resolution, user) => {
                format!("{:?}", store.confirm(id, resolution, user.into(), None, NOW).await?)
            }
            Self::Ask(id) => format!("{:?}", store.ask_again(id, NOW).await?),
            Self::EndJob(id, end) => format!("{:?}", store.end_provider_job(id, end, NOW).await?),
            Self::Prepare(id) => {
                format!("{:?}", store.prepare(id, Preparation::Stopped, JobEnd::ReportAwaited, NOW).await?)
            }
            Self::Reserve((name, direction, text)) => {
                format!("{:?}", store.reserve(&merchant(&name), direction, &[order(&text)], NOW).await?)
            }
            Self::OpenLedger(name) => format!("{:?}", store.open_ledger(&merchant(name), an_opening(), NOW).await?),
        })
    }
}

/// What a store must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::store) struct Model {
    balances: BTreeMap<(String, String), Balance>,
    opened: HashSet<String>,
    usage: HashMap<CustomerDay, (u32, u64)>,
    operations: BTreeMap<TransactionId, (Operation, Option<CustomerDay>)>,
    orders: HashMap<OrderName, TransactionId>,
    reserved: HashSet<OrderName>,
    reported: HashSet<TransactionId>,
    /// The resolution of an operation that was made last and needs a confirmation, with its user and its result.
    waiting: BTreeMap<TransactionId, (ResolutionId, &'static str, Outcome)>,
    /// The resolutions that were confirmed, with the other user and the result.
    confirmed: HashMap<TransactionId, (&'static str, Status)>,
}

impl Model {
    /// Returns a step that makes sense in this state; of an operation, most often one of the latest.
    pub(in crate::store) fn step(&self, chance: &mut Rng) -> Step {
        let latest: Vec<_> = self.operations.keys().rev().copied().take(if chance.bool() { 3 } else { 300 }).collect();
        let kind = if latest.is_empty() { 0 } else { chance.u64(..28) };
        let outcome = if chance.bool() { Outcome::Failed } else { Outcome::Success { payer: None } };
        match kind {
            0..10 => Step::Create(Box::new(random_draft(chance))),
            10..16 => Step::Report(*chance.choice(&latest).unwrap(), outcome),
            16 => {
                let direction = if chance.bool() { Direction::Payin } else { Direction::Payout };
                Step::Reserve((
                    chance.choice(MERCHANTS).unwrap().to_owned(),
                    direction,
                    chance.u64(..ORDERS).to_string(),
                ))
            }
            17 | 18 => Step::Prepare(*chance.choice(&latest).unwrap()),
            19 | 20 => Step::OpenLedger(chance.choice(MERCHANTS).unwrap()),
            21..24 => Step::Resolve(NewResolution {
                id: ResolutionId(fresh_id(&merchant(MERCHANTS[0]))),
                transaction_id: *chance.choice(&latest).unwrap(),
                outcome,
                reason: "by the statement".into(),
                user: chance.choice(OPERATORS).unwrap().into(),
                at: NOW,
                needs_confirmation: chance.bool(),
            }),
            24 | 25 => match self.waiting.iter().next_back() {
                Some((id, (resolution, ..))) => Step::Confirm(*id, *resolution, chance.choice(OPERATORS).unwrap()),
                None => Step::Ask(*chance.choice(&latest).unwrap()),
            },
            26 => Step::Ask(*chance.choice(&latest).unwrap()),
            _ => {
                let ends = [JobEnd::ReportAwaited, JobEnd::CustomerAwaited, JobEnd::GivenUp];
                Step::EndJob(*chance.choice(&latest).unwrap(), chance.choice(ends).unwrap())
            }
        }
    }

    /// Makes a change; returns the answer that a store must give.
    pub(in crate::store) fn run(&mut self, step: &Step) -> String {
        match step {
            Step::Create(draft) => self.create(draft).to_owned(),
            Step::Report(id, outcome) => format!("{:?}", self.complete(*id, outcome.clone())),
            Step::Resolve(new) => format!("{:?}", self.resolve(new)),
            Step::Confirm(id, resolution, user) => format!("{:?}", self.confirm(*id, *resolution, user)),
            Step::Ask(id) => match self.state(*id) {
                State::Pending => format!("{:?}", AskOutcome::Due),
                finished @ State::Finished { .. } => format!("{:?}", AskOutcome::Finished(finished.status())),
            },
            Step::EndJob(..) => "()".to_owned(),
            Step::Prepare(id) => {
                let (operation, _) = &self.operations[id];
                (operation.state == State::Pending && matches!(operation.kind, Kind::Deposit(_))).to_string()
            }
            Step::Reserve(name) => format!("{:?}", self.reserve(name.clone())),
            Step::OpenLedger(name) => {
                self.open(name, &an_opening());
                "()".to_owned()
            }
        }
    }

    /// Asserts that a store is as the model states.
    pub(in crate::store) async fn check(&self, store: &dyn Store) {
        audited(store).await;
        assert_eq!(balances(store).await, self.balances);
        let reported: Vec<_> = reported(store).await.iter().map(|callback| callback.id.subject()).collect();
        assert_eq!(reported.len(), self.reported.len());
        let expected: HashSet<_> = self.reported.iter().map(|id| CallbackSubject::Operation(*id)).collect();
        assert_eq!(reported.into_iter().collect::<HashSet<_>>(), expected);
        for (id, (operation, _)) in &self.operations {
            assert_eq!(store.by_id(*id).await.unwrap().unwrap().operation, *operation);
        }
    }

    /// Reports whether a store has the model's balances, states and waiting resolutions.
    pub(in crate::store) async fn fits(&self, store: &dyn Store) -> bool {
        if balances(store).await != self.balances {
            return false;
        }
        for (id, (operation, _)) in &self.operations {
            if store.by_id(*id).await.unwrap().is_none_or(|stored| stored.operation.state != operation.state) {
                return false;
            }
        }
        for (id, (resolution, ..)) in self.waiting.iter().filter(|(id, _)| self.state(**id) == State::Pending) {
            let detail = store.operation_detail(*id).await.unwrap().unwrap();
            let waits = detail.resolutions.iter().find(|record| record.state == ResolutionState::Waits);
            if waits.map(|record| record.id) != Some(*resolution) {
                return false;
            }
        }
        true
    }

    fn state(&self, id: TransactionId) -> State {
        self.operations[&id].0.state.clone()
    }

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

    fn complete(&mut self, id: TransactionId, outcome: Outcome) -> CompletionOutcome {
        let Some((operation, counted)) = self.operations.get(&id).cloned() else { return CompletionOutcome::Unknown };
        let finished = match operation.state.clone().finish(outcome, NOW) {
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

    fn resolve(&mut self, new: &NewResolution) -> ResolveOutcome {
        let state = self.state(new.transaction_id);
        if state != State::Pending {
            return ResolveOutcome::Finished(state.status());
        }
        if new.needs_confirmation {
            let user = OPERATORS.into_iter().find(|user| **user == *new.user).unwrap();
            self.waiting.insert(new.transaction_id, (new.id, user, new.outcome.clone()));
            return ResolveOutcome::Waits;
        }
        assert_eq!(self.complete(new.transaction_id, new.outcome.clone()), CompletionOutcome::Completed);
        ResolveOutcome::Resolved
    }

    fn confirm(&mut self, id: TransactionId, resolution: ResolutionId, user: &'static str) -> ConfirmOutcome {
        let state = self.state(id);
        if state != State::Pending {
            self.waiting.remove(&id);
            let own = self.confirmed.get(&resolution.0).filter(|(confirmed_by, _)| *confirmed_by == user);
            return own
                .map_or(ConfirmOutcome::Finished(state.status()), |(_, status)| ConfirmOutcome::Resolved(*status));
        }
        match self.waiting.get(&id).cloned() {
            Some((waiting, maker, _)) if waiting == resolution && maker == user => ConfirmOutcome::SameOperator,
            Some((waiting, _, outcome)) if waiting == resolution => {
                assert_eq!(self.complete(id, outcome.clone()), CompletionOutcome::Completed);
                self.waiting.remove(&id);
                self.confirmed.insert(resolution.0, (user, outcome.status()));
                ConfirmOutcome::Resolved(outcome.status())
            }
            Some(_) | None => ConfirmOutcome::NotWaiting,
        }
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

async fn balances(store: &dyn Store) -> BTreeMap<(String, String), Balance> {
    let mut balances = BTreeMap::new();
    for name in MERCHANTS {
        for (currency, balance) in store.balances(&merchant(name)).await.unwrap() {
            balances.insert((name.to_owned(), currency.as_str().to_owned()), balance);
        }
    }
    balances
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

fn random_draft(chance: &mut Rng) -> NewOperation {
    let (name, text) = (chance.choice(MERCHANTS).unwrap(), chance.u64(..ORDERS).to_string());
    let mut draft = if chance.u8(..3) == 0 { deposit(name, &text) } else { withdrawal(name, &text) };
    let operation = &mut draft.operation;
    operation.amount = Amount::from_hundredths(1 + chance.u64(..300)).unwrap();
    operation.currency = Currency::new(chance.choice(CURRENCIES).unwrap()).unwrap();
    operation.customer_account_id = Some(CustomerAccountId(chance.u64(..2).cast_signed()));
    draft.enforce_balance = chance.bool();
    if chance.bool() {
        draft.daily_limit = Some(DailyLimit {
            day: UnixDay(100 + i32::try_from(chance.u64(..2)).unwrap()),
            operations: chance.bool().then_some(2),
            amount: chance.bool().then(|| Amount::from_hundredths(400).unwrap()),
        });
    }
    if chance.u8(..4) == 0 {
        draft.opening = Some(an_opening());
    }
    match chance.u64(..10) {
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
