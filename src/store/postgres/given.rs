//! A new operation as a value of the type `new_operation`.

use bytes::BytesMut;
use tokio_postgres::types::{Field, IsNull, Kind as Of, ToSql, Type, to_sql_checked};

use super::row::{bucket_in, narrow};
use crate::domain::{BrowserUrl, CallbackUrl, Deposit, Kind, ShopCode, State, UnixDay};
use crate::store::rows::operation::{NewRow, other_than};
use crate::store::rows::{direction_number, finished_at, provider_number, status_number};
use crate::store::{Digest, V1Told};

/// How many columns it has.
const COLUMNS: usize = 31;

/// A new operation's columns.
#[derive(Debug)]
pub(super) struct Given<'a> {
    pub(super) id: i64,
    created_at: i64,
    finished_at: Option<i64>,
    amount: i64,
    customer_account_id: Option<i64>,
    kept: Option<i64>,
    counted_day: Option<i32>,
    bucket: i16,
    direction: i16,
    status: i16,
    provider: i16,
    from_v1: bool,
    relayed: bool,
    order_key: &'a [u8],
    digest: &'a [u8],
    currency: &'a str,
    merchant: &'a str,
    order_id: &'a str,
    api_key: &'a str,
    shop: &'a str,
    method: Option<&'a str>,
    payment_method: Option<&'a str>,
    callback_url: &'a str,
    v1_callback_url: Option<&'a str>,
    success_url: Option<&'a str>,
    pending_url: Option<&'a str>,
    fail_url: Option<&'a str>,
    redirect_url: Option<&'a str>,
    account: Option<&'a [u8]>,
    payer: Option<&'a [u8]>,
    fields: &'a [u8],
}

impl<'a> Given<'a> {
    /// A new operation in a state, which counts for its customer on a day.
    pub(super) fn new(new: &'a NewRow, state: &State, counted_day: Option<UnixDay>) -> Self {
        let (row, draft) = (new, new.draft());
        let (operation, v1) = (&draft.operation, draft.v1.as_ref());
        let (Digest(order_key), Digest(digest)) = (&row.order_key, &draft.comparison.digest);
        let deposit = match &operation.kind {
            Kind::Deposit(deposit) => Some(deposit),
            Kind::Withdrawal(_) => None,
        };
        let unless_success = |url: fn(&Deposit) -> &BrowserUrl| {
            deposit.and_then(|deposit| other_than(&deposit.success_url, url(deposit)))
        };
        Self {
            id: operation.id.to_stored(),
            created_at: operation.created_at.0,
            finished_at: finished_at(state),
            amount: operation.amount.hundredths().cast_signed(),
            customer_account_id: operation.customer_account_id.map(|id| id.0),
            kept: row.kept.as_ref().map(|list| list.id),
            counted_day: counted_day.map(|day| day.0),
            bucket: bucket_in(operation.id),
            direction: narrow(direction_number(operation.direction())),
            status: narrow(status_number(state.status())),
            provider: narrow(provider_number(operation.provider)),
            from_v1: v1.is_some(),
            relayed: matches!(v1, Some(V1Told::Relayed(_))),
            order_key,
            digest,
            currency: operation.currency.as_str(),
            merchant: operation.merchant.as_str(),
            order_id: operation.order_id.as_str(),
            api_key: &draft.api_key,
            shop: operation.shop.as_str(),
            method: operation.method.as_ref().map(ShopCode::as_str),
            payment_method: operation.payment_method.as_deref(),
            callback_url: operation.callback_url.as_str(),
            v1_callback_url: v1.and_then(V1Told::relayed_to).map(CallbackUrl::as_str),
            success_url: deposit.map(|deposit| deposit.success_url.as_str()),
            pending_url: unless_success(|deposit| &deposit.pending_url),
            fail_url: unless_success(|deposit| &deposit.fail_url),
            redirect_url: deposit.map(|deposit| deposit.redirect_url.expose()),
            account: row.account.as_deref(),
            payer: row.payer.as_deref(),
            fields: &row.fields,
        }
    }

    /// In the order of the type.
    fn columns(&self) -> [&dyn ToSql; COLUMNS] {
        [
            &self.id,
            &self.created_at,
            &self.finished_at,
            &self.amount,
            &self.customer_account_id,
            &self.kept,
            &self.counted_day,
            &self.bucket,
            &self.direction,
            &self.status,
            &self.provider,
            &self.from_v1,
            &self.relayed,
            &self.order_key,
            &self.digest,
            &self.currency,
            &self.merchant,
            &self.order_id,
            &self.api_key,
            &self.shop,
            &self.method,
            &self.payment_method,
            &self.callback_url,
            &self.v1_callback_url,
            &self.success_url,
            &self.pending_url,
            &self.fail_url,
            &self.redirect_url,
            &self.account,
            &self.payer,
            &self.fields,
        ]
    }
}

type Failed = Box<dyn std::error::Error + Sync + Send>;

/// As `record_send` of PostgreSQL has it: the number of columns, and of each its type, its length (-1: NULL) and its bytes.
impl ToSql for Given<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        let fields = fields_of(of).ok_or("not a type of as many columns")?;
        out.extend_from_slice(&u32::try_from(COLUMNS)?.to_be_bytes());
        for (field, value) in fields.iter().zip(self.columns()) {
            out.extend_from_slice(&field.type_().oid().to_be_bytes());
            let place = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if let IsNull::No = value.to_sql_checked(field.type_(), out)? {
                let length = i32::try_from(out.len() - place - 4)?;
                out[place..place + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        fields_of(of).is_some()
    }

    to_sql_checked!();
}

fn fields_of(of: &Type) -> Option<&[Field]> {
    match of.kind() {
        Of::Composite(fields) if fields.len() == COLUMNS => Some(fields),
        _ => None,
    }
}
