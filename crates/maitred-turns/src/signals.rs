//! Signals: bits for the events of a connection or another object with a token.

use maitred_io::poller::Readiness;

/// Events of a connection; bits are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals(u32);

impl Signals {
    /// No event.
    pub const NONE: Self = Self(0);
    /// There may be bytes to read.
    pub const READ: Self = Self(1 << 1);
    /// The peer has ended its sending side: read until the end.
    pub const READ_CLOSED: Self = Self(1 << 2);
    /// There is room to write.
    pub const WRITE: Self = Self(1 << 3);
    /// The connection is dead in both directions.
    pub const CLOSED: Self = Self(1 << 4);
    /// A deadline is due.
    pub const TIMER: Self = Self(1 << 5);
    /// Go on: a budget was used up, or an exchange has ended.
    pub const RESUME: Self = Self(1 << 6);
    /// Close idle connections soon: the server drains, or is short of something.
    pub const DRAIN: Self = Self(1 << 7);

    const ALL: u32 = 0xfe;

    /// The signals of an event of a connection.
    #[must_use]
    pub fn of(readiness: Readiness) -> Self {
        let mut signals = Self::NONE;
        for (said, signal) in [
            (readiness.readable(), Self::READ),
            (readiness.read_closed(), Self::READ_CLOSED),
            (readiness.writable(), Self::WRITE),
            (readiness.closed(), Self::CLOSED),
        ] {
            if said {
                signals = signals.with(signal);
            }
        }
        signals
    }

    /// Whether any of `other` is set.
    #[must_use]
    pub fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits: those from 1 to 7 of a word.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Signals of such bits; others are left out.
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL)
    }

    /// Both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
