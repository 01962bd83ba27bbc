//! Limits on peers: least rates, requests and connections of a client, bandwidth of responses.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{Auto, BYTES, Count, NETWORKS, RATE, ROUTES, SECONDS};

/// The most connections of one client, and requests at once: as many as there can be connections.
const MAX_CLIENT_CONNECTIONS: u32 = 1_000_000;

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "min-rate-in",
        kind: Kind::Server(&server(BYTES, |config| &mut config.limits.rates.inward)),
        default: &["240"],
        summary: "Bytes a second that a peer must send of a request body while the server waits for it, on an average \
                  over min-rate-grace; then 408 and close. For a body that the application reads as it comes, the time \
                  counts in which it waits for more before its response begins. 0: any rate within body-timeout. The \
                  default is Kestrel's.",
        cost: "a look at each body that takes longer than min-rate-grace",
        worst: "high: peers on bad networks are cut off, and those that send a body as things happen",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "min-rate-out",
        kind: Kind::Server(&server(BYTES, |config| &mut config.limits.rates.outward)),
        default: &["240"],
        summary: "Bytes a second that a peer must take of a response while some of it waits, on an average over \
                  min-rate-grace; then close. Bytes count when the peer's system has acknowledged them. Time in which \
                  nothing waits does not count, so a stream of events may be slow. 0: any rate within body-timeout.",
        cost: "a look at each response that waits for its reader longer than min-rate-grace",
        worst: "high: peers on bad networks are cut off, and players that pause",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "min-rate-grace",
        kind: Kind::Server(&server(SECONDS, |config| &mut config.limits.rates.grace)),
        default: &["30"],
        summary: "The time over which min-rate-in and min-rate-out are averages. A peer begins with it, and never \
                  has more, however fast it was.",
        cost: "a peer that is too slow holds its connection and buffers this long",
        worst: "short: a peer that pauses is cut off",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "client-connections",
        kind: Kind::Server(&server(Count(0, MAX_CLIENT_CONNECTIONS), |config| {
            &mut config.limits.clients.connections
        })),
        default: &["0"],
        summary: "Connections of one client address at the same time, in all workers together; one more is closed without \
                  an answer. 0: no limit. Behind an untrusted proxy leave it off, or name the proxy in client-exempt.",
        cost: "2 MiB of memory for all workers, 0.5 MiB in each, and a look into a table for each connection",
        worst: "low: browsers (6 to 8 connections) and offices behind one address lose connections",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "client-rate",
        placeholder: "N",
        kind: Kind::Server(&server(RATE, |config| &mut config.limits.clients.rate)),
        default: &["0"],
        summary: "Requests a second of one client address, on an average, files included, in all workers together; one \
                  more gets 429 with Retry-After. 0: no limit. Leave it off behind an untrusted proxy.",
        cost: "2 MiB of memory for all workers, 0.5 MiB in each, and a look into a table for each request",
        worst: "low: pages with many files are refused, and offices behind one address",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "client-burst",
        kind: Kind::Server(&server(Count(1, MAX_CLIENT_CONNECTIONS), |config| {
            &mut config.limits.clients.burst
        })),
        default: &["20"],
        summary: "Requests that a client may make at once after a pause, whatever client-rate says.",
        cost: "none",
        worst: "low: a page and its files are more than that. High: each address may ask for as much at once",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "client-ipv6-prefix",
        placeholder: "BITS",
        kind: Kind::Server(&server(Count(1, 128), |config| &mut config.limits.clients.ipv6_prefix)),
        default: &["64"],
        summary: "IPv6 addresses with so many equal bits at the start are one client. 64 is one network, in which a \
                  host may take any address (RFC 4291 §2.5.4).",
        cost: "none",
        worst: "long: one host is as many clients as it likes; short: a whole provider is one client",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "client-exempt",
        placeholder: "NETWORK",
        kind: Kind::Server(&server(NETWORKS, |config| &mut config.limits.clients.exempt)),
        summary: "Addresses without client-connections, client-rate and the limit of passwords that wait to be checked: a proxy, \
                  monitoring, your own network.",
        cost: "a comparison for each of them",
        worst: "whoever has such an address has no limit",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "connection-bandwidth",
        kind: Kind::Server(&server(BYTES, |config| &mut config.limits.bandwidth.connection)),
        default: &["0"],
        summary: "Bytes a second for the responses of one connection, heads included. 0: no limit.",
        cost: "a timer for each piece, 64 in a second; responses are queued before they leave",
        worst: "low: responses stay longer, with their memory",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "route-bandwidth",
        placeholder: "PATH=BYTES",
        kind: Kind::Server(&server(ROUTES, |config| &mut config.limits.bandwidth.routes)),
        summary: "Bytes a second for all responses of these paths together; they take turns. PATH is written as for \
                  pools: /video/*, *.iso. The most specific one counts; BYTES 0 is no limit.",
        cost: "as connection-bandwidth, and a comparison of the path for each request",
        worst: "low: many clients wait long for their turn, each with the memory of its response",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "max-connections",
        kind: Kind::Server(&server(Count(0, MAX_CLIENT_CONNECTIONS as usize), |config| {
            &mut config.limits.connections
        })),
        default: &["0"],
        summary: "Connections at the same time; further ones wait in the kernel. 0: as many as the limit of open \
                  files allows, less an eighth for files. From nine tenths on, idle connections close after a \
                  second, until fewer than eight tenths are open.",
        cost: "a descriptor and some memory for each",
        worst: "low: clients wait although the server could serve them",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "buffer-budget",
        kind: Kind::Server(&server(Auto(BYTES), |config| &mut config.limits.buffers)),
        default: &["auto"],
        summary: "Memory that all connections together may hold: requests and bodies on their way and in the application, \
                  and what waits to be sent. Beyond it new requests get 503 with Retry-After, bodies go to files, and \
                  idle connections close after a second, until an eighth is free. auto: a quarter of the memory that the \
                  process may use. 0: no limit.",
        cost: "an addition for each request that has a body or whose response waits",
        worst: "low: requests are refused that could have been served. High: the system ends the process when its \
                memory is used up",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "head-budget",
        kind: Kind::Server(&server(BYTES, |config| &mut config.limits.heads)),
        default: &["24m"],
        summary: "Memory for the heads of all incomplete requests, and as much for those that run or wait to run; 2 KiB \
                  of each connection do not count. With seven eighths of the first taken, requests on the connections \
                  that hold most are refused until three quarters are: 503 and close, with HTTP/2 REFUSED_STREAM. With \
                  the second used up, further requests are refused on connections that hold more than 16 KiB; with twice \
                  as much held, on all above 2 KiB. 0: no limit.",
        cost: "up to three times this much memory during an attack",
        worst: "low: requests with large cookies are refused while many are under way. High: a peer fills the memory with \
                requests that it never completes",
        ..Definition::of(Reload::Peers)
    },
];
