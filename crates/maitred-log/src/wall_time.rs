//! Times of the monotonic clock as people read them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maitred_io::clock;

/// Nanoseconds from the monotonic clock to the real one, and the second in which that was found out.
static OFFSET: AtomicI64 = AtomicI64::new(0);
static OFFSET_OF: AtomicU64 = AtomicU64::new(0);

/// A monotonic time in microseconds since 1970. All lines of a second use the same distance between the clocks: their
/// order is that of the monotonic clock.
pub(crate) fn wall_micros(monotonic: u64) -> u64 {
    let second = clock::unix_seconds();
    let is_old = OFFSET_OF.load(Ordering::Relaxed) != second;
    // Who finds none at all does not wait for the one who is about to store it.
    if (is_old && OFFSET_OF.swap(second, Ordering::AcqRel) != second) || OFFSET.load(Ordering::Acquire) == 0 {
        let now = i64::try_from(clock::monotonic()).unwrap_or(0);
        let real = i64::try_from(clock::unix_micros()).unwrap_or(0).saturating_mul(1_000);
        OFFSET.store(real - now, Ordering::Release);
    }
    let offset = OFFSET.load(Ordering::Acquire);
    u64::try_from(i64::try_from(monotonic).unwrap_or(0).saturating_add(offset)).unwrap_or(0) / 1_000
}

/// strftime(3) of seconds since 1970 in local time; a pattern it does not know is itself.
pub fn strftime(pattern: &str, unix_seconds: u64) -> String {
    let time = timestamp(unix_seconds.saturating_mul(1_000_000)).to_zoned(TimeZone::system());
    jiff::fmt::strtime::format(pattern, &time).unwrap_or_else(|_| pattern.to_owned())
}

pub(crate) fn timestamp(unix_micros: u64) -> Timestamp {
    let time = i64::try_from(unix_micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Appends `2026-11-20T12:00:00.123456Z`.
pub fn write_iso_time(out: &mut String, unix_micros: u64) {
    let _ = write!(out, "{:.6}", timestamp(unix_micros));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_log_s_time_is_utc_with_microseconds() {
        let mut out = String::new();
        write_iso_time(&mut out, 1_000_000_000_000_001);
        assert_eq!(out, "2001-09-09T01:46:40.000001Z");
    }
}
