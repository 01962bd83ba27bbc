//! Uploads to disks that stand still, are full, or work, through a server over real sockets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Flow};
use maitred_spool::Open;
use maitred_testkit::disk::{full, standing_still};

use crate::{Level, Log, LogTarget, Routes, Server, Settings};

/// Longer than anything here takes; reached only when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    server: Server,
    address: SocketAddr,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

/// A server that tells the length of bodies, with this disk.
fn serve(open: Open, body_timeout: Duration) -> Running {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let log = Arc::new(Log::open(Level::Error, LogTarget::Path(path.clone()), None).expect("a log"));
    let handler = |exchange: Exchange| {
        let text = exchange.request().body.len().to_string();
        drop(exchange.respond(ResponseHead::new(Status::OK), text));
    };
    let mut settings = Settings::new(Routes::new().with_application(Arc::new(handler)), log);
    settings.listeners.push(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.timeouts.body = body_timeout;
    settings.body_budget = 0;
    let server = Server::start_with(settings, open, |_| ()).expect("the server starts");
    let address = server.addresses()[0].tcp().expect("a port");
    Running { server, address, log: path, _folder: folder }
}

impl Running {
    fn upload(&self, length: usize) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        write!(
            stream,
            "POST /up HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        )
        .expect("sent");
        stream
    }

    fn logged(&self) -> String {
        self.server.log().flush(PATIENCE);
        std::fs::read_to_string(&self.log).expect("a log")
    }
}

fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer and the end");
    answer
}

/// Sends until the server has taken nothing for a moment; how much that was.
fn send_until_stuck(stream: &mut TcpStream, length: usize) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout can be set");
    let part = vec![b'x'; 64 * 1024];
    let mut sent = 0;
    while sent < length {
        match stream.write(&part[..part.len().min(length - sent)]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
    sent
}

/// Waits until `done`; fails when it takes too long.
fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn while_the_disk_stands_still_an_upload_pauses_and_others_are_served() {
    const LENGTH: usize = 64 * 1024 * 1024;
    let (open, told, release) = standing_still();
    let running = serve(open, PATIENCE);
    let mut large = running.upload(LENGTH);
    let sent = send_until_stuck(&mut large, LENGTH);
    told.recv_timeout(PATIENCE).expect("the disk is asked");
    assert!(sent < LENGTH / 2, "{sent} bytes were taken: more than the buffers of two sockets hold");
    let mut small = running.upload(3);
    small.write_all(b"abc").expect("sent");
    assert!(answer(small).ends_with("\r\n\r\n3"));
    drop(release);
    large.write_all(&vec![b'x'; LENGTH - sent]).expect("it goes on");
    assert!(answer(large).ends_with(&format!("\r\n\r\n{LENGTH}")));
}

/// Wherever the body ends between what was taken and what had to wait.
#[test]
fn an_upload_that_pauses_at_its_end_is_whole() {
    for length in (256..576).step_by(16).map(|kib| kib * 1024) {
        let (open, told, release) = standing_still();
        let running = serve(open, PATIENCE);
        let mut stream = running.upload(length);
        stream.write_all(&vec![b'x'; length]).expect("the sockets' buffers hold it");
        if length > 256 * 1024 {
            told.recv_timeout(PATIENCE).expect("the disk is asked");
        }
        // All that can be taken has been.
        let mut small = running.upload(0);
        small.write_all(b"").expect("sent");
        assert!(answer(small).ends_with("\r\n\r\n0"));
        drop(release);
        assert!(answer(stream).ends_with(&format!("\r\n\r\n{length}")), "{length}");
    }
}

#[test]
fn a_disk_that_takes_longer_than_a_peer_may_is_503() {
    let (open, told, release) = standing_still();
    let running = serve(open, Duration::from_millis(200));
    let mut stream = running.upload(1_000_000);
    stream.write_all(&vec![b'x'; 1_000_000]).expect("sent");
    told.recv_timeout(PATIENCE).expect("the disk is asked");
    let answer = answer(stream);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(running.logged().contains("POST /up: the request body cannot be kept"), "{}", running.logged());
    drop(release);
}

#[test]
fn a_full_disk_is_507_for_that_upload_only() {
    let running = serve(full(), PATIENCE);
    let mut stream = running.upload(1_000_000);
    stream.write_all(&vec![b'x'; 1_000_000]).expect("sent");
    let answered = answer(stream);
    assert!(answered.starts_with("HTTP/1.1 507 Insufficient Storage\r\n"), "{answered}");
    let mut small = running.upload(3);
    small.write_all(b"abc").expect("sent");
    assert!(answer(small).ends_with("\r\n\r\n3"));
    let log = running.logged();
    assert!(log.contains("No space left on device") && log.contains("--spool"), "{log}");
}

#[test]
fn a_peer_that_leaves_while_the_disk_stands_still_leaves_nothing() {
    let (open, told, release) = standing_still();
    let running = serve(open, PATIENCE);
    let mut stream = running.upload(1_000_000);
    stream.write_all(&vec![b'x'; 300_000]).expect("sent");
    told.recv_timeout(PATIENCE).expect("the disk is asked");
    drop(stream);
    until("the connection ends", || running.server.figures().snapshot().open == 0);
    drop(release);
    let mut next = running.upload(400_000);
    next.write_all(&vec![b'x'; 400_000]).expect("sent");
    assert!(answer(next).ends_with("\r\n\r\n400000"), "the disk goes on");
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

/// A server that streams `length` bytes, with this disk and one thread.
fn streaming(length: usize, open: Open) -> Running {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let log = Arc::new(Log::open(Level::Error, LogTarget::Path(path.clone()), None).expect("a log"));
    let handler = move |exchange: Exchange| {
        let mut stream = exchange.start(ResponseHead::new(Status::OK), Some(length as u64)).expect("a head");
        for part in pattern(length).chunks(64 * 1024) {
            if stream.send(part.to_vec()).is_ok_and(|flow| flow == Flow::Full) {
                while stream.wait(PATIENCE).is_ok_and(|flow| flow == Flow::Full) {}
            }
        }
        stream.finish();
    };
    let mut settings = Settings::new(Routes::new().with_application(Arc::new(handler)), log);
    settings.listeners.push(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.pool.limits.max_threads = 1;
    let server = Server::start_with(settings, open, |_| ()).expect("the server starts");
    let address = server.addresses()[0].tcp().expect("a port");
    Running { server, address, log: path, _folder: folder }
}

#[test]
fn on_a_full_disk_a_stream_waits_for_its_reader_and_the_log_says_so_once() {
    let length = 8 * 1024 * 1024;
    let running = streaming(length, Box::new(|| std::fs::File::options().write(true).open("/dev/full")));
    for _ in 0..2 {
        let mut stream = TcpStream::connect(running.address).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.write_all(b"GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").expect("sent");
        let begun = Instant::now();
        while !std::fs::read_to_string(&running.log).expect("a log").contains("No space left") {
            assert!(begun.elapsed() < PATIENCE, "the disk is tried");
            running.server.log().flush(PATIENCE);
        }
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("all of it");
        assert!(answer.ends_with(&pattern(length)));
    }
    let log = std::fs::read_to_string(&running.log).expect("a log");
    assert_eq!(log.matches("cannot be kept in the spool folder (--spool)").count(), 1, "{log}");
}
