//! The loop's side of the server: descriptors it watches, and what it calls when they can be read.
//!
//! ```text
//! loop's thread: select --> Callback(Turn) --> turns.turn() --> handle() for each request --> its Task
//!                   ^          |  More: call_soon(Turn)      Ended: remove_reader
//!                   |          `- what changed within the turn: futures done
//!                   |--> Callback(Inbox): what changed elsewhere: futures done
//!                   `--> Callback(Flush): answers that were completed outside of a turn
//! ```

use std::cell::Cell;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use maitred_runtime::{EventLoop, Turned, Turns};
use pyo3::prelude::*;

use super::adapter::Adapter;
use super::still::StillWatch;
use crate::report;

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here::Elsewhere) };
}

/// Where the current thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    /// It is not the loop's.
    Elsewhere,
    /// The loop's, in a task or in between.
    Loop,
    /// The loop's, within a turn.
    Turn,
}

pub(super) fn here() -> Here {
    HERE.get()
}

/// The server's turns, as the loop has them.
#[derive(Default)]
pub(super) struct Polling {
    turns: Mutex<Option<Box<dyn Turns>>>,
    watched: Mutex<Vec<RawFd>>,
    flush_is_due: AtomicBool,
    handles: OnceLock<Handles>,
}

struct Handles {
    event_loop: Py<PyAny>,
    call_soon: Py<PyAny>,
    begin: Py<Callback>,
    turn: Py<Callback>,
    inbox: Py<Callback>,
    flush: Py<Callback>,
}

impl Polling {
    /// Takes over `event_loop`, on its thread.
    pub(super) fn use_loop(
        &self,
        adapter: &Bound<'_, Adapter>,
        event_loop: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = adapter.py();
        let callback = |what| Py::new(py, Callback { adapter: adapter.clone().unbind(), what });
        let handles = Handles {
            event_loop: event_loop.clone().unbind(),
            call_soon: event_loop.getattr("call_soon")?.unbind(),
            begin: callback(What::Begin)?,
            turn: callback(What::Turn)?,
            inbox: callback(What::Inbox)?,
            flush: callback(What::Flush)?,
        };
        HERE.set(Here::Loop);
        // Called once; a second loop would be ignored.
        let _ = self.handles.set(handles);
        Ok(())
    }

    /// The loop, if there is one already.
    pub(super) fn event_loop(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.handles.get().map(|handles| handles.event_loop.clone_ref(py))
    }

    /// Has the answers sent that wait for it, once, after what else is ready in the loop.
    pub(super) fn flush_soon(&self, py: Python<'_>) -> PyResult<()> {
        let Some(handles) = self.handles.get() else { return Ok(()) };
        if self.flush_is_due.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let flush = (&handles.flush,);
        match here() {
            Here::Elsewhere => handles.event_loop.call_method1(py, "call_soon_threadsafe", flush),
            _ => handles.call_soon.call1(py, flush),
        }
        .map(drop)
        .inspect_err(|_| self.flush_is_due.store(false, Ordering::Release))
    }

    fn begin(&self, py: Python<'_>, inbox: RawFd) -> PyResult<()> {
        let Some(handles) = self.handles.get() else { return Ok(()) };
        let descriptors =
            self.turns().as_ref().map(|turns| turns.descriptors().map(|descriptor| descriptor.as_raw_fd()));
        let Some(descriptors) = descriptors else { return Ok(()) };
        let wanted = descriptors.map(|descriptor| (descriptor, &handles.turn));
        for (descriptor, callback) in wanted.into_iter().chain([(inbox, &handles.inbox)]) {
            handles.event_loop.call_method1(py, "add_reader", (descriptor, callback))?;
            lock(&self.watched).push(descriptor);
        }
        // What came before the loop watched is there to be read: nothing was missed.
        Ok(())
    }

    fn turn(&self, py: Python<'_>) -> PyResult<()> {
        let turned = {
            let Some(mut turns) = self.free_turns() else { return Ok(()) };
            let Some(turns) = turns.as_mut() else { return Ok(()) };
            let _inside = InTurn::enter();
            turns.turn()
        };
        match turned {
            Turned::Wait => Ok(()),
            Turned::More => match self.handles.get() {
                Some(handles) => handles.call_soon.call1(py, (&handles.turn,)).map(drop),
                None => Ok(()),
            },
            Turned::Ended => self.end(py),
        }
    }

    /// The descriptors are the server's: they are not watched any more when it closes them.
    pub(super) fn end(&self, py: Python<'_>) -> PyResult<()> {
        let watched = std::mem::take(&mut *lock(&self.watched));
        let mut ended = Ok(());
        if let Some(handles) = self.handles.get() {
            for descriptor in watched {
                let removed = handles.event_loop.call_method1(py, "remove_reader", (descriptor,));
                ended = ended.and(removed.map(drop));
            }
        }
        let turns = self.free_turns().and_then(|mut turns| turns.take());
        drop(turns);
        ended
    }

    fn flush(&self) {
        // Before the flush: what is completed from now on is for the next one.
        self.flush_is_due.store(false, Ordering::Release);
        if let Some(turns) = self.free_turns().as_deref_mut().and_then(Option::as_mut) {
            turns.flush();
        }
    }

    /// The turns, unless one is being taken: an application may run the loop within its handler (nest_asyncio), and the
    /// turn around it goes on afterwards.
    fn free_turns(&self) -> Option<MutexGuard<'_, Option<Box<dyn Turns>>>> {
        match self.turns.try_lock() {
            Ok(turns) => Some(turns),
            Err(TryLockError::Poisoned(turns)) => Some(turns.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Only the loop's thread takes this lock, but for the one that attaches.
    fn turns(&self) -> MutexGuard<'_, Option<Box<dyn Turns>>> {
        lock(&self.turns)
    }
}

/// The current thread is within a turn.
struct InTurn;

impl InTurn {
    fn enter() -> Self {
        HERE.set(Here::Turn);
        Self
    }
}

impl Drop for InTurn {
    fn drop(&mut self) {
        HERE.set(Here::Loop);
    }
}

/// What the loop calls.
#[pyclass(frozen, module = "maitred._engine")]
struct Callback {
    adapter: Py<Adapter>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Begin,
    Turn,
    Inbox,
    Flush,
}

#[pymethods]
impl Callback {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let adapter = self.adapter.get();
        match self.what {
            What::Begin => adapter.polling.begin(py, adapter.inbox.descriptor()),
            What::Turn => {
                let turned = adapter.polling.turn(py);
                adapter.inbox.drain(py);
                turned
            }
            What::Inbox => {
                adapter.inbox.quiet();
                adapter.inbox.drain(py);
                Ok(())
            }
            What::Flush => {
                adapter.polling.flush();
                Ok(())
            }
        }
    }
}

/// The loop, as the server has it.
pub(super) struct PythonLoop {
    pub(super) adapter: Py<Adapter>,
    pub(super) still: StillWatch,
}

impl EventLoop for PythonLoop {
    fn attach(&self, turns: Box<dyn Turns>) {
        Python::attach(|py| {
            let adapter = self.adapter.get();
            let polling = &adapter.polling;
            *polling.turns() = Some(turns);
            let called = match polling.handles.get() {
                Some(handles) => {
                    handles.event_loop.call_method1(py, "call_soon_threadsafe", (&handles.begin,)).map(drop)
                }
                None => Ok(()),
            };
            if let Err(error) = called {
                let text = report::traceback(py, &error);
                report::write(py, &adapter.log, &format!("the event loop cannot serve\n{text}"));
            }
        });
    }

    fn stands_still(&self, still: bool) {
        self.still.tell(still);
    }
}

/// A panic elsewhere cannot leave these values half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
