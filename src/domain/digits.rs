//! Fast conversion of numbers and hashes to text, without `format!`.

/// The decimal digits of a number.
#[derive(Debug, Clone, Copy)]
pub struct Digits {
    /// Filled from the end.
    bytes: [u8; Self::MAX_DIGITS],
    start: usize,
}

impl Digits {
    /// The most digits of a number.
    const MAX_DIGITS: usize = 20;

    /// Returns the digits of a number; zero has one digit.
    #[must_use]
    pub fn of(number: u64) -> Self {
        let mut digits = Self { bytes: [b'0'; Self::MAX_DIGITS], start: Self::MAX_DIGITS };
        let mut rest = number;
        for place in digits.bytes.iter_mut().rev() {
            digits.start -= 1;
            *place = digit(rest);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        digits
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Digits are UTF-8.
        self.bytes.get(self.start..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default()
    }
}

/// Returns the last digit of a number.
pub(super) fn digit(number: u64) -> u8 {
    let [last, ..] = (number % 10).to_le_bytes();
    b'0' + last
}

/// Appends a hash of at most 64 bytes in lowercase hexadecimal digits.
pub fn push_hex(text: &mut String, hash: &[u8]) {
    let mut digits = [0; 128];
    let digits = digits.split_at_mut(hash.len().min(64) * 2).0;
    let encoded = hex::encode_to_slice(hash, digits).ok().and_then(|()| std::str::from_utf8(digits).ok());
    text.push_str(encoded.expect("a hash has at most 64 bytes, and digits are UTF-8"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_least_and_the_greatest_number() {
        assert_eq!(Digits::of(0).as_str(), "0");
        assert_eq!(Digits::of(u64::MAX).as_str(), u64::MAX.to_string());
    }

    #[test]
    fn hashes_of_every_length() {
        for length in [0, 1, 16, 32, 64] {
            let hash: Vec<u8> = (0..length).map(|byte: u8| byte.wrapping_mul(37)).collect();
            let mut text = String::from("x");
            push_hex(&mut text, &hash);
            assert_eq!(text, format!("x{}", hex::encode(&hash)));
        }
    }

    proptest! {
        #[test]
        fn digits_match_display(number: u64, shift in 0..64_u32) {
            let digits = Digits::of(number >> shift);
            prop_assert_eq!(digits.as_str(), (number >> shift).to_string());
        }
    }
}
