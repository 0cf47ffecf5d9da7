//! The conformance suite of the store. [`conformance!`] makes a test of each case for a backend. A backend adds tests
//! only for its own parts: files, connections, failing disks.

mod callbacks;
mod checks;
mod complete;
mod create;
pub(super) mod damage;
mod export;
mod history;
mod jobs;
mod journal;
mod lookups;
pub(in crate::store) mod model;
mod money;
pub(in crate::store) mod operations;
mod outbox;
mod queues;
mod reservations;
mod statuses;
mod trail;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::{
    AccountNumber, Amount, BrowserUrl, Bucket, CallbackUrl, Currency, Deposit, Fields, Fingerprint, HistoryQuery, Kind,
    MerchantId, Operation, OrderId, ProviderKind, RedirectUrl, ShopCode, State, TransactionId, UnixMillis, Withdrawal,
};
use crate::store::sql::RECORDED;
use crate::store::{
    Audit, CreateOutcome, InsertOutcome, NewOperation, RequestFingerprint, SchemaFields, Store, Stored,
};

pub(super) use callbacks::*;
pub(super) use checks::*;
pub(super) use complete::*;
pub(super) use create::*;
pub(super) use export::*;
pub(super) use history::*;
pub(super) use jobs::*;
pub(super) use journal::*;
pub(super) use lookups::*;
pub(super) use money::*;
pub(super) use operations::*;
pub(super) use outbox::*;
pub(super) use queues::*;
pub(super) use reservations::*;
pub(super) use statuses::*;
pub(super) use trail::*;

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
            a_result_is_stored_once_and_for_ever,
            an_unknown_operation_is_not_completed,
            a_payer_comes_back,
            a_status_matches_its_operation,
            an_unknown_status_is_none,
            an_operation_can_be_completed_before_its_create_returns,
            one_of_many_concurrent_results_is_stored,
            jobs_are_claimed_in_order_and_leased,
            jobs_of_one_batch_keep_their_own_times,
            a_result_ends_its_job,
            a_job_can_be_ended,
            a_claimed_job_is_given_up_unless_it_has_ended,
            jobs_survive_reopening,
            a_job_is_claimed_once_by_many,
            queues_of_shops_are_separate,
            a_job_can_be_postponed,
            postponed_jobs_keep_their_time_over_a_restart,
            misdated_tasks_are_made_due,
            the_kind_of_provider_comes_back,
            results_move_money,
            operations_finished_at_creation_post_at_once,
            repeated_results_post_nothing,
            an_existing_order_posts_nothing,
            exactly_what_is_covered_is_withdrawn,
            an_uncovered_withdrawal_changes_no_balance,
            a_ledger_is_opened_once,
            a_later_operation_opens_nothing,
            a_ledger_is_opened_without_an_operation,
            a_ledger_is_opened_by_a_balance_request_or_an_operation,
            daily_limits_hold_under_concurrency,
            daily_limits_are_scoped_by_customer_shop_direction_and_day,
            a_failure_gives_the_daily_usage_back,
            usage_is_counted_by_day,
            every_result_with_an_address_has_one_callback,
            a_hold_out_of_range_is_not_posted,
            reserved_orders_are_refused,
            a_reservation_never_touches_an_operation,
            a_race_for_an_order_has_one_winner,
            a_claimed_order_has_one_home,
            claims_and_creates_race_for_one_home,
            counts_of_checks_add_up,
            counts_under_unused_rules_are_deleted,
            concurrent_counts_of_checks_all_count,
            new_reservations_take_the_mark_of_complete_ids_away,
            a_preparation_is_kept_until_the_result,
            only_pending_deposits_are_prepared,
            a_history_holds_the_merchants_own_v1_operations,
            filters_of_a_history_work_alone_and_combined,
            pages_of_a_history_cover_it,
            a_result_moves_an_operation_between_statuses,
            times_of_a_history_are_inclusive_to_the_millisecond,
            operations_of_one_millisecond_keep_their_order,
            operations_are_listed_by_each_filter,
            causes_come_back,
            a_pending_operation_says_what_it_waits_for,
            what_a_provider_did_not_answer_is_kept,
            a_provider_is_called_again,
            a_resolution_ends_an_operation_once,
            another_operator_confirms,
            a_process_ends_at_each_step_of_a_resolution,
            a_report_and_a_resolution_race,
            attention_finds_what_hangs,
            homes_of_an_order_are_found,
            an_audit_runs_during_creates,
            every_member_of_an_entry_comes_back,
            an_order_has_one_entry,
            one_of_many_concurrent_entries_is_written,
            entries_are_scoped_by_merchant_and_direction,
            reserved_orders_get_no_entry,
            the_first_answer_is_kept,
            an_answer_restores_a_cancelled_entry,
            a_late_answer_does_not_replace_another_entry,
            an_answer_is_never_lost_in_a_race,
            transitions_from_other_states_change_nothing,
            a_transaction_id_belongs_to_one_order,
            an_entry_in_doubt_keeps_the_latest_time,
            an_entry_sent_again_is_not_cancelled,
            an_unknown_shop_is_set_once,
            updates_are_stored_until_the_result,
            the_first_result_received_is_kept_in_a_race,
            open_entries_come_oldest_first,
            pages_of_answered_entries_are_exact,
            a_result_queues_its_callback,
            callbacks_are_claimed_in_order_by_share_and_leased,
            merchants_have_queues_of_their_own,
            no_merchants_queues_hide_those_of_others,
            a_callback_is_claimed_once_by_many,
            callbacks_survive_reopening,
            tries_lead_to_delivery_or_failure,
            only_a_delivery_counts_when_late,
            a_late_worker_does_not_affect_the_next_claim,
            a_callback_can_be_postponed,
            the_latest_tries_are_kept,
            old_callbacks_are_given_up,
            old_finished_callbacks_are_deleted,
            an_announced_callback_waits_for_the_engine,
            an_announcement_is_queued_once,
            a_callback_without_a_result_is_dropped,
            an_early_query_does_not_affect_the_next_one,
            an_announced_entry_is_not_cancelled,
            a_relay_address_names_its_order,
            callbacks_are_resent_from_every_state,
            lists_of_callbacks_are_exact,
            failed_callbacks_are_resent_by_query,
            pending_callbacks_of_receivers_are_made_due,
            the_outbox_reports_its_size,
            an_entry_is_found_by_the_engines_id,
            unanswered_entries_are_counted,
            the_state_of_a_job_is_read,
            a_callback_is_found_by_its_subject,
            failed_callbacks_are_resent_once_by_many,
            an_action_is_begun_and_ended,
            texts_of_an_action_are_bounded,
            a_form_acts_once,
            lists_of_actions_are_exact,
            an_export_reads_every_operation_once,
            entries_are_exported_by_their_posting,
            callbacks_and_actions_are_exported,
            a_closed_trail_is_unavailable,
            a_closed_outbox_is_unavailable,
            a_closed_journal_is_unavailable,
            a_closed_store_is_unavailable
        );
    };
    (@cases $backend:expr; $($case:ident),*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::store::conformance::$case(&$backend).await;
            }
        )*

        /// Runs all cases, so that all their statements are recorded: see [`recorded`](crate::store::conformance::recorded).
        async fn run_every_case() {
            $($crate::store::conformance::$case(&$backend).await;)*
        }
    };
}
pub(super) use conformance;

/// Why a call of a provider gave no result.
pub(in crate::store) const NO_ANSWER: &str = "no answer in time";

/// Returns the parameterized statements that this process's tests have run on one database. Audits are left out: they read
/// whole tables. `mark` begins a parameter.
pub(super) fn recorded(mark: char) -> Vec<&'static str> {
    let of_audits = crate::store::audit::statements();
    let is_of_audits = |text: &str| of_audits.iter().any(|sql| [sql.sqlite, sql.postgres].contains(&text));
    let recorded = RECORDED.lock().unwrap();
    recorded.iter().copied().filter(|text| text.contains(mark) && !is_of_audits(text)).collect()
}

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
        failure: None,
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
        api_key: (*draft.api_key).into(),
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
