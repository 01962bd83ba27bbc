//! The state of one WebSocket, between the application's messages and the engine (ASGI WebSocket specification 2.4).
//!
//! ```text
//! Asked --websocket.accept--> Open --close, of either side--> Over
//!   |--websocket.close: 403------------------------------------^
//!   `--websocket.http.response.start--> Denied --body, more--> Denying --body--^
//! ```
//! `Busy` stands in for the part that one thread has taken out for a call of the engine, as in `http.rs`; while the
//! state is locked no Python code runs.

use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Closed, Exchange, Flow, Incoming, Last, MessageKind, Observe, SendError, Stream};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::adapter::Adapter;
use super::channel::Title;
use super::current;
use super::departure::{Departure, Onward};
use super::http::Ended;
use super::scope::{Scope, utf8};
use super::watch::Watch;
use crate::held::Held;
use crate::route::{Dictionary, Interface};
use crate::values::Declared;

/// After so many messages that the application takes at once, the loop's other tasks get their turn.
const MESSAGES_A_TURN: u32 = 64;

/// A larger message is compressed, and sent, while others have the interpreter.
const LARGE: u64 = 16 * 1024;

/// Subprotocols that are offered, and the one that is chosen.
const PROTOCOL: &str = "sec-websocket-protocol";

/// Closed in the usual way (RFC 6455 §7.4.1).
const NORMAL: u16 = 1000;
const INTERNAL_ERROR: u16 = 1011;

const FAILURE_TEXT: &str = "The application failed to answer this request.\n";

/// One WebSocket. As a Python object it is the callable `send`.
pub(super) struct WebSocket {
    adapter: Held<Adapter>,
    pub(super) title: Title,
    messages: AtomicU32,
    pub(super) departure: Departure,
    scope: Dictionary,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// `receive` has said `websocket.connect`.
    connected: bool,
    /// `send` has said that the peer is gone, or has closed it.
    lost: bool,
    watch: Option<Arc<Watch>>,
    /// A thread waits for the WebSocket, which is busy.
    asked: bool,
    /// The application has ended while it was busy, and whether it has failed.
    left: Option<bool>,
}

enum Phase {
    Asked(Exchange),
    /// The head of an answer that is no WebSocket.
    Denied(Exchange, Declared),
    Denying(Stream),
    Open(maitred_runtime::WebSocket),
    Busy,
    Over {
        closed: Closed,
        by: By,
    },
}

/// The side that has ended it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Application,
    /// The peer, or the server.
    Peer,
}

/// A message for the application, before it is a dictionary.
enum Received {
    Text(Py<PyString>),
    Bytes(Py<PyBytes>),
    Closed(Closed),
}

impl WebSocket {
    pub(super) fn new(adapter: Py<Adapter>, scope: &Scope<'_>, exchange: Exchange) -> Self {
        Self {
            adapter: Held::new(adapter),
            title: Title::of(scope, exchange.request()),
            messages: AtomicU32::new(0),
            departure: Departure::default(),
            scope: Dictionary::new(Interface::Asgi, &scope.dict),
            state: Mutex::new(State {
                phase: Phase::Asked(exchange),
                connected: false,
                lost: false,
                watch: None,
                asked: false,
                left: None,
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

    fn put(&self, py: Python<'_>, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        if matches!(state.phase, Phase::Over { .. }) {
            drop(state);
            return self.settle(py);
        }
        if let Some(failed) = state.left.take() {
            drop(state);
            self.end(py, failed);
            return;
        }
        let watch = mem::take(&mut state.asked).then(|| state.watch.clone()).flatten();
        if let Some(watch) = &watch {
            state.observe(watch);
        }
        drop(state);
        if let Some(watch) = watch {
            watch.wake(py);
        }
    }

    /// Wakes the waiting futures at the end.
    fn settle(&self, py: Python<'_>) {
        self.scope.forget();
        let watch = self.state().watch.take();
        if let Some(watch) = watch {
            watch.wake(py);
        }
        self.adapter().answered(py);
    }

    /// Sends the answer that makes it one.
    pub(super) fn accept(&self, py: Python<'_>, head: ResponseHead) -> PyResult<Onward> {
        let route = self.scope.route(py);
        let mut exchange = {
            let mut state = self.state();
            match mem::replace(&mut state.phase, Phase::Busy) {
                Phase::Asked(exchange) => exchange,
                other => {
                    let unexpected = self.unexpected(py, &other, "websocket.accept");
                    state.phase = other;
                    return unexpected;
                }
            }
        };
        if let Some(route) = route {
            exchange.name_route(&route);
        }
        if let Some(chosen) = head.fields.first(PROTOCOL).filter(|chosen| !is_offered(&exchange, chosen)) {
            let text = format!(
                "websocket.accept has the subprotocol {:?}, which the client has not offered; it offers those of scope[\"subprotocols\"]",
                String::from_utf8_lossy(chosen)
            );
            self.put(py, Phase::Asked(exchange));
            return Err(PyValueError::new_err(text));
        }
        let (phase, result) = match exchange.accept(&head) {
            Ok(socket) => (Phase::Open(socket), Ok(Onward::Ready)),
            Err((exchange, SendError::Closed)) => {
                drop(exchange);
                (over(Closed::abnormal()), self.left(py))
            }
            Err((exchange, error)) => (Phase::Asked(exchange), Err(PyValueError::new_err(error.to_string()))),
        };
        let observer = self.state().watch.clone();
        let phase = match (phase, observer) {
            (Phase::Open(mut socket), Some(watch)) => {
                socket.observe(watch);
                Phase::Open(socket)
            }
            (phase, _) => phase,
        };
        self.put(py, phase);
        result
    }

    pub(super) fn send(&self, py: Python<'_>, kind: MessageKind, message: Last<'_>) -> PyResult<Onward> {
        let mut socket = {
            let mut state = self.state();
            match mem::replace(&mut state.phase, Phase::Busy) {
                Phase::Open(socket) => socket,
                other => {
                    let unexpected = self.unexpected(py, &other, "websocket.send");
                    state.phase = other;
                    return unexpected;
                }
            }
        };
        let sent = if message.len() > LARGE {
            let message = message.keep();
            py.detach(|| socket.send(kind, Last::Given(message)))
        } else {
            socket.send(kind, message)
        };
        if sent.is_err() {
            self.state().lost = true;
        }
        self.put(py, Phase::Open(socket));
        sent.map_or_else(|_| self.left(py), |flow| Ok(flow.into()))
    }

    /// A `send` has found the peer gone.
    fn left(&self, py: Python<'_>) -> PyResult<Onward> {
        if self.departure.spares(current::is_in(&self.title)) {
            Ok(Onward::Left)
        } else {
            Err(self.adapter().disconnected(py))
        }
    }

    /// Closes it; before it was accepted: refuses it with 403.
    pub(super) fn close(&self, py: Python<'_>, code: u16, reason: &str) -> PyResult<()> {
        let before = {
            let mut state = self.state();
            match &state.phase {
                Phase::Asked(_) | Phase::Open(_) => mem::replace(&mut state.phase, Phase::Busy),
                // Both sides close it at the same time.
                Phase::Over { by: By::Peer, .. } => return Ok(()),
                other => return self.unexpected(py, other, "websocket.close").map(drop),
            }
        };
        let closed = match before {
            Phase::Open(socket) => {
                socket.close(code, reason);
                Closed { code, reason: reason.to_owned() }
            }
            Phase::Asked(exchange) => {
                let text = "403 Forbidden: the application has refused the WebSocket\n";
                let head =
                    ResponseHead::new(Status::FORBIDDEN).with("Content-Type", "text/plain; charset=utf-8");
                // A peer that is gone needs no answer.
                let _ = exchange.respond_error(head, text);
                Closed::abnormal()
            }
            _ => Closed::abnormal(),
        };
        self.put(py, Phase::Over { closed, by: By::Application });
        Ok(())
    }

    /// Keeps the head of an answer that is no WebSocket until its body begins.
    pub(super) fn deny(&self, py: Python<'_>, declared: Declared) -> PyResult<Onward> {
        let mut state = self.state();
        match mem::replace(&mut state.phase, Phase::Busy) {
            Phase::Asked(exchange) => {
                state.phase = Phase::Denied(exchange, declared);
                Ok(Onward::Ready)
            }
            other => {
                let unexpected = self.unexpected(py, &other, "websocket.http.response.start");
                state.phase = other;
                unexpected
            }
        }
    }

    pub(super) fn send_denial(&self, py: Python<'_>, body: Last<'_>, more: bool) -> PyResult<Onward> {
        let before = {
            let mut state = self.state();
            match &state.phase {
                Phase::Denied(..) | Phase::Denying(_) => mem::replace(&mut state.phase, Phase::Busy),
                other => return self.unexpected(py, other, "websocket.http.response.body"),
            }
        };
        let started = match before {
            Phase::Denied(exchange, Declared { head, length }) => {
                let length = length.or_else(|| (!more).then(|| body.len()));
                let started = exchange.start(&head, length);
                Declared::recycle(head);
                started
            }
            Phase::Denying(stream) => Ok(stream),
            _ => Err(SendError::Closed),
        };
        let denied = Phase::Over { closed: Closed::abnormal(), by: By::Application };
        let (phase, sent) = match started {
            Err(error) => (denied, Err(error)),
            Ok(stream) if !more => (denied, stream.finish_with(body).map(|()| Flow::Ready)),
            Ok(mut stream) => {
                let sent = stream.send(body.keep());
                (Phase::Denying(stream), sent)
            }
        };
        self.put(py, phase);
        match sent {
            Ok(flow) => Ok(flow.into()),
            Err(SendError::Closed) => self.left(py),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    /// The result of a `send` with a message that is not allowed now.
    fn unexpected(&self, py: Python<'_>, phase: &Phase, kind: &str) -> PyResult<Onward> {
        let why = match phase {
            Phase::Over { by: By::Peer, .. } => return self.left(py),
            Phase::Busy => "while another thread sends",
            Phase::Asked(_) => "before websocket.accept",
            Phase::Denied(..) | Phase::Denying(_) => "after websocket.http.response.start",
            Phase::Open(_) => "after websocket.accept",
            Phase::Over { by: By::Application, .. } => "after websocket.close, or the end of the response",
        };
        Err(PyRuntimeError::new_err(format!("{kind} was sent {why}")))
    }

    pub(super) fn next_message(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let mut socket = {
            let mut state = self.state();
            if !mem::replace(&mut state.connected, true) {
                drop(state);
                return event(py, "websocket.connect").map(|event| Some(event.unbind()));
            }
            let closed = match &state.phase {
                Phase::Asked(exchange) | Phase::Denied(exchange, _) if exchange.has_peer_ended() => {
                    Some(Closed::abnormal())
                }
                Phase::Denying(stream) if stream.has_peer_ended() => Some(Closed::abnormal()),
                Phase::Over { closed, .. } => Some(closed.clone()),
                Phase::Busy => {
                    state.asked = true;
                    return Ok(None);
                }
                Phase::Asked(_) | Phase::Denied(..) | Phase::Denying(_) => return Ok(None),
                Phase::Open(_) => None,
            };
            if let Some(closed) = closed {
                drop(state);
                self.departure.tell(current::is_in(&self.title));
                return disconnect(py, &closed).map(Some);
            }
            match mem::replace(&mut state.phase, Phase::Busy) {
                Phase::Open(socket) => socket,
                other => {
                    state.phase = other;
                    return Ok(None);
                }
            }
        };
        // The objects made here are no containers: no collection, and so no code of the application, runs.
        let received = match socket.next_message() {
            Incoming::Nothing => None,
            Incoming::Message(MessageKind::Text, text) => {
                Some(utf8(py, text).map(|text| Received::Text(text.unbind())))
            }
            Incoming::Message(MessageKind::Binary, bytes) => {
                Some(Ok(Received::Bytes(PyBytes::new(py, bytes).unbind())))
            }
            Incoming::Closed(closed) => Some(Ok(Received::Closed(closed.clone()))),
        };
        let phase = match &received {
            Some(Ok(Received::Closed(closed))) => {
                // The peer has its answer already.
                socket.close(NORMAL, "");
                over(closed.clone())
            }
            _ => Phase::Open(socket),
        };
        self.put(py, phase);
        let Some(received) = received.transpose()? else { return Ok(None) };
        self.messages.fetch_add(1, Ordering::Relaxed);
        let message = match received {
            Received::Closed(closed) => {
                self.departure.tell(current::is_in(&self.title));
                return disconnect(py, &closed).map(Some);
            }
            Received::Text(text) => {
                let event = event(py, "websocket.receive")?;
                event.set_item(intern!(py, "text"), text)?;
                event
            }
            Received::Bytes(bytes) => {
                let event = event(py, "websocket.receive")?;
                event.set_item(intern!(py, "bytes"), bytes)?;
                event
            }
        };
        Ok(Some(message.unbind()))
    }

    pub(super) fn has_received_much(&self) -> bool {
        let taken = self.messages.load(Ordering::Relaxed);
        taken % MESSAGES_A_TURN == MESSAGES_A_TURN - 1
    }

    pub(super) fn has_room(&self, py: Python<'_>) -> PyResult<bool> {
        let mut state = self.state();
        match &state.phase {
            Phase::Open(socket) if socket.is_gone() => {
                drop(state);
                self.left(py).map(|_| true)
            }
            Phase::Open(socket) => Ok(!socket.is_full()),
            Phase::Denying(stream) => Ok(!stream.is_full()),
            Phase::Busy => {
                state.asked = true;
                Ok(false)
            }
            _ => Ok(true),
        }
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

    pub(super) fn is_abandoned(&self) -> bool {
        match &self.state().phase {
            Phase::Asked(exchange) | Phase::Denied(exchange, _) => exchange.is_closed(),
            Phase::Denying(stream) => stream.is_closed(),
            Phase::Open(socket) => socket.is_gone(),
            // After a closing handshake the application has its own end to come to.
            Phase::Over { closed, by } => *by == By::Peer && closed.code == Closed::ABNORMAL,
            Phase::Busy => false,
        }
    }

    /// The application has ended, as `failed` says: a missing answer becomes a 500, a missing close a close.
    pub(super) fn end(&self, py: Python<'_>, failed: bool) -> Ended {
        let (before, lost) = {
            let mut state = self.state();
            match &state.phase {
                Phase::Over { by: By::Peer, .. } => return Ended::PeerGone,
                Phase::Over { by: By::Application, .. } => return Ended::Complete,
                // The thread that has taken out the rest ends it.
                Phase::Busy => {
                    state.left = Some(failed);
                    return Ended::Complete;
                }
                _ => {}
            }
            let over = Phase::Over { closed: Closed::abnormal(), by: By::Application };
            (mem::replace(&mut state.phase, over), state.lost)
        };
        let ended = match before {
            Phase::Asked(exchange) | Phase::Denied(exchange, _) => {
                let gone = exchange.is_closed();
                let head = ResponseHead::new(Status::INTERNAL_SERVER_ERROR)
                    .with("Content-Type", "text/plain; charset=utf-8");
                // A peer that is gone needs no answer.
                let _ = exchange.respond_error(head, FAILURE_TEXT);
                if gone { Ended::PeerGone } else { Ended::Unanswered }
            }
            Phase::Denying(stream) => {
                stream.abort("the application ended before the end of its response");
                Ended::Unfinished
            }
            Phase::Open(mut socket) => {
                let gone = lost || socket.is_gone() || matches!(socket.next_message(), Incoming::Closed(_));
                socket.close(if failed { INTERNAL_ERROR } else { NORMAL }, "");
                if gone { Ended::PeerGone } else { Ended::Complete }
            }
            Phase::Busy | Phase::Over { .. } => Ended::Complete,
        };
        self.settle(py);
        ended
    }
}

impl State {
    /// Has the engine tell `watch` of changes; later, if it is busy.
    fn observe(&mut self, watch: &Arc<Watch>) {
        let observer = Arc::clone(watch) as Arc<dyn Observe>;
        match &mut self.phase {
            Phase::Asked(exchange) | Phase::Denied(exchange, _) => exchange.observe(observer),
            Phase::Denying(stream) => stream.observe(observer),
            Phase::Open(socket) => socket.observe(observer),
            Phase::Busy => self.asked = true,
            Phase::Over { .. } => {}
        }
    }
}

/// Whether the client speaks this subprotocol.
fn is_offered(exchange: &Exchange, chosen: &[u8]) -> bool {
    let offered = exchange.request().head.fields.all(PROTOCOL);
    offered.flat_map(|value| value.split(|byte| *byte == b',')).any(|name| name.trim_ascii() == chosen)
}

fn over(closed: Closed) -> Phase {
    Phase::Over { closed, by: By::Peer }
}

fn event<'py>(py: Python<'py>, kind: &'static str) -> PyResult<Bound<'py, PyDict>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), kind_of(py, kind))?;
    Ok(event)
}

/// The name of an event, as the same object each time.
fn kind_of<'py>(py: Python<'py>, kind: &'static str) -> Bound<'py, PyString> {
    match kind {
        "websocket.receive" => intern!(py, "websocket.receive").clone(),
        "websocket.connect" => intern!(py, "websocket.connect").clone(),
        _ => intern!(py, "websocket.disconnect").clone(),
    }
}

fn disconnect(py: Python<'_>, closed: &Closed) -> PyResult<Py<PyDict>> {
    let event = event(py, "websocket.disconnect")?;
    event.set_item(intern!(py, "code"), closed.code)?;
    event.set_item(intern!(py, "reason"), &closed.reason)?;
    Ok(event.unbind())
}
