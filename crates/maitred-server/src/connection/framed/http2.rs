//! HTTP/2 as a codec: maitred-h2 joined to the connection.

use maitred_h1::{HeadFacts, TargetForm};
use maitred_h2::{Connection, ConnectionError, ErrorCode, Settings, Upgrade};
use maitred_http::{FieldSet, RequestHead, ResponseHead, Status};

use super::codec::{Codec, Event, Fault, Priority, Why};
use crate::connection::{self, Context, Stream};
use crate::site::{Open, Site};

/// What the peer takes of all streams together before it gives more (RFC 9113 §6.9.2); no setting changes it.
const CONNECTION_WINDOW: u32 = 65_535;

/// What is said of an extended CONNECT for anything but WebSocket.
const UNKNOWN_PROTOCOL: (Status, &str) =
    (Status::NOT_IMPLEMENTED, "this :protocol is not spoken here; websocket is");

/// See the module text.
struct Http2 {
    connection: Connection,
    max_streams: usize,
    /// Why it ends.
    broken: Option<ConnectionError>,
    /// That has been counted.
    told: bool,
    /// Counts it among those that are open.
    _open: Open,
}

/// The codec of a new connection.
pub(in crate::connection) fn codec(site: &Site) -> Box<dyn Codec> {
    joined(site, Connection::new(settings(site)))
}

fn joined(site: &Site, connection: Connection) -> Box<dyn Codec> {
    let open = site.http2_counters.note_connection();
    let max_streams = settings(site).max_streams as usize;
    Box::new(Http2 { connection, max_streams, broken: None, told: false, _open: open })
}

fn settings(site: &Site) -> Settings {
    let limits = &site.limits;
    Settings {
        max_streams: site.http2.unwrap_or_default().streams,
        max_head: limits.max_head,
        max_fields: limits.max_fields,
        max_field_line: limits.max_field_line,
        max_target: limits.max_target,
        connect: site.websockets.is_some(),
        ..Settings::default()
    }
}

impl Codec for Http2 {
    fn begin(&mut self, control: &mut Vec<u8>) {
        self.connection.begin(control);
    }

    fn poll<'a>(
        &mut self,
        data: &'a [u8],
        head: &mut RequestHead,
        now: u64,
        control: &mut Vec<u8>,
    ) -> Result<(usize, Event<'a>), Fault> {
        match self.connection.poll(data, now, head, control) {
            Ok((used, event)) => Ok((used, event_of(event, head))),
            Err(error) => Err(self.breaks(error)),
        }
    }

    fn is_between_heads(&self) -> bool {
        !self.connection.is_within_block()
    }

    fn put_head(&mut self, stream: u32, head: &ResponseHead, ends: bool, out: &mut Vec<u8>) {
        self.connection.put_head(stream, head, ends, out);
    }

    fn put_trailers(&mut self, stream: u32, fields: &FieldSet, out: &mut Vec<u8>) {
        self.connection.put_trailers(stream, fields, out);
    }

    fn ends_with_data(&self) -> bool {
        true
    }

    fn put_data(&mut self, stream: u32, length: usize, ends: bool, out: &mut Vec<u8>) {
        self.connection.put_data(stream, length, ends, out);
    }

    fn put_end(&mut self, stream: u32, out: &mut Vec<u8>) {
        self.connection.put_data(stream, 0, true, out);
    }

    fn put_reset(&mut self, stream: u32, why: Why, out: &mut Vec<u8>) {
        let code = match why {
            Why::Refused => ErrorCode::RefusedStream,
            Why::Answered => ErrorCode::NoError,
            Why::Cut => ErrorCode::InternalError,
            Why::Ended => ErrorCode::Cancel,
            Why::Overflow => ErrorCode::FlowControlError,
        };
        self.connection.put_reset(stream, code, out);
    }

    fn put_credit(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        self.connection.put_credit(stream, bytes, out);
    }

    fn widen(&mut self, stream: u32, bytes: u32, out: &mut Vec<u8>) {
        self.connection.widen(stream, bytes, out);
    }

    fn put_drain(&mut self, out: &mut Vec<u8>) {
        self.connection.put_drain(out);
    }

    fn put_last(&mut self, out: &mut Vec<u8>) {
        let peace = ConnectionError { code: ErrorCode::NoError, reason: "" };
        self.connection.put_goaway(&self.broken.unwrap_or(peace), out);
    }

    fn max_data(&self) -> usize {
        self.connection.max_data()
    }

    fn windows(&self) -> (u32, u32) {
        (self.connection.initial_window(), CONNECTION_WINDOW)
    }

    fn window_of(&mut self, stream: u32) -> u32 {
        self.connection.window_of(stream)
    }

    fn overflow(&mut self) -> Fault {
        let reason = "a window of more than 2^31 - 1 bytes";
        self.breaks(ConnectionError { code: ErrorCode::FlowControlError, reason })
    }

    fn calm(&mut self, reason: &'static str) -> Fault {
        self.breaks(ConnectionError { code: ErrorCode::EnhanceYourCalm, reason })
    }

    fn gathered(&self) -> usize {
        self.connection.gathered()
    }

    fn max_streams(&self) -> usize {
        self.max_streams
    }

    fn count(&mut self, site: &Site, waits: [u64; 2]) {
        let counters = &site.http2_counters;
        counters.note(&self.connection.counted());
        counters.note_waits(waits);
        if let Some(error) = self.broken.filter(|_| !std::mem::replace(&mut self.told, true)) {
            counters.note_error(error.code);
        }
    }
}

impl Http2 {
    fn breaks(&mut self, error: ConnectionError) -> Fault {
        self.broken = Some(error);
        Fault { reason: error.reason, is_flood: error.code == ErrorCode::EnhanceYourCalm }
    }
}

fn event_of<'a>(event: maitred_h2::Event<'a>, head: &RequestHead) -> Event<'a> {
    use maitred_h2::Event as Given;
    match event {
        Given::NeedMore => Event::NeedMore,
        Given::Head { stream, facts } => {
            let target_form = if facts.asterisk { TargetForm::Asterisk } else { TargetForm::Origin };
            // RFC 8441 §4.
            let protocol = facts.protocol.map(|span| head.fields.bytes(span));
            let unknown =
                (protocol.is_some_and(|protocol| protocol != b"websocket")).then_some(UNKNOWN_PROTOCOL);
            Event::Head {
                stream,
                facts: HeadFacts {
                    complete: facts.ends,
                    keep_alive: true,
                    expect_continue: facts.expect_continue,
                    upgrade: false,
                    target_form,
                },
                tunnel: false,
                websocket: protocol.is_some(),
                priority: facts.priority.map(priority),
                objection: facts.objection.or(unknown),
            }
        }
        Given::Data { stream, bytes } => Event::Data { stream, bytes },
        Given::End { stream } => Event::End { stream },
        Given::Reset { stream } => Event::Reset { stream },
        Given::Credit { stream, bytes } => Event::Credit { stream, bytes },
        Given::Narrow { stream, bytes } => Event::Narrow { stream, bytes },
        Given::Window { change } => Event::Window { change },
        Given::Priority { stream, priority: of } => Event::Priority { stream, priority: priority(of) },
        Given::Leaving => Event::Leaving,
    }
}

fn priority(of: maitred_h2::Priority) -> Priority {
    Priority { urgency: of.urgency, incremental: of.incremental }
}

// ---- Going over from HTTP/1.1 ----
//
// `Upgrade: h2c` (RFC 7540 §3.2), obsolete since RFC 9113, and off unless it is asked for.

/// What a client of HTTP/1.1 gets that goes over.
const SWITCHING: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

impl connection::Connection {
    /// Whether this request of HTTP/1.1 asks to go over, and may: it is the first one, and complete.
    pub(in crate::connection) fn goes_over(
        &self,
        context: &Context<'_>,
        stream: &Stream,
        facts: HeadFacts,
    ) -> bool {
        let may = facts.upgrade && context.group.site.http2.is_some_and(|http2| http2.upgrade);
        let is_first = self.served == 0 && facts.complete && self.session().is_none();
        may && is_first && asked(&stream.request.head).is_some()
    }

    /// Goes over: the request is the first stream, and its answer comes in frames.
    pub(in crate::connection) fn go_over(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
        facts: HeadFacts,
    ) {
        let Some(upgrade) = asked(&stream.request.head) else { return };
        let site = &context.group.site;
        let upgraded = joined(site, Connection::upgraded(settings(site), &upgrade));
        self.speak_framed_after(SWITCHING, upgraded);
        for name in ["Connection", "Upgrade", SETTINGS] {
            stream.request.head.fields.remove(name);
        }
        self.take_first(context, stream, facts);
    }
}

/// The field that has the settings of a client that goes over.
const SETTINGS: &str = "HTTP2-Settings";

/// What a request says that asks to go over; none if it does not do so rightly.
fn asked(head: &RequestHead) -> Option<Upgrade> {
    let names = |field: &str, name: &str| {
        let values = head.fields.all(field).flat_map(|value| value.split(|byte| *byte == b','));
        values.into_iter().any(|value| value.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    let mut settings = head.fields.all(SETTINGS);
    let (value, more) = (settings.next()?, settings.next());
    let is_asked = more.is_none() && names("Upgrade", "h2c") && names("Connection", SETTINGS);
    is_asked.then(|| maitred_h2::upgrade(value)).flatten()
}
