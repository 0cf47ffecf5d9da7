//! The details of an operation, which no query searches: encoded and sealed in one column.

use super::{CorruptRow, OrCorrupt};
use crate::domain::{
    AccountNumber, BrowserUrl, CallbackSender, CallbackUrl, Deposit, Direction, Fields, Kind, MemberFingerprints,
    RedirectUrl, TransactionId, Withdrawal,
};
use crate::store::vault::{Column, DecryptError, Vault};
use crate::store::{NewOperation, StoreError};

/// The error for a column with an invalid value.
const CORRUPT: CorruptRow = CorruptRow::new("sealed");

/// Encodes and seals the details of a new operation: what no query searches.
///
/// ```text
/// sent, defaults     the texts of `fields`
/// members            the fingerprints of v1 members
/// relay              the relay's address for the engine's callbacks, if the relay calls the merchant
/// account, channel   of a withdrawal
/// success, pending, fail, redirect   of a deposit; pending and fail only where they differ from success
/// ```
///
/// A text is stored as its length plus one in LEB128, and its bytes. Zero means absent.
pub(super) fn sealed_details(vault: &Vault, draft: &NewOperation) -> Vec<u8> {
    let (operation, fields) = (&draft.operation, &draft.fields);
    let mut plain = Vec::with_capacity(256 + fields.sent.len() + fields.defaults.len());
    put(&mut plain, Some(&fields.sent));
    put(&mut plain, Some(&fields.defaults));
    fields.v1_members.write_to(&mut plain);
    let relay = matches!(draft.v1, Some(CallbackSender::Relayed(_))).then(|| operation.callback_url.as_str());
    put(&mut plain, relay);
    match &operation.kind {
        Kind::Withdrawal(withdrawal) => {
            put(&mut plain, Some(withdrawal.account_number.expose()));
            put(&mut plain, withdrawal.account_channel.as_deref());
        }
        Kind::Deposit(deposit) => {
            let unless_success = |url: &BrowserUrl| (*url != deposit.success_url).then(|| url.as_str().to_owned());
            put(&mut plain, Some(deposit.success_url.as_str()));
            put(&mut plain, unless_success(&deposit.pending_url).as_deref());
            put(&mut plain, unless_success(&deposit.fail_url).as_deref());
            put(&mut plain, Some(deposit.redirect_url.expose()));
        }
    }
    vault.seal(Column::Details, operation.id, &plain)
}

/// The opened details.
pub(super) struct Details {
    plain: Vec<u8>,
    /// The offset behind `fields` and the v1 members.
    rest: usize,
}

impl Details {
    /// Opens the column of an operation.
    pub(super) fn open(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Self, CorruptRow> {
        let plain = vault.open(Column::Details, id, sealed).map_err(|DecryptError| CORRUPT)?;
        let mut texts = Texts(&plain);
        texts.take()?;
        texts.take()?;
        texts.members()?;
        let rest = plain.len() - texts.0.len();
        Ok(Self { plain, rest })
    }

    fn fields(&self) -> Result<Fields, CorruptRow> {
        let mut texts = Texts(&self.plain);
        let sent = texts.take()?.ok_or(CORRUPT)?.to_owned().into();
        let defaults = texts.take()?.ok_or(CORRUPT)?.to_owned().into();
        Ok(Fields { sent, defaults, v1_members: texts.members()? })
    }

    /// Decodes the relay's address and the data of the direction.
    pub(super) fn decode(&self, direction: Direction) -> Result<(Option<CallbackUrl>, Kind), CorruptRow> {
        let mut texts = Texts(self.plain.get(self.rest..).unwrap_or_default());
        let relay = texts.take()?.map(CallbackUrl::new_allowing_http).transpose().or_corrupt("sealed")?;
        let kind = match direction {
            Direction::Payout => Kind::Withdrawal(texts.withdrawal()?),
            Direction::Payin => Kind::Deposit(texts.deposit()?),
        };
        if texts.0.is_empty() { Ok((relay, kind)) } else { Err(CORRUPT) }
    }
}

/// Unseals the `fields` of an operation.
///
/// # Errors
/// The column contains an invalid value.
pub(in crate::store) fn opened_fields(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Fields, StoreError> {
    let fields = Details::open(vault, id, sealed).and_then(|details| details.fields());
    fields.map_err(|corrupt| corrupt.of(format_args!("operation {id}")))
}

/// Unseals the recipient of a withdrawal.
pub(super) fn opened_account(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<AccountNumber, CorruptRow> {
    match Details::open(vault, id, sealed)?.decode(Direction::Payout)? {
        (_, Kind::Withdrawal(withdrawal)) => Ok(withdrawal.account_number),
        (_, Kind::Deposit(_)) => Err(CORRUPT),
    }
}

fn put(plain: &mut Vec<u8>, text: Option<&str>) {
    let mut number = text.map_or(0, |text| text.len() + 1);
    while number >= 0x80 {
        plain.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    plain.push(number.to_le_bytes()[0]);
    plain.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// Reads the texts in order; holds the remaining bytes.
struct Texts<'a>(&'a [u8]);

impl<'a> Texts<'a> {
    fn take(&mut self) -> Result<Option<&'a str>, CorruptRow> {
        let mut number = 0_usize;
        // Four groups of seven bits: no text is longer than 256 MiB.
        for shift in [0, 7, 14, 21] {
            let (byte, rest) = self.0.split_first().ok_or(CORRUPT)?;
            self.0 = rest;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return self.text(number);
            }
        }
        Err(CORRUPT)
    }

    fn text(&mut self, number: usize) -> Result<Option<&'a str>, CorruptRow> {
        let Some(length) = number.checked_sub(1) else { return Ok(None) };
        let (text, rest) = self.0.split_at_checked(length).ok_or(CORRUPT)?;
        self.0 = rest;
        std::str::from_utf8(text).map(Some).map_err(|_| CORRUPT)
    }

    fn members(&mut self) -> Result<MemberFingerprints, CorruptRow> {
        let (members, rest) = MemberFingerprints::read_from(self.0).ok_or(CORRUPT)?;
        self.0 = rest;
        Ok(members)
    }

    fn withdrawal(&mut self) -> Result<Withdrawal, CorruptRow> {
        let account_number = AccountNumber::new(self.take()?.ok_or(CORRUPT)?).or_corrupt("sealed")?;
        Ok(Withdrawal { account_number, account_channel: self.take()?.map(Into::into) })
    }

    fn deposit(&mut self) -> Result<Deposit, CorruptRow> {
        let url = |text: &str| BrowserUrl::new(text).or_corrupt("sealed");
        let success_url = url(self.take()?.ok_or(CORRUPT)?)?;
        let pending_url = self.take()?.map_or_else(|| Ok(success_url.clone()), url)?;
        let fail_url = self.take()?.map_or_else(|| Ok(success_url.clone()), url)?;
        let redirect_url = self.take()?.map(|url| RedirectUrl::new(url.to_owned())).ok_or(CORRUPT)?;
        Ok(Deposit { success_url, pending_url, fail_url, redirect_url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip_and_invalid_bytes_are_rejected() {
        for text in
            [None, Some(""), Some("a"), Some(&*"b".repeat(126)), Some(&*"c".repeat(127)), Some(&*"é".repeat(40_000))]
        {
            let mut plain = Vec::new();
            put(&mut plain, text);
            put(&mut plain, Some("next"));
            let mut texts = Texts(&plain);
            assert_eq!((texts.take().ok().unwrap(), texts.take().ok().unwrap()), (text, Some("next")));
            assert!(texts.0.is_empty());
        }
        for wrong in [&[] as &[u8], &[0x80], &[3, b'a'], &[2, 0xff], &[0x80, 0x80, 0x80, 0x80, 0]] {
            assert!(Texts(wrong).take().is_err(), "{wrong:?}");
        }
    }
}
