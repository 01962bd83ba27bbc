//! Memory that a serving thread lends to each of its turns.

use maitred_io::clock;
use maitred_turns::{TurnClock, TurnContext};

use crate::memory::Date;
use crate::record::Record;

/// Bytes received by one call: the largest part of a socket buffer worth copying at once; a request
/// head needs one page of it.
const RECEIVE: usize = 64 * 1024;

/// The buffers of a thread that serves.
#[derive(Default)]
pub struct Scratch {
    receive: Vec<u8>,
    /// Response bytes of the present turn.
    pub out: Vec<u8>,
    /// Records of the exchanges whose responses end in `out`.
    pub records: Vec<Record>,
    /// A normalised path.
    pub path: Vec<u8>,
    date: Date,
    clock: TurnClock,
    /// Lead of the real clock over the monotonic one, and the time of that measurement; both in nanoseconds.
    ahead: (u64, u64),
}

/// How long a measured lead is used, in nanoseconds. A clock under correction drifts less in that time (adjtimex(2):
/// at most 0.5 ms a second) than the precision of a span.
const AHEAD_IS_GOOD: u64 = 20_000_000;

impl Scratch {
    /// Converts a time of the real clock to the monotonic clock; at most `now`. Both in nanoseconds.
    pub fn monotonic_of(&mut self, real: u64, now: u64) -> u64 {
        let (mut ahead, looked) = self.ahead;
        if now.saturating_sub(looked) > AHEAD_IS_GOOD {
            ahead = clock::real_ahead();
            self.ahead = (ahead, now);
        }
        real.saturating_sub(ahead).min(now)
    }

    /// The receive buffer; give it back with [`return_receive`](Self::return_receive).
    pub fn take_receive(&mut self) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.receive);
        if buffer.is_empty() {
            buffer.resize(RECEIVE, 0);
        }
        buffer
    }

    /// Gives the receive buffer back.
    pub fn return_receive(&mut self, buffer: Vec<u8>) {
        self.receive = buffer;
    }

    /// The `Date` of a response made now.
    pub fn date(&mut self) -> &[u8; 29] {
        self.date.now()
    }

    /// Seconds since 1970 of the last [`date`](Self::date).
    pub fn unix_seconds(&self) -> u64 {
        self.date.second
    }
}

impl TurnContext for Scratch {
    fn clock(&self) -> &TurnClock {
        &self.clock
    }

    fn clock_mut(&mut self) -> &mut TurnClock {
        &mut self.clock
    }
}
