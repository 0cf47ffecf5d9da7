//! Figures of several rounds.

use std::time::Duration;

/// The median of figures, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the middle two.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of at least one figure.
    #[must_use]
    pub fn of(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Some(Self { median, least, most })
    }

    /// `1.23 (1.10 to 1.31)`; of a single figure only that.
    #[must_use]
    pub fn text(&self, decimals: usize) -> String {
        let Self { median, least, most } = self;
        if most <= least {
            return format!("{median:.decimals$}");
        }
        format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
    }
}

/// Figures divided by those of the same rounds: a slow moment of the machine hits both.
#[must_use]
pub fn ratios(figures: &[f64], others: &[f64]) -> Vec<f64> {
    figures.iter().zip(others).map(|(figure, other)| figure / other).collect()
}

/// The time that so many hundredths of the sorted times are not above.
#[must_use]
pub fn percentile(sorted: &[Duration], hundredths: usize) -> Duration {
    sorted.get((sorted.len() * hundredths).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

/// Microseconds.
#[must_use]
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
