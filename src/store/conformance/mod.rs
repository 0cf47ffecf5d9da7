//! The conformance suite of the store. [`conformance!`] makes a test of each case for a backend. A backend adds tests
//! only for its own parts: files, connections, failing disks.

mod callbacks;
mod complete;
mod create;
mod history;
mod jobs;
mod journal;
mod money;
mod outbox;
mod reservations;
mod statuses;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::{
    AccountNumber, Amount, BrowserUrl, Bucket, CallbackUrl, Currency, Deposit, Fingerprint, HistoryQuery, Kind,
    MerchantId, Operation, OrderId, ProviderKind, RedirectUrl, ShopCode, State, TransactionId, UnixMillis, Withdrawal,
};
use crate::store::{
    Audit, CreateOutcome, Fields, InsertOutcome, NewOperation, RequestFingerprint, SchemaFields, Store, Stored,
};

pub(super) use callbacks::*;
pub(super) use complete::*;
pub(super) use create::*;
pub(super) use history::*;
pub(super) use jobs::*;
pub(super) use journal::*;
pub(super) use money::*;
pub(super) use outbox::*;
pub(super) use reservations::*;
pub(super) use statuses::*;

/// The storage of one store under test.
pub(super) trait TestBackend: Send + Sync {
    /// Opens the store, with the same data every time.
    fn open(&self) -> Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send + '_>>;
}

/// Makes the tests of a backend. The argument is an expression that returns a fresh [`TestBackend`].
macro_rules! conformance {
    ($backend:expr) => {
        conformance!(@cases $backend;
            every_member_comes_back,
            optional_members_may_be_absent,
            a_failed_deposit_is_created_failed,
            an_order_exists_once,
            one_of_many_concurrent_creates_wins,
            orders_are_scoped_by_merchant_and_direction,
            a_taken_id_is_reported,
            kept_names_come_back_after_reopening,
            everything_survives_reopening,
            unknown_operations_are_absent,
            a_result_is_booked_once_and_for_ever,
            an_unknown_operation_is_not_settled,
            a_payer_comes_back,
            a_status_says_what_the_whole_operation_does,
            a_status_of_nothing_is_none,
            a_result_is_reported_even_when_its_creator_hears_of_the_create_last,
            concurrent_results_book_one,
            jobs_are_claimed_in_order_and_leased,
            jobs_that_are_stored_together_are_due_each_at_its_time,
            a_result_ends_its_job,
            a_job_can_be_ended,
            jobs_survive_reopening,
            a_job_is_claimed_once_by_many,
            queues_of_shops_are_apart,
            a_job_can_be_postponed,
            postponed_jobs_keep_their_time_over_a_restart,
            the_kind_of_provider_comes_back,
            money_moves_as_results_say,
            operations_finished_at_creation_book_at_once,
            repeated_results_book_nothing,
            an_existing_order_books_nothing,
            exactly_what_is_covered_is_withdrawn,
            an_uncovered_withdrawal_leaves_only_itself,
            a_ledger_is_opened_once,
            a_later_operation_opens_nothing,
            a_ledger_is_opened_without_an_operation,
            a_ledger_is_opened_by_a_question_or_an_operation,
            daily_limits_hold_under_concurrency,
            daily_limits_are_of_a_customer_shop_direction_and_day,
            a_failure_gives_the_daily_usage_back,
            the_usage_of_many_days_is_kept_apart,
            a_result_is_reported_once_to_whom_it_concerns,
            a_hold_out_of_range_is_not_booked,
            reserved_orders_are_refused,
            a_reservation_never_touches_an_operation,
            a_race_for_an_order_has_one_winner,
            a_preparation_is_kept_until_the_result,
            only_pending_deposits_are_prepared,
            a_history_is_the_merchants_own_made_through_v1,
            filters_of_a_history_alone_and_combined,
            pages_of_a_history_tile_it,
            a_result_moves_an_operation_between_statuses,
            times_of_a_history_are_inclusive_to_the_millisecond,
            operations_of_one_millisecond_keep_their_order,
            an_audit_goes_on_beside_creates,
            every_member_of_an_entry_comes_back,
            an_order_has_one_entry,
            one_of_many_concurrent_intents_is_written,
            entries_are_scoped_by_merchant_and_direction,
            reserved_orders_are_not_written_down,
            the_first_answer_stands,
            an_answer_brings_a_withdrawn_entry_back,
            a_late_answer_leaves_what_took_its_order,
            an_answer_is_never_lost_in_a_race,
            moves_from_other_states_change_nothing,
            a_transaction_is_of_one_order,
            a_doubt_has_its_latest_time,
            what_was_sent_again_is_not_withdrawn,
            a_shop_that_was_not_known_is_received_once,
            what_is_received_is_kept_until_the_result,
            the_first_result_received_stands_in_a_race,
            open_entries_come_oldest_first,
            pages_of_what_passed_are_exact,
            a_result_queues_its_callback,
            callbacks_are_claimed_in_order_by_share_and_leased,
            a_callback_is_claimed_once_by_many,
            callbacks_survive_reopening,
            tries_lead_to_delivery_or_failure,
            only_a_delivery_counts_late,
            whoever_claims_next_is_not_disturbed_by_the_one_before,
            a_callback_can_be_postponed,
            the_latest_tries_are_kept,
            what_is_too_old_is_given_up,
            what_was_reported_long_ago_is_forgotten,
            an_announcement_waits_for_the_engines_word,
            an_announcement_is_queued_once,
            what_has_nothing_to_tell_is_forgotten,
            whoever_asked_too_early_says_nothing_of_the_next_one,
            an_announced_entry_is_not_lost,
            a_relay_address_names_its_order,
            callbacks_are_resent_from_every_state,
            lists_of_callbacks_are_exact,
            failed_callbacks_are_resent_by_query,
            the_outbox_tells_how_much_waits,
            a_closed_outbox_says_so,
            a_closed_journal_says_so,
            a_closed_store_says_so
        );
    };
    (@cases $backend:expr; $($case:ident),*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::store::conformance::$case(&$backend).await;
            }
        )*
    };
}
pub(super) use conformance;

pub(super) const CARD: &str = "4929420573595709";
pub(super) const PAYER: &str = "5425233430109903";
pub(super) const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

/// Returns a new id of a merchant, different from all earlier ones.
pub(super) fn fresh_id(merchant: &MerchantId) -> TransactionId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let millis = i64::try_from(number >> 12).unwrap();
    TransactionId::compose(UnixMillis(NOW.0 + millis), Bucket::of(merchant), number)
}

pub(super) fn merchant(name: &str) -> MerchantId {
    MerchantId::new(name).unwrap()
}

pub(super) fn order(text: &str) -> OrderId {
    OrderId::new(text).unwrap()
}

/// A deposit without optional members.
pub(super) fn deposit(merchant_name: &str, order_text: &str) -> NewOperation {
    let merchant = merchant(merchant_name);
    let done = BrowserUrl::new("https://acme.example/done").unwrap();
    let id = fresh_id(&merchant);
    NewOperation {
        operation: Operation {
            id,
            merchant,
            order_id: order(order_text),
            amount: Amount::from_hundredths(1050).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            method: None,
            shop: ShopCode::new("card-eur").unwrap(),
            payment_method: None,
            customer_account_id: None,
            callback_url: CallbackUrl::new("https://acme.example/callback").unwrap(),
            kind: Kind::Deposit(Deposit {
                success_url: done.clone(),
                pending_url: done.clone(),
                fail_url: done,
                redirect_url: RedirectUrl::new(format!("https://localhost:8443/pay/{id}?expires=1&signature=ab")),
            }),
            provider: ProviderKind::Sandbox,
            state: State::Pending,
            created_at: NOW,
        },
        order_key: None,
        api_key: "acme-live".into(),
        fields: Fields::default(),
        comparison: RequestFingerprint { fingerprint: Fingerprint([7; 16]), kept: SchemaFields::Everything },
        v1: None,
        provider_job: None,
        opening: Some(Arc::default()),
        enforce_balance: false,
        daily_limit: None,
    }
}

/// A withdrawal to [`CARD`] without optional members.
pub(super) fn withdrawal(merchant_name: &str, order_text: &str) -> NewOperation {
    let mut draft = deposit(merchant_name, order_text);
    draft.operation.kind =
        Kind::Withdrawal(Withdrawal { account_number: AccountNumber::new(CARD).unwrap(), account_channel: None });
    draft
}

/// The first page of all operations of a merchant.
pub(super) fn first_page(merchant_name: &str) -> HistoryQuery {
    HistoryQuery::newest(merchant(merchant_name), 50)
}

/// The expected form of a stored draft.
pub(super) fn stored(draft: &NewOperation) -> Stored {
    Stored {
        operation: draft.operation.clone(),
        api_key: draft.api_key.clone(),
        comparison: draft.comparison.clone(),
        v1: draft.v1.clone(),
    }
}

/// Stores a draft, which must be new, and returns its id.
pub(super) async fn created(store: &dyn Store, draft: NewOperation) -> TransactionId {
    let id = draft.operation.id;
    let creation = store.create(draft).await.unwrap();
    assert!(matches!(creation, InsertOutcome::Created(CreateOutcome::AsDrafted)), "{creation:?}");
    id
}

/// Runs an audit, which must find no problems.
pub(super) async fn audited(store: &dyn Store) -> Audit {
    let audit = store.audit(Arc::new(|_| {})).await.unwrap();
    assert!(audit.is_clean(), "{audit:?}");
    audit
}
