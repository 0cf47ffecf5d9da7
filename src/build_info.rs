//! The build: version, commit and target of this binary. `build.rs` finds them.

use std::sync::LazyLock;

/// The version of the crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, 12 digits, with `-dirty` if the sources differ from it; `unknown` without a checkout.
pub const COMMIT: &str = env!("PAYBRIDGE_COMMIT");

/// The target that this binary was compiled for.
pub const TARGET: &str = env!("PAYBRIDGE_TARGET");

/// The UTC date of the commit, or of `SOURCE_DATE_EPOCH`; `unknown` without either.
pub static COMMIT_DATE: LazyLock<String> = LazyLock::new(|| date(env!("PAYBRIDGE_COMMIT_SECONDS")));

/// Version, commit with its date, and target: `0.1.0 (0123456789ab 2026-11-25) x86_64-unknown-linux-gnu`.
pub static BUILD: LazyLock<String> = LazyLock::new(|| format!("{VERSION} ({COMMIT} {}) {TARGET}", *COMMIT_DATE));

/// Returns the labels of the metric `build_info`.
#[must_use]
pub fn labels() -> [(&'static str, &'static str); 4] {
    [("version", VERSION), ("commit", COMMIT), ("commit_date", &COMMIT_DATE), ("target", TARGET)]
}

fn date(seconds: &str) -> String {
    let time = seconds.parse().ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "unknown".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_utc_days() {
        assert_eq!(date("1764115199"), "2025-11-25");
        assert_eq!(date("1764115200"), "2025-11-26");
        assert_eq!(date("0"), "1970-01-01");
        for unusable in ["", "soon", "99999999999999999999"] {
            assert_eq!(date(unusable), "unknown");
        }
    }
}
