//! Turns of several processes that accept from the same sockets: a process takes a connection only while it has a
//! free thread.
//!
//! ```text
//! open    watched, among the others: an event, or the bell
//!           free:     takes one, and goes to the end of the line (watches anew)
//!           three in a row: leaves the line for a moment --> paused --> open
//!           not free: watches no more, rings for the others --> closed
//! closed  nothing comes
//!           a thread has nothing else to do: takes one; or none waits --> open
//!           PATIENCE is over:                takes one: its backup poller reads it, answers from files, refuses
//! ```
//! The kernel wakes the process that has watched longest and has a sleeping thread (EPOLLEXCLUSIVE). The kernel
//! cannot know that the interpreter of that process is busy, so the process rings the bell, which wakes the next
//! process in line. While all processes are busy none watches, connections wait in the one queue of the socket, and
//! the first free process takes the oldest.

use std::sync::Arc;

use maitred_io::clock;
use maitred_io::listener::Backlog;
use maitred_turns::Signals;

use super::Group;
use super::accept::{EXHAUSTION_PAUSE, LOOK_AGAIN, One};
use crate::group::slots::Token;
use crate::group::turnstile::{Line, PAUSE, Side};

/// Longest wait of a connection in the kernel's queue while every process is busy, in nanoseconds. Then a backup
/// poller takes the connection although no thread can run its request. A free process takes a connection within
/// microseconds.
const PATIENCE: u64 = 10_000_000;

/// Longest wait in the kernel's queue where requests of this process already wait for a thread, in nanoseconds. The
/// connection would wait behind those, while another process may become free.
const LONG_PATIENCE: u64 = 100_000_000;

/// Looks at the shared listener `only`, or at all shared listeners, after an event, the bell, or a time. Returns
/// whether a connection was taken.
pub(super) fn look(group: &Arc<Group>, only: Option<u32>) -> bool {
    let mut line = group.groups.turnstile.lock();
    if group.is_draining() {
        // The code that closes the listeners takes or leaves the waiting connections.
        return false;
    }
    let now = clock::monotonic();
    let taken = match line.side {
        Side::Open if is_free(group) => take(group, only, &mut line, now),
        Side::Open => {
            close(group, &mut line, now + patience(group, now));
            // A thread may have become free before it could see that `side` is closed.
            let taken = is_free(group) && take(group, None, &mut line, now);
            if !taken && matches!(line.side, Side::Closed { .. }) {
                group.groups.ring();
            }
            taken
        }
        Side::Closed { due } if is_free(group) || now >= due => take(group, None, &mut line, now),
        Side::Paused { until } if now >= until => {
            open(group, &mut line);
            false
        }
        Side::Closed { .. } | Side::Paused { .. } => false,
    };
    set_time(group, &line.side, now);
    taken
}

/// Whether a thread of this process is free for a request.
fn is_free(group: &Arc<Group>) -> bool {
    group.scheduler.is_free()
        || group.groups.others(group.number).any(|other| other.scheduler.is_free_apart())
}

/// Time for which the next connection waits while no thread is free, in nanoseconds. Where requests wait in this
/// process, connections are taken one by one within the time that the oldest of these requests has waited: so new
/// clients wait about as long as present ones.
fn patience(group: &Group, now: u64) -> u64 {
    if group.scheduler.pool_at(0).queued() == 0 {
        return PATIENCE;
    }
    let waiting =
        backlogs(group).map(|backlog| backlog.map_or(1, |backlog| u64::from(backlog.waiting))).sum::<u64>();
    (group.scheduler.pool_at(0).queue_age(now) / waiting.max(1)).clamp(PATIENCE, LONG_PATIENCE)
}

/// Takes one connection from the first listener that has one.
fn take(group: &Arc<Group>, only: Option<u32>, line: &mut Line, now: u64) -> bool {
    let own = |slot: &u32| only.is_none_or(|only| only == *slot);
    for slot in group.shared_listeners().filter(own) {
        let listening = &group.listeners()[slot as usize];
        match listening.accept_one(group, slot) {
            One::Taken(token) => {
                after_one(group, slot, token, line, now);
                return true;
            }
            One::None => {}
            One::Full(error) => {
                listening.report_full(group, &error);
                close(group, line, now + EXHAUSTION_PAUSE);
                // No attempt is useful before that time.
                group.scheduler.set_deferred(false);
                group.groups.ring();
                return false;
            }
        }
    }
    if matches!(line.side, Side::Closed { .. }) {
        open(group, line);
    }
    false
}

/// Goes to the end of the line after a taken connection, or leaves the line for a moment.
fn after_one(group: &Arc<Group>, slot: u32, token: Option<Token>, line: &mut Line, now: u64) {
    if let Side::Closed { due } = &mut line.side {
        *due = now + patience(group, now);
        // The connection has waited, so its request has arrived: this thread reads it next.
        if let Some(token) = token {
            group.scheduler.ready_next(token.to_u64(), Signals::READ);
        }
    } else if line.note_taken(group.groups.note_taken()) {
        // The kernel wakes another process for the next connection. With fewer processors than processes, that
        // process gets none until this one sleeps.
        leave(group);
        line.side = Side::Paused { until: now + PAUSE };
        if has_waiting_connection(group) {
            group.groups.ring();
        }
    } else {
        // Each further waiting connection causes an event.
        group.listeners()[slot as usize].unwatch(&group.scheduler.poller);
        watch(group, slot);
    }
}

/// Whether a connection waits at a shared listener; true also where the kernel does not tell.
fn has_waiting_connection(group: &Group) -> bool {
    backlogs(group).any(|backlog| backlog.is_none_or(|backlog| backlog.waiting > 0))
}

/// Backlog of each shared listener; none where the kernel does not tell.
fn backlogs(group: &Group) -> impl Iterator<Item = Option<Backlog>> {
    group.shared_listeners().map(|slot| group.listeners()[slot as usize].backlog())
}

/// Stops watching the shared listeners and the bell.
fn leave(group: &Group) {
    for slot in group.shared_listeners() {
        group.listeners()[slot as usize].unwatch(&group.scheduler.poller);
    }
    // A process outside the line needs no bell.
    let _ = group.watch_bell(false);
}

/// Stops watching, until `due` at the latest.
fn close(group: &Group, line: &mut Line, due: u64) {
    if let Side::Open = line.side {
        leave(group);
    }
    line.side = Side::Closed { due };
    group.scheduler.set_deferred(true);
}

/// Watches again. Connections that already wait cause an event.
fn open(group: &Group, line: &mut Line) {
    line.side = Side::Open;
    group.scheduler.set_deferred(false);
    if let Err(error) = group.watch_bell(true) {
        group.site.log.error(format_args!("cannot watch for calls of other workers: {error}"));
    }
    for slot in group.shared_listeners() {
        watch(group, slot);
    }
}

fn watch(group: &Group, slot: u32) {
    let listening = &group.listeners()[slot as usize];
    let token = Token { slot, generation: 0 };
    if let Err(error) = listening.watch(&group.scheduler.poller, token.to_u64()) {
        group
            .site
            .log
            .error(format_args!("cannot watch {}: {error}; it accepts no more", listening.address()));
    }
}

/// Sets the time of the next look, as the deadline of the first shared listener.
fn set_time(group: &Group, side: &Side, now: u64) {
    let low = group.look_at_resources_now();
    let due = match side {
        Side::Open if low => now + LOOK_AGAIN,
        Side::Open => return,
        Side::Closed { due } | Side::Paused { until: due } if low => (*due).min(now + LOOK_AGAIN),
        Side::Closed { due } | Side::Paused { until: due } => *due,
    };
    if let Some(slot) = group.shared_listeners().next() {
        group.set_deadline(slot, due);
    }
}
