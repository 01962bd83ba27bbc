//! The seam to the kernel's readiness queue: one edge-triggered queue shared by many threads.
//!
//! Promises: each event goes to one waiting thread only; an edge is reported once. Another platform's queue is another
//! file with the same functions: `epoll` is Linux's and the one that has been run; `simulated` stands in for it under
//! `--cfg shuttle`, where a test schedules the threads.

#[cfg(not(shuttle))]
mod epoll;
#[cfg(shuttle)]
mod simulated;

#[cfg(not(shuttle))]
pub use epoll::{Alarm, Events, Poller, Waker};
#[cfg(shuttle)]
pub use simulated::{Alarm, Events, Poller, Waker};

use rustix::event::epoll::EventFlags;

/// The readiness of a descriptor in one event.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    flags: EventFlags,
}

impl Readiness {
    /// Something to read, nothing else.
    pub const READABLE: Self = Self { flags: EventFlags::IN };

    /// There may be bytes, or an end of file, to read.
    pub fn readable(self) -> bool {
        self.flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
    }

    /// There is room to write.
    pub fn writable(self) -> bool {
        self.flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR)
    }

    /// The peer has ended its sending side: a short read does not prove that nothing is left.
    pub fn read_closed(self) -> bool {
        self.flags.intersects(EventFlags::RDHUP | EventFlags::HUP)
    }

    /// The connection is dead in both directions.
    pub fn closed(self) -> bool {
        self.flags.intersects(EventFlags::HUP | EventFlags::ERR)
    }
}

/// The events that a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to read, room to write and the peer's end; edges.
    ReadWrite,
    /// Room to write and the peer's end, but not bytes: a connection whose request is being run.
    Write,
    /// Bytes to read; edges.
    Read,
    /// Bytes to read, or connections; edges. Of several queues that watch the same source, one with a thread that waits there is
    /// woken, the one that has watched longest (EPOLLEXCLUSIVE, epoll_ctl(2)); the others before it have the event when they
    /// look. Cannot be modified.
    ReadExclusive,
    /// Readable as a level: every wait reports it until it is read.
    ReadLevel,
    /// Bytes to read, once: nothing more is reported until the next change of the interest.
    ReadOnce,
    /// Room to write, or a connection that is made or refused, once.
    WriteOnce,
    /// Either, once.
    ReadWriteOnce,
}

impl Interest {
    #[cfg(not(shuttle))]
    fn flags(self) -> EventFlags {
        match self {
            Self::ReadWrite => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
            Self::Write => EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
            Self::Read => EventFlags::IN | EventFlags::ET,
            Self::ReadExclusive => EventFlags::IN | EventFlags::ET | EventFlags::EXCLUSIVE,
            Self::ReadLevel => EventFlags::IN,
            Self::ReadOnce => EventFlags::IN | EventFlags::ONESHOT,
            Self::WriteOnce => EventFlags::OUT | EventFlags::ONESHOT,
            Self::ReadWriteOnce => EventFlags::IN | EventFlags::OUT | EventFlags::ONESHOT,
        }
    }
}
