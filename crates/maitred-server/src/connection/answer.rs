//! Answering: by the engine at once, or by a handler through its responder.

use crate::connection::pipeline::Received;
use std::sync::Arc;

use maitred_files::{Now, folder_location};
use maitred_http::{Method, RequestHead, ResponseHead, Status, target};
use maitred_io::sync::atomic::Ordering;
use maitred_log::RequestId;
use maitred_match::Ambiguity;
use maitred_runtime::{Exchange, Handler};
use maitred_stats::exposition::Format;

use super::link::Link;
use super::request_timeout::Awaited;
use super::responder::{Origin, Responder};
use super::response::Response;
use super::stages::{Asked, Maker};
use super::stream::Stream;
use super::streaming_body::live_reader;
use super::wire::Wire;
use super::{Context, Group, spare_request};
use crate::destination::Destination;
use crate::group::Job;
use crate::group::slots::Place;
use crate::site::Site;
use crate::site::naming::shape_of;

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
fn health(group: &Group) -> Response {
    let (status, text) = match (group.groups.is_ready(), group.is_draining()) {
        (true, _) => (Status::OK, "ok\n"),
        (false, false) => (Status::SERVICE_UNAVAILABLE, "stopping\n"),
        (false, true) => (Status::SERVICE_UNAVAILABLE, "draining\n"),
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

fn warn_of_polling(context: &Context<'_>, head: &RequestHead) {
    context.group.site.log.warn(format_args!(
        "{}: Socket.IO by long polling needs all requests of a session in one process, and there are several: sessions break with 400; \
         see docs/socket-io.md (one worker, or WebSocket alone)",
        head.path().escape_ascii()
    ));
}

/// Answers a complete request, or makes a job of it.
pub(super) fn answer(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
) -> Received {
    let destination = std::mem::take(&mut stream.destination);
    let head = &stream.request.head;
    let response = match destination {
        Destination::Application(handler) => return hand_over(link, wire, context, stream, handler),
        Destination::Metrics => match &context.group.site.metrics_handler {
            Some(handler) => return hand_over(link, wire, context, stream, Arc::clone(handler)),
            None => metrics(link, context, head),
        },
        Destination::Files(mount) => file(link, wire, context, &mut stream, mount),
        Destination::Slash => match folder_location(head.path(), head.query()) {
            Some(location) => {
                Response::new(ResponseHead::new(Status::PERMANENT_REDIRECT)).with("Location", location)
            }
            None => Response::status(Status::BAD_REQUEST),
        },
        Destination::Bad => Response::status(Status::BAD_REQUEST),
        Destination::Nothing => Response::status(Status::NOT_FOUND),
        Destination::Server => about_server(&context.group.site, head),
        Destination::Health => health(context.group),
    };
    respond(link, wire, context, stream, response)
}

fn metrics(link: &impl Link, context: &Context<'_>, head: &RequestHead) -> Response {
    let format = Format::accepted(head.fields.all("accept"));
    let mut text = String::new();
    // Reading the process's memory takes a while.
    let metrics = context.group.site.metrics.get();
    link.beside_interpreter(context, &mut || {
        text = metrics.as_ref().map_or_else(String::new, |make| make(format));
    });
    let head = ResponseHead::new(Status::OK)
        .with("Content-Type", format.media_type())
        .with("Vary", "Accept")
        .with("Cache-Control", "no-store");
    Response::with_content(head, text.into())
}

/// A file of the static mount with this number.
pub(super) fn file(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: &mut Stream,
    mount: usize,
) -> Response {
    let site = &context.group.site;
    let head = &stream.request.head;
    wire.shape(context, None, head, stream.queue.as_deref_mut());
    context.scratch.date();
    let now = Now { monotonic_ns: context.now, unix_seconds: context.scratch.unix_seconds() };
    let mut path = std::mem::take(&mut context.scratch.path);
    let mut answer = None;
    if let Some((files, below)) = site.hosts.of(head.host).routes().files_at(mount, head.path(), &mut path) {
        // A file that is not in memory may have to wait for the disk.
        link.beside_interpreter(context, &mut || answer = Some(files.answer(head, below, now)));
    }
    context.scratch.path = path;
    let Some(answer) = answer else { return Response::status(Status::NOT_FOUND) };
    if let Some(note) = &answer.note {
        site.log.error(format_args!("{}: {note}", head.path().escape_ascii()));
    }
    Response::with_body(answer.head, answer.length, answer.body)
}

fn hand_over(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
    handler: Arc<dyn Handler>,
) -> Received {
    let pool = pool_for(wire, context, &stream, &*handler);
    if let Some(told) = context.group.site.polling.as_ref().filter(|_| is_polling(&stream.request.head)) {
        told.call_once(|| warn_of_polling(context, &stream.request.head));
    }
    wire.shape(context, Some(pool), &stream.request.head, stream.queue.as_deref_mut());
    let (spare, buffer) = spare_request();
    let mut request = std::mem::replace(&mut stream.request, spare);
    let client = wire.client_of(&stream);
    request.endpoint = wire.endpoint(context, client);
    if context.group.site.measures.ids.load(Ordering::Relaxed)
        && let id @ RequestId::Made(_) = RequestId::of(&request.head.fields, request.number)
    {
        let id = id.to_string();
        request.head.fields.set("X-Request-ID", id);
    }
    if request.body.as_bytes().is_none() {
        context.group.site.figures.note_spooled(pool);
    }
    let flags = stream.run();
    stream.summarise(&request, context.now, pool);
    stream.awaited = Awaited::of(context, &request, &stream, pool);
    let limited = stream.awaited.is_some().then(|| Arc::clone(&flags));
    request.head.shape = shape_of(&request.head).hash();
    let interrupts = limited.is_some() && context.group.scheduler.pool_at(pool).threads.interrupts();
    let key = context.key(stream.number);
    let number = u16::try_from(pool).unwrap_or(u16::MAX);
    let origin =
        Origin { peer: client.peer, listener: wire.listener.into(), pool: number, times: stream.times };
    let encoder = link.begin_run(wire, context, &stream, &request.head);
    let mut responder = Responder::new(context.group, key, flags, encoder, origin, buffer);
    responder.set_direct(wire.is_direct());
    responder.set_interrupts(interrupts);
    responder.set_passed(stream.passed.take());
    if let Some(offer) = stream.offer.take() {
        responder.set_websocket(offer);
    }
    if let Some((reader, length)) = live_reader(context, &mut stream) {
        request.body = maitred_runtime::Body::live(Box::new(reader), length);
        responder.set_live();
    }
    link.put(stream);
    let exchange = Exchange::new(request, Box::new(responder));
    let shown = link.shown_number(key.stream);
    let home = Place { group: context.group.number, token: context.token.to_u64(), stream: shown };
    context.jobs.push(Job { handler, exchange, home, pool, limited });
    Received::HandedOver
}

/// The ambiguity of a path for which the choice of the pool depends on the reader; none for other paths.
pub(super) fn ambiguous_pool(wire: &Wire, context: &Context<'_>, stream: &Stream) -> Option<Ambiguity> {
    let head = &stream.request.head;
    let found = context.group.pool_of(|map| map.ambiguity(head, wire.client_of(stream).peer.ip()));
    found.filter(|_| stream.destination.is_application())
}

/// The number of the pool whose threads run a request.
fn pool_for(wire: &Wire, context: &mut Context<'_>, stream: &Stream, handler: &dyn Handler) -> usize {
    let group = context.group;
    let head = &stream.request.head;
    let path = &mut context.scratch.path;
    let pool = group.pool_of(|map| {
        target::normalise_decoded(head.path(), path);
        map.find(head, path, wire.client_of(stream).peer.ip())
    });
    group.pool_for(handler, pool)
}

/// The option with the limit of the head, for the log.
fn option_of(reason: &str) -> &'static str {
    match reason {
        "field too large" => " (--max-field)",
        "request head too large" => " (--max-head)",
        _ => "",
    }
}

/// Sends a response of the engine to a request that no handler has.
pub(super) fn respond(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    response: Response,
) -> Received {
    let secure = wire.client_of(&stream).secure;
    let (head, number) = (&stream.request.head, stream.request.number);
    let asked = Asked { head, number, passed: stream.passed.as_deref(), maker: Maker::Engine { secure } };
    let response = response.finished(&context.group.site, &asked);
    wire.served = wire.served.saturating_add(1);
    link.send_own(wire, context, stream, response)
}

/// Refuses a request that is malformed or not allowed: the response is the last one of the connection.
pub(super) fn refuse(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    let log = &context.group.site.log;
    log.info(format_args!(
        "{}: {} {}: {reason}{}",
        wire.client_of(&stream).peer,
        status.code(),
        status.reason(),
        option_of(reason)
    ));
    refuse_noted(link, wire, context, stream, status, reason)
}

/// Refuses a request; the line of the rule is in the log already.
pub(super) fn refuse_noted(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    // A head that could not be read has no other facts.
    stream.request.head.tls = wire.session();
    context.group.site.counters.refused.add(1);
    respond(link, wire, context, stream, Response::refusal(status, reason))
}
