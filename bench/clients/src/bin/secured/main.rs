//! Load by TLS with one group and one cipher suite, so that all servers do the same work: connections that are kept, or a new one
//! for each request with a full or a resumed handshake.
//!
//! ```text
//! secured PORT PATH LENGTH SECONDS CONNECTIONS kept|full|resumed 1.2|1.3 x25519|hybrid
//! ```
//! It sleeps when nothing has come, and prints `measuring` and `measured`, between which the server's CPU time counts, and lines with
//! what there was in between: `answered`, `seconds`, `bytes` (of bodies), `resumed` (handshakes), `broken` (connections), and with what was agreed: `suite`,
//! `group`. An answer that is not 200 or has another length ends it with an error. The certificate is not looked at: that would cost the
//! client more than a handshake costs the server.

mod client;
mod trust;

use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::time::Timespec;
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::{ClientConfig, version};

use client::{Buffers, Client, Moved, Work};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The part of the time before measuring, for which connections are opened and everything comes to its pace.
const WARM_UP: f64 = 0.25;

/// So long without any answer, and the server is given up.
const LIMIT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "secured: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [port, path, length, seconds, connections, kind, version, group] = words[..] else {
        return Err("PORT PATH LENGTH SECONDS CONNECTIONS kept|full|resumed 1.2|1.3 x25519|hybrid".into());
    };
    let (address, length) = (SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?)), length.parse()?);
    let count: usize = connections.parse()?;
    let is_kept = match kind {
        "kept" => true,
        "full" | "resumed" => false,
        _ => return Err("kept, full or resumed".into()),
    };
    let end = if is_kept { "" } else { "Connection: close\r\n" };
    let work = Work {
        address,
        configs: (0..count).map(|_| config(version, group, kind == "resumed")).collect::<Result<_>>()?,
        request: format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{end}\r\n").into_bytes(),
        length,
        is_kept,
    };
    Load::new(work, count)?.run(Duration::from_secs_f64(seconds.parse()?))
}

/// A client that offers one version, one suite (the one that browsers prefer) and one group.
fn config(version: &str, group: &str, resumes: bool) -> Result<Arc<ClientConfig>> {
    let mut provider = aws_lc_rs::default_provider();
    let versions = match version {
        "1.2" => {
            provider.cipher_suites = vec![cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256];
            &[&version::TLS12]
        }
        "1.3" => {
            provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
            &[&version::TLS13]
        }
        _ => return Err("1.2 or 1.3".into()),
    };
    provider.kx_groups = match group {
        // In TLS 1.2 the list stands for the curves of certificates as well (RFC 8422 §5.1.1).
        "x25519" if version == "1.2" => vec![kx_group::X25519, kx_group::SECP256R1],
        "x25519" => vec![kx_group::X25519],
        "hybrid" => vec![kx_group::X25519MLKEM768],
        _ => return Err("x25519 or hybrid".into()),
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust::Anyone))
        .with_no_client_auth();
    config.resumption = if resumes {
        Resumption::store(Arc::new(ClientSessionMemoryCache::new(2)))
    } else {
        Resumption::disabled()
    };
    Ok(Arc::new(config))
}

/// What has happened so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    answered: u64,
    bytes: u64,
    resumed: u64,
    broken: u64,
}

struct Load {
    work: Work,
    poll: Poll,
    clients: Vec<Client>,
    buffers: Buffers,
    counts: Counts,
    agreed: String,
    /// When something came last.
    heard: Instant,
}

impl Load {
    fn new(work: Work, connections: usize) -> Result<Self> {
        let poll = Poll::new()?;
        let (counts, buffers) = (Counts::default(), Buffers::new());
        let mut load = Self {
            work,
            poll,
            clients: Vec::new(),
            buffers,
            counts,
            agreed: String::new(),
            heard: Instant::now(),
        };
        for place in 0..connections {
            let client = Client::open(&load.work, place)?;
            load.poll.watch(&client, place as u64)?;
            load.clients.push(client);
        }
        Ok(load)
    }

    fn run(mut self, length: Duration) -> Result<()> {
        self.until(Instant::now() + length.mul_f64(WARM_UP))?;
        while self.counts.answered == 0 {
            self.until(Instant::now() + length)?;
        }
        say("measuring\n")?;
        let (begin, before) = (Instant::now(), self.counts);
        self.until(begin + length)?;
        let (seconds, after) = (begin.elapsed().as_secs_f64(), self.counts);
        say("measured\n")?;
        // Bytes on their way count: of the largest answers only a few are complete.
        let bytes = after.bytes - before.bytes;
        say(&format!(
            "answered {}\nseconds {seconds}\nbytes {bytes}\nresumed {}\nbroken {}\n{}",
            after.answered - before.answered,
            after.resumed - before.resumed,
            after.broken - before.broken,
            self.agreed
        ))?;
        Ok(())
    }

    fn until(&mut self, end: Instant) -> Result<()> {
        loop {
            let now = Instant::now();
            let Some(left) = end.checked_duration_since(now) else { return Ok(()) };
            if now.duration_since(self.heard) > LIMIT {
                return Err("the server does not answer".into());
            }
            for place in self.poll.wait(left.min(LIMIT))? {
                self.heard = now;
                self.go_on(usize::try_from(place)?)?;
            }
        }
    }

    fn go_on(&mut self, place: usize) -> Result<()> {
        let client = &mut self.clients[place];
        let moved = match client.go_on(&self.work, &mut self.buffers) {
            Ok(moved) => moved,
            Err(client::Fault::Wrong(what)) => return Err(what.into()),
            Err(client::Fault::Broken(error)) => {
                self.counts.broken += 1;
                if self.counts.answered == 0 {
                    // Nothing has worked yet, and nothing will.
                    return Err(error.to_string().into());
                }
                Moved { ended: true, ..Moved::default() }
            }
        };
        self.counts.answered += moved.answered;
        self.counts.bytes += moved.bytes;
        if let Some(handshake) = moved.handshake {
            self.counts.resumed += u64::from(handshake.resumed);
            if self.agreed.is_empty() {
                self.agreed = handshake.agreed;
            }
        }
        if moved.ended {
            let client = Client::open(&self.work, place)?;
            self.poll.watch(&client, place as u64)?;
            self.clients[place] = client;
        }
        Ok(())
    }
}

/// What tells of connections that something has come on, by their numbers.
struct Poll(rustix::fd::OwnedFd);

impl Poll {
    fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    fn watch(&self, client: &Client, number: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(number);
        Ok(epoll::add(&self.0, client.socket(), data, epoll::EventFlags::IN)?)
    }

    fn wait(&self, limit: Duration) -> Result<Vec<u64>> {
        let mut events = Vec::with_capacity(256);
        let timeout = Timespec { tv_sec: limit.as_secs().try_into()?, tv_nsec: limit.subsec_nanos().into() };
        epoll::wait(&self.0, rustix::buffer::spare_capacity(&mut events), Some(&timeout))?;
        Ok(events.iter().map(|event| event.data.u64()).collect())
    }
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
