//! Connections, requests and password checks of each client address, in all processes of a server. Pure: the time is given.
//!
//! A client is an IPv4 address, or the IPv6 addresses with the same prefix, since one customer has 2^64 of them. They
//! are kept in a table of fixed size: sets of eight places, in which a client has its place by a hash with a random
//! key, so that no client can choose its set. One look at one set for each request or connection.
//!
//! ```text
//!   table    place | place | place | …      all processes, without a lock: one that is killed holds nothing
//!   ledger     2       0       1            how many of the connections and checks there are this process's
//! ```
//! Promises: a client that has a connection or a check is never forgotten. Of the others a new one takes the place of
//! the one whose buckets have been full for longest, of which nothing is lost; if there is none, of the one that has
//! least to lose. With connections in all eight places the new client is not counted, and let in: a limit that refuses
//! innocent clients would be an attacker's aim. The counts of a process that was killed are given back by its ledger,
//! up to one connection for each of its threads, which it may have been counting: then one more is let in. Two
//! processes that count a new client at the same moment may give it two places, until one is free.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use maitred_io::private_memory::PrivateMemory;
use maitred_io::shared_memory::SharedMemory;
use maitred_match::Network;
use maitred_stats::memory::{self, Memory};

use super::bucket::{Bucket, Rate};

/// Clients that are remembered: as many as have connections at the same time on a large site. Takes 2 MiB, in all processes together.
const MAX_CLIENTS: usize = 65_536;

/// Places of a set: two of them fill a cache line, and with eight a set of harmless clients only is rarely full.
const WAYS: usize = 8;

/// Words before the places: two of the key, and as many as fill a cache line.
const HEADER: usize = 8;

const WORD: usize = size_of::<AtomicU64>();

const TABLE_BYTES: usize = (HEADER + MAX_CLIENTS * Place::WORDS) * WORD;

/// Bytes of memory in which a process keeps its own counts. A page of it takes memory with its first count.
pub const LEDGER_BYTES: usize = MAX_CLIENTS * WORD;

/// The reference of the options states these sizes.
const _: () = assert!(TABLE_BYTES <= (2 << 20) + 64 && LEDGER_BYTES <= 1 << 19);

/// Stands for the name of a client while its place is given to another one.
const REPLACED: u64 = 1;

/// How often a client is looked for while others change its set. Then it is not counted.
const TRIES: usize = 8;

/// Handshakes that a client may always begin at once: browsers open six connections to a host.
const MIN_HANDSHAKES: u64 = 8;

/// The limits of one client.
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

    /// The limit of handshakes, with those of a second at once: a browser opens some connections for a page.
    pub(crate) fn handshake_rate(&self) -> Rate {
        Rate::of_requests(self.handshakes, (self.handshakes / 1000).max(MIN_HANDSHAKES))
    }
}

/// A client: an IPv4 address, or an IPv6 prefix.
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

    /// The number of the client, never 0.
    pub(crate) fn number(self) -> u128 {
        self.0
    }

    /// The client with this number; 0 stands for all that have no address.
    pub(crate) fn numbered(number: u128) -> Self {
        Self(number)
    }
}

/// Gives a table its key.
fn prepare(words: &[AtomicU64]) {
    let random = RandomState::new();
    words.iter().take(2).zip([1_u64, 2]).for_each(|(word, of)| word.store(random.hash_one(of), Relaxed));
}

/// The two things that are counted of a client, each in a half of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedUse {
    Connection,
    /// A password that is being checked, or waits for that.
    Check,
}

impl CountedUse {
    const BITS: u32 = 32;

    const fn shift(self) -> u32 {
        match self {
            Self::Connection => 0,
            Self::Check => Self::BITS,
        }
    }

    const fn one(self) -> u64 {
        1 << self.shift()
    }

    const fn of(self, word: u64) -> u64 {
        (word >> self.shift()) & ((1 << Self::BITS) - 1)
    }

    /// A word of which so many of both are taken away, as far as they are there.
    fn less(word: u64, less: u64) -> u64 {
        let of = |held: Self| held.of(word).saturating_sub(held.of(less)) << held.shift();
        of(Self::Connection) | of(Self::Check)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateBucket {
    Request,
    Handshake,
}

/// The clients of all processes of a server, as this one has them.
pub(crate) struct Clients {
    table: Memory,
    /// How many connections and checks of this process are counted at each place.
    ledger: Memory,
    keys: [u64; 2],
}

impl Clients {
    /// The table of this process alone.
    pub(crate) fn new() -> Self {
        let table = private(TABLE_BYTES);
        prepare((*table).as_ref());
        Self::of(table, private(LEDGER_BYTES))
    }

    pub(crate) fn shared(shared: &ProcessClients) -> Self {
        Self::of(Arc::clone(&shared.table.0) as Memory, Arc::clone(&shared.ledger) as Memory)
    }

    fn of(table: Memory, ledger: Memory) -> Self {
        let keys = [0, 1].map(|at| (*table).as_ref().get(at).map_or(0, |key| key.load(Relaxed)));
        Self { table, ledger, keys }
    }

    fn places(&self) -> &[AtomicU64] {
        (*self.table).as_ref().get(HEADER..).unwrap_or_default()
    }

    fn place(&self, number: usize) -> Option<Place<'_>> {
        self.places().get(number * Place::WORDS..)?.first_chunk().map(Place)
    }

    /// The hash that stands for a client in the table: two clients have the same one by chance only, and no peer can
    /// make such.
    fn name(&self, client: Client) -> u64 {
        #[expect(
            deprecated,
            reason = "the hasher of the standard library that takes a key, which all processes have"
        )]
        let mut hasher = std::hash::SipHasher::new_with_keys(self.keys[0], self.keys[1]);
        client.hash(&mut hasher);
        hasher.finish().max(REPLACED + 1)
    }

    /// The places that may be this client's.
    fn set(&self, name: u64) -> impl Iterator<Item = (usize, Place<'_>)> {
        let sets = (self.places().len() / Place::WORDS / WAYS).max(1) as u64;
        let first = (name % sets) as usize * WAYS;
        (first..first + WAYS).filter_map(|number| Some((number, self.place(number)?)))
    }

    /// The place of a client: the one it has, or one that it gets.
    fn find(&self, name: u64) -> Option<(usize, Place<'_>)> {
        for last in (0..TRIES).rev() {
            if let Some(own) = self.set(name).find(|(_, place)| place.name() == name) {
                return Some(own);
            }
            // Another process gives the place away now, maybe to this client. A process that was killed then does so for ever.
            if last > 0 && self.set(name).any(|(_, place)| place.name() == REPLACED) {
                std::hint::spin_loop();
                continue;
            }
            let free = self.set(name).filter(|(_, place)| place.name() != REPLACED && !place.is_held());
            // A place that was never used is that of the longest full bucket.
            let (number, place) = free.min_by_key(|(_, place)| place.is_full_at())?;
            // With a full bucket: a client with so many addresses that others lose theirs has a full one with each anyway.
            if place.replace(name) {
                return Some((number, place));
            }
        }
        None
    }

    /// A client gets one more of these, of which it may have `most`: `Some(true)` when it is counted and has to be
    /// [closed](Self::close), `Some(false)` when there is no place to count it, `None` when it is one too many.
    pub(crate) fn open(&self, what: CountedUse, client: Client, most: u32) -> Option<bool> {
        let name = self.name(client);
        for _ in 0..TRIES {
            let Some((number, place)) = self.find(name) else { return Some(false) };
            self.note(number, |own| own.saturating_add(what.one()));
            let before = what.of(place.add(what));
            // A process that gives the place away looks at its counts afterwards, so one of the two sees the other.
            let is_own = place.name() == name;
            if is_own && before < u64::from(most) {
                return Some(true);
            }
            self.uncount(what, number, &place);
            if is_own {
                return None;
            }
        }
        Some(false)
    }

    /// Counts the end of a connection or check.
    pub(crate) fn close(&self, what: CountedUse, client: Client) {
        let name = self.name(client);
        let counted =
            self.set(name).find(|(number, place)| place.name() == name && what.of(self.own(*number)) > 0);
        if let Some((number, place)) = counted {
            self.uncount(what, number, &place);
        }
    }

    /// The ledger comes last, and first where one is counted: a process that is killed between has too much in it, never too little.
    fn uncount(&self, what: CountedUse, number: usize, place: &Place<'_>) {
        place.give_back(what.one());
        self.note(number, |own| CountedUse::less(own, what.one()));
    }

    /// A client makes a request or begins a handshake.
    ///
    /// # Errors
    /// It may not; the value is when it may, on the clock of `now`.
    pub(crate) fn ask(&self, what: RateBucket, client: Client, rate: Rate, now: u64) -> Result<(), u64> {
        let Some((_, place)) = self.find(self.name(client)) else { return Ok(()) };
        let mut refused = Ok(());
        let _ = place.bucket(what).fetch_update(Relaxed, Relaxed, |full_at| {
            let mut bucket = Bucket::full_at(full_at);
            refused = bucket.take(rate, now, 1);
            refused.is_ok().then(|| bucket.is_full_at())
        });
        refused
    }

    /// The counts of this process there.
    fn own(&self, number: usize) -> u64 {
        (*self.ledger).as_ref().get(number).map_or(0, |own| own.load(Relaxed))
    }

    fn note(&self, number: usize, change: impl Fn(u64) -> u64) {
        let word = (*self.ledger).as_ref().get(number);
        // The function always has a value.
        let _ = word.map(|word| word.fetch_update(Relaxed, Relaxed, |own| Some(change(own))));
    }
}

/// Memory of this process alone.
fn private(bytes: usize) -> Memory {
    match PrivateMemory::new(bytes) {
        Ok(own) => Arc::new(own),
        // Where no memory can be mapped, the allocator has some.
        Err(_) => memory::private(bytes / WORD),
    }
}

/// The place of a client.
///
/// ```text
/// name | full_at of its requests | full_at of its handshakes | connections and checks of all processes
/// ```
/// The name is 0 while the place has never been used, and [`REPLACED`] for the moment in which a client gets the place of another one.
struct Place<'a>(&'a [AtomicU64; Place::WORDS]);

impl Place<'_> {
    const WORDS: usize = 4;

    fn name(&self) -> u64 {
        self.0[0].load(SeqCst)
    }

    fn bucket(&self, what: RateBucket) -> &AtomicU64 {
        match what {
            RateBucket::Request => &self.0[1],
            RateBucket::Handshake => &self.0[2],
        }
    }

    /// When all buckets of the client are full.
    fn is_full_at(&self) -> u64 {
        self.0[1].load(Relaxed).max(self.0[2].load(Relaxed))
    }

    /// Whether the client has a connection or a check.
    fn is_held(&self) -> bool {
        self.0[3].load(SeqCst) > 0
    }

    /// Adds one; returns the counts before.
    fn add(&self, what: CountedUse) -> u64 {
        self.0[3].fetch_add(what.one(), SeqCst)
    }

    fn give_back(&self, held: u64) {
        // The function always has a value.
        let _ = self.0[3].fetch_update(SeqCst, SeqCst, |before| Some(CountedUse::less(before, held)));
    }

    /// Gives the place to another client, unless something has happened there.
    fn replace(&self, name: u64) -> bool {
        let before = self.name();
        if before == REPLACED || self.0[0].compare_exchange(before, REPLACED, SeqCst, SeqCst).is_err() {
            return false;
        }
        if self.is_held() {
            self.0[0].store(before, SeqCst);
            return false;
        }
        self.0[1].store(0, Relaxed);
        self.0[2].store(0, Relaxed);
        self.0[0].store(name, SeqCst);
        true
    }
}

// ---- Several processes ----

/// The table that several processes share. The process that makes it hands it to the others.
#[derive(Clone)]
pub struct ClientTable(Arc<SharedMemory>);

impl ClientTable {
    /// A new one.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let memory = SharedMemory::new(TABLE_BYTES)?;
        prepare(memory.words());
        Ok(Self(Arc::new(memory)))
    }

    /// The table of another process, by its descriptor.
    ///
    /// # Errors
    /// The table is none of this version.
    pub fn open(descriptor: OwnedFd) -> io::Result<Self> {
        let memory = SharedMemory::open(descriptor)?;
        if memory.words().len() * WORD != TABLE_BYTES {
            return Err(io::Error::other("the table of clients is of another version"));
        }
        Ok(Self(Arc::new(memory)))
    }

    /// Gives the counts of an ended process back, after any kind of end; this is its ledger. Called once.
    pub fn give_back(&self, ledger: &SharedMemory) {
        let clients = Clients::of(Arc::clone(&self.0) as Memory, memory::private(0));
        for (number, own) in ledger.words().iter().enumerate() {
            let Some(place) = clients.place(number) else { return };
            match own.load(Relaxed) {
                0 => {}
                held => place.give_back(held),
            }
            // It may have been killed in that moment.
            let _ = place.0[0].compare_exchange(REPLACED, 0, SeqCst, SeqCst);
        }
    }
}

impl AsFd for ClientTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl fmt::Debug for ClientTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTable")
    }
}

/// The table as one of the processes has it, with memory for its own counts there.
#[derive(Clone)]
pub struct ProcessClients {
    /// The table of all processes.
    pub table: ClientTable,
    /// [`LEDGER_BYTES`] that the supervisor of this process has, too.
    pub ledger: Arc<SharedMemory>,
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

    fn with_sets(count: usize) -> Clients {
        let table = memory::private(HEADER + count * WAYS * Place::WORDS);
        prepare((*table).as_ref());
        Clients::of(table, memory::private(count * WAYS))
    }

    fn names(clients: &Clients) -> Vec<u64> {
        clients.places().chunks(Place::WORDS).map(|place| place[0].load(Relaxed)).collect()
    }

    #[test]
    fn connections_are_counted_up_and_down_each_client_by_itself() {
        let clients = with_sets(4);
        let [one, other] = [client("192.0.2.1"), client("2001:db8::1")];
        assert_eq!(
            [clients.open(CountedUse::Connection, one, 2), clients.open(CountedUse::Connection, one, 2)],
            [Some(true); 2]
        );
        assert_eq!(clients.open(CountedUse::Connection, one, 2), None);
        assert_eq!(clients.open(CountedUse::Connection, other, 2), Some(true));
        clients.close(CountedUse::Connection, one);
        assert_eq!(
            [clients.open(CountedUse::Connection, one, 2), clients.open(CountedUse::Connection, one, 2)],
            [Some(true), None]
        );
        // A lower limit ends nothing, but admits no new connection.
        assert_eq!(clients.open(CountedUse::Connection, other, 1), None);
    }

    #[test]
    fn requests_of_a_client_pass_at_its_rate_and_handshakes_at_theirs() {
        let clients = with_sets(4);
        let rate = Rate::of_requests(2_000, 3);
        let ask = |client, now| clients.ask(RateBucket::Request, client, rate, now);
        assert_eq!([0, 0, 0].map(|_| ask(numbered(1), NOW)), [Ok(()); 3]);
        assert_eq!(ask(numbered(1), NOW), Err(NOW + SECOND / 2));
        assert_eq!(clients.ask(RateBucket::Handshake, numbered(1), rate, NOW), Ok(()));
        assert_eq!(ask(numbered(2), NOW), Ok(()));
        assert_eq!(ask(numbered(1), NOW + SECOND / 2), Ok(()));
    }

    #[test]
    fn a_new_client_takes_the_place_of_the_one_that_was_harmless_for_longest_and_never_that_of_a_connection()
    {
        let clients = with_sets(1);
        let rate = Rate::of_requests(1_000, 1);
        let ask = |number, now| clients.ask(RateBucket::Request, numbered(number), rate, now);
        // One holds a connection, six have asked one after the other, one has asked for more than it may.
        assert_eq!(clients.open(CountedUse::Connection, numbered(100), 1), Some(true));
        for number in 1..=7 {
            assert_eq!(ask(number, NOW + u64::from(number) * SECOND), Ok(()));
        }
        let now = NOW + 8 * SECOND;
        assert_eq!(ask(200, now), Ok(()));
        let known = |number| names(&clients).contains(&clients.name(numbered(number)));
        assert!(!known(1), "it was full for longest");
        assert!((2..=7).all(known) && known(200) && known(100));
        assert_eq!(clients.open(CountedUse::Connection, numbered(100), 1), None, "still counted");
    }

    #[test]
    fn with_connections_in_all_places_a_new_client_is_let_in_uncounted() {
        let clients = with_sets(1);
        for number in 1..=8 {
            assert_eq!(clients.open(CountedUse::Connection, numbered(number), 1), Some(true));
        }
        assert_eq!(clients.open(CountedUse::Connection, numbered(9), 1), Some(false));
        assert_eq!(clients.ask(RateBucket::Request, numbered(9), Rate::of_requests(1, 1), NOW), Ok(()));
        clients.close(CountedUse::Connection, numbered(9));
        assert!((1..=8).all(|number| clients.open(CountedUse::Connection, numbered(number), 1).is_none()));
    }

    /// Two processes with one table, the second one by descriptors.
    fn processes() -> [ProcessClients; 2] {
        let table = ClientTable::new().expect("memory");
        let other = table.as_fd().try_clone_to_owned().and_then(ClientTable::open).expect("the same");
        [table, other].map(|table| {
            let ledger = Arc::new(SharedMemory::new(LEDGER_BYTES).expect("memory"));
            ProcessClients { table, ledger }
        })
    }

    #[test]
    fn processes_count_a_client_together() {
        let [one, other] = processes().map(|process| Clients::shared(&process));
        let (who, rate) = (client("192.0.2.1"), Rate::of_requests(1_000, 2));
        assert_eq!(
            (one.open(CountedUse::Connection, who, 2), other.open(CountedUse::Connection, who, 2)),
            (Some(true), Some(true))
        );
        assert_eq!(
            (one.open(CountedUse::Connection, who, 2), other.open(CountedUse::Connection, who, 2)),
            (None, None)
        );
        one.close(CountedUse::Connection, who);
        // One that this process does not have is not another one's.
        one.close(CountedUse::Connection, who);
        assert_eq!(
            (other.open(CountedUse::Connection, who, 2), other.open(CountedUse::Connection, who, 2)),
            (Some(true), None)
        );
        assert_eq!(one.ask(RateBucket::Request, who, rate, NOW), Ok(()));
        assert_eq!(other.ask(RateBucket::Request, who, rate, NOW), Ok(()));
        assert_eq!(one.ask(RateBucket::Request, who, rate, NOW), Err(NOW + SECOND));
    }

    #[test]
    fn checks_of_a_client_are_counted_beside_its_connections() {
        let [one, other] = processes();
        let [first, second] = [&one, &other].map(Clients::shared);
        let who = client("192.0.2.1");
        let check = |clients: &Clients| clients.open(CountedUse::Check, who, 2);
        assert_eq!([check(&first), check(&second), check(&first)], [Some(true), Some(true), None]);
        assert_eq!(first.open(CountedUse::Connection, who, 1), Some(true));
        first.close(CountedUse::Check, who);
        assert_eq!([check(&second), check(&first)], [Some(true), None]);
        // The counts of the first one, and not the connection of the second.
        assert_eq!(second.open(CountedUse::Connection, who, 2), Some(true));
        other.table.give_back(&one.ledger);
        assert_eq!(second.open(CountedUse::Connection, who, 2), Some(true));
        assert_eq!((second.open(CountedUse::Connection, who, 2), check(&second)), (None, None));
        second.close(CountedUse::Check, who);
        second.close(CountedUse::Check, who);
        assert_eq!([check(&second), check(&second), check(&second)], [Some(true), Some(true), None]);
    }

    #[test]
    fn the_counts_of_a_killed_process_are_given_back_and_nothing_else() {
        let [one, other] = processes();
        let [first, second] = [&one, &other].map(Clients::shared);
        let who = client("192.0.2.1");
        let opened = [
            first.open(CountedUse::Connection, who, 3),
            first.open(CountedUse::Connection, who, 3),
            second.open(CountedUse::Connection, who, 3),
        ];
        assert_eq!(opened, [Some(true); 3]);
        assert_eq!(second.open(CountedUse::Connection, who, 3), None);
        drop(first);
        other.table.give_back(&one.ledger);
        assert_eq!(
            [second.open(CountedUse::Connection, who, 3), second.open(CountedUse::Connection, who, 3)],
            [Some(true); 2]
        );
        assert_eq!(second.open(CountedUse::Connection, who, 3), None);
        // Killed in the middle: a place that was being given away, and a connection that is in the ledger alone.
        let place = second.find(second.name(who)).expect("there").1;
        place.0[0].store(REPLACED, SeqCst);
        one.ledger.words()[3].store(7, Relaxed);
        other.table.give_back(&one.ledger);
        assert!(!names(&second).contains(&REPLACED));
    }

    #[test]
    fn threads_of_all_processes_at_once_leave_nothing_counted() {
        const CLIENTS: u32 = 40;
        let [one, other] = processes();
        let [first, second] = [&one, &other].map(Clients::shared);
        std::thread::scope(|scope| {
            for (clients, start) in [(&first, 0), (&second, 7), (&first, 13), (&second, 29)] {
                scope.spawn(move || {
                    for round in 0..20_000_u32 {
                        let who = numbered(start + round % CLIENTS);
                        if clients.open(CountedUse::Connection, who, 3).is_some() {
                            let _ = clients.ask(
                                RateBucket::Request,
                                who,
                                Rate::of_requests(1_000, 1),
                                u64::from(round),
                            );
                            clients.close(CountedUse::Connection, who);
                        }
                    }
                });
            }
        });
        assert!(first.places().chunks(Place::WORDS).all(|place| place[3].load(Relaxed) == 0));
        assert!(
            [&one, &other].iter().all(|process| process
                .ledger
                .words()
                .iter()
                .all(|own| own.load(Relaxed) == 0))
        );
    }
}
