//! The routes that exchanges are counted by: a bounded number, each known by a hash.
//!
//! A scan asks for thousands of paths once. So the fuller the table is, the more often a path must have come to become
//! a route: a path that comes again finds a place for as long as there is one. If a scan comes again, too, and the
//! table is full, the routes with the fewest requests since the last time give up their places:
//!
//! ```text
//! a path without a place came often --is_wanting--> make_room: places --Recorder::move_routes--> figures --set_free--> numbers
//! ```
//! In their memory: how many, and each text with the number of its bytes, in 21 words. In the place of that number may
//! stand another route, when the two have turned out to be one. The hashes are known to this process only.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::arena::{ALIGN, Arena, Kind, run_words};
use crate::memory::{Run, load, read_text, text_words, write_text};

/// The route of everything that has no route of its own.
pub const OTHER: u32 = 0;

/// Routes beside [`OTHER`]: more than applications have, and their figures fit into the memory of a [`Recorder`](crate::Recorder).
pub const MAX_ROUTES: usize = 1000;

/// Bytes of a route's text; a longer one is cut.
pub const MAX_ROUTE_TEXT: usize = 160;

/// Places, a power of two: at most half of them are taken, so that looking takes a step or two.
const PLACES: usize = 2048;

/// The number of routes that have their places at first sight; behind them each [`STEP`] asks for twice as many sights,
/// up to 128 for the last.
const AT_SIGHT: usize = 500;
const STEP: usize = 64;

/// Paths without a place that are remembered, by their hashes.
const WAITING: usize = 2048;

/// The bits of a waiting path's word, below the hash, that count how often it came.
const TIMES: u64 = 0xff;

const _: () = assert!(1_u64 << ((MAX_ROUTES - AT_SIGHT) / STEP) <= TIMES);

/// The bits of a word, below the hash, with the number of the route; 0 for none.
const NUMBER: u64 = 0xffff;

const _: () = assert!(PLACES.is_power_of_two() && MAX_ROUTES <= PLACES / 2 && MAX_ROUTES < NUMBER as usize);

const TEXT: usize = text_words(MAX_ROUTE_TEXT);

/// Words of the memory: how many there are, and their texts, [`OTHER`] among them.
const WORDS: usize = 1 + (MAX_ROUTES + 1) * TEXT;

/// Stands in the place of a text's length: this is the route whose number stands below. Far above any length.
const IS_ONE_WITH: u64 = 1 << 63;

/// One that is another one may be a third one then, and so on: once for each segment of a path.
const MAX_STEPS: usize = 32;

/// The number of routes that give up their places at once.
const ROOM: usize = 64;

/// Routes that came less often give up their places to paths that came twice as often.
const FEW: u64 = 64;

const _: () = assert!(FEW * 2 <= TIMES && FEW << 1 == 1 << ((MAX_ROUTES + 1 - AT_SIGHT) / STEP));

/// A route that was found so often is not [rare](Routes::is_rare).
const OFTEN: u8 = 16;

const NAME: &str = "routes";

pub(crate) const RUN_WORDS: usize = run_words(NAME, WORDS);

pub(crate) const ROUTES_BYTES: usize = (PLACES + WAITING + RUN_WORDS) * size_of::<u64>() + MAX_ROUTES + 1;

/// Names and numbers of routes. Looking one up takes no lock. When there are [`MAX_ROUTES`], all others are [`OTHER`] until there is
/// [room](Self::make_room). Memory: 32 KiB, and 168 bytes for each.
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
    waiting: Box<[AtomicU64]>,
    found: Box<[AtomicU8]>,
    run: Run,
    /// Numbers that are free again. A thread that adds one holds the lock.
    adding: Mutex<Vec<u32>>,
    /// How many these are.
    free: AtomicUsize,
    wanting: AtomicBool,
}

impl Routes {
    /// A table with [`OTHER`] alone, in memory of its own.
    pub fn new() -> Self {
        Self::in_arena(&Arena::private(ALIGN + run_words(NAME, WORDS)))
    }

    /// A table with [`OTHER`] alone, in this memory.
    pub fn in_arena(arena: &Arena) -> Self {
        let routes = Self {
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            waiting: (0..WAITING).map(|_| AtomicU64::new(0)).collect(),
            found: (0..=MAX_ROUTES).map(|_| AtomicU8::new(0)).collect(),
            run: arena.take(Kind::Routes, 0, NAME, WORDS),
            adding: Mutex::default(),
            free: AtomicUsize::new(0),
            wanting: AtomicBool::new(false),
        };
        routes.push(&mut Vec::new(), "other");
        routes
    }

    /// The route with this hash, if it is known. The hash must be keyed: otherwise a peer could choose
    /// paths that are taken for others, or that lie in the way of others.
    pub fn find(&self, hash: u64) -> Option<u32> {
        for place in self.places_of(hash) {
            let word = place.load(Relaxed);
            if word == 0 {
                return None;
            }
            if (word ^ hash) & !NUMBER == 0 {
                let number = word & NUMBER;
                // Written only until the route counts as frequent: from then on threads share the cache line without
                // writes.
                if let Some(found) = self.found.get(number as usize)
                    && found.load(Relaxed) < OFTEN
                {
                    found.fetch_add(1, Relaxed);
                }
                return Some(number as u32);
            }
        }
        None
    }

    /// The route with this hash, made with this text if it is not known; [`OTHER`] when there is no place for it, or it has not come
    /// often enough for one of the last.
    pub fn add(&self, hash: u64, text: impl FnOnce() -> String) -> u32 {
        if let Some(known) = self.find(hash) {
            return known;
        }
        let has_come = self.has_come_often_enough(hash);
        if self.used() > MAX_ROUTES {
            self.wanting.fetch_or(has_come, Relaxed);
            return OTHER;
        }
        if !has_come {
            return OTHER;
        }
        let mut free = self.lock();
        // Another thread may have been first.
        if let Some(known) = self.find(hash) {
            return known;
        }
        let number = self.push(&mut free, &text());
        if number != OTHER {
            self.put(hash, number);
        }
        number
    }

    /// A route without a hash, for one that is known from the start; [`OTHER`] when there is no place for it.
    pub fn add_fixed(&self, text: &str) -> u32 {
        self.push(&mut self.lock(), text)
    }

    /// Whether a path has come often enough for a place since there was [room](Self::make_room) last, and there is none.
    pub fn is_wanting(&self) -> bool {
        self.wanting.load(Relaxed)
    }

    /// Has the routes that came least give up their places, if they came seldom: `uses` is how often each was counted since this was done last, by number. Each
    /// with the one that its figures belong to now; its number is not used again before [`set_free`](Self::set_free). Routes
    /// [without a hash](Self::add_fixed) stay.
    #[must_use]
    pub fn make_room(&self, uses: &[u64]) -> Vec<(u32, u32)> {
        let _adding = self.lock();
        // Both are counted from here on.
        self.waiting.iter().for_each(|word| word.store(0, Relaxed));
        self.wanting.store(false, Relaxed);
        // Of routes that have become others only the number is left.
        let mut moves: Vec<(u32, u32)> =
            (1..self.count() as u32).filter_map(|number| Some((number, self.merged_into(number)?))).collect();
        let number = |place: &AtomicU64| (place.load(Relaxed) & NUMBER) as u32;
        let mut known: Vec<u32> = self.places.iter().map(number).filter(|number| *number != OTHER).collect();
        known.sort_unstable();
        known.dedup();
        let used = |number: &u32| uses.get(*number as usize).copied().unwrap_or_default();
        known.retain(|number| used(number) < FEW);
        known.sort_by_key(used);
        known.truncate(ROOM.saturating_sub(moves.len()));
        for (_, into) in &mut moves {
            if known.contains(into) {
                *into = OTHER;
            }
        }
        moves.extend(known.iter().map(|number| (*number, OTHER)));
        let stays = |place: &&AtomicU64| number(place) != OTHER && !known.contains(&number(place));
        let words: Vec<u64> = self.places.iter().filter(stays).map(|place| place.load(Relaxed)).collect();
        // A path that is looked up in this moment may not be found, and is counted as one without a place.
        self.places.iter().for_each(|place| place.store(0, Relaxed));
        words.into_iter().for_each(|word| self.put(word, (word & NUMBER) as u32));
        moves
    }

    /// The numbers of routes that have made room may be those of others.
    pub fn set_free(&self, moves: &[(u32, u32)]) {
        let mut free = self.lock();
        for (number, _) in moves {
            if let Some(text) = self.text(*number) {
                write_text(text, "");
            }
            if let Some(found) = self.found.get(*number as usize) {
                found.store(0, Relaxed);
            }
            free.push(*number);
        }
        self.free.store(free.len(), Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.adding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn merged_into(&self, number: u32) -> Option<u32> {
        let mut last = None;
        for _ in 0..MAX_STEPS {
            match load(self.text(last.unwrap_or(number))?, 0) {
                length if length & IS_ONE_WITH != 0 => last = Some((length & NUMBER) as u32),
                _ => break,
            }
        }
        last
    }

    fn put(&self, hash: u64, number: u32) {
        if let Some(place) = self.places_of(hash).find(|place| place.load(Relaxed) == 0) {
            place.store(hash & !NUMBER | u64::from(number), Relaxed);
        }
    }

    /// Whether it came a few times only.
    pub fn is_rare(&self, number: u32) -> bool {
        self.found.get(number as usize).is_some_and(|found| found.load(Relaxed) < OFTEN)
    }

    /// Merges two routes that have turned out to be one: requests with the hash of `number` count as `into` from now
    /// on, and earlier ones of `number` are shown with the name of `into`. Neither is [`OTHER`]. `into` was not merged
    /// into `number`, or into a route that `number` became.
    pub fn merge(&self, number: u32, into: u32) {
        let _adding = self.lock();
        let count = self.count();
        let known = |number: u32| number != OTHER && (number as usize) < count;
        if number == into || !known(number) || !known(into) {
            return;
        }
        for place in &self.places {
            let word = place.load(Relaxed);
            if word != 0 && word & NUMBER == u64::from(number) {
                place.store(word & !NUMBER | u64::from(into), Relaxed);
            }
        }
        if let Some(length) = self.text(number).and_then(<[_]>::first) {
            length.store(IS_ONE_WITH | u64::from(into), Release);
        }
    }

    /// The name of one.
    pub fn name(&self, number: u32) -> Option<String> {
        let texts = self.run.words().get(1..)?;
        self.text(number).map(|text| read_one(text, texts))
    }

    fn text(&self, number: u32) -> Option<&[AtomicU64]> {
        self.run
            .words()
            .get(1..)?
            .chunks(TEXT)
            .nth(number as usize)
            .filter(|_| (number as usize) < self.count())
    }

    /// All names, by number; several have the name of the one that they were [merged](Self::merge) into.
    pub fn names(&self) -> Vec<String> {
        read_routes(self.run.words())
    }

    /// Bytes that the table takes now.
    pub fn bytes(&self) -> usize {
        (PLACES + WAITING + self.count() * TEXT) * size_of::<u64>() + self.found.len()
    }

    fn count(&self) -> usize {
        load(self.run.words(), 0) as usize
    }

    /// Places that are taken, with that of [`OTHER`].
    fn used(&self) -> usize {
        self.count().saturating_sub(self.free.load(Relaxed))
    }

    fn push(&self, free: &mut Vec<u32>, text: &str) -> u32 {
        let next = self.count();
        let number = free.pop().map_or(next, |number| number as usize);
        self.free.store(free.len(), Relaxed);
        let Some((count, texts)) = self.run.words().split_first() else { return OTHER };
        let Some(place) = texts.chunks(TEXT).nth(number).filter(|_| number <= MAX_ROUTES) else {
            return OTHER;
        };
        let end = (0..=MAX_ROUTE_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        write_text(place, &text[..end.unwrap_or_default()]);
        if number == next {
            count.store(number as u64 + 1, Release);
        }
        number as u32
    }

    /// Counts one more sight of a path without a place. Of two with the same word the one that comes more often stays in it; two threads
    /// at once may count one.
    fn has_come_often_enough(&self, hash: u64) -> bool {
        let wanted = 1 << (self.used().saturating_sub(AT_SIGHT) / STEP);
        if wanted == 1 {
            return true;
        }
        let word = &self.waiting[(hash >> 16) as usize % WAITING];
        let (own, there) = (hash & !TIMES, word.load(Relaxed));
        let times = match there & TIMES {
            times if there & !TIMES == own => times + 1,
            times @ 2.. => {
                word.store(there & !TIMES | (times - 1), Relaxed);
                return false;
            }
            _ => 1,
        };
        word.store(own | times.min(TIMES), Relaxed);
        times >= wanted
    }

    /// The places of a hash, by bits that are in the word, too: so all can be put in anew.
    fn places_of(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = (hash >> NUMBER.count_ones()) as usize;
        (0..PLACES).map(move |step| &self.places[(first + step) % PLACES])
    }
}

impl Default for Routes {
    fn default() -> Self {
        Self::new()
    }
}

pub(crate) fn read_routes(words: &[AtomicU64]) -> Vec<String> {
    let Some((count, texts)) = words.split_first() else { return Vec::new() };
    let count = count.load(Acquire).min(MAX_ROUTES as u64 + 1) as usize;
    texts.chunks(TEXT).take(count).map(|text| read_one(text, texts)).collect()
}

/// A name, which may be that of another one among all of them.
fn read_one<'a>(mut text: &'a [AtomicU64], texts: &'a [AtomicU64]) -> String {
    for _ in 0..MAX_STEPS {
        let length = load(text, 0);
        match texts.chunks(TEXT).nth((length & NUMBER) as usize) {
            Some(other) if length & IS_ONE_WITH != 0 => text = other,
            _ => return read_text(text),
        }
    }
    // Memory of another process, which is not as we write it.
    String::new()
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
            let mut adding = (0..=TIMES).map(|_| routes.add(hash(number), || format!("GET /{number}")));
            assert_eq!(adding.find(|route| *route != OTHER), Some(number as u32 + 1));
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
    fn paths_of_a_scan_leave_room_for_repeated_paths() {
        let routes = Routes::new();
        for round in 0..4 {
            for number in 0..100_000 {
                routes.add(hash(number), || format!("GET /{number}"));
            }
            // Between two rounds a real route begins, and a scan goes on beside it.
            let real = 1_000_000 + round;
            let mut scanned = 200_000..;
            let found = (0..1000).find(|_| {
                for number in scanned.by_ref().take(10) {
                    routes.add(hash(number), String::new);
                }
                routes.add(hash(real), || "GET /real".to_owned()) != OTHER
            });
            assert!(found.is_some_and(|times| times < 300), "{round} {found:?}");
        }
        assert!(routes.names().len() < MAX_ROUTES * 3 / 4, "{}", routes.names().len());
    }

    #[test]
    fn the_rarest_routes_give_their_places_to_frequent_paths() {
        const SIGHTS: u64 = 2 * FEW;
        let routes = Routes::new();
        let fixed = routes.add_fixed("/static/*");
        let add = |number: u64| routes.add(hash(number), || format!("GET /{number}"));
        for number in 0.. {
            if (0..SIGHTS).all(|_| add(number) == OTHER) {
                break;
            }
        }
        assert!(routes.is_wanting());
        // Of those that are known, every third is used.
        let full = routes.names().len();
        let uses: Vec<u64> =
            (0..full as u64).map(|number| if number % 3 == 0 { FEW } else { number % FEW }).collect();
        for round in 0..40_u64 {
            let moves = routes.make_room(&uses);
            assert_eq!(moves.len(), ROOM);
            assert!(moves.iter().all(|(number, into)| *into == OTHER && number % 3 != 0 && *number != fixed));
            assert!(!routes.is_wanting());
            // Not before it is said.
            let new = 1_000_000 + round * 1_000;
            assert!((0..SIGHTS).all(|_| add(new) == OTHER));
            routes.set_free(&moves);
            for number in new..new + ROOM as u64 {
                assert!((0..=SIGHTS).any(|_| add(number) != OTHER), "{round} {number}");
                let route = routes.find(hash(number)).unwrap();
                assert_eq!(routes.name(route), Some(format!("GET /{number}")));
            }
            assert_eq!(routes.names().len(), full);
            let taken = routes.places.iter().filter(|place| place.load(Relaxed) != 0).count();
            assert!(taken <= MAX_ROUTES, "{taken}");
        }
        for number in (0..full as u64 - 2).filter(|number| (number + 2) % 3 == 0) {
            assert_eq!(routes.find(hash(number)), Some(number as u32 + 2), "it was used");
        }
    }

    #[test]
    fn routes_that_have_become_others_give_up_their_numbers_first() {
        let routes = Routes::new();
        let [ann, bob, all, seldom] =
            [1, 2, 3, 4].map(|number| routes.add(hash(number), || format!("/{number}")));
        routes.merge(ann, bob);
        routes.merge(bob, all);
        let moves = routes.make_room(&[0, 0, 0, FEW, FEW]);
        assert_eq!(moves, [(ann, all), (bob, all)]);
        routes.set_free(&moves);
        assert_eq!([1, 2, 3, 4].map(|number| routes.find(hash(number))), [all, all, all, seldom].map(Some));
        routes.merge(seldom, all);
        assert_eq!(routes.make_room(&[]), [(seldom, OTHER), (all, OTHER)]);
        assert_eq!([1, 2, 3, 4].map(|number| routes.find(hash(number))), [None; 4]);
    }

    #[test]
    fn routes_in_each_others_way_are_told_apart() {
        let routes = Routes::new();
        let hashes = [5, (1 << 32) + 5, (1 << 33) + 5, PLACES as u64 - 1, (1 << 40) + PLACES as u64 - 1];
        let hashes = hashes.map(|hash| hash << NUMBER.count_ones());
        let numbers = hashes.map(|hash| routes.add(hash, || hash.to_string()));
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(hashes.map(|hash| routes.find(hash)), numbers.map(Some));
    }

    #[test]
    fn routes_that_are_one_have_one_name_and_one_number_from_then_on() {
        let routes = Routes::new();
        let [ann, bob, all] = [1, 2, 3].map(|number| routes.add(hash(number), || format!("/{number}")));
        routes.merge(ann, all);
        assert_eq!([1, 2, 3].map(|number| routes.find(hash(number))), [Some(all), Some(bob), Some(all)]);
        assert_eq!(routes.names()[1..], ["/3", "/2", "/3"]);
        assert_eq!(routes.name(ann).as_deref(), Some("/3"));
        for (number, into) in [(bob, OTHER), (OTHER, all), (all, all), (bob, 77), (77, all)] {
            routes.merge(number, into);
        }
        assert_eq!(routes.names(), ["other", "/3", "/2", "/3"]);
        assert_eq!(routes.name(4), None);
    }

    #[test]
    fn a_route_is_rare_until_it_was_found_some_times() {
        let routes = Routes::new();
        let number = routes.add(hash(1), String::new);
        for _ in 0..OFTEN {
            assert!(routes.is_rare(number));
            assert_eq!(routes.find(hash(1)), Some(number));
        }
        assert!(!routes.is_rare(number));
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
