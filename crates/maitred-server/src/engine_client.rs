//! Calls of the engine to other servers: the third driver of maitred-client, after the thread that waits and the event loop.
//!
//! ```text
//! start --> a slot of a group --turns--> Pushed (maitred-client) --> Receiver
//!             ^  claim, generation, timer, epoll: those of connections
//! ```
//! A call belongs to the group of the request that its caller runs, and any thread that polls there takes its turns. Before the server
//! starts and after its end a call is refused; in between one begins also while the server drains, and waits for its first turn
//! until there are threads. The drain does not wait for calls: a call for a request lives with the connection of that. At the end of the
//! server each gets [`CallError::NotServed`].
//!
//! Leaves out: the call itself ([`maitred_client::pushed`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};
use std::{fmt, io};

use arc_swap::ArcSwapOption;
use maitred_client::call::Options;
use maitred_client::key::Key;
use maitred_client::pushed::{CallHandle, Next, NotBegun, Pushed, Receiver, RequestBody};
use maitred_client::{CallError, Client, Settings};
use maitred_h1::OutgoingRequest;
use maitred_io::clock;
use maitred_io::outgoing::Wanted;
use maitred_io::poller::Interest;
use maitred_turns::Turn;

use crate::connection::Group;
use crate::group::slots::Token;
use crate::group::thread_registry::own_group;
use crate::group::{Resident, Visitor};

/// The client of the engine, which its clones share: one pool and one account of its calls.
#[derive(Clone, Default)]
pub struct EngineClient(Arc<Shared>);

#[derive(Default)]
struct Shared {
    settings: Settings,
    engine: ArcSwapOption<Engine>,
}

/// The server that drives the calls.
struct Engine {
    client: Client,
    groups: Box<[Weak<Group>]>,
    has_ended: AtomicBool,
}

impl EngineClient {
    /// A client with these settings. An observer among them gets the reports that the server would count.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Shared { settings, engine: ArcSwapOption::empty() }))
    }

    /// Begins a call, from any thread, and waits for nothing. The receiver is called by threads that poll, never within this
    /// function.
    ///
    /// # Errors
    /// The request cannot be sent as given, or [`NotServed`](CallError::NotServed).
    pub fn start(
        &self,
        key: &Arc<Key>,
        request: &OutgoingRequest<'_>,
        body: RequestBody,
        options: &Options,
        receiver: Box<dyn Receiver>,
    ) -> Result<CallHandle, NotBegun> {
        let place = match self.place() {
            Ok(place) => place,
            Err(error) => return Err(NotBegun { error, receiver }),
        };
        let (client, waker, now) = (&place.engine.client, place.waker(), Instant::now());
        let pushed = Pushed::begin(client, key, request, body, options, receiver, waker, now)?;
        let handle = pushed.handle();
        place.give_to(Work::Call(Box::new(pushed)));
        Ok(handle)
    }

    /// Runs a task until that ends or the server does: its first turn comes soon. The waker brings it another one, from any thread.
    ///
    /// # Errors
    /// [`NotServed`](CallError::NotServed).
    pub fn run(&self, task: Box<dyn Task>) -> Result<Waker, CallError> {
        let place = self.place()?;
        let waker = place.waker();
        place.give_to(Work::Task(task));
        Ok(waker)
    }

    /// A slot, in the group of the request that this thread runs.
    fn place(&self) -> Result<Place, CallError> {
        let engine = self.0.engine.load_full().ok_or(CallError::NotServed)?;
        let near = own_group().and_then(|number| engine.groups.get(number));
        let group = near.or(engine.groups.first()).and_then(Weak::upgrade).ok_or(CallError::NotServed)?;
        let token = group.reserve().ok_or(CallError::NotServed)?;
        Ok(Place { engine, group, token, is_taken: false })
    }

    /// The pool and the account of the calls, while a server drives them.
    pub fn client(&self) -> Option<Client> {
        Some(self.0.engine.load_full()?.client.clone())
    }

    /// These groups drive the calls from now on.
    pub(crate) fn serve(&self, groups: &[Arc<Group>]) {
        let mut settings = self.0.settings.clone();
        if let Some(group) = groups.first() {
            settings.observer.get_or_insert_with(|| group.site.figures.calls.clone());
        }
        let groups = groups.iter().map(Arc::downgrade).collect();
        let has_ended = AtomicBool::new(false);
        self.0.engine.store(Some(Arc::new(Engine { client: Client::new(settings), groups, has_ended })));
    }

    /// These groups drive no call from now on.
    pub(crate) fn close(&self, groups: &[Arc<Group>]) {
        let own = self.0.engine.load_full().filter(|engine| engine.is_of(groups));
        if let Some(engine) = own {
            engine.has_ended.store(true, Ordering::SeqCst);
            self.0.engine.compare_and_swap(&engine, None);
        }
    }
}

impl Engine {
    fn is_of(&self, groups: &[Arc<Group>]) -> bool {
        let first = self.groups.first().zip(groups.first());
        first.is_some_and(|(own, first)| std::ptr::eq(own.as_ptr(), Arc::as_ptr(first)))
    }
}

/// A slot for work, which is given back unless it was taken.
struct Place {
    engine: Arc<Engine>,
    group: Arc<Group>,
    token: Token,
    is_taken: bool,
}

impl Place {
    fn waker(&self) -> Waker {
        Waker::from(Arc::new(Bell { group: Arc::downgrade(&self.group), token: self.token }))
    }

    fn give_to(mut self, work: Work) {
        self.is_taken = true;
        self.group.seat(self.token, Arc::new(Running(Mutex::new(Some(work)))));
        if self.engine.has_ended.load(Ordering::SeqCst) {
            // The end may have gone past the slot before.
            self.group.cut_visitor(self.token);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_taken {
            self.group.slots.give_back(self.token.slot);
        }
    }
}

impl fmt::Debug for EngineClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_served = self.0.engine.load().is_some();
        f.debug_struct("EngineClient").field("is_served", &is_served).finish_non_exhaustive()
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

/// Work of the engine that goes on by time, without a thread. It must not wait, and is called without a lock.
pub trait Task: Send {
    /// Goes on: at the time that the last turn has named, and when it is woken. A turn too many does no harm.
    fn turn(&mut self, now: Instant) -> Next;
}

enum Work {
    Call(Box<Pushed>),
    Task(Box<dyn Task>),
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
        if let Some(Work::Call(mut call)) = taken {
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
