//! The state of one exchange, between the application's messages and the engine.
//!
//! ```text
//! Waiting(no head) --start--> Waiting(head) --body, more--> Streaming --body--> Over
//!        |                       |   `-----------body------------------------->  ^
//!        `--end: 500-------------'                              `--end: cut------'
//! ```
//! Where trailers are announced and the client takes them, the last body leads to `Streaming` with `due` fields, and the last
//! trailers to `Over`.
//!
//! `Busy` stands in for the part that one thread has taken out for a call of the engine. While the state is locked
//! values are moved and questions are asked, and nothing else: no Python code runs, the interpreter is not released,
//! and no object is made that the garbage collector tracks, since a collection runs Python code.

use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_http::{FieldSet, Method, ResponseHead, Status};
use maitred_io::clock;
use maitred_runtime::{Body, Exchange, Flow, Last, Observe, SendError, Tail};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::adapter::Adapter;
use super::channel::Title;
use super::current;
use super::departure::{Departure, Onward};
use super::receive::{Reading, disconnect, file_part, live_part, refusal, request_part};
use super::response::{After, Phase, go_on, head_alone, joined, start, to_disk, whole};
use super::scope::Scope;
use super::watch::Watch;
use crate::held::Held;
use crate::route::{Dictionary, Interface};
use crate::unwanted::Unwanted;
use crate::values::Declared;

/// A part of a stream this large does not wait in memory for its reader.
const LARGE_PART: u64 = 256 * 1024;

/// After so many parts of a body that a reader takes at once, the loop's other tasks get their turn: a fifth of a
/// millisecond, of which an iteration of the loop is a tenth.
const PARTS_A_TURN: u32 = 64;

const FAILURE_TEXT: &str = "The application failed to answer this request.\n";

pub(super) struct Http {
    adapter: Held<Adapter>,
    pub(super) title: Title,
    is_head: bool,
    takes_trailers: bool,
    parts: AtomicU32,
    pub(super) departure: Departure,
    scope: Dictionary,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// `http.response.start` has said that trailers will come.
    announced: bool,
    reading: Reading,
    watch: Option<Arc<Watch>>,
    /// `receive` has given `http.disconnect`.
    told: bool,
    /// The status if the application does not answer: of a body that was faulty, too long or late, or of a server that stops.
    refused: Option<Status>,
    /// A thread waits for the exchange, which is busy.
    asked: bool,
    /// The application has ended while the exchange was busy.
    left: bool,
    /// The response is complete, and the application has not said so.
    unwanted: Option<Unwanted>,
    tail: Option<Tail>,
}

enum BodyTarget {
    /// The phase, taken out for one thread; and whether trailers are announced.
    Out(Phase, bool),
    /// Nothing: the response is over.
    Nothing(Onward),
}

enum Next<'py> {
    Nothing,
    Disconnect,
    Whole(Bound<'py, PyBytes>),
    /// From this position on; `None` while a thread reads.
    Part(Option<Body>, u64),
    /// The parts of a body that is still arriving, from this position on.
    Live(Option<Body>, u64),
}

/// The state of an exchange when its application ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Complete,
    /// There was no `http.response.start`.
    Unanswered,
    /// There was no last `http.response.body`.
    Unfinished,
    /// There was no last `http.response.trailers`, which had been announced.
    Untrailed,
    /// The peer has gone and the application was told so.
    PeerGone,
}

impl Http {
    pub(super) fn new(adapter: Py<Adapter>, scope: &Scope<'_>, mut exchange: Exchange) -> Self {
        let is_head = exchange.request().head.method == Method::Head;
        let body = mem::take(&mut exchange.request_mut().body);
        let reading = if body.as_bytes().is_some() {
            Reading::Memory(body)
        } else if body.is_live() {
            Reading::Live { body: Some(body), position: 0 }
        } else {
            Reading::File { body: Some(body), position: 0 }
        };
        let title = Title::of(scope, exchange.request());
        let phase = Phase::Waiting { exchange, declared: None };
        Self {
            adapter: Held::new(adapter),
            title,
            is_head,
            takes_trailers: scope.takes_trailers,
            parts: AtomicU32::new(0),
            departure: Departure::default(),
            scope: Dictionary::new(Interface::Asgi, &scope.dict),
            state: Mutex::new(State {
                phase,
                announced: false,
                reading,
                watch: None,
                told: false,
                refused: None,
                asked: false,
                left: false,
                unwanted: None,
                tail: None,
            }),
        }
    }

    pub(super) fn adapter(&self) -> &Adapter {
        self.adapter.get()
    }

    // A panic cannot leave a half-made phase behind: phases are replaced whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `http.response.start` may come now. After the end of the response it does nothing: "any further messages
    /// on the channel will be ignored" (ASGI HTTP, response body).
    pub(super) fn check_start(&self, py: Python<'_>) -> PyResult<()> {
        match &self.state().phase {
            Phase::Waiting { declared: None, .. } | Phase::Over { peer_gone: false } => Ok(()),
            Phase::Over { peer_gone: true } if self.departure.is_told() => Ok(()),
            Phase::Over { peer_gone: true } => Err(self.adapter().disconnected(py)),
            _ => Err(PyRuntimeError::new_err(
                "http.response.start was sent a second time; after it comes http.response.body",
            )),
        }
    }

    /// Keeps the head until the body begins: it may leave with it, and the application may still fail.
    /// `trailers`: they are announced.
    pub(super) fn declare(&self, py: Python<'_>, head: Declared, trailers: bool) {
        let route = self.scope.route(py);
        let mut state = self.state();
        if let Phase::Waiting { exchange, declared } = &mut state.phase {
            if let Some(route) = route {
                exchange.name_route(&route);
            }
            *declared = Some(head);
            state.announced = trailers;
        }
    }

    /// Sends a part of the body, the last one unless there is `more`. After that one further parts are ignored.
    pub(super) fn send(&self, py: Python<'_>, body: Last<'_>, more: bool) -> PyResult<Onward> {
        let (mut phase, announced) = match self.take(py, body.len(), !more)? {
            BodyTarget::Out(phase, announced) => (phase, announced),
            BodyTarget::Nothing(onward) => return Ok(onward),
        };
        if announced && let Phase::Waiting { exchange, .. } = &mut phase {
            exchange.announce_trailers();
        }
        let next = match (more, announced && self.takes_trailers) {
            (true, _) => After::Body,
            (false, true) => After::Trailers,
            (false, false) => After::End,
        };
        let (sent, phase) = match phase {
            phase if self.is_tight(&phase, body.len(), more) => to_disk(py, phase, body, next),
            Phase::Waiting { exchange, declared: Some(declared) } if more && self.has_no_body(&declared) => {
                head_alone(exchange, declared, body)
            }
            Phase::Waiting { exchange, declared: Some(declared) } if next == After::End => {
                whole(exchange, declared, body, self.is_head)
            }
            Phase::Waiting { exchange, declared: Some(declared) } => start(exchange, declared, body, next),
            Phase::Streaming { stream, .. } => go_on(stream, body, next),
            unchanged => (Ok(Flow::Ready), unchanged),
        };
        if more && matches!(phase, Phase::Over { peer_gone: false }) {
            self.state().unwanted = Some(Unwanted::now());
        }
        self.put(py, if sent == Err(SendError::Closed) { Phase::Over { peer_gone: true } } else { phase });
        match sent {
            Err(SendError::Unwanted) => Ok(Onward::Ready),
            sent => self.onward(py, sent, !more),
        }
    }

    fn has_no_body(&self, declared: &Declared) -> bool {
        self.is_head || declared.head.status.forbids_body()
    }

    fn onward(&self, py: Python<'_>, sent: Result<Flow, SendError>, ends: bool) -> PyResult<Onward> {
        match sent {
            Ok(flow) => Ok(flow.into()),
            Err(SendError::Closed) => self.left(py, ends),
            Err(SendError::TooLong { declared }) => Err(PyRuntimeError::new_err(format!(
                "the response body is longer than the {declared} bytes it may have; the surplus was dropped"
            ))),
            Err(error @ (SendError::InvalidField(_) | SendError::Unwanted)) => {
                Err(PyValueError::new_err(error.to_string()))
            }
        }
    }

    /// Handles a `send` that has found the peer gone. When it `ends` the response and the application has been told of
    /// the departure, it does nothing, so that a framework can go on with its work after the response.
    fn left(&self, py: Python<'_>, ends: bool) -> PyResult<Onward> {
        if ends && self.departure.is_told() {
            Ok(Onward::Ready)
        } else if self.departure.spares(current::is_in(&self.title)) {
            Ok(Onward::Left)
        } else {
            Err(self.adapter().disconnected(py))
        }
    }

    /// Takes out the target of a part of the body of so many bytes, for this thread alone.
    fn take(&self, py: Python<'_>, length: u64, ends: bool) -> PyResult<BodyTarget> {
        let mut state = self.state();
        match &state.phase {
            Phase::Waiting { declared: Some(_), .. } | Phase::Streaming { due: None, .. } => {
                let announced = state.announced;
                Ok(BodyTarget::Out(mem::replace(&mut state.phase, Phase::Busy), announced))
            }
            Phase::Streaming { due: Some(_), .. } => Err(PyRuntimeError::new_err(
                "a body was sent after the last http.response.body; now comes http.response.trailers, which \
                 http.response.start has announced",
            )),
            Phase::Over { peer_gone: false } => {
                if state.unwanted.as_mut().is_some_and(|unwanted| unwanted.has_to_end(length)) {
                    state.phase = Phase::Over { peer_gone: true };
                    return self.left(py, ends).map(BodyTarget::Nothing);
                }
                Ok(BodyTarget::Nothing(Onward::Ready))
            }
            Phase::Over { peer_gone: true } => self.left(py, ends).map(BodyTarget::Nothing),
            Phase::Busy => {
                Err(PyRuntimeError::new_err("two threads send parts of one response at the same time"))
            }
            Phase::Waiting { .. } => Err(PyRuntimeError::new_err(
                "http.response.body was sent before http.response.start; start comes first, with the status",
            )),
        }
    }

    /// Keeps fields that stand behind the body, and ends the response with them unless there are `more`.
    pub(super) fn send_trailers(&self, py: Python<'_>, mut fields: FieldSet, more: bool) -> PyResult<Onward> {
        let (stream, fields) = {
            let mut state = self.state();
            let announced = state.announced;
            match &mut state.phase {
                Phase::Over { peer_gone: true } => return self.left(py, !more),
                Phase::Waiting { declared: None, .. } => {
                    return Err(PyRuntimeError::new_err(
                        "http.response.trailers was sent before http.response.start; start comes first, with the status",
                    ));
                }
                // While a thread sends, the next phase is not known.
                Phase::Busy => {
                    return Err(PyRuntimeError::new_err(
                        "two threads send parts of one response at the same time",
                    ));
                }
                _ if !announced => {
                    return Err(PyRuntimeError::new_err(
                        "http.response.trailers was sent and not announced; send http.response.start with \"trailers\": True",
                    ));
                }
                // The client does not take them, or the end has been there.
                Phase::Over { peer_gone: false } => return Ok(Onward::Ready),
                Phase::Waiting { .. } | Phase::Streaming { due: None, .. } => {
                    return Err(PyRuntimeError::new_err(
                        "http.response.trailers was sent before the last http.response.body, the one without more_body",
                    ));
                }
                Phase::Streaming { due: Some(due), .. } => {
                    let before = mem::take(due);
                    fields = joined(before, fields);
                    if more {
                        *due = fields;
                        return Ok(Onward::Ready);
                    }
                }
            }
            match mem::replace(&mut state.phase, Phase::Busy) {
                Phase::Streaming { stream, .. } => (stream, fields),
                other => {
                    state.phase = other;
                    return Ok(Onward::Ready);
                }
            }
        };
        let sent = stream.finish_with_trailers(fields);
        self.put(py, Phase::Over { peer_gone: sent == Err(SendError::Closed) });
        self.onward(py, sent.map(|()| Flow::Ready), true)
    }

    fn put(&self, py: Python<'_>, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        if matches!(state.phase, Phase::Over { .. }) {
            state.tail = Tail::take().filter(|_| !state.left);
            drop(state);
            self.settle(py);
        } else if state.left {
            drop(state);
            self.end(py, || "the application returned before the end of the response".to_owned());
        } else if mem::take(&mut state.asked) {
            let watch = state.watch.clone();
            if let Some(watch) = &watch {
                state.observe(watch);
            }
            drop(state);
            if let Some(watch) = watch {
                watch.wake(py);
            }
        }
    }

    /// Whether this thread has to write a part of this length to a file before it makes another one. While a stream has more, it
    /// waits for its reader instead, unless the part alone is large.
    fn is_tight(&self, phase: &Phase, length: u64, more: bool) -> bool {
        let waits = more && length < LARGE_PART;
        match phase {
            Phase::Waiting { exchange, declared: Some(_) } => {
                !self.is_head && !waits && exchange.is_tight(length)
            }
            Phase::Streaming { stream, .. } => !waits && stream.is_tight(length),
            Phase::Waiting { .. } | Phase::Busy | Phase::Over { .. } => false,
        }
    }

    pub(super) fn hint(&self, py: Python<'_>, hint: Declared) -> PyResult<Onward> {
        let taken = {
            let mut state = self.state();
            match &state.phase {
                Phase::Waiting { .. } => Some(mem::replace(&mut state.phase, Phase::Busy)),
                Phase::Over { peer_gone: false } => None,
                Phase::Over { peer_gone: true } => return self.left(py, false),
                Phase::Streaming { .. } | Phase::Busy => {
                    return Err(PyRuntimeError::new_err(
                        "http.response.early_hint was sent after the head of the response",
                    ));
                }
            }
        };
        let mut sent = Ok(());
        if let Some(mut phase) = taken {
            if let Phase::Waiting { exchange, .. } = &mut phase {
                sent = exchange.send_interim(&hint.head);
            }
            self.put(py, phase);
        }
        Declared::recycle(hint.head);
        match sent {
            Ok(()) => Ok(Onward::Ready),
            Err(SendError::Closed) => self.left(py, false),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    pub(super) fn set_label(&self, label: &str) {
        match &mut self.state().phase {
            Phase::Waiting { exchange, .. } => exchange.set_label(label),
            Phase::Streaming { stream, .. } => stream.set_label(label),
            Phase::Busy | Phase::Over { .. } => {}
        }
    }

    /// Counts a part that was sent; whether others come before the next one.
    pub(super) fn has_sent_much(&self) -> bool {
        self.parts.fetch_add(1, Ordering::Relaxed) % PARTS_A_TURN == PARTS_A_TURN - 1
    }

    fn settle(&self, py: Python<'_>) {
        self.scope.forget();
        let (reading, watch) = {
            let mut state = self.state();
            (mem::replace(&mut state.reading, Reading::Ended), state.watch.take())
        };
        drop(reading);
        if let Some(watch) = watch {
            watch.wake(py);
        }
        self.adapter().answered(py);
    }

    pub(super) fn next_message(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let next = self.next(py);
        match next {
            Next::Nothing => Ok(None),
            Next::Disconnect => {
                self.departure.tell(current::is_in(&self.title));
                disconnect(py).map(Some)
            }
            Next::Whole(body) => request_part(py, &body, false).map(Some),
            Next::Part(body, position) => self.read_part(py, body, position).map(Some),
            Next::Live(body, position) => self.read_live(py, body, position),
        }
    }

    pub(super) fn is_abandoned(&self) -> bool {
        match &self.state().phase {
            Phase::Waiting { exchange, .. } => exchange.is_closed(),
            Phase::Streaming { stream, .. } => stream.is_closed(),
            Phase::Over { peer_gone } => *peer_gone,
            Phase::Busy => false,
        }
    }

    /// Whether the next message is a part of a file or of a body that is still arriving, and not the first one.
    pub(super) fn is_within_body(&self) -> bool {
        matches!(
            self.state().reading,
            Reading::File { position: 1.., .. } | Reading::Live { position: 1.., .. }
        )
    }

    fn next<'py>(&self, py: Python<'py>) -> Next<'py> {
        let mut state = self.state();
        let State { phase, reading, told, refused, asked, .. } = &mut *state;
        // A long poll waits for nothing else. Another task of the request may wait for an answer, which a framework
        // would give up.
        let stops = match (&*phase, &*reading) {
            (Phase::Waiting { exchange, declared: None }, Reading::Ended) => {
                current::is_in(&self.title) && exchange.heeds_stop()
            }
            _ => false,
        };
        let has_ended = match phase {
            Phase::Waiting { exchange, .. } => exchange.has_peer_ended(),
            Phase::Streaming { stream, .. } => stream.has_peer_ended(),
            Phase::Busy => {
                *asked = true;
                return Next::Nothing;
            }
            Phase::Over { .. } => return Next::Disconnect,
        };
        match reading {
            Reading::Memory(body) => {
                let whole = PyBytes::new(py, body.as_bytes().unwrap_or_default());
                // The application has it now, and others may have its memory.
                *reading = Reading::Ended;
                Next::Whole(whole)
            }
            Reading::File { body, position } => Next::Part(body.take(), *position),
            Reading::Live { body, position } => Next::Live(body.take(), *position),
            Reading::Ended if stops => {
                (*told, *refused) = (true, Some(Status::SERVICE_UNAVAILABLE));
                Next::Disconnect
            }
            Reading::Ended if has_ended => {
                *told = true;
                Next::Disconnect
            }
            Reading::Ended => Next::Nothing,
        }
    }

    /// The message with the next part of a file. The body is taken out while it is read, because the interpreter is released.
    fn read_part(&self, py: Python<'_>, body: Option<Body>, position: u64) -> PyResult<Py<PyDict>> {
        let Some(body) = body else { return Err(received_twice()) };
        let (part, next) = file_part(py, body, position);
        let more = next.is_some();
        let mut state = self.state();
        let before = state.go_on_reading(next);
        drop(state);
        drop(before);
        request_part(py, &part?, more)
    }

    /// The message with the bytes that have arrived of a live body; `None` while there are none.
    fn read_live(&self, py: Python<'_>, body: Option<Body>, position: u64) -> PyResult<Option<Py<PyDict>>> {
        let Some(body) = body else { return Err(received_twice()) };
        let observer: Arc<dyn Observe> = self.watch();
        let (read, next) = live_part(py, body, position, &observer);
        let more = next.is_some();
        let mut state = self.state();
        let before = state.go_on_reading(next);
        if let Err(error) = &read {
            (state.told, state.refused) = (true, refusal(error));
        }
        drop(state);
        drop(before);
        match read {
            Ok(None) => Ok(None),
            Ok(Some(part)) => request_part(py, &part, more).map(Some),
            Err(_) => {
                self.departure.tell(current::is_in(&self.title));
                disconnect(py).map(Some)
            }
        }
    }

    pub(super) fn has_room(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.state();
        match &state.phase {
            Phase::Streaming { stream, .. } if stream.is_closed() => {}
            Phase::Streaming { stream, .. } => return Ok(!stream.is_full()),
            Phase::Busy => {
                state.asked = true;
                return Ok(false);
            }
            Phase::Waiting { .. } | Phase::Over { .. } => return Ok(true),
        }
        let before = mem::replace(&mut state.phase, Phase::Over { peer_gone: true });
        drop(state);
        if let Phase::Streaming { stream, .. } = before {
            stream.abort("the peer closed the connection");
        }
        self.settle(py);
        self.left(py, false).map(|_| true)
    }

    pub(super) fn watch(&self) -> Arc<Watch> {
        let mut state = self.state();
        if let Some(watch) = &state.watch {
            return Arc::clone(watch);
        }
        let watch = Watch::new(&self.adapter().inbox);
        if matches!(state.phase, Phase::Over { .. }) {
            // Nothing changes any more.
            return watch;
        }
        state.observe(&watch);
        state.watch = Some(Arc::clone(&watch));
        watch
    }

    pub(super) fn present_watch(&self) -> Option<Arc<Watch>> {
        self.state().watch.clone()
    }

    /// The application has ended: a missing response becomes a 500, an unfinished one a cut that the peer can see. The
    /// text for the log is asked for only then, without the lock: it is the application's.
    pub(super) fn end(&self, py: Python<'_>, reason: impl FnOnce() -> String) -> Ended {
        let (before, told, refused) = {
            let mut state = self.state();
            let tail = state.tail.take();
            match &state.phase {
                Phase::Over { peer_gone } => {
                    let ended = if *peer_gone { Ended::PeerGone } else { Ended::Complete };
                    drop(state);
                    if let Some(tail) = tail {
                        tail.end(clock::monotonic());
                    }
                    return ended;
                }
                // The thread that has taken out the rest ends it.
                Phase::Busy => {
                    state.left = true;
                    return Ended::Complete;
                }
                Phase::Waiting { .. } | Phase::Streaming { .. } => {}
            }
            let before = mem::replace(&mut state.phase, Phase::Over { peer_gone: false });
            (before, state.told, state.refused)
        };
        let ended = match before {
            Phase::Waiting { mut exchange, declared } => {
                if let Some(route) = self.scope.route(py) {
                    exchange.name_route(&route);
                }
                let status = refused.unwrap_or(Status::INTERNAL_SERVER_ERROR);
                let head = ResponseHead::new(status).with("Content-Type", "text/plain; charset=utf-8");
                // A peer that is gone needs no answer.
                let _ = match refused {
                    None => exchange.respond_error(head, FAILURE_TEXT),
                    Some(status) => {
                        exchange.respond_error(head, format!("{} {}\n", status.code(), status.reason()))
                    }
                };
                match declared {
                    _ if told => Ended::PeerGone,
                    Some(_) => Ended::Unfinished,
                    None => Ended::Unanswered,
                }
            }
            Phase::Streaming { stream, due } => {
                let gone = told || stream.is_closed();
                stream.abort(&reason());
                match due {
                    _ if gone => Ended::PeerGone,
                    None => Ended::Unfinished,
                    Some(_) => Ended::Untrailed,
                }
            }
            Phase::Busy | Phase::Over { .. } => Ended::Complete,
        };
        self.settle(py);
        ended
    }
}

impl State {
    /// Goes on with the body behind a part, unless the response is over. Returns the reading before, to be dropped without the lock.
    fn go_on_reading(&mut self, next: Option<Reading>) -> Reading {
        let next = next.filter(|_| !matches!(self.phase, Phase::Over { .. }));
        mem::replace(&mut self.reading, next.unwrap_or(Reading::Ended))
    }

    /// Has the engine tell `watch` of changes; later, if the exchange is busy.
    fn observe(&mut self, watch: &Arc<Watch>) {
        match &mut self.phase {
            Phase::Waiting { exchange, .. } => exchange.observe(Arc::clone(watch) as _),
            Phase::Streaming { stream, .. } => stream.observe(Arc::clone(watch) as _),
            Phase::Busy => self.asked = true,
            Phase::Over { .. } => {}
        }
    }
}

fn received_twice() -> PyErr {
    PyRuntimeError::new_err("two threads receive the body of one request at the same time")
}
