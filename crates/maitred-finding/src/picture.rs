//! The state of a server in one moment. Counts are since the start, and all times are in nanoseconds. A worker sends its own to its
//! supervisor.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One process, or all processes of a server together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// When it was taken: of a clock that both pictures have in common.
    pub at: u64,
    /// The totals of each route, by its name.
    pub routes: BTreeMap<String, Route>,
    /// Servers that the application calls, by name.
    pub servers: BTreeMap<String, Server>,
    /// The pools, by name.
    pub pools: BTreeMap<String, Pool>,
    /// The processor time of the threads that run the application, and the time that they have waited for a processor.
    pub wanted: u64,
    /// The processor time alone.
    pub ran: u64,
    /// Requests answered with 504 in the place of their handler.
    pub timeouts: u64,
    /// How many threads can run the application's code at once: one for each process whose language has one lock for all threads, else
    /// the processors.
    pub parallel: u64,
    /// The processors of the machine that the server may use.
    pub processors: u64,
    /// The logs, by `error` and `access`.
    pub logs: BTreeMap<String, Log>,
    /// The way to collectors of OpenTelemetry, by `traces`, `metrics` and `logs`.
    pub collectors: BTreeMap<String, Collector>,
    /// The queue of writes to files of bodies.
    pub spool: Queue,
    /// Responses on their way, by an id that stays.
    pub deliveries: BTreeMap<String, Delivery>,
    /// The memory of the processes.
    pub memory: Memory,
    /// Certificates that cannot be renewed, by name.
    pub certificates: BTreeMap<String, Certificate>,
}

/// A certificate that is ordered from an authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The time until its end; zero without a certificate of an authority.
    pub left: u64,
    /// The whole time for which it is valid.
    pub valid_for: u64,
    /// The fault of the last order in the words of the authority, with its remedy; empty: none has failed.
    pub fault: String,
}

/// The totals of the application for one route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The pool that runs most of it.
    pub pool: String,
    /// Requests that have ended.
    pub requests: u64,
    /// Requests with a status of 500 or above, given by the application.
    pub errors: u64,
    /// How long those that have ended were in the application.
    pub run: u64,
    /// How long they waited, for a thread and for the interpreter.
    pub waited: u64,
    /// How long they waited for databases.
    pub database: u64,
    /// Statements that they sent to databases, as far as they are counted.
    pub statements: u64,
    /// Requests that sent any.
    pub asking: u64,
    /// Requests in the application now.
    pub inside: u64,
    /// How long they are there, all together.
    pub inside_for: u64,
    /// How long those of ended requests that were measured have computed.
    pub computed: u64,
    /// How long they have waited for a processor.
    pub starved: u64,
    /// How long they were in the application.
    pub measured: u64,
    /// How long ended requests were in calls to other servers.
    pub outgoing: u64,
    /// How long requests that are there were in such calls so far.
    pub calling_for: u64,
    /// The calls that run, by server, and by the part in which they are.
    pub calling: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The calls to one server. Each that has ended has exactly one end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Calls with a response.
    pub answered: u64,
    /// Time-outs by phase.
    pub timeouts: BTreeMap<String, u64>,
    /// Failures by name.
    pub failures: BTreeMap<String, u64>,
    /// The time of ended calls, by part.
    pub parts: BTreeMap<String, u64>,
    /// Calls that run, by the part in which they are.
    pub running: BTreeMap<String, u64>,
}

/// The threads of one pool, and its queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Threads that there are.
    pub threads: u64,
    /// The most there may be.
    pub max_threads: u64,
    /// Threads that have nothing to do.
    pub idle: u64,
    /// Threads in the application.
    pub inside: u64,
    /// Threads that are in the same request for more than 30 s.
    pub stuck: u64,
    /// The pool's requests run on an event loop, so that they take no threads.
    pub is_loop: bool,
    /// Requests that wait for a thread, and how long they do, all together.
    pub queued: u64,
    /// The second.
    pub queued_for: u64,
}

/// The lines of one log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// Lines that wait to be written.
    pub waiting: u64,
    /// Lines that were written, or lost by the target.
    pub settled: u64,
    /// Lines that were dropped.
    pub dropped: u64,
}

/// The way of spans, figures or records to a collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collector {
    /// Items that wait.
    pub waiting: u64,
    /// Items that were dropped, or refused by the collector.
    pub lost: u64,
    /// The reason why posts fail; empty if they do not.
    pub failing: String,
}

/// Work for threads that write to a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Items that wait, or are being done.
    pub waiting: u64,
    /// Items that are done.
    pub done: u64,
}

/// A response on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Bytes that have left.
    pub sent: u64,
    /// Bytes that have not, in memory or in a file.
    pub waiting: u64,
    /// The route of its request.
    pub route: String,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The memory of the processes (RSS).
    pub resident: u64,
    /// The engine's memory for connections: buffers, bodies, responses that wait, also in files: they were in memory
    /// before.
    pub held: u64,
    /// The limit of their memory: of the control group, or the machine.
    pub limit: Option<u64>,
}

impl Picture {
    /// Adds the picture of another process of the same server, called `name`, taken at the same time.
    pub fn merge(&mut self, name: &str, other: &Self) {
        self.at = self.at.max(other.at);
        for (route, theirs) in &other.routes {
            let mine = self.routes.entry(route.clone()).or_default();
            if mine.requests + mine.inside <= theirs.requests + theirs.inside {
                mine.pool.clone_from(&theirs.pool);
            }
            mine.requests += theirs.requests;
            mine.errors += theirs.errors;
            mine.run += theirs.run;
            mine.waited += theirs.waited;
            mine.database += theirs.database;
            mine.statements += theirs.statements;
            mine.asking += theirs.asking;
            mine.inside += theirs.inside;
            mine.inside_for += theirs.inside_for;
            mine.computed += theirs.computed;
            mine.starved += theirs.starved;
            mine.measured += theirs.measured;
            mine.outgoing += theirs.outgoing;
            mine.calling_for += theirs.calling_for;
            for (server, parts) in &theirs.calling {
                add(mine.calling.entry(server.clone()).or_default(), parts);
            }
        }
        for (server, theirs) in &other.servers {
            let mine = self.servers.entry(server.clone()).or_default();
            mine.answered += theirs.answered;
            add(&mut mine.timeouts, &theirs.timeouts);
            add(&mut mine.failures, &theirs.failures);
            add(&mut mine.parts, &theirs.parts);
            add(&mut mine.running, &theirs.running);
        }
        for (pool, theirs) in &other.pools {
            let mine = self.pools.entry(pool.clone()).or_default();
            mine.threads += theirs.threads;
            mine.max_threads += theirs.max_threads;
            mine.idle += theirs.idle;
            mine.inside += theirs.inside;
            mine.stuck += theirs.stuck;
            mine.is_loop |= theirs.is_loop;
            mine.queued += theirs.queued;
            mine.queued_for += theirs.queued_for;
        }
        self.wanted += other.wanted;
        self.ran += other.ran;
        self.timeouts += other.timeouts;
        self.parallel += other.parallel;
        self.processors = self.processors.max(other.processors);
        for (log, theirs) in &other.logs {
            let mine = self.logs.entry(log.clone()).or_default();
            mine.waiting += theirs.waiting;
            mine.settled += theirs.settled;
            mine.dropped += theirs.dropped;
        }
        for (signal, theirs) in &other.collectors {
            let mine = self.collectors.entry(signal.clone()).or_default();
            mine.waiting += theirs.waiting;
            mine.lost += theirs.lost;
            if mine.failing.is_empty() {
                mine.failing.clone_from(&theirs.failing);
            }
        }
        self.spool.waiting += other.spool.waiting;
        self.spool.done += other.spool.done;
        let named = other.deliveries.iter().map(|(id, one)| (format!("{name}/{id}"), one.clone()));
        self.deliveries.extend(named);
        self.certificates.extend(other.certificates.clone());
        self.memory.resident += other.memory.resident;
        self.memory.held += other.memory.held;
        self.memory.limit = self.memory.limit.into_iter().chain(other.memory.limit).min();
    }
}

fn add(mine: &mut BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) {
    for (name, count) in theirs {
        *mine.entry(name.clone()).or_default() += count;
    }
}
