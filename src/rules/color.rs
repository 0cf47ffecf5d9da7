//! The accent colour of customers' pages, and its contrast.

use std::fmt;

/// The least contrast ratio of readable text: WCAG 2 level AA, for text of any size.
pub(super) const LEAST_CONTRAST: f64 = 4.5;

/// An sRGB colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Color([u8; 3]);

impl Color {
    pub(super) const BLACK: Self = Self([0; 3]);
    pub(super) const WHITE: Self = Self([255; 3]);

    pub(super) const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Reads `#rrggbb`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// Returns the contrast ratio of two colours as WCAG 2 defines it: 1 to 21.
    pub(super) fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance() + 0.05, other.luminance() + 0.05);
        if one > two { one / two } else { two / one }
    }

    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Returns this colour mixed with `hundredths` percent of another one.
    pub(super) fn mixed(self, other: Self, hundredths: u16) -> Self {
        let mix = |own: u8, others: u8| {
            let mixed = (u16::from(own) * (100 - hundredths) + u16::from(others) * hundredths) / 100;
            u8::try_from(mixed).unwrap_or(u8::MAX)
        };
        let ([red, green, blue], [other_red, other_green, other_blue]) = (self.0, other.0);
        Self([mix(red, other_red), mix(green, other_green), mix(blue, other_blue)])
    }

    /// Returns the mixture with `towards` that is nearest to this colour and readable on this background.
    pub(super) fn readable_before(self, background: Self, towards: Self) -> Self {
        let mixtures = (0..=100).step_by(4).map(|hundredths| self.mixed(towards, hundredths));
        mixtures.clone().find(|mixed| mixed.contrast(background) >= LEAST_CONTRAST).unwrap_or(towards)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_six_hexadecimal_digits() {
        assert_eq!(Color::parse("#0b5FFf").unwrap().to_string(), "#0b5fff");
        for wrong in ["", "#", "0b5fff", "#0b5ff", "#0b5fff0", "#0b5ffg", "#+b5fff", "#é5fff", "blue"] {
            assert_eq!(Color::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn contrast_follows_wcag() {
        for (one, other, contrast) in [
            ("#000000", "#ffffff", 21.0),
            ("#777777", "#ffffff", 4.48),
            ("#ff0000", "#ffffff", 4.0),
            ("#123456", "#123456", 1.0),
        ] {
            let (one, other) = (Color::parse(one).unwrap(), Color::parse(other).unwrap());
            assert!((one.contrast(other) - contrast).abs() < 0.01, "{one} {other}: {}", one.contrast(other));
            assert!((one.contrast(other) - other.contrast(one)).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn every_colour_has_a_readable_mixture() {
        for text in ["#000000", "#ffffff", "#0b5fff", "#ffcc00", "#777777", "#00ff00"] {
            let color = Color::parse(text).unwrap();
            let dark = color.readable_before(Color::WHITE, Color::BLACK);
            assert!(dark.contrast(Color::WHITE) >= LEAST_CONTRAST, "{text}: {dark}");
        }
        assert_eq!(Color::BLACK.readable_before(Color::WHITE, Color::BLACK), Color::BLACK);
    }
}
