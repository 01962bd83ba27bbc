//! Clients with a connection for each request, who are told by whom they were served: the field `X-Worker` of the response names a
//! process, and `X-Begin` and `X-End` say when its handler ran, in nanoseconds of CLOCK_MONOTONIC, where the server has such.
//!
//! ```text
//! newcomers PORT PATH burst COUNT ROUNDS    connects COUNT times at once, then asks on all; ROUNDS times
//! newcomers PORT PATH turn COUNT            one after the other
//! newcomers PORT PATH crowd COUNT SECONDS [PID...]    COUNT clients, each always with one request
//! ```
//! It prints a line `request WORKER SENT BEGIN END DONE` for each request, times in nanoseconds of that clock, 0 where the server
//! says none, and after each round of bursts a line `round`. A crowd that is told the workers looks every few milliseconds
//! whether one of them is idle while requests wait, and prints `idle LOOKS TIMES`. A request that fails is a line `failed` with why.

mod watch;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Without an answer for so long it gives up.
const LIMIT: Duration = Duration::from_secs(60);

/// A client's thread keeps little on its stack.
const STACK: usize = 128 << 10;

fn main() -> ExitCode {
    let run = || -> Result<()> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (port, path, rest) = match &words[..] {
            [port, path, rest @ ..] => (port.parse::<u16>()?, *path, rest),
            _ => return Err("PORT PATH burst|turn|crowd NUMBERS".into()),
        };
        let server = Server {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            request: request(path),
            asked: AtomicUsize::new(0),
        };
        let text = match rest {
            ["burst", count, rounds] => server.bursts(count.parse()?, rounds.parse()?),
            ["turn", count] => (0..count.parse::<usize>()?).map(|_| server.one()).collect(),
            ["crowd", count, seconds, workers @ ..] => {
                let workers = workers.iter().map(|pid| pid.parse()).collect::<Result<Vec<u32>, _>>()?;
                server.crowd(count.parse()?, Duration::from_secs_f64(seconds.parse()?), &workers)?
            }
            _ => return Err("burst COUNT ROUNDS, turn COUNT or crowd COUNT SECONDS [PID...]".into()),
        };
        Ok(io::stdout().write_all(text.as_bytes())?)
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "newcomers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nAccept-Encoding: gzip\r\n\r\n")
        .into_bytes()
}

struct Server {
    address: SocketAddr,
    request: Vec<u8>,
    /// Requests that have been sent and not answered.
    asked: AtomicUsize,
}

impl Server {
    fn bursts(&self, count: usize, rounds: usize) -> String {
        let mut text = String::new();
        for _ in 0..rounds {
            let connected: Vec<_> = (0..count).map(|_| (work::monotonic_ns(), self.connect())).collect();
            let asked: Vec<_> = connected
                .into_iter()
                .map(|(sent, stream)| {
                    let asked = stream.and_then(|mut stream| {
                        stream.write_all(&self.request)?;
                        Ok(stream)
                    });
                    (sent, asked)
                })
                .collect();
            for (sent, stream) in asked {
                text += &line(sent, stream.and_then(read_all));
            }
            text += "round\n";
            // The workers come to rest.
            std::thread::sleep(Duration::from_millis(50));
        }
        text
    }

    fn crowd(&self, count: usize, length: Duration, workers: &[u32]) -> Result<String> {
        let until = Instant::now() + length;
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| watch::watch(workers, &self.asked, &ended));
            let mut clients = Vec::with_capacity(count);
            for _ in 0..count {
                let client = std::thread::Builder::new().stack_size(STACK);
                clients.push(client.spawn_scoped(scope, || {
                    let mut text = String::new();
                    while Instant::now() < until {
                        text += &self.one();
                    }
                    text
                })?);
            }
            // They wind up together: that there is less than enough to do says nothing.
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            ended.store(true, Ordering::Relaxed);
            let joined = clients.into_iter().map(std::thread::ScopedJoinHandle::join);
            let mut text: String =
                joined.map(|text| text.unwrap_or_else(|_| "failed panic\n".to_owned())).collect();
            let seen = watcher.join().map_err(|_| "the watcher panicked")??;
            let _ = writeln!(text, "idle {} {}", seen.looks, seen.idle);
            Ok(text)
        })
    }

    fn one(&self) -> String {
        let sent = work::monotonic_ns();
        let answer = self.connect().and_then(|mut stream| {
            stream.write_all(&self.request)?;
            self.asked.fetch_add(1, Ordering::SeqCst);
            let answer = read_all(stream);
            self.asked.fetch_sub(1, Ordering::SeqCst);
            answer
        });
        line(sent, answer)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        Ok(stream)
    }
}

fn read_all(mut stream: TcpStream) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// What a request has become.
fn line(sent: u64, answer: io::Result<Vec<u8>>) -> String {
    let done = work::monotonic_ns();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return format!("failed {error}\n"),
    };
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]);
    if !head.starts_with("HTTP/1.1 200") {
        return format!("failed {}\n", head.lines().next().unwrap_or("no answer"));
    }
    let field = |name: &str| {
        let values = head.lines().filter_map(|line| line.split_once(": "));
        values
            .into_iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map_or("0", |(_, value)| value.trim())
    };
    let mut text = String::new();
    let (worker, begin, end) = (field("X-Worker"), field("X-Begin"), field("X-End"));
    let _ = writeln!(text, "request {worker} {sent} {begin} {end} {done}");
    text
}
