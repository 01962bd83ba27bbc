//! What is shown, made of the server's answers: plain values, without a terminal.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// Seconds that routes are compared over.
pub(super) const WINDOW: f64 = 60.0;

/// Seconds that a sentence about the present is of.
pub(super) const PRESENT: usize = 5;

/// The spans in the order in which they pass, as statistics call them.
pub(super) const SPANS: [&str; 6] = ["accept", "queue", "gate", "filter", "run", "write"];

/// Answers of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    pub(super) status: Value,
    pub(super) stats: Value,
    pub(super) pools: Value,
    pub(super) active: Value,
    /// The last minute by seconds.
    pub(super) history: Value,
    /// The last interval of ten seconds.
    pub(super) recent: Value,
}

/// A pool, of all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) threads: u64,
    pub(super) idle: u64,
    pub(super) stuck: u64,
    pub(super) most: u64,
    pub(super) queued: u64,
    pub(super) room: u64,
    /// Requests that its threads run now.
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
}

/// Everything on the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) server: String,
    pub(super) uptime: f64,
    pub(super) workers: u64,
    pub(super) is_draining: bool,
    /// What there is little of.
    pub(super) low_on: Option<String>,
    /// Whether statistics are counted: without them there are no times.
    pub(super) is_on: bool,
    /// Requests a second, and of each class from 1xx on.
    pub(super) rate: f64,
    pub(super) classes: [f64; 5],
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
    /// The mean of each span in the last seconds, in seconds.
    pub(super) spans: [f64; SPANS.len()],
    pub(super) waiting_for_interpreter: f64,
    /// Processors in use.
    pub(super) cpu: Option<f64>,
    pub(super) connections: u64,
    pub(super) websockets: Option<f64>,
    pub(super) memory: Option<f64>,
    pub(super) pools: Vec<Pool>,
    pub(super) routes: Vec<Route>,
    /// What the routes are of: the last seconds, or the time since the start.
    pub(super) routes_of: Option<f64>,
    pub(super) running: Vec<Running>,
    pub(super) running_total: u64,
    /// The last minute, the newest second last; none where nobody looked.
    pub(super) requests_line: Vec<Option<f64>>,
    pub(super) p99_line: Vec<Option<f64>>,
    pub(super) queue_line: Vec<Option<f64>>,
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
        view.routes = list(&answers.stats["routes"]).map(route).filter(|route| route.requests > 0.0).collect();
        if !view.is_on
            && let Some(last) = self.0.back()
        {
            view.rate = ((moment.requests - last.requests) / (uptime - last.uptime).max(0.001)).max(0.0);
        }
        self.0.push_back(moment);
        view
    }
}

fn of_status(answers: &Answers) -> View {
    let Answers { status, pools, active, history, recent, .. } = answers;
    let listeners = list(&status["listeners"]).map(|row| text(&row["address"])).collect::<Vec<_>>().join(", ");
    let application = status["application"].as_str().map(|name| format!("  {}", clean(name))).unwrap_or_default();
    let pid = &status["pid"];
    let mut view = View {
        server: format!("{}{application}  pid {pid}  {listeners}", text(&status["version"])),
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
            pool.idle += count("idle");
            pool.stuck += count("lost");
            pool.most += count("max_threads");
            pool.queued += count("queued");
            pool.room += count("queue");
            pool.running = running;
        }
    }
    of_history(&mut view, history, recent);
    view
}

fn of_history(view: &mut View, history: &Value, recent: &Value) {
    let lines = |name: &str| column(history, name);
    let last = |name: &str| -> Vec<Option<f64>> { lines(name).into_iter().rev().take(PRESENT).collect() };
    let sum = |name: &str| last(name).into_iter().flatten().sum::<f64>();
    let newest = |name: &str| last(name).into_iter().flatten().next();
    let covered = sum("covered_seconds");
    if covered > 0.0 {
        view.rate = sum("requests") / covered;
        let classes = ["requests_1xx", "requests_2xx", "requests_3xx", "requests_4xx", "requests_5xx"];
        view.classes = classes.map(|name| sum(name) / covered);
        view.waiting_for_interpreter = last("threads_gate").into_iter().flatten().sum::<f64>() / PRESENT as f64;
        view.cpu = Some(sum("cpu_seconds") / covered);
    }
    let requests = last("requests");
    for (span, name) in view.spans.iter_mut().zip(SPANS) {
        let means = last(&format!("{name}_mean_seconds"));
        let both = means.iter().zip(&requests).filter_map(|(mean, count)| Some(((*mean)?, (*count)?)));
        let (time, count) = both.fold((0.0, 0.0), |(time, all), (mean, count)| (time + mean * count, all + count));
        *span = if count > 0.0 { time / count } else { 0.0 };
    }
    (view.websockets, view.memory) = (newest("websockets_open"), newest("memory_bytes"));
    let of_recent = |name: &str| column(recent, name).into_iter().next_back().flatten();
    (view.p50, view.p99) = (of_recent("p50_seconds"), of_recent("p99_seconds"));
    view.requests_line = lines("requests");
    view.p99_line = lines("p99_seconds");
    view.queue_line = lines("queue_max");
}

fn column(history: &Value, name: &str) -> Vec<Option<f64>> {
    let at = list(&history["columns"]).position(|column| column == name);
    let values = at.map(|at| list(&history["values"][at]).map(Value::as_f64).collect());
    values.unwrap_or_default()
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
