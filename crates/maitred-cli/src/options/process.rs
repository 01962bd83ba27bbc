//! The process: its rights, its end, its configuration.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "user",
        placeholder: "NAME|UID",
        kind: Kind::Account(|config| &mut config.user),
        default: &[],
        reach: Reach::Everywhere,
        summary: "The user that the process becomes, for good and without any capability, when it listens and before it \
                  loads the application. Started as root.",
        cost: "everything read later has to be readable for that user: Python, the application, files, the configuration \
               at SIGHUP; clients that come while the application is loaded wait",
        worst: "without it a server that root starts runs the application as root",
    },
    Definition {
        name: "group",
        placeholder: "NAME|GID",
        kind: Kind::Account(|config| &mut config.group),
        default: &[],
        reach: Reach::Everywhere,
        summary: "The group that it becomes, instead of the first one of the user. A user has its other groups as well; one \
                  that is given by a number without an entry has this group alone.",
        cost: "nothing",
        worst: "a group that others are in: they may read what the server writes",
    },
    Definition {
        name: "pid-file",
        placeholder: "PATH",
        kind: Kind::Path(|config| &mut config.pid_file),
        default: &[],
        reach: Reach::Everywhere,
        summary: "A file that has the number of the process, and is removed at its end. It is made, empty and with a lock, before the \
                  application is loaded, and has the number when the server serves. That of a server which is gone is replaced.",
        cost: "a descriptor",
        worst: "two servers with the same one: the second does not start",
    },
    Definition {
        name: "drain-delay",
        placeholder: "SECONDS",
        kind: Kind::SecondsOrOff(|config| &mut config.drain_delay),
        default: &["0"],
        reach: Reach::Everywhere,
        summary: "How long everything is accepted and served as before after SIGTERM, while health-path answers 503: for a load balancer \
                  that takes so long to lead requests elsewhere. Then the drain begins; another signal begins it at once. SIGINT does not \
                  wait.",
        cost: "the process stays this much longer, drain-timeout not included",
        worst: "shorter than what the balancer takes: connections are refused; longer than the limit of the supervisor: it kills \
                the process before its requests are answered (systemd 90 s, Kubernetes 30 s for both)",
    },
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
        summary: "Print what is needed daily (also -h, or the command help). With the name of an option or of a command \
                  behind it, all about that; with all, all about every option.",
        cost: "",
        worst: "",
    },
];
