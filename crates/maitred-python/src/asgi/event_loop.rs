//! The loop's side of the server: the descriptors it watches, and the callbacks for them.
//!
//! ```text
//! loop's thread: select --> Callback(Turn) --> turns.turn() --> handle() for each request --> its Task
//!                   ^          |  More: call_soon(Turn)      Ended: remove_reader
//!                   |          `- changes within the turn: futures done
//!                   |--> Callback(Inbox): changes from elsewhere: futures done
//!                   `--> Callback(Flush): answers that were completed outside of a turn
//! ```

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use maitred_runtime::{EventLoop, Later, Turned, Turns};
use pyo3::prelude::*;

use super::adapter::Adapter;
use super::current;
use super::still::StillWatch;
use crate::child;
use crate::report;
use crate::values::lock;

thread_local! {
    static HERE: Cell<Here> = const { Cell::new(Here::Elsewhere) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    Elsewhere,
    /// The loop's, in a task or in between.
    Loop,
    /// The loop's, within a turn.
    Turn,
}

pub(super) fn here() -> Here {
    HERE.get()
}

#[derive(Default)]
pub(super) struct Polling {
    turns: Mutex<Option<Box<dyn Turns>>>,
    watched: Mutex<Vec<RawFd>>,
    has_ended: AtomicBool,
    flush_is_due: AtomicBool,
    /// The number of requests that a turn has left to begin after it, and the nanoseconds that their first steps have taken.
    later: AtomicU32,
    later_nanos: AtomicU64,
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
        current::this_is_the_loop();
        end_children(py, &handles)?;
        // Called once; a second loop would be ignored.
        let _ = self.handles.set(handles);
        Ok(())
    }

    pub(super) fn event_loop(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.handles.get().map(|handles| handles.event_loop.clone_ref(py))
    }

    /// Has waiting answers sent, once, after the other callbacks that are ready in the loop.
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
        let descriptors = lock(&self.turns)
            .as_ref()
            .map(|turns| turns.descriptors().map(|descriptor| descriptor.as_raw_fd()));
        let Some(descriptors) = descriptors else { return Ok(()) };
        let wanted = descriptors.map(|descriptor| (descriptor, &handles.turn));
        for (descriptor, callback) in wanted.into_iter().chain([(inbox, &handles.inbox)]) {
            handles.event_loop.call_method1(py, "add_reader", (descriptor, callback))?;
            lock(&self.watched).push(descriptor);
        }
        // Events from before the loop watched are still readable: none was missed.
        Ok(())
    }

    /// A request of this turn begins after it.
    pub(super) fn note_later(&self) {
        self.later.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the first step of a request. Within a turn the turn knows how long it takes.
    pub(super) fn first_step<T>(&self, step: impl FnOnce() -> T) -> T {
        if here() == Here::Turn {
            return step();
        }
        let began = Instant::now();
        let result = step();
        self.later_nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }

    fn turn(&self, py: Python<'_>) -> PyResult<()> {
        let turned = {
            let Some(mut turns) = self.take() else { return Ok(()) };
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
        self.has_ended.store(true, Ordering::Release);
        let watched = std::mem::take(&mut *lock(&self.watched));
        let mut ended = Ok(());
        if let Some(handles) = self.handles.get() {
            for descriptor in watched {
                let removed = handles.event_loop.call_method1(py, "remove_reader", (descriptor,));
                ended = ended.and(removed.map(drop));
            }
        }
        drop(self.take());
        ended
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    fn flush(&self) {
        // Before the flush: answers completed from now on belong to the next one.
        self.flush_is_due.store(false, Ordering::Release);
        if let Some(mut turns) = self.take() {
            turns.flush();
        }
    }

    /// Takes the turns out: one of them runs application code. None while one is being taken: an application may run the
    /// loop within its handler (nest_asyncio), and the turn around it goes on afterwards.
    fn take(&self) -> Option<Taken<'_>> {
        let turns = lock(&self.turns).take()?;
        Some(Taken { polling: self, turns: Some(turns) })
    }
}

/// The turns, until they are put back.
struct Taken<'a> {
    polling: &'a Polling,
    turns: Option<Box<dyn Turns>>,
}

impl Deref for Taken<'_> {
    type Target = Box<dyn Turns>;

    fn deref(&self) -> &Box<dyn Turns> {
        self.turns.as_ref().expect("there until it is dropped")
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Box<dyn Turns> {
        self.turns.as_mut().expect("there until it is dropped")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.polling.has_ended() {
            let before = std::mem::replace(&mut *lock(&self.polling.turns), self.turns.take());
            drop(before);
        }
    }
}

/// Has a child process end whose forking task is not a request's: it comes back to its copy of the loop, which would serve.
fn end_children(py: Python<'_>, handles: &Handles) -> PyResult<()> {
    let end = pyo3::types::PyDict::new(py);
    end.set_item(
        "after_in_child",
        Py::new(py, Forked { call_soon: handles.call_soon.clone_ref(py), end: handles.flush.clone_ref(py) })?,
    )?;
    py.import("os")?.call_method("register_at_fork", (), Some(&end)).map(drop)
}

/// The callback that Python runs in a child process, before the code that forks goes on.
#[pyclass(frozen, module = "maitred._engine")]
struct Forked {
    call_soon: Py<PyAny>,
    /// Any callback of ours.
    end: Py<Callback>,
}

#[pymethods]
impl Forked {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        match here() {
            Here::Elsewhere => Ok(()),
            Here::Loop | Here::Turn => self.call_soon.call1(py, (&self.end,)).map(drop),
        }
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
        child::end_if_child(py, None);
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

pub(super) struct PythonLoop {
    pub(super) adapter: Py<Adapter>,
    pub(super) still: StillWatch,
}

impl EventLoop for PythonLoop {
    fn attach(&self, turns: Box<dyn Turns>) {
        Python::attach(|py| {
            let adapter = self.adapter.get();
            let polling = &adapter.polling;
            let before = lock(&polling.turns).replace(turns);
            drop(before);
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

    fn begin_turn(&self) -> Later {
        let polling = &self.adapter.get().polling;
        let handlers = polling.later.swap(0, Ordering::Relaxed);
        Later { handlers, nanos: polling.later_nanos.swap(0, Ordering::Relaxed) }
    }

    fn later(&self) -> Later {
        let polling = &self.adapter.get().polling;
        let handlers = polling.later.load(Ordering::Relaxed);
        Later { handlers, nanos: polling.later_nanos.load(Ordering::Relaxed) }
    }

    fn stands_still(&self, still: bool) {
        self.still.tell(still);
    }
}
