//! Application threads: exchanges finished elsewhere, blocked threads, slow readers, the end.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::harness::door::Door;
use crate::harness::{
    PATIENCE, connect, exchange, get, get_last, read_all, read_response, serve, settings, start, text,
};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Flow, Handler, InvocationType, SendError};
use maitred_server::Routes;

#[test]
fn an_exchange_can_be_finished_from_another_thread() {
    let (send, receive) = mpsc::channel::<Exchange>();
    let send = Mutex::new(send);
    let running = serve(move |exchange: Exchange| send.lock().unwrap().send(exchange).unwrap());
    let finisher = std::thread::spawn(move || {
        for exchange in receive.iter().take(100) {
            text(exchange, "from elsewhere");
        }
    });
    let mut stream = connect(running.address);
    for _ in 0..50 {
        // Two at once: the second is seen only when the first has been finished elsewhere.
        stream.write_all(&[get("/"), get("/")].concat()).unwrap();
        assert_eq!(read_response(&mut stream).1, b"from elsewhere");
        assert_eq!(read_response(&mut stream).1, b"from elsewhere");
    }
    finisher.join().unwrap();
}

#[test]
fn an_exchange_that_is_dropped_elsewhere_is_500() {
    let running = serve(|exchange: Exchange| {
        std::thread::spawn(move || drop(exchange));
    });
    assert!(exchange(running.address, &get_last("/")).starts_with("HTTP/1.1 500 "));
}

#[test]
fn with_every_thread_blocked_files_refusals_and_timeouts_go_on() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "static").unwrap();
    let door = Arc::new(Door::default());
    let inside = Arc::clone(&door);
    let routes = Routes::new()
        .with_static("/s", StaticFiles::open(folder.path(), StaticSettings::default()).unwrap())
        .with_application(Arc::new(move |exchange: Exchange| {
            inside.pass("");
            text(exchange, "late");
        }));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 3;
    settings.timeouts.head = Duration::from_millis(100);
    let running = start(settings);
    let mut blocked: Vec<_> = (0..5).map(|_| connect(running.address)).collect();
    for stream in &mut blocked {
        stream.write_all(&get("/wait")).unwrap();
    }
    door.wait_for(3);
    for _ in 0..20 {
        assert!(exchange(running.address, &get_last("/s/a.txt")).ends_with("static"));
        assert!(exchange(running.address, b"BAD\r\n\r\n").starts_with("HTTP/1.1 400 "));
    }
    let mut half = connect(running.address);
    half.write_all(b"GET / HT").unwrap();
    assert!(read_all(&mut half).starts_with("HTTP/1.1 408 "));
    door.open();
    for stream in &mut blocked {
        assert_eq!(read_response(stream).1, b"late");
    }
}

#[test]
fn threads_grow_to_the_maximum_and_not_beyond() {
    let door = Arc::new(Door::default());
    let inside = Arc::clone(&door);
    let routes = Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        inside.pass("");
        text(exchange, "done");
    }));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 6;
    let running = start(settings);
    let mut streams: Vec<_> = (0..10).map(|_| connect(running.address)).collect();
    for stream in &mut streams {
        stream.write_all(&get("/")).unwrap();
    }
    door.wait_for(6);
    assert_eq!(running.server.figures().snapshot().threads, 6);
    door.open();
    for stream in &mut streams {
        assert_eq!(read_response(stream).1, b"done");
    }
    assert_eq!(running.server.figures().snapshot().threads, 6);
}

#[test]
fn readers_of_complete_bodies_hold_no_thread() {
    let routes = Routes::new().with_application(Arc::new(|exchange: Exchange| {
        let large = exchange.request().head.path() == b"/large";
        let body = if large { vec![b'x'; 20_000_000] } else { b"small".to_vec() };
        let _ = exchange.respond(ResponseHead::new(Status::OK), body);
    }));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 1;
    let running = start(settings);
    let mut slow: Vec<_> = (0..4).map(|_| connect(running.address)).collect();
    for stream in &mut slow {
        stream.write_all(&get_last("/large")).unwrap();
    }
    for _ in 0..10 {
        assert!(exchange(running.address, &get_last("/")).ends_with("small"));
    }
    for stream in &mut slow {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.len() > 20_000_000, "{}", answer.len());
    }
}

#[test]
fn a_stream_waits_for_its_reader_within_bounds_and_hears_of_its_end() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let running = serve(move |exchange: Exchange| {
        let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
        let mut sent: u64 = 0;
        let ended = loop {
            match stream.send(vec![b'y'; 64 * 1024]) {
                Ok(Flow::Ready) => sent += 64 * 1024,
                Ok(Flow::Full) => {
                    sent += 64 * 1024;
                    let _ = tell.lock().unwrap().send((sent, None));
                    if let Err(error) = stream.wait(PATIENCE) {
                        break error;
                    }
                }
                Err(error) => break error,
            }
        };
        let _ = tell.lock().unwrap().send((sent, Some(ended)));
    });
    let mut stream = connect(running.address);
    stream.write_all(&get("/")).unwrap();
    let (first, _) = told.recv_timeout(PATIENCE).unwrap();
    // Bytes taken by the reader make room again.
    let mut taken = vec![0; first as usize];
    stream.read_exact(&mut taken).unwrap();
    let (second, ended) = told.recv_timeout(PATIENCE).unwrap();
    assert!(second > first && ended.is_none());
    drop(stream);
    let end = told.iter().find_map(|(_, ended)| ended);
    assert_eq!(end, Some(SendError::Closed));
}

#[test]
fn streamed_blocks_leave_at_once() {
    let (go, went) = mpsc::channel::<()>();
    let went = Mutex::new(went);
    let running = serve(move |exchange: Exchange| {
        let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
        for part in ["one", "two", "three"] {
            stream.send(part).unwrap();
            went.lock().unwrap().recv().unwrap();
        }
        stream.finish();
    });
    let mut stream = connect(running.address);
    stream.write_all(&get_last("/")).unwrap();
    let mut seen = String::new();
    for part in ["one", "two", "three"] {
        while !seen.contains(part) {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        go.send(()).unwrap();
    }
    seen.push_str(&read_all(&mut stream));
    assert!(seen.ends_with("5\r\nthree\r\n0\r\n\r\n"), "{seen}");
}

struct NonBlocking;

impl Handler for NonBlocking {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::NonBlocking
    }

    fn handle(&self, exchange: Exchange) {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        text(exchange, name);
    }
}

#[test]
fn a_handler_that_wrongly_claims_not_to_block_stops_nobody_else() {
    struct Liar(Arc<Door>);
    impl Handler for Liar {
        fn invocation_type(&self) -> InvocationType {
            InvocationType::NonBlocking
        }

        fn handle(&self, exchange: Exchange) {
            self.0.pass("");
            text(exchange, "late");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "static").unwrap();
    let door = Arc::new(Door::default());
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let routes = Routes::new().with_static("/s", files).with_application(Arc::new(Liar(Arc::clone(&door))));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 2;
    let running = start(settings);
    let mut blocked = connect(running.address);
    blocked.write_all(&get("/")).unwrap();
    door.wait_for(1);
    for _ in 0..20 {
        assert!(exchange(running.address, &get_last("/s/a.txt")).ends_with("static"));
    }
    door.open();
    assert_eq!(read_response(&mut blocked).1, b"late");
}

#[test]
fn draining_answers_what_was_accepted_and_closes() {
    let door = Arc::new(Door::default());
    let inside = Arc::clone(&door);
    let running = serve(move |exchange: Exchange| {
        if exchange.request().head.path() == b"/wait" {
            inside.pass("");
        }
        text(exchange, "done");
    });
    let mut idle = connect(running.address);
    idle.write_all(&get("/")).unwrap();
    read_response(&mut idle);
    let mut waiting: Vec<_> = (0..3).map(|_| connect(running.address)).collect();
    for stream in &mut waiting {
        stream.write_all(&get("/wait")).unwrap();
    }
    door.wait_for(3);
    running.server.drain();
    assert!(!running.server.wait_drained(Duration::ZERO));
    // A request that arrives on an open connection is still answered, as the last one.
    idle.write_all(&get("/")).unwrap();
    let (head, body) = read_response(&mut idle);
    assert!(head.contains("Connection: close\r\n"), "{head}");
    assert_eq!(body, b"done");
    door.open();
    for stream in &mut waiting {
        assert!(read_all(stream).ends_with("done"));
    }
    assert!(running.server.wait_drained(PATIENCE));
    let refused = std::net::TcpStream::connect(running.address);
    assert_eq!(refused.map(drop).map_err(|error| error.kind()), Err(std::io::ErrorKind::ConnectionRefused));
}

#[test]
fn a_server_can_be_stopped_while_it_is_idle_and_started_again() {
    for _ in 0..10 {
        let running = start(settings(Routes::new().with_application(Arc::new(NonBlocking))));
        let answer = exchange(running.address, &get_last("/"));
        assert!(answer.contains("maitred-"), "{answer}");
        let address = running.address;
        running.server.stop();
        let before = Instant::now();
        while std::net::TcpStream::connect(address).is_ok() {
            assert!(before.elapsed() < PATIENCE, "the listener closes");
        }
    }
}
