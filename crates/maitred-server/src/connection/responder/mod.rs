//! Responders: the way of a handler's response to its connection, from any thread.

mod encoder;
mod measured;
mod reshaped;
mod trailers;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use maitred_dispatch::Trace;
use maitred_exchange::{Endless, Flags, Kept, Record, Which};
use maitred_files::Body;
use maitred_filters::Passed;
use maitred_h1::{Finish, HeadError, HeadReport, TRAILER};
use maitred_http::{FieldSet, Peer, ResponseHead, Status};
use maitred_io::clock;
use maitred_log::End;
use maitred_runtime::{
    Closed, Content, FileRange, Flow, Last, MAX_LABEL, MessageKind, Messages, Observe, Request, Respond,
    SendError, Tail,
};
use maitred_stats::Times;

use super::carrier::{Carrier, Ended, Ending, ResponsePart, with_exchange};
use super::drain::begin_endless;
use super::sending::has_peer_ended;
use super::spilling::{note_sender, spill};
use super::{Connection, Group, Key, backpressure};
pub(crate) use encoder::{Encoder, ValueSender};
use maitred_exchange::memory::{recycle_buffer, with_date};
use maitred_exchange::site::Computing;
use maitred_exchange::site::{Figures, shape_of};
use maitred_exchange::spill::MIN_COUNTED;
use maitred_exchange::stages::{Asked, Draft, Handling, Maker, On};
use measured::Measured;
use reshaped::{Held, Reshaping};

/// The responder of one exchange.
pub(crate) struct Responder {
    group: Arc<Group>,
    key: Key,
    flags: Arc<Flags>,
    encoder: Encoder,
    /// Head and framing that have not been handed to the connection.
    buffer: Vec<u8>,
    origin: Origin,
    /// Trace of the moment in which a thread got the request, where traced.
    trace: Option<Box<Trace>>,
    status: Status,
    body_bytes: u64,
    surplus_reported: bool,
    /// The filters that the request has met.
    pub(super) passed: Option<Box<Passed>>,
    /// The request's body is still arriving.
    pub(super) live: bool,
    /// The handler's thread is interrupted when the time of the request is over.
    pub(super) interrupts: bool,
    /// Reshaping of the body before it is sent, if any.
    reshaping: Option<Box<Reshaping>>,
    /// The thread of the handler waits until the kernel has taken everything.
    pub(super) direct: bool,
    /// The application's label for the response.
    label: Option<Arc<str>>,
    /// The file that takes the place of the body.
    submitted: Option<Body>,
    /// The application has announced fields behind the body.
    announced: bool,
    /// Fields behind the body, when the response ends with them.
    trailers: Option<Box<FieldSet>>,
    /// The WebSocket that the request asks for or has become.
    websocket: Option<websocket::Side>,
    /// Place among the requests that an event loop runs, where these are limited.
    on_loop: Option<OnLoop>,
    /// Begin of the run, where its processor time is measured.
    measured: Option<Measured>,
}

type OnLoop = crate::group::OnLoop<Connection>;

/// Time of one wait for a peer that takes nothing; the send timeout ends the sequence of waits.
const LOOK: Duration = Duration::from_secs(10);

/// Status in logs and figures of a request that was not run because its peer had left; never sent. The number is
/// nginx's.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Origin and destination of a request.
pub(crate) struct Origin {
    pub(crate) peer: Peer,
    pub(crate) listener: u32,
    /// The number of the pool.
    pub(crate) pool: u16,
    /// Times of the request so far.
    pub(crate) times: Times,
}

impl Responder {
    pub(crate) fn new(
        group: &Arc<Group>,
        key: Key,
        flags: Arc<Flags>,
        encoder: Encoder,
        origin: Origin,
        buffer: Vec<u8>,
    ) -> Self {
        Self {
            group: Arc::clone(group),
            key,
            flags,
            encoder,
            buffer,
            origin,
            trace: None,
            status: Status::INTERNAL_SERVER_ERROR,
            body_bytes: 0,
            surplus_reported: false,
            passed: None,
            live: false,
            interrupts: false,
            reshaping: None,
            direct: false,
            label: None,
            submitted: None,
            announced: false,
            trailers: None,
            websocket: None,
            on_loop: None,
            measured: None,
        }
    }

    /// Sends a part of the response on the connection.
    fn deliver(&mut self, content: Content, behind: &'static [u8]) -> Result<Flow, SendError> {
        let (encoder, before) = (&mut self.encoder, &mut self.buffer);
        let part = ResponsePart { encoder, before, content: Last::Given(content), behind, interim: false };
        let sent = with_exchange!(self.group, self.key, |carrier, wire| {
            let sent = carrier.send_part(wire, &self.group, self.key, part);
            note_sender(carrier, wire, self.key, self.label.as_ref());
            sent
        });
        sent.unwrap_or(Err(SendError::Closed))
    }

    fn with_connection<T>(&self, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.group.with_stream(self.key, act)
    }

    /// Ends the exchange on its connection, with the last part of the response and the bytes behind it, and writes
    /// its record down.
    ///
    /// # Errors
    /// The peer is gone.
    fn end(
        mut self,
        request: Box<Request>,
        reusable: bool,
        end: End,
        last: Last<'_>,
        behind: &'static [u8],
    ) -> Result<(), SendError> {
        if let Some(database) = &request.database {
            database.end();
        }
        if let Some(outgoing) = &request.outgoing {
            outgoing.end();
        }
        let figures = &self.group.site.figures;
        let route = figures.number_of(&request.head, &request.route, self.status);
        let Origin { peer, listener, pool, times } = self.origin;
        let now = clock::monotonic();
        let ran = now.saturating_sub(times.begun.max(times.gated));
        let run = self.measured.take().and_then(|measured| measured.end(ran, now));
        if let (Some(run), Some(route)) = (run, route) {
            // Waits for the client are no part of `run`.
            let measured = run.measured.saturating_sub(self.flags.awaited()).max(run.computed + run.starved);
            figures.record_computing(pool, route, Computing { measured, ..run });
        }
        let defers = self.group.scheduler.defers();
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = if self.group.site.times() { now } else { times.begun };
        let times = Times { done, awaited: self.flags.awaited(), ..times };
        let mut record = Some(Record {
            number: request.number,
            request: Kept::Request(request),
            peer,
            listener,
            pool: Some(pool),
            status: self.status,
            body_bytes: self.body_bytes,
            times,
            end,
            refused: false,
            trace: self.trace.take(),
            route,
        });
        let part = ResponsePart {
            encoder: &mut self.encoder,
            before: &mut buffer,
            content: last,
            behind,
            interim: false,
        };
        let leaves_later = defers && !part.is_empty();
        let (trailers, label) = (self.trailers.take(), self.label.as_ref());
        let ending = Ending { trailers, reusable, defers, record: &mut record, label };
        let ended = with_exchange!(self.group, self.key, |carrier, wire| {
            carrier.send_last(wire, &self.group, self.key, part, ending)
        });
        if leaves_later && ended.is_some() {
            self.group.scheduler.send_later(self.key.token.to_u64());
        }
        let Ended { sent, lost, at: ended } = ended.unwrap_or_else(|| {
            let forget = |connection: &mut Connection| connection.forget(&self.group, self.key);
            let end = self.group.with_connection(self.key.token, forget).flatten();
            let other = if self.flags.is_asked_to_end() { End::Drain } else { End::PeerGone };
            Ended { sent: Err(SendError::Closed), lost: end.or(Some(other)), at: clock::monotonic() }
        });
        if let Some(mut record) = record {
            if self.is_dead() {
                // The engine has answered in the handler's place and has written its own record.
                self.group.site.note_late(record);
            } else {
                record.end = lost.unwrap_or(record.end);
                self.group.site.note(record, ended);
            }
        }
        recycle_buffer(buffer);
        if let Some(route) = route.filter(|_| !self.is_dead()) {
            let site = Arc::clone(&self.group.site);
            Tail::leave(site, Figures::tail_key(pool, route), ended);
        }
        sent
    }

    /// Encodes the head that the stages have made, unless its form depends on the body.
    fn encode_head(&mut self, request: &Request, draft: Draft<'_>) -> Result<(), SendError> {
        let before = draft.wish.as_ref().map(|_| self.encoder.clone());
        let sent =
            with_date(|date| self.encoder.send_head(&draft.head, draft.length, date, &mut self.buffer));
        match sent {
            Ok(report) => self.note_head(request, &draft, report),
            Err(HeadError::AlreadySent) => return Err(SendError::Closed),
            Err(error) => {
                let (log, on) = (&self.group.site.log, On(self.origin.peer, request));
                log.error(format_args!("{on}: the application's response cannot be sent: {error}"));
                return Err(SendError::InvalidField(error.to_string()));
            }
        }
        if let (Some(encoder), Some(wish)) = (before, draft.wish) {
            // The head can be sent, but its form depends on the body.
            self.encoder = encoder;
            self.buffer.clear();
            let held = Held { head: draft.head.into_owned(), length: draft.length, wish };
            self.reshaping = Some(Box::new(Reshaping::Held(held)));
        }
        Ok(())
    }

    /// Notes the facts of a head that can be sent: on the connection, and in the error log.
    fn note_head(&mut self, request: &Request, draft: &Draft<'_>, report: HeadReport) {
        self.status = draft.head.status;
        if report.close && self.encoder.is_framed() {
            self.with_connection(Connection::leave);
        }
        if draft.length.is_none()
            && let Some(endless) = Endless::of(&draft.head)
        {
            with_exchange!(self.group, self.key, |carrier, _wire| {
                begin_endless(carrier, &self.group, self.key, endless);
            });
        }
        let (log, on) = (&self.group.site.log, On(self.origin.peer, request));
        for name in report.removed.into_iter().filter(|name| !(self.announced && *name == TRAILER)) {
            let text =
                format!("the application set {name}, which belongs to the connection; it was not sent");
            log.warn_once(shape_of(&request.head), &on, &text);
        }
        draft.warnings.iter().for_each(|text| log.warn_once(shape_of(&request.head), &on, text));
        if let Some(limits) = draft.limits {
            with_exchange!(self.group, self.key, |carrier, wire| {
                carrier.limit_response(wire, self.key, limits);
            });
        }
        if let (Some(declared), Some(length)) = (report.wrong_length, report.length) {
            log.warn(format_args!(
                "{on}: the application declared a Content-Length of {declared}, its body has {length} bytes; \
                 {length} was sent"
            ));
        }
    }

    /// Sends the parts of a file and ends the response. Content from the application was dropped.
    fn finish_submitted(mut self: Box<Self>, request: Box<Request>, file: Body) {
        let mut parts = match file {
            Body::Empty => Vec::new(),
            Body::One(content) => vec![content],
            Body::Many(parts) => parts,
        };
        let last = parts.pop().unwrap_or(Content::Static(b""));
        // The end of the exchange notes a peer that is gone.
        let sent = parts.into_iter().try_for_each(|part| self.send_data(&request, part).map(drop));
        let last = if sent.is_ok() { last } else { Content::Static(b"") };
        let _ = self.finish_with(request, Last::Given(last));
    }

    fn report_surplus(&mut self, request: &Request, surplus: u64) -> SendError {
        if !std::mem::replace(&mut self.surplus_reported, true) {
            self.group.site.log.error(format_args!(
                "{}: the application sent {surplus} body bytes more than its response may have; they were dropped",
                On(self.origin.peer, request)
            ));
        }
        SendError::TooLong { declared: self.body_bytes }
    }

    /// The end of a response with this `finish`.
    fn end_of(&self, request: &Request, finish: Finish) -> End {
        if finish.short_by == 0 {
            return End::Complete;
        }
        self.group.site.log.error(format_args!(
            "{}: the application sent {} body bytes fewer than it declared; the connection is closed so \
             that the peer can see it",
            On(self.origin.peer, request),
            finish.short_by
        ));
        End::Cut
    }
}

impl Respond for Responder {
    fn send_interim(&mut self, request: &Request, head: &ResponseHead) -> Result<(), SendError> {
        match self.encoder.send_interim(head, &mut self.buffer) {
            Ok(()) => {}
            Err(HeadError::AlreadySent) => return Err(SendError::Closed),
            Err(error) => {
                let on = On(self.origin.peer, request);
                self.group.site.log.error(format_args!("{on}: an interim response cannot be sent: {error}"));
                return Err(SendError::InvalidField(error.to_string()));
            }
        }
        let (encoder, before) = (&mut self.encoder, &mut self.buffer);
        let part = ResponsePart { encoder, before, content: Last::NOTHING, behind: b"", interim: true };
        let sent = with_exchange!(self.group, self.key, |carrier, wire| {
            carrier.send_part(wire, &self.group, self.key, part).map(drop)
        });
        self.buffer.clear();
        sent.unwrap_or(Err(SendError::Closed))
    }

    fn send_head(
        &mut self,
        request: &Request,
        head: &ResponseHead,
        length: Option<u64>,
    ) -> Result<(), SendError> {
        self.refuse_websocket();
        let begin = || with_exchange!(self.group, self.key, |carrier, _wire| carrier.begin_answer(self.key));
        let ends = self.live && begin().unwrap_or(true);
        if ends || self.group.is_draining() {
            self.encoder.close_after();
        }
        let handling = Handling {
            request,
            peer: self.origin.peer,
            pool: self.origin.pool,
            times: &self.origin.times,
            flags: &self.flags,
            announced: self.announced,
        };
        let asked = Asked {
            head: &request.head,
            number: request.number,
            passed: self.passed.as_deref(),
            maker: Maker::Handler(handling),
        };
        let mut draft = Draft::pass(&self.group.site, &asked, head, length)?;
        self.submitted = draft.body.take();
        self.encode_head(request, draft)
    }

    fn accept_websocket(&mut self, request: &Request, head: &ResponseHead) -> Result<(), SendError> {
        self.accept_offer(request, head)
    }

    fn take_messages(&mut self, into: &mut Messages) -> Option<Closed> {
        self.messages(into)
    }

    fn send_message(&mut self, _: &Request, kind: MessageKind, message: Last<'_>) -> Result<Flow, SendError> {
        self.send_frame(kind, message)
    }

    fn close_websocket(self: Box<Self>, request: Box<Request>, code: u16, reason: &str) {
        self.close_socket(request, code, reason);
    }

    fn announce_trailers(&mut self, request: &Request) {
        self.announced = true;
        if request.takes_trailers() {
            self.encoder.announce_trailers();
        }
    }

    fn error_page(&self, request: &Request, head: &ResponseHead) -> Option<(ResponseHead, Content)> {
        self.group.site.hosts.of(request.head.host).pages().replace(head)
    }

    fn warn_once(&self, request: &Request, text: &str) {
        self.group.site.log.warn_once(shape_of(&request.head), On(self.origin.peer, request), text);
    }

    fn begin(&mut self, now: u64) {
        self.origin.times.begun = now;
        if self.websocket.is_none() {
            self.on_loop = self.group.enter_loop(self.origin.pool.into());
        }
        if self.group.site.log.traces() {
            let Origin { pool, times, .. } = &self.origin;
            self.trace = Some(Box::new(self.group.scheduler.trace((*pool).into(), times.complete)));
        }
    }

    fn enter_interpreter(&mut self, waited: bool) {
        if waited {
            self.origin.times.gated = self.group.site.later(self.origin.times.begun);
        }
        self.measured = self.group.site.figures.is_on().then(Measured::begin);
    }

    fn send_data(&mut self, request: &Request, content: Content) -> Result<Flow, SendError> {
        if self.submitted.is_some() || self.encoder.drops_body() {
            return Err(SendError::Unwanted);
        }
        if self.reshaping.is_some() {
            return self.send_reshaped(request, content);
        }
        let plan = self.encoder.send_data(content.len(), &mut self.buffer);
        self.body_bytes += plan.allowed;
        let flow = match plan.allowed {
            0 => Flow::Ready,
            allowed => self.deliver(cut(content, allowed), plan.suffix)?,
        };
        if plan.surplus > 0 { Err(self.report_surplus(request, plan.surplus)) } else { Ok(flow) }
    }

    fn finish(mut self: Box<Self>, request: Box<Request>) {
        if let Some(file) = self.submitted.take() {
            return self.finish_submitted(request, file);
        }
        if let Some(reshaping) = self.reshaping.take() {
            // A peer that is gone has been noted.
            let _ = self.finish_reshaped(*reshaping, request, Last::NOTHING);
            return;
        }
        let finish = self.encoder.finish(None, &mut self.buffer);
        let end = self.end_of(&request, finish);
        // A peer that is gone has been noted.
        let _ = (*self).end(request, finish.reusable, end, Last::NOTHING, b"");
    }

    fn finish_with(mut self: Box<Self>, request: Box<Request>, last: Last<'_>) -> Result<(), SendError> {
        if let Some(file) = self.submitted.take() {
            self.finish_submitted(request, file);
            return Ok(());
        }
        if let Some(reshaping) = self.reshaping.take() {
            return self.finish_reshaped(*reshaping, request, last);
        }
        if let Some(trailers) = self.trailers.take_if(|_| matches!(self.encoder, Encoder::H1(_))) {
            return self.finish_chunked(request, last, &trailers);
        }
        let length = last.len();
        let (plan, finish) = self.encoder.send_last(length, &mut self.buffer);
        self.body_bytes += plan.allowed;
        let last = match plan.allowed {
            0 => Last::NOTHING,
            allowed if allowed < length => Last::Given(cut(last.keep(), allowed)),
            _ => last,
        };
        let surplus = (plan.surplus > 0).then(|| self.report_surplus(&request, plan.surplus));
        let end = self.end_of(&request, finish);
        let sent = (*self).end(request, finish.reusable, end, last, plan.suffix);
        surplus.map_or(sent, Err)
    }

    fn finish_with_trailers(
        mut self: Box<Self>,
        request: Box<Request>,
        trailers: FieldSet,
    ) -> Result<(), SendError> {
        match self.place_trailers(&request, trailers) {
            Ok(trailers) => self.trailers = trailers,
            Err(error) => {
                let text = format!("a field behind its body cannot be sent: {error}");
                self.abort(request, &text);
                return Err(SendError::InvalidField(error.to_string()));
            }
        }
        self.finish_with(request, Last::NOTHING)
    }

    fn abort(mut self: Box<Self>, request: Box<Request>, reason: &str) {
        self.begin_parts();
        let on = On(self.origin.peer, &request);
        let log = &self.group.site.log;
        let mut end = End::Cut;
        let whole = self.encoder.is_whole() && !self.announced;
        if self.is_dead() {
            log.debug(format_args!("{on}: ended after its time was over: {reason}"));
        } else if self.flags.is_asked_to_end() {
            log.info(format_args!("{on}: ended, because the server stops"));
            end = End::Drain;
        } else if self.has_peer_ended() {
            log.info(format_args!("{on}: the peer left before the response was complete"));
            end = End::PeerGone;
        } else if whole {
            log.error(format_args!("{on}: after a complete response: {reason}"));
        } else {
            log.error(format_args!("{on}: the response was cut: {reason}"));
        }
        if whole {
            return self.finish(request);
        }
        // Neither the last chunk nor the missing bytes: the end of the connection shows the cut.
        let _ = (*self).end(request, false, end, Last::NOTHING, b"");
    }

    fn has_left_unrun(&self) -> bool {
        // A peer that has only ended its sending side still reads the response (RFC 9112 §9.6).
        self.flags.is_gone()
    }

    fn leave_unrun(mut self: Box<Self>, request: Box<Request>) {
        let log = &self.group.site.log;
        log.debug(format_args!(
            "{}: the peer reset the connection while the request waited for a thread; it was not run",
            On(self.origin.peer, &request)
        ));
        self.status = Status::from_code(CLIENT_CLOSED_REQUEST).unwrap_or(self.status);
        self.trace = None;
        // The peer is gone.
        let _ = (*self).end(request, false, End::PeerGone, Last::NOTHING, b"");
    }

    fn wait(&mut self, limit: Duration) -> Result<Flow, SendError> {
        self.begin_parts();
        if !self.buffer.is_empty() || self.encoder.has_heads() {
            self.deliver(Content::Static(b""), b"")?;
        }
        backpressure::wait(&self.group, self.key, limit)
    }

    fn is_tight(&self, length: u64) -> bool {
        let spilling = &self.group.site.spilling;
        let is_over = length > MIN_COUNTED && spilling.is_over();
        if is_over {
            self.group.scheduler.note_written();
        }
        if self.group.is_on_loop(self.origin.pool.into()) {
            // A wait of an event loop holds up all its requests. So it waits only where it makes bodies faster than
            // the spooler writes.
            return !self.direct && is_over && spilling.is_far_over();
        }
        self.direct || is_over
    }

    fn set_label(&mut self, label: &str) {
        let mut end = label.len().min(MAX_LABEL);
        while !label.is_char_boundary(end) {
            end -= 1;
        }
        let label = label[..end].replace(char::is_control, " ");
        self.label = Some(label.into());
        with_exchange!(self.group, self.key, |carrier, wire| {
            note_sender(carrier, wire, self.key, self.label.as_ref());
        });
    }

    fn relieve(&mut self) -> Result<(), SendError> {
        if self.direct {
            while self.wait(LOOK)? == Flow::Full {}
        } else {
            let write = || spill(&self.group, self.key.token, Which::Referenced);
            self.group.scheduler.write_out(&self.group, write);
        }
        Ok(())
    }

    fn observe(&mut self, observer: Arc<dyn Observe>) {
        with_exchange!(self.group, self.key, |carrier, _wire| {
            if let Some(stream) = carrier.stream_of(self.key) {
                stream.observer = Some(observer);
            }
        });
    }

    fn has_peer_ended(&self) -> bool {
        let ended = || with_exchange!(self.group, self.key, |carrier, wire| has_peer_ended(carrier, wire));
        self.flags.is_asked_to_end() || ended().unwrap_or(true)
    }

    fn heeds_stop(&self) -> bool {
        let stops = self.group.is_draining();
        if stops {
            self.flags.ask_to_end();
        }
        stops
    }

    fn is_full(&self) -> bool {
        with_exchange!(self.group, self.key, |carrier, wire| carrier.is_full(wire, &self.group, self.key))
            .unwrap_or(false)
    }

    fn is_dead(&self) -> bool {
        self.flags.is_out()
    }

    fn interrupts(&self) -> bool {
        self.interrupts
    }

    fn is_closed(&self) -> bool {
        self.flags.is_gone()
    }
}

/// The first `length` bytes of `content`.
fn cut(content: Content, length: u64) -> Content {
    if content.len() == length {
        return content;
    }
    // Content in memory is not longer than usize.
    let bytes = length as usize;
    match content {
        Content::Static(all) => Content::Static(&all[..bytes]),
        Content::Bytes(mut all) => {
            all.truncate(bytes);
            Content::Bytes(all)
        }
        Content::Shared(all) => Content::Bytes(all[..bytes].to_vec()),
        Content::Owned(owner) => Content::Bytes(owner.bytes()[..bytes].to_vec()),
        Content::File(range) => Content::File(FileRange { length, ..range }),
    }
}
