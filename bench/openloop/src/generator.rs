//! The loop: send what is due, take what has come, sleep until one or the other.

use crate::connection::{Answer, Connection};
use crate::plan::Plan;
use crate::report::Outcome;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

pub(crate) struct Generator<'a> {
    plan: &'a Plan,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Idle connections, the longest idle first: every connection is used.
    idle: VecDeque<usize>,
    next: usize,
    answered: usize,
    start: Instant,
    outcome: Outcome,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(plan: &'a Plan) -> io::Result<Self> {
        // The kernel may stretch a sleep by the slack, 50 microseconds by default: a tenth of the figures here.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut generator = Self {
            plan,
            epoll,
            connections: Vec::new(),
            idle: (0..plan.connections).collect(),
            next: 0,
            answered: 0,
            start: Instant::now(),
            outcome: Outcome::with_capacity(plan.measured_requests()),
        };
        for place in 0..plan.connections {
            let connection = generator.open(place)?;
            generator.connections.push(connection);
        }
        Ok(generator)
    }

    pub(crate) fn run(mut self) -> io::Result<Outcome> {
        let total = self.plan.warm_up_requests() + self.plan.measured_requests();
        let mut events: Vec<Event> = Vec::with_capacity(256);
        self.start = Instant::now();
        while self.answered < total && self.start.elapsed() < self.plan.end() {
            self.send_due(total)?;
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&self.sleep(total))) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            for event in &events {
                self.receive(usize::try_from(event.data.u64()).unwrap_or_default())?;
            }
        }
        self.outcome.seconds = self.start.elapsed().as_secs_f64() - self.plan.warm_up;
        self.outcome.finish(self.plan.measured_requests());
        Ok(self.outcome)
    }

    fn send_due(&mut self, total: usize) -> io::Result<()> {
        while self.next < total {
            let (due, now) = (self.plan.due(self.next), self.start.elapsed());
            if due > now {
                break;
            }
            let Some(place) = self.idle.pop_front() else { break };
            let index = self.next;
            self.next += 1;
            let sent = self
                .connections
                .get_mut(place)
                .zip(self.plan.request(index))
                .map(|(connection, request)| connection.send(index, &request.bytes));
            if index >= self.plan.warm_up_requests() {
                self.outcome.lag.push(now - due);
            }
            if let Some(Err(_)) = sent {
                self.replace(place, Some(index))?;
            }
        }
        Ok(())
    }

    /// Until the next request is due; for ever-busy connections until an answer or the end.
    fn sleep(&self, total: usize) -> Timespec {
        let now = self.start.elapsed();
        let until = if self.next < total && !self.idle.is_empty() {
            self.plan.due(self.next)
        } else {
            self.plan.end()
        };
        let sleep = if self.plan.spin { Duration::ZERO } else { until.saturating_sub(now) };
        Timespec { tv_sec: sleep.as_secs().cast_signed(), tv_nsec: sleep.subsec_nanos().into() }
    }

    fn receive(&mut self, place: usize) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(place) else { return Ok(()) };
        let answer = connection.receive();
        let index = connection.waiting_for;
        match (answer, index) {
            (Ok(None), _) => Ok(()),
            (Ok(Some(answer)), Some(index)) => {
                connection.waiting_for = None;
                self.note(index, &answer);
                if answer.closes {
                    return self.replace(place, None);
                }
                self.idle.push_back(place);
                Ok(())
            }
            (Ok(Some(_)) | Err(_), index) => {
                // An idle connection that ends is among the idle ones already; a busy one goes back to them.
                if index.is_none() {
                    self.idle.retain(|&other| other != place);
                }
                self.replace(place, index)
            }
        }
    }

    fn note(&mut self, index: usize, answer: &Answer) {
        let latency = self.start.elapsed().saturating_sub(self.plan.due(index));
        self.answered += 1;
        if index < self.plan.warm_up_requests() {
            return;
        }
        let Some(request) = self.plan.request(index) else { return };
        let right = answer.status == 200 && request.length.is_none_or(|length| length == answer.length);
        match (right, request.background) {
            (true, false) => self.outcome.latencies.push(latency),
            (true, true) => self.outcome.background.push(latency),
            (false, _) => self.outcome.wrong += 1,
        }
    }

    /// A new connection in the place of one that ended; its request, if any, has failed.
    fn replace(&mut self, place: usize, failed: Option<usize>) -> io::Result<()> {
        if let Some(index) = failed {
            self.answered += 1;
            self.outcome.broken += usize::from(index >= self.plan.warm_up_requests());
        }
        self.outcome.reconnects += 1;
        let connection = self.open(place)?;
        if let Some(old) = self.connections.get_mut(place) {
            *old = connection;
        }
        self.idle.push_back(place);
        Ok(())
    }

    fn open(&self, place: usize) -> io::Result<Connection> {
        let connection = Connection::open(self.plan.address)?;
        epoll::add(&self.epoll, &connection.stream, EventData::new_u64(place as u64), EventFlags::IN)?;
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

    /// Serves one connection; `stall` runs before the answer with that number.
    fn server(stall: impl Fn(usize) + Send + 'static) -> Plan {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut number = 0;
            let mut buffer = [0; 1024];
            while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                stall(number);
                number += 1;
                if stream.write_all(ANSWER).is_err() {
                    break;
                }
            }
        });
        let words =
            format!("--connect {address} --rate 1000 --seconds 0.2 --warm-up 0 --connections 1 --length 6");
        Plan::from_arguments(words.split(' ').map(str::to_owned)).expect("a plan")
    }

    #[test]
    fn every_scheduled_request_is_answered() {
        let plan = server(|_| {});
        let outcome = Generator::new(&plan).expect("a generator").run().expect("an outcome");
        assert_eq!((outcome.latencies.len(), outcome.wrong, outcome.broken), (200, 0, 0));
        assert!(outcome.seconds > 0.19, "the schedule was kept: {}", outcome.seconds);
    }

    #[test]
    fn a_stall_is_charged_to_every_request_it_delayed() {
        let plan = server(|number| {
            if number == 50 {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let outcome = Generator::new(&plan).expect("a generator").run().expect("an outcome");
        let slow = outcome.latencies.iter().filter(|latency| **latency > Duration::from_millis(50)).count();
        assert!(slow >= 40, "about 50 requests were due in the first half of the stall, {slow} were charged");
    }

    #[test]
    fn a_wrong_length_is_not_a_success() {
        let mut plan = server(|_| {});
        plan.requests[0].length = Some(7);
        let outcome = Generator::new(&plan).expect("a generator").run().expect("an outcome");
        assert_eq!((outcome.latencies.len(), outcome.wrong), (0, 200));
    }
}
