//! A connection with many streams, in memory: the toy protocol of the test kit, a pipe, and a test that takes every turn itself
//! and says what time it is.

mod http2;
mod own_limits;
mod toy;
mod trailers;

use std::io;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use base64ct::{Base64, Encoding};
use maitred_dispatch::Serve;
use maitred_filters::{Authentication, BasicAuth, Condition, FilterRule, Users};
use maitred_http::{FieldSet, ResponseHead, Status};
use maitred_io::clock;
use maitred_io::transport::{Pipe, Transport};
use maitred_log::{Level, Log};
use maitred_runtime::{Exchange, Handler, InvocationType, ThreadBody, ThreadHost};
use maitred_testkit::{End, Frame, MAX_FRAME, STREAM_WINDOW, pair};
use maitred_turns::{Signals, TurnContext};

use super::Framed;
use crate::connection::{Connection, Group, Protocol, Scratch};
use crate::group::Job;
use crate::group::slots::Token;
use crate::routes::Routes;
use crate::server::Server;
use crate::settings::{Overflow, Settings};
use crate::site::Site;
use toy::Toy;

/// No thread is made: the test is all of them.
struct NoThreads;

impl ThreadHost for NoThreads {
    fn spawn(&self, _: String, _: ThreadBody) -> io::Result<()> {
        Ok(())
    }
}

/// The server's end of the pipe, and how often it was written to.
struct Wire(End, Arc<AtomicUsize>);

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
    received: Vec<u8>,
    /// How often the server has tried to send.
    sends: Arc<AtomicUsize>,
}

fn open(change: impl FnOnce(&mut Settings)) -> Driven {
    open_with(1 << 20, change)
}

fn open_with(capacity: usize, change: impl FnOnce(&mut Settings)) -> Driven {
    open_speaking(capacity, change, |_| Protocol::Framed(Framed::new(Box::<Toy>::default())))
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
    settings.threads = Arc::new(NoThreads);
    change(&mut settings);
    let server = Server::prepare(settings, Box::new(|| Err(io::ErrorKind::Unsupported.into())));
    let server = server.expect("the server is made");
    let group = Arc::clone(server.first());
    let (client, ours) = pair(capacity);
    let peer = SocketAddr::from(([127, 0, 0, 1], 4));
    let protocol = protocol(&group.site);
    let sends = Arc::new(AtomicUsize::new(0));
    let transport = Transport::memory(Wire(ours, Arc::clone(&sends)));
    Connection::open(&group, transport, protocol, (peer.into(), None), 0, false).expect("a slot is free");
    let token = Token { slot: 0, generation: 0 };
    let (scratch, received) = (Scratch::default(), Vec::new());
    let puppets = Arc::default();
    Driven { server, group, puppets, token, client, scratch, ahead: 0, received, sends }
}

impl Driven {
    fn send(&mut self, frames: &[Frame]) {
        for frame in frames {
            self.client.write_all(&frame.bytes()).expect("the pipe has room");
        }
    }

    /// Takes a turn, and those that it leads to; what has to be run.
    pub(in crate::connection) fn turn(&mut self, signals: Signals) -> Vec<Job> {
        let mut found = Vec::new();
        let mut next = Some((self.token.to_u64(), signals));
        while let Some((token, signals)) = next {
            self.scratch.clock_mut().set_now(Some(clock::monotonic() + self.ahead));
            found.extend(self.group.serve(token, signals, &mut self.scratch));
            next = self.group.scheduler.next_ready();
        }
        found
    }

    fn asks(&mut self, frames: &[Frame]) -> Vec<Job> {
        self.send(frames);
        self.turn(Signals::READ)
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

    /// All frames that have come.
    fn frames(&mut self) -> Vec<Frame> {
        let mut part = [0; 4096];
        while let Ok(count) = self.client.read(&mut part) {
            if count == 0 {
                break;
            }
            self.received.extend_from_slice(&part[..count]);
        }
        let mut frames = Vec::new();
        while let Some((frame, length)) = Frame::first(&self.received).expect("a frame") {
            self.received.drain(..length);
            frames.push(frame);
        }
        frames
    }

    /// The same without credit.
    fn answers(&mut self) -> Vec<Frame> {
        self.frames().into_iter().filter(|frame| !matches!(frame, Frame::Credit(..))).collect()
    }
}

fn get(stream: u32, path: &str) -> Frame {
    Frame::Head(stream, format!("GET {path}"))
}

fn post(stream: u32, path: &str) -> Frame {
    Frame::Head(stream, format!("POST {path}"))
}

fn ok(stream: u32) -> Frame {
    Frame::Head(stream, "200".into())
}

fn data(stream: u32, text: &str) -> Frame {
    Frame::Data(stream, text.as_bytes().to_vec())
}

/// The bytes of a stream's data frames.
fn body(frames: &[Frame], of: u32) -> Vec<u8> {
    let of = |frame: &Frame| match frame {
        Frame::Data(stream, bytes) if *stream == of => Some(bytes.clone()),
        _ => None,
    };
    frames.iter().filter_map(of).flatten().collect()
}

#[test]
fn two_requests_run_at_once_and_their_answers_leave_interleaved() {
    let mut driven = open(|_| {});
    let (mut first, mut second) = (driven.puppet("/a"), driven.puppet("/b"));
    let mut jobs = driven.asks(&[get(1, "/a"), get(3, "/b")]).into_iter();
    driven.runs(jobs.next().expect("one"), &mut first);
    driven.runs(jobs.next().expect("two"), &mut second);
    assert!(jobs.next().is_none());
    for (puppet, text) in [(&first, "a1"), (&second, "b1"), (&first, "a2"), (&second, "b2")] {
        assert_eq!(puppet.does(Do::Send(text.into())), Done::Yes);
    }
    second.does(Do::Finish);
    first.does(Do::Finish);
    let all = driven.answers();
    let expected = [
        ok(1),
        data(1, "a1"),
        ok(3),
        data(3, "b1"),
        data(1, "a2"),
        data(3, "b2"),
        Frame::End(3),
        Frame::End(1),
    ];
    assert_eq!(all, expected);
    first.joins();
    second.joins();
    assert_eq!(driven.server.snapshot().requests, 2);
}

#[test]
fn one_is_cut_and_the_other_is_not() {
    let mut driven = open(|_| {});
    let (mut first, mut second) = (driven.puppet("/a"), driven.puppet("/b"));
    let mut jobs = driven.asks(&[get(1, "/a"), get(3, "/b")]).into_iter();
    driven.runs(jobs.next().expect("one"), &mut first);
    driven.runs(jobs.next().expect("two"), &mut second);
    first.does(Do::Send("a".into()));
    first.does(Do::Cut);
    second.does(Do::Send("b".into()));
    second.does(Do::Finish);
    let expected = [ok(1), data(1, "a"), Frame::Reset(1), ok(3), data(3, "b"), Frame::End(3)];
    assert_eq!(driven.answers(), expected);
    first.joins();
    second.joins();
    let snapshot = driven.server.snapshot();
    assert_eq!((snapshot.requests, snapshot.cut), (2, 1));
}

#[test]
fn a_reader_that_stalls_holds_up_no_other() {
    let mut driven = open(|_| {});
    let (mut first, mut second) = (driven.puppet("/a"), driven.puppet("/b"));
    let mut jobs = driven.asks(&[get(1, "/a"), get(3, "/b")]).into_iter();
    driven.runs(jobs.next().expect("one"), &mut first);
    driven.runs(jobs.next().expect("two"), &mut second);
    let long = vec![b'a'; STREAM_WINDOW as usize + 100];
    first.does(Do::Send(long.clone()));
    first.does(Do::Finish);
    for _ in 0..3 {
        second.does(Do::Send(vec![b'b'; MAX_FRAME]));
    }
    second.does(Do::Finish);
    let frames = driven.answers();
    assert_eq!(body(&frames, 1).len(), STREAM_WINDOW as usize, "as far as its window goes");
    assert_eq!(body(&frames, 3).len(), 3 * MAX_FRAME);
    assert!(frames.contains(&Frame::End(3)) && !frames.contains(&Frame::End(1)));
    assert!(driven.asks(&[Frame::Credit(1, 60), Frame::Credit(1, 60)]).is_empty());
    let frames = driven.answers();
    assert_eq!((body(&frames, 1).len(), frames.last()), (100, Some(&Frame::End(1))));
    first.joins();
    second.joins();
}

#[test]
fn one_that_is_cancelled_while_it_is_queued_is_not_run() {
    let mut driven = open(|_| {});
    let jobs = driven.asks(&[get(1, "/a"), get(3, "/b")]);
    for job in jobs {
        driven.group.scheduler.give(job, &driven.group);
    }
    assert!(driven.asks(&[Frame::Reset(1)]).is_empty());
    let mut run = 0;
    while let Some(job) = driven.group.scheduler.next_queued() {
        // What is not run says nothing about how long requests take.
        run += usize::from(driven.group.run(job, clock::monotonic()));
    }
    assert_eq!((run, driven.puppets.begun.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(driven.answers(), [ok(3), data(3, "/b 0"), Frame::End(3)]);
    assert_eq!(
        driven.group.with_connection(driven.token, |connection| connection.is_between_streams()),
        Some(true)
    );
}

#[test]
fn a_reader_that_takes_nothing_is_not_tried_with_each_block() {
    let mut h1 = open_speaking(100, |_| {}, |_| Protocol::h1());
    let mut puppet = h1.puppet("/a");
    h1.client.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("the pipe has room");
    let mut jobs = h1.turn(Signals::READ).into_iter();
    h1.runs(jobs.next().expect("one"), &mut puppet);
    tried_seldom(&mut h1, &puppet);
    puppet.does(Do::Finish);
    puppet.joins();
    let mut framed = open_with(100, |_| {});
    let mut puppet = framed.puppet("/a");
    let mut jobs = framed.asks(&[get(1, "/a")]).into_iter();
    framed.runs(jobs.next().expect("one"), &mut puppet);
    tried_seldom(&mut framed, &puppet);
    puppet.does(Do::Finish);
    puppet.joins();
}

/// What comes when the pipe is full is not tried to be sent until a turn comes.
fn tried_seldom(driven: &mut Driven, puppet: &Puppet) {
    (0..10).for_each(|_| drop(puppet.does(Do::Send(vec![b'x'; 100]))));
    let before = driven.sends.load(Ordering::SeqCst);
    (0..100).for_each(|_| drop(puppet.does(Do::Send(vec![b'x'; 100]))));
    assert_eq!(driven.sends.load(Ordering::SeqCst), before);
    let mut part = [0; 100];
    assert_eq!(driven.client.read(&mut part).expect("it is there"), 100);
    assert!(driven.turn(Signals::WRITE).is_empty());
    assert_eq!(driven.client.read(&mut part).expect("it goes on"), 100);
}

#[test]
fn a_writer_that_waits_for_room_is_woken_when_its_stream_is_reset() {
    let mut driven = open(|settings| settings.writer.memory = 100);
    let mut first = driven.puppet("/a");
    let mut jobs = driven.asks(&[get(1, "/a")]).into_iter();
    driven.runs(jobs.next().expect("one"), &mut first);
    first.does(Do::Send(vec![b'a'; 2 * STREAM_WINDOW as usize]));
    first.to.send(Do::Wait).expect("it lives");
    // Whether it waits already or is about to: it is told, or sees it.
    assert!(driven.asks(&[Frame::Reset(1)]).is_empty());
    assert_eq!(first.from.recv(), Ok(Done::Gone));
    assert_eq!(first.does(Do::Send("more".into())), Done::Gone);
    let still = |connection: &mut Connection| connection.is_between_streams();
    assert_eq!(driven.group.with_connection(driven.token, still), Some(false), "it counts while it runs");
    first.does(Do::Finish);
    first.joins();
    assert_eq!(driven.group.with_connection(driven.token, still), Some(true));
}

#[test]
fn sixty_five_that_arrive_at_once_before_a_short_queue_are_all_answered() {
    let mut driven = open(|settings| {
        settings.pool.limits.queue = 40;
        settings.pool.limits.overflow = Overflow::Refuse;
    });
    let heads: Vec<Frame> = (0..65).map(|number| get(2 * number + 1, "/x")).collect();
    let jobs = driven.asks(&heads);
    assert_eq!(jobs.len(), 65);
    for job in jobs {
        driven.group.scheduler.give(job, &driven.group);
    }
    while let Some(job) = driven.group.scheduler.next_queued() {
        driven.run_here(vec![job]);
    }
    driven.turn(Signals::WRITE);
    let frames = driven.answers();
    let with = |status: &str| {
        frames.iter().filter(|frame| matches!(frame, Frame::Head(_, text) if text == status)).count()
    };
    assert_eq!((with("200"), with("503")), (40, 25));
    let mut ended: Vec<u32> =
        frames.iter().filter(|frame| matches!(frame, Frame::End(_))).map(Frame::stream).collect();
    ended.sort_unstable();
    assert_eq!(ended, heads.iter().map(Frame::stream).collect::<Vec<_>>());
}

#[test]
fn more_streams_than_may_be_are_reset() {
    let mut driven = open(|_| {});
    let heads: Vec<Frame> = (0..=toy::MAX_STREAMS as u32).map(|number| get(2 * number + 1, "/x")).collect();
    let jobs = driven.asks(&heads);
    assert_eq!(jobs.len(), toy::MAX_STREAMS);
    assert_eq!(driven.answers(), [Frame::Reset(heads[toy::MAX_STREAMS].stream())]);
    driven.run_here(jobs);
    let last = heads[toy::MAX_STREAMS].stream() + 2;
    let jobs = driven.asks(&[get(last, "/x")]);
    assert_eq!(jobs.len(), 1, "there is room again");
}

#[test]
fn a_tunnel_goes_on_beside_requests() {
    let mut driven = open(|_| {});
    let mut tunnel = driven.puppet("/tunnel");
    let mut jobs = driven.asks(&[Frame::Tunnel(1)]).into_iter();
    driven.runs(jobs.next().expect("the tunnel"), &mut tunnel);
    assert!(driven.asks(&[data(1, "ping")]).is_empty());
    assert_eq!(tunnel.does(Do::Read), Done::Bytes(b"ping".to_vec()));
    tunnel.does(Do::Send("pong".into()));
    let jobs = driven.asks(&[get(3, "/x"), data(1, "again")]);
    assert_eq!(jobs.len(), 1);
    driven.run_here(jobs);
    assert_eq!(tunnel.does(Do::Read), Done::Bytes(b"again".to_vec()));
    assert!(driven.asks(&[Frame::End(1)]).is_empty());
    assert_eq!(tunnel.does(Do::Read), Done::Bytes(Vec::new()), "the client's side has ended");
    tunnel.does(Do::Send("last".into()));
    tunnel.does(Do::Finish);
    let frames = driven.answers();
    assert_eq!(body(&frames, 1), b"ponglast");
    assert_eq!(body(&frames, 3), b"/x 0");
    assert!(frames.contains(&Frame::End(1)) && frames.contains(&Frame::End(3)));
    tunnel.joins();
}

#[test]
fn a_body_is_credited_to_the_connection_at_once_and_to_its_stream_when_it_is_taken() {
    let mut driven = open(|_| {});
    let mut tunnel = driven.puppet("/tunnel");
    let mut jobs = driven.asks(&[Frame::Tunnel(1)]).into_iter();
    driven.runs(jobs.next().expect("the tunnel"), &mut tunnel);
    assert!(driven.asks(&[data(1, "unread"), post(3, "/x"), data(3, "read ahead")]).is_empty());
    let credit: Vec<Frame> =
        driven.frames().into_iter().filter(|frame| matches!(frame, Frame::Credit(..))).collect();
    assert_eq!(credit, [Frame::Credit(0, 6), Frame::Credit(0, 10), Frame::Credit(3, 10)]);
    assert_eq!(tunnel.does(Do::Read), Done::Bytes(b"unread".to_vec()));
    assert_eq!(driven.frames().last(), Some(&Frame::Credit(1, 6)));
    tunnel.does(Do::Finish);
    tunnel.joins();
}

#[test]
fn who_sends_more_than_its_window_loses_the_connection() {
    let mut driven = open(|_| {});
    let mut tunnel = driven.puppet("/tunnel");
    let mut jobs = driven.asks(&[Frame::Tunnel(1)]).into_iter();
    driven.runs(jobs.next().expect("the tunnel"), &mut tunnel);
    let piece = Frame::Data(1, vec![b'x'; MAX_FRAME]);
    for _ in 0..STREAM_WINDOW as usize / MAX_FRAME {
        assert!(driven.asks(std::slice::from_ref(&piece)).is_empty());
    }
    assert!(!driven.client.is_at_end());
    assert!(driven.asks(&[piece]).is_empty());
    driven.frames();
    assert!(driven.client.is_at_end());
    assert_eq!(tunnel.does(Do::Send("x".into())), Done::Gone);
    tunnel.does(Do::Finish);
    tunnel.joins();
}

#[test]
fn each_has_a_deadline_of_its_own_for_its_response() {
    let limit = Duration::from_secs(3);
    let mut driven = open(|settings| settings.pool.limits.request_timeout = Some(limit));
    let (mut first, mut second) = (driven.puppet("/a"), driven.puppet("/b"));
    let mut jobs = driven.asks(&[get(1, "/a")]);
    driven.passes(Duration::from_secs(2));
    jobs.extend(driven.asks(&[get(3, "/b")]));
    let mut jobs = jobs.into_iter();
    driven.runs(jobs.next().expect("one"), &mut first);
    driven.runs(jobs.next().expect("two"), &mut second);
    driven.passes(Duration::from_millis(1500));
    let frames = driven.answers();
    assert_eq!(frames.first(), Some(&Frame::Head(1, "504".into())));
    assert!(frames.contains(&Frame::End(1)), "{frames:?}");
    assert_eq!(first.does(Do::Send("late".into())), Done::Gone);
    second.does(Do::Send("in time".into()));
    second.does(Do::Finish);
    assert_eq!(driven.answers(), [ok(3), data(3, "in time"), Frame::End(3)]);
    first.does(Do::Finish);
    first.joins();
    second.joins();
    let snapshot = driven.server.snapshot();
    assert_eq!((snapshot.requests, snapshot.timeouts, snapshot.errors), (2, 1, 1));
}

#[test]
fn each_has_a_deadline_of_its_own_for_its_body() {
    let mut driven = open(|settings| settings.timeouts.body = Duration::from_secs(10));
    assert!(driven.asks(&[post(1, "/a"), data(1, "x")]).is_empty());
    driven.passes(Duration::from_secs(6));
    assert!(driven.asks(&[post(3, "/b"), data(3, "y")]).is_empty());
    driven.passes(Duration::from_secs(5));
    let frames = driven.answers();
    assert_eq!(frames.first(), Some(&Frame::Head(1, "408".into())));
    assert_eq!(frames.last(), Some(&Frame::Reset(1)), "the rest of its body is not wanted");
    let jobs = driven.asks(&[Frame::End(3)]);
    driven.run_here(jobs);
    assert_eq!(driven.answers(), [ok(3), data(3, "/b 1"), Frame::End(3)]);
    let snapshot = driven.server.snapshot();
    assert_eq!((snapshot.requests, snapshot.refused), (1, 1), "each is written down for itself");
}

#[test]
fn a_stream_whose_reader_takes_nothing_is_reset_and_the_connection_stays() {
    let mut driven = open(|settings| settings.timeouts.send = Duration::from_secs(10));
    let mut first = driven.puppet("/a");
    let mut jobs = driven.asks(&[get(1, "/a")]).into_iter();
    driven.runs(jobs.next().expect("one"), &mut first);
    first.does(Do::Send(vec![b'a'; 2 * STREAM_WINDOW as usize]));
    driven.passes(Duration::from_secs(9));
    assert!(!driven.answers().contains(&Frame::Reset(1)));
    driven.passes(Duration::from_secs(2));
    assert_eq!(driven.answers(), [Frame::Reset(1)]);
    assert_eq!(first.does(Do::Send("x".into())), Done::Gone);
    first.does(Do::Finish);
    first.joins();
    let jobs = driven.asks(&[get(3, "/x")]);
    driven.run_here(jobs);
    assert_eq!(body(&driven.answers(), 3), b"/x 0");
}

#[test]
fn when_the_peer_goes_every_handler_is_told_and_the_slot_is_free_after_the_last() {
    let mut driven = open(|_| {});
    let (mut first, mut second) = (driven.puppet("/a"), driven.puppet("/b"));
    let mut jobs = driven.asks(&[get(1, "/a"), get(3, "/b")]).into_iter();
    driven.runs(jobs.next().expect("one"), &mut first);
    driven.runs(jobs.next().expect("two"), &mut second);
    assert!(driven.turn(Signals::CLOSED).is_empty());
    assert_eq!(first.does(Do::Send("x".into())), Done::Gone);
    first.does(Do::Finish);
    first.joins();
    driven.turn(Signals::RESUME);
    assert_eq!(driven.server.snapshot().open, 1);
    assert_eq!(second.does(Do::Send("x".into())), Done::Gone);
    second.does(Do::Finish);
    second.joins();
    driven.turn(Signals::RESUME);
    assert_eq!(driven.server.snapshot().open, 0);
}

#[test]
fn an_answer_of_the_engine_needs_no_handler() {
    let mut driven = open(|settings| settings.health_path = Some("/health".into()));
    assert!(driven.asks(&[get(1, "/health")]).is_empty());
    assert_eq!(driven.answers(), [ok(1), data(1, "ok\n"), Frame::End(1)]);
}

#[test]
fn frames_in_pieces_of_any_size_are_read() {
    let mut driven = open_with(64, |_| {});
    let bytes: Vec<u8> =
        [post(1, "/x"), data(1, "12345"), Frame::End(1)].iter().flat_map(Frame::bytes).collect();
    let mut jobs = Vec::new();
    for byte in bytes {
        driven.client.write_all(&[byte]).expect("room");
        jobs.extend(driven.turn(Signals::READ));
    }
    driven.run_here(jobs);
    let mut frames = Vec::new();
    for _ in 0..20 {
        frames.extend(driven.answers());
        driven.turn(Signals::WRITE);
    }
    assert_eq!(frames, [ok(1), data(1, "/x 5"), Frame::End(1)]);
}

#[test]
fn an_idle_connection_ends_after_its_time() {
    let mut driven = open(|settings| settings.timeouts.keep_alive = Duration::from_secs(5));
    let jobs = driven.asks(&[get(1, "/x")]);
    driven.run_here(jobs);
    assert_eq!(driven.answers().len(), 3);
    driven.passes(Duration::from_secs(4));
    assert!(!driven.client.is_at_end());
    driven.passes(Duration::from_secs(2));
    assert!(driven.client.is_at_end());
}

#[test]
fn a_client_that_has_ended_its_side_gets_its_answers_and_then_the_end() {
    let mut driven = open(|_| {});
    driven.send(&[get(1, "/x")]);
    driven.client.shutdown_write();
    let jobs = driven.turn(Signals::READ.with(Signals::READ_CLOSED));
    assert!(!driven.client.is_at_end());
    driven.run_here(jobs);
    assert!(driven.turn(Signals::NONE).is_empty());
    assert_eq!(driven.answers().len(), 3);
    assert!(driven.client.is_at_end());
}

#[test]
fn nothing_of_a_request_goes_on_before_its_filters_have_let_it_pass() {
    const USERS: &str =
        "ann:$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let is_right = move |password: &[u8]| {
        let _ = wait.lock().expect("no panic").recv();
        password == b"right"
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users");
    std::fs::write(&path, USERS).expect("room");
    let users = Users::open_judged(&path, is_right).expect("valid");
    let mut driven = open(|settings| {
        settings.filters.push(FilterRule {
            when: Condition { path: Some("/in/*".parse().expect("a path")), ..Condition::default() },
            authentication: Some(Authentication::Basic(BasicAuth::new(users, "realm").expect("a realm"))),
            ..FilterRule::default()
        });
    });
    let of = |stream, password: &str| {
        let who = Base64::encode_string(format!("ann:{password}").as_bytes());
        Frame::Head(stream, format!("POST /in/x\nauthorization: Basic {who}"))
    };
    // All of it is there before its password is known to be wrong.
    assert!(driven.asks(&[of(1, "wrong"), data(1, "secret"), Frame::End(1)]).is_empty());
    assert_eq!(driven.answers(), []);
    go.send(()).expect("it is checked");
    let begin = std::time::Instant::now();
    let refused = loop {
        assert!(driven.turn(Signals::NONE).is_empty());
        let answers = driven.answers();
        if !answers.is_empty() {
            break answers;
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    };
    assert_eq!(refused.first(), Some(&Frame::Head(1, "401".into())));
    assert!(driven.asks(&[of(3, "right"), data(3, "secret")]).is_empty());
    let credit = driven.frames();
    assert_eq!(credit, [Frame::Credit(0, 6)], "nobody has taken it");
    go.send(()).expect("it is checked");
    while driven.frames() != [Frame::Credit(3, 6)] {
        assert!(driven.turn(Signals::NONE).is_empty());
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    let jobs = driven.asks(&[Frame::End(3)]);
    driven.run_here(jobs);
    assert_eq!(driven.answers(), [ok(3), data(3, "/in/x 6"), Frame::End(3)]);
    assert_eq!(driven.puppets.begun.load(Ordering::SeqCst), 1);
}

#[test]
fn a_head_request_that_is_answered_in_its_handlers_place_gets_no_body() {
    let mut driven = open(|settings| settings.pool.limits.request_timeout = Some(Duration::from_secs(3)));
    let jobs = driven.asks(&[Frame::Head(1, "HEAD /a".into()), Frame::End(1)]);
    assert_eq!(jobs.len(), 1);
    driven.passes(Duration::from_secs(4));
    assert_eq!(driven.answers(), [Frame::Head(1, "504".into()), Frame::End(1)]);
    driven.run_here(jobs);
    assert_eq!(driven.puppets.begun.load(Ordering::SeqCst), 0);
}

/// So many requests whose handlers run, from stream 1 on in steps of two. Each of the first four has sent as much as a stream's
/// window takes, which is all that the connection's takes.
fn without_credit(driven: &mut Driven, count: u32) -> Vec<Puppet> {
    let streams: Vec<u32> = (0..count).map(|number| 2 * number + 1).collect();
    let mut puppets: Vec<Puppet> =
        streams.iter().map(|stream| driven.puppet(&format!("/{stream}"))).collect();
    let heads: Vec<Frame> = streams.iter().map(|stream| get(*stream, &format!("/{stream}"))).collect();
    for (job, puppet) in driven.asks(&heads).into_iter().zip(&mut puppets) {
        driven.runs(job, puppet);
    }
    for puppet in &puppets[..4] {
        puppet.does(Do::Send(vec![b'x'; STREAM_WINDOW as usize]));
    }
    driven.answers();
    puppets
}

#[test]
fn a_stream_that_is_reset_after_it_was_answered_sends_nothing_more() {
    let mut driven = open(|settings| settings.pool.limits.request_timeout = Some(Duration::from_secs(3)));
    let puppets = without_credit(&mut driven, 5);
    driven.passes(Duration::from_secs(4));
    assert_eq!(driven.answers(), [Frame::Head(9, "504".into())], "its text waits for credit");
    assert!(driven.asks(&[Frame::Reset(9), Frame::Credit(0, 1000)]).is_empty());
    assert_eq!(driven.answers(), []);
    for puppet in puppets {
        puppet.does(Do::Finish);
        puppet.joins();
    }
    driven.turn(Signals::WRITE);
    let still = |connection: &mut Connection| connection.is_between_streams();
    assert_eq!(driven.group.with_connection(driven.token, still), Some(true));
}

#[test]
fn without_credit_for_the_connection_its_streams_are_reset_in_time() {
    let mut driven = open(|settings| settings.timeouts.send = Duration::from_secs(10));
    let puppets = without_credit(&mut driven, 5);
    puppets[4].does(Do::Send("x".into()));
    assert_eq!(driven.answers(), [ok(9)], "it has a window, and the connection has none");
    driven.passes(Duration::from_secs(11));
    assert_eq!(driven.answers(), [Frame::Reset(9)]);
    assert_eq!(puppets[4].does(Do::Send("x".into())), Done::Gone);
    for puppet in puppets {
        puppet.does(Do::Finish);
        puppet.joins();
    }
}
