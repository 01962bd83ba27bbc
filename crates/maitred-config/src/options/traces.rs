//! Traces and figures by OpenTelemetry. The receiver and the sampling come from the usual variables (OTEL_...).

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{OTLP, OTLP_SIGNALS, SECONDS_OR_OFF, SWITCH, TRACE_SPANS, TRACE_TRUST};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "otlp",
        placeholder: "off|on|URL",
        kind: Kind::Server(&server(OTLP, |config| &mut config.otlp.to)),
        default: &["off"],
        summary: "Send spans and figures to an OpenTelemetry collector by OTLP over HTTP: nowhere (off), to URL, or (on) where \
                  OTEL_EXPORTER_OTLP_ENDPOINT says, else to http://localhost:4318. The other variables of OpenTelemetry count, too: \
                  headers, compression, certificate, sampler, resource, intervals. OTEL_EXPORTER_OTLP_HEADERS does not go to URL where \
                  OTEL_EXPORTER_OTLP_ENDPOINT says another one. HTTPS_PROXY is not used.",
        cost: "half a microsecond for each request, and two more for each whose span is kept; 4 MiB of memory at most while the collector \
               does not answer",
        worst: "a collector that does not answer loses spans, never requests; `maitred ctl` and the log say so",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "otlp-signals",
        placeholder: "traces,metrics,logs",
        kind: Kind::Server(&server(OTLP_SIGNALS, |config| &mut config.otlp.signals)),
        default: &["traces,metrics"],
        summary: "The kinds of items for the collector. logs: the requests as in the access log, with the ids of their traces.",
        cost: "logs: as much as a span for each request, and all requests are kept",
        worst: "logs of all requests fill the queue when spans alone would not",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "trace-slow",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.otlp.slow)),
        default: &["1"],
        summary: "Keep the span of a request that took the server as long, or that failed, whatever the sampling says; 0: only of those that failed.",
        cost: "the calls of each request to other servers are noted until it has ended",
        worst: "a server that is slow for all sends the spans of all",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "trace-trust",
        kind: Kind::Server(&server(TRACE_TRUST, |config| &mut config.otlp.trust)),
        default: &["proxies"],
        summary: "Whose traceparent is the parent of our span: that of the trusted proxies (--trusted-proxies), of all, or of none. \
                  Another one is linked, and a trace of its own begins.",
        cost: "nothing",
        worst: "all: clients on the Internet decide which requests are sampled, and join traces of others",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "trace-spans",
        kind: Kind::Server(&server(TRACE_SPANS, |config| &mut config.otlp.phases)),
        default: &["events"],
        summary: "The parts of a request (accept, queue, gate, filter, run, receive, write): as events of its span, or as spans below it.",
        cost: "spans: five times the bytes of events",
        worst: "spans: the queue is full five times as soon",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "trace-query",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.otlp.query)),
        default: &["false"],
        summary: "Send the query of each URL (url.query), without the signatures of signed URLs. Addresses obey access-log-mask in any case.",
        cost: "bytes",
        worst: "tokens and passwords in queries stand in the traces",
        ..Definition::of(Reload::Restart)
    },
];
