//! The start of HTTP/2 on a connection (preface, ALPN, `Upgrade: h2c`).

use maitred_exchange::{Queue, Site, Stream};
use maitred_h1::HeadFacts;
use maitred_h2::{Settings, Upgrade};
use maitred_http::RequestHead;

use super::Framed;
use crate::connection::Context;
use crate::connection::in_turn;
use crate::connection::wire::Wire;
use maitred_exchange::pipeline::head_received;

pub(super) fn settings(site: &Site) -> Settings {
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

// ---- Going over from HTTP/1.1 ----
//
// `Upgrade: h2c` (RFC 7540 §3.2), obsolete since RFC 9113, and off unless it is asked for.

/// What a client of HTTP/1.1 gets that goes over.
const SWITCHING: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

/// Whether this request of HTTP/1.1 asks to go over, and may: it is the first one, and complete.
pub(in crate::connection) fn goes_over(
    wire: &Wire,
    context: &Context<'_>,
    stream: &Stream,
    facts: HeadFacts,
) -> bool {
    let may = facts.upgrade && context.group.site.http2.is_some_and(|http2| http2.upgrade);
    let is_first = wire.served == 0 && facts.complete && wire.session().is_none();
    may && is_first && asked(&stream.request.head).is_some()
}

/// Goes over with a request of which the head has come: it is the first stream, and its answer comes in frames.
pub(in crate::connection) fn go_over(
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
) -> Box<Framed> {
    let site = &context.group.site;
    let Some(upgrade) = asked(&stream.request.head) else { return Framed::new(site) };
    let mut framed = Framed::of(maitred_h2::Connection::upgraded(settings(site), &upgrade), site);
    framed.control.splice(..0, SWITCHING.iter().copied());
    framed.is_asked = true;
    let mut queue = Queue::take(framed.http2.initial_window());
    queue.received = true;
    for name in ["Connection", "Upgrade", SETTINGS] {
        stream.request.head.fields.remove(name);
    }
    (stream.number, stream.queue) = (1, Some(queue));
    let facts = stream.facts.unwrap_or_default();
    let received = head_received(&mut in_turn(&mut *framed, wire, context), stream, facts);
    framed.keep_on(received);
    framed
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
