//! The proxies in front of the server.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{FORWARDED_FIELDS, PROXIES};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "trusted-proxies",
        placeholder: "NETWORK|unix",
        kind: Kind::Server(&server(PROXIES, |config| &mut config.trusted_proxies)),
        default: &["none"],
        summary: "The proxies in front of the server: addresses and networks, and unix for those on a Unix socket. Their \
                  fields about clients count for applications, logs, limits, filters and pools. The client is the \
                  right-most address in X-Forwarded-For that is no trusted proxy. From all others the fields Forwarded, \
                  X-Forwarded-*, X-Real-IP, X-Request-Start and Proxy are removed. client-connections does not count \
                  trusted proxies.",
        cost: "a look at the fields of each request",
        worst: "a client with a trusted address can claim to be anybody: never trust networks of clients",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "forwarded-fields",
        placeholder: "FIELD",
        kind: Kind::Server(&server(FORWARDED_FIELDS, |config| &mut config.forwarded_fields)),
        default: &["x-forwarded-for", "x-forwarded-proto"],
        summary: "The fields that the trusted proxies set and that count: x-forwarded-for, x-forwarded-proto, \
                  x-forwarded-host, x-forwarded-port, or forwarded (RFC 7239) instead of all.",
        cost: "none",
        worst: "a field that the proxy only passes on is the client's word: nginx passes on X-Forwarded-Host, \
                X-Forwarded-Port and Forwarded unless told otherwise",
        ..Definition::of(Reload::Restart)
    },
];
