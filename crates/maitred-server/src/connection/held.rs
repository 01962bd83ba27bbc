//! The memory of a connection, which counts against the budget of all.

use super::stream::Stream;
use super::{Connection, DRAIN_GRACE, nanos};
use crate::connection::Group;

/// How long a connection may be idle while there is little of something, as Jetty's LowResourceMonitor has it.
const LOW_KEEP_ALIVE: u64 = 1_000_000_000;

impl Connection {
    /// Bytes that it holds in buffers; what is beyond 4 GiB does not count.
    fn holds(&self) -> u32 {
        let streams: u64 = self.streams().map(Stream::held).sum();
        let writer = self.writer.as_ref().map_or(0, |writer| writer.held());
        u32::try_from(self.input.len() as u64 + streams + writer).unwrap_or(u32::MAX)
    }

    /// Tells the budget what has changed. One load where there is none.
    pub(super) fn tell_budget(&mut self, group: &Group) {
        let budget = &group.site.guard.budget;
        if !budget.is_on() {
            return;
        }
        let held = self.holds();
        if held == self.accounted {
            return;
        }
        let used_up = budget.change(self.accounted.into(), held.into());
        self.accounted = held;
        if used_up {
            group.groups.look_at_resources();
        }
    }

    /// It is over: it holds nothing, and is no connection of its client any more.
    pub(super) fn give_back_budget(&self, group: &Group) {
        if self.accounted > 0 {
            group.site.guard.budget.change(self.accounted.into(), 0);
        }
        if self.counted {
            group.site.guard.close(self.peer.ip());
        }
    }
}

/// How long a connection may be idle now, in nanoseconds.
pub(super) fn idle_time(group: &Group) -> u64 {
    let keep_alive = nanos(group.site.timeouts.keep_alive);
    if group.is_draining() {
        DRAIN_GRACE
    } else if group.site.guard.resources.low().is_some() {
        keep_alive.min(LOW_KEEP_ALIVE)
    } else {
        keep_alive
    }
}
