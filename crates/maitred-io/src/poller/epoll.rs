//! Linux: epoll, eventfd and timerfd.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventData};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::{Interest, Readiness};

/// Events of one wait. Reused from wait to wait.
pub struct Events {
    list: Vec<epoll::Event>,
}

// SAFETY: the pointer that an event of epoll can carry is never one here: tokens are numbers.
unsafe impl Send for Events {}

impl Events {
    /// Room for `most` events a wait.
    pub fn with_capacity(most: usize) -> Self {
        Self { list: Vec::with_capacity(most) }
    }

    /// The events of the last wait: the token given at registration, and the readiness.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, Readiness)> + Clone + '_ {
        self.list.iter().map(|event| (event.data.u64(), Readiness { flags: event.flags }))
    }
}

/// A readiness queue that any number of threads wait on.
pub struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// A new queue.
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

    /// Changes the interest in `source`. Present readiness is reported as an edge.
    pub fn modify(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token), interest.flags())?)
    }

    /// Stops watching `source`.
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Watches a waker under `token`: [`Interest::Read`] wakes one thread a call,
    /// [`Interest::ReadLevel`] every thread until the waker is cleared.
    pub fn add_waker(&self, waker: &Waker, token: u64, interest: Interest) -> io::Result<()> {
        self.add(waker, token, interest)
    }

    /// Waits until there is an event to fetch or `waker` is set, and takes neither. A thread that
    /// waits here is no waiter of the queue and takes no event from those that are.
    pub fn watch(&self, waker: &Waker) -> io::Result<()> {
        let mut sources = [PollFd::new(&self.epoll, PollFlags::IN), PollFd::new(&waker.event, PollFlags::IN)];
        match rustix::event::poll(&mut sources, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is an event to fetch. Takes none.
    pub fn is_readable(&self) -> bool {
        let mut source = [PollFd::new(&self.epoll, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut source, Some(&now)), Ok(1..))
    }

    /// Waits until something happens or `limit` is over (`None`: for ever) and fills `events` up to
    /// its capacity. A signal ends the wait early without events.
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
    /// Readable while there is an event to fetch.
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
    /// A waker, to be added to a poller by [`Poller::add_waker`].
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

impl From<OwnedFd> for Waker {
    /// The waker of another process, whose descriptor this is.
    fn from(event: OwnedFd) -> Self {
        Self { event }
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

    /// Waits until it rings, or a signal comes. A thread that sets it meanwhile puts the end of the wait off.
    pub fn wait(&self) {
        // Fails only when it is interrupted, or for lack of memory: then it is a wait that was too short.
        let _ = rustix::event::poll(&mut [PollFd::new(&self.timer, PollFlags::IN)], None);
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
    use crate::poller::Interest;

    #[test]
    fn a_waker_is_an_edge_for_one_wait() {
        let poller = Poller::new().unwrap();
        let waker = Waker::new().unwrap();
        poller.add_waker(&waker, 7, Interest::Read).unwrap();
        let mut events = Events::with_capacity(4);
        waker.wake();
        poller.watch(&waker).unwrap();
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
