//! The process: its rights, its end, its configuration.

use super::definition::{Definition, Kind, Reach, Reload, server};
use crate::forms::{ACCOUNT, FILE, Maybe, SECONDS, SECONDS_OR_AT_ONCE, SECONDS_OR_OFF};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "user",
        placeholder: "NAME|UID",
        kind: Kind::Server(&server(Maybe(ACCOUNT), |config| &mut config.user)),
        summary: "The user as whom the process acts, for good and without any capability, once it listens and before \
                  it loads the application. It is started as root.",
        cost: "that user must be able to read what is read later: Python, the application, files, the configuration \
               at SIGHUP. Clients that come while the application is loaded wait",
        worst: "without it a server that root starts runs the application as root",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "group",
        placeholder: "NAME|GID",
        kind: Kind::Server(&server(Maybe(ACCOUNT), |config| &mut config.group)),
        summary: "The group of the process, instead of the user's first one. The user's other groups stay; a user \
                  given by a number without an entry has this group alone.",
        cost: "nothing",
        worst: "a group that others are in: they may read what the server writes",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "pid-file",
        placeholder: "PATH",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.pid_file)),
        summary: "A file with the number of the process. It is made before the application is loaded, empty and \
                  locked; it has the number while the server serves, and is removed at the end. The file of a server \
                  that is gone is replaced.",
        cost: "a descriptor",
        worst: "two servers with the same file: the second does not start",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "drain-delay",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.drain_delay)),
        default: &["0"],
        summary: "After SIGTERM, serve everything as before for this long, while health-path answers 503, so that a load \
                  balancer notices. Then the drain begins; another signal begins it at once. SIGINT does not wait.",
        cost: "the process stays this much longer, drain-timeout not included",
        worst: "shorter than the balancer needs: connections are refused. Longer than the service manager allows: \
                it kills the process (Kubernetes: 30 s for this and drain-timeout, unless set). systemd with \
                Type=notify is asked for more time",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "drain-timeout",
        kind: Kind::Server(&server(SECONDS, |config| &mut config.drain_timeout)),
        default: &["30"],
        summary: "Time for running requests to end after SIGTERM or SIGINT, or in a worker that is replaced; then \
                  they are cut off.",
        cost: "the process stays this much longer at most, and up to 5 s more while an ASGI application ends or Python \
               waits for threads, children and functions of atexit: then a line names them, and the code is 1",
        worst: "longer than the service manager allows: it kills the process first (Kubernetes: 30 s unless set). \
                systemd with Type=notify is asked for more time",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "events-timeout",
        kind: Kind::Server(&server(SECONDS_OR_AT_ONCE, |config| &mut config.events_timeout)),
        default: &["2"],
        summary: "Time for event streams (text/event-stream) to end after SIGTERM or SIGINT, or in a worker that is \
                  replaced, at most drain-timeout. Their applications are told at once (ASGI: http.disconnect), then the \
                  server ends them; clients connect again by themselves. 0 ends them at once. Applications of other \
                  record streams (NDJSON, multipart/x-mixed-replace) and long polls whose own task waits in receive() \
                  before it has answered are told, and not ended. Django and Quart cancel a view when told, so there only \
                  streams of these types are.",
        cost: "the process stays this much longer while such a stream is open",
        worst: "short: an application cannot say goodbye to its clients",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "config",
        placeholder: "FILE",
        kind: Kind::File,
        reach: Reach::NotInFile,
        summary: "The configuration file, instead of maitred.toml in the current directory. The files \
                  FILE.d/*.toml are read after it.",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "version",
        kind: Kind::Action,
        reach: Reach::CommandLine,
        summary: "Print the version and the languages it runs (also -V).",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "help",
        kind: Kind::Action,
        reach: Reach::CommandLine,
        summary: "Print what is needed daily (also -h, or the command help). With the name of an option or of a command \
                  behind it, all about that; with all, all about every option.",
        ..Definition::of(Reload::Restart)
    },
];
