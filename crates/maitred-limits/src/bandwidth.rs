//! How fast responses may leave: for each connection, for all responses of a route, for all of a pool.
//!
//! A sender reserves a piece in each bucket that it is under, and sends it when the last of them is ready; a timer
//! brings it back then. Pieces become ready in the order in which they were reserved, so that senders with a common
//! bucket take turns. No thread waits. Changes of a rate hold for later reservations.
//!
//! Leaves out: the timer, and sending (`connection/`).

use std::sync::Arc;

use arc_swap::ArcSwap;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::bucket::{Bucket, Rate};
use maitred_match::PathPattern;

/// Bytes per second of everything that is limited; 0: any number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BandwidthLimits {
    /// The limit of each connection.
    pub connection: u64,
    /// The limits of all responses together whose path meets a pattern; of several the most specific one, as for pools.
    pub routes: Vec<RouteBandwidth>,
}

/// How fast the responses of a route may leave together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteBandwidth {
    /// The paths.
    pub path: PathPattern,
    /// Bytes per second; 0: any number.
    pub bytes: u64,
}

/// A piece is the share of this part of a second: more pieces are more turns, fewer are more bytes at once.
const PIECES_A_SECOND: u64 = 64;

/// Bytes that may leave at once, as a part of a second: a timer that rings so late, on a machine that is busy, costs
/// nothing.
const BURSTS_A_SECOND: u64 = 16;

/// The smallest piece, about a segment of an Ethernet; and the largest, which one turn copies in some microseconds.
const PIECE: (u64, u64) = (1024, 64 * 1024);

fn piece(rate: u64) -> u64 {
    (rate / PIECES_A_SECOND).clamp(PIECE.0, PIECE.1)
}

fn rate(bytes: u64) -> Rate {
    Rate::of_bytes(bytes, (bytes / BURSTS_A_SECOND).max(2 * piece(bytes)))
}

/// The bucket that several deliveries share.
#[derive(Default)]
pub struct Shared {
    /// Bytes per second; 0: any number.
    bytes: AtomicU64,
    full_at: AtomicU64,
}

impl Shared {
    fn of(bytes: u64) -> Self {
        Self { bytes: bytes.into(), full_at: AtomicU64::new(0) }
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    fn change(&self, act: impl Fn(&mut Bucket)) -> u64 {
        let changed = |full_at| {
            let mut bucket = Bucket::full_at(full_at);
            act(&mut bucket);
            Some(bucket.is_full_at())
        };
        self.full_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed)
            .unwrap_or_else(|unchanged| unchanged)
    }

    fn reserve(&self, bytes: u64, now: u64, amount: u64) -> u64 {
        let rate = rate(bytes);
        let before = self.change(|bucket| {
            bucket.reserve(rate, now, amount);
        });
        Bucket::full_at(before).reserve(rate, now, amount)
    }

    fn give_back(&self, amount: u64) {
        if let Some(bytes) = self.bytes() {
            self.change(|bucket| bucket.give_back(rate(bytes), amount));
        }
    }
}

/// All limits of a server.
pub struct Bandwidth {
    on: AtomicBool,
    connection: AtomicU64,
    /// The buckets by the number of the pool.
    pools: Box<[Arc<Shared>]>,
    /// The most specific one first.
    routes: ArcSwap<Vec<(RouteBandwidth, Arc<Shared>)>>,
}

impl Bandwidth {
    pub(crate) fn new(pools: impl Iterator<Item = u64>) -> Self {
        Self {
            on: AtomicBool::default(),
            connection: AtomicU64::default(),
            pools: pools.map(|bytes| Arc::new(Shared::of(bytes))).collect(),
            routes: ArcSwap::default(),
        }
    }

    /// Changes the limits of connections and routes. A route that stays keeps the state of its bucket.
    pub(crate) fn set(&self, limits: &BandwidthLimits) {
        self.connection.store(limits.connection, Ordering::Relaxed);
        let known = self.routes.load();
        let mut routes = Vec::with_capacity(limits.routes.len());
        for route in &limits.routes {
            let shared = known.iter().find(|(known, _)| known.path == route.path);
            let shared = shared.map_or_else(Arc::default, |(_, shared)| Arc::clone(shared));
            shared.bytes.store(route.bytes, Ordering::Relaxed);
            routes.push((route.clone(), shared));
        }
        // Deliveries of one that is left out are not held any more.
        for (gone, shared) in known.iter() {
            if !limits.routes.iter().any(|route| route.path == gone.path) {
                shared.bytes.store(0, Ordering::Relaxed);
            }
        }
        routes.sort_by_cached_key(|(route, _)| std::cmp::Reverse(route.path.specificity()));
        self.routes.store(Arc::new(routes));
        self.set_on();
    }

    /// Changes the limit of a pool.
    pub fn set_pool(&self, number: usize, bytes: u64) {
        if let Some(pool) = self.pools.get(number) {
            pool.bytes.store(bytes, Ordering::Relaxed);
        }
        self.set_on();
    }

    fn set_on(&self) {
        let routes = self.routes.load();
        let on = self.connection.load(Ordering::Relaxed) > 0
            || self.pools.iter().any(|pool| pool.bytes().is_some())
            || routes.iter().any(|(route, _)| route.bytes > 0);
        self.on.store(on, Ordering::Relaxed);
    }

    /// Whether anything is limited. One load.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Whether the path of a request has to be known.
    pub fn has_routes(&self) -> bool {
        !self.routes.load().is_empty()
    }

    /// The limits for the response to a request: its pool, if it has one, and its decoded path. None without a limit.
    pub fn shared(&self, pool: Option<usize>, path: &[u8]) -> [Option<Arc<Shared>>; 2] {
        let pool = pool.and_then(|pool| self.pools.get(pool)).filter(|pool| pool.bytes().is_some());
        let routes = self.routes.load();
        let route = routes.iter().find(|(route, _)| route.path.matches(path)).map(|(_, shared)| shared);
        [pool.cloned(), route.filter(|route| route.bytes().is_some()).cloned()]
    }

    fn of_connection(&self) -> Option<u64> {
        Some(self.connection.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }
}

/// The limits of the responses of one connection.
pub struct Shaper {
    bucket: Bucket,
    shared: [Option<Arc<Shared>>; 2],
    /// The limit of the present response alone: bytes per second; 0: any number.
    own: (u64, Bucket),
    /// A piece that was reserved, and when it is ready.
    granted: u64,
    ready: u64,
    /// When the timer has to bring the sender back; `u64::MAX` when it need not.
    resume: u64,
}

impl Default for Shaper {
    fn default() -> Self {
        Self {
            bucket: Bucket::default(),
            shared: [None, None],
            own: (0, Bucket::default()),
            granted: 0,
            ready: 0,
            resume: u64::MAX,
        }
    }
}

impl Shaper {
    /// The next response is under these.
    pub fn set(&mut self, shared: [Option<Arc<Shared>>; 2]) {
        let same = |one: &Option<Arc<Shared>>, other: &Option<Arc<Shared>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if self.shared.iter().zip(&shared).all(|(one, other)| same(one, other)) {
            return;
        }
        self.give_back();
        self.shared = shared;
    }

    /// The present response has a limit of its own beside them, in bytes per second; 0: none.
    pub fn limit_response(&mut self, bytes: u64) {
        if (self.own.0, bytes) != (0, 0) {
            self.give_back();
            self.own = (bytes, Bucket::default());
        }
    }

    /// When the timer has to bring the sender back; `u64::MAX` when it need not.
    pub fn resume(&self) -> u64 {
        self.resume
    }

    /// The lowest limit it is under now, in bytes per second.
    pub fn limit(&self, bandwidth: &Bandwidth) -> Option<u64> {
        bandwidth.of_connection().into_iter().chain(self.limit_of_response()).min()
    }

    /// The limit without the connection's.
    pub fn limit_of_response(&self) -> Option<u64> {
        let shared = self.shared.iter().flatten().filter_map(|shared| shared.bytes());
        shared.chain(Some(self.own.0).filter(|bytes| *bytes > 0)).min()
    }

    /// How many of the bytes that wait may leave now: none before [`resume`](Self::resume). Of the connection's own limit
    /// nothing is asked.
    pub fn grant(&mut self, waiting: impl FnOnce(u64) -> u64, now: u64) -> u64 {
        self.resume = u64::MAX;
        if self.granted == 0 {
            let Some(lowest) = self.limit_of_response() else { return u64::MAX };
            self.granted = waiting(piece(lowest));
            self.ready = self.reserve_of_response(now, self.granted, now);
        }
        self.ready_now(now)
    }

    /// Notes that so many of the granted bytes have left.
    pub fn use_up(&mut self, bytes: u64) {
        self.granted = self.granted.saturating_sub(bytes);
    }

    fn reserve_of_response(&mut self, now: u64, amount: u64, mut ready: u64) -> u64 {
        if let (bytes @ 1.., bucket) = &mut self.own {
            ready = ready.max(bucket.reserve(rate(*bytes), now, amount));
        }
        let shared = self.shared.iter().flatten();
        let reserved = shared.filter_map(|shared| Some(shared.reserve(shared.bytes()?, now, amount)));
        reserved.fold(ready, u64::max)
    }

    /// Grants as [`grant`](Self::grant) does, with the connection's own limit, and where nothing is limited any more a
    /// large piece.
    pub fn grant_all(&mut self, bandwidth: &Bandwidth, waiting: impl FnOnce(u64) -> u64, now: u64) -> u64 {
        self.resume = u64::MAX;
        if self.granted == 0 {
            self.ready = now;
            self.granted = PIECE.1;
            if let Some(lowest) = self.limit(bandwidth) {
                self.granted = waiting(piece(lowest));
                if let Some(bytes) = bandwidth.of_connection() {
                    self.ready = self.bucket.reserve(rate(bytes), now, self.granted);
                }
                self.ready = self.reserve_of_response(now, self.granted, self.ready);
            }
        }
        self.ready_now(now)
    }

    fn ready_now(&mut self, now: u64) -> u64 {
        if now < self.ready {
            self.resume = self.ready;
            return 0;
        }
        self.granted
    }

    fn give_back(&mut self) {
        for shared in self.shared.iter().flatten() {
            shared.give_back(self.granted);
        }
        (self.granted, self.ready) = (0, 0);
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000_000_000;

    fn route(path: &str, bytes: u64) -> RouteBandwidth {
        RouteBandwidth { path: path.parse().expect(path), bytes }
    }

    fn limits(routes: Vec<RouteBandwidth>) -> Bandwidth {
        let bandwidth = Bandwidth::new([0, 5000].into_iter());
        bandwidth.set(&BandwidthLimits { connection: 0, routes });
        bandwidth
    }

    #[test]
    fn a_response_is_under_its_pool_and_the_most_specific_route() {
        let bandwidth = limits(vec![route("/video/*", 100), route("/video/free/*", 0), route("/video/a", 7)]);
        let bytes = |pool, path: &str| {
            bandwidth.shared(pool, path.as_bytes()).map(|shared| shared.and_then(|shared| shared.bytes()))
        };
        assert_eq!(bytes(Some(1), "/x"), [Some(5000), None]);
        assert_eq!(bytes(Some(0), "/video/b"), [None, Some(100)]);
        assert_eq!(bytes(None, "/video/a"), [None, Some(7)]);
        assert_eq!(bytes(Some(1), "/video/free/b"), [Some(5000), None]);
    }

    #[test]
    fn it_is_off_when_nothing_is_limited() {
        let bandwidth = Bandwidth::new([0, 0].into_iter());
        assert!(!bandwidth.is_on());
        bandwidth.set_pool(1, 10);
        assert!(bandwidth.is_on());
        bandwidth.set_pool(1, 0);
        bandwidth.set(&BandwidthLimits { connection: 0, routes: vec![route("/a", 0)] });
        assert!(!bandwidth.is_on());
        bandwidth.set(&BandwidthLimits { connection: 1, routes: Vec::new() });
        assert!(bandwidth.is_on());
    }

    #[test]
    fn a_changed_route_keeps_its_used_bytes_and_a_removed_one_limits_no_response() {
        let bandwidth = limits(vec![route("/a", 1000)]);
        let [_, shared] = bandwidth.shared(None, b"/a");
        let shared = shared.expect("a limit");
        let used = shared.reserve(1000, NOW, 10_000);
        bandwidth.set(&BandwidthLimits { connection: 0, routes: vec![route("/b", 1), route("/a", 2000)] });
        assert_eq!(shared.bytes(), Some(2000));
        assert!(shared.reserve(2000, NOW, 1) >= used);
        bandwidth.set(&BandwidthLimits::default());
        assert_eq!(shared.bytes(), None);
    }

    /// When 32 KiB have left, in milliseconds after the first of them.
    fn passes(shaper: &mut Shaper, bandwidth: &Bandwidth, of_stream: bool) -> u64 {
        let (mut left, mut now) = (32 * 1024_u64, NOW);
        while left > 0 {
            let waiting = |most: u64| most.min(left);
            let granted = match of_stream {
                true => shaper.grant(waiting, now).min(left),
                false => shaper.grant_all(bandwidth, waiting, now).min(left),
            };
            if granted == 0 {
                assert!(shaper.resume() > now);
                now = shaper.resume();
            }
            shaper.use_up(granted);
            left -= granted;
        }
        (now - NOW) / 1_000_000
    }

    #[test]
    fn of_the_limits_of_a_response_and_its_own_one_the_lowest_counts_and_its_own_one_ends_with_it() {
        let none = Bandwidth::new([].into_iter());
        let connection = Bandwidth::new([].into_iter());
        connection.set(&BandwidthLimits { connection: 4096, routes: Vec::new() });
        for (own, shared, bandwidth, lowest) in [
            (0, 0, &none, None),
            (4096, 0, &none, Some(4096)),
            (4096, 8192, &none, Some(4096)),
            (8192, 4096, &none, Some(4096)),
            (8192, 0, &connection, Some(4096)),
            (2048, 0, &connection, Some(2048)),
        ] {
            let mut shaper = Shaper::default();
            shaper.set([(shared > 0).then(|| Arc::new(Shared::of(shared))), None]);
            shaper.limit_response(own);
            assert_eq!(shaper.limit(bandwidth), lowest, "{own} {shared}");
            // 2 KiB at once, the rest at the rate.
            let expected = lowest.map_or(0, |lowest| 30 * 1024 * 1000 / lowest);
            assert_eq!(passes(&mut shaper, bandwidth, false), expected, "{own} {shared}");
        }
        let mut shaper = Shaper::default();
        shaper.limit_response(1024);
        assert_eq!(passes(&mut shaper, &none, true), 30_000, "of a stream, too");
        shaper.limit_response(0);
        assert_eq!((passes(&mut shaper, &none, true), passes(&mut shaper, &none, false)), (0, 0));
        // The next response has all that may leave at once.
        shaper.limit_response(4096);
        assert_eq!(passes(&mut shaper, &none, false), 7_500);
    }

    #[test]
    fn senders_with_a_common_bucket_take_turns_and_unused_bytes_are_given_back() {
        let shared = Arc::new(Shared::of(64_000));
        // A sixteenth of a second at once, then one after the other.
        let ready: Vec<u64> = (0..8).map(|_| shared.reserve(64_000, NOW, 1000)).collect();
        assert_eq!(&ready[..4], [NOW; 4]);
        let steps: Vec<u64> = ready[3..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps, [15_625_000; 4]);
        let mut shaper = Shaper::default();
        shaper.set([Some(Arc::clone(&shared)), None]);
        shaper.granted = 1000;
        shaper.set([Some(Arc::clone(&shared)), None]);
        assert_eq!(shaper.granted, 1000, "the same as before");
        drop(shaper);
        assert_eq!(shared.reserve(64_000, NOW, 1000), ready[7]);
    }
}
