//! The way of a request: each part as it arrives, whatever protocol carries it, and its answer.
//!
//! ```text
//! head -> client -> challenge of an authority? -> host and destination -> WebSocket? -> admission -> redirect -> filters -> body -> answer
//! ```
//! A part ends in the answer of the engine, in the handover to a handler, or in the wait for more ([`Received`]). A body goes into memory,
//! beyond `body-memory` into the spool, and nowhere when the response does not need it; `stream/body.rs` has the bodies that handlers read
//! while they arrive.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use maitred_files::{Now, folder_location};
use maitred_h1::{HeadFacts, Sender};
use maitred_http::{BodyLength, Method, RequestHead, ResponseHead, Status};
use maitred_io::sync::atomic::Ordering;
use maitred_log::RequestId;
use maitred_runtime::{Handler, Request};
use maitred_spool::{Progress, Share};
use maitred_stats::exposition::Format;
use maitred_turns::Turn;

use crate::admission::{admit, answer_not_now, offer_websocket, redirect};
use crate::challenge::answer_challenge;
use crate::client::identify;
use crate::destination::Destination;
use crate::filter::{Filtered, answer_filtered, filter, respond_early};
use crate::link::{Link, Readiness, Received};
use crate::response::Response;
use crate::site::Site;
use crate::site::naming::shape_of;
use crate::stages::{refuse, respond};
use crate::stream::Stream;
use crate::stream::body::{Keeping, Live, MAX_DROPPED};

/// Returns the refusal of a request whose body must not be asked for.
fn objection<'a>(link: &impl Link<'a>, stream: &Stream) -> Option<(Status, &'static str)> {
    let head = &stream.request.head;
    match head.body {
        BodyLength::Fixed(length) if length > stream.max_body(link.site()) => {
            Some((Status::CONTENT_TOO_LARGE, stream.too_large()))
        }
        _ if head.method == Method::Connect => Some((Status::NOT_IMPLEMENTED, "CONNECT is not supported")),
        _ => None,
    }
}

/// Handles a complete request head.
pub fn head_received<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>, facts: HeadFacts) -> Received {
    stream.facts = Some(facts);
    stream.times.complete = link.received();
    let client = identify(link.site(), link.peer(), link.ends(), &mut stream.request.head);
    stream.client = Some(client);
    if let Some(tracing) = &link.site().tracing {
        tracing.place(&link.site().proxies, link.peer(), client.secure, &mut stream.request.head);
    }
    if let Some(answer) = answer_challenge(link, &stream) {
        return respond_early(link, stream, answer);
    }
    if let Err(reason) = find_host(link, &mut stream) {
        return refuse(link, stream, Status::MISDIRECTED_REQUEST, reason);
    }
    stream = match offer_websocket(link, stream) {
        Ok(stream) => stream,
        Err(answered) => return answered,
    };
    if let Err(refusal) = admit(link, &stream) {
        return answer_not_now(link, stream, refusal);
    }
    if let Some(answer) = redirect(link, &stream) {
        return answer_filtered(link, stream, answer);
    }
    pass_filters(link, stream)
}

/// Finds the virtual host and the destination of the request. The engine's own paths exist on all hosts.
///
/// # Errors
/// The reason why this connection cannot serve the request (RFC 9110 section 15.5.20): no such host exists, or
/// that host asks clients for certificates by other rules than those of this connection.
fn find_host<'a>(link: &impl Link<'a>, stream: &mut Stream) -> Result<(), &'static str> {
    let site = link.site();
    let head = &mut stream.request.head;
    let found = site.hosts.find(head.authority());
    head.host = found.unwrap_or_default();
    stream.destination = Destination::find(site, head, stream.facts);
    let rules = link.ends().and_then(|ends| ends.rules.as_ref());
    if matches!(stream.destination, Destination::Server) || stream.destination.is_engine() {
        Ok(())
    } else if found.is_none() {
        Err("this server has no such host")
    } else if rules.is_some_and(|rules| !rules.are_those_of(head.host)) {
        Err(
            "this host has other rules for certificates of clients than the one that this connection was made for",
        )
    } else {
        Ok(())
    }
}

/// Leads the request through the filters, or on from the filter where it has waited, and then to its destination.
pub fn pass_filters<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
    if link.site().filters.is_on() || stream.passed.is_some() {
        stream = match filter(link, stream) {
            Filtered::Pass(stream) => stream,
            Filtered::Wait(stream) => return Received::Waits(stream),
            Filtered::Answered(received) => return received,
        };
    }
    if let Some(ambiguity) = link.ambiguous_pool(&stream) {
        return refuse(link, stream, Status::BAD_REQUEST, ambiguity.reason());
    }
    if stream.offer.is_some() {
        return answer(link, stream);
    }
    if let Some((status, reason)) = objection(link, &stream) {
        return refuse(link, stream, status, reason);
    }
    let facts = stream.facts.unwrap_or_default();
    if facts.expect_continue && !stream.destination.is_application() {
        // The engine answers without the body, so it does not ask for it. If the body comes anyway, it is dropped.
        stream.facts = Some(HeadFacts { keep_alive: false, ..facts });
        return answer(link, stream);
    }
    if facts.complete {
        return request_received(link, stream);
    }
    if is_read_live(link, &stream, facts) {
        return answer_live(link, stream, facts);
    }
    prepare_body(link, &mut stream, facts);
    Received::Goes(stream)
}

/// Handles a part of the request body.
pub fn data_received<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>, bytes: &[u8]) -> Received {
    if !keep(link, &mut stream, bytes) {
        if stream.keeping.is_dropped() {
            return end_dropped(link, stream);
        }
        let reason = stream.too_large();
        return refuse(link, stream, Status::CONTENT_TOO_LARGE, reason);
    }
    if stream.keeping.is_spool() { advance_spool(link, stream) } else { Received::Goes(stream) }
}

/// Handles the end of a request.
pub fn request_received<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
    stream.times.complete = link.received();
    match &mut stream.keeping {
        Keeping::Spool(spool) => {
            spool.complete();
            advance_spool(link, stream)
        }
        Keeping::Dropped(_) => {
            Stream::give_back(stream);
            Received::Dropped
        }
        Keeping::Shared(_) => {
            if let Keeping::Shared(mut share) = std::mem::take(&mut stream.keeping) {
                share.end();
                stream.request.body.hold(Box::new(share));
            }
            answer(link, stream)
        }
        _ => answer(link, stream),
    }
}

/// Prepares for the body that follows an accepted head.
fn prepare_body<'a>(link: &mut impl Link<'a>, stream: &mut Stream, facts: HeadFacts) {
    /// Memory set aside before the first byte of a body has come. It is not touched before.
    const MAX_RESERVED: u64 = 256 * 1024;
    if let BodyLength::Fixed(length) = stream.request.head.body {
        stream.request.body.reserve(length.min(MAX_RESERVED) as usize);
    }
    if facts.expect_continue {
        link.send_continue(stream);
    }
}

/// Ends a connection whose unread body is malformed or longer than the limit for dropping: no request can follow.
pub fn end_dropped<'a>(link: &mut impl Link<'a>, stream: Box<Stream>) -> Received {
    Stream::give_back(stream);
    link.close_behind();
    Received::Ended(Turn::Wait)
}

// ---- Bodies ----

/// Takes bytes of a body. Returns false when the body exceeds its limit, or the limit for dropping.
fn keep<'a>(link: &impl Link<'a>, stream: &mut Stream, bytes: &[u8]) -> bool {
    let site = link.site();
    let before = match &stream.keeping {
        Keeping::Memory | Keeping::Shared(_) => stream.request.body.len(),
        Keeping::Spool(spool) => spool.length(),
        Keeping::Nowhere(length) | Keeping::Dropped(length) => *length,
        Keeping::Live(_) => return false,
    };
    let length = before + bytes.len() as u64;
    let most = if stream.keeping.is_dropped() { MAX_DROPPED } else { stream.max_body(site) };
    if length > most {
        return false;
    }
    let is_short = site.guard.budget.is_over();
    let memory = if is_short { 0 } else { site.body_memory };
    if length > memory && matches!(stream.keeping, Keeping::Memory) {
        match share(site, stream, link.waker()) {
            Some(share) if !is_short => stream.keeping = Keeping::Shared(share),
            _ => move_body_to_file(site, stream, link.waker()),
        }
    }
    if let Keeping::Shared(share) = &mut stream.keeping
        && (is_short || !share.grow(length) || share.leaves())
    {
        move_body_to_file(site, stream, link.waker());
    }
    match &mut stream.keeping {
        Keeping::Spool(spool) => {
            spool.be_frugal(is_short);
            spool.push(bytes);
        }
        Keeping::Nowhere(counted) | Keeping::Dropped(counted) => *counted = length,
        Keeping::Live(_) => {}
        Keeping::Memory | Keeping::Shared(_) => {
            if let Some(memory) = stream.request.body.memory_mut() {
                memory.extend_from_slice(bytes);
            }
        }
    }
    true
}

/// Whether the body fits memory without a share of the budget.
fn fits_memory<'a>(link: &impl Link<'a>, stream: &Stream) -> bool {
    match stream.request.head.body {
        BodyLength::Fixed(length) => length <= link.site().body_memory,
        BodyLength::Empty => true,
        BodyLength::Chunked | BodyLength::UntilClose => false,
    }
}

/// A share of the budget for a body that exceeds the memory for one; none if the body goes to a file.
pub fn share(site: &Site, stream: &Stream, wake: impl Fn() + Send + Sync + 'static) -> Option<Share> {
    let length = match stream.request.head.body {
        BodyLength::Fixed(length) => Some(length),
        _ => None,
    };
    if !stream.destination.is_application() {
        return None;
    }
    site.body_budget.begin(length, wake)
}

/// Moves the body from memory to a file. A body that no application reads, or that has no spool, is only counted from
/// then on.
pub fn move_body_to_file(site: &Site, stream: &mut Stream, wake: impl Fn() + Send + Sync + 'static) {
    let bytes = stream.request.body.memory_mut().map(std::mem::take).unwrap_or_default();
    let share = match std::mem::take(&mut stream.keeping) {
        Keeping::Shared(mut share) => {
            share.leave();
            Some(share)
        }
        _ => None,
    };
    stream.keeping = match &site.spooler {
        Some(spooler) if stream.destination.is_application() => {
            Keeping::Spool(spooler.begin(bytes, share, &site.body_budget, wake))
        }
        _ => Keeping::Nowhere(bytes.len() as u64),
    };
}

/// Goes on with a body in the spool.
pub fn advance_spool<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
    let Keeping::Spool(spool) = &mut stream.keeping else { return Received::Goes(stream) };
    match spool.advance() {
        Progress::Open => Received::Goes(stream),
        Progress::Waiting => Received::Waits(stream),
        Progress::Written => {
            stream.request.body = spool.take_body();
            stream.keeping = Keeping::Memory;
            answer(link, stream)
        }
        Progress::Failed(error) => refuse_unkept(link, stream, &error),
    }
}

/// Refuses a request whose body cannot be kept, because of the server or the disk. Other requests go on.
pub fn refuse_unkept<'a>(link: &mut impl Link<'a>, stream: Box<Stream>, error: &Error) -> Received {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let status = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => Status::INSUFFICIENT_STORAGE,
        _ => Status::SERVICE_UNAVAILABLE,
    };
    let head = &stream.request.head;
    link.site().log.error(format_args!(
        "{}: {} {}: the request body cannot be kept in the spool folder (--spool): {error}; {status} was sent",
        link.client_of(&stream).peer,
        head.method,
        head.target().escape_ascii()
    ));
    refuse(link, stream, status, "the server cannot keep the request body")
}

/// Hands over a request of which only the head has arrived.
fn answer_live<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>, facts: HeadFacts) -> Received {
    let mut interim = Vec::new();
    if facts.expect_continue {
        Sender::new(stream.request.head.version, false, true).send_continue(&mut interim);
    }
    let max = stream.max_body(link.site());
    let interim = Some(interim).filter(|interim| !interim.is_empty());
    stream.keeping = Keeping::Live(Live::new(stream.request.head.body, max, interim));
    match answer(link, stream) {
        // Only the application answers such a request. If the engine has answered, no request can follow.
        Received::Answered => Received::Ended(Turn::Close),
        received => received,
    }
}

/// Whether a handler reads the body of this request while it arrives.
fn is_read_live<'a>(link: &impl Link<'a>, stream: &Stream, facts: HeadFacts) -> bool {
    let own = stream.passed.as_ref().and_then(|passed| passed.read_ahead());
    let said = own.or_else(|| link.read_ahead());
    if said == Some(true) {
        return false;
    }
    stream.destination.application().is_some_and(|handler| {
        // A client that sends `Expect: 100-continue` waits for the handler's decision. A body of unknown length
        // may end only after the response.
        let is_early = || facts.expect_continue || !fits_memory(link, stream);
        let waits_cheaply = || handler.runs_on_event_loop() && is_early();
        handler.takes_live_bodies() && said.map_or_else(waits_cheaply, |on| !on)
    })
}

// ---- Answers: of the engine at once, or of a handler through its responder ----

/// The methods the engine knows; `*` has no resource of its own (RFC 9110 §9.3.7).
const SERVER_METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

/// Methods of a server without an application.
const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

/// The response about the server as a whole (RFC 9110 §9.3.7).
fn about_server(site: &Site, head: &RequestHead) -> Response {
    if head.method != Method::Options {
        return Response::new(ResponseHead::new(Status::BAD_REQUEST));
    }
    let methods = if site.hosts.has_application() { SERVER_METHODS } else { FILE_METHODS };
    Response::new(ResponseHead::new(Status::NO_CONTENT)).with("Allow", methods)
}

/// Whether this server is ready for requests.
fn health(readiness: &Readiness) -> Response {
    let (status, text) = match readiness {
        Readiness::Ready => (Status::OK, "ok\n"),
        Readiness::Stopping => (Status::SERVICE_UNAVAILABLE, "stopping\n"),
        Readiness::Draining => (Status::SERVICE_UNAVAILABLE, "draining\n"),
    };
    // A new connection may reach another server.
    Response::text(status, text).with("Cache-Control", "no-store").keep_alive(status == Status::OK)
}

/// Whether a request belongs to a session of Engine.IO (used by Socket.IO) by long polling: the next request has to
/// reach the same process.
fn is_polling(head: &RequestHead) -> bool {
    const MARK: &[u8] = b"transport=polling";
    head.query()
        .is_some_and(|query| query.starts_with(b"EIO=") && query.windows(MARK.len()).any(|part| part == MARK))
}

fn warn_of_polling(site: &Site, head: &RequestHead) {
    site.log.warn(format_args!(
        "{}: Socket.IO by long polling needs all requests of a session in one process, and there are several: sessions break with 400; \
         see docs/socket-io.md (one worker, or WebSocket alone)",
        head.path().escape_ascii()
    ));
}

/// Answers a complete request, or makes a job of it.
fn answer<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
    let destination = std::mem::take(&mut stream.destination);
    let head = &stream.request.head;
    let response = match destination {
        Destination::Application(handler) => return hand_over(link, stream, handler),
        Destination::Metrics => match &link.site().metrics_handler {
            Some(handler) => return hand_over(link, stream, Arc::clone(handler)),
            None => metrics(link, head),
        },
        Destination::Files(mount) => file(link, &mut stream, mount),
        Destination::Slash => match folder_location(head.path(), head.query()) {
            Some(location) => {
                Response::new(ResponseHead::new(Status::PERMANENT_REDIRECT)).with("Location", location)
            }
            None => Response::status(Status::BAD_REQUEST),
        },
        Destination::Bad => Response::status(Status::BAD_REQUEST),
        Destination::Nothing => Response::status(Status::NOT_FOUND),
        Destination::Server => about_server(link.site(), head),
        Destination::Health => health(&link.readiness()),
    };
    respond(link, stream, response)
}

fn metrics<'a>(link: &impl Link<'a>, head: &RequestHead) -> Response {
    let format = Format::accepted(head.fields.all("accept"));
    let mut text = String::new();
    // Reading the process's memory takes a while.
    let metrics = link.site().metrics.get();
    link.beside_interpreter(&mut || {
        text = metrics.as_ref().map_or_else(String::new, |make| make(format));
    });
    let head = ResponseHead::new(Status::OK)
        .with("Content-Type", format.media_type())
        .with("Vary", "Accept")
        .with("Cache-Control", "no-store");
    Response::with_content(head, text.into())
}

/// A file of the static mount with this number.
fn file<'a>(link: &mut impl Link<'a>, stream: &mut Stream, mount: usize) -> Response {
    let site = link.site();
    link.limit_rate(None, stream);
    let head = &stream.request.head;
    link.memory().date();
    let now = Now { monotonic_ns: link.now(), unix_seconds: link.memory().unix_seconds() };
    let mut path = std::mem::take(&mut link.memory().path);
    let mut answer = None;
    if let Some((files, below)) = site.hosts.of(head.host).routes().files_at(mount, head.path(), &mut path) {
        // A file that is not in memory may have to wait for the disk.
        link.beside_interpreter(&mut || answer = Some(files.answer(head, below, now)));
    }
    link.memory().path = path;
    let Some(answer) = answer else { return Response::status(Status::NOT_FOUND) };
    if let Some(note) = &answer.note {
        site.log.error(format_args!("{}: {note}", head.path().escape_ascii()));
    }
    Response::with_body(answer.head, answer.length, answer.body)
}

/// Gives the request to a handler.
fn hand_over<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>, handler: Arc<dyn Handler>) -> Received {
    let (site, pool) = (link.site(), link.pool_for(&stream, &*handler));
    if let Some(told) = site.polling.as_ref().filter(|_| is_polling(&stream.request.head)) {
        told.call_once(|| warn_of_polling(site, &stream.request.head));
    }
    link.limit_rate(Some(pool), &mut stream);
    let Request { head, number, body, .. } = &mut *stream.request;
    if site.measures.ids.load(Ordering::Relaxed)
        && let id @ RequestId::Made(_) = RequestId::of(&head.fields, *number)
    {
        head.fields.set("X-Request-ID", id.to_string());
    }
    if body.as_bytes().is_none() {
        site.figures.note_spooled(pool);
    }
    head.shape_hash = shape_of(head).hash();
    link.run(stream, handler, pool)
}
