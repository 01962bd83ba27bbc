//! A call in an event loop.
//!
//! ```text
//! start(wants) --> advance: steps --> done, or armed in the loop's epoll --> ready --> advance --> done: the future
//! the first Step::Body --> HttpBody.wanted() --> HttpBody.give(part) --> advance    (a task brings the parts of a body that is no bytes)
//! ```
//! Promises: a call that is closed, or whose task is cancelled, gives its slot back at once. Bytes are read only when a task
//! asks for them, and parts of the body are taken only when the server takes them: none before there is a connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use maitred_client::call::Step;
use maitred_client::{CallError, Report};
use maitred_http::FieldSet;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use super::driven::{Driven, Head, Kept, MOST_AT_ONCE};
use super::event_loop::{Core, Waits, resolve, running};
use super::failure::Failure;
use super::source::{Fed, Part, Source};

pub(super) struct LoopCall {
    core: Arc<Core>,
    number: u64,
    waker: Waker,
    state: Mutex<State>,
}

struct State {
    /// `None` once it is closed.
    driven: Option<Box<Driven>>,
    /// Of the call that is closed.
    kept: Kept,
    /// The call was awaited.
    has_begun: bool,
    wants: Wants,
    done: Option<Result<Done, Failure>>,
    /// The future of the task that waits.
    future: Option<Py<PyAny>>,
    /// The future of the task that brings the body, while there is no room.
    room: Option<Py<PyAny>>,
    /// Cancels that task.
    cancel: Option<Cancel>,
    /// The exception of that task, while no other one waits.
    raised: Option<PyErr>,
}

/// The wish of the task.
pub(super) enum Wants {
    Nothing,
    Head,
    Some(usize),
    All(Vec<u8>),
}

/// The answer to a wish.
pub(super) enum Done {
    Head(Head),
    Bytes(Vec<u8>),
}

type Ready = Vec<(Py<PyAny>, bool)>;

/// A loop's `call_soon_threadsafe`, and a task's `cancel`.
type Cancel = (Py<PyAny>, Py<PyAny>);

impl LoopCall {
    pub(super) fn new(py: Python<'_>, core: Arc<Core>, driven: Box<Driven>) -> Arc<Self> {
        let (number, waker) = core.register(py);
        let state = State {
            driven: Some(driven),
            kept: Kept::default(),
            has_begun: false,
            wants: Wants::Nothing,
            done: None,
            future: None,
            room: None,
            cancel: None,
            raised: None,
        };
        Arc::new(Self { core, number, waker, state: Mutex::new(state) })
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The account so far.
    pub(super) fn report(&self, py: Python<'_>) -> Report {
        let state = self.lock(py);
        state.driven.as_ref().map_or(state.kept.report, |driven| *driven.call.report())
    }

    pub(super) fn trailers(&self, py: Python<'_>) -> Option<FieldSet> {
        let state = self.lock(py);
        match &state.driven {
            Some(driven) => driven.call.trailers().cloned(),
            None => state.kept.trailers.clone(),
        }
    }

    /// Makes the task that brings the body. The task takes the first part when there is room for the part, on a connection.
    pub(super) fn feed(self: &Arc<Self>, py: Python<'_>, parts: &Bound<'_, PyAny>) -> PyResult<()> {
        let event_loop = running(py)?;
        let body = Py::new(py, HttpBody(Arc::clone(self)))?;
        let pump = py.import("maitred.http._pump")?.call_method1("pump", (parts, body))?;
        let task = event_loop.call_method1("create_task", (pump,))?;
        let cancel = (event_loop.getattr("call_soon_threadsafe")?.unbind(), task.getattr("cancel")?.unbind());
        self.lock(py).cancel = Some(cancel);
        Ok(())
    }

    /// The answer to `wants` if it is there at once.
    ///
    /// # Errors
    /// Another task waits for this call.
    pub(super) fn start(
        self: &Arc<Self>,
        py: Python<'_>,
        wants: Wants,
    ) -> PyResult<Option<Result<Done, Failure>>> {
        let mut state = self.lock(py);
        if !matches!(state.wants, Wants::Nothing) {
            return Err(PyRuntimeError::new_err("another task waits for this response"));
        }
        if let Some(error) = state.raised.take() {
            return Ok(Some(Err(Failure::Python(error))));
        }
        let is_closed = self.core.is_closed();
        let Some(driven) = state.driven.as_deref_mut().filter(|_| !is_closed) else {
            return Ok(Some(Err(Failure::Closed)));
        };
        state.wants = match wants {
            Wants::Some(most) if most == 0 || driven.has_early() => {
                return Ok(Some(Ok(Done::Bytes(driven.early(most).to_vec()))));
            }
            Wants::All(_) => Wants::All(driven.early(usize::MAX).to_vec()),
            wants => wants,
        };
        state.has_begun = true;
        let mut ready = Vec::new();
        let cancel = self.go_on(py, &mut state, Instant::now(), &mut ready);
        let done = state.done.take();
        drop(state);
        call_cancel(py, cancel);
        resolve(py, ready);
        Ok(done)
    }

    /// The future of the answer, or the answer.
    pub(super) fn wait(&self, py: Python<'_>) -> PyResult<Result<Py<PyAny>, Result<Done, Failure>>> {
        if let Some(done) = self.lock(py).done.take() {
            return Ok(Err(done));
        }
        let future = running(py)?.call_method0(intern!(py, "create_future"))?.unbind();
        self.lock(py).future = Some(future.clone_ref(py));
        Ok(Ok(future))
    }

    /// Ends the call, and gives everything back.
    pub(super) fn close(&self, py: Python<'_>) {
        self.core.disarm(py, self.number);
        let mut state = self.lock(py);
        let mut driven = state.driven.take();
        if let Some(driven) = &mut driven {
            driven.call.abandon(Instant::now());
            state.kept = driven.kept();
        }
        let mut ready = Vec::new();
        let cancel = state.end_feeding(&mut ready);
        if !matches!(state.wants, Wants::Nothing) {
            state.wants = Wants::Nothing;
            state.done = Some(Err(Failure::Closed));
            ready.extend(state.future.take().map(|future| (future, true)));
        }
        drop(state);
        // Its source may be an object that runs code at its end.
        drop(driven);
        call_cancel(py, cancel);
        if !self.core.is_closed() {
            resolve(py, ready);
        }
    }

    /// Steps, and ends the task that brings the body if the call has ended.
    fn go_on(
        self: &Arc<Self>,
        py: Python<'_>,
        state: &mut State,
        now: Instant,
        ready: &mut Ready,
    ) -> Option<Cancel> {
        self.advance(py, state, now, ready);
        match &state.driven {
            Some(driven) if driven.call.is_ended() => {
                // An end that came with many bytes is told at the next turn.
                if driven.source.is_fed() && matches!(state.wants, Wants::Nothing) {
                    // A part can end the call while the call waits; no event comes then.
                    self.core.disarm(py, self.number);
                }
                state.end_feeding(ready)
            }
            _ => None,
        }
    }

    /// Steps until there is an answer or something to wait for.
    fn advance(self: &Arc<Self>, py: Python<'_>, state: &mut State, now: Instant, ready: &mut Ready) {
        let mut had = 0;
        loop {
            let State { driven: Some(driven), wants, .. } = state else { return };
            let step = if had < MOST_AT_ONCE {
                driven.step(now, &self.waker)
            } else {
                // The other tasks of the loop have their turn, and the rest follows with the time that it is then.
                Ok(Step::Wait(Some(now)))
            };
            let done = match step {
                Ok(Step::Head) => {
                    driven.take_early(now, &self.waker);
                    Ok(Done::Head(driven.take_head()))
                }
                Ok(Step::Data(length)) => match wants {
                    Wants::Nothing | Wants::Head => return,
                    Wants::Some(most) => {
                        let length = length.min(*most);
                        let bytes = driven.data(length).to_vec();
                        driven.consume(length);
                        Ok(Done::Bytes(bytes))
                    }
                    Wants::All(bytes) => {
                        bytes.extend_from_slice(driven.data(length));
                        driven.consume(length);
                        had += length;
                        continue;
                    }
                },
                Ok(Step::End) => {
                    let bytes =
                        if let Wants::All(bytes) = wants { std::mem::take(bytes) } else { Vec::new() };
                    Ok(Done::Bytes(bytes))
                }
                // None is asked for.
                Ok(Step::Interim) => continue,
                Ok(step @ (Step::Body | Step::Wait(_))) => {
                    let until = if let Step::Wait(until) = step { until } else { driven.until };
                    if step == Step::Body {
                        ready.extend(state.room.take().map(|room| (room, true)));
                    }
                    let State { driven: Some(driven), wants, .. } = state else { return };
                    if matches!(wants, Wants::Nothing) && !driven.source.is_fed() {
                        return;
                    }
                    let call = Arc::clone(self) as Arc<dyn Waits>;
                    match self.core.arm(py, self.number, call, driven.call.sockets(), until) {
                        Ok(()) => return,
                        Err(error) => {
                            let error = CallError::Connect("the system".to_owned(), error);
                            driven.call.fail(&error);
                            Err(error.into())
                        }
                    }
                }
                Err(error) => Err(error.into()),
            };
            let is_fed = driven_is_fed(state);
            let is_head = matches!(done, Ok(Done::Head(_)));
            if !matches!(state.wants, Wants::Nothing) {
                state.wants = Wants::Nothing;
                state.done = Some(done);
                ready.extend(state.future.take().map(|future| (future, true)));
            }
            if !(is_fed && is_head) {
                return;
            }
        }
    }
}

fn driven_is_fed(state: &State) -> bool {
    state.driven.as_ref().is_some_and(|driven| driven.source.is_fed())
}

impl Waits for LoopCall {
    fn ready(self: Arc<Self>, py: Python<'_>, now: Instant, done: &mut Vec<(Py<PyAny>, bool)>) {
        let mut state = self.lock(py);
        let cancel = self.go_on(py, &mut state, now, done);
        drop(state);
        call_cancel(py, cancel);
    }

    fn end(self: Arc<Self>, py: Python<'_>) {
        self.close(py);
    }
}

impl State {
    /// No further part of the body is wanted.
    fn end_feeding(&mut self, ready: &mut Ready) -> Option<Cancel> {
        let room = self.room.take();
        let is_waiting = room.is_some();
        ready.extend(room.map(|room| (room, false)));
        // A task that waits for room ends by itself.
        self.cancel.take().filter(|_| !is_waiting)
    }
}

fn call_cancel(py: Python<'_>, cancel: Option<Cancel>) {
    if let Some((soon, cancel)) = cancel {
        // The loop may be closed, and then the task has no further step.
        let _ = soon.call1(py, (cancel,));
    }
}

/// The taker of the parts of a body.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct HttpBody(Arc<LoopCall>);

#[pymethods]
impl HttpBody {
    /// A future: true when there is room for the first part, false if no part is wanted. The call may fail before, and be made
    /// again with the same parts.
    fn wanted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let room = running(py)?.call_method0(intern!(py, "create_future"))?;
        let mut state = self.0.lock(py);
        let is_wanted = state.driven.as_ref().is_some_and(|driven| !driven.call.is_ended());
        let mut ready = Vec::new();
        let mut cancel = None;
        if is_wanted {
            state.room = Some(room.clone().unbind());
            if state.has_begun {
                cancel = self.0.go_on(py, &mut state, Instant::now(), &mut ready);
            }
        } else {
            ready.push((room.clone().unbind(), false));
        }
        drop(state);
        call_cancel(py, cancel);
        resolve(py, ready);
        Ok(room)
    }

    /// Takes a part. True: the next one can come. False: no further one is wanted. A future of one of these otherwise.
    #[pyo3(signature = (part, /))]
    fn give<'py>(&self, py: Python<'py>, part: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let part = Part::of(part)?;
        let answer = |is: bool| Ok(pyo3::types::PyBool::new(py, is).to_owned().into_any());
        if part.rest().is_empty() {
            return answer(true);
        }
        let room = running(py)?.call_method0(intern!(py, "create_future"))?;
        let mut state = self.0.lock(py);
        let Some(driven) = state.driven.as_deref_mut().filter(|driven| !driven.call.is_ended()) else {
            return answer(false);
        };
        if let Source::Fed(place, Fed::Open) = &mut driven.source {
            *place = part;
        }
        state.room = Some(room.clone().unbind());
        let mut ready = Vec::new();
        let cancel = self.0.go_on(py, &mut state, Instant::now(), &mut ready);
        drop(state);
        call_cancel(py, cancel);
        resolve(py, ready);
        Ok(room)
    }

    /// The body has ended.
    fn end(&self, py: Python<'_>) {
        let mut state = self.0.lock(py);
        state.cancel = None;
        if let Some(driven) = state.driven.as_deref_mut()
            && let Source::Fed(_, fed) = &mut driven.source
        {
            *fed = Fed::Ended;
        }
        let mut ready = Vec::new();
        let cancel = self.0.go_on(py, &mut state, Instant::now(), &mut ready);
        drop(state);
        call_cancel(py, cancel);
        resolve(py, ready);
    }

    /// The body has ended with this exception.
    #[pyo3(signature = (error, /))]
    fn fail(&self, py: Python<'_>, error: &Bound<'_, PyAny>) {
        let error = PyErr::from_value(error.clone());
        let mut state = self.0.lock(py);
        state.cancel = None;
        let Some(driven) = state.driven.as_deref_mut() else { return };
        let reason = std::io::Error::other("its iterable has raised an exception");
        driven.call.fail(&CallError::Body(reason));
        let mut ready = Vec::new();
        if matches!(state.wants, Wants::Nothing) {
            state.raised = Some(error);
        } else {
            state.wants = Wants::Nothing;
            state.done = Some(Err(Failure::Python(error)));
            ready.extend(state.future.take().map(|future| (future, true)));
        }
        drop(state);
        self.0.core.disarm(py, self.0.number);
        resolve(py, ready);
    }
}
