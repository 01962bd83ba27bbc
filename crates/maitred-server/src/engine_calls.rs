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

    /// No turn is taken any more. Work that has a place is cut by its group, work that comes later goes back to its caller.
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

    fn settle(&self, Seat(number, token): Seat, work: Option<Work>) -> Option<Work> {
        let Some(group) = self.groups.get(number).and_then(Weak::upgrade) else { return work };
        let token = Token::from_u64(token);
        if work.is_none() {
            group.slots.give_back(token.slot);
            return None;
        }
        let running = Arc::new(Running(Mutex::new(work)));
        group.seat(token, Arc::clone(&running) as Arc<_>);
        if !self.has_ended.load(Ordering::SeqCst) {
            group.resume(token);
            return None;
        }
        // The end may have gone past the slot before. Without a turn nothing has held the lock of the work.
        let late = running.take();
        group.cut_visitor(token);
        late
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

impl Running {
    fn take(&self) -> Option<Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

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
        if let Some(Work::Call(mut call)) = self.take() {
            call.stop(Instant::now());
        }
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

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "a test fails by a panic")]

    use std::io;
    use std::sync::{Arc, Mutex};

    use maitred_client::call::Options;
    use maitred_client::key::Key;
    use maitred_client::pushed::{CallHandle, Flow, Receiver, RequestBody};
    use maitred_client::{CallError, Report, Settings as ClientSettings};
    use maitred_exchange::Routes;
    use maitred_h1::{OutgoingRequest, ResponseFacts};
    use maitred_http::{FieldSet, Method, ResponseHead};
    use maitred_io::line_writer::Target;
    use maitred_log::{Level, Log};

    use super::EngineCalls;
    use crate::engine_client::EngineClient;
    use crate::server::Server;
    use crate::settings::Settings;

    /// Counts its ends under a lock that its caller has, too.
    struct Locks(Arc<Mutex<usize>>);

    impl Receiver for Locks {
        fn head(&mut self, _: &CallHandle, _: ResponseHead, _: ResponseFacts) -> Flow {
            Flow::Continue
        }

        fn data(&mut self, _: &CallHandle, _: &[u8]) -> Flow {
            Flow::Continue
        }

        fn end(self: Box<Self>, _: Result<(), CallError>, _: &Report) {
            *self.0.try_lock().expect("the caller has the lock") += 1;
        }
    }

    #[test]
    fn a_call_that_begins_while_the_server_ends_goes_back_to_its_caller() {
        let log = Log::open(Level::Error, Target::Path("/dev/null".into()), None).expect("the log opens");
        let settings = Settings::new(Routes::new(), Arc::new(log));
        let server = Server::prepare(settings, Box::new(|| Err(io::ErrorKind::Unsupported.into())));
        let server = server.expect("the server is made");
        let group = server.first();
        let calls = Arc::new(EngineCalls::by(std::slice::from_ref(group)));
        let client = EngineClient::new(ClientSettings::default());
        client.serve(Arc::clone(&calls) as Arc<_>, Arc::clone(&group.site.figures.calls) as Arc<_>);
        calls.end();
        let ends = Arc::new(Mutex::new(0));
        let request = OutgoingRequest {
            method: &Method::Get,
            target: b"/",
            authority: b"test",
            fields: &FieldSet::new(),
            length: None,
            upgrade: false,
        };
        let start = || {
            let key = Arc::new(Key::plain("127.0.0.1", 9));
            let (body, receiver) = (RequestBody::Whole(Arc::default()), Box::new(Locks(Arc::clone(&ends))));
            client.start(&key, &request, body, &Options::default(), receiver)
        };
        let held = ends.lock().expect("not poisoned");
        let not = start().expect_err("the server has ended");
        drop(held);
        assert!(matches!(not.error, CallError::NotServed));
        not.tell();
        assert_eq!(*ends.lock().expect("not poisoned"), 1);
    }
}
