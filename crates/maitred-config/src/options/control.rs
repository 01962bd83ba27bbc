//! The control of a running server.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{ADDRESS, CONTROL_SOCKET, FILE, Maybe};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "control",
        placeholder: "auto|off|PATH",
        kind: Kind::Server(&server(CONTROL_SOCKET, |config| &mut config.control)),
        default: &["auto"],
        summary: "The Unix socket for `maitred ctl`: nowhere, at PATH, or (auto) maitred-PID.sock in \
                  $XDG_RUNTIME_DIR, else in /tmp/maitred-UID. Its file has mode 0600, and only processes of this user \
                  and of root are answered.",
        cost: "a descriptor, and a thread that looks at the others once a second",
        worst: "off: a request that is stuck can be found in the error log only",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "admin",
        placeholder: "ADDR",
        kind: Kind::Server(&server(Maybe(ADDRESS), |config| &mut config.admin)),
        summary: "An address for the same by HTTP and JSON, and for the figures at /metrics. Without admin-token-file it must be a loopback address, \
                  and requests must be for a name of this machine.",
        cost: "a descriptor",
        worst: "without admin-token-file everybody with an account on this machine can change and end the server",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "admin-token-file",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.admin_token_file)),
        summary: "A file whose first line clients of admin must show (Authorization: Bearer ...): 16 or more \
                  printable characters. Only its owner may have rights to it.",
        cost: "nothing",
        worst: "the token is sent as it is: beyond this machine it needs a tunnel or a proxy with TLS",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "history",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.history)),
        summary: "A file that keeps the history of the figures (`maitred ctl history`) over a restart. It is written every ten minutes and at the \
                  end: a new one beside it, then moved.",
        cost: "7.2 MB on the disk at most; the history itself takes that in memory, with the file or without it",
        worst: "after a crash up to ten minutes are missing; a server that another one shares the file with takes its history away",
        ..Definition::of(Reload::Restart)
    },
];
