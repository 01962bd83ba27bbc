//! A server that is a script, a clock that is a number, and a client of exchange and pool between them.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_client::Error;
use maitred_client::exchange::{Circumstances, Event, Exchange, Reuse, Timeouts};
use maitred_client::key::Key;
use maitred_client::pool::{Pool, Settings, Slot};
use maitred_h1::{Limits, OutgoingRequest};
use maitred_http::{FieldSet, Method};

/// One thing that a server does once it has got the head of a request.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Lets so many seconds pass.
    Wait(u64),
    /// Ends the connection with FIN, by TLS with its own end before that.
    End,
    /// Ends it with FIN within TLS.
    Cut,
    /// Ends it with RST.
    Reset,
    /// Takes no more bytes: the client's next write fails.
    Refuse,
    /// Takes no byte, and lets the client wait.
    Stall,
}

pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Do {
    Do::Send(bytes.as_ref().to_vec())
}

/// A request and the connection for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Get,
    Head,
    /// With a body of so many bytes.
    Post(usize),
    /// With a body that waits for a 100.
    Expect,
    Upgrade,
    /// On a connection that has had a request before.
    GetAgain,
    /// The same, with a body of so many bytes.
    PostAgain(usize),
}

/// The connection as the client sees it.
#[derive(Debug)]
struct Wire {
    script: VecDeque<Do>,
    /// The bytes that have arrived and were not consumed.
    received: Vec<u8>,
    stalled: bool,
    refuses: bool,
    /// Bytes in one write and in one read.
    piece: usize,
}

pub(crate) struct Client {
    pool: Pool<Wire>,
    key: Arc<Key>,
    now: Instant,
    piece: usize,
}

/// The server's answer to a request that nothing is wrong with.
const NEXT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext";

const TIMEOUTS: Timeouts = Timeouts {
    first_byte: Some(Duration::from_secs(5)),
    progress: Some(Duration::from_secs(3)),
    write: None,
    total: Some(Duration::from_secs(60)),
    expect: Duration::from_secs(1),
};

impl Client {
    /// A client whose reads and writes have at most `piece` bytes.
    pub(crate) fn new(piece: usize) -> Self {
        let settings = Settings { per_key: 1, total: 1, ..Settings::default() };
        let (pool, key) = (Pool::new(settings), Arc::new(Key::plain("a", 80)));
        Self { pool, key, now: Instant::now(), piece }
    }

    /// Calls a server that acts by `script`. The result as text: status, body, and whether the connection is used again.
    pub(crate) fn call(&mut self, ask: Ask, script: &[Do]) -> String {
        if matches!(ask, Ask::GetAgain | Ask::PostAgain(_)) {
            assert_eq!(self.call(Ask::Get, &[send(NEXT)]), "200 next, kept");
        }
        self.attempt(ask, script)
    }

    /// A call that nothing is wrong with, behind the others.
    pub(crate) fn next(&mut self) -> String {
        self.attempt(Ask::Get, &[send(NEXT)])
    }

    fn attempt(&mut self, ask: Ask, script: &[Do]) -> String {
        let mut slot = self.pool.check_out(&self.key, 0, self.now).expect("every slot was given back");
        // The look before use: a driver peeks at an idle socket.
        let is_quiet = |wire: &mut Wire| wire.received.is_empty() && wire.script.is_empty();
        if !slot.connection().is_some_and(is_quiet) {
            let wire = Wire {
                script: VecDeque::new(),
                received: Vec::new(),
                stalled: false,
                refuses: false,
                piece: self.piece,
            };
            slot.put(wire, self.now);
        }
        slot.connection().expect("it was put").script.extend(script.iter().cloned());
        let reused = slot.is_reused();
        let mut exchange = self.begin(ask, reused);
        let mut seen = String::new();
        let result = self.run(ask, &mut slot, &mut exchange, &mut seen);
        if let Err(error) = result {
            if exchange.may_retry(true) {
                drop(slot);
                return format!("{error:?}, again: {}", self.attempt(Ask::Get, &[send(NEXT)]));
            }
            write!(seen, "{}{error:?}", if seen.is_empty() { "" } else { " " }).expect("text");
        }
        let surplus = !slot.connection().expect("it is there").received.is_empty();
        match exchange.reuse(surplus) {
            Reuse::Yes(kept) => {
                slot.give_back(kept, self.now);
                seen + ", kept"
            }
            Reuse::No(reason) => format!("{seen}, {reason:?}"),
        }
    }

    fn begin(&self, ask: Ask, reused: bool) -> Exchange {
        let mut fields = FieldSet::new();
        let (method, length) = match ask {
            Ask::Get | Ask::GetAgain => (Method::Get, 0),
            Ask::Head => (Method::Head, 0),
            Ask::Post(length) | Ask::PostAgain(length) => (Method::Post, length),
            Ask::Expect => {
                fields.push("Expect", "100-continue");
                (Method::Post, 10)
            }
            Ask::Upgrade => {
                fields.push("Upgrade", "websocket");
                (Method::Get, 0)
            }
        };
        let request = OutgoingRequest {
            method: &method,
            target: b"/",
            authority: b"a",
            fields: &fields,
            length: Some(length as u64),
            upgrade: ask == Ask::Upgrade,
        };
        let circumstances = Circumstances { reused, repeatable: None, timeouts: TIMEOUTS };
        Exchange::begin(&request, circumstances, self.now).expect("a good head")
    }

    fn run(
        &mut self,
        ask: Ask,
        slot: &mut Slot<Wire>,
        exchange: &mut Exchange,
        seen: &mut String,
    ) -> Result<(), Error> {
        let wire = slot.connection().expect("it is there");
        let mut body = match ask {
            Ask::Post(length) | Ask::PostAgain(length) => length,
            Ask::Expect => 10,
            _ => 0,
        };
        // A server that stalls or refuses does so before it has taken a byte.
        while let Some(Do::Stall | Do::Refuse) = wire.script.front() {
            wire.do_next(exchange)?;
        }
        loop {
            while exchange.room() > 0 && body > 0 {
                body -= exchange.send_body(&vec![b'b'; body.min(exchange.room())])?;
            }
            if body == 0 {
                exchange.end_body(None)?;
            }
            let waiting = exchange.to_transmit().len();
            if waiting > 0 && wire.refuses {
                exchange.write_failed(false);
            } else if waiting > 0 && !wire.stalled {
                exchange.transmitted(waiting.min(wire.piece.max(1000)), self.now);
            }
            if wire.receive(exchange, self.now, seen)? {
                return Ok(());
            }
            let is_open = exchange.room() > 0 || !exchange.to_transmit().is_empty();
            let head_only = ask == Ask::Expect || matches!(ask, Ask::Post(10_000_000));
            match wire.script.front() {
                // The server answers when the request is there, a large one or one that waits for a 100 earlier.
                Some(_) if is_open && !wire.stalled && !wire.refuses && !head_only => {}
                Some(Do::Wait(seconds)) => {
                    let until = self.now + Duration::from_secs(*seconds);
                    wire.script.pop_front();
                    while let Some(at) = exchange.deadline().filter(|at| *at <= until) {
                        self.now = at;
                        exchange.handle_deadline(at)?;
                    }
                    self.now = until;
                }
                Some(_) => wire.do_next(exchange)?,
                None if is_open && !wire.stalled => {}
                None => {
                    self.now = exchange.deadline().expect("a call never waits without a limit");
                    exchange.handle_deadline(self.now)?;
                }
            }
        }
    }
}

impl Wire {
    fn do_next(&mut self, exchange: &mut Exchange) -> Result<(), Error> {
        match self.script.pop_front() {
            Some(Do::Send(mut bytes)) => {
                let rest = bytes.split_off(bytes.len().min(self.piece));
                self.received.extend(bytes);
                if !rest.is_empty() {
                    self.script.push_front(Do::Send(rest));
                }
                Ok(())
            }
            Some(Do::End) => exchange.end_of_stream(true),
            Some(Do::Cut) => exchange.end_of_stream(false),
            Some(Do::Reset) => exchange.read_failed(),
            Some(Do::Refuse) => {
                self.refuses = true;
                Ok(())
            }
            Some(Do::Stall) => {
                self.stalled = true;
                Ok(())
            }
            Some(Do::Wait(_)) | None => Ok(()),
        }
    }

    /// Offers what has arrived; whether the response is complete.
    fn receive(&mut self, exchange: &mut Exchange, now: Instant, seen: &mut String) -> Result<bool, Error> {
        loop {
            let step = exchange.poll_event(&self.received, &Limits::of_responses(), now)?;
            match step.event {
                Event::NeedMore => {
                    self.received.drain(..step.consumed);
                    return Ok(false);
                }
                Event::Interim => write!(seen, "{} ", exchange.head().status).expect("text"),
                Event::Head(_) => write!(seen, "{}", exchange.head().status).expect("text"),
                Event::Data(bytes) => {
                    let space = if seen.ends_with(|last: char| last.is_ascii_digit()) { " " } else { "" };
                    write!(seen, "{space}{}", bytes.escape_ascii()).expect("text");
                }
                Event::Trailers(fields) => write!(seen, " {fields:?}").expect("text"),
                Event::End => {
                    self.received.drain(..step.consumed);
                    return Ok(true);
                }
            }
            self.received.drain(..step.consumed);
        }
    }
}
