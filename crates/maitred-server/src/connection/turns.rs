//! Taking turns with other processes that accept from the same sockets: one takes a connection only while it has a thread for it.
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
//! The kernel wakes the process that has watched longest and has a thread that sleeps (EPOLLEXCLUSIVE). It cannot know that the
//! interpreter of that one is busy, so the process says it by the bell, for which the next one in line is woken. Where all are
//! busy nobody watches, connections wait in the one queue of the socket, and who is free first takes the oldest.

use std::sync::Arc;

use maitred_io::clock;
use maitred_io::listener::Backlog;
use maitred_turns::Signals;

use super::Group;
use super::accept::{EXHAUSTION_PAUSE, LOOK_AGAIN, One};
use crate::group::slots::Token;
use crate::group::turnstile::{Line, PAUSE, Side};

/// How long a connection waits in the kernel's queue while every process is busy, before a backup poller takes it although it cannot have
/// it run; in nanoseconds. A process that is free takes it within microseconds.
const PATIENCE: u64 = 10_000_000;

/// The same at most where requests of this process wait for a thread already: it would wait behind those, while another process may
/// become free. In nanoseconds.
const LONG_PATIENCE: u64 = 100_000_000;

/// Looks at the shared listener `only`, or at all of them: an event, the bell, or a time says that there may be something. Whether a
/// connection was taken.
pub(super) fn look(group: &Arc<Group>, only: Option<u32>) -> bool {
    let mut line = group.groups.turnstile.lock();
    if group.is_draining() {
        // What waits is taken, or left, by whoever closes the listeners.
        return false;
    }
    let now = clock::monotonic();
    let taken = match line.side {
        Side::Open if is_free(group) => take(group, only, &mut line, now),
        Side::Open => {
            close(group, &mut line, now + patience(group, now));
            // A thread may have become free before it could see that.
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

/// Whether this process runs at once what it takes.
fn is_free(group: &Arc<Group>) -> bool {
    group.scheduler.is_free()
        || group.groups.others(group.number).any(|other| other.scheduler.is_free_apart())
}

/// How long the next connection waits while nobody is free. Where requests wait here, those in the kernel's queue are taken one by one
/// within the time that the first of these has waited: so clients that come wait about as long as those that are there.
fn patience(group: &Group, now: u64) -> u64 {
    if !group.scheduler.has_queue() {
        return PATIENCE;
    }
    let waiting =
        backlogs(group).map(|backlog| backlog.map_or(1, |backlog| u64::from(backlog.waiting))).sum::<u64>();
    (group.scheduler.queue_age(now) / waiting.max(1)).clamp(PATIENCE, LONG_PATIENCE)
}

/// Takes one connection, of the first listener that has one.
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
                // Nobody looks before that time.
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

/// Goes to the end of the line, if it is in it, or leaves it for a moment.
fn after_one(group: &Arc<Group>, slot: u32, token: Option<Token>, line: &mut Line, now: u64) {
    if let Side::Closed { due } = &mut line.side {
        *due = now + patience(group, now);
        // It has waited, so that its request is there: this thread reads it next.
        if let Some(token) = token {
            group.scheduler.ready_next(token.to_u64(), Signals::READ);
        }
    } else if line.note_taken(group.groups.note_taken()) {
        // Another one has been woken for what comes next, or is now. With fewer processors than processes it has none until this one
        // sleeps.
        leave(group);
        line.side = Side::Paused { until: now + PAUSE };
        if somebody_waits(group) {
            group.groups.ring();
        }
    } else {
        // What waits besides is an event.
        group.listeners()[slot as usize].unwatch(&group.scheduler.poller);
        watch(group, slot);
    }
}

/// Whether a connection waits at a shared listener; also where the kernel does not tell.
fn somebody_waits(group: &Group) -> bool {
    backlogs(group).any(|backlog| backlog.is_none_or(|backlog| backlog.waiting > 0))
}

/// What waits at each shared listener; none where the kernel does not tell.
fn backlogs(group: &Group) -> impl Iterator<Item = Option<Backlog>> {
    group.shared_listeners().map(|slot| group.listeners()[slot as usize].backlog())
}

/// Watches no more.
fn leave(group: &Group) {
    for slot in group.shared_listeners() {
        group.listeners()[slot as usize].unwatch(&group.scheduler.poller);
    }
    // Who is not in line hears nothing.
    let _ = group.watch_bell(false);
}

/// Watches no more, until `due` at the latest.
fn close(group: &Group, line: &mut Line, due: u64) {
    if let Side::Open = line.side {
        leave(group);
    }
    line.side = Side::Closed { due };
    group.scheduler.set_deferred(true);
}

/// Watches again. What waits is an event.
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

/// When somebody looks again whatever happens: at the first shared listener.
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
