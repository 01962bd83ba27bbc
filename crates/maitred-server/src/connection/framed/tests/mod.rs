//! A connection of HTTP/2 in memory: a pipe, and a test that takes every turn itself and says what time it is. The rules of frames are
//! tested in maitred-h2.

mod client;
mod deadlines;
mod heads;
mod http2;
mod own_limits;
mod services;
mod side_by_side;
mod trailers;
mod websockets;

use std::io;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use maitred_dispatch::Serve;
use maitred_exchange::{Routes, Site};
use maitred_http::{FieldSet, ResponseHead, Status};
use maitred_io::clock;
use maitred_io::transport::{Pipe, Transport};
use maitred_log::{Level, Log};
use maitred_runtime::{Exchange, Handler, InvocationType, ThreadBody, ThreadHost};
use maitred_testkit::{End, pair};
use maitred_turns::{Signals, TurnContext};

use crate::connection::{Connection, Group, Protocol, Scratch};
use crate::group::Job;
use crate::group::slots::Token;
use crate::server::Server;
use crate::settings::Settings;

/// No thread is made: the test is all of them.
struct NoThreads;

impl ThreadHost for NoThreads {
    fn spawn(&self, _: String, _: ThreadBody) -> io::Result<()> {
        Ok(())
    }
}

/// The server's end of the pipe, how often it was written to, and whether reading fails.
struct Wire(End, Arc<AtomicUsize>, Arc<AtomicBool>);

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.2.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.0.read(buffer)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pipe for Wire {
    fn end(&self) {
        self.0.shutdown_write();
    }
}

/// What a handler is to do next.
enum Do {
    Send(Vec<u8>),
    /// Waits for room.
    Wait,
    /// Reads a part of the request's body, and says what.
    Read,
    Finish,
    FinishWith(FieldSet),
    Cut,
}

/// What it says when it has done so.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Begun,
    Yes,
    Gone,
    Bytes(Vec<u8>),
}

/// For which path, what is to be done, and who is told.
type Strings = (String, Receiver<Do>, Sender<Done>);

/// A handler that does what the test says, step by step: one request at a time and path.
#[derive(Default)]
struct Puppets {
    steps: Mutex<Vec<Strings>>,
    begun: AtomicUsize,
}

/// The test's side of one of them.
struct Puppet {
    to: Sender<Do>,
    from: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
}

impl Puppet {
    fn does(&self, step: Do) -> Done {
        self.to.send(step).expect("the handler lives");
        self.from.recv().expect("the handler lives")
    }

    fn finishes(self) {
        self.does(Do::Finish);
        self.joins();
    }

    fn joins(mut self) {
        drop(self.to);
        self.thread.take().expect("it runs").join().expect("no handler panics");
    }
}

struct Handle(Arc<Puppets>);

impl Handler for Handle {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::Blocking
    }

    fn takes_live_bodies(&self) -> bool {
        true
    }

    fn handle(&self, mut exchange: Exchange) {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        let path = String::from_utf8_lossy(exchange.request().head.path()).into_owned();
        let mut steps = self.0.steps.lock().expect("no panic");
        let Some(place) = steps.iter().position(|(of, ..)| *of == path) else {
            drop(steps);
            let length = exchange.request().body.len();
            let _ = exchange.respond(ResponseHead::new(Status::OK), format!("{path} {length}"));
            return;
        };
        let (_, orders, done) = steps.swap_remove(place);
        drop(steps);
        let body = std::mem::take(&mut exchange.request_mut().body);
        let mut head = ResponseHead::new(Status::OK);
        // Fields of the response, as the query has them.
        for field in exchange.request().head.query().unwrap_or_default().split(|byte| *byte == b'&') {
            let (name, value) = field.split_at(field.iter().position(|byte| *byte == b'=').unwrap_or(0));
            if !name.is_empty() {
                head.fields.push(name, &value[1..]);
            }
        }
        let Ok(mut response) = exchange.start(head, None) else { return };
        let _ = done.send(Done::Begun);
        while let Ok(step) = orders.recv() {
            let said = match step {
                Do::Send(bytes) => match response.send(bytes) {
                    Ok(_) => Done::Yes,
                    Err(_) => Done::Gone,
                },
                Do::Wait => match response.wait(Duration::from_secs(20)) {
                    Ok(_) => Done::Yes,
                    Err(_) => Done::Gone,
                },
                Do::Read => {
                    let mut bytes = vec![0; 1024];
                    match body.reader().read(&mut bytes) {
                        Ok(count) => Done::Bytes(bytes[..count].to_vec()),
                        Err(_) => Done::Gone,
                    }
                }
                Do::Finish => {
                    response.finish();
                    let _ = done.send(Done::Yes);
                    return;
                }
                Do::FinishWith(trailers) => {
                    let ended = response.finish_with_trailers(trailers);
                    let _ = done.send(if ended.is_ok() { Done::Yes } else { Done::Gone });
                    return;
                }
                Do::Cut => {
                    response.abort("the test says so");
                    let _ = done.send(Done::Yes);
                    return;
                }
            };
            let _ = done.send(said);
        }
    }
}

/// A connection and its client.
pub(in crate::connection) struct Driven {
    pub(in crate::connection) server: Server,
    pub(in crate::connection) group: Arc<Group>,
    puppets: Arc<Puppets>,
    token: Token,
    pub(in crate::connection) client: End,
    scratch: Scratch,
    /// How far the test's clock is ahead.
    ahead: u64,
    /// How often the server has tried to send.
    sends: Arc<AtomicUsize>,
    /// Reading fails from now on.
    breaks: Arc<AtomicBool>,
}

fn open_speaking(
    capacity: usize,
    change: impl FnOnce(&mut Settings),
    protocol: impl FnOnce(&Site) -> Protocol,
) -> Driven {
    let puppets = Arc::new(Puppets::default());
    let handler = Arc::new(Handle(Arc::clone(&puppets)));
    let driven = open_for(handler, capacity, change, protocol);
    Driven { puppets, ..driven }
}

/// The same with another handler.
pub(in crate::connection) fn open_for(
    handler: Arc<dyn Handler>,
    capacity: usize,
    change: impl FnOnce(&mut Settings),
    protocol: impl FnOnce(&Site) -> Protocol,
) -> Driven {
    let log = Log::open(Level::Error, maitred_io::line_writer::Target::Path("/dev/null".into()), None);
    let routes = Routes::new().with_application(handler);
    let mut settings = Settings::new(routes, Arc::new(log.expect("the log opens")));
    settings.threads = vec![Arc::new(NoThreads)];
    change(&mut settings);
    let server = Server::prepare(settings, Box::new(|| Err(io::ErrorKind::Unsupported.into())));
    let server = server.expect("the server is made");
    let group = Arc::clone(server.first());
    let (client, ours) = pair(capacity);
    let peer = SocketAddr::from(([127, 0, 0, 1], 4));
    let protocol = protocol(&group.site);
    let sends = Arc::new(AtomicUsize::new(0));
    let breaks = Arc::new(AtomicBool::new(false));
    let transport = Transport::memory(Wire(ours, Arc::clone(&sends), Arc::clone(&breaks)));
    Connection::open(&group, transport, protocol, (peer.into(), None), 0, false).expect("a slot is free");
    let token = Token { slot: 0, generation: 0 };
    let (scratch, puppets) = (Scratch::default(), Arc::default());
    Driven { server, group, puppets, token, client, scratch, ahead: 0, sends, breaks }
}

impl Driven {
    /// Takes a turn, and those that it leads to; what has to be run.
    pub(in crate::connection) fn turn(&mut self, signals: Signals) -> Vec<Job> {
        self.turns(Some((self.token.to_u64(), signals)))
    }

    /// Takes the turns that are asked for.
    fn goes_on(&mut self) {
        let next = self.group.scheduler.next_ready();
        assert!(self.turns(next).is_empty());
    }

    fn turns(&mut self, mut next: Option<(u64, Signals)>) -> Vec<Job> {
        let mut found = Vec::new();
        while let Some((token, signals)) = next {
            self.scratch.clock_mut().set_now(Some(clock::monotonic() + self.ahead));
            found.extend(self.group.serve(token, signals, &mut self.scratch));
            next = self.group.scheduler.next_ready();
        }
        found
    }

    pub(in crate::connection) fn passes(&mut self, time: Duration) {
        self.ahead += time.as_nanos() as u64;
        let none = self.turn(Signals::TIMER);
        assert!(none.is_empty());
    }

    /// A handler that does step by step what the test says.
    fn puppet(&self, path: &str) -> Puppet {
        let (to, orders) = channel();
        let (done, from) = channel();
        self.puppets.steps.lock().expect("no panic").push((path.to_owned(), orders, done));
        Puppet { to, from, thread: None }
    }

    fn runs(&self, job: Job, puppet: &mut Puppet) {
        let group = Arc::clone(&self.group);
        puppet.thread = Some(spawn(move || {
            group.run(job, clock::monotonic());
        }));
        assert_eq!(puppet.from.recv(), Ok(Done::Begun));
    }

    /// Runs what answers at once, on this thread.
    pub(in crate::connection) fn run_here(&self, jobs: Vec<Job>) {
        for job in jobs {
            self.group.run(job, clock::monotonic());
        }
    }

    /// Looks at the connection, which is open.
    fn look<T>(&self, look: impl FnOnce(&mut Connection) -> T) -> T {
        self.group.with_connection(self.token, look).expect("it is open")
    }
}
