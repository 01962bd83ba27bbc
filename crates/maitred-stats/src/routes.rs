//! The routes that exchanges are counted by: a bounded number, each known by a hash.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The route of everything that has no route of its own.
pub const OTHER: u32 = 0;

/// Routes beside [`OTHER`]: more than applications have, and their figures fit into the memory of a [`Recorder`](crate::Recorder).
pub const MAX_ROUTES: usize = 1000;

/// Bytes of a route's text; what is longer is cut.
pub const MAX_ROUTE_TEXT: usize = 160;

/// Places, a power of two: at most half of them are taken, so that looking takes a step or two.
const PLACES: usize = 2048;

/// In a word, below the hash: number of the route, none when 0.
const NUMBER: u64 = 0xffff;

const _: () = assert!(PLACES.is_power_of_two() && MAX_ROUTES <= PLACES / 2 && MAX_ROUTES < NUMBER as usize);

/// Names and numbers of routes. Looking one up takes no lock. Routes are never forgotten; when there are [`MAX_ROUTES`],
/// all others are [`OTHER`]. Memory: 16 KiB and the texts, below 220 KiB in all.
///
/// ```
/// use maitred_stats::Routes;
///
/// let routes = Routes::new();
/// let route = routes.add(7, || "GET /user/*".to_owned());
/// assert_eq!(routes.find(7), Some(route));
/// assert_eq!(routes.names()[route as usize], "GET /user/*");
/// ```
pub struct Routes {
    places: Box<[AtomicU64]>,
    /// The first one is [`OTHER`].
    names: Mutex<Vec<String>>,
    text_bytes: AtomicUsize,
    full: AtomicBool,
}

impl Routes {
    /// Only [`OTHER`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            names: Mutex::new(vec!["other".to_owned()]),
            text_bytes: AtomicUsize::new(0),
            full: AtomicBool::new(false),
        }
    }

    /// The route with this hash, if it is known. The hash must be keyed: otherwise a peer could choose
    /// paths that are taken for others, or that lie in the way of others.
    #[must_use]
    pub fn find(&self, hash: u64) -> Option<u32> {
        for place in self.places_of(hash) {
            let word = place.load(Relaxed);
            if word == 0 {
                return None;
            }
            if (word ^ hash) & !NUMBER == 0 {
                return Some((word & NUMBER) as u32);
            }
        }
        None
    }

    /// The route with this hash, made with this text if it is not known; [`OTHER`] when there is no place for it.
    pub fn add(&self, hash: u64, text: impl FnOnce() -> String) -> u32 {
        if let Some(known) = self.find(hash) {
            return known;
        }
        if self.full.load(Relaxed) {
            return OTHER;
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been first.
        if let Some(known) = self.find(hash) {
            return known;
        }
        let number = self.push(&mut names, text());
        if number != OTHER
            && let Some(place) = self.places_of(hash).find(|place| place.load(Relaxed) == 0)
        {
            place.store(hash & !NUMBER | u64::from(number), Relaxed);
        }
        number
    }

    /// A route without a hash, for one that is known from the start; [`OTHER`] when there is no place for it.
    pub fn add_fixed(&self, text: &str) -> u32 {
        self.push(&mut self.names.lock().unwrap_or_else(PoisonError::into_inner), text.to_owned())
    }

    /// All names, by number.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the table takes now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        PLACES * size_of::<AtomicU64>() + self.text_bytes.load(Relaxed)
    }

    fn push(&self, names: &mut Vec<String>, mut text: String) -> u32 {
        if names.len() > MAX_ROUTES {
            self.full.store(true, Relaxed);
            return OTHER;
        }
        let end = (0..=MAX_ROUTE_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.shrink_to_fit();
        let cost = text.len() + 2 * size_of::<String>() + 16;
        names.push(text);
        self.text_bytes.fetch_add(cost, Relaxed);
        (names.len() - 1) as u32
    }

    fn places_of(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        (0..PLACES).map(move |step| &self.places[(hash as usize + step) % PLACES])
    }
}

impl Default for Routes {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far from each other, as a keyed hash has them.
    fn hash(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn a_thousand_routes_are_known_and_all_others_are_one() {
        let routes = Routes::new();
        for number in 0..MAX_ROUTES as u64 {
            assert_eq!(routes.add(hash(number), || format!("GET /{number}")), number as u32 + 1);
        }
        let bytes = routes.bytes();
        for number in MAX_ROUTES as u64..100_000 {
            assert_eq!(routes.add(hash(number), || format!("GET /{number}")), OTHER);
        }
        assert_eq!((routes.bytes(), routes.names().len()), (bytes, MAX_ROUTES + 1));
        assert_eq!(routes.find(hash(77)), Some(78));
        assert_eq!(routes.names()[78], "GET /77");
        assert_eq!(routes.find(hash(MAX_ROUTES as u64)), None);
        assert_eq!(routes.add_fixed("/late"), OTHER);
    }

    #[test]
    fn routes_in_each_others_way_are_told_apart() {
        let routes = Routes::new();
        let hashes = [5, (1 << 32) + 5, (1 << 33) + 5, PLACES as u64 - 1, (1 << 40) + PLACES as u64 - 1];
        let numbers = hashes.map(|hash| routes.add(hash, || hash.to_string()));
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(hashes.map(|hash| routes.find(hash)), numbers.map(Some));
    }

    #[test]
    fn a_text_is_cut_where_a_character_ends() {
        let routes = Routes::new();
        let number = routes.add_fixed(&format!("a{}", "ä".repeat(MAX_ROUTE_TEXT)));
        let cut = &routes.names()[number as usize];
        assert_eq!((cut.len(), cut.chars().count()), (MAX_ROUTE_TEXT - 1, 80));
        assert!(cut.ends_with('ä'));
    }

    #[test]
    fn threads_that_meet_a_route_at_once_make_one() {
        let routes = Routes::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..500).for_each(|number| _ = routes.add(hash(number), || number.to_string()))
                });
            }
        });
        assert_eq!(routes.names().len(), 501);
    }
}
