//! The control of a running server.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "control",
        placeholder: "auto|off|PATH",
        kind: Kind::ControlSocket(|config| &mut config.control),
        default: &["auto"],
        reach: Reach::Everywhere,
        summary: "The Unix socket for `maitred ctl`: nowhere, at PATH, or (auto) maitred-PID.sock in \
                  $XDG_RUNTIME_DIR, else in /tmp/maitred-UID. Its file has mode 0600, and only processes of this user \
                  and of root are answered.",
        cost: "a descriptor, and a thread that looks at the others once a second",
        worst: "off: a request that is stuck can be found in the error log only",
    },
    Definition {
        name: "admin",
        placeholder: "ADDR",
        kind: Kind::AddressOrNone(|config| &mut config.admin),
        default: &[],
        reach: Reach::Everywhere,
        summary: "An address for the same by HTTP and JSON, and for the figures at /metrics. Without admin-token-file it must be a loopback address, \
                  and requests must be for a name of this machine.",
        cost: "a descriptor",
        worst: "without admin-token-file everybody with an account on this machine can change and end the server",
    },
    Definition {
        name: "admin-token-file",
        placeholder: "FILE",
        kind: Kind::Path(|config| &mut config.admin_token_file),
        default: &[],
        reach: Reach::Everywhere,
        summary: "A file whose first line clients of admin must show (Authorization: Bearer ...): 16 or more \
                  printable characters. Only its owner may have rights to it.",
        cost: "nothing",
        worst: "the token is sent as it is: beyond this machine it needs a tunnel or a proxy with TLS",
    },
    Definition {
        name: "history",
        placeholder: "FILE",
        kind: Kind::Path(|config| &mut config.history),
        default: &[],
        reach: Reach::Everywhere,
        summary: "A file that keeps the history of the figures (`maitred ctl history`) over a restart. It is written every ten minutes and at the \
                  end: a new one beside it, then moved.",
        cost: "7.2 MB on the disk at most; the history itself takes that in memory, with the file or without it",
        worst: "after a crash up to ten minutes are missing; a server that another one shares the file with takes its history away",
    },
];
