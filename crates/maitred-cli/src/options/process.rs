//! The process: its end, its configuration.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "drain-timeout",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.drain_timeout),
        default: &["30"],
        reach: Reach::Everywhere,
        summary: "Time for running requests to end after SIGTERM or SIGINT; then they are cut off.",
        cost: "the process stays this much longer at most; for the end of an ASGI application some seconds more",
        worst: "longer than the supervisor's own limit: it kills the process first (systemd 90 s, \
                Kubernetes 30 s)",
    },
    Definition {
        name: "events-timeout",
        placeholder: "SECONDS",
        kind: Kind::SecondsOrOff(|config| &mut config.events_timeout),
        default: &["2"],
        reach: Reach::Everywhere,
        summary: "Time for streams of events (text/event-stream) to end after SIGTERM or SIGINT, at most \
                  drain-timeout. Their applications are told at once: receive of ASGI brings http.disconnect. Then \
                  the server ends them; their clients connect again by themselves. 0 ends them at once.",
        cost: "the process stays this much longer while such a stream is open",
        worst: "too short: an application cannot say farewell to its clients",
    },
    Definition {
        name: "config",
        placeholder: "FILE",
        kind: Kind::File,
        default: &[],
        reach: Reach::NotInFile,
        summary: "The configuration file, instead of maitred.toml in the current directory. The files \
                  FILE.d/*.toml are read after it.",
        cost: "",
        worst: "",
    },
    Definition {
        name: "version",
        placeholder: "",
        kind: Kind::Action,
        default: &[],
        reach: Reach::CommandLine,
        summary: "Print the version and the languages it runs (also -V).",
        cost: "",
        worst: "",
    },
    Definition {
        name: "help",
        placeholder: "",
        kind: Kind::Action,
        default: &[],
        reach: Reach::CommandLine,
        summary: "Print this text (also -h).",
        cost: "",
        worst: "",
    },
];
