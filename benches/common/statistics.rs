//! Statistics of the figures of several rounds.

use std::time::Duration;

/// The median of figures, and their range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median; of an even number, the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// Returns the summary of at least one figure.
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

    /// Returns `1.23 (1.10 to 1.31)`; for a single figure only the figure.
    #[must_use]
    pub fn text(&self, decimals: usize) -> String {
        let Self { median, least, most } = self;
        if most <= least {
            return format!("{median:.decimals$}");
        }
        format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
    }
}

/// Returns figures divided by those of the same rounds: a slow moment of the machine affects both.
#[must_use]
pub fn ratios(figures: &[f64], others: &[f64]) -> Vec<f64> {
    figures.iter().zip(others).map(|(figure, other)| figure / other).collect()
}

/// Returns a percentile of the sorted times.
#[must_use]
pub fn percentile(sorted: &[Duration], hundredths: usize) -> Duration {
    sorted.get((sorted.len() * hundredths).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

/// Returns microseconds.
#[must_use]
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
