//! Asks for the same again and again over some connections, and tells how long each answer took: from before the first
//! byte of the request is sent until the last one of the answer is here. One thread goes round all connections and never
//! sleeps, so that neither its own wake-ups nor another of its threads are in any figure: its core must be its own. Whoever
//! takes that from it, for a slice of the scheduler, is in the figures of all requests under way.
//!
//! `stopwatch PORT PATH NAME CONNECTIONS COUNT [PIECES BYTES MICROSECONDS]` prints a line `ID NANOSECONDS` for each of COUNT
//! requests over each connection; the server gets the id, which begins with NAME, as `X-Request-ID`. With PIECES the body comes in
//! so many of so many bytes, so far apart.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Between an answer and the next request, at random, so that they do not meet the ticks of a clock.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

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
    start: Instant,
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
    let mut last = Instant::now();
    while !clients.is_empty() {
        for client in &mut clients {
            if let Some(nanos) = client.turn(&plan)? {
                taken.push((client.id(&plan), nanos));
                client.asked += 1;
                last = Instant::now();
            }
        }
        clients.retain(|client| client.asked < plan.count);
        if last.elapsed() > LIMIT {
            return Err("no answer".into());
        }
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
        let start = Instant::now();
        let chance = number as u64 + 1;
        Ok(Self { stream, number, asked: 0, start, state: State::Pausing { until: start }, chance })
    }

    fn id(&self, plan: &Plan) -> String {
        format!("{}-{}-{}", plan.name, self.number, self.asked)
    }

    /// Does what can be done without waiting; the nanoseconds of a request that has ended.
    fn turn(&mut self, plan: &Plan) -> Result<Option<u128>> {
        match &mut self.state {
            State::Pausing { until } if Instant::now() >= *until => self.begin(plan)?,
            State::Pausing { .. } => {}
            State::Sending { due, pieces } if Instant::now() >= *due => {
                self.stream.write_all(&plan.piece)?;
                *pieces -= 1;
                *due += plan.apart;
                if *pieces == 0 {
                    self.state = State::Receiving { head: Vec::new(), left: None };
                }
            }
            State::Sending { .. } => {}
            State::Receiving { .. } => {
                if let Some(end) = self.receive()? {
                    let pause = LONGEST_PAUSE.mul_f64(self.chance());
                    self.state = State::Pausing { until: end + pause };
                    return Ok(Some((end - self.start).as_nanos()));
                }
            }
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
