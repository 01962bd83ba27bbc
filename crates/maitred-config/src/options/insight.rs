//! Measurements of requests, and the places where they are shown.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{SPANS, SWITCH};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "spans",
        kind: Kind::Server(&server(SPANS, |config| &mut config.spans)),
        default: &["kernel"],
        summary: "How the parts of a request's time are measured. kernel: from its receipt by the kernel, so that waiting \
                  in a socket's buffer counts. read: from the moment in which the server read it. off: not at all.",
        cost: "a few looks at the clock for each request; kernel: one for each packet the machine receives as well, and a \
               tenth of a microsecond for each receipt that comes 0.4 ms after the one before or later",
        worst: "off: nobody knows why a request was slow",
        ..Definition::of(Reload::Insight)
    },
    Definition {
        name: "statistics",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.insight.statistics)),
        default: &["true"],
        summary: "Count requests and their times by listener, pool, route and class of status, and what the \
                  application says in Server-Timing.",
        cost: "8 MiB of memory at most, and about a tenth of a microsecond for each request",
        worst: "a server with more than 1,000 routes shows the others as one",
        ..Definition::of(Reload::Insight)
    },
    Definition {
        name: "server-timing",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.insight.server_timing)),
        default: &["false"],
        summary: "Tell clients in Server-Timing where the time of an application's response went, up to its head; \
                  browsers show it.",
        cost: "some 100 bytes and a copy of the head for each response",
        worst: "everybody sees how busy the server is",
        ..Definition::of(Reload::Insight)
    },
    Definition {
        name: "request-ids",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.insight.ids)),
        default: &["false"],
        summary: "Give a request without an id (X-Request-ID or traceparent) the one that the logs use, as \
                  X-Request-ID.",
        cost: "a field for each such request",
        worst: "an application that trusts the field as its proxy's believes that there is a proxy",
        ..Definition::of(Reload::Insight)
    },
    Definition {
        name: "response-ids",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.insight.response_ids)),
        default: &["false"],
        summary: "Tell clients in X-Request-ID which id the logs have for their request: the one it brought, or else one of \
                  the server's. Responses of the application have it, which may set the field itself, and errors of the server.",
        cost: "some 40 bytes and a copy of the head for each response of an application",
        worst: "an id of the server's shows how many requests it has had",
        ..Definition::of(Reload::Insight)
    },
];
