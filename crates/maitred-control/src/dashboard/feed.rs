//! Answers as they change, for pages that are open: server-sent events (WHATWG HTML, section 9.2), each second.
//!
//! One thread asks each query once for all pages, and exists while there is one. A page that reads too slowly misses answers, and one that
//! takes nothing for [`PATIENCE`] is left.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use maitred_server::CONTROL;

use crate::inner::Inner;
use crate::{Caller, Question, Refusal, find, lock};

const EVERY: Duration = Duration::from_secs(1);

/// How long a page may take nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pages at a time.
const MOST: usize = 64;

/// Queries of one page.
const MOST_ITEMS: usize = 16;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
                    X-Content-Type-Options: nosniff\r\nX-Accel-Buffering: no\r\nConnection: close\r\n\r\nretry: 2000\n\n";

/// A query that a page follows: its name, and its arguments as they are written in an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Item {
    name: String,
    query: String,
}

impl Item {
    /// `stats`, `history?last=2s`.
    /// Errors: there is no such query.
    pub(in super::super) fn of(text: &str) -> Result<Self, Refusal> {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let command = find(name)?;
        if command.change {
            return Err(Refusal::wrong(format!("{name} changes something, so that it cannot be followed")));
        }
        Ok(Self { name: name.to_owned(), query: query.to_owned() })
    }

    /// All that a page follows.
    /// Errors: one of them is no query, or they are too many.
    pub(in super::super) fn all<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<Self>, Refusal> {
        let items: Vec<Self> = texts.map(Self::of).collect::<Result<_, _>>()?;
        match items.len() {
            1..=MOST_ITEMS => Ok(items),
            _ => Err(Refusal::wrong(format!("name 1 to {MOST_ITEMS} queries: ?of=stats&of=threads"))),
        }
    }
}

struct Guest {
    stream: TcpStream,
    items: Vec<Item>,
    csrf: String,
    caller: Caller,
    /// Bytes that the socket has not taken yet.
    waiting: Vec<u8>,
    /// When it took something last.
    took: Instant,
    is_new: bool,
}

#[derive(Default)]
struct State {
    guests: Vec<Guest>,
    is_running: bool,
}

pub(in super::super) struct Feed {
    pub(in super::super) inner: Arc<Inner>,
    state: Mutex<State>,
    called: Condvar,
}

impl Feed {
    pub(in super::super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, state: Mutex::default(), called: Condvar::new() }
    }

    pub(in super::super) fn is_full(&self) -> bool {
        lock(&self.state).guests.len() >= MOST
    }

    /// A page begins to follow, until it goes or its session ends.
    /// Errors: it has gone, or the process has no thread left.
    pub(in super::super) fn join(
        self: &Arc<Self>,
        stream: TcpStream,
        items: Vec<Item>,
        csrf: String,
        caller: Caller,
    ) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let waiting = HEAD.as_bytes().to_vec();
        let guest = Guest { stream, items, csrf, caller, waiting, took: Instant::now(), is_new: true };
        let mut state = lock(&self.state);
        state.guests.push(guest);
        if state.is_running {
            self.called.notify_one();
            return Ok(());
        }
        let own = Arc::clone(self);
        let thread = std::thread::Builder::new().name(CONTROL.to_owned());
        state.is_running = thread.spawn(move || own.run()).is_ok();
        if !state.is_running {
            state.guests.clear();
        }
        Ok(())
    }

    pub(in super::super) fn end(&self) {
        lock(&self.state).guests.clear();
        self.called.notify_one();
    }

    fn run(&self) {
        let mut due = Instant::now();
        loop {
            let now = Instant::now();
            let is_due = now >= due;
            if is_due {
                // One that is late does not hurry.
                due = now + EVERY;
            }
            let mut guests = std::mem::take(&mut lock(&self.state).guests);
            serve(&self.inner, &mut guests, is_due);
            let mut state = lock(&self.state);
            // Those that have come meanwhile are served at once.
            let have_come = !state.guests.is_empty();
            guests.append(&mut state.guests);
            state.guests = guests;
            if state.guests.is_empty() {
                state.is_running = false;
                return;
            }
            if !have_come {
                let left = due.saturating_duration_since(Instant::now());
                let waited = self.called.wait_timeout(state, left);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}

fn serve(inner: &Inner, guests: &mut Vec<Guest>, is_due: bool) {
    let now = Instant::now();
    guests.retain(|guest| inner.sessions.as_ref().is_some_and(|sessions| sessions.lasts(&guest.csrf, now)));
    let mut answers: Vec<(Item, String)> = Vec::new();
    let mut has_ended = false;
    for guest in guests.iter_mut().filter(|guest| is_due || guest.is_new) {
        // An answer that was not taken whole is not followed by another one.
        let is_behind = !guest.is_new && !guest.waiting.is_empty();
        guest.is_new = false;
        if is_behind {
            continue;
        }
        for item in &guest.items {
            let known = answers.iter().position(|(asked, _)| asked == item);
            let place = known.unwrap_or_else(|| {
                let (event, ended) = event(inner, item, &guest.caller);
                has_ended |= ended;
                answers.push((item.clone(), event));
                answers.len() - 1
            });
            guest.waiting.extend_from_slice(answers[place].1.as_bytes());
        }
    }
    if has_ended {
        guests.clear();
    }
    guests.retain_mut(|guest| guest.send(now));
}

/// Returns the answer to a query as an event, and whether the control has ended.
fn event(inner: &Inner, item: &Item, caller: &Caller) -> (String, bool) {
    let question =
        Question { query: item.query.clone(), ..Question::get(format!("/{}", item.name.replace(' ', "/"))) };
    let answer = inner.answer(&question, caller.clone());
    let event = if answer.status == 200 { &*item.name } else { "refused" };
    // JSON has no line break in it.
    (format!("event: {event}\ndata: {}\n\n", answer.body.trim_end()), inner.has_ended())
}

impl Guest {
    fn send(&mut self, now: Instant) -> bool {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return false,
                Ok(count) => {
                    self.waiting.drain(..count);
                    self.took = now;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        self.waiting.is_empty() || now.saturating_duration_since(self.took) < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queries_are_followed() {
        let all = |texts: &[&str]| Item::all(texts.iter().copied()).map_err(|refusal| refusal.text);
        assert_eq!(all(&["stats", "threads"]).map(|items| items.len()), Ok(2));
        assert!(all(&["deliveries end"]).expect_err("a change").contains("cannot be followed"));
        assert!(all(&["statz"]).expect_err("none").contains("did you mean 'stats'?"));
        assert!(all(&[]).is_err() && all(&["stats"; 17]).is_err());
    }
}
