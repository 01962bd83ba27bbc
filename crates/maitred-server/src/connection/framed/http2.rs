//! HTTP/2 as a codec: maitred-h2 joined to the connection.

use maitred_h1::{HeadFacts, TargetForm};
use maitred_h2::{Connection, ConnectionError, ErrorCode, Settings};
use maitred_http::{FieldSet, RequestHead, ResponseHead};

use super::codec::{Codec, Event, Fault, Priority, Why};
use crate::site::Site;

/// What the peer takes of all streams together before it gives more (RFC 9113 §6.9.2); no setting changes it.
const CONNECTION_WINDOW: u32 = 65_535;

/// See the module text.
struct Http2 {
    connection: Connection,
    max_streams: usize,
    /// Why it ends.
    broken: Option<ConnectionError>,
    /// That has been counted.
    told: bool,
}

/// The codec of a new connection.
pub(in crate::connection) fn codec(site: &Site) -> Box<dyn Codec> {
    site.http2_counters.note_connection();
    let max_streams = site.http2.unwrap_or_default().streams;
    let limits = &site.limits;
    let settings = Settings {
        max_streams,
        max_head: limits.max_head,
        max_fields: limits.max_fields,
        max_target: limits.max_target,
        ..Settings::default()
    };
    Box::new(Http2 {
        connection: Connection::new(settings),
        max_streams: max_streams as usize,
        broken: None,
        told: false,
    })
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
            Ok((used, event)) => Ok((used, event_of(event))),
            Err(error) => Err(self.breaks(error)),
        }
    }

    fn is_between_heads(&self) -> bool {
        !self.connection.is_in_head()
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

    fn overflow(&mut self) -> Fault {
        let reason = "a window of more than 2^31 - 1 bytes";
        self.breaks(ConnectionError { code: ErrorCode::FlowControlError, reason })
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
        Fault(error.reason)
    }
}

fn event_of(event: maitred_h2::Event<'_>) -> Event<'_> {
    use maitred_h2::Event as Given;
    match event {
        Given::NeedMore => Event::NeedMore,
        Given::Head { stream, facts } => {
            let target_form = if facts.asterisk { TargetForm::Asterisk } else { TargetForm::Origin };
            let own = priority(facts.priority);
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
                priority: (own != Priority::default()).then_some(own),
                objection: facts.objection,
            }
        }
        Given::Data { stream, bytes } => Event::Data { stream, bytes },
        Given::End { stream } => Event::End { stream },
        Given::Reset { stream } => Event::Reset { stream },
        Given::Credit { stream, bytes } => Event::Credit { stream, bytes },
        Given::Window { change } => Event::Window { change },
        Given::Priority { stream, priority: of } => Event::Priority { stream, priority: priority(of) },
        Given::Leaving => Event::Leaving,
    }
}

fn priority(of: maitred_h2::Priority) -> Priority {
    Priority { urgency: of.urgency, incremental: of.incremental }
}
