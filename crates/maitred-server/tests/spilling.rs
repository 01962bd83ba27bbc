//! Readers that do not read: their responses are in files meanwhile, and no thread waits for them.

#[path = "suite/harness/mod.rs"]
mod harness;

use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};

use harness::{
    PATIENCE, Running, ask, connect, exchange, get, get_last, read_response, settings, start, text,
    wait_until,
};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Content, Exchange, Flow, Stream};
use maitred_server::{Routes, WriterSettings};
use maitred_testkit::client::Client;

const MIB: usize = 1024 * 1024;
const BLOCK: usize = 64 * 1024;

/// Bytes among which the order counts.
fn pattern(length: usize) -> &'static [u8] {
    static ALL: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..50 * MIB).map(|position| (position * 7 % 251) as u8).collect());
    &ALL[..length]
}

/// Files of `folder` that this process has open.
fn open_in(folder: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    let paths = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    paths.filter(|path| path.starts_with(folder)).count()
}

/// A server with one thread and a spool folder of its own.
fn serve(
    writer: WriterSettings,
    handler: impl Fn(Exchange) + Send + Sync + 'static,
) -> (Running, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.writer = writer;
    settings.spool = folder.path().to_owned();
    settings.pool.limits.max_threads = 1;
    (start(settings), folder)
}

/// Sends a body block by block, and waits where the engine says so.
fn stream_all(stream: &mut Stream, body: &[u8]) {
    for block in body.chunks(BLOCK) {
        if stream.send(block.to_vec()) == Ok(Flow::Full) {
            while stream.wait(PATIENCE) == Ok(Flow::Full) {}
        }
    }
}

/// Streams `length` bytes, chunked, for `/stream`; tells when it has done so.
fn streaming(length: usize, done: Sender<()>) -> impl Fn(Exchange) + Send + Sync + 'static {
    let done = Mutex::new(done);
    move |exchange: Exchange| {
        if exchange.request().head.path() != b"/stream" {
            return text(exchange, "page");
        }
        let mut stream = exchange.start(ResponseHead::new(Status::OK), None).expect("a head");
        stream_all(&mut stream, pattern(length));
        stream.finish();
        // The test may have seen enough.
        let _ = done.lock().unwrap().send(());
    }
}

/// A chunked body to its end.
fn read_chunked(stream: &mut Client) -> Vec<u8> {
    read_response(stream);
    let mut body = Vec::new();
    loop {
        let mut size = Vec::new();
        while !size.ends_with(b"\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a chunk");
            size.push(byte[0]);
        }
        let size = usize::from_str_radix(str::from_utf8(&size).unwrap().trim(), 16).expect("a size");
        let start = body.len();
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..]).expect("the chunk");
        let mut end = [0; 2];
        stream.read_exact(&mut end).expect("the end of the chunk");
        if size == 0 {
            return body;
        }
    }
}

#[test]
fn an_unread_stream_frees_its_thread_and_arrives_whole_later() {
    let (done, hear) = channel();
    let (running, folder) = serve(WriterSettings::default(), streaming(50 * MIB, done));
    let mut slow = ask(running.address, "/stream");
    hear.recv_timeout(PATIENCE).expect("the handler has gone on");
    assert!(exchange(running.address, &get_last("/")).ends_with("page"), "with the only thread");
    assert!(open_in(folder.path()) > 0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "no file has a name");
    assert!(read_chunked(&mut slow) == pattern(50 * MIB), "whole, and in order");
    wait_until("the files are closed", || open_in(folder.path()) == 0);
    slow.write_all(&get("/")).unwrap();
    assert_eq!(read_response(&mut slow).1, b"page", "the connection is as good as before");
}

#[test]
fn a_response_that_may_have_no_more_in_files_waits_for_its_reader() {
    let (done, hear) = channel();
    let writer = WriterSettings { file: MIB as u64, ..WriterSettings::default() };
    let (running, folder) = serve(writer, streaming(16 * MIB, done));
    let mut slow = ask(running.address, "/stream");
    wait_until("a file is open", || open_in(folder.path()) > 0);
    assert!(hear.try_recv().is_err(), "there is more than kernel, memory and file hold");
    assert!(read_chunked(&mut slow) == pattern(16 * MIB));
    hear.recv_timeout(PATIENCE).expect("the handler has gone on");
}

#[test]
fn without_files_a_stream_waits_for_its_reader() {
    let (done, hear) = channel();
    let writer = WriterSettings { file: 0, ..WriterSettings::default() };
    let (running, folder) = serve(writer, streaming(16 * MIB, done));
    let mut slow = ask(running.address, "/stream");
    assert!(read_chunked(&mut slow) == pattern(16 * MIB));
    hear.recv_timeout(PATIENCE).expect("the handler has gone on");
    // Limits hold for the next response when they are changed.
    running.server.settings().set_writer(WriterSettings::default());
    let slow = ask(running.address, "/stream");
    hear.recv_timeout(PATIENCE).expect("without a reader");
    assert!(open_in(folder.path()) > 0);
    drop(slow);
    wait_until("the files are closed", || open_in(folder.path()) == 0);
}

#[test]
fn bodies_that_take_too_much_memory_together_go_to_files() {
    let body = || pattern(8 * MIB).to_vec();
    let writer = WriterSettings { budget: MIB as u64, ..WriterSettings::default() };
    let (running, folder) = serve(writer, move |exchange: Exchange| {
        let _ = exchange.respond(ResponseHead::new(Status::OK), body());
    });
    let mut slow: Vec<_> = (0..6).map(|_| ask(running.address, "/")).collect();
    wait_until("each is in a file", || open_in(folder.path()) == 6);
    for stream in &mut slow {
        assert!(read_response(stream).1 == body());
    }
    wait_until("the files are closed", || open_in(folder.path()) == 0);
}

#[test]
fn one_body_that_all_responses_share_goes_to_no_file() {
    let shared: Arc<[u8]> = pattern(8 * MIB).into();
    let body = Arc::clone(&shared);
    let writer = WriterSettings { budget: 12 * MIB as u64, ..WriterSettings::default() };
    let (running, folder) = serve(writer, move |exchange: Exchange| {
        let is_shared = exchange.request().head.path() == b"/shared";
        let body =
            if is_shared { Content::Shared(Arc::clone(&body)) } else { pattern(8 * MIB).to_vec().into() };
        let _ = exchange.respond(ResponseHead::new(Status::OK), body);
    });
    let _slow: Vec<_> = (0..6).map(|_| ask(running.address, "/shared")).collect();
    let _last = ask(running.address, "/fresh");
    wait_until("the last one is in a file", || open_in(folder.path()) > 0);
    assert_eq!(open_in(folder.path()), 1, "and it alone");
}

#[test]
fn clients_that_reset_leave_nothing_behind() {
    let (done, _hear) = channel();
    let (running, folder) = serve(WriterSettings::default(), streaming(2 * MIB, done));
    assert!(read_chunked(&mut ask(running.address, "/stream")) == pattern(2 * MIB));
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("Linux").count();
    wait_until("the connection ends", || running.server.figures().snapshot().open == 0);
    let before = descriptors();
    for _ in 0..1_000 {
        let mut stream = ask(running.address, "/stream");
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("it has begun");
        // Unread bytes turn the close into a reset.
    }
    wait_until("all connections end", || running.server.figures().snapshot().open == 0);
    wait_until("the files are closed", || open_in(folder.path()) == 0);
    // Other tests of this process come and go with theirs.
    wait_until("nothing else is left open", || descriptors() <= before + 64);
    assert!(exchange(running.address, &get_last("/")).ends_with("page"));
}

/// Sends 16 MiB in one piece, and tells when it has done so.
fn in_one_piece(done: Sender<()>) -> (impl Fn(Exchange) + Send + Sync + 'static, Receiver<bool>) {
    let (tell, told) = channel();
    let (done, tell) = (Mutex::new(done), Mutex::new(tell));
    let handler = move |exchange: Exchange| {
        let body = pattern(16 * MIB).to_vec();
        let length = body.len() as u64;
        let mut stream = exchange.start(ResponseHead::new(Status::OK), Some(length)).expect("a head");
        let _ = stream.send(body);
        tell.lock().unwrap().send(stream.is_tight(length)).unwrap();
        if stream.is_tight(length) {
            let _ = stream.relieve();
        }
        stream.finish();
        done.lock().unwrap().send(()).unwrap();
    };
    (handler, told)
}

#[test]
fn a_listener_without_writer_leaves_slow_readers_to_the_threads_of_handlers() {
    for writer in [true, false] {
        let (done, hear) = channel();
        let (handler, told) = in_one_piece(done);
        let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
        settings.listeners[0].writer = writer;
        let running = start(settings);
        let mut slow = connect(running.address);
        slow.write_all(&get("/")).unwrap();
        assert_eq!(told.recv_timeout(PATIENCE).expect("sent"), !writer);
        if writer {
            hear.recv_timeout(PATIENCE).expect("nobody waits for the reader");
        } else {
            assert!(hear.try_recv().is_err(), "the kernel has not taken everything");
        }
        assert!(read_response(&mut slow).1 == pattern(16 * MIB));
        if !writer {
            hear.recv_timeout(PATIENCE).expect("it has now");
        }
    }
}
