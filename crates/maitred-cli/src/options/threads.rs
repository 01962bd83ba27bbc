//! Pools of application threads.

use super::{Definition, Kind, MAX_POLL_GROUPS, MAX_QUEUE, MAX_THREAD_REQUESTS, MAX_THREADS, Reach};

/// The keys of a pool: as options they are those of the default pool, in a table `[pool.NAME]` or in the value of
/// `--pool` those of a named one.
pub(super) const POOL: &[Definition] = &[
    Definition {
        name: "min-threads",
        placeholder: "N",
        kind: Kind::Count(1, MAX_THREADS, |config| &mut config.pool.min_threads),
        default: &["1"],
        reach: Reach::Everywhere,
        summary: "Application threads that are kept when there is nothing to do; in a named pool 0, if nothing \
                  else is said. An ASGI application has none.",
        cost: "a stack and what the application keeps per thread (a database connection, for example)",
        worst: "too many hold memory and connections for nothing",
    },
    Definition {
        name: "max-threads",
        placeholder: "N",
        kind: Kind::Count(1, MAX_THREADS, |config| &mut config.pool.max_threads),
        default: &["10"],
        reach: Reach::Everywhere,
        summary: "Application threads at most, that is, requests the application handles at the same time. \
                  An ASGI application has none, and no such limit.",
        cost: "a stack and what the application keeps per thread, only while they are needed",
        worst: "too few: requests queue behind slow ones; too many: they queue in the database instead",
    },
    Definition {
        name: "queue",
        placeholder: "N",
        kind: Kind::Count(1, MAX_QUEUE, |config| &mut config.pool.queue),
        default: &["1000"],
        reach: Reach::Everywhere,
        summary: "Requests that may wait for a thread; what becomes of one more says overflow, and the marks are \
                  percent of this. Idle connections do not count.",
        cost: "for each request that waits its connection, its head and up to body-memory of its body",
        worst: "with overflow refuse, too many: they wait longer than their peers do; too few: a short burst is \
                refused",
    },
    Definition {
        name: "queue-low",
        placeholder: "PERCENT",
        kind: Kind::Percent(|config| &mut config.pool.queue_low),
        default: &["0"],
        reach: Reach::Everywhere,
        summary: "How full the queue is before threads are made because requests wait in it; 0: each request \
                  that waits may have one made, since it waits only when all threads are busy. A thread that has \
                  had its thread-requests goes on above it.",
        cost: "none",
        worst: "low: threads are made for bursts that the present ones would have served as soon; high: a queue \
                that stays below it is never shortened by more threads, however slow they are",
    },
    Definition {
        name: "queue-high",
        placeholder: "PERCENT",
        kind: Kind::Percent(|config| &mut config.pool.queue_high),
        default: &["80"],
        reach: Reach::Everywhere,
        summary: "How full the queue is when threads are made side by side; between queue-low and it they are \
                  made one after the other. 100: always one after the other.",
        cost: "none",
        worst: "low: many threads start at once and keep the processors from requests",
    },
    Definition {
        name: "thread-idle",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.pool.thread_idle),
        default: &["60"],
        reach: Reach::Everywhere,
        summary: "Time without a request after which a thread above min-threads ends.",
        cost: "a stack and what the application keeps per thread, this much longer",
        worst: "too short: threads, and what the application keeps for each, are made again and again",
    },
    Definition {
        name: "thread-requests",
        placeholder: "N",
        kind: Kind::Count(0, MAX_THREAD_REQUESTS, |config| &mut config.pool.thread_requests),
        default: &["10000"],
        reach: Reach::Everywhere,
        summary: "Requests after which a thread is replaced by a new one; 0 for never. It bounds what \
                  an application loses per thread.",
        cost: "a thread, and what the application keeps for it, for so many requests",
        worst: "too few: as if the application started over and over",
    },
    Definition {
        name: "request-timeout",
        placeholder: "SECONDS",
        kind: Kind::SecondsOrOff(|config| &mut config.pool.request_timeout),
        default: &["0"],
        reach: Reach::Everywhere,
        summary: "Time from the complete request until its response has begun, waiting for a thread included; \
                  then the peer gets 504, and the thread counts as lost until the application returns. 0 switches \
                  it off.",
        cost: "a timer for each request",
        worst: "too short: peers ask again while the application still works on what they have given up",
    },
    Definition {
        name: "max-lost-threads",
        placeholder: "N",
        kind: Kind::CountOrNone(0, MAX_THREADS, |config| &mut config.pool.max_lost_threads),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Threads whose requests have timed out and that are replaced until they return; without it as \
                  many as max-threads, and 0 replaces none.",
        cost: "up to this many threads beyond max-threads, while they are lost",
        worst: "0: a few requests that never return stop the pool; many: an application that hangs keeps as \
                many threads more",
    },
    Definition {
        name: "interrupt",
        placeholder: "",
        kind: Kind::Switch(|config| &mut config.pool.interrupt),
        default: &["false"],
        reach: Reach::Everywhere,
        summary: "Raise an exception in the thread of a request that has timed out. A call into C is not \
                  interrupted: the exception comes when it returns.",
        cost: "none until a request times out",
        worst: "it comes anywhere, also between two statements that belong together",
    },
    Definition {
        name: "overflow",
        placeholder: "wait|refuse",
        kind: Kind::Overflow(|config| &mut config.pool.overflow),
        default: &["wait"],
        reach: Reach::Everywhere,
        summary: "What becomes of a request that finds as many waiting as queue says: it waits too, so that the \
                  queue grows up to one request for each connection, or it gets 503 with Retry-After.",
        cost: "wait: for each request what queue says of one",
        worst: "wait: a peer cannot tell a full queue from a slow answer; refuse: requests are lost that could \
                have been served a moment later",
    },
    Definition {
        name: "bandwidth",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.pool.bandwidth),
        default: &["0"],
        reach: Reach::Everywhere,
        summary: "Bytes in a second with which all responses of the pool leave together, in turns. 0: any number. Files \
                  that the server answers by itself are in no pool: see route-bandwidth.",
        cost: "a timer for each piece, 64 in a second; responses are queued before they leave",
        worst: "low: responses wait for their turn for long, each with its memory",
    },
    Definition {
        name: "strategy",
        placeholder: "adaptive|pc|pec|epc",
        kind: Kind::Strategy(|config| &mut config.pool.strategy),
        default: &["adaptive"],
        reach: Reach::Everywhere,
        summary: "Who runs a request: the only thread, which also polls (pc), another one than the one that has \
                  polled it (pec), or that one after it has called another one to poll (epc). adaptive: the thread \
                  that has polled it, while another one polls or is called when all stand still; it alone learns \
                  which routes are slow. A named pool takes adaptive or pec, which are the same there: its \
                  threads never poll. Which one when: see threads.md.",
        cost: "pec and epc: a wake-up of another thread for requests that need none",
        worst: "pc: a slow request keeps all others waiting; pec and epc: Python threads take the interpreter from \
                one another",
    },
];

pub(super) const NAMED: &[Definition] = &[Definition {
    name: "pool",
    placeholder: "NAME[,KEY=VALUE]...",
    kind: Kind::Pools,
    default: &[],
    reach: Reach::Everywhere,
    summary: "A pool of threads for some of the requests, so that the others never wait behind them. KEY is one of \
              the options from min-threads to strategy, or one of path, method, header and client, which together \
              are the rule that leads requests here; with the same NAME again, one more rule. What is not given \
              is as documented, not as set for the default pool, but min-threads is 0. In maitred.toml a table \
              [pool.NAME] with these keys, and the rules as a list `match`: see threads.md.",
    cost: "its threads, also when those of other pools are idle",
    worst: "a pool that is too small for its requests: they wait while others do not",
}];

pub(super) const GROUPS: &[Definition] = &[Definition {
    name: "poll-groups",
    placeholder: "N",
    kind: Kind::CountOrNone(1, MAX_POLL_GROUPS, |config| &mut config.poll_groups),
    default: &[],
    reach: Reach::Everywhere,
    summary: "Groups of threads that poll, each with connections of its own; without it one for each 8 processors, \
              and not more than max-threads. The default pool's min-threads, max-threads, queue and \
              max-lost-threads are shared out among them. A request leaves its group only when all threads of that \
              are busy. An application with one interpreter lock or an event loop has one group, whatever is said \
              here; a strategy other than adaptive takes no more.",
    cost: "an epoll descriptor and a thread of the engine each",
    worst: "too few: the processors get into one another's way; too many: a group has few threads, and requests wait \
            for them a moment longer before other groups help",
}];
