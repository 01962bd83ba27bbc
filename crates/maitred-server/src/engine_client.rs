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
use maitred_client::pushed::{CallHandle, Next, Pushed, Receiver, RequestBody};
use maitred_client::{CallError, Client, Settings};
use maitred_h1::OutgoingRequest;
use maitred_io::clock;
use maitred_io::outgoing::Wanted;
use maitred_io::poller::Interest;
use maitred_turns::Turn;

use crate::connection::{Connection, Group};
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
    /// The request cannot be sent as given, or [`NotServed`](CallError::NotServed). The receiver is dropped without its end.
    pub fn start(
        &self,
        key: &Arc<Key>,
        request: &OutgoingRequest<'_>,
        body: RequestBody,
        options: &Options,
        receiver: Box<dyn Receiver>,
    ) -> Result<CallHandle, CallError> {
        let engine = self.0.engine.load_full().ok_or(CallError::NotServed)?;
        let near = own_group().and_then(|number| engine.groups.get(number));
        let group = near.or(engine.groups.first()).and_then(Weak::upgrade).ok_or(CallError::NotServed)?;
        let mut place = None;
        let make = |token| {
            place = Some(token);
            let waker = Waker::from(Arc::new(Bell { group: Arc::downgrade(&group), token }));
            let client = &engine.client;
            let pushed =
                Pushed::begin(client, key, request, body, options, receiver, waker, Instant::now())?;
            let handle = pushed.handle();
            let running: Arc<dyn Visitor<Connection>> = Arc::new(Running(Mutex::new(Some(Box::new(pushed)))));
            Ok::<_, CallError>((running, handle))
        };
        let handle = group.receive_visitor(make)?.ok_or(CallError::NotServed)?;
        if let Some(token) = place.filter(|_| engine.has_ended.load(Ordering::SeqCst)) {
            // The end may have gone past its slot before.
            group.cut_visitor(token);
        }
        Ok(handle)
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

/// A call in a slot; none behind its end. The claim of the slot keeps its lock free.
struct Running(Mutex<Option<Box<Pushed>>>);

impl<R: Resident> Visitor<R> for Running {
    fn turn(&self, group: &Arc<crate::group::Group<R>>, token: Token) -> Turn {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pushed) = &mut *place else { return Turn::Close };
        let now = Instant::now();
        match pushed.go_on(now) {
            Next::Wait(until) => {
                let limit = until.map(|until| until.saturating_duration_since(now));
                match wait(group, token, pushed, limit) {
                    Ok(()) => Turn::Wait,
                    Err(error) => {
                        pushed.fail(CallError::Connect("the system".to_owned(), error));
                        *place = None;
                        Turn::Close
                    }
                }
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
        if let Some(mut pushed) = taken {
            pushed.stop(Instant::now());
        }
    }
}

/// Has an event of a socket or the time bring the next turn. A socket is armed for one event: behind the end of its call it lies in the pool
/// with an old token, which the claim refuses.
fn wait<R: Resident>(
    group: &crate::group::Group<R>,
    token: Token,
    pushed: &Pushed,
    limit: Option<Duration>,
) -> io::Result<()> {
    let poller = &group.scheduler.poller;
    for (socket, wanted) in pushed.sockets() {
        let interest = match wanted {
            Wanted::Read => Interest::ReadOnce,
            Wanted::Write => Interest::WriteOnce,
            Wanted::Both => Interest::ReadWriteOnce,
        };
        match poller.modify(socket, token.to_u64(), interest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                poller.add(socket, token.to_u64(), interest)?;
            }
            changed => changed?,
        }
    }
    match limit {
        Some(limit) => {
            let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
            group.set_deadline(token.slot, clock::monotonic().saturating_add(limit));
        }
        None => group.timers.cancel(token.slot),
    }
    Ok(())
}
