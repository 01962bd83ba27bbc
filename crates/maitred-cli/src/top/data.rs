//! What is shown, made of the server's answers: plain values, without a terminal.
//!
//! Promises: texts of the server and of its clients have no control characters. What is not answered is shown as none, never as zero.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// Seconds that routes are compared over.
pub(super) const WINDOW: f64 = 60.0;

/// Seconds that the lines of the last minutes are of.
pub(super) const SECONDS: usize = 300;

/// Seconds that are the present: rates and spans are those of them together.
const PRESENT: usize = 5;

/// Classes of status that are shown.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The spans in the order in which they pass, as the history calls them.
pub(super) const SPANS: [&str; 7] = ["accept", "queue", "gate", "filter", "run", "receive", "write"];

/// Answers of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) status: Value,
    pub(super) stats: Value,
    pub(super) pools: Value,
    pub(super) active: Value,
    /// The last minutes by seconds.
    pub(super) history: Value,
    /// The last intervals of ten seconds.
    pub(super) recent: Value,
}

/// A pool, of all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) threads: u64,
    pub(super) stuck: u64,
    pub(super) most: u64,
    pub(super) queued: u64,
    /// Requests that its threads run now, of those that are listed.
    pub(super) running: u64,
}

/// A route in the last minute.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Route {
    pub(super) name: String,
    pub(super) requests: f64,
    /// The time of all of them, in seconds.
    pub(super) time: f64,
    /// Since the start.
    pub(super) p99: f64,
}

impl Route {
    pub(super) fn mean(&self) -> f64 {
        if self.requests > 0.0 { self.time / self.requests } else { 0.0 }
    }
}

/// A request in the application.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Running {
    pub(super) seconds: f64,
    pub(super) what: String,
    pub(super) pool: String,
    pub(super) peer: String,
    pub(super) worker: Option<u64>,
}

/// Everything on the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) version: String,
    pub(super) pid: Option<u64>,
    pub(super) application: Option<String>,
    pub(super) listeners: String,
    pub(super) uptime: f64,
    pub(super) workers: u64,
    pub(super) is_draining: bool,
    /// What there is little of.
    pub(super) low_on: Option<String>,
    /// Whether statistics are counted: without them there are no times.
    pub(super) is_on: bool,
    /// Requests a second, and of each class.
    pub(super) rate: Option<f64>,
    pub(super) classes: [f64; CLASSES.len()],
    /// Of the last ten seconds with requests, at most twenty ago.
    pub(super) p50: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
    /// The mean of each span in the last seconds, in seconds; none without requests.
    pub(super) spans: Option<[f64; SPANS.len()]>,
    pub(super) threads: Threads,
    /// Processors in use, in the program and in the kernel.
    pub(super) cpu: Option<(f64, f64)>,
    pub(super) connections: u64,
    pub(super) http2: Option<f64>,
    pub(super) websockets: Option<f64>,
    pub(super) memory: Option<f64>,
    /// Bytes a second.
    pub(super) out: Option<f64>,
    pub(super) pools: Vec<Pool>,
    pub(super) routes: Vec<Route>,
    /// What the routes are of: the last seconds, or the time since the start.
    pub(super) routes_of: Option<f64>,
    /// The longest first.
    pub(super) running: Vec<Running>,
    pub(super) running_total: u64,
    /// The last minutes by seconds, the newest last; none where nobody looked. They begin at `lines_start`, in seconds since 1970.
    pub(super) lines_start: u64,
    pub(super) requests_line: Vec<Option<f64>>,
    pub(super) p99_line: Vec<Option<f64>>,
    pub(super) queue_line: Vec<Option<f64>>,
}

/// Threads by what they do, on average in the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Threads {
    pub(super) busy: Option<f64>,
    pub(super) idle: Option<f64>,
    pub(super) stuck: Option<f64>,
    /// For the interpreter.
    pub(super) waiting: Option<f64>,
}

/// What was counted of each route at a moment.
struct Moment {
    uptime: f64,
    requests: f64,
    routes: HashMap<String, (f64, f64)>,
}

/// What is remembered from one look to the next.
#[derive(Default)]
pub(super) struct Memory(VecDeque<Moment>);

impl Memory {
    /// The view of these answers, after those before.
    pub(super) fn view(&mut self, answers: &Answers) -> View {
        let mut view = of_status(answers);
        let uptime = number(&answers.stats["uptime_seconds"]);
        if self.0.back().is_some_and(|last| last.uptime > uptime) {
            // Another server is there now.
            self.0.clear();
        }
        let moment = Moment {
            uptime,
            requests: number(&answers.stats["requests"]),
            routes: list(&answers.stats["routes"]).map(|row| (text(&row["name"]), counted(row))).collect(),
        };
        while self.0.len() > 1 && self.0[1].uptime <= uptime - WINDOW {
            self.0.pop_front();
        }
        let before = self.0.front();
        view.routes_of = before.map(|before| uptime - before.uptime);
        let route = |row: &Value| {
            let name = text(&row["name"]);
            let (mut requests, mut time) = counted(row);
            if let Some((earlier, spent)) = before.and_then(|before| before.routes.get(&name)) {
                (requests, time) = (requests - earlier, (time - spent).max(0.0));
            }
            Route { name, requests, time, p99: number(&row["p99_seconds"]) }
        };
        view.routes =
            list(&answers.stats["routes"]).map(route).filter(|route| route.requests > 0.0).collect();
        if !view.is_on
            && let Some(last) = self.0.back()
        {
            let rate = (moment.requests - last.requests) / (uptime - last.uptime).max(0.001);
            view.rate = Some(rate.max(0.0));
        }
        self.0.push_back(moment);
        view
    }
}

fn of_status(answers: &Answers) -> View {
    let Answers { status, pools, active, history, recent, .. } = answers;
    let listener = |row: &Value| {
        let scheme = if row["tls"] == true { "https://" } else { "http://" };
        let address = text(&row["address"]);
        if address.contains("://") || address.starts_with("unix:") {
            address
        } else {
            format!("{scheme}{address}")
        }
    };
    let listeners = list(&status["listeners"]).map(listener).collect::<Vec<_>>().join(", ");
    let mut view = View {
        version: text(&status["version"]),
        pid: status["pid"].as_u64(),
        application: status["application"].as_str().map(clean),
        listeners,
        uptime: number(&status["uptime_seconds"]),
        workers: list(&status["workers"]).count() as u64,
        is_draining: status["draining"] == true,
        low_on: status["low_on"].as_str().map(clean),
        is_on: history["on"] == true,
        connections: number(&status["connections"]) as u64,
        running_total: number(&active["total"]) as u64,
        ..View::default()
    };
    for row in list(&active["active"]) {
        view.running.push(Running {
            seconds: number(&row["for_seconds"]),
            what: format!("{} {}", text(&row["method"]), text(&row["path"])),
            pool: text(&row["pool"]),
            peer: text(&row["peer"]),
            worker: row["worker"].as_u64(),
        });
    }
    view.running.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    for row in list(&pools["pools"]) {
        let name = text(&row["name"]);
        if !view.pools.iter().any(|pool| pool.name == name) {
            view.pools.push(Pool { name: name.clone(), ..Pool::default() });
        }
        let running = view.running.iter().filter(|running| running.pool == name).count() as u64;
        if let Some(pool) = view.pools.iter_mut().find(|pool| pool.name == name) {
            let count = |field: &str| number(&row[field]) as u64;
            pool.threads += count("threads");
            pool.stuck += count("lost");
            pool.most += count("max_threads");
            pool.queued += count("queued");
            pool.running = running;
        }
    }
    of_history(&mut view, history, recent);
    view
}

fn of_history(view: &mut View, history: &Value, recent: &Value) {
    let last =
        |name: &str| -> Vec<Option<f64>> { column(history, name).into_iter().rev().take(PRESENT).collect() };
    let sum = |name: &str| last(name).into_iter().flatten().sum::<f64>();
    let newest = |name: &str| last(name).into_iter().flatten().next();
    let mean = |name: &str| {
        let known: Vec<f64> = last(name).into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let covered = sum("covered_seconds");
    if covered > 0.0 {
        view.rate = Some(sum("requests") / covered);
        view.classes = CLASSES.map(|class| sum(&format!("requests_{class}")) / covered);
        view.cpu = Some((sum("cpu_user_seconds") / covered, sum("cpu_system_seconds") / covered));
        view.out = Some(sum("out_bytes") / covered);
    }
    let requests = sum("requests");
    view.spans = (requests > 0.0).then(|| SPANS.map(|span| sum(&format!("{span}_seconds")) / requests));
    view.threads = Threads {
        busy: newest("threads_busy"),
        idle: newest("threads_idle"),
        stuck: newest("threads_stuck"),
        waiting: mean("threads_gate"),
    };
    (view.http2, view.websockets) = (newest("http2_open"), newest("websockets_open"));
    view.memory = newest("memory_bytes");
    let of_recent = |name: &str| column(recent, name).into_iter().rev().flatten().next();
    (view.p50, view.p90, view.p99) =
        (of_recent("p50_seconds"), of_recent("p90_seconds"), of_recent("p99_seconds"));
    view.lines_start = history["start"].as_u64().unwrap_or_default();
    view.requests_line = column(history, "requests");
    view.p99_line = column(history, "p99_seconds");
    view.queue_line = column(history, "queue_max");
}

fn column(history: &Value, name: &str) -> Vec<Option<f64>> {
    list(&history["figures"][name]).map(Value::as_f64).collect()
}

fn counted(row: &Value) -> (f64, f64) {
    let requests = number(&row["requests"]);
    (requests, requests * number(&row["mean_seconds"]))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn text(value: &Value) -> String {
    clean(value.as_str().unwrap_or("-"))
}

/// Nothing that tells a terminal what to do.
fn clean(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { '?' } else { each }).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A server with two workers, one of whose clients means no good.
    pub(in crate::top) fn answers() -> Answers {
        let ones = |value: f64| vec![value; 60];
        Answers {
            status: json!({
                "version": "0.1.0", "application": "WSGI shop:app", "pid": 4711, "uptime_seconds": 7300.0,
                "draining": false, "low_on": null, "connections": 12,
                "workers": [{ "worker": 1 }, { "worker": 2 }],
                "listeners": [{ "address": "127.0.0.1:8000", "tls": false }, { "address": "[::1]:8443", "tls": true }],
            }),
            stats: json!({
                "uptime_seconds": 7300.0, "requests": 500,
                "routes": [
                    { "name": "/search", "requests": 100, "mean_seconds": 0.2, "p99_seconds": 0.9 },
                    { "name": "/", "requests": 400, "mean_seconds": 0.001, "p99_seconds": 0.002 },
                ],
            }),
            pools: json!({ "pools": [
                { "worker": 1, "name": "default", "threads": 4, "lost": 0, "max_threads": 8, "queued": 1 },
                { "worker": 2, "name": "default", "threads": 3, "lost": 1, "max_threads": 8, "queued": 2 },
            ] }),
            active: json!({ "total": 2, "active": [
                { "method": "GET", "path": "/a\u{1b}[31m", "pool": "default", "peer": "127.0.0.1:5", "for_seconds": 0.5 },
                { "method": "GET", "path": "/search", "pool": "default", "peer": "127.0.0.1:6", "for_seconds": 3.5 },
            ] }),
            history: json!({ "on": true, "figures": {
                "covered_seconds": ones(1.0), "requests": ones(40.0), "requests_2xx": ones(38.0), "requests_5xx": ones(2.0),
                "run_seconds": ones(1.6), "queue_seconds": ones(0.4), "p99_seconds": ones(0.9), "queue_max": ones(3.0),
                "cpu_user_seconds": ones(0.5), "cpu_system_seconds": ones(0.1), "out_bytes": ones(2_097_152.0),
                "threads_busy": ones(2.0), "threads_idle": ones(4.0), "threads_stuck": ones(1.0), "threads_gate": ones(0.5),
                "http2_open": ones(3.0), "websockets_open": ones(1.0), "memory_bytes": ones(83_886_080.0),
            } }),
            recent: json!({ "figures": { "p50_seconds": [0.1, null], "p90_seconds": [0.2, null], "p99_seconds": [0.9, null] } }),
        }
    }

    #[test]
    fn rates_are_those_of_the_last_seconds_and_counts_those_of_all_workers() {
        let view = Memory::default().view(&answers());
        assert_eq!((view.rate, view.classes), (Some(40.0), [0.0, 38.0, 0.0, 0.0, 2.0]));
        assert_eq!((view.p50, view.p99), (Some(0.1), Some(0.9)));
        let spans = view.spans.expect("spans");
        assert!((spans[4] - 0.04).abs() < 1e-9 && (spans[1] - 0.01).abs() < 1e-9, "{spans:?}");
        assert_eq!(view.listeners, "http://127.0.0.1:8000, https://[::1]:8443");
        assert_eq!(view.pools.len(), 1);
        assert_eq!((view.pools[0].threads, view.pools[0].queued, view.pools[0].stuck), (7, 3, 1));
        assert_eq!(view.running[0].what, "GET /search");
        assert_eq!(view.running[1].what, "GET /a?[31m", "a client does not control the terminal");
        assert_eq!((view.routes_of, view.routes.len()), (None, 2));
    }

    #[test]
    fn routes_are_those_since_the_look_before() {
        let mut memory = Memory::default();
        memory.view(&answers());
        let mut next = answers();
        next.stats["uptime_seconds"] = 7310.0.into();
        next.stats["routes"][0] =
            json!({ "name": "/search", "requests": 110, "mean_seconds": 0.2, "p99_seconds": 0.9 });
        let view = memory.view(&next);
        assert_eq!(view.routes_of, Some(10.0));
        assert_eq!(view.routes.len(), 1, "the other one had no requests");
        assert!((view.routes[0].mean() - 0.2).abs() < 1e-9 && view.routes[0].requests == 10.0);
        // A new server counts anew.
        next.stats["uptime_seconds"] = 5.0.into();
        assert_eq!(memory.view(&next).routes_of, None);
    }

    #[test]
    fn without_answers_there_are_no_numbers() {
        let view = Memory::default().view(&Answers::default());
        assert_eq!((view.rate, view.p50, view.spans, view.cpu), (None, None, None, None));
        assert!(!view.is_on && view.routes.is_empty());
    }
}
