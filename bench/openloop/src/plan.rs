//! What to send, how often and for how long.

use crate::requests::{self, Request};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str =
    "usage: openloop --connect 127.0.0.1:PORT [--path / | --requests FILE] [--rate 4000] [--seconds 10] \
[--warm-up 1] [--connections 64] [--length BYTES] [--dump FILE] [--spin] [--closed DEPTH] [--poisson SEED]
[--class 'NAME [rate=R] clients=N PATH']... [--outstanding FILE]
  --rate         requests per second over all connections
  --warm-up      seconds at the same rate before the measured ones; not counted
  --length       the body length every answer must have
  --dump         every measured latency as a little-endian 32-bit number of microseconds x 10
  --spin         poll without sleeping: steadier on an idle core, worse on a shared one
  --closed       no schedule: every connection always has so many requests on their way
  --poisson      due times at random intervals, the same ones for the same seed
  --requests     the requests to send, in turn: see requests.rs
  --class        instead of one path: clients in a closed loop or, with a rate, on a schedule (--poisson); see mix.rs
  --outstanding  classes: where to tell how many requests have no answer yet";

/// How long after the last due time an answer may still come; one that has not come by then has failed.
const GRACE: Duration = Duration::from_secs(5);

/// One kind of requests among several.
#[derive(Debug, PartialEq)]
pub(crate) struct Class {
    pub(crate) name: String,
    /// Requests a second; `None` is a closed loop.
    pub(crate) rate: Option<f64>,
    /// Connections.
    pub(crate) clients: usize,
    pub(crate) path: String,
}

impl Class {
    /// `NAME [rate=R] clients=N PATH`
    fn from_words(words: &str) -> io::Result<Self> {
        let mut parts = words.split(' ');
        let mut class = Self {
            name: parts.next().unwrap_or_default().to_owned(),
            rate: None,
            clients: 0,
            path: String::new(),
        };
        for part in parts {
            match part.split_once('=') {
                Some(("rate", rate)) => class.rate = Some(parse("rate", rate)?),
                Some(("clients", clients)) => class.clients = parse("clients", clients)?,
                _ if part.starts_with('/') => part.clone_into(&mut class.path),
                _ => return Err(wrong(&format!("a class has no {part}"))),
            }
        }
        let whole = !class.name.is_empty() && class.clients > 0 && !class.path.is_empty();
        if whole && class.rate.is_none_or(|rate| rate > 0.0) {
            Ok(class)
        } else {
            Err(wrong(&format!("a class needs a name, clients and a path: {words}")))
        }
    }
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) address: SocketAddr,
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
    pub(crate) warm_up: f64,
    pub(crate) connections: usize,
    /// At least one.
    pub(crate) requests: Vec<Request>,
    pub(crate) dump: Option<PathBuf>,
    pub(crate) spin: bool,
    /// Pipelining depth of the closed loop; `None` is the open loop.
    pub(crate) closed: Option<usize>,
    /// The seed of schedules.
    pub(crate) seed: Option<u64>,
    /// The body length every answer must have; of classes, and of a single path.
    pub(crate) length: Option<usize>,
    /// Several kinds of requests at once.
    pub(crate) classes: Vec<Class>,
    /// Where to tell how many requests have no answer yet.
    pub(crate) outstanding: Option<PathBuf>,
    /// Due times of a Poisson process; empty for equal intervals.
    schedule: Vec<Duration>,
}

impl Plan {
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut plan = Self {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            rate: 4000.0,
            seconds: 10.0,
            warm_up: 1.0,
            connections: 64,
            requests: Vec::new(),
            dump: None,
            spin: false,
            closed: None,
            seed: None,
            length: None,
            classes: Vec::new(),
            outstanding: None,
            schedule: Vec::new(),
        };
        let mut path = "/".to_owned();
        let mut arguments = arguments;
        while let Some(option) = arguments.next() {
            if option == "--spin" {
                plan.spin = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| wrong(&format!("{option} needs a value")))?;
            match option.as_str() {
                "--connect" => plan.address = parse(&option, &value)?,
                "--path" => path = value,
                "--rate" => plan.rate = parse(&option, &value)?,
                "--seconds" => plan.seconds = parse(&option, &value)?,
                "--warm-up" => plan.warm_up = parse(&option, &value)?,
                "--connections" => plan.connections = parse(&option, &value)?,
                "--length" => plan.length = Some(parse(&option, &value)?),
                "--closed" => plan.closed = Some(parse(&option, &value)?),
                "--poisson" => plan.seed = Some(parse(&option, &value)?),
                "--class" => plan.classes.push(Class::from_words(&value)?),
                "--outstanding" => plan.outstanding = Some(PathBuf::from(value)),
                "--requests" => plan.requests = requests::from_file(&PathBuf::from(value))?,
                "--dump" => plan.dump = Some(PathBuf::from(value)),
                _ => return Err(wrong(&format!("unknown option {option}"))),
            }
        }
        if !path.starts_with('/') {
            return Err(wrong("a path begins with /"));
        }
        let mut plan = plan.checked()?;
        if plan.requests.is_empty() {
            plan.requests.push(Request { bytes: plan.get(&path), length: plan.length, background: false });
        }
        if let Some(seed) = plan.seed.filter(|_| plan.classes.is_empty()) {
            plan.schedule = poisson(seed, plan.rate, plan.warm_up_requests() + plan.measured_requests());
        }
        Ok(plan)
    }

    fn checked(self) -> io::Result<Self> {
        let positive = self.rate > 0.0
            && self.seconds > 0.0
            && self.warm_up >= 0.0
            && self.connections > 0
            && self.closed != Some(0);
        if !self.address.ip().is_loopback() || self.address.port() == 0 {
            return Err(wrong("--connect needs a loopback address and a port"));
        }
        if !positive {
            return Err(wrong("rate, seconds and connections are positive"));
        }
        Ok(self)
    }

    /// Requests sent before the measured ones.
    pub(crate) fn warm_up_requests(&self) -> usize {
        (self.rate * self.warm_up) as usize
    }

    pub(crate) fn measured_requests(&self) -> usize {
        ((self.rate * self.seconds) as usize).max(1)
    }

    /// Due time of request `index`, counted from the start.
    pub(crate) fn due(&self, index: usize) -> Duration {
        let regular = || Duration::from_secs_f64(index as f64 / self.rate);
        self.schedule.get(index).copied().unwrap_or_else(regular)
    }

    /// When to stop waiting for answers, counted from the start.
    pub(crate) fn end(&self) -> Duration {
        self.due(self.warm_up_requests() + self.measured_requests() - 1) + GRACE
    }

    /// The request with this number.
    pub(crate) fn request(&self, index: usize) -> Option<&Request> {
        self.requests.get(index % self.requests.len())
    }

    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: openloop\r\n\r\n", self.address).into_bytes()
    }
}

/// Due times with exponential intervals (xorshift64*, inverse of the distribution).
pub(crate) fn poisson(seed: u64, rate: f64, count: usize) -> Vec<Duration> {
    let (mut state, mut due) = (seed.wrapping_mul(2).wrapping_add(1), 0.0);
    let intervals = std::iter::repeat_with(|| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let unit = (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - unit).ln() / rate
    });
    let times = intervals.take(count).map(|interval| {
        due += interval;
        Duration::from_secs_f64(due)
    });
    times.collect()
}

fn parse<T: std::str::FromStr>(option: &str, value: &str) -> io::Result<T> {
    value.parse().map_err(|_| wrong(&format!("{option} cannot be {value}")))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{what}\n{USAGE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> io::Result<Plan> {
        Plan::from_arguments(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_schedule_does_not_drift() {
        let plan = plan("--connect 127.0.0.1:1 --rate 4000 --seconds 60").expect("a plan");
        assert_eq!(plan.due(4000), Duration::from_secs(1));
        assert_eq!(plan.due(240_000), Duration::from_secs(60));
        assert_eq!(plan.measured_requests(), 240_000);
    }

    #[test]
    fn a_poisson_schedule_keeps_the_rate_and_repeats() {
        let words = "--connect 127.0.0.1:1 --rate 400 --seconds 100 --warm-up 0 --poisson";
        let one = plan(&format!("{words} 7")).expect("a plan");
        let last = one.due(one.measured_requests() - 1).as_secs_f64();
        assert!((98.0..102.0).contains(&last), "40,000 intervals of 2.5 ms take {last} s");
        assert!(one.schedule.is_sorted());
        assert_eq!(one.schedule, plan(&format!("{words} 7")).expect("a plan").schedule);
        assert_ne!(one.schedule, plan(&format!("{words} 8")).expect("a plan").schedule);
    }

    #[test]
    fn a_class_has_a_name_clients_and_a_path() {
        let class = Class::from_words("wait rate=2.5 clients=6 /wait?ms=50").expect("a class");
        let expected =
            Class { name: "wait".to_owned(), rate: Some(2.5), clients: 6, path: "/wait?ms=50".to_owned() };
        assert_eq!(class, expected);
        assert!(Class::from_words("wait clients=6 /").expect("a class").rate.is_none());
        for wrong in ["", "wait clients=6", "wait /", "wait clients=6 / more", "wait rate=0 clients=6 /"] {
            assert!(Class::from_words(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_loopback_is_loaded() {
        assert!(plan("--connect 192.0.2.1:80").is_err());
        assert!(plan("--connect 127.0.0.1:0").is_err());
        assert!(plan("--connect 127.0.0.1:1 --rate 0").is_err());
        assert!(plan("--connect [::1]:1").is_ok());
    }
}
