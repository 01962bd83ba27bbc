//! The two clocks: monotonic for deadlines and spans, real for dates.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock. Under the simulated scheduler every look is 50 µs after the one before, so that
/// a thread that waits for a time reaches it.
#[cfg(shuttle)]
pub fn monotonic() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NOW: AtomicU64 = AtomicU64::new(1);
    NOW.fetch_add(50_000, Ordering::Relaxed)
}

/// Nanoseconds of the monotonic clock.
#[cfg(not(shuttle))]
pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How far the real clock is ahead of the monotonic one, in nanoseconds; it changes when the clock is set.
pub fn real_ahead() -> u64 {
    // A thread that loses its processor between two looks would see them apart.
    const TRIES: usize = 3;
    const CLOSE: u64 = 500;
    let mut best = (u64::MAX, 0);
    for _ in 0..TRIES {
        let before = monotonic();
        let time = clock_gettime(ClockId::Realtime);
        let gap = monotonic().saturating_sub(before);
        if gap < best.0 {
            let real = u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + time.tv_nsec as u64;
            best = (gap, real.saturating_sub(before + gap / 2));
        }
        if gap < CLOSE {
            break;
        }
    }
    best.1
}

/// The monotonic clock as of the kernel's last tick: up to 4 ms old, for a fifth of the cost.
pub fn monotonic_coarse() -> u64 {
    if cfg!(shuttle) {
        return monotonic();
    }
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Seconds since 1970 (UTC), as of the kernel's last tick: up to 4 ms old, and cheap.
pub fn unix_seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(0)
}

/// Microseconds since 1970 (UTC).
pub fn unix_micros() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + time.tv_nsec as u64 / 1_000
}
