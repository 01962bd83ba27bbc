//! Answering: by the engine at once, or by a handler through its responder.

use std::sync::Arc;

use maitred_files::{Body, Now, folder_location};
use maitred_h1::Sender;
use maitred_http::{Method, RequestHead, ResponseHead, Status, target};
use maitred_io::sync::atomic::Ordering;
use maitred_log::{End, RequestId};
use maitred_match::Ambiguity;
use maitred_runtime::{Content, Exchange, Handler};
use maitred_stats::Times;
use maitred_stats::exposition::Format;

use super::filter::{Asking, error_head, put_error, tells_id};
use super::request_timeout::Awaited;
use super::responder::{Encoder, Origin, Responder, ValueSender};
use super::stream::{Kept, Received, Record, Stream, is_asterisk};
use super::{Connection, Context, Phase, Turn, spare_request};
use crate::connection;
use crate::group::Job;
use crate::group::slots::Place;
use crate::pages::PLAIN;
use crate::routes::Route;
use crate::site::Site;

/// Content up to this size is copied behind its head and leaves in the same write; above it the
/// copy costs more than a second segment.
const MAX_COPIED: u64 = 16 * 1024;

/// The methods the engine knows; `*` has no resource of its own (RFC 9110 §9.3.7).
const SERVER_METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

/// The same for a server without an application.
const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

impl Connection {
    /// Answers a complete request, or makes a job of it.
    pub(super) fn answer(&mut self, context: &mut Context<'_>, mut stream: Box<Stream>) -> Received {
        let group = context.group;
        let head = &stream.request.head;
        let keep_alive = stream.facts.is_some_and(|facts| facts.keep_alive) && !group.is_draining();
        let sender = Sender::new(head.version, head.method == Method::Head, keep_alive);
        if is_asterisk(stream.facts) {
            let answer = if head.method == Method::Options {
                let all = group.site.hosts.has_application();
                ResponseHead::new(Status::NO_CONTENT)
                    .with("Allow", if all { SERVER_METHODS } else { FILE_METHODS })
            } else {
                ResponseHead::new(Status::BAD_REQUEST)
            };
            return self.answer_now(context, sender, stream, &answer, 0, Body::Empty);
        }
        if asks_for(group.site.health_path.as_deref(), head) {
            let (status, text) = match (group.groups.is_ready(), group.is_draining()) {
                (true, _) => (Status::OK, "ok\n"),
                (false, false) => (Status::SERVICE_UNAVAILABLE, "stopping\n"),
                (false, true) => (Status::SERVICE_UNAVAILABLE, "draining\n"),
            };
            // A new connection may reach another server.
            let sender =
                Sender::new(head.version, head.method == Method::Head, keep_alive && status == Status::OK);
            let answer =
                ResponseHead::new(status).with("Content-Type", PLAIN).with("Cache-Control", "no-store");
            let body = Body::One(text.into());
            return self.answer_now(context, sender, stream, &answer, text.len() as u64, body);
        }
        if asks_for(group.site.metrics_path.as_deref(), head)
            && let Some(handler) = &group.site.metrics_handler
        {
            let mut path = std::mem::take(&mut context.scratch.path);
            let received = self.hand_over(context, sender, stream, Arc::clone(handler), &mut path);
            context.scratch.path = path;
            return received;
        }
        if asks_for(group.site.metrics_path.as_deref(), head) {
            let format = Format::accepted(head.fields.all("accept"));
            let mut text = String::new();
            // Reading the process's memory takes a while.
            let metrics = group.site.metrics.get();
            self.beside_interpreter(context, &mut || {
                text = metrics.as_ref().map_or_else(String::new, |make| make(format));
            });
            let answer = ResponseHead::new(Status::OK)
                .with("Content-Type", format.media_type())
                .with("Vary", "Accept")
                .with("Cache-Control", "no-store");
            let length = text.len() as u64;
            return self.answer_now(context, sender, stream, &answer, length, Body::One(text.into()));
        }
        let mut path = std::mem::take(&mut context.scratch.path);
        let received = match group.site.hosts.of(head.host).routes().find_sent(head.path(), &mut path) {
            Route::Static(files, below) => {
                self.shape(context, None, head, stream.queue.as_deref_mut());
                context.scratch.date();
                let now = Now { monotonic_ns: context.now, unix_seconds: context.scratch.unix_seconds() };
                let mut answer = None;
                // A file that is not in memory may have to wait for the disk.
                self.beside_interpreter(context, &mut || answer = Some(files.answer(head, below, now)));
                let answer = answer.expect("called");
                if let Some(note) = &answer.note {
                    group.site.log.error(format_args!("{}: {note}", head.path().escape_ascii()));
                }
                self.answer_now(context, sender, stream, &answer.head, answer.length, answer.body)
            }
            Route::Application(application) => {
                let handler = Arc::clone(&application.handler);
                self.hand_over(context, sender, stream, handler, &mut path)
            }
            Route::Slash => match folder_location(head.path(), head.query()) {
                Some(location) => {
                    let answer = ResponseHead::new(Status::PERMANENT_REDIRECT).with("Location", location);
                    self.answer_now(context, sender, stream, &answer, 0, Body::Empty)
                }
                None => self.answer_text(context, sender, stream, Status::BAD_REQUEST),
            },
            Route::Bad => self.answer_text(context, sender, stream, Status::BAD_REQUEST),
            Route::Nothing => self.answer_text(context, sender, stream, Status::NOT_FOUND),
        };
        context.scratch.path = path;
        received
    }

    /// Does what may take a while, so that others have the interpreter meanwhile. With frames they do not: a handler of the same
    /// connection that has it could wait for the slot, whose lock this turn has, and the turn for the interpreter.
    fn beside_interpreter(&self, context: &Context<'_>, act: &mut dyn FnMut()) {
        if self.protocol.is_framed() { act() } else { context.group.host.without_interpreter(act) }
    }

    fn answer_text(
        &mut self,
        context: &mut Context<'_>,
        sender: Sender,
        stream: Box<Stream>,
        status: Status,
    ) -> Received {
        let text = format!("{} {}\n", status.code(), status.reason());
        let head = ResponseHead::new(status).with("Content-Type", PLAIN);
        let length = text.len() as u64;
        self.answer_now(context, sender, stream, &head, length, Body::One(text.into()))
    }

    /// Answers at once with what the engine has, an error with the page of its host if there is one.
    pub(super) fn answer_now(
        &mut self,
        context: &mut Context<'_>,
        mut sender: Sender,
        stream: Box<Stream>,
        head: &ResponseHead,
        length: u64,
        body: Body,
    ) -> Received {
        let date = *context.scratch.date();
        let asked = &stream.request.head;
        let page = (head.status.code() >= 400)
            .then(|| context.group.site.hosts.of(asked.host).pages().replace(head))
            .flatten();
        let (own, length, body) = match page {
            Some((head, content)) => (Some(head), content.len(), Body::One(content)),
            None => (None, length, body),
        };
        let head = own.as_ref().unwrap_or(head);
        let site = &context.group.site;
        let asking = || {
            let secure = self.client_of(&stream).secure;
            Asking { passed: stream.passed.as_deref(), head: asked, number: stream.request.number, secure }
        };
        // Limits on peers refuse before filters are met.
        let is_changed = stream.passed.is_some()
            || head.status.code() >= 400 && site.filters.is_on()
            || tells_id(site, head);
        let changed = is_changed.then(|| asking().changed(site, head)).flatten();
        let head = changed.as_ref().unwrap_or(head);
        if self.protocol.is_framed() {
            let mut values = ValueSender::new(stream.request.head.method == Method::Head);
            let heads = values.only(head, Some(length), &date);
            return self.answer_stream(context, stream, heads, body, false);
        }
        if let Err(error) = sender.send_head(head, Some(length), &date, &mut context.scratch.out) {
            let log = &context.group.site.log;
            log.error(format_args!("internal error, please report it: a response head of ours: {error}"));
            return Received::Ended(Turn::Close);
        }
        let times = stream.times;
        let body_bytes = if length > 0 && stream.request.head.method != Method::Head { length } else { 0 };
        match body {
            Body::Empty => {}
            Body::One(content) => self.emit(context, &mut sender, content),
            Body::Many(parts) => {
                for part in parts {
                    self.emit(context, &mut sender, part);
                }
            }
        }
        let finish = sender.finish(None, &mut context.scratch.out);
        self.served = self.served.saturating_add(1);
        let number = stream.request.number;
        self.record(context, (Kept::Stream(stream), number), head.status, body_bytes, times, false);
        if finish.reusable {
            return Received::Answered;
        }
        self.last = true;
        self.phase = Phase::Sending;
        Received::Ended(Turn::Wait)
    }

    /// Has it written down, when it has left, what the engine has answered.
    pub(super) fn record(
        &self,
        context: &mut Context<'_>,
        (request, number): (Kept, u64),
        status: Status,
        body_bytes: u64,
        times: Times,
        refused: bool,
    ) {
        let record = self.record_of(context, (request, number), status, body_bytes, times, refused);
        context.scratch.records.push(record);
    }

    /// The record of what the engine has answered.
    pub(super) fn record_of(
        &self,
        context: &Context<'_>,
        (request, number): (Kept, u64),
        status: Status,
        body_bytes: u64,
        times: Times,
        refused: bool,
    ) -> Record {
        let times = Times { begun: context.now, ..times };
        let end = End::Complete;
        let peer = match &request {
            Kept::Stream(stream) => self.client_of(stream).peer,
            Kept::Request(request) => request.endpoint.peer,
            Kept::Head(_) => self.peer,
        };
        let listener = self.listener.into();
        Record {
            request,
            number,
            peer,
            listener,
            pool: None,
            status,
            body_bytes,
            times,
            end,
            refused,
            trace: None,
            route: None,
        }
    }

    fn emit(&mut self, context: &mut Context<'_>, sender: &mut Sender, content: Content) {
        let out = &mut context.scratch.out;
        if sender.send_data(content.len(), out).allowed == 0 {
            return;
        }
        match content.bytes() {
            Some(bytes) if content.len() <= MAX_COPIED => out.extend_from_slice(bytes),
            _ => {
                let writer = self.writer.get_or_insert_with(connection::spare_writer);
                writer.push(std::mem::take(out).into(), 0);
                writer.push(content, 0);
            }
        }
    }

    fn hand_over(
        &mut self,
        context: &mut Context<'_>,
        sender: Sender,
        mut stream: Box<Stream>,
        handler: Arc<dyn Handler>,
        path: &mut Vec<u8>,
    ) -> Received {
        let pool = self.pool_for(context, &stream, &*handler, path);
        if let Some(told) = context.group.site.polling.as_ref().filter(|_| is_polling(&stream.request.head)) {
            told.call_once(|| warn_of_polling(context, &stream.request.head));
        }
        self.shape(context, Some(pool), &stream.request.head, stream.queue.as_deref_mut());
        let (spare, buffer) = spare_request();
        let mut request = std::mem::replace(&mut stream.request, spare);
        let client = self.client_of(&stream);
        request.endpoint = self.endpoint(context, client);
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
        let interrupts = limited.is_some() && context.group.scheduler.interrupts(pool);
        let key = context.key(stream.number);
        let number = u16::try_from(pool).unwrap_or(u16::MAX);
        let origin =
            Origin { peer: client.peer, listener: self.listener.into(), pool: number, times: stream.times };
        let encoder = if self.protocol.is_framed() {
            Encoder::Values(Box::new(ValueSender::new(request.head.method == Method::Head)))
        } else {
            self.phase = Phase::Running;
            Encoder::H1(sender)
        };
        let mut responder = Responder::new(context.group, key, flags, encoder, origin, buffer);
        responder.set_direct(self.is_direct());
        responder.set_interrupts(interrupts);
        responder.set_passed(stream.passed.take());
        if let Some(offer) = stream.offer.take() {
            responder.set_websocket(offer);
        }
        if let Some((reader, length)) = Self::live_reader(context, &mut stream) {
            request.body = maitred_runtime::Body::live(Box::new(reader), length);
            responder.set_live();
        }
        self.put(stream);
        let exchange = Exchange::new(request, Box::new(responder));
        let shown = if self.protocol.is_framed() { key.stream } else { 0 };
        let home = Place { group: context.group.number, token: context.token.to_u64(), stream: shown };
        context.jobs.push(Job { handler, exchange, home, pool, limited });
        Received::HandedOver
    }

    /// Whether it depends on the reader of its path which pool an application's request is for.
    pub(super) fn ambiguous_pool(&self, context: &Context<'_>, stream: &Stream) -> Option<Ambiguity> {
        let head = &stream.request.head;
        let found = context.group.pool_of(|map| map.ambiguity(head, self.client_of(stream).peer.ip()));
        found.filter(|_| leads_to_application(context, stream))
    }

    /// Which threads run a request; `path` is room for its decoded path.
    fn pool_for(
        &self,
        context: &Context<'_>,
        stream: &Stream,
        handler: &dyn Handler,
        path: &mut Vec<u8>,
    ) -> usize {
        let group = context.group;
        let head = &stream.request.head;
        let pool = group.pool_of(|map| {
            target::normalise_decoded(head.path(), path);
            map.find(head, path, self.client_of(stream).peer.ip())
        });
        group.pool_for(handler, pool)
    }

    /// Refuses a request that is not understood or not welcome: the answer is the last one.
    pub(super) fn refuse(
        &mut self,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        status: Status,
        reason: &'static str,
    ) -> Received {
        let log = &context.group.site.log;
        log.info(format_args!(
            "{}: {} {}: {reason}{}",
            self.client_of(&stream).peer,
            status.code(),
            status.reason(),
            option_of(reason)
        ));
        self.answer_refused(context, stream, status, reason)
    }

    /// The same for one about which a rule has its line in the log.
    pub(super) fn answer_refused(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        status: Status,
        reason: &'static str,
    ) -> Received {
        // Of a head that could not be read nothing else is known.
        stream.request.head.tls = self.session();
        context.group.site.counters.refused.add(1);
        let text = format!("{} {}: {reason}\n", status.code(), status.reason());
        let page = context.group.site.hosts.of(stream.request.head.host).pages().or_text(status, text);
        let length = page.body.len() as u64;
        let secure = self.client_of(&stream).secure;
        let (passed, head) = (stream.passed.as_deref(), &stream.request.head);
        let asking = Asking { passed, head, number: stream.request.number, secure };
        if self.protocol.is_framed() {
            let heads = error_head(context, &asking, status, &page);
            return self.answer_stream(context, stream, heads, Body::One(Content::Shared(page.body)), true);
        }
        put_error(context, &asking, status, &page);
        let (mut times, number) = (stream.times, stream.request.number);
        // Refused before its last byte, it took its peer's time until the last one that was read.
        times.complete = times.complete.max(self.received);
        self.record(context, (Kept::Stream(stream), number), status, length, times, true);
        self.last = true;
        self.unread = true;
        self.phase = Phase::Sending;
        Received::Ended(Turn::Wait)
    }
}

/// The option that says how large a head may be, for the log of its operator.
fn option_of(reason: &str) -> &'static str {
    match reason {
        "field too large" => " (--max-field)",
        "request head too large" => " (--max-head)",
        _ => "",
    }
}

/// Whether a handler takes the body of this request.
pub(super) fn leads_to_application(context: &Context<'_>, stream: &Stream) -> bool {
    application_of(context, stream).is_some()
}

/// The handler that this request leads to, if it is not answered by the engine.
pub(super) fn application_of(context: &Context<'_>, stream: &Stream) -> Option<Arc<dyn Handler>> {
    let routes = context.group.site.hosts.of(stream.request.head.host).routes();
    let by_engine = is_asterisk(stream.facts) || is_of_engine(&context.group.site, &stream.request.head);
    let mut path = Vec::new();
    match routes.find_sent(stream.request.head.path(), &mut path) {
        Route::Application(application) if !by_engine => Some(Arc::clone(&application.handler)),
        _ => None,
    }
}

/// Whether the engine answers this about itself.
pub(super) fn is_of_engine(site: &Site, head: &RequestHead) -> bool {
    [&site.health_path, &site.metrics_path].into_iter().any(|path| asks_for(path.as_deref(), head))
}

/// Whether this is the question that the engine answers at `path`. Of other methods the application may know.
pub(crate) fn asks_for(path: Option<&str>, head: &RequestHead) -> bool {
    path.is_some_and(|path| path.as_bytes() == head.path())
        && matches!(head.method, Method::Get | Method::Head)
}

/// Whether a request is one of a session of Engine.IO, which Socket.IO begins with, by long polling: the next one has to reach the same process.
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
