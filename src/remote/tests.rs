use crate::domain::{Amount, Currency, Direction, Fingerprint, MemberFingerprints, MerchantId, OrderId, UnixMillis};
use crate::store::{EntryId, EntryProgress, JournalEntry, PendingCreate};

/// An open entry of 10.50 EUR.
pub(super) fn entry(order_id: &str) -> JournalEntry {
    let intent = PendingCreate {
        merchant: MerchantId::new("acme").unwrap(),
        direction: Direction::Payin,
        order_id: OrderId::new(order_id).unwrap(),
        api_key: "k".into(),
        amount: Amount::from_hundredths(1050).unwrap(),
        currency: Currency::new("EUR").unwrap(),
        shop: None,
        fingerprint: Fingerprint([1; 16]),
        v1_members: MemberFingerprints::default(),
        callback_url: None,
        body: (*b"{}").into(),
        created_at: UnixMillis(1),
    };
    JournalEntry { id: EntryId(1), intent, progress: EntryProgress::Open }
}
