//! WebSocket.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{BYTES, SECONDS_OR_OFF, SWITCH};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "websockets",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.has_websockets)),
        default: &["true"],
        summary: "Let ASGI applications have WebSockets, over HTTP/1.1 and HTTP/2. Without it a request for one reaches the \
                  application as a request like any other.",
        cost: "none until an application accepts one",
        worst: "each that is open holds a connection, and a task of the application",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "websocket-max-message",
        kind: Kind::Server(&server(BYTES, |config| &mut config.websockets.max_message)),
        default: &["16m"],
        summary: "The longest message of a client, as the application gets it; a longer one closes its WebSocket with 1009. \
                  Whole number, or with k, m or g (units of 1024).",
        cost: "this much memory for each client that sends one",
        worst: "the memory of as many clients as connect; buffer-budget limits it",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "websocket-ping",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.websockets.ping)),
        default: &["20"],
        summary: "Send a ping to a client that has been silent for this long; 0: never. Clients answer by \
                  themselves, and so does the server, whatever the application does.",
        cost: "two small packets for each silent client and period",
        worst: "longer than a proxy's or router's limit for idle connections: it cuts them off",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "websocket-timeout",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.websockets.timeout)),
        default: &["20"],
        summary: "A client that stays silent for this long after a ping has its WebSocket closed with 1011. 0: no \
                  limit.",
        cost: "a client that is gone holds its WebSocket this much longer",
        worst: "short: clients on bad networks are closed",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "websocket-deflate",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.websockets.deflate)),
        default: &["true"],
        summary: "Compress messages for clients that offer it (permessage-deflate, RFC 7692), as browsers do.",
        cost: "processor time: some 10 microseconds for a kilobyte of text; memory: see websocket-deflate-memory",
        worst: "a message with a secret and a client's own words: its length tells about the secret (as with BREACH)",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "websocket-deflate-memory",
        kind: Kind::Server(&server(BYTES, |config| &mut config.websockets.contexts)),
        default: &["64m"],
        summary: "Memory of a worker in which all WebSockets remember earlier messages, so that similar ones become \
                  much shorter. Beyond it further WebSockets compress each message by itself.",
        cost: "some 220 kilobytes for each open one, up to this limit",
        worst: "this much memory in each worker",
        ..Definition::of(Reload::Restart)
    },
];
