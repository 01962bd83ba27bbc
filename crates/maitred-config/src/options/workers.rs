//! Worker processes: their number, their replacement, and the sharing of connections.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{ACCEPT, Auto, BYTES, Count, SECONDS_OR_AT_ONCE, SECONDS_OR_OFF, SWITCH};

/// The most workers: as many as processors of a large machine.
pub const MAX_WORKERS: usize = 1_024;

/// Greatest number of requests of a worker: a greater one would mean 'never', which is 0.
const MAX_REQUESTS: usize = 1_000_000_000_000;

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "workers",
        kind: Kind::Server(&server(Auto(Count(1, MAX_WORKERS)), |config| &mut config.workers.count)),
        default: &["1"],
        summary: "How many processes serve; auto is one for each processor that this process may use (affinity, quota of \
                  the control group). With more than one, a supervisor starts them, restarts those that end, and replaces \
                  all at SIGHUP. One process, also if auto finds one processor, has no supervisor: SIGHUP loads no new \
                  code, SIGUSR2, SIGTTIN and SIGTTOU give a warning. Set 2 to deploy by signals.",
        cost: "each has an interpreter, an application and its connections to databases; the supervisor has some 20 MiB of its own",
        worst: "what an application keeps in memory, each worker has for itself. More workers than processors take \
                time from each other",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "preload",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.workers.preload)),
        default: &["false"],
        summary: "Import the application once and fork the workers from that process. They share the memory that \
                  nobody writes to, and start faster. An application that starts threads while it is imported is \
                  refused. A single worker imports its own.",
        cost: "a process that only waits",
        worst: "connections, files and random numbers made by the import are the same in all workers",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "accept",
        kind: Kind::Server(&server(ACCEPT, |config| &mut config.workers.accept)),
        default: &["shared"],
        summary: "How workers share connections. shared: one queue for all. reuseport: a queue for each \
                  (SO_REUSEPORT; TCP only). With sockets of a service manager reuseport is an error. A change needs a \
                  restart.",
        cost: "shared: two system calls more for each connection",
        worst: "reuseport: a connection waits behind a busy worker while others are idle",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "start-timeout",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.workers.start_timeout)),
        default: &["120"],
        summary: "Time for a worker, or for a new program at SIGUSR2, to load the application and be ready; then it \
                  is killed. systemd with Type=notify is asked for 10 s more than this at the start. 0: no limit.",
        cost: "a deploy that hangs is noticed this much later",
        worst: "short: a slow import never serves. No limit: nobody notices a deploy that hangs",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "worker-requests",
        kind: Kind::Server(&server(Count(0, MAX_REQUESTS), |config| &mut config.workers.requests)),
        default: &["0"],
        summary: "Replace a worker after so many requests, or up to a tenth fewer; it is looked at each second. 0 for \
                  never. Its successor is ready first; requests that still run then have drain-timeout. No effect with \
                  one process.",
        cost: "a start of the application each time",
        worst: "few: workers do nothing but start",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "worker-lifetime",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.workers.lifetime)),
        default: &["0"],
        summary: "Replace a worker after this time, or up to a tenth earlier; 0 for never. No effect with one \
                  process.",
        cost: "as worker-requests",
        worst: "as worker-requests",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "worker-memory",
        kind: Kind::Server(&server(BYTES, |config| &mut config.workers.memory)),
        default: &["0"],
        summary: "Replace a worker whose own memory is above this in three looks, a second apart; 0 for never. No \
                  effect with one process.",
        cost: "a look at /proc each second",
        worst: "less than the application needs: workers do nothing but start",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "worker-timeout",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.workers.stuck)),
        default: &["0"],
        summary: "Replace a worker in which requests wait and none has ended for this time, or that has been silent for 2 \
                  s longer (7 s at least), such as a frozen one. It is killed if it has not ended 6 s after \
                  drain-timeout. 0 for never. No effect with one process. The watchdog of systemd watches the supervisor \
                  alone.",
        cost: "nothing",
        worst: "shorter than the slowest requests: a burst of them replaces workers that are well",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "unavailable-after",
        kind: Kind::Server(&server(SECONDS_OR_AT_ONCE, |config| &mut config.workers.unavailable_after)),
        default: &["2"],
        summary: "If no worker is ready for this time, the supervisor answers everything with 503 and Retry-After, \
                  health-path too. Until then clients wait, as they do at the start before the first worker is ready.",
        cost: "clients learn this much later that nothing is there",
        worst: "long: clients and balancers wait for a server that does not come",
        ..Definition::of(Reload::Restart)
    },
];
