//! One request with its response.
//!
//! ```text
//! Exchange --respond--> (complete)
//!     |-----accept-----> WebSocket (websocket.rs)
//!     |                                      dropped unanswered: 500
//!     `--start--> Stream --send*--> finish   dropped unfinished: the response is cut, so that
//!                                            the peer can see that it is not whole
//! ```
//! Each state is a type and each step takes the old one, so that an answer after the end does not
//! compile. All steps can be taken on any thread.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use maitred_http::{FieldSet, ResponseHead, Status};

use crate::content::{Content, Last};
use crate::request::Request;
use crate::websocket::{Closed, MessageKind, Messages, WebSocket};

/// The server's side of an exchange. Not called by handlers.
///
/// Every call brings its request, so that log entries can name it. Calls come in the order: any number of
/// `send_interim`, `send_head`, any number of `send_data`, then one of `finish`, `finish_with`, `finish_with_trailers`
/// or `abort`. No call ever waits for the peer or for a disk except [`wait`](Self::wait) and
/// [`relieve`](Self::relieve).
pub trait Respond: Send {
    /// Sends an interim response at once; see [`Exchange::send_interim`].
    ///
    /// # Errors
    /// As there.
    fn send_interim(&mut self, request: &Request, head: &ResponseHead) -> Result<(), SendError> {
        let _ = (request, head);
        Ok(())
    }

    /// Starts the response. `length` is the body's length where it is known.
    ///
    /// # Errors
    /// The head cannot be sent as given; nothing has been sent, another head may follow.
    fn send_head(
        &mut self,
        request: &Request,
        head: &ResponseHead,
        length: Option<u64>,
    ) -> Result<(), SendError>;

    /// Announces, before the head, that fields will stand behind the body; see [`Exchange::announce_trailers`].
    fn announce_trailers(&mut self, request: &Request) {
        let _ = request;
    }

    /// The server's page in the place of an error's head and text, see [`Exchange::respond_error`]; none if it has
    /// none.
    fn error_page(&self, request: &Request, head: &ResponseHead) -> Option<(ResponseHead, Content)> {
        let _ = (request, head);
        None
    }

    /// Says something about the request's route in the error log; see [`Exchange::warn_once`].
    fn warn_once(&self, request: &Request, text: &str) {
        let _ = (request, text);
    }

    /// A thread that runs the request has it since `now`, in nanoseconds of the monotonic clock.
    fn begin(&mut self, now: u64) {
        let _ = now;
    }

    /// Notes that the thread has the interpreter of its language now, for which it has `waited`, or had it already.
    fn enter_interpreter(&mut self, _waited: bool) {}

    /// Queues a part of the body and tries to send it at once.
    ///
    /// # Errors
    /// The peer is gone, the body is longer than declared (the surplus is not sent), or nothing of it is wanted.
    fn send_data(&mut self, request: &Request, content: Content) -> Result<Flow, SendError>;

    /// Ends the response. The request comes back so that its memory can be used again.
    fn finish(self: Box<Self>, request: Box<Request>);

    /// Ends the response with the last part of its body. The server may send it together with other responses.
    ///
    /// # Errors
    /// As [`send_data`](Self::send_data), as far as it is known by then. The response has ended all the same.
    fn finish_with(mut self: Box<Self>, request: Box<Request>, last: Last<'_>) -> Result<(), SendError> {
        let sent = if last.is_empty() { Ok(Flow::Ready) } else { self.send_data(&request, last.keep()) };
        self.finish(request);
        sent.map(drop)
    }

    /// Ends the response with fields behind its body, where they have a place; see [`Stream::finish_with_trailers`].
    ///
    /// # Errors
    /// As there. The response has ended all the same.
    fn finish_with_trailers(
        self: Box<Self>,
        request: Box<Request>,
        trailers: FieldSet,
    ) -> Result<(), SendError> {
        let _ = trailers;
        self.finish(request);
        Ok(())
    }

    /// Ends the response in the middle: the connection closes so that the peer can see it.
    fn abort(self: Box<Self>, request: Box<Request>, reason: &str);

    /// Accepts the WebSocket that the request asks for; `head` has the fields of the answer.
    ///
    /// # Errors
    /// The peer is gone, or the head cannot be sent as given: nothing has been sent.
    fn accept_websocket(&mut self, request: &Request, head: &ResponseHead) -> Result<(), SendError> {
        let _ = (request, head);
        Err(SendError::Closed)
    }

    /// Moves whole messages that have come to `into`, which is empty, and says how the WebSocket has ended if it has.
    fn take_messages(&mut self, into: &mut Messages) -> Option<Closed> {
        let _ = into;
        Some(Closed::abnormal())
    }

    /// Queues a message and tries to send it at once.
    ///
    /// # Errors
    /// The WebSocket is closed, or its peer is gone.
    fn send_message(
        &mut self,
        request: &Request,
        kind: MessageKind,
        message: Last<'_>,
    ) -> Result<Flow, SendError> {
        let _ = (request, kind, message);
        Err(SendError::Closed)
    }

    /// Closes the WebSocket, unless it is closed, and ends the exchange.
    fn close_websocket(self: Box<Self>, request: Box<Request>, code: u16, reason: &str) {
        let _ = code;
        self.abort(request, reason);
    }

    /// Waits until less than the stream limit is queued in memory, or the peer is gone, or `limit` is over. The server
    /// may use the thread to write queued bytes to a file.
    ///
    /// # Errors
    /// The peer is gone.
    fn wait(&mut self, limit: Duration) -> Result<Flow, SendError>;

    /// Whether a thread that may wait shall call [`relieve`](Self::relieve) when it has sent a part of this length; the thread
    /// of an event loop as well, of which this is asked much later. A few loads.
    fn is_tight(&self, length: u64) -> bool {
        let _ = length;
        false
    }

    /// Called between the last `send_data` and the end: writes queued bytes to a file, because all responses together
    /// hold too much in memory; or waits until the peer has taken them, where the server is told to leave that to its
    /// handlers.
    ///
    /// # Errors
    /// The peer is gone.
    fn relieve(&mut self) -> Result<(), SendError> {
        Ok(())
    }

    /// Sets the application's label of this response, for the list of deliveries: the first [`MAX_LABEL`] bytes,
    /// without control characters.
    fn set_label(&mut self, label: &str) {
        let _ = label;
    }

    /// Whether the peer is known to be gone.
    fn is_closed(&self) -> bool;

    /// Whether the server has answered in the handler's place, because that took too long: nothing more can be sent,
    /// and the handler's work is not needed any more. One load.
    fn is_dead(&self) -> bool {
        false
    }

    /// Whether a handler that can interrupt its application shall do so when it is told that its
    /// [time is over](Observe::timed_out).
    fn interrupts(&self) -> bool {
        false
    }

    /// Whether the peer can be sent nothing any more while the request waits to be run, so that a response is not
    /// needed. Asked once, before a handler gets it.
    fn has_left_unrun(&self) -> bool {
        false
    }

    /// Ends an exchange that no handler has had, because its peer has left: nothing is sent.
    fn leave_unrun(self: Box<Self>, request: Box<Request>) {
        self.abort(request, "the peer left before the request was run");
    }

    /// Has `observer` told of every change until the end of the exchange: the peer has ended its sending side, the peer
    /// is gone, there is room again, the time is over. Earlier changes are not told: look afterwards.
    fn observe(&mut self, observer: Arc<dyn Observe>);

    /// Whether the peer has ended its sending side, or is gone. A peer that has only ended its sending side
    /// may still read the response (RFC 9112 §9.6), but most have left.
    fn has_peer_ended(&self) -> bool;

    /// Whether the server stops. A caller that asks will end because of it, and that is no fault of its response.
    fn heeds_stop(&self) -> bool {
        false
    }

    /// Whether as much is queued as one response may hold.
    fn is_full(&self) -> bool;
}

/// The longest label of a response in bytes.
pub const MAX_LABEL: usize = 128;

/// Is told that something has changed for an exchange; the observer then asks the exchange.
pub trait Observe: Send + Sync + 'static {
    /// Called on any thread, under a lock of the server: neither waits nor calls the exchange.
    fn changed(&self);

    /// Called instead, likewise, when the server has answered because the handler took too long: the exchange is
    /// [dead](Exchange::is_dead).
    fn timed_out(&self) {
        self.changed();
    }
}

/// Whether more can be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Ready,
    /// The response has as many queued bytes as it may: wait before sending more.
    Full,
}

/// Why something could not be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The peer has gone, or the connection was ended. Nothing more can be sent.
    Closed,
    /// A field cannot be sent, for the reason given (CR, LF or NUL in it, or not a token).
    InvalidField(String),
    /// No part of the body is sent, because the request is HEAD or a file takes the place of the body: the response is to be
    /// finished, and is complete then.
    Unwanted,
    /// The body is longer than the declared length; the surplus was dropped.
    TooLong {
        /// The declared length in bytes.
        declared: u64,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the peer closed the connection"),
            Self::InvalidField(why) => write!(f, "invalid response field: {why}"),
            Self::Unwanted => f.write_str("no part of the response body is sent"),
            Self::TooLong { declared } => {
                write!(f, "the response body is longer than its declared length of {declared} bytes")
            }
        }
    }
}

impl std::error::Error for SendError {}

/// A request that waits for its answer.
///
/// Some fields of the response's head set limits for this response alone, and are not sent: `Maitred-Bandwidth` (bytes
/// a second) and `Maitred-Send-Timeout` (seconds).
pub struct Exchange {
    // Both are Some until the answer is given or the value is dropped.
    request: Option<Box<Request>>,
    responder: Option<Box<dyn Respond>>,
}

impl Exchange {
    /// An exchange for `request`, answered through `responder`.
    pub fn new(request: impl Into<Box<Request>>, responder: Box<dyn Respond>) -> Self {
        Self { request: Some(request.into()), responder: Some(responder) }
    }

    /// The request.
    pub fn request(&self) -> &Request {
        self.request.as_ref().expect("present until answered")
    }

    /// See [`Respond::begin`].
    pub fn begin(&mut self, now: u64) {
        if let Some(responder) = &mut self.responder {
            responder.begin(now);
        }
    }

    /// See [`Respond::enter_interpreter`].
    pub fn enter_interpreter(&mut self, waited: bool) {
        if let Some(responder) = &mut self.responder {
            responder.enter_interpreter(waited);
        }
    }

    /// The exchange itself, unless its peer has left while the request waited to be run: then it has ended, without a
    /// response.
    pub fn unless_left(mut self) -> Option<Self> {
        if !self.responder.as_ref().is_some_and(|responder| responder.has_left_unrun()) {
            return Some(self);
        }
        if let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) {
            responder.leave_unrun(request);
        }
        None
    }

    /// The request, to take its body out.
    pub fn request_mut(&mut self) -> &mut Request {
        self.request.as_mut().expect("present until answered")
    }

    /// Whether the peer is known to be gone.
    pub fn is_closed(&self) -> bool {
        self.responder.as_ref().is_none_or(|responder| responder.is_closed())
    }

    /// Whether the server has answered already; see [`Respond::is_dead`].
    pub fn is_dead(&self) -> bool {
        self.responder.as_ref().is_none_or(|responder| responder.is_dead())
    }

    /// Whether the application is to be interrupted when its time is over; see [`Respond::interrupts`].
    pub fn interrupts(&self) -> bool {
        self.responder.as_ref().is_some_and(|responder| responder.interrupts())
    }

    /// See [`Respond::is_tight`].
    pub fn is_tight(&self, length: u64) -> bool {
        self.responder.as_ref().is_some_and(|responder| responder.is_tight(length))
    }

    /// Names the route of this request for statistics and logs, such as `/users/{name}`; they add its method. To be
    /// called before the response ends. Names should be few, as the routes of an application are: beyond 1,000 all are
    /// one, "other".
    pub fn name_route(&mut self, name: &str) {
        if let Some(request) = &mut self.request {
            request.name_route(name);
        }
    }

    /// See [`Respond::set_label`].
    pub fn set_label(&mut self, label: &str) {
        if let Some(responder) = &mut self.responder {
            responder.set_label(label);
        }
    }

    /// Writes a warning to the error log, once for each route and text, for faults that all requests of a route share.
    pub fn warn_once(&self, text: &str) {
        if let (Some(responder), Some(request)) = (&self.responder, &self.request) {
            responder.warn_once(request, text);
        }
    }

    /// Sends an interim response (RFC 9110 §15.2) at once, such as 103 with `Link` fields (RFC 8297). Nothing is sent to a client of
    /// HTTP/1.0, nor while an earlier one has not left, so that a client that reads nothing costs nothing.
    ///
    /// # Errors
    /// The peer is gone; or the head cannot be sent: a field is invalid, or the status is not from 102 to 199. The exchange goes on.
    pub fn send_interim(&mut self, head: &ResponseHead) -> Result<(), SendError> {
        match (&mut self.responder, &self.request) {
            (Some(responder), Some(request)) => responder.send_interim(request, head),
            _ => Err(SendError::Closed),
        }
    }

    /// Says before the head that [`Stream::finish_with_trailers`] will end the response. The field `Trailer` of the head (RFC 9110
    /// §6.6.2), which names them, is then sent to a client that [takes them](Request::takes_trailers), and the response is not cut to
    /// the ranges of a request. For HTTP/1 [`start`](Self::start) it without a length: behind a counted body there is no place.
    pub fn announce_trailers(&mut self) {
        if let (Some(responder), Some(request)) = (&mut self.responder, &self.request) {
            responder.announce_trailers(request);
        }
    }

    /// Has `observer` told of changes; see [`Respond::observe`]. It stays with the [`Stream`].
    pub fn observe(&mut self, observer: Arc<dyn Observe>) {
        self.responder.as_mut().expect("present until answered").observe(observer);
    }

    /// Whether the peer has ended its sending side, or is gone; see [`Respond::has_peer_ended`].
    pub fn has_peer_ended(&self) -> bool {
        self.responder.as_ref().is_none_or(|responder| responder.has_peer_ended())
    }

    /// Whether the server stops; observers learn of it, too. A handler that asks waits for nothing but its peer, and
    /// ends if it is so.
    pub fn heeds_stop(&self) -> bool {
        self.responder.as_ref().is_some_and(|responder| responder.heeds_stop())
    }

    /// Answers completely: head and body leave in one write where the socket takes them.
    ///
    /// # Errors
    /// As [`Respond::send_head`] (a 500 was sent instead) and [`Respond::send_data`].
    pub fn respond(self, head: impl Borrow<ResponseHead>, body: impl Into<Content>) -> Result<(), SendError> {
        self.respond_with(head, Last::Given(body.into()))
    }

    /// Responds as [`respond`](Self::respond) does, with a body that need not stay.
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    pub fn respond_with(self, head: impl Borrow<ResponseHead>, body: Last<'_>) -> Result<(), SendError> {
        self.start(head, Some(body.len()))?.finish_with(body)
    }

    /// Answers with an error that is not the application's own: with the error page that the server has for its status, else
    /// with `text`.
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    pub fn respond_error(self, head: ResponseHead, text: impl Into<Content>) -> Result<(), SendError> {
        let page = match (&self.responder, &self.request) {
            (Some(responder), Some(request)) => responder.error_page(request, &head),
            _ => None,
        };
        match page {
            Some((head, content)) => self.respond(head, content),
            None => self.respond(head, text),
        }
    }

    /// Accepts the WebSocket that the [request asks for](Request::websocket). The fields of `head` are sent with the answer; its status
    /// is the protocol's affair.
    ///
    /// # Errors
    /// The peer is gone; or a field cannot be sent: the exchange comes back, and another answer may be given.
    pub fn accept(mut self, head: &ResponseHead) -> Result<WebSocket, (Self, SendError)> {
        let (Some(mut responder), Some(request)) = (self.responder.take(), self.request.take()) else {
            return Err((self, SendError::Closed));
        };
        match responder.accept_websocket(&request, head) {
            Ok(()) => Ok(WebSocket::new(responder, request)),
            Err(error) => {
                (self.responder, self.request) = (Some(responder), Some(request));
                Err((self, error))
            }
        }
    }

    /// Starts a response whose body follows in parts. `length` is the body's length where it is
    /// known; a body that turns out shorter closes the connection, a longer one is cut.
    ///
    /// # Errors
    /// As [`Respond::send_head`]; a 500 was sent instead.
    pub fn start(
        mut self,
        head: impl Borrow<ResponseHead>,
        length: Option<u64>,
    ) -> Result<Stream, SendError> {
        let mut responder = self.responder.take().expect("present until answered");
        let request = self.request.take().expect("present until answered");
        match responder.send_head(&request, head.borrow(), length) {
            Ok(()) => Ok(Stream { responder: Some(responder), request: Some(request), unwanted: false }),
            Err(error) => {
                fail(responder, request);
                Err(error)
            }
        }
    }
}

fn fail(mut responder: Box<dyn Respond>, request: Box<Request>) {
    const TEXT: &str = "The application failed to answer this request.\n";
    let head = ResponseHead::new(Status::INTERNAL_SERVER_ERROR).with("Content-Type", "text/plain");
    let page = responder.error_page(&request, &head);
    let (head, text) = page.unwrap_or((head, Content::Static(TEXT.as_bytes())));
    if responder.send_head(&request, &head, Some(text.len())).is_ok() {
        // A peer that is gone needs no answer.
        let _ = responder.send_data(&request, text);
    }
    responder.finish(request);
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) {
            fail(responder, request);
        }
    }
}

/// A response whose head is sent and whose body follows in parts.
pub struct Stream {
    // Both are Some until the end.
    responder: Option<Box<dyn Respond>>,
    request: Option<Box<Request>>,
    /// No byte of the body is sent: where it ends is of no matter.
    unwanted: bool,
}

impl Stream {
    /// The request that is being answered.
    pub fn request(&self) -> &Request {
        self.request.as_ref().expect("present until finished")
    }

    /// Sends a part of the body. It leaves at once if the socket takes it; else it is queued and
    /// delivered by the engine. Never waits.
    ///
    /// # Errors
    /// The peer is gone, or the body is longer than declared. [`SendError::Unwanted`]: no part of the body is sent; the head
    /// leaves when the response is finished or dropped.
    pub fn send(&mut self, content: impl Into<Content>) -> Result<Flow, SendError> {
        let request = self.request.as_ref().expect("present until finished");
        let sent =
            self.responder.as_mut().expect("present until finished").send_data(request, content.into());
        self.unwanted |= sent == Err(SendError::Unwanted);
        sent
    }

    /// See [`Respond::is_tight`].
    pub fn is_tight(&self, length: u64) -> bool {
        self.responder.as_ref().is_some_and(|responder| responder.is_tight(length))
    }

    /// Names the route of this request for statistics and logs, such as `/users/{name}`; they add its method. To be
    /// called before the response ends. Names should be few, as the routes of an application are: beyond 1,000 all are
    /// one, "other".
    pub fn name_route(&mut self, name: &str) {
        if let Some(request) = &mut self.request {
            request.name_route(name);
        }
    }

    /// See [`Respond::set_label`].
    pub fn set_label(&mut self, label: &str) {
        if let Some(responder) = &mut self.responder {
            responder.set_label(label);
        }
    }

    /// See [`Respond::relieve`].
    ///
    /// # Errors
    /// The peer is gone.
    pub fn relieve(&mut self) -> Result<(), SendError> {
        self.responder.as_mut().expect("present until finished").relieve()
    }

    /// Waits until there is room for more, at most for `limit`. The server makes room by writing queued bytes to a
    /// file, on this thread, as long as the response may take more of the disk.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn wait(&mut self, limit: Duration) -> Result<Flow, SendError> {
        self.responder.as_mut().expect("present until finished").wait(limit)
    }

    /// Whether the peer is known to be gone.
    pub fn is_closed(&self) -> bool {
        self.responder.as_ref().is_none_or(|responder| responder.is_closed())
    }

    /// Has `observer` told of changes; see [`Respond::observe`].
    pub fn observe(&mut self, observer: Arc<dyn Observe>) {
        self.responder.as_mut().expect("present until finished").observe(observer);
    }

    /// Whether the peer has ended its sending side, or is gone; see [`Respond::has_peer_ended`].
    pub fn has_peer_ended(&self) -> bool {
        self.responder.as_ref().is_none_or(|responder| responder.has_peer_ended())
    }

    /// Whether to wait for room before more is sent.
    pub fn is_full(&self) -> bool {
        self.responder.as_ref().is_some_and(|responder| responder.is_full())
    }

    /// Sends the last part of the body and ends the response.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn finish_with(mut self, last: Last<'_>) -> Result<(), SendError> {
        let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) else {
            return Err(SendError::Closed);
        };
        responder.finish_with(request, last)
    }

    /// Ends the response with fields behind its body (RFC 9110 §6.5), best [announced](Exchange::announce_trailers) before. They are
    /// left out where they have no place: for a client that does not [take them](Request::takes_trailers), with HEAD, 204 and 304, and
    /// in HTTP/1 with a `Content-Length`, which gets a warning. So are those that have a meaning only in a head (RFC 9110 §6.5.1),
    /// with a warning.
    ///
    /// # Errors
    /// The peer is gone; or a field is invalid: then the response is cut, because the trailers are missing.
    pub fn finish_with_trailers(mut self, trailers: FieldSet) -> Result<(), SendError> {
        let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) else {
            return Err(SendError::Closed);
        };
        responder.finish_with_trailers(request, trailers)
    }

    /// Ends the response.
    pub fn finish(mut self) {
        if let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) {
            responder.finish(request);
        }
    }

    /// Ends the response in the middle, for example after an error: the peer sees that it is cut.
    /// `reason` goes to the error log.
    pub fn abort(mut self, reason: &str) {
        if let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) {
            responder.abort(request, reason);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let (Some(responder), Some(request)) = (self.responder.take(), self.request.take()) {
            if self.unwanted {
                return responder.finish(request);
            }
            responder.abort(request, "the response was dropped before its end");
        }
    }
}
