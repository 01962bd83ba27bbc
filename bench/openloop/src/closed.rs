//! The closed loop: every connection is busy all the time, with one request or a pipelined batch of them.
//!
//! Connecting and warming up are not measured. The lines `measuring` and `measured` mark the window on standard
//! output, so that the CPU time of the server can be read for the same window. The latency of a batch runs from its
//! sending to its last answer; such latencies say how long a queue is, not what an independent client would see.
//!
//! With `--spin` the generator never sleeps. A sleeping one must be woken by the server's write, and on loopback that
//! is CPU time of the server: a slow server would pay for it and a fast one would not.

use crate::connection::{Answer, parse};
use crate::plan::Plan;
use crate::report::{Outcome, say};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Events fetched by one wait: few enough that the sockets touched by the wait are still in the cache when they are
/// read.
const EVENTS: usize = 64;

/// One read; holds a batch of small answers. A shorter read has emptied the socket, so that edges are enough; levels
/// would have every socket looked at twice.
const READ_BYTES: usize = 256 * 1024;

pub(crate) struct Closed<'a> {
    plan: &'a Plan,
    depth: usize,
    batches: Vec<Batch>,
    /// Batches sent so far.
    sent: usize,
    epoll: OwnedFd,
    lanes: Vec<Lane>,
    buffer: Vec<u8>,
    shape: Shape,
    measuring: bool,
    requests: usize,
    outcome: Outcome,
}

/// A connection and the batch on its way.
struct Lane {
    stream: TcpStream,
    sent: Instant,
    awaited: usize,
    /// Which batch is on its way.
    batch: usize,
    /// The beginning of an answer that has not wholly come.
    partial: Vec<u8>,
}

impl<'a> Closed<'a> {
    pub(crate) fn new(plan: &'a Plan, depth: usize) -> io::Result<Self> {
        let mut closed = Self {
            plan,
            depth,
            batches: (0..plan.requests.len()).map(|first| Batch::new(plan, first, depth)).collect(),
            sent: 0,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            lanes: Vec::with_capacity(plan.connections),
            buffer: vec![0; READ_BYTES],
            shape: Shape::default(),
            measuring: false,
            requests: 0,
            outcome: Outcome::default(),
        };
        for place in 0..plan.connections {
            let lane = closed.open(place)?;
            closed.lanes.push(lane);
        }
        Ok(closed)
    }

    pub(crate) fn run(mut self) -> io::Result<Outcome> {
        for place in 0..self.lanes.len() {
            self.send(place)?;
        }
        self.turn_until(Duration::from_secs_f64(self.plan.warm_up))?;
        self.measuring = true;
        say("measuring")?;
        let start = Instant::now();
        self.turn_until(Duration::from_secs_f64(self.plan.seconds))?;
        self.outcome.seconds = start.elapsed().as_secs_f64();
        say("measured")?;
        let failed = self.outcome.wrong + self.outcome.broken;
        self.outcome.answered = self.requests;
        self.outcome.finish(self.outcome.latencies.len() + failed);
        Ok(self.outcome)
    }

    fn turn_until(&mut self, length: Duration) -> io::Result<()> {
        let start = Instant::now();
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        while let Some(left) = length.checked_sub(start.elapsed()) {
            let left = if self.plan.spin { Duration::ZERO } else { left };
            let sleep =
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&sleep)) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            for event in &events {
                let place = usize::try_from(event.data.u64()).unwrap_or_default();
                if self.receive(place).is_err() {
                    self.outcome.broken += usize::from(self.measuring);
                    self.outcome.reconnects += 1;
                    let lane = self.open(place)?;
                    if let Some(old) = self.lanes.get_mut(place) {
                        *old = lane;
                    }
                    self.send(place)?;
                }
            }
        }
        Ok(())
    }

    fn open(&self, place: usize) -> io::Result<Lane> {
        let stream = TcpStream::connect(self.plan.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll::add(&self.epoll, &stream, EventData::new_u64(place as u64), EventFlags::IN | EventFlags::ET)?;
        Ok(Lane { stream, sent: Instant::now(), awaited: 0, batch: 0, partial: Vec::new() })
    }

    fn send(&mut self, place: usize) -> io::Result<()> {
        let Some(lane) = self.lanes.get_mut(place) else { return Ok(()) };
        lane.sent = Instant::now();
        lane.awaited = self.depth;
        lane.batch = self.sent % self.batches.len();
        self.sent += 1;
        // A batch of requests of some kilobytes fits the empty socket buffer of a connection without a request.
        self.batches.get(lane.batch).map_or(Ok(()), |batch| lane.stream.write_all(&batch.bytes))
    }

    /// Reads until nothing is left, because an edge comes once; whatever filled the buffer may have more behind it.
    fn receive(&mut self, place: usize) -> io::Result<()> {
        while let Some(lane) = self.lanes.get_mut(place) {
            let length = match lane.stream.read(&mut self.buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            self.take(place, length)?;
            if length < self.buffer.len() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts the answers that are complete with the first `length` bytes of the buffer.
    fn take(&mut self, place: usize, length: usize) -> io::Result<()> {
        let Some(lane) = self.lanes.get_mut(place) else { return Ok(()) };
        let fresh = self.buffer.get(..length).unwrap_or_default();
        let mut joined = std::mem::take(&mut lane.partial);
        let mut rest = if joined.is_empty() {
            fresh
        } else {
            joined.extend_from_slice(fresh);
            &joined
        };
        while let Some((answer, size)) = self.shape.first(rest)? {
            rest = rest.get(size..).unwrap_or_default();
            if lane.awaited == 0 || answer.closes {
                return Err(ErrorKind::InvalidData.into());
            }
            let expected =
                self.batches.get(lane.batch).and_then(|batch| batch.lengths.get(self.depth - lane.awaited));
            lane.awaited -= 1;
            let right = answer.status == 200
                && expected.copied().flatten().is_none_or(|length| length == answer.length);
            if self.measuring {
                self.requests += usize::from(right);
                self.outcome.wrong += usize::from(!right);
            }
        }
        // A large answer comes in many parts: what is gathered of it stays where it is.
        lane.partial = if !joined.is_empty() && rest.len() == joined.len() { joined } else { rest.to_vec() };
        if lane.awaited == 0 {
            if self.measuring {
                self.outcome.latencies.push(lane.sent.elapsed());
            }
            return self.send(place);
        }
        Ok(())
    }
}

/// Requests that are sent at once, and the body lengths of their answers.
struct Batch {
    bytes: Vec<u8>,
    lengths: Vec<Option<usize>>,
}

impl Batch {
    fn new(plan: &Plan, first: usize, depth: usize) -> Self {
        let requests = || (first..first + depth).filter_map(|index| plan.request(index));
        Self {
            bytes: requests().flat_map(|request| &request.bytes).copied().collect(),
            lengths: requests().map(|request| request.length).collect(),
        }
    }
}

/// What the last answer looked like: nearly every answer is the same but for its date, and need not be parsed.
#[derive(Default)]
struct Shape {
    /// The status line.
    start: Vec<u8>,
    /// Offset and text of the Content-Length line with the line ends around it.
    framing: (usize, Vec<u8>),
    head: usize,
    length: usize,
}

impl Shape {
    /// The first answer in `bytes` and its size, once it is complete.
    fn first(&mut self, bytes: &[u8]) -> io::Result<Option<(Answer, usize)>> {
        if self.fits(bytes) {
            let answer = Answer { status: 200, length: self.length, closes: false };
            let size = self.head + self.length;
            return Ok((bytes.len() >= size).then_some((answer, size)));
        }
        let Some((answer, head)) = parse(bytes)? else { return Ok(None) };
        if answer.status == 200 && !answer.closes {
            self.learn(bytes.get(..head).unwrap_or_default(), answer.length);
        }
        let size = head + answer.length;
        Ok((bytes.len() >= size).then_some((answer, size)))
    }

    fn fits(&self, bytes: &[u8]) -> bool {
        let (at, line) = &self.framing;
        self.head > 0
            && bytes.starts_with(&self.start)
            && bytes.get(*at..at + line.len()).is_some_and(|there| there == line)
            && bytes.get(self.head - 4..self.head).is_some_and(|there| there == b"\r\n\r\n")
    }

    fn learn(&mut self, head: &[u8], length: usize) {
        let lower = head.to_ascii_lowercase();
        let Some(at) = lower.windows(17).position(|window| window == b"\r\ncontent-length:") else { return };
        let rest = head.get(at + 2..).unwrap_or_default();
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else { return };
        self.start = head.split(|&byte| byte == b'\r').next().unwrap_or_default().to_vec();
        self.framing = (at, head.get(at..at + end + 4).unwrap_or_default().to_vec());
        self.head = head.len();
        self.length = length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 6\r\nETag: \"a\"\r\n\r\nhello\n";

    #[test]
    fn a_learnt_shape_still_sees_every_difference() {
        let mut shape = Shape::default();
        let expected = Some((Answer { status: 200, length: 6, closes: false }, ANSWER.len()));
        assert_eq!(shape.first(ANSWER).expect("no error"), expected);
        let later = String::from_utf8_lossy(ANSWER).replace("08:49:37", "09:00:00");
        assert!(shape.fits(later.as_bytes()));
        assert_eq!(shape.first(later.as_bytes()).expect("no error"), expected);
        for (old, new) in [("200", "304"), ("Length: 6", "Length: 5"), ("\"a\"", "\"ab\"")] {
            let other = String::from_utf8_lossy(ANSWER).replace(old, new);
            assert!(!shape.fits(other.as_bytes()), "{new}");
        }
    }

    #[test]
    fn answers_larger_than_the_buffer_are_read_whole() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let mut answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 4 * READ_BYTES).into_bytes();
            answer.resize(answer.len() + 4 * READ_BYTES, b'x');
            let (mut stream, _) = listener.accept().expect("a connection");
            while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) && stream.write_all(&answer).is_ok()
            {
            }
        });
        let words = format!("--connect {address} --rate 1 --seconds 1 --connections 1 --closed 1");
        let plan = Plan::from_arguments(words.split(' ').map(str::to_owned)).expect("a plan");
        let mut closed = Closed::new(&plan, 1).expect("a client");
        closed.measuring = true;
        closed.send(0).expect("a request");
        // With one look for each edge the connection stands still as soon as its window is larger than the buffer.
        let start = Instant::now();
        while closed.requests < 200 && start.elapsed() < Duration::from_secs(60) {
            closed.turn_until(Duration::from_millis(20)).expect("no error");
        }
        assert!(closed.requests >= 200, "{} answers", closed.requests);
        assert_eq!((closed.outcome.wrong, closed.outcome.broken), (0, 0));
    }

    #[test]
    fn an_incomplete_answer_is_awaited() {
        let mut shape = Shape::default();
        for known in [false, true] {
            for split in 0..ANSWER.len() {
                let part = ANSWER.get(..split).expect("a part");
                assert_eq!(
                    shape.first(part).expect("no error"),
                    None,
                    "split at {split}, shape known: {known}"
                );
            }
            shape.first(ANSWER).expect("no error");
        }
    }
}
