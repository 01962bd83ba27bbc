//! Guesses about places of a path at which names vary, from the routes that paths have made: `/users/ann`,
//! `/users/bob`, and so on.
//!
//! ```text
//! place  what stands before a segment, and how many segments there are --MANY different ones--> open: one for all, "*"
//! ```
//! When a place opens, routes below it that came a few times only become the one with the star; frequent ones keep
//! their names (`/users/login`). A request whose route is known costs nothing here.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use maitred_match::{Shape, Widened, shape_hasher};
use maitred_stats::{OTHER, Routes};

/// Number of different segments at one place from which they count as names: few applications have as many pages side
/// by side, and a site with as many names has them within minutes.
const MANY: usize = 50;

/// Open places, a power of two; at most half of them are taken.
const OPEN: usize = 512;

/// Most places that are watched. No guess is made about further ones.
const MAX_PLACES: usize = 2000;

/// Longest path, in bytes, that is kept until its place opens; a longer one keeps its route.
const MAX_PATH: usize = 160;

pub(crate) struct Guesses {
    open: Box<[AtomicU64]>,
    count: AtomicUsize,
    /// Locked when a new route is made.
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    places: HashMap<u64, Place>,
    routes: HashMap<u32, Arc<Kept>>,
}

#[derive(Default)]
struct Place {
    /// Different segments, by their hashes.
    segments: HashSet<u64>,
    routes: Vec<u32>,
}

/// The request that made a route.
struct Kept {
    method: Box<str>,
    path: Box<[u8]>,
    host: u16,
}

impl Kept {
    fn shape(&self) -> Shape<'_> {
        Shape { method: &self.method, path: &self.path, host: self.host }
    }
}

impl Seen {
    /// Notes a route at its places. Returns the routes that places opened by this one take over.
    fn note(&mut self, number: u32, kept: &Arc<Kept>, guesses: &Guesses) -> Vec<u32> {
        if self.routes.contains_key(&number) {
            return Vec::new();
        }
        let (places, mut full) = (&mut self.places, Vec::new());
        // Only the places matter: the resulting shape is not used.
        let _ = kept.shape().widened(|place, segment| {
            if guesses.is_open(place) {
                return true;
            }
            let room = places.len() < MAX_PLACES;
            let known = match places.entry(place) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) if room => new.insert(Place::default()),
                Entry::Vacant(_) => return false,
            };
            known.routes.push(number);
            let mut hasher = shape_hasher();
            hasher.write(segment);
            known.segments.insert(hasher.finish());
            if known.segments.len() >= MANY {
                full.push(place);
            }
            false
        });
        self.routes.insert(number, Arc::clone(kept));
        full.retain(|place| guesses.open(*place));
        full.iter().filter_map(|place| self.places.remove(place)).flat_map(|place| place.routes).collect()
    }
}

impl Guesses {
    pub(crate) fn new() -> Self {
        Self {
            open: (0..OPEN).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicUsize::new(0),
            seen: Mutex::default(),
        }
    }

    /// Whether any place is open. One load.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// This shape with stars at open places; none if it has no open place.
    pub(crate) fn widened<'a>(&self, shape: Shape<'a>) -> Option<Widened<'a>> {
        if !self.any() {
            return None;
        }
        shape.widened(|place, _| self.is_open(place))
    }

    /// Notes a new route, made by a request of this shape. Returns whether a place opened.
    pub(crate) fn note(
        &self,
        shape: Shape<'_>,
        number: u32,
        routes: &Routes,
        name: &impl Fn(u16, String) -> String,
    ) -> bool {
        let path = shape.path.split(|byte| *byte == b'?').next().unwrap_or_default();
        if path.len() > MAX_PATH {
            return false;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = Arc::new(Kept { method: shape.method.into(), path: path.into(), host: shape.host });
        let (mut new, mut any) = (vec![(number, kept)], false);
        // A route with a new star is a new route, and another of its places may vary.
        while let Some((number, kept)) = new.pop() {
            for route in seen.note(number, &kept, self) {
                any = true;
                let Some(kept) = seen.routes.get(&route).filter(|_| routes.is_rare(route)) else { continue };
                let Some(widened) = self.widened(kept.shape()) else { continue };
                let into = routes.add(widened.hash, || name(kept.host, widened.to_string()));
                if into != OTHER {
                    routes.merge(route, into);
                    new.push((into, Arc::clone(kept)));
                }
            }
        }
        any
    }

    /// Forgets the routes with these numbers, which no longer exist.
    pub(crate) fn forget(&self, numbers: &HashSet<u32>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.routes.retain(|number, _| !numbers.contains(number));
        seen.places.values_mut().for_each(|place| place.routes.retain(|number| !numbers.contains(number)));
    }

    fn is_open(&self, place: u64) -> bool {
        let words = (0..OPEN).map(|step| self.open[(place as usize).wrapping_add(step) % OPEN].load(Relaxed));
        words.take_while(|word| *word != 0).any(|word| word == place)
    }

    /// Whether this place is open now.
    fn open(&self, place: u64) -> bool {
        if place == 0 || self.count.load(Relaxed) >= OPEN / 2 {
            return false;
        }
        let free = (0..OPEN).map(|step| &self.open[(place as usize).wrapping_add(step) % OPEN]);
        let Some(free) = free.into_iter().find(|word| word.load(Relaxed) == 0) else { return false };
        free.store(place, Relaxed);
        self.count.fetch_add(1, Relaxed);
        true
    }
}
