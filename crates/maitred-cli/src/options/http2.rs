//! HTTP/2.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "http2",
        placeholder: "",
        kind: Kind::Switch(|config| &mut config.http2),
        default: &["true"],
        reach: Reach::Everywhere,
        summary: "Speak HTTP/2 with clients that want it: by TLS if they offer it (ALPN h2), without TLS if they begin with it \
                  (prior knowledge: curl --http2-prior-knowledge, gRPC, proxies). All others get HTTP/1.1 as ever.",
        cost: "a connection that speaks it holds some kilobytes while requests run",
        worst: "one connection makes many requests at once: http2-streams, client-rate and client-connections limit them",
    },
    Definition {
        name: "http2-streams",
        placeholder: "N",
        kind: Kind::Count(1, 10_000, |config| &mut config.http2_streams),
        default: &["128"],
        reach: Reach::Everywhere,
        summary: "The most requests of one HTTP/2 connection at a time (SETTINGS_MAX_CONCURRENT_STREAMS); more are refused, and \
                  clients wait and ask again. Those count whose client has given up, until their handlers are done.",
        cost: "the memory of so many requests for each connection",
        worst: "below what a page needs at once: browsers wait for a free stream",
    },
];
