//! Load by WebSockets that are sent messages which they are to send back: each connection has one on its way all the time, or none.
//!
//! ```text
//! sockets PORT PATH FILE CONNECTIONS plain|deflate load SECONDS
//! sockets PORT PATH FILE CONNECTIONS plain|deflate idle SECONDS
//! ```
//! FILE has the messages, which each connection sends in turn: text, and its compressed form (RFC 7692 §7.2.1, a window of 4 KiB at most), each behind its length
//! (u32, little-endian). The first answer on a connection is compared with what was sent. Of the others only the length is looked at, and none is
//! opened. `open` is printed when all connections are there and have had that answer. `idle` then only answers pings, until it is ended, at the latest
//! after SECONDS. `load` warms up, and never sleeps: a server need not wake it. It prints `measuring` and `measured`, between which the server's CPU time counts, and lines
//! with what there was in between: `answered`, `seconds`, `bytes` (of the answers' payload as it came), `compressed` (answers), `idle` (the part of the
//! time in which nothing had come). Any answer that is wrong, and any connection that ends, ends it with an error.

mod client;
mod frames;

use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::time::Timespec;

use client::{Client, Sent, Work};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The part of the time before measuring, in which everything comes to its pace.
const WARM_UP: f64 = 0.25;

/// So often each connection has an answer while the server is measured, on average, also if that takes up to `PATIENCE` longer: what the
/// server has read and not answered at the end is then as little as what it had read before. Before measuring, once.
const ROUNDS: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(10);

/// So long without any answer, and the server is given up.
const LIMIT: Duration = Duration::from_secs(10);

/// Opened at once: fewer than any server lets wait.
const OPENED: usize = 32;

/// Events of one wait: few enough that the sockets which it has touched are still in the cache when they are read.
const EVENTS: usize = 64;

/// Of one read: more than a message has.
const READ: usize = 256 << 10;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sockets: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let usage = "PORT PATH FILE CONNECTIONS plain|deflate load|idle SECONDS";
    let [port, path, file, connections, form @ ("plain" | "deflate"), kind, seconds] = words[..] else {
        return Err(usage.into());
    };
    let deflates = form == "deflate";
    let work = Work {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?)),
        path: path.to_owned(),
        messages: messages(&std::fs::read(file)?, deflates)?,
        deflates,
    };
    let length = Duration::from_secs_f64(seconds.parse()?);
    match kind {
        "load" => Load::open(work, connections.parse()?)?.measure(length),
        "idle" => Load::open(work, connections.parse()?)?.stay(length),
        _ => Err(usage.into()),
    }
}

/// The messages of a file.
fn messages(mut bytes: &[u8], deflates: bool) -> Result<Vec<Sent>> {
    let mut part = || -> Result<Option<&[u8]>> {
        let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*length))?;
        let (part, rest) = rest.split_at_checked(length).ok_or("the file of messages is cut off")?;
        bytes = rest;
        Ok(Some(part))
    };
    let mut messages = Vec::new();
    while let Some(text) = part()? {
        let compressed = part()?.ok_or("the file of messages is cut off")?;
        let frame = match deflates {
            true => frames::masked(frames::COMPRESSED_TEXT, compressed),
            false => frames::masked(frames::TEXT, text),
        };
        messages.push(Sent { text: text.to_vec(), frame });
    }
    if messages.is_empty() { Err("no messages".into()) } else { Ok(messages) }
}

/// What has happened so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    answered: u64,
    bytes: u64,
    compressed: u64,
    /// Time in which nothing had come.
    idle: Duration,
}

struct Load {
    work: Work,
    poll: Poll,
    clients: Vec<Client>,
    buffer: Vec<u8>,
    counts: Counts,
    /// Another message follows an answer.
    asks: bool,
    /// When something came last.
    heard: Instant,
}

impl Load {
    /// Opens all connections, and has the first answer on each.
    fn open(work: Work, connections: usize) -> Result<Self> {
        let mut load = Self {
            work,
            poll: Poll::new()?,
            clients: Vec::with_capacity(connections),
            buffer: vec![0; READ],
            counts: Counts::default(),
            asks: false,
            heard: Instant::now(),
        };
        while load.clients.len() < connections {
            for place in load.clients.len()..connections.min(load.clients.len() + OPENED) {
                let client = Client::open(&load.work, place)?;
                load.poll.watch(&client, place as u64)?;
                load.clients.push(client);
            }
            while load.counts.answered < load.clients.len() as u64 {
                load.turn(LIMIT)?;
            }
        }
        say("open\n")?;
        Ok(load)
    }

    fn measure(mut self, length: Duration) -> Result<()> {
        self.asks = true;
        for client in &mut self.clients {
            client.ask(&self.work)?;
        }
        let each = self.clients.len() as u64;
        self.until(Instant::now() + length.mul_f64(WARM_UP), each)?;
        say("measuring\n")?;
        let (begin, before) = (Instant::now(), self.counts);
        self.until(begin + length, ROUNDS * each)?;
        let (seconds, after) = (begin.elapsed().as_secs_f64(), self.counts);
        say("measured\n")?;
        say(&format!(
            "answered {}\nseconds {seconds}\nbytes {}\ncompressed {}\nidle {:.3}\n",
            after.answered - before.answered,
            after.bytes - before.bytes,
            after.compressed - before.compressed,
            (after.idle - before.idle).as_secs_f64() / seconds,
        ))?;
        Ok(())
    }

    fn stay(mut self, length: Duration) -> Result<()> {
        let end = Instant::now() + length;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.heard = Instant::now();
            self.turn(left.min(LIMIT / 2))?;
        }
        Ok(())
    }

    /// Goes on until then, and until so many further answers have come; a server that is slow gets a little longer for them.
    fn until(&mut self, end: Instant, answers: u64) -> Result<()> {
        let enough = self.counts.answered + answers;
        let mut now = Instant::now();
        while now < end || (self.counts.answered < enough && now < end + PATIENCE) {
            self.turn(Duration::ZERO)?;
            now = Instant::now();
        }
        Ok(())
    }

    /// Waits so long at most, and serves the connections for which something has come.
    fn turn(&mut self, limit: Duration) -> Result<()> {
        let begin = Instant::now();
        self.poll.wait(limit)?;
        let now = Instant::now();
        if self.poll.places.is_empty() {
            self.counts.idle += now - begin;
            if now - self.heard > LIMIT {
                return Err("the server does not answer".into());
            }
            return Ok(());
        }
        self.heard = now;
        for place in &self.poll.places {
            let client = &mut self.clients[usize::try_from(*place)?];
            let moved = client.go_on(&self.work, &mut self.buffer)?;
            self.counts.answered += moved.answered;
            self.counts.bytes += moved.bytes;
            self.counts.compressed += moved.compressed;
            if self.asks && moved.answered > 0 {
                client.ask(&self.work)?;
            }
        }
        Ok(())
    }
}

/// What tells of connections that something has come on, by their numbers.
struct Poll {
    epoll: rustix::fd::OwnedFd,
    events: Vec<epoll::Event>,
    /// Those of the last wait.
    places: Vec<u64>,
}

impl Poll {
    fn new() -> Result<Self> {
        let (events, places) = (Vec::with_capacity(EVENTS), Vec::with_capacity(EVENTS));
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, events, places })
    }

    fn watch(&self, client: &Client, number: u64) -> Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        Ok(epoll::add(&self.epoll, client.socket(), epoll::EventData::new_u64(number), flags)?)
    }

    fn wait(&mut self, limit: Duration) -> Result<()> {
        let timeout = Timespec { tv_sec: limit.as_secs().try_into()?, tv_nsec: limit.subsec_nanos().into() };
        self.events.clear();
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout))?;
        self.places.clear();
        self.places.extend(self.events.iter().map(|event| event.data.u64()));
        Ok(())
    }
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
