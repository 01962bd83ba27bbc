//! Asks for the same again and again over some connections, and tells how long each answer took: from before the first
//! byte of the request is sent until the last one of the answer is here. One thread goes round all connections and never
//! sleeps, so that neither its own wake-ups nor another of its threads are in any figure: its core must be its own. When
//! another program takes that from it in the moment in which a request goes or its answer comes, it cannot tell how long that
//! one took, and asks again.
//!
//! `stopwatch PORT PATH NAME CONNECTIONS COUNT [PIECES BYTES MICROSECONDS]` prints a line `ID NANOSECONDS` for each of COUNT
//! requests over each connection; the server gets the id, which begins with NAME, as `X-Request-ID`. With PIECES the body comes in
//! so many of so many bytes, so far apart. Standard error has the number of requests that were asked again, if any.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Between an answer and the next request, at random, so that they do not meet the ticks of a clock.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// How exactly a time has to be known: when the answer is found, the connection has been looked at in vain so short a time
/// before. Half of what `bench/spans` allows the server.
const EXACT: Duration = Duration::from_micros(100);

/// What sending takes at most: in a virtual machine, to wake the server's halted processor takes hundreds of microseconds, but
/// the server has the request by then.
const SENDING: Duration = Duration::from_micros(400);

/// Requests for each that is wanted; from then on all count.
const MOST_TRIES: usize = 10;

/// Without an answer for so long it gives up.
const LIMIT: Duration = Duration::from_secs(30);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Plan {
    path: String,
    name: String,
    count: usize,
    pieces: usize,
    piece: Vec<u8>,
    apart: Duration,
}

enum State {
    Pausing { until: Instant },
    Sending { due: Instant, pieces: usize },
    Receiving { head: Vec<u8>, left: Option<usize> },
}

struct Client {
    stream: TcpStream,
    number: usize,
    asked: usize,
    told: usize,
    start: Instant,
    /// How exactly the time is known so far.
    unknown: Duration,
    /// When the connection was last looked at in vain.
    looked: Instant,
    state: State,
    chance: u64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "stopwatch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word =
        |index: usize| words.get(index).ok_or("PORT PATH NAME CONNECTIONS COUNT [PIECES BYTES MICROSECONDS]");
    let drips = words.len() > 5;
    let number = |index: usize| -> Result<usize> {
        if index > 4 && !drips { Ok(0) } else { Ok(word(index)?.parse()?) }
    };
    let plan = Plan {
        path: word(1)?.clone(),
        name: word(2)?.clone(),
        count: number(4)?,
        pieces: number(5)?,
        piece: vec![b'x'; number(6)?],
        apart: Duration::from_micros(number(7)? as u64),
    };
    let port = word(0)?.parse()?;
    let mut clients =
        (0..number(3)?).map(|number| Client::new(port, number)).collect::<io::Result<Vec<_>>>()?;
    let mut taken = Vec::with_capacity(clients.len() * plan.count);
    let mut again = 0;
    let mut last = Instant::now();
    while !clients.is_empty() {
        for client in &mut clients {
            if let Some(time) = client.turn(&plan)? {
                if client.unknown <= EXACT || client.asked >= MOST_TRIES * plan.count {
                    taken.push((client.id(&plan), time.as_nanos()));
                    client.told += 1;
                } else {
                    again += 1;
                }
                client.asked += 1;
                last = Instant::now();
            }
        }
        clients.retain(|client| client.told < plan.count);
        if last.elapsed() > LIMIT {
            return Err("no answer".into());
        }
    }
    if again > 0 {
        writeln!(io::stderr(), "{again}")?;
    }
    let mut out = io::stdout().lock();
    for (id, nanos) in taken {
        writeln!(out, "{id} {nanos}")?;
    }
    Ok(())
}

impl Client {
    fn new(port: u16, number: usize) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let now = Instant::now();
        let state = State::Pausing { until: now };
        let (unknown, chance) = (Duration::ZERO, number as u64 + 1);
        Ok(Self { stream, number, asked: 0, told: 0, start: now, unknown, looked: now, state, chance })
    }

    fn id(&self, plan: &Plan) -> String {
        format!("{}-{}-{}", plan.name, self.number, self.asked)
    }

    /// Does what can be done without waiting; the time of a request that has ended.
    fn turn(&mut self, plan: &Plan) -> Result<Option<Duration>> {
        let now = Instant::now();
        match &mut self.state {
            State::Pausing { until } if now >= *until => self.begin(plan)?,
            State::Pausing { .. } => {}
            State::Sending { due, pieces } if now >= *due => {
                self.stream.write_all(&plan.piece)?;
                *pieces -= 1;
                *due += plan.apart;
                if *pieces == 0 {
                    self.looked = now;
                    self.state = State::Receiving { head: Vec::new(), left: None };
                }
            }
            State::Sending { .. } => {}
            State::Receiving { .. } => match self.receive()? {
                // The time before the look, not after: the core may be lost in between.
                None => self.looked = now,
                Some(end) => {
                    let pause = LONGEST_PAUSE.mul_f64(self.chance());
                    self.state = State::Pausing { until: end + pause };
                    self.unknown = self.unknown.max(end - self.looked);
                    return Ok(Some(end - self.start));
                }
            },
        }
        Ok(None)
    }

    fn begin(&mut self, plan: &Plan) -> Result<()> {
        let length = plan.pieces * plan.piece.len();
        let (method, body) = if length > 0 {
            ("POST", format!("Content-Length: {length}\r\n"))
        } else {
            ("GET", String::new())
        };
        let head = format!(
            "{method} {} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: {}\r\n{body}\r\n",
            plan.path,
            self.id(plan)
        );
        self.start = Instant::now();
        self.stream.write_all(head.as_bytes())?;
        self.looked = Instant::now();
        self.unknown = (self.looked - self.start).saturating_sub(SENDING);
        self.state = match plan.pieces {
            0 => State::Receiving { head: Vec::new(), left: None },
            pieces => State::Sending { due: self.start + plan.apart, pieces },
        };
        Ok(())
    }

    /// Takes what is there; the time at which the answer was whole.
    fn receive(&mut self) -> Result<Option<Instant>> {
        let mut buffer = [0; 16 * 1024];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let end = Instant::now();
        let State::Receiving { head, left } = &mut self.state else { return Ok(None) };
        let missing = match left {
            Some(left) => left.checked_sub(count),
            None => {
                head.extend_from_slice(&buffer[..count]);
                let Some(at) = head.windows(4).position(|window| window == b"\r\n\r\n") else {
                    return Ok(None);
                };
                let text = std::str::from_utf8(&head[..at])?;
                if !text.starts_with("HTTP/1.1 200 ") {
                    return Err(format!("wrong answer: {text}").into());
                }
                let length = text.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.trim())
                });
                let length: usize = length.ok_or("an answer without Content-Length")?.parse()?;
                length.checked_sub(head.len() - at - 4)
            }
        };
        let missing = missing.ok_or("more came than was declared")?;
        *left = Some(missing);
        Ok((missing == 0).then_some(end))
    }

    /// Evenly from 0 to 1 (xorshift64, Marsaglia 2003).
    fn chance(&mut self) -> f64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 11) as f64 / (1_u64 << 53) as f64
    }
}
