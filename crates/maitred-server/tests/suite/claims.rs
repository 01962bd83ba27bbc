//! Behaviour of handlers: routes that keep threads for long, and a false claim not to block.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::harness::door::{Door, Opened};
use crate::harness::pools::{ALL, MANY};
use crate::harness::{
    PATIENCE, Running, ask, exchange, get_last, read_response, settings, start, text, wait_until,
};
use maitred_runtime::{Exchange, Handler, InvocationType};
use maitred_server::{DEFAULT_POOL, Level, Log, LogTarget, Routes, Settings, Strategy};
use tempfile::TempDir;

/// A server whose error log can be read.
struct Logged {
    running: Running,
    file: PathBuf,
    _folder: TempDir,
}

impl Logged {
    fn start(handler: impl Handler, change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
        let log = Log::open(Level::Info, LogTarget::Path(file.clone()), None).unwrap();
        settings.log = Arc::new(log);
        change(&mut settings);
        Self { running: start(settings), file, _folder: folder }
    }

    /// How many lines have this in them.
    fn lines_with(&self, part: &str) -> usize {
        self.running.server.log().flush(PATIENCE);
        let text = std::fs::read_to_string(&self.file).unwrap();
        text.lines().filter(|line| line.contains(part)).count()
    }

    fn ask(&self, path: &str) -> String {
        let answer = exchange(self.running.address, &get_last(path));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.rsplit_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

#[test]
fn others_get_past_a_route_that_has_every_thread() {
    let door = Arc::new(Door::default());
    let at = Arc::clone(&door);
    let handler = move |exchange: Exchange| {
        let path = String::from_utf8_lossy(exchange.request().head.path()).into_owned();
        if path == "/slow" {
            at.pass(&path);
        }
        text(exchange, path);
    };
    let server = Logged::start(handler, |settings| settings.pool.limits.max_threads = 4);
    let running = &server.running;
    let _opened = Opened(Arc::clone(&door));
    let mut clients: Vec<_> = (0..10).map(|_| ask(running.address, "/slow")).collect();
    door.wait_for(4);
    running.wait_for_figure(DEFAULT_POOL, "queued", 6);
    for letter in 'a'..='z' {
        let path = format!("/fast/{letter}");
        assert_eq!(server.ask(&path), path);
    }
    assert_eq!((door.came().len(), door.most()), (4, 4), "no thread is kept from slow requests");
    door.open();
    for stream in &mut clients {
        assert_eq!(read_response(stream).1, b"/slow");
    }
    assert_eq!(door.most(), 4, "the reserve thread is for others");
}

/// Says that it does not block, and does.
struct Liar(Arc<Door>);

impl Handler for Liar {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::NonBlocking
    }

    fn handle(&self, exchange: Exchange) {
        match exchange.request().head.path() {
            b"/blocks" => thread::sleep(Duration::from_millis(50)),
            b"/wait" => self.0.pass("/wait"),
            _ => {}
        }
        text(exchange, thread::current().name().unwrap_or_default());
    }
}

#[test]
fn a_handler_that_wrongly_claims_not_to_block_is_told_of_once_and_believed_no_more() {
    for strategy in ALL {
        let door = Arc::new(Door::default());
        let _opened = Opened(Arc::clone(&door));
        let server = Logged::start(Liar(Arc::clone(&door)), |settings| {
            settings.pool.strategy = strategy;
            settings.pool.limits.max_threads = 2;
        });
        let first = server.ask("/");
        if strategy == Strategy::Pec {
            assert_eq!(first, "maitred-poller", "the thread that polls runs it itself");
        }
        let entry = "error a handler that claims not to block has kept its thread for ";
        assert_eq!(server.lines_with(entry), 0);
        // A busy machine may do that once to a handler that is right.
        wait_until("it is told", || {
            server.ask("/blocks");
            server.lines_with(entry) == 1
        });
        for path in ["/", "/blocks", "/blocks"] {
            let after = server.ask(path);
            assert!(after.starts_with("maitred-") && after != "maitred-poller", "{strategy:?}: {after}");
        }
        if MANY.contains(&strategy) {
            let mut blocked = ask(server.running.address, "/wait");
            door.wait_for(1);
            assert_ne!(server.ask("/"), "maitred-poller");
            door.open();
            assert!(read_response(&mut blocked).1.starts_with(b"maitred-"));
        }
        assert_eq!(server.lines_with(entry), 1, "{strategy:?}");
    }
}
