//! The clock. Nothing else of this crate asks the system for the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// Tells the seconds since 1970, UTC. Tests have clocks of their own.
pub type Clock = fn() -> u64;

/// The clock of the system; 0 if it stands before 1970.
pub fn system_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A clock as rustls asks for it: for the dates of client certificates and of their CRLs.
#[derive(Debug)]
pub(crate) struct Time(pub(crate) Clock);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs((self.0)())))
    }
}
