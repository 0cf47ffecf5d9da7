//! Identifiers: merchants, shops, orders, transactions, customers, and currencies.

use std::fmt;
use std::num::NonZeroU64;

use super::{Digits, InvalidValue};

/// How many buckets merchants are spread over.
pub const BUCKETS: u16 = 1024;

/// A hash of the merchant, 0 to 1023; part of every [`TransactionId`]: merchants that create in the same millisecond rarely draw
/// the same id, and an id does not show how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u16);

impl Bucket {
    /// Returns the bucket of a merchant. The hash (FNV-1a) is part of the stored format and never changes.
    #[must_use]
    pub fn of(merchant: &MerchantId) -> Self {
        let hash = merchant
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let folded = (hash ^ (hash >> 32)) % u64::from(BUCKETS);
        Self(u16::try_from(folded).unwrap_or(0))
    }

    /// Returns the bucket as a number below [`BUCKETS`].
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// The service's id of an operation: 1 to 19 digits without a leading zero, unique across nodes, not a plain counter
/// (contract section 7). From high to low: 41 bits of milliseconds since 2025-01-01, 10 bits of bucket, 12 random bits.
/// The store's unique key detects a collision, and another id is drawn. Ids ascend with time, so that an index of them
/// grows at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(NonZeroU64);

impl TransactionId {
    /// 2025-01-01T00:00:00Z in milliseconds since the Unix epoch: the origin of the time in an id.
    const ORIGIN_MILLIS: i64 = 1_735_689_600_000;

    /// Composes an id for an operation created at `now` by a merchant in `bucket`, with the low 12 bits of `random`.
    #[must_use]
    pub fn compose(now: super::UnixMillis, bucket: Bucket, random: u64) -> Self {
        let since_origin = now.0.saturating_sub(Self::ORIGIN_MILLIS).clamp(1, (1 << 41) - 1);
        let millis = u64::try_from(since_origin).unwrap_or(1);
        let value = (millis << 22) | (u64::from(bucket.0) << 12) | (random & 0xfff);
        Self(NonZeroU64::new(value).unwrap_or(NonZeroU64::MIN))
    }

    /// Composes a number of the form of an id for something else that was made at a time, with the low 22 bits of `random`:
    /// nodes need not agree on it.
    #[must_use]
    pub fn of_other(at: super::UnixMillis, random: u64) -> Self {
        let below = random & ((1 << 22) - 1);
        Self(Self::first_of(at).0 | below)
    }

    /// Returns the least id of an operation created at `at` or later. Times outside the range of
    /// [`TransactionId::compose`] are clamped to it, as they are there.
    #[must_use]
    pub fn first_of(at: super::UnixMillis) -> Self {
        Self::compose(at, Bucket(0), 0)
    }

    /// Returns the greatest id of an operation created at `at` or earlier; see [`TransactionId::first_of`].
    #[must_use]
    pub fn last_of(at: super::UnixMillis) -> Self {
        Self::compose(at, Bucket(BUCKETS - 1), u64::MAX)
    }

    /// Parses an id as a caller sent it.
    ///
    /// # Errors
    /// Anything but 1 to 19 digits without a leading zero, within 63 bits. Callers reply to all of these as to an
    /// unknown id.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        const MALFORMED: InvalidValue = InvalidValue::new("must be a transaction id");
        let digits = (1..=19).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if !digits || text.starts_with('0') {
            return Err(MALFORMED);
        }
        let value = text.parse::<i64>().map_err(|_| MALFORMED)?;
        Self::from_stored(value).ok_or(MALFORMED)
    }

    /// Returns the id of a stored row; `None` if the number is not positive.
    #[must_use]
    pub fn from_stored(value: i64) -> Option<Self> {
        u64::try_from(value).ok().and_then(NonZeroU64::new).map(Self)
    }

    /// Returns the id as it is stored, always positive.
    #[must_use]
    pub const fn to_stored(self) -> i64 {
        self.0.get().cast_signed()
    }

    /// Returns the time in the id.
    #[must_use]
    pub fn at(self) -> super::UnixMillis {
        super::UnixMillis(i64::try_from(self.0.get() >> 22).unwrap_or(i64::MAX).saturating_add(Self::ORIGIN_MILLIS))
    }

    /// Returns the text that `Display` writes.
    #[must_use]
    pub fn digits(self) -> Digits {
        Digits::of(self.0.get())
    }

    /// Returns the bucket in the id.
    #[must_use]
    pub fn bucket(self) -> Bucket {
        let number = (self.0.get() >> 12) % u64::from(BUCKETS);
        Bucket(u16::try_from(number).unwrap_or(0))
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The merchant's id of an operation: 1 to 255 Unicode characters without U+0000 (contract section 7, `order_id`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderId(std::sync::Arc<str>);

impl OrderId {
    /// Accepts the text of an order id.
    ///
    /// # Errors
    /// Empty text, more than 255 characters, or U+0000.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        if text.is_empty() {
            return Err(InvalidValue::new("must not be empty"));
        }
        // A character has at most four bytes, so only texts of 256 to 1,020 bytes need counting.
        if text.len() > 255 && (text.len() > 1020 || text.chars().count() > 255) {
            return Err(InvalidValue::new("must be at most 255 characters"));
        }
        if text.contains('\0') {
            return Err(InvalidValue::new("must not contain U+0000"));
        }
        Ok(Self(text.into()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A currency code: three ASCII letters, stored in upper case (contract section 7, `currency`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Parses a currency code in any case.
    ///
    /// # Errors
    /// Anything but exactly three ASCII letters.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        match <[u8; 3]>::try_from(text.as_bytes()) {
            Ok(code) if code.iter().all(u8::is_ascii_alphabetic) => Ok(Self(code.map(|b| b.to_ascii_uppercase()))),
            _ => Err(InvalidValue::new("must be exactly 3 letters")),
        }
    }

    /// Returns the code in upper case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! file_name_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Accepts a name: 1 to 64 of `A-Z a-z 0-9 . _ -`, not starting with a dot (it is also a file name).
            ///
            /// # Errors
            /// Any other text.
            pub fn new(text: &str) -> Result<Self, InvalidValue> {
                let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
                if !(1..=64).contains(&text.len()) || text.starts_with('.') || !text.bytes().all(allowed) {
                    return Err(InvalidValue::new("must be 1 to 64 letters, digits, `.`, `_` or `-`, not starting with `.`"));
                }
                Ok(Self(text.into()))
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// Lets maps keyed by this name be queried with a `&str`.
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

file_name_id! {
    /// A merchant's id: the name of its rule file.
    MerchantId
}

file_name_id! {
    /// A shop's code: the name of its rule file, `method` in v2 and `shop_code` in v1.
    ShopCode
}

/// The merchant's id of its customer: a signed 64-bit integer (contract section 7, `customer_account_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CustomerAccountId(pub i64);

impl CustomerAccountId {
    /// Parses the text of a JSON number that is written as an integer; `1.0` and `1e3` are not.
    ///
    /// # Errors
    /// Any other spelling, or a value outside 64 bits.
    pub fn from_json_number(text: &str) -> Result<Self, InvalidValue> {
        text.parse::<i64>().map(Self).map_err(|_| InvalidValue::new("must be a JSON integer within 64 bits"))
    }

    /// Parses a v1 `merchant_user_id`: digits without a leading zero; `"0"` is 0 (contract section 5). Text without an
    /// equivalent number is rejected, never truncated or hashed.
    ///
    /// # Errors
    /// Any other text.
    pub fn from_v1_text(text: &str) -> Result<Self, InvalidValue> {
        const NO_EQUIVALENT: InvalidValue =
            InvalidValue::new("must be digits without a leading zero, within a signed 64-bit integer");
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits || (text.len() > 1 && text.starts_with('0')) {
            return Err(NO_EQUIVALENT);
        }
        text.parse::<i64>().map(Self).map_err(|_| NO_EQUIVALENT)
    }
}

impl fmt::Display for CustomerAccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::UnixMillis;

    #[test]
    fn customer_account_ids() {
        assert_eq!(CustomerAccountId::from_v1_text("0"), Ok(CustomerAccountId(0)));
        assert_eq!(CustomerAccountId::from_v1_text("9223372036854775807"), Ok(CustomerAccountId(i64::MAX)));
        for text in ["", "00", "007", "-1", "+1", "9223372036854775808", "1.0", "user", " 1", "١"] {
            assert!(CustomerAccountId::from_v1_text(text).is_err(), "{text}");
        }
        assert_eq!(CustomerAccountId::from_json_number("-5"), Ok(CustomerAccountId(-5)));
        for text in ["1.0", "1e3", "9223372036854775808"] {
            assert!(CustomerAccountId::from_json_number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn malformed_transaction_ids() {
        for text in ["", "0", "01", "-1", "1 ", "9223372036854775808", "99999999999999999999", "1a", "+1"] {
            assert!(TransactionId::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_id_finds_its_bucket(
            millis in 1_735_689_600_001_i64..3_900_000_000_000,
            name in "[a-z]{1,20}",
            random: u64,
        ) {
            let bucket = Bucket::of(&MerchantId::new(&name).unwrap());
            let id = TransactionId::compose(UnixMillis(millis), bucket, random);
            prop_assert_eq!(id.bucket(), bucket);
            prop_assert_eq!(TransactionId::parse(&id.to_string()), Ok(id));
            prop_assert_eq!(TransactionId::from_stored(id.to_stored()), Some(id));
            prop_assert!(id.to_string().len() <= 19);
        }

        #[test]
        fn ids_of_a_millisecond_are_between_its_first_and_last(
            millis: i64,
            later in 1_i64..1_000_000,
            bucket in 0..BUCKETS,
            random: u64,
        ) {
            let (at, after) = (UnixMillis(millis), UnixMillis(millis.saturating_add(later)));
            let id = TransactionId::compose(at, Bucket(bucket), random);
            prop_assert!(TransactionId::first_of(at) <= id && id <= TransactionId::last_of(at));
            prop_assert!(TransactionId::first_of(at) <= TransactionId::first_of(after));
            if (1_735_689_600_001..3_900_000_000_000).contains(&millis) {
                prop_assert!(TransactionId::last_of(at) < TransactionId::first_of(after));
            }
        }
    }
}
