//! Pools of application threads.

use super::definition::{Definition, Kind, Reload, pool, server};
use crate::forms::{BYTES, Count, Maybe, OVERFLOW, PERCENT, SECONDS, STRATEGY, SWITCH, TIMEOUT};

/// The greatest number of threads: beyond it their stacks fill the usual limit of a process
/// (kernel.threads-max is about 15,000 for each GiB of memory).
pub(crate) const MAX_THREADS: usize = 10_000;
/// The longest queue: each request that waits in it keeps a connection, and so a descriptor, of which Linux gives a
/// process 1,048,576 at most unless it is told otherwise (fs.nr_open).
pub(super) const MAX_QUEUE: usize = 1_000_000;
/// The most poll groups: one for each eight of 1,024 processors. Each takes a thread and descriptors.
const MAX_POLL_GROUPS: usize = 128;
/// The most requests of a thread: more are meant as 'never', which is 0.
const MAX_THREAD_REQUESTS: u64 = 1_000_000_000;

/// The keys of a pool: as options they are those of the default pool, in a table `[pool.NAME]` or in the value of
/// `--pool` those of a named one.
pub(super) const POOL: &[Definition] = &[
    Definition {
        name: "min-threads",
        kind: Kind::Pool(&pool(Count(1, MAX_THREADS), |pool| &mut pool.limits.min_threads)),
        default: &["1"],
        summary: "Application threads that stay when there is nothing to do. 0 in a named pool unless set. An ASGI \
                  application has none.",
        cost: "a stack and what the application keeps per thread (a database connection, for example)",
        worst: "too many hold memory and connections for nothing",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "max-threads",
        kind: Kind::Pool(&pool(Count(1, MAX_THREADS), |pool| &mut pool.limits.max_threads)),
        default: &["10"],
        summary: "The most application threads: so many requests the application handles at the same time. An ASGI \
                  application has none: see loop-requests.",
        cost: "a stack and what the application keeps per thread, only while they are needed",
        worst: "too few: requests queue behind slow ones. Too many: they queue in the database instead",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "queue",
        kind: Kind::Pool(&pool(Count(1, MAX_QUEUE), |pool| &mut pool.limits.queue)),
        default: &["1000"],
        summary: "Requests that may wait for a thread before overflow says what happens to the next one; with \
                  overflow=wait this is no limit. queue-low and queue-high are percent of this. Idle connections do not count.",
        cost: "each waiting request keeps its connection, its head and up to body-memory of its body",
        worst: "with overflow refuse. Too many: requests wait longer than their clients. Too few: a short burst is \
                refused",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "queue-low",
        placeholder: "PERCENT",
        kind: Kind::Pool(&pool(PERCENT, |pool| &mut pool.limits.low_mark)),
        default: &["0"],
        summary: "How full the queue must be before waiting requests make threads. 0: each request that waits may \
                  make one, since it waits only if all threads are busy. Above this mark a thread goes on after its \
                  thread-requests.",
        cost: "none",
        worst: "low: a burst makes threads that it does not need. High: a short queue never makes any, however slow \
                the threads are",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "queue-high",
        placeholder: "PERCENT",
        kind: Kind::Pool(&pool(PERCENT, |pool| &mut pool.limits.high_mark)),
        default: &["80"],
        summary: "How full the queue must be before threads are made side by side. Between queue-low and this mark \
                  they are made one after the other. 100: always one after the other.",
        cost: "none",
        worst: "low: many threads start at once and take the processors from requests",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "thread-idle",
        kind: Kind::Pool(&pool(SECONDS, |pool| &mut pool.limits.thread_idle)),
        default: &["60"],
        summary: "A thread above min-threads ends after this time without a request.",
        cost: "a stack and what the application keeps per thread, this much longer",
        worst: "short: threads, and what the application keeps for each, are made again and again",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "thread-requests",
        kind: Kind::Pool(&pool(Count(0, MAX_THREAD_REQUESTS), |pool| &mut pool.limits.thread_requests)),
        default: &["10000"],
        summary: "A new thread replaces one that has had so many requests; 0 for never. This bounds what an \
                  application leaks per thread.",
        cost: "a thread, and what the application keeps for it, for so many requests",
        worst: "few: as if the application started over and over",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "request-timeout",
        kind: Kind::Pool(&pool(TIMEOUT, |pool| &mut pool.limits.request_timeout)),
        default: &["0"],
        summary: "Time from the complete request until its response begins; waiting for a thread counts. Then the \
                  client gets 504, and the thread counts as lost until the application returns. 0 switches it off.",
        cost: "a timer for each request",
        worst: "short: clients ask again while the application still works on their last request",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "max-lost-threads",
        kind: Kind::Pool(&pool(Maybe(Count(0, MAX_THREADS)), |pool| &mut pool.max_lost_threads)),
        summary: "Lost threads that the pool replaces: those whose requests have timed out. As many as max-threads \
                  unless set; 0 replaces none.",
        cost: "up to this many threads beyond max-threads, while they are lost",
        worst: "0: a few requests that never return stop the pool. Many: an application that hangs keeps as many \
                more threads",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "interrupt",
        kind: Kind::Pool(&pool(SWITCH, |pool| &mut pool.limits.interrupt)),
        default: &["false"],
        summary: "Raise an exception in the thread of a request that has timed out. A call into C ends first.",
        cost: "none until a request times out",
        worst: "it comes anywhere, also between two statements that belong together",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "overflow",
        kind: Kind::Pool(&pool(OVERFLOW, |pool| &mut pool.limits.overflow)),
        default: &["wait"],
        summary: "What happens to a request that finds a full queue. wait: it waits too; it has been read, since its path \
                  says whether an application answers it, and so that request-timeout holds for it. The queue then grows \
                  up to one request for each connection (HTTP/2: http2-streams); max-connections and buffer-budget bound \
                  that. refuse: it gets 503 with Retry-After. The queue of an event loop is also full when loop-requests \
                  run, or when its first request has waited for 0.1 s.",
        cost: "wait: for each request what queue says",
        worst: "wait: a client cannot tell a full queue from a slow answer. refuse: requests are lost that could \
                have been served a moment later",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "bandwidth",
        kind: Kind::Pool(&pool(BYTES, |pool| &mut pool.limits.bandwidth)),
        default: &["0"],
        summary: "Bytes a second for all responses of the pool together; they take turns. 0: no limit. Files that \
                  the server sends by itself are in no pool: see route-bandwidth.",
        cost: "a timer for each piece, 64 in a second; responses are queued before they leave",
        worst: "low: responses wait long for their turn, each with its memory",
        ..Definition::of(Reload::Pool)
    },
    Definition {
        name: "strategy",
        kind: Kind::Pool(&pool(STRATEGY, |pool| &mut pool.strategy)),
        default: &["adaptive"],
        summary: "Which thread runs a request. adaptive: the one that has read it, while another one polls or is called \
                  when all stand still. pec: a thread of the engine reads, another one runs. epc: the one that has read \
                  it, after it has called another one to poll. pc: one thread reads and runs. A named pool takes adaptive \
                  or pec, which are the same there. See threads.md.",
        cost: "pec and epc: a wake-up of another thread for requests that need none",
        worst: "pc: a slow request holds up all others. pec and epc: Python threads take the interpreter from one \
                another",
        ..Definition::of(Reload::Restart)
    },
];

pub(super) const NAMED: &[Definition] = &[Definition {
    name: "pool",
    placeholder: "NAME[,KEY=VALUE]...",
    kind: Kind::Table,
    summary: "A pool of threads for some of the requests, so that others never wait behind them. KEY is an option from \
              min-threads to strategy, or path, method, header or client: together these are the rule that leads requests \
              here. The same NAME again adds a rule. A missing key has the documented default, not the value of the \
              default pool; min-threads is 0. In maitred.toml it is a table [pool.NAME] with a list `match`: see \
              threads.md.",
    cost: "its threads, also when those of other pools are idle",
    worst: "too small for its requests: they wait while other threads are idle",
    ..Definition::of(Reload::Restart)
}];

pub(super) const GROUPS: &[Definition] = &[Definition {
    name: "poll-groups",
    kind: Kind::Server(&server(Maybe(Count(1, MAX_POLL_GROUPS)), |config| &mut config.poll_groups)),
    summary: "Groups of polling threads, each with its own connections: one for each 8 processors unless set, never more \
              than max-threads. They share the default pool's threads and queue. A request leaves its group only if all \
              threads there are busy. With an interpreter lock, an event loop, or a strategy other than adaptive there is \
              one.",
    cost: "an epoll descriptor and a thread of the engine each",
    worst: "too few: processors get into one another's way. Too many: each group has few threads, and requests wait \
            a moment before other groups help",
    ..Definition::of(Reload::Restart)
}];
