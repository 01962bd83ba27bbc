//! What to send, how often and for how long.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str = "usage: openloop --connect 127.0.0.1:PORT [--path /] [--rate 4000] [--seconds 10] \
[--warm-up 1] [--connections 64] [--length BYTES] [--dump FILE] [--spin] [--closed DEPTH]
  --rate         requests per second over all connections
  --warm-up      seconds at the same rate before the measured ones; not counted
  --length       the body length every answer must have
  --dump         every measured latency as a little-endian 32-bit number of microseconds x 10
  --spin         poll without sleeping: steadier on an idle core, worse on a shared one
  --closed       no schedule: every connection always has so many requests on their way";

/// How long after the last due time an answer may still come; one that has not come by then has failed.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
    pub(crate) warm_up: f64,
    pub(crate) connections: usize,
    pub(crate) length: Option<usize>,
    pub(crate) dump: Option<PathBuf>,
    pub(crate) spin: bool,
    /// Pipelining depth of the closed loop; `None` is the open loop.
    pub(crate) closed: Option<usize>,
}

impl Plan {
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut plan = Self {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            path: "/".to_owned(),
            rate: 4000.0,
            seconds: 10.0,
            warm_up: 1.0,
            connections: 64,
            length: None,
            dump: None,
            spin: false,
            closed: None,
        };
        let mut arguments = arguments;
        while let Some(option) = arguments.next() {
            if option == "--spin" {
                plan.spin = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| wrong(&format!("{option} needs a value")))?;
            match option.as_str() {
                "--connect" => plan.address = parse(&option, &value)?,
                "--path" => plan.path = value,
                "--rate" => plan.rate = parse(&option, &value)?,
                "--seconds" => plan.seconds = parse(&option, &value)?,
                "--warm-up" => plan.warm_up = parse(&option, &value)?,
                "--connections" => plan.connections = parse(&option, &value)?,
                "--length" => plan.length = Some(parse(&option, &value)?),
                "--closed" => plan.closed = Some(parse(&option, &value)?),
                "--dump" => plan.dump = Some(PathBuf::from(value)),
                _ => return Err(wrong(&format!("unknown option {option}"))),
            }
        }
        plan.checked()
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
        if !positive || !self.path.starts_with('/') {
            return Err(wrong("rate, seconds and connections are positive; a path begins with /"));
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
        Duration::from_secs_f64(index as f64 / self.rate)
    }

    /// When to stop waiting for answers, counted from the start.
    pub(crate) fn end(&self) -> Duration {
        self.due(self.warm_up_requests() + self.measured_requests()) + GRACE
    }

    pub(crate) fn request(&self) -> Vec<u8> {
        format!("GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: openloop\r\n\r\n", self.path, self.address)
            .into_bytes()
    }
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
    fn only_loopback_is_loaded() {
        assert!(plan("--connect 192.0.2.1:80").is_err());
        assert!(plan("--connect 127.0.0.1:0").is_err());
        assert!(plan("--connect 127.0.0.1:1 --rate 0").is_err());
        assert!(plan("--connect [::1]:1").is_ok());
    }
}
