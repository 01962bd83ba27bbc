//! Connections and requests of each client address. Pure: the time is given.
//!
//! A client is an IPv4 address, or the IPv6 addresses with the same prefix, since one customer has 2^64 of them. They
//! are kept in a table of fixed size: sets of eight places, in which a client has its place by a hash with a key of
//! this process, so that nobody can choose whom to meet there. One look at one set for each request or connection.
//!
//! Promises: a client that has a connection is never forgotten. Of the others a new one takes the place of the one whose
//! bucket has been full for longest, of which nothing is lost; if there is none, of the one that has least to lose. With
//! connections in all eight places the new client is not counted, and let in: a limit that refuses those who have done
//! nothing would be what an attacker wants.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use maitred_io::sync::{NamedGuard, NamedLock};
use maitred_stats::LockSnapshot;

use super::bucket::{Bucket, Rate};
use maitred_match::Network;

/// Clients that are remembered: as many as have connections at the same time on a large site. Takes 2 MiB.
const MAX_CLIENTS: usize = 65_536;

/// Places of a set: two of them fill a cache line, and with eight a set of harmless clients only is rarely full.
const WAYS: usize = 8;

/// Handshakes that a client may always begin at once: browsers open six connections to a host.
const MIN_HANDSHAKES: u64 = 8;

/// What one client may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections at the same time; 0: any number.
    pub connections: u32,
    /// Requests in a thousand seconds, so that there are fractions; 0: any number.
    pub rate: u64,
    /// Requests at once, at least 1.
    pub burst: u32,
    /// New TLS handshakes in a thousand seconds; 0: any number.
    pub handshakes: u64,
    /// IPv6 addresses with so many equal bits are one client, 1 to 128. Not changed while the server runs.
    pub ipv6_prefix: u8,
    /// Clients without limits.
    pub exempt: Vec<Network>,
}

impl Default for ClientLimits {
    /// No limits.
    fn default() -> Self {
        Self { connections: 0, rate: 0, burst: 20, handshakes: 0, ipv6_prefix: 64, exempt: Vec::new() }
    }
}

impl ClientLimits {
    /// Whether there are none for this address, which is canonical.
    pub(crate) fn exempts(&self, address: IpAddr) -> bool {
        self.exempt.iter().any(|network| network.contains(address))
    }

    pub(crate) fn requests(&self) -> Rate {
        Rate::of_requests(self.rate, self.burst.into())
    }

    /// Those of a second at once: a browser opens some connections for a page.
    pub(crate) fn handshake_rate(&self) -> Rate {
        Rate::of_requests(self.handshakes, (self.handshakes / 1000).max(MIN_HANDSHAKES))
    }
}

/// Who counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client(u128);

impl Client {
    /// The client with this address, which is canonical.
    pub(crate) fn of(address: IpAddr, ipv6_prefix: u8) -> Self {
        // Turned over: 0 is then an address of multicast, which no client has, and stands for a place without one.
        Self(!match address {
            // No IPv6 address with a shorter prefix is of this form: it is canonical.
            IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
            IpAddr::V6(address) => {
                let behind = 128 - u32::from(ipv6_prefix.clamp(1, 128));
                u128::from(address) >> behind << behind
            }
        })
    }
}

impl Client {
    /// Never 0.
    pub(crate) fn number(self) -> u128 {
        self.0
    }
}

/// What is known of a client.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// 0 while the place has never been used.
    client: u128,
    bucket: Bucket,
    connections: u32,
}

type Set = [Place; WAYS];

/// What the locks of the sets are called, all together.
const LOCK: &str = "clients";

/// The clients.
pub(crate) struct Clients {
    sets: Box<[NamedLock<Set>]>,
    hasher: RandomState,
}

impl Clients {
    pub(crate) fn new() -> Self {
        Self::with_sets(MAX_CLIENTS / WAYS)
    }

    fn with_sets(count: usize) -> Self {
        Self {
            sets: (0..count).map(|_| NamedLock::with_name(LOCK.into(), Set::default())).collect(),
            hasher: RandomState::new(),
        }
    }

    fn set(&self, client: Client) -> NamedGuard<'_, Set> {
        // There are 2^13 of them, or fewer in tests.
        let number = self.hasher.hash_one(client) as usize % self.sets.len();
        self.sets[number].lock()
    }

    /// The counts of all their locks as if they were one.
    pub(crate) fn lock_snapshot(&self) -> LockSnapshot {
        let mut sum = LockSnapshot {
            name: LOCK.into(),
            acquisitions: 0,
            contended: 0,
            wait_total: Duration::ZERO,
            wait_max: Duration::ZERO,
        };
        self.sets.iter().for_each(|set| sum.add(&set.snapshot()));
        sum
    }

    /// A client makes a connection, of which it may have so many: `Some(true)` when it is counted and has to be
    /// [closed](Self::close), `Some(false)` when there is no place to count it, `None` when it is one too many.
    pub(crate) fn open(&self, client: Client, most: u32) -> Option<bool> {
        let mut set = self.set(client);
        let Some(place) = place(&mut set, client) else { return Some(false) };
        if place.connections >= most {
            return None;
        }
        place.connections += 1;
        Some(true)
    }

    /// A connection that was counted has ended.
    pub(crate) fn close(&self, client: Client) {
        let mut set = self.set(client);
        if let Some(place) = set.iter_mut().find(|place| place.client == client.0) {
            place.connections = place.connections.saturating_sub(1);
        }
    }

    /// A client makes a request.
    ///
    /// # Errors
    /// It may not; the value is when it may, on the clock of `now`.
    pub(crate) fn request(&self, client: Client, rate: Rate, now: u64) -> Result<(), u64> {
        let mut set = self.set(client);
        match place(&mut set, client) {
            Some(place) => place.bucket.take(rate, now, 1),
            None => Ok(()),
        }
    }
}

/// The place of a client in its set: the one it has, or one that it gets.
fn place(set: &mut Set, client: Client) -> Option<&mut Place> {
    let own = set.iter().position(|place| place.client == client.0);
    let found = own.or_else(|| {
        let free = set.iter().enumerate().filter(|(_, place)| place.connections == 0);
        // A place that was never used is that of the longest full bucket.
        let (found, _) = free.min_by_key(|(_, place)| place.bucket.is_full_at())?;
        // With a full bucket: whoever brings so many addresses that others lose theirs has a full one with each anyway.
        set[found] = Place { client: client.0, ..Place::default() };
        Some(found)
    })?;
    Some(&mut set[found])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn client(text: &str) -> Client {
        Client::of(text.parse::<IpAddr>().expect(text).to_canonical(), 64)
    }

    fn numbered(number: u32) -> Client {
        Client::of(IpAddr::V4(number.into()), 64)
    }

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_prefix() {
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1:2:3"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("192.0.2.1"), client("::ffff:192.0.2.1"));
        assert_ne!(client("::1").0, 0, "an unused place");
        assert_ne!(Client::of("fd00::1".parse().unwrap(), 128), Client::of("fd00::2".parse().unwrap(), 128));
        assert_eq!(Client::of("fd00::1".parse().unwrap(), 8), Client::of("fdff::2".parse().unwrap(), 8));
    }

    #[test]
    fn connections_are_counted_up_and_down_each_client_by_itself() {
        let clients = Clients::with_sets(4);
        let [one, other] = [client("192.0.2.1"), client("2001:db8::1")];
        assert_eq!([clients.open(one, 2), clients.open(one, 2)], [Some(true); 2]);
        assert_eq!(clients.open(one, 2), None);
        assert_eq!(clients.open(other, 2), Some(true));
        clients.close(one);
        assert_eq!([clients.open(one, 2), clients.open(one, 2)], [Some(true), None]);
        // A lower limit ends nothing, but lets nobody in.
        assert_eq!(clients.open(other, 1), None);
    }

    #[test]
    fn requests_of_a_client_pass_at_its_rate() {
        let clients = Clients::with_sets(4);
        let rate = Rate::of_requests(2_000, 3);
        let ask = |client, now| clients.request(client, rate, now);
        assert_eq!([0, 0, 0].map(|_| ask(numbered(1), NOW)), [Ok(()); 3]);
        assert_eq!(ask(numbered(1), NOW), Err(NOW + SECOND / 2));
        assert_eq!(ask(numbered(2), NOW), Ok(()));
        assert_eq!(ask(numbered(1), NOW + SECOND / 2), Ok(()));
    }

    #[test]
    fn a_new_client_takes_the_place_of_the_one_that_was_harmless_for_longest_and_never_that_of_a_connection()
    {
        let clients = Clients::with_sets(1);
        let rate = Rate::of_requests(1_000, 1);
        // One holds a connection, six have asked one after the other, one has asked for more than it may.
        assert_eq!(clients.open(numbered(100), 1), Some(true));
        for number in 1..=7 {
            assert_eq!(clients.request(numbered(number), rate, NOW + u64::from(number) * SECOND), Ok(()));
        }
        let now = NOW + 8 * SECOND;
        assert_eq!(clients.request(numbered(200), rate, now), Ok(()));
        let known = |number| {
            let set = clients.sets[0].lock();
            set.iter().any(|place| place.client == numbered(number).0)
        };
        assert!(!known(1), "it was full for longest");
        assert!((2..=7).all(known) && known(200) && known(100));
        assert_eq!(clients.open(numbered(100), 1), None, "still counted");
    }

    #[test]
    fn with_connections_in_all_places_a_new_client_is_let_in_uncounted() {
        let clients = Clients::with_sets(1);
        for number in 1..=8 {
            assert_eq!(clients.open(numbered(number), 1), Some(true));
        }
        assert_eq!(clients.open(numbered(9), 1), Some(false));
        assert_eq!(clients.request(numbered(9), Rate::of_requests(1, 1), NOW), Ok(()));
        clients.close(numbered(9));
        assert!((1..=8).all(|number| clients.open(numbered(number), 1).is_none()));
    }

    #[test]
    fn a_table_takes_the_memory_it_is_documented_with() {
        assert!(
            size_of::<NamedLock<Set>>() * (MAX_CLIENTS / WAYS) <= 3 << 20,
            "{}",
            size_of::<NamedLock<Set>>()
        );
    }
}
