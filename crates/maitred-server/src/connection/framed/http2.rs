//! HTTP/2 as a codec: maitred-h2 joined to the connection.

use maitred_h1::{HeadFacts, TargetForm};
use maitred_h2::{Connection, ErrorCode, Settings};
use maitred_http::{FieldSet, RequestHead, ResponseHead};

use super::codec::{Codec, Counted, Event, Fault, Priority, Why};
use crate::site::Site;

/// See the module text.
struct Http2 {
    connection: Connection,
    max_streams: usize,
}

/// The codec of a new connection.
pub(in crate::connection) fn codec(site: &Site) -> Box<dyn Codec> {
    let max_streams = site.http2.unwrap_or_default().streams;
    let limits = &site.limits;
    let settings = Settings {
        max_streams,
        max_head: limits.head,
        max_fields: limits.fields,
        max_target: limits.target,
        ..Settings::default()
    };
    Box::new(Http2 { connection: Connection::new(settings), max_streams: max_streams as usize })
}
