//! Calls of the engine to other servers: the third driver of maitred-client, after the thread that waits and the event loop.
//!
//! Before the server starts and after its end a call is refused; in between one begins also while the server drains, and waits for its
//! first turn until there are threads. The drain does not wait for calls: a call for a request lives with the connection of that. At the
//! end of the server each gets [`CallError::NotServed`].
//!
//! Leaves out: the call itself ([`maitred_client::pushed`]), and its turns (`engine_calls.rs`).

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use maitred_client::call::Options;
use maitred_client::key::Key;
use maitred_client::pushed::{CallHandle, Next, NotBegun, Pushed, Receiver, RequestBody};
use maitred_client::{CallError, Client, Observer, Settings};
use maitred_h1::OutgoingRequest;

/// The client of the engine, which its clones share: one pool and one account of its calls.
#[derive(Clone, Default)]
pub struct EngineClient(Arc<Shared>);

#[derive(Default)]
struct Shared {
    settings: Settings,
    engine: ArcSwapOption<Engine>,
}

struct Engine {
    client: Client,
    driver: Arc<dyn Driver>,
}

/// The server that drives the calls.
pub(crate) trait Driver: Send + Sync {
    /// A place for work that is about to be made, and the waker that brings it a turn; none at the end of the server.
    fn reserve(&self) -> Option<(Seat, Waker)>;

    /// Has the work take its turns in its place, or gives the place back. The work comes back at the end of the server.
    fn settle(&self, seat: Seat, work: Option<Work>) -> Option<Work>;
}

/// A place for work: the number of its group, and its token there.
pub(crate) struct Seat(pub(crate) usize, pub(crate) u64);

/// Work of the engine that goes on by events and by time.
pub(crate) enum Work {
    Call(Box<Pushed>),
    Task(Box<dyn Task>),
}

/// Work of the engine that goes on by time, without a thread. It must not wait, and is called without a lock.
pub trait Task: Send {
    /// Goes on: at the time that the last turn has named, and when it is woken. A turn too many does no harm.
    fn turn(&mut self, now: Instant) -> Next;
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
        let engine = self.0.engine.load_full();
        let seat = engine.as_deref().and_then(|engine| Some((engine, engine.driver.reserve()?)));
        let Some((Engine { client, driver }, (seat, waker))) = seat else {
            return Err(NotBegun { error: CallError::NotServed, receiver });
        };
        match Pushed::begin(client, key, request, body, options, receiver, waker, Instant::now()) {
            Ok(pushed) => {
                let handle = pushed.handle();
                let late = match driver.settle(seat, Some(Work::Call(Box::new(pushed)))) {
                    Some(Work::Call(call)) => call.withdraw(Instant::now()),
                    _ => None,
                };
                late.map_or(Ok(handle), Err)
            }
            Err(not) => {
                driver.settle(seat, None);
                Err(not)
            }
        }
    }

    /// Runs a task until that ends or the server does: its first turn comes soon. The waker brings it another one, from any thread.
    ///
    /// # Errors
    /// [`NotServed`](CallError::NotServed).
    pub fn run(&self, task: Box<dyn Task>) -> Result<Waker, CallError> {
        let engine = self.0.engine.load_full().ok_or(CallError::NotServed)?;
        let (seat, waker) = engine.driver.reserve().ok_or(CallError::NotServed)?;
        match engine.driver.settle(seat, Some(Work::Task(task))) {
            Some(_late) => Err(CallError::NotServed),
            None => Ok(waker),
        }
    }

    /// The pool and the account of the calls, while a server drives them.
    pub fn client(&self) -> Option<Client> {
        Some(self.0.engine.load_full()?.client.clone())
    }

    /// This drives the calls from now on, and `observer` gets their reports unless the settings name one.
    pub(crate) fn serve(&self, driver: Arc<dyn Driver>, observer: Arc<dyn Observer>) {
        let mut settings = self.0.settings.clone();
        settings.observer.get_or_insert(observer);
        self.0.engine.store(Some(Arc::new(Engine { client: Client::new(settings), driver })));
    }

    /// This drives no call from now on.
    pub(crate) fn leave(&self, driver: &Arc<dyn Driver>) {
        let engine = self.0.engine.load();
        if engine.as_ref().is_some_and(|engine| Arc::ptr_eq(&engine.driver, driver)) {
            self.0.engine.compare_and_swap(&engine, None);
        }
    }
}

impl fmt::Debug for EngineClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_served = self.0.engine.load().is_some();
        f.debug_struct("EngineClient").field("is_served", &is_served).finish_non_exhaustive()
    }
}
