//! The proxies in front of the server.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "trusted-proxies",
        placeholder: "NETWORK|unix",
        kind: Kind::Proxies(|config| &mut config.trusted_proxies),
        default: &["none"],
        reach: Reach::Everywhere,
        summary: "The proxies in front of the server: addresses and networks, and unix for those that come by a Unix \
                  socket. What they say of their clients counts for applications, logs, limits, filters and pools: the client \
                  is the right-most address in X-Forwarded-For that is no trusted proxy. Of everybody else the fields \
                  Forwarded, X-Forwarded-*, X-Real-IP, X-Request-Start and Proxy are removed. Limits on the \
                  connections of a client do not count for trusted proxies.",
        cost: "a look at the fields of each request",
        worst: "a client with a trusted address can claim to be any other client: never trust networks of clients",
    },
    Definition {
        name: "forwarded-fields",
        placeholder: "FIELD",
        kind: Kind::ForwardedFields(|config| &mut config.forwarded_fields),
        default: &["x-forwarded-for", "x-forwarded-proto"],
        reach: Reach::Everywhere,
        summary: "The fields that the trusted proxies set, and that count: x-forwarded-for, x-forwarded-proto, \
                  x-forwarded-host, x-forwarded-port, or forwarded (RFC 7239) in the place of all.",
        cost: "none",
        worst: "a field that the proxy does not set but pass on is the client's word: nginx passes on X-Forwarded-Host, \
                X-Forwarded-Port and Forwarded unless told otherwise",
    },
];
