//! What is shown, found in the server's answers: values, without text and without a terminal.
//!
//! Promises: what is not answered is none, never zero.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// Seconds that routes are compared over.
const WINDOW: f64 = 60.0;

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

/// A route in the last minute.
#[derive(Debug, Default)]
pub(super) struct Route {
    pub(super) name: String,
    /// Requests, their mean in seconds, the 99th percentile since the start, and the seconds of all of them.
    pub(super) figures: [f64; 4],
}

/// The last answers of the server, and the differences to the answers before.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) answers: Answers,
    pub(super) routes: Vec<Route>,
    /// The seconds that the routes are of; none for the time since the start.
    pub(super) routes_of: Option<f64>,
    /// Requests a second since the look before.
    counted_rate: Option<f64>,
}

impl View {
    /// Whether statistics are counted: without them there are no times.
    pub(super) fn is_on(&self) -> bool {
        self.answers.history["on"] == true
    }

    /// Requests a second.
    pub(super) fn rate(&self) -> Option<f64> {
        if self.is_on() { self.per_second("requests") } else { self.counted_rate }
    }

    /// How much of a figure there was in a second.
    pub(super) fn per_second(&self, name: &str) -> Option<f64> {
        let covered = self.sum("covered_seconds");
        (covered > 0.0).then(|| self.sum(name) / covered)
    }

    /// The mean over the seconds in which it is known.
    pub(super) fn mean(&self, name: &str) -> Option<f64> {
        let known = self.present(name).count();
        (known > 0).then(|| self.sum(name) / known as f64)
    }

    pub(super) fn newest(&self, name: &str) -> Option<f64> {
        self.present(name).next()
    }

    /// A percentile of the last ten seconds with requests, at most twenty ago.
    pub(super) fn percentile(&self, name: &str) -> Option<f64> {
        newest_first(&self.answers.recent, name).flatten().next()
    }

    /// The mean of each span in seconds; none without requests.
    pub(super) fn spans(&self) -> Option<[f64; SPANS.len()]> {
        let requests = self.sum("requests");
        (requests > 0.0).then(|| SPANS.map(|span| self.sum(&format!("{span}_seconds")) / requests))
    }

    /// A pool and its figure, of all workers.
    pub(super) fn pools(&self, figure: &str) -> Vec<(&str, f64)> {
        let mut pools: Vec<(&str, f64)> = Vec::new();
        for row in list(&self.answers.pools["pools"]) {
            let (name, value) = (text(&row["name"]), number(&row[figure]));
            match pools.iter_mut().find(|(own, _)| *own == name) {
                Some((_, sum)) => *sum += value,
                None => pools.push((name, value)),
            }
        }
        pools
    }

    /// Requests in the application, the longest first.
    pub(super) fn running(&self) -> Vec<&Value> {
        let mut rows: Vec<&Value> = list(&self.answers.active["active"]).collect();
        let seconds = |row: &Value| number(&row["for_seconds"]);
        rows.sort_by(|one, other| seconds(other).total_cmp(&seconds(one)));
        rows
    }

    fn sum(&self, name: &str) -> f64 {
        // An empty sum is -0.
        self.present(name).sum::<f64>() + 0.0
    }

    fn present<'a>(&'a self, name: &str) -> impl Iterator<Item = f64> + use<'a> {
        newest_first(&self.answers.history, name).take(PRESENT).flatten()
    }
}

/// What was counted at a moment, of all and of each route: requests and their time.
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
    pub(super) fn view(&mut self, answers: Answers) -> View {
        let stats = &answers.stats;
        let (uptime, requests) = (number(&stats["uptime_seconds"]), number(&stats["requests"]));
        if self.0.back().is_some_and(|last| last.uptime > uptime) {
            // Another server is there now.
            self.0.clear();
        }
        while self.0.len() > 1 && self.0[1].uptime <= uptime - WINDOW {
            self.0.pop_front();
        }
        let before = self.0.front();
        let mut moment = Moment { uptime, requests, routes: HashMap::new() };
        let mut routes = Vec::new();
        for row in list(&stats["routes"]) {
            let (name, requests) = (text(&row["name"]).to_owned(), number(&row["requests"]));
            let time = requests * number(&row["mean_seconds"]);
            let earlier = before.and_then(|before| before.routes.get(&name)).copied().unwrap_or_default();
            let (new, spent) = (requests - earlier.0, (time - earlier.1).max(0.0));
            moment.routes.insert(name.clone(), (requests, time));
            if new > 0.0 {
                routes.push(Route { name, figures: [new, spent / new, number(&row["p99_seconds"]), spent] });
            }
        }
        let rate = |last: &Moment| ((requests - last.requests) / (uptime - last.uptime).max(0.001)).max(0.0);
        let counted_rate = self.0.back().map(rate);
        let routes_of = before.map(|before| uptime - before.uptime);
        self.0.push_back(moment);
        View { answers, routes, routes_of, counted_rate }
    }
}

/// The values of a figure, none where it was not looked at.
pub(super) fn newest_first<'a>(
    history: &'a Value,
    name: &str,
) -> impl Iterator<Item = Option<f64>> + use<'a> {
    history["figures"][name].as_array().into_iter().flatten().rev().map(Value::as_f64)
}

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
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
        let view = Memory::default().view(answers());
        assert_eq!((view.rate(), view.per_second("requests_2xx")), (Some(40.0), Some(38.0)));
        assert_eq!((view.percentile("p50_seconds"), view.percentile("p99_seconds")), (Some(0.1), Some(0.9)));
        let spans = view.spans().expect("spans");
        assert!((spans[4] - 0.04).abs() < 1e-9 && (spans[1] - 0.01).abs() < 1e-9, "{spans:?}");
        let figures = ["threads", "lost", "max_threads", "queued"].map(|figure| view.pools(figure));
        assert_eq!(figures, [7.0, 1.0, 16.0, 3.0].map(|sum| vec![("default", sum)]));
        assert_eq!(view.running()[0]["path"], "/search");
        assert_eq!((view.routes_of, view.routes.len()), (None, 2));
    }

    #[test]
    fn routes_are_those_since_the_look_before() {
        let mut memory = Memory::default();
        memory.view(answers());
        let mut next = answers();
        next.stats["uptime_seconds"] = 7310.0.into();
        next.stats["requests"] = 510.into();
        next.stats["routes"][0] =
            json!({ "name": "/search", "requests": 110, "mean_seconds": 0.2, "p99_seconds": 0.9 });
        next.history["on"] = false.into();
        let view = memory.view(next.clone());
        assert_eq!((view.routes_of, view.rate()), (Some(10.0), Some(1.0)));
        assert_eq!(view.routes.len(), 1, "the other one had no requests");
        let [requests, mean, p99, time] = view.routes[0].figures;
        assert!((mean - 0.2).abs() < 1e-9 && (time - 2.0).abs() < 1e-9, "{mean} {time}");
        assert_eq!((requests, p99), (10.0, 0.9));
        // A new server counts anew.
        next.stats["uptime_seconds"] = 5.0.into();
        assert_eq!(memory.view(next).routes_of, None);
    }

    #[test]
    fn a_minute_is_remembered() {
        let mut memory = Memory::default();
        let mut view = View::default();
        for uptime in (0..200).step_by(20) {
            let mut answers = answers();
            answers.stats["uptime_seconds"] = uptime.into();
            answers.stats["routes"][0]["requests"] = (100 + uptime).into();
            view = memory.view(answers);
        }
        assert_eq!((view.routes_of, view.routes[0].figures[0]), (Some(60.0), 60.0));
    }

    #[test]
    fn without_answers_there_are_no_numbers() {
        let view = Memory::default().view(Answers::default());
        assert_eq!((view.rate(), view.percentile("p50_seconds"), view.spans()), (None, None, None));
        assert!(!view.is_on() && view.routes.is_empty());
    }
}
