//! Answering: by the engine at once, or by a handler through its responder.

use std::sync::Arc;

use maitred_files::{Now, folder_location};
use maitred_http::{Method, RequestHead, ResponseHead, Status};
use maitred_io::sync::atomic::Ordering;
use maitred_log::RequestId;
use maitred_runtime::{Handler, Request};
use maitred_stats::exposition::Format;

use crate::link::{Link, Readiness, Received};
use crate::response::Response;
use crate::site::Site;
use crate::site::naming::shape_of;
use crate::stages::{Asked, Maker};
use crate::stream::Destination;
use crate::stream::Stream;

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
pub fn answer<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
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
pub fn file<'a>(link: &mut impl Link<'a>, stream: &mut Stream, mount: usize) -> Response {
    let site = link.site();
    link.shape(None, stream);
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
    link.shape(Some(pool), &mut stream);
    let Request { head, number, body, .. } = &mut *stream.request;
    if site.measures.ids.load(Ordering::Relaxed)
        && let id @ RequestId::Made(_) = RequestId::of(&head.fields, *number)
    {
        head.fields.set("X-Request-ID", id.to_string());
    }
    if body.as_bytes().is_none() {
        site.figures.note_spooled(pool);
    }
    head.shape = shape_of(head).hash();
    link.run(stream, handler, pool)
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
pub fn respond<'a>(link: &mut impl Link<'a>, stream: Box<Stream>, response: Response) -> Received {
    let secure = link.client_of(&stream).secure;
    let (head, number) = (&stream.request.head, stream.request.number);
    let asked = Asked { head, number, passed: stream.passed.as_deref(), maker: Maker::Engine { secure } };
    let response = response.finished(link.site(), &asked);
    link.send_own(stream, response)
}

/// Refuses a request that is malformed or not allowed: the response is the last one of the connection.
pub fn refuse<'a>(
    link: &mut impl Link<'a>,
    stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    link.site().log.info(format_args!(
        "{}: {} {}: {reason}{}",
        link.client_of(&stream).peer,
        status.code(),
        status.reason(),
        option_of(reason)
    ));
    refuse_noted(link, stream, status, reason)
}

/// Refuses a request; the line of the rule is in the log already.
pub fn refuse_noted<'a>(
    link: &mut impl Link<'a>,
    mut stream: Box<Stream>,
    status: Status,
    reason: &'static str,
) -> Received {
    // A head that could not be read has no other facts.
    stream.request.head.tls = link.session();
    link.site().counters.refused.add(1);
    respond(link, stream, Response::refusal(status, reason))
}
