//! HTTP/2.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{Count, HTTP2, SWITCH};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "http2",
        kind: Kind::Server(&server(HTTP2, |config| &mut config.http2)),
        default: &["on"],
        summary: "Speak HTTP/2 with clients that want it: by TLS if they offer it (ALPN h2), without TLS if they \
                  begin with it (prior knowledge: curl --http2-prior-knowledge, gRPC, proxies). All others get \
                  HTTP/1.1. only: what does not begin as HTTP/2 is closed.",
        cost: "a connection that speaks it holds some kilobytes while requests run",
        worst: "one connection makes many requests at once: http2-streams, client-rate and client-connections limit \
                them. only: health checks and old clients are turned away",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "http2-streams",
        kind: Kind::Server(&server(Count(1, 10_000), |config| &mut config.http2_streams)),
        default: &["128"],
        summary: "Requests of one HTTP/2 connection at the same time (SETTINGS_MAX_CONCURRENT_STREAMS); more are \
                  refused, and clients ask again. A cancelled request counts until its handler is done.",
        cost: "the memory of so many requests for each connection",
        worst: "less than a page needs at once: browsers wait for a free stream",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "http2-upgrade",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.http2_upgrade)),
        default: &["false"],
        summary: "Let a client of HTTP/1.1 without TLS change to HTTP/2 (Upgrade: h2c, RFC 7540 section 3.2), with a \
                  request without body. Obsolete since RFC 9113: such clients can also begin with HTTP/2.",
        cost: "none",
        worst: "a proxy that passes Upgrade on lets its clients get past its rules (h2c smuggling)",
        ..Definition::of(Reload::Restart)
    },
];
