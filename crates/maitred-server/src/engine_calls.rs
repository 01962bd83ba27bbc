//! The turns of the engine's own calls and tasks, in slots beside those of connections.
//!
//! ```text
//! Work --place--> a slot of a group --turn--> Pushed (maitred-client) --> Receiver
//!                   ^  claim, generation, timer, epoll: as of connections
//! ```
//! Work belongs to the group of the request that its caller runs, and any thread that polls there takes its turns.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use maitred_client::CallError;
use maitred_client::pushed::{Next, Pushed};
use maitred_io::clock;
use maitred_io::outgoing::Wanted;
use maitred_io::poller::Interest;
use maitred_turns::Turn;

use crate::connection::Group;
use crate::engine_client::{Driver, Seat, Work};
use crate::group::slots::Token;
use crate::group::thread_registry::own_group;
use crate::group::{Resident, Visitor};

/// The groups that drive the calls.
pub(crate) struct EngineCalls {
    groups: Box<[Weak<Group>]>,
    has_ended: AtomicBool,
}

impl EngineCalls {
    pub(crate) fn by(groups: &[Arc<Group>]) -> Self {
        Self { groups: groups.iter().map(Arc::downgrade).collect(), has_ended: AtomicBool::new(false) }
    }

    /// No turn is taken any more. Work that has a place is cut by its group, work that comes later here.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }
}

impl Driver for EngineCalls {
    fn reserve(&self) -> Option<(Seat, Waker)> {
        let near = own_group().filter(|number| *number < self.groups.len());
        let number = near.unwrap_or_default();
        let group = self.groups.get(number)?.upgrade()?;
        let token = group.reserve()?;
        let waker = Waker::from(Arc::new(Bell { group: Arc::downgrade(&group), token }));
        Some((Seat(number, token.to_u64()), waker))
    }

    fn settle(&self, Seat(number, token): Seat, work: Option<Work>) {
        let Some(group) = self.groups.get(number).and_then(Weak::upgrade) else {
            return work.into_iter().for_each(end);
        };
        let token = Token::from_u64(token);
        match work {
            Some(work) => group.seat(token, Arc::new(Running(Mutex::new(Some(work))))),
            None => group.slots.give_back(token.slot),
        }
        if self.has_ended.load(Ordering::SeqCst) {
            // The end may have gone past the slot before.
            group.cut_visitor(token);
        }
    }
}

/// Brings a call its next turn.
struct Bell {
    group: Weak<Group>,
    token: Token,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(group) = self.group.upgrade() {
            group.resume(self.token);
        }
    }
}

/// Work in a slot; none behind its end. The claim of the slot keeps its lock free.
struct Running(Mutex<Option<Work>>);

impl<R: Resident> Visitor<R> for Running {
    fn turn(&self, group: &Arc<crate::group::Group<R>>, token: Token) -> Turn {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(work) = &mut *place else { return Turn::Close };
        let now = Instant::now();
        let next = match work {
            Work::Call(call) => watch(call.go_on(now), call, group, token),
            Work::Task(task) => task.turn(now),
        };
        match next {
            Next::Wait(until) => {
                let limit = until.map(|until| until.saturating_duration_since(now));
                set_limit(group, token, limit);
                Turn::Wait
            }
            Next::Later => Turn::Later,
            Next::Ended => {
                *place = None;
                Turn::Close
            }
        }
    }

    fn cut(&self) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.into_iter().for_each(end);
    }
}

/// The server ends.
fn end(work: Work) {
    if let Work::Call(mut call) = work {
        call.stop(Instant::now());
    }
}

/// Has an event of a socket bring the next turn. A socket is armed for one event: behind the end of its call it lies in the pool with an
/// old token, which the claim refuses.
fn watch<R: Resident>(next: Next, call: &mut Pushed, group: &crate::group::Group<R>, token: Token) -> Next {
    if !matches!(next, Next::Wait(_)) {
        return next;
    }
    let poller = &group.scheduler.poller;
    let armed = call.sockets().try_for_each(|(socket, wanted)| {
        let interest = match wanted {
            Wanted::Read => Interest::ReadOnce,
            Wanted::Write => Interest::WriteOnce,
            Wanted::Both => Interest::ReadWriteOnce,
        };
        match poller.modify(socket, token.to_u64(), interest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                poller.add(socket, token.to_u64(), interest)
            }
            changed => changed,
        }
    });
    match armed {
        Ok(()) => next,
        Err(error) => call.fail(CallError::Connect("the system".to_owned(), error)),
    }
}

fn set_limit<R: Resident>(group: &crate::group::Group<R>, token: Token, limit: Option<Duration>) {
    match limit {
        Some(limit) => {
            let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
            group.set_deadline(token.slot, clock::monotonic().saturating_add(limit));
        }
        None => group.timers.cancel(token.slot),
    }
}
