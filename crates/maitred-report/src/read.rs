//! The way from lines to requests.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The spans of a line, in the order in which they pass.
pub(super) const SPANS: [&str; 7] = ["accept", "queue", "gate", "filter", "run", "receive", "write"];

const ACCEPT: usize = 0;
const QUEUE: usize = 1;
const RUN: usize = 4;
const RECEIVE: usize = 5;
const WRITE: usize = 6;

/// A request. Times in microseconds, the start since 1970.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) log: u32,
    pub(super) line: u64,
    pub(super) start: u64,
    pub(super) spans: [u64; SPANS.len()],
    /// An index of [`Log::pools`]; none where the engine has answered.
    pub(super) pool: Option<u32>,
    pub(super) route: u32,
    pub(super) status: u16,
    pub(super) id: Box<str>,
}

impl Request {
    pub(super) fn total(&self) -> u64 {
        self.spans.iter().sum()
    }

    pub(super) fn queue(&self) -> u64 {
        self.spans[QUEUE]
    }

    /// How long the handler had it.
    pub(super) fn run(&self) -> u64 {
        self.spans[RUN] + self.spans[RECEIVE]
    }

    /// When the handler got it.
    pub(super) fn begun_running(&self) -> u64 {
        self.done() - self.run()
    }

    /// When it was complete, and began to wait.
    pub(super) fn complete(&self) -> u64 {
        self.start + self.spans[ACCEPT]
    }

    /// When a thread had it.
    pub(super) fn begun(&self) -> u64 {
        self.complete() + self.queue()
    }

    /// When that thread had done with it.
    pub(super) fn done(&self) -> u64 {
        self.start + self.total() - self.spans[WRITE]
    }
}

#[derive(Default)]
pub(super) struct Log {
    pub(super) requests: Vec<Request>,
    pub(super) logs: Names,
    pub(super) routes: Names,
    pub(super) pools: Names,
    /// Lines that were not understood, and the first of them: where, and its beginning.
    pub(super) not_understood: u64,
    pub(super) first_not_understood: Option<(String, u64, String)>,
    /// Lines that the log says are missing.
    pub(super) missing: u64,
}

#[derive(Default)]
pub(super) struct Names {
    all: Vec<Box<str>>,
    indexes: HashMap<Box<str>, u32>,
}

impl Names {
    fn index(&mut self, name: &str) -> u32 {
        if let Some(index) = self.indexes.get(name) {
            return *index;
        }
        let index = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(name.into());
        self.indexes.insert(name.into(), index);
        index
    }

    pub(super) fn name(&self, index: u32) -> &str {
        self.all.get(index as usize).map_or("", |name| name)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

#[derive(Default)]
struct Said {
    start: Option<u64>,
    spans: [Option<u64>; SPANS.len()],
    total: Option<u64>,
    id: String,
    pool: String,
    route: String,
    method: String,
    target: String,
    status: String,
    missing: Option<u64>,
}

impl Log {
    pub(super) fn add(&mut self, log: &str, number: u64, line: &str) {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            return;
        }
        let said = if line.starts_with('{') { of_json(line) } else { Some(of_text(line)) };
        match said {
            Some(Said { missing: Some(missing), .. }) => self.missing += missing,
            Some(said) if said.is_request() => self.push(log, number, &said),
            _ => {
                self.not_understood += 1;
                if self.first_not_understood.is_none() {
                    let begin = line.chars().take(120).collect();
                    self.first_not_understood = Some((log.to_owned(), number, begin));
                }
            }
        }
    }

    fn push(&mut self, log: &str, number: u64, said: &Said) {
        let mut spans = said.spans.map(Option::unwrap_or_default);
        // A log that has only the whole time: it is all the handler's.
        if said.spans.iter().all(Option::is_none) {
            spans[RUN] = said.total.unwrap_or_default();
        }
        // A request that was refused, or led nowhere, has none.
        let path = said.target.split('?').next().unwrap_or_default();
        let route = match (said.route.as_str(), said.method.as_str()) {
            (route, _) if is_there(route) => route.to_owned(),
            (_, "") => path.to_owned(),
            (_, method) => format!("{method} {path}"),
        };
        let request = Request {
            log: self.logs.index(log),
            line: number,
            start: said.start.unwrap_or_default(),
            spans,
            pool: is_there(&said.pool).then(|| self.pools.index(&said.pool)),
            route: self.routes.index(&route),
            status: said.status.parse().unwrap_or_default(),
            id: if is_there(&said.id) { said.id.as_str().into() } else { "".into() },
        };
        self.requests.push(request);
    }
}

impl Said {
    fn is_request(&self) -> bool {
        self.start.is_some() && (self.total.is_some() || self.spans.iter().any(Option::is_some))
    }

    fn set(&mut self, name: &str, value: &str) {
        if let Some(index) = SPANS.iter().position(|span| *span == name) {
            self.spans[index] = micros(value);
            return;
        }
        match name {
            "start" => self.start = micros(value),
            "total" => self.total = micros(value),
            "missing" => self.missing = value.parse().ok(),
            "id" => value.clone_into(&mut self.id),
            "pool" => value.clone_into(&mut self.pool),
            "route" => value.clone_into(&mut self.route),
            "method" => value.clone_into(&mut self.method),
            "target" => value.clone_into(&mut self.target),
            "status" => value.clone_into(&mut self.status),
            _ => {}
        }
    }
}

fn is_there(value: &str) -> bool {
    !value.is_empty() && value != "-"
}

fn of_json(line: &str) -> Option<Said> {
    let mut said = Said::default();
    for (name, value) in serde_json::from_str::<Map<String, Value>>(line).ok()? {
        match value {
            Value::String(text) => said.set(&name, &text),
            Value::Number(number) => said.set(&name, &number.to_string()),
            _ => {}
        }
    }
    Some(said)
}

/// `name=value` anywhere outside quotation marks, and the request line in such.
fn of_text(line: &str) -> Said {
    let mut said = Said::default();
    if let Some(rest) = line.strip_prefix("maitred: ")
        && let Some((number, "lines are missing here, the log could not be written")) = rest.split_once(' ')
    {
        said.missing = number.parse().ok();
        return said;
    }
    let mut after_request = false;
    for token in tokens(line) {
        if let Some(request) = quoted(token) {
            let mut parts = request.split(' ');
            if said.method.is_empty()
                && let (Some(method), Some(target), Some(version)) =
                    (parts.next(), parts.next(), parts.next())
                && version.starts_with("HTTP/")
            {
                said.set("method", method);
                said.set("target", target);
                after_request = true;
            }
        } else if let Some((name, value)) = token.split_once('=') {
            said.set(name, quoted(value).unwrap_or(value));
        } else if std::mem::take(&mut after_request) {
            said.set("status", token);
        }
    }
    said
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// The parts between spaces. A space inside quotation marks does not separate; a backslash makes a mark ordinary.
fn tokens(line: &str) -> impl Iterator<Item = &str> {
    let (mut inside, mut escaped) = (false, false);
    line.split(move |character: char| {
        let is_mark = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        inside ^= is_mark;
        character == ' ' && !inside
    })
    .filter(|token| !token.is_empty())
}

/// Seconds with up to nine decimals as microseconds, without the errors of floating point.
pub(super) fn micros(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(decimals) {
        return None;
    }
    let digits: String = decimals.chars().chain("000000".chars()).take(6).collect();
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + digits.parse::<u64>().ok()?)
}
