//! A new operation as a value of the type `new_operation`.

use bytes::BytesMut;
use tokio_postgres::types::{Field, IsNull, Kind, ToSql, Type, to_sql_checked};

use super::row::{bucket_in, key, narrow};
use crate::domain::{Fingerprint, State, UnixDay};
use crate::store::NewOperation;
use crate::store::rows::operation::NewRow;
use crate::store::rows::{finished_at, status_number};

/// How many columns it has.
const COLUMNS: usize = 16;

/// A new operation's columns.
#[derive(Debug)]
pub(super) struct OperationColumns<'a> {
    pub(super) id: i64,
    context: i64,
    listed: Option<i64>,
    created_at: i64,
    finished_at: Option<i64>,
    amount: i64,
    customer_account_id: Option<i64>,
    counted_day: Option<i32>,
    bucket: i16,
    status: i16,
    order_key: Fingerprint,
    order_id: &'a str,
    fingerprint: &'a [u8],
    callback_url: Option<&'a str>,
    sealed: &'a [u8],
    payer: Option<&'a [u8]>,
}

impl<'a> OperationColumns<'a> {
    /// A new operation in a state, which counts for its customer on a day.
    pub(super) fn new(new: &'a NewRow, state: &State, counted_day: Option<UnixDay>) -> Self {
        let NewOperation { operation, comparison, .. } = new.draft();
        Self {
            id: operation.id.to_stored(),
            context: new.context.number(),
            listed: new.listed(),
            created_at: operation.created_at.0,
            finished_at: finished_at(state),
            amount: operation.amount.hundredths().cast_signed(),
            customer_account_id: operation.customer_account_id.map(|id| id.0),
            counted_day: counted_day.map(|day| day.0),
            bucket: bucket_in(operation.id),
            status: narrow(status_number(state.status())),
            order_key: new.order_key(),
            order_id: operation.order_id.as_str(),
            fingerprint: key(&comparison.fingerprint),
            callback_url: new.callback_url(),
            sealed: &new.sealed,
            payer: new.payer.as_deref(),
        }
    }

    /// Writes each column as its type, its length (-1: NULL) and its bytes.
    fn write_columns(&self, fields: &[Field], out: &mut BytesMut) -> Result<(), Failed> {
        let order_key = key(&self.order_key);
        let columns: [&dyn ToSql; COLUMNS] = [
            &self.id,
            &self.context,
            &self.listed,
            &self.created_at,
            &self.finished_at,
            &self.amount,
            &self.customer_account_id,
            &self.counted_day,
            &self.bucket,
            &self.status,
            &order_key,
            &self.order_id,
            &self.fingerprint,
            &self.callback_url,
            &self.sealed,
            &self.payer,
        ];
        for (field, value) in fields.iter().zip(columns) {
            out.extend_from_slice(&field.type_().oid().to_be_bytes());
            let place = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if let IsNull::No = value.to_sql_checked(field.type_(), out)? {
                let length = i32::try_from(out.len() - place - 4)?;
                #[expect(clippy::indexing_slicing, reason = "the four bytes were just written")]
                out[place..place + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }
}

type Failed = Box<dyn std::error::Error + Sync + Send>;

/// As `record_send` of PostgreSQL has it: the number of columns, and of each its type, its length (-1: NULL) and its bytes.
impl ToSql for OperationColumns<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        let fields = fields_of(of).ok_or("not a type of as many columns")?;
        out.extend_from_slice(&u32::try_from(COLUMNS)?.to_be_bytes());
        self.write_columns(fields, out)?;
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        fields_of(of).is_some()
    }

    to_sql_checked!();
}

fn fields_of(of: &Type) -> Option<&[Field]> {
    if let Kind::Composite(fields) = of.kind()
        && fields.len() == COLUMNS
    {
        return Some(fields);
    }
    None
}
