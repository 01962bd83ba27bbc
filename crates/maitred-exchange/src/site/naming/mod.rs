//! Route names under which requests for an application are counted.
//!
//! ```text
//! the name that the application or its framework has told      GET /users/{name}
//! else, of the shape of its path, the name told last           a request that was cut before it was told
//! else the shape (maitred-match), widened where names vary     GET /users/*
//! ```
//! Promises: the number of names is bounded, and so is the memory of guesses
//! ([`MAX_ROUTES`](maitred_stats::MAX_ROUTES)). The path of a request that finds nothing (400, 404, 405, 501) makes
//! no route: a path exists when it has been answered once. All such paths are one route, "other"; where one of these
//! comes again and again, the rarest routes make room (`room.rs`). Leaves out: the key by which the scheduler tells
//! requests apart, which is always the shape, since the scheduler asks before the application runs.

mod guesses;
mod room;

use std::collections::HashSet;
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use maitred_http::{RequestHead, Status};
use maitred_match::{Shape, shape_hasher};
use maitred_stats::{Arena, OTHER, Recorder, Routes};

use guesses::Guesses;
use room::Room;

/// Number of shapes whose names are remembered; a shape replaces another at the same place.
const SHAPES: usize = 1024;

/// Bits of a remembered word with the number of the route; the hash is above.
const NUMBER: u64 = 0xffff;

/// Most characters of a name given by an application.
const MAX_NAME: usize = 120;

/// Names and numbers of the routes of applications.
pub(crate) struct Naming {
    /// All routes, including those of the engine.
    pub routes: Routes,
    /// Names of the hosts; the default host has none.
    pub(super) hosts: Vec<Arc<str>>,
    guesses: Guesses,
    told: Box<[AtomicU64]>,
    any_told: AtomicBool,
    room: Room,
}

impl Naming {
    pub(crate) fn new(hosts: Vec<Arc<str>>, arena: &Arena) -> Self {
        Self {
            routes: Routes::in_arena(arena),
            hosts,
            guesses: Guesses::new(),
            told: (0..SHAPES).map(|_| AtomicU64::new(0)).collect(),
            any_told: AtomicBool::new(false),
            room: Room::default(),
        }
    }

    /// Number of the route of this request; `name` is the name given by the application, or empty.
    pub(crate) fn number(&self, head: &RequestHead, name: &str, status: Status) -> u32 {
        let shape = shape_of(head);
        let hash = if head.shape_hash == 0 { shape.hash() } else { head.shape_hash };
        if !name.is_empty() {
            let number = self.routes.add(self.hash_of(shape, name), || self.text_of(shape, name));
            self.note_told(hash, number);
            return number;
        }
        if let Some(known) = self.told(hash).or_else(|| self.routes.find(hash)) {
            return known;
        }
        let widened = self.guesses.widened(shape);
        if let Some(known) = widened.and_then(|widened| self.routes.find(widened.hash)) {
            return known;
        }
        if finds_nothing(status) {
            return OTHER;
        }
        let number = match widened {
            Some(widened) => {
                self.routes.add(widened.hash, || self.with_host(shape.host, widened.to_string()))
            }
            None => self.routes.add(hash, || self.with_host(shape.host, shape.to_string())),
        };
        let name = |host, text| self.with_host(host, text);
        match number != OTHER && self.guesses.note(shape, number, &self.routes, &name) {
            true => self.routes.find(hash).unwrap_or(number),
            false => number,
        }
    }

    /// The route name of a request without a name from its application: the last name for its shape, or a guess.
    pub(crate) fn name_of(&self, shape: Shape<'_>) -> String {
        let told = self.told(shape.hash()).and_then(|number| self.routes.name(number));
        told.unwrap_or_else(|| match self.guesses.widened(shape) {
            Some(widened) => self.with_host(shape.host, widened.to_string()),
            None => self.with_host(shape.host, shape.to_string()),
        })
    }

    /// The route name of a request; `name` is the name given by the application, or empty.
    pub(crate) fn name(&self, head: &RequestHead, name: &str) -> String {
        let shape = shape_of(head);
        if name.is_empty() { self.name_of(shape) } else { self.text_of(shape, name) }
    }

    /// Whether a request without a name may have another name than its shape.
    pub(crate) fn knows_more(&self) -> bool {
        self.guesses.any() || self.any_told.load(Relaxed)
    }

    fn hash_of(&self, shape: Shape<'_>, name: &str) -> u64 {
        let mut hasher = shape_hasher();
        hasher.write_u16(shape.host);
        hasher.write(shape.method.as_bytes());
        // A byte that occurs neither in a method nor at that place of a widened shape.
        hasher.write_u8(1);
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    /// The printable route name, such as `GET /users/{name}`.
    fn text_of(&self, shape: Shape<'_>, name: &str) -> String {
        let name: String = name.chars().flat_map(printable).take(MAX_NAME).collect();
        let host = self.hosts.get(usize::from(shape.host)).map_or("", |host| host);
        format!("{} {host}{name}", shape.method.escape_debug())
    }

    /// The text of a shape with the name of a host other than the default: `GET shop.example/user/*`.
    fn with_host(&self, host: u16, text: String) -> String {
        let host = self.hosts.get(usize::from(host)).map_or("", |host| host);
        match text.split_once(' ').filter(|_| !host.is_empty()) {
            Some((method, path)) => format!("{method} {host}{path}"),
            None => text,
        }
    }

    /// Has the rarest routes make room, if that is wanted. Costs one load if not.
    pub(crate) fn make_room(&self, recorder: &Recorder, now: u64) {
        if self.routes.is_wanting() {
            self.room.make(&self.routes, recorder, now, |gone| self.forget(gone));
        }
    }

    fn forget(&self, gone: &HashSet<u32>) {
        for word in self.told.iter().filter(|word| gone.contains(&((word.load(Relaxed) & NUMBER) as u32))) {
            word.store(0, Relaxed);
        }
        self.guesses.forget(gone);
    }

    fn note_told(&self, hash: u64, number: u32) {
        let (word, place) = (hash & !NUMBER | u64::from(number), &self.told[(hash >> 16) as usize % SHAPES]);
        if place.load(Relaxed) != word && number != OTHER {
            place.store(word, Relaxed);
            self.any_told.store(true, Relaxed);
        }
    }

    fn told(&self, hash: u64) -> Option<u32> {
        if !self.any_told.load(Relaxed) {
            return None;
        }
        let word = self.told[(hash >> 16) as usize % SHAPES].load(Relaxed);
        (word != 0 && (word ^ hash) & !NUMBER == 0).then_some((word & NUMBER) as u32)
    }
}

/// The form of a request by which routes are named and entries of the log are counted.
pub fn shape_of(head: &RequestHead) -> Shape<'_> {
    Shape { method: head.method.as_str(), path: head.path(), host: head.host }
}

/// A printable form of a character in a name: the character, or the escape used in logs.
fn printable(letter: char) -> impl Iterator<Item = char> {
    let plain = matches!(letter, '\'' | '"' | '\\').then_some(letter);
    plain.into_iter().chain(plain.is_none().then(|| letter.escape_debug()).into_iter().flatten())
}

/// Whether the status says that the path, or this method of it, does not exist.
fn finds_nothing(status: Status) -> bool {
    matches!(status.code(), 400 | 404 | 405 | 501)
}
