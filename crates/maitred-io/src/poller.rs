//! The seam to the kernel's readiness queue: one edge-triggered epoll shared by many threads.
//!
//! Promises: a thread that waits gets events nobody else gets; an edge is reported once. Another
//! platform's queue is another file with the same functions. Linux is what has been run.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// What one event says.
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    flags: EventFlags,
}

impl Readiness {
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

/// What a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to read, room to write and the peer's end; edges.
    ReadWrite,
    /// Room to write and the peer's end, but not bytes: a connection whose request is being run.
    Write,
    /// Bytes to read; edges.
    Read,
    /// Readable as a level: every wait reports it until it is read.
    ReadLevel,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::ReadWrite => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
            Self::Write => EventFlags::OUT | EventFlags::ET,
            Self::Read => EventFlags::IN | EventFlags::ET,
            Self::ReadLevel => EventFlags::IN,
        }
    }
}

/// Events of one wait. Reused from wait to wait.
pub struct Events {
    list: Vec<epoll::Event>,
}

impl Events {
    /// Room for `most` events a wait.
    pub fn with_capacity(most: usize) -> Self {
        Self { list: Vec::with_capacity(most) }
    }

    /// The events of the last wait: the token given at registration, and what happened.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, Readiness)> + '_ {
        self.list.iter().map(|event| (event.data.u64(), Readiness { flags: event.flags }))
    }
}

/// A readiness queue that any number of threads wait on.
pub struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// A new queue.
    ///
    /// # Errors
    /// The process or the system is out of descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Watches `source` under `token`. Closing the last descriptor of the source ends it.
    ///
    /// # Errors
    /// The kernel's (ENOSPC at the limit of watches, ENOMEM).
    pub fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), interest.flags())?)
    }

    /// Changes what `source` is watched for. What is ready at this moment is reported as an edge.
    ///
    /// # Errors
    /// The kernel's.
    pub fn modify(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token), interest.flags())?)
    }

    /// Stops watching `source`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits until something happens or `limit` is over (`None`: for ever) and fills `events` up to
    /// its capacity. A signal ends the wait early without events.
    ///
    /// # Errors
    /// The kernel's, except EINTR.
    pub fn wait(&self, events: &mut Events, limit: Option<Duration>) -> io::Result<()> {
        events.list.clear();
        let limit = limit.map(timespec);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events.list), limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// Wakes a thread that waits on a poller.
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A waker, to be added to a poller with [`Interest::Read`] (wakes one thread a call) or
    /// [`Interest::ReadLevel`] (wakes every thread until [`clear`](Self::clear)).
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self { event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Wakes.
    pub fn wake(&self) {
        // The only failure is a counter at its limit, and then the descriptor is readable already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Takes all wake-ups back.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.event, &mut [0u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// One timer descriptor, added to a poller with [`Interest::Read`].
pub struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// A timer that is not set.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// Rings once at `deadline`, in nanoseconds of the monotonic clock; at once if that is over.
    pub fn set(&self, deadline: u64) {
        let at = Timespec {
            // Zero would disarm.
            tv_sec: i64::try_from(deadline.max(1) / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(deadline.max(1) % 1_000_000_000).unwrap_or(0),
        };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        // Fails only for values out of range, which the conversion above excludes.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec);
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_is_an_edge_for_one_wait() {
        let poller = Poller::new().unwrap();
        let waker = Waker::new().unwrap();
        poller.add(&waker, 7, Interest::Read).unwrap();
        let mut events = Events::with_capacity(4);
        waker.wake();
        poller.wait(&mut events, None).unwrap();
        assert_eq!(events.iter().map(|(token, _)| token).collect::<Vec<_>>(), [7]);
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.iter().len(), 0);
    }

    #[test]
    fn an_alarm_in_the_past_rings_at_once() {
        let poller = Poller::new().unwrap();
        let alarm = Alarm::new().unwrap();
        poller.add(&alarm, 9, Interest::Read).unwrap();
        alarm.set(1);
        let mut events = Events::with_capacity(4);
        poller.wait(&mut events, None).unwrap();
        assert_eq!(events.iter().next().map(|(token, _)| token), Some(9));
    }
}
