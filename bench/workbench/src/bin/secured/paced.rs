//! Requests on kept connections at a fixed pace, and beside them new connections at another one: how long the answers take.
//!
//! ```text
//! main thread   kept connections:  ask when it is due, whatever the answers do ──▶ latencies
//! other thread  new connections:   connect when it is due, full handshake, one request, end
//! ```

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::client::{Buffers, Client, Fault, Work};
use super::{LIMIT, Poll, Result, WARM_UP, say};

/// How often in a second.
pub(crate) struct Pace {
    pub(crate) requests: f64,
    pub(crate) handshakes: f64,
}

/// What has become of the new connections.
#[derive(Default)]
struct Newcomers {
    over: AtomicBool,
    /// Opened, answered, and broken before that.
    begun: AtomicU64,
    answered: AtomicU64,
    broken: AtomicU64,
}

pub(crate) fn run(kept: &Work, new: &Work, pace: &Pace, length: Duration, file: &Path) -> Result<()> {
    let mut askers = Askers::open(kept)?;
    let newcomers = Newcomers::default();
    let measured = std::thread::scope(|scope| {
        let come = scope.spawn(|| come(new, pace.handshakes, &newcomers).map_err(|error| error.to_string()));
        let measured = measure(&mut askers, &newcomers, pace.requests, length);
        newcomers.over.store(true, Ordering::Relaxed);
        come.join().map_err(|_| "a thread has panicked")??;
        measured
    });
    measured?;
    let bytes: Vec<u8> = askers.latencies.iter().flat_map(|tenths| tenths.to_le_bytes()).collect();
    std::fs::write(file, bytes)?;
    Ok(())
}

fn measure(askers: &mut Askers<'_>, newcomers: &Newcomers, requests: f64, length: Duration) -> Result<()> {
    askers.ask_until(requests, length.mul_f64(WARM_UP))?;
    let counts = || {
        [&newcomers.begun, &newcomers.answered, &newcomers.broken].map(|count| count.load(Ordering::Relaxed))
    };
    say("measuring\n")?;
    let (begin, before) = (Instant::now(), counts());
    askers.latencies.clear();
    askers.lags.clear();
    askers.ask_until(requests, length)?;
    let (seconds, after) = (begin.elapsed().as_secs_f64(), counts());
    say("measured\n")?;
    let [begun, answered, broken] = [0, 1, 2].map(|at| after[at] - before[at]);
    askers.lags.sort_unstable();
    let lag = askers.lags.get(askers.lags.len() * 99 / 100).copied().unwrap_or_default();
    say(&format!(
        "answered {}\nseconds {seconds}\nlag_p99_us {}\nbegun {begun}\nhandshakes {answered}\nbroken {broken}\n",
        askers.latencies.len(),
        lag.as_micros(),
    ))?;
    Ok(())
}

/// A kept connection, and when those of its requests were due that have no answer yet; the first one has been asked.
struct Asker {
    client: Client,
    due: VecDeque<Instant>,
}

struct Askers<'a> {
    work: &'a Work,
    poll: Poll,
    askers: Vec<Asker>,
    buffers: Buffers,
    latencies: Vec<u32>,
    /// How much later than due this program was at a request.
    lags: Vec<Duration>,
}

impl<'a> Askers<'a> {
    /// Opens all connections, with their handshakes.
    fn open(work: &'a Work) -> Result<Self> {
        let (poll, mut askers) = (Poll::new()?, Vec::new());
        for place in 0..work.configs.len() {
            let client = Client::open(work, place)?;
            poll.watch(&client, place as u64)?;
            askers.push(Asker { client, due: VecDeque::new() });
        }
        let (latencies, lags) = (Vec::new(), Vec::new());
        let mut all = Self { work, poll, askers, buffers: Buffers::new(), latencies, lags };
        let late = Instant::now() + LIMIT;
        while !all.askers.iter().all(|asker| asker.client.is_open()) {
            if Instant::now() > late {
                return Err("the server does not answer".into());
            }
            all.receive(LIMIT)?;
        }
        Ok(all)
    }

    /// Asks for so long, one connection after the other, and waits for all answers.
    fn ask_until(&mut self, pace: f64, length: Duration) -> Result<()> {
        let (begin, mut count) = (Instant::now(), 0);
        let all = (pace * length.as_secs_f64()) as usize;
        let late = begin + length + LIMIT;
        while count < all || self.askers.iter().any(|asker| !asker.due.is_empty()) {
            let now = Instant::now();
            if now > late {
                return Err("the server is late by seconds".into());
            }
            let due = begin + Duration::from_secs_f64(count as f64 / pace);
            if count < all && due <= now {
                self.lags.push(now - due);
                let place = count % self.askers.len();
                let asker = &mut self.askers[place];
                asker.due.push_back(due);
                if asker.due.len() == 1 {
                    asker.client.ask(self.work)?;
                }
                count += 1;
                continue;
            }
            self.receive(if count < all { due - now } else { late - now })?;
        }
        Ok(())
    }

    fn receive(&mut self, limit: Duration) -> Result<()> {
        for place in self.poll.wait(limit)? {
            let asker = &mut self.askers[usize::try_from(place)?];
            let moved = asker.client.go_on(self.work, &mut self.buffers).map_err(told)?;
            if moved.answered == 0 {
                continue;
            }
            let Some(due) = asker.due.pop_front() else { return Err("an answer to nothing".into()) };
            self.latencies.push(u32::try_from(due.elapsed().as_nanos() / 100)?);
            if !asker.due.is_empty() {
                asker.client.ask(self.work)?;
            }
        }
        Ok(())
    }
}

/// Opens connections at this pace until it is over, and serves them to their ends.
fn come(work: &Work, pace: f64, counts: &Newcomers) -> Result<()> {
    let poll = Poll::new()?;
    let (mut clients, mut buffers) = (HashMap::new(), Buffers::new());
    let (begin, mut number) = (Instant::now(), 0_u64);
    while !counts.over.load(Ordering::Relaxed) {
        let due = if pace > 0.0 { Duration::from_secs_f64(number as f64 / pace) } else { LIMIT };
        let passed = begin.elapsed();
        if pace > 0.0 && due <= passed {
            let client = Client::open(work, 0)?;
            poll.watch(&client, number)?;
            clients.insert(number, client);
            counts.begun.fetch_add(1, Ordering::Relaxed);
            number += 1;
            continue;
        }
        let wait = due.saturating_sub(passed).min(Duration::from_millis(100));
        for number in poll.wait(wait)? {
            let Some(client) = clients.get_mut(&number) else { continue };
            let ended = match client.go_on(work, &mut buffers) {
                Ok(moved) => {
                    counts.answered.fetch_add(moved.answered, Ordering::Relaxed);
                    moved.ended
                }
                Err(Fault::Wrong(what)) => return Err(what.into()),
                Err(Fault::Broken(_)) => {
                    counts.broken.fetch_add(1, Ordering::Relaxed);
                    true
                }
            };
            if ended {
                clients.remove(&number);
            }
        }
    }
    Ok(())
}

fn told(fault: Fault) -> Box<dyn std::error::Error> {
    match fault {
        Fault::Wrong(what) => what.into(),
        Fault::Broken(error) => io::Error::new(error.kind(), format!("a kept connection: {error}")).into(),
    }
}
