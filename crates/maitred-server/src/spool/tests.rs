use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;

use super::*;
use crate::{Level, Log, LogTarget, Routes, Server, Settings};

/// Longer than anything here takes; reached only when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn on_disk() -> Open {
    Box::new(|| Ok(tempfile::tempfile().expect("a file")))
}

/// A disk that is full.
fn full() -> Open {
    Box::new(|| File::options().write(true).open("/dev/full"))
}

/// A disk that stands still until the sender is dropped; tells when somebody waits for it.
fn standing_still() -> (Open, Receiver<()>, Sender<()>) {
    let (tell, told) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let open = move || {
        let _ = tell.send(());
        // Ends with an error, when the sender is gone.
        let _ = released.recv();
        Ok(tempfile::tempfile().expect("a file"))
    };
    (Box::new(open), told, release)
}

/// A body that is begun with `first`, and the calls of its wake.
fn begin(spooler: &Spooler, first: &[u8]) -> (Spool, Receiver<()>) {
    let (sender, woken) = mpsc::channel();
    let wake = Mutex::new(sender);
    let wake = move || {
        // The test may have seen enough.
        let _ = wake.lock().expect("not poisoned").send(());
    };
    (spooler.begin(first.to_vec(), wake), woken)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

/// Waits until `done`; fails when it takes too long.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn bytes_come_back_in_order_however_they_came() {
    let spooler = Spooler::start(on_disk()).expect("a thread");
    for (first, part, length) in [
        (0, 1000, 1000),
        (10, 64 * 1024, 64 * 1024),
        (0, CHUNK, CHUNK),
        (3 * CHUNK, 65_000, 1_000_000),
        (5, 3, 20_000),
        (7, 5 * CHUNK, 5 * CHUNK + 7),
    ] {
        let bytes = pattern(length.max(first));
        let (mut spool, woken) = begin(&spooler, &bytes[..first]);
        let wait = |spool: &mut Spool| {
            while let Progress::Waiting = spool.advance() {
                woken.recv_timeout(PATIENCE).expect("woken");
            }
        };
        for part in bytes[first..].chunks(part) {
            spool.push(part);
            wait(&mut spool);
        }
        spool.complete();
        wait(&mut spool);
        assert!(matches!(spool.advance(), Progress::Written));
        assert_eq!(spool.len(), bytes.len() as u64);
        assert_eq!(spool.take_body().to_vec().expect("readable"), bytes, "{first} {part} {length}");
    }
}

#[test]
fn while_a_chunk_waits_for_the_disk_one_more_is_taken_and_no_third() {
    let (open, told, release) = standing_still();
    let spooler = Spooler::start(open).expect("a thread");
    let (mut spool, woken) = begin(&spooler, &pattern(CHUNK));
    assert!(matches!(spool.advance(), Progress::Open));
    told.recv_timeout(PATIENCE).expect("the chunk is being written");
    spool.push(&pattern(CHUNK - 1));
    assert!(matches!(spool.advance(), Progress::Open));
    spool.push(b"x");
    assert!(matches!(spool.advance(), Progress::Waiting));
    drop(release);
    woken.recv_timeout(PATIENCE).expect("the chunk is written");
    assert!(matches!(spool.advance(), Progress::Open));
}

#[test]
fn a_full_disk_is_told() {
    let spooler = Spooler::start(full()).expect("a thread");
    let (mut spool, woken) = begin(&spooler, &pattern(CHUNK));
    assert!(matches!(spool.advance(), Progress::Open));
    woken.recv_timeout(PATIENCE).expect("woken");
    let Progress::Failed(error) = spool.advance() else { panic!("written to a full disk") };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn the_file_of_a_body_that_ends_early_is_closed() {
    for chunk_is_written in [true, false] {
        let (mut there, here) = std::io::pipe().expect("a pipe");
        let mut here = Some(File::from(std::os::fd::OwnedFd::from(here)));
        let (wait, waited) = mpsc::channel::<()>();
        let open = move || {
            // Ends with an error, when the sender is gone.
            let _ = waited.recv();
            Ok(here.take().expect("opened once"))
        };
        let spooler = Spooler::start(Box::new(open)).expect("a thread");
        let (mut spool, woken) = begin(&spooler, b"abc");
        spool.complete();
        assert!(matches!(spool.advance(), Progress::Waiting));
        let mut wait = Some(wait);
        if chunk_is_written {
            wait = None;
            woken.recv_timeout(PATIENCE).expect("written");
        }
        drop(spool);
        drop(wait);
        // Ends when the file is closed; a chunk that nobody took yet is not written any more.
        let mut written = Vec::new();
        if chunk_is_written {
            there.read_to_end(&mut written).expect("closed");
            assert_eq!(written, b"abc");
        } else {
            drop(spooler);
            there.read_to_end(&mut written).expect("closed");
            assert!(written.is_empty() || written == b"abc");
        }
    }
}

#[test]
fn an_ended_spooler_takes_nothing_and_keeps_nothing() {
    let spooler = Spooler::start(on_disk()).expect("a thread");
    spooler.end();
    let (mut spool, _) = begin(&spooler, &pattern(CHUNK));
    assert!(matches!(spool.advance(), Progress::Failed(_)));
}

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
    let server = Server::start_with(settings, open).expect("the server starts");
    let address = server.addresses()[0];
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
    until("the connection ends", || running.server.snapshot().open == 0);
    drop(release);
    let mut next = running.upload(400_000);
    next.write_all(&vec![b'x'; 400_000]).expect("sent");
    assert!(answer(next).ends_with("\r\n\r\n400000"), "the disk goes on");
}
