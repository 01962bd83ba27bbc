//! Limits of peers: the slowest speed, the number of connections and requests, the speed of responses.
//!
//! ```text
//! minimum.rs    how slow and how silent a peer may be        bucket.rs      a token bucket
//! clients.rs    connections and requests of an address       bandwidth.rs   how fast responses leave
//! heads.rs      the memory of request heads, and the connections that give theirs up
//! rule.rs       the rules by name, and how often each was applied
//! resources.rs  the memory of all connections together, and the mode for scarce resources
//! ```
//! Promises: a limit that is off costs a load for each request or connection, or nothing. Buckets, tables and minima
//! are pure. Everything but the IPv6 prefix may be changed while the server runs.

mod bandwidth;
mod bucket;
mod clients;
pub mod heads;
pub mod minimum;
pub mod resources;
mod rule;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use maitred_http::Peer;
use maitred_io::machine;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use maitred_stats::Arena;

pub use bandwidth::{Bandwidth, Shaper};
pub use bandwidth::{BandwidthLimits, RouteBandwidth};
use bucket::Rate;
use clients::{Client, Clients, CountedUse, RateBucket};
pub use clients::{ClientLimits, ClientTable, LEDGER_BYTES, ProcessClients};
use heads::Heads;
use maitred_log::Log;
use minimum::Minimum;
use resources::{Budget, Resources};
pub use rule::{Applied, RULES_TOTAL, Rule};

/// The limits of a server beside its timeouts and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How slow a peer may be.
    pub rates: MinimumRates,
    /// The limits of one client.
    pub clients: ClientLimits,
    /// How fast responses may leave, beside the limits of pools.
    pub bandwidth: BandwidthLimits,
    /// Bytes that all connections may hold in buffers; 0: any number; `None`: a quarter of the memory that the process may
    /// use.
    pub buffers: Option<u64>,
    /// Bytes that heads of requests may hold that are not complete, and as many that are not answered; 0: any number.
    pub heads: u64,
    /// Connections at the same time; 0: as many as the limit of open files allows.
    pub connections: usize,
}

impl Default for Limits {
    /// Minimum rates only.
    fn default() -> Self {
        Self {
            rates: MinimumRates::default(),
            clients: ClientLimits::default(),
            bandwidth: BandwidthLimits::default(),
            buffers: None,
            heads: 24 * 1024 * 1024,
            connections: 0,
        }
    }
}

/// The least bytes a second, while something waits for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumRates {
    /// Bytes per second of a request body; 0: any rate.
    pub inward: u64,
    /// Bytes per second of a response that the peer's system acknowledges; 0: any rate.
    pub outward: u64,
    /// The average is over so long; a peer has as much time at first.
    pub grace: Duration,
}

impl Default for MinimumRates {
    /// The rates of Kestrel, with the grace of the timeouts.
    fn default() -> Self {
        Self { inward: 240, outward: 240, grace: Duration::from_secs(30) }
    }
}

/// The limits of a running server, and their state.
pub struct Guard {
    inward: AtomicU64,
    outward: AtomicU64,
    grace: AtomicU64,
    limits_connections: AtomicBool,
    limits_requests: AtomicBool,
    limits_handshakes: AtomicBool,
    client_limits: ArcSwap<ClientLimits>,
    /// Made when there is a limit for the first time.
    clients: OnceLock<Clients>,
    /// The counts of clients that all processes of the server share.
    shared: Option<ProcessClients>,
    ipv6_prefix: u8,
    /// How fast responses leave.
    pub bandwidth: Bandwidth,
    /// How often which rule was applied.
    pub applied: Applied,
    /// The memory of connections in buffers, with its limit.
    pub budget: Budget,
    /// The memory of request heads, with its limit.
    pub heads: Heads,
    /// Whether there is little of something.
    pub resources: Resources,
    connections: AtomicUsize,
}

impl Guard {
    /// `pools` are the bandwidths of the pools by number. `shared`: clients are counted together with other processes.
    pub fn new(limits: &Limits, pools: impl Iterator<Item = u64>, shared: Option<ProcessClients>) -> Self {
        let guard = Self {
            inward: AtomicU64::default(),
            outward: AtomicU64::default(),
            grace: AtomicU64::default(),
            limits_connections: AtomicBool::default(),
            limits_requests: AtomicBool::default(),
            limits_handshakes: AtomicBool::default(),
            client_limits: ArcSwap::default(),
            clients: OnceLock::new(),
            shared,
            ipv6_prefix: limits.clients.ipv6_prefix,
            bandwidth: Bandwidth::new(pools),
            applied: Applied::default(),
            budget: Budget::default(),
            heads: Heads::default(),
            resources: Resources::default(),
            connections: AtomicUsize::default(),
        };
        guard.set(limits);
        guard
    }

    /// Counts in memory in which others find it, from now on.
    pub fn count_in(&mut self, arena: &Arena) {
        self.applied = Applied::in_arena(arena);
    }

    /// Changes everything but the IPv6 prefix, by which connections are counted that are open.
    pub fn set(&self, limits: &Limits) {
        let Limits { rates, clients, bandwidth, buffers, heads, connections: most } = limits;
        let quarter = || machine::memory_limit().map_or(0, |bytes| bytes / 4);
        self.budget.set(buffers.unwrap_or_else(quarter));
        self.heads.set(*heads);
        self.connections.store(*most, Ordering::Relaxed);
        self.inward.store(rates.inward, Ordering::Relaxed);
        self.outward.store(rates.outward, Ordering::Relaxed);
        let grace = u64::try_from(rates.grace.as_nanos()).unwrap_or(u64::MAX / 4);
        self.grace.store(grace, Ordering::Relaxed);
        let (connections, requests) = (clients.connections > 0, clients.rate > 0);
        let handshakes = clients.handshakes > 0;
        if connections || requests || handshakes {
            self.clients.get_or_init(|| self.shared.as_ref().map_or_else(Clients::new, Clients::shared));
        }
        self.client_limits.store(Arc::new(clients.clone()));
        self.limits_connections.store(connections, Ordering::Release);
        self.limits_requests.store(requests, Ordering::Release);
        self.limits_handshakes.store(handshakes, Ordering::Release);
        self.bandwidth.set(bandwidth);
    }

    /// The least a peer has to send of a request body.
    pub fn inward(&self) -> Minimum {
        self.minimum(&self.inward)
    }

    /// The least a peer has to take of a response.
    pub fn outward(&self) -> Minimum {
        self.minimum(&self.outward)
    }

    fn minimum(&self, rate: &AtomicU64) -> Minimum {
        Minimum { rate: rate.load(Ordering::Relaxed), grace: self.grace.load(Ordering::Relaxed) }
    }

    /// The most connections, of those that there may be by the limit of open files.
    pub fn max_connections(&self, possible: usize) -> usize {
        match self.connections.load(Ordering::Relaxed) {
            0 => possible,
            most => most.min(possible),
        }
    }

    /// A peer has connected: whether its connection is counted and has to be [closed](Self::close); `None` when it is
    /// one too many.
    pub fn open(&self, peer: Peer, log: &Log) -> Option<bool> {
        if !self.limits_connections.load(Ordering::Acquire) {
            return Some(false);
        }
        let (most, client) = {
            let limits = self.client_limits.load();
            (limits.connections, self.client(&limits, peer))
        };
        // It may have been switched off in this moment.
        let client = client.filter(|_| most > 0);
        let (Some(clients), Some(client)) = (self.clients.get(), client) else {
            return Some(false);
        };
        let counted = clients.open(CountedUse::Connection, client, most);
        if counted.is_none() {
            self.applied.note(Rule::ClientConnections, peer, log);
        }
        counted
    }

    /// A connection that was counted has ended.
    pub fn close(&self, peer: Peer) {
        if let (Some(clients), Some(address)) = (self.clients.get(), peer.ip()) {
            clients.close(CountedUse::Connection, Client::of(address, self.ipv6_prefix));
        }
    }

    /// A peer makes a request. One load where there is no limit.
    ///
    /// # Errors
    /// It may not; the value are the seconds after which it may, at least 1.
    pub fn request(&self, peer: Peer, now: u64, log: &Log) -> Result<(), u64> {
        if !self.limits_requests.load(Ordering::Acquire) {
            return Ok(());
        }
        let limit = |limits: &ClientLimits| (limits.rate > 0).then(|| limits.requests());
        self.ask(RateBucket::Request, limit, peer, now).map_err(|then| {
            self.applied.note(Rule::ClientRate, peer, log);
            then.saturating_sub(now).div_ceil(1_000_000_000).max(1)
        })
    }

    /// A peer begins a TLS handshake: whether it may. One load where there is no limit.
    pub fn handshake(&self, peer: Peer, now: u64, log: &Log) -> bool {
        if !self.limits_handshakes.load(Ordering::Acquire) {
            return true;
        }
        let limit = |limits: &ClientLimits| (limits.handshakes > 0).then(|| limits.handshake_rate());
        let may = self.ask(RateBucket::Handshake, limit, peer, now).is_ok();
        if !may {
            self.applied.note(Rule::HandshakeRate, peer, log);
        }
        may
    }

    /// Asks a bucket of the peer's client for one use.
    ///
    /// # Errors
    /// The bucket is empty until this time.
    fn ask(
        &self,
        what: RateBucket,
        limit: impl FnOnce(&ClientLimits) -> Option<Rate>,
        peer: Peer,
        now: u64,
    ) -> Result<(), u64> {
        let limits = self.client_limits.load();
        let asked = self.clients.get().zip(self.client(&limits, peer)).zip(limit(&limits));
        asked.map_or(Ok(()), |((clients, client), rate)| clients.ask(what, client, rate, now))
    }

    /// A password of the client with this [number](Self::number) is to be checked, of which all processes of the server check so many at
    /// once: `Some(true)` when it is counted and has to be [ended](Self::end_check); `None` when it is one too many. Not counted where
    /// there is only one process, which knows by itself.
    pub fn begin_check(&self, client: u128, most: u32) -> Option<bool> {
        let Some(shared) = &self.shared else { return Some(false) };
        let clients = self.clients.get_or_init(|| Clients::shared(shared));
        clients.open(CountedUse::Check, Client::numbered(client), most)
    }

    /// A check that was counted has ended.
    pub fn end_check(&self, client: u128) {
        if let Some(clients) = self.clients.get() {
            clients.close(CountedUse::Check, Client::numbered(client));
        }
    }

    /// The number that all addresses of a client share; 0 for those without an address, none for one without limits.
    pub fn number(&self, peer: Peer) -> Option<u128> {
        match self.client(&self.client_limits.load(), peer) {
            Some(client) => Some(client.number()),
            None => peer.ip().is_none().then_some(0),
        }
    }

    /// The client that is counted; none for an exempt one, and none without an address.
    fn client(&self, limits: &ClientLimits, peer: Peer) -> Option<Client> {
        let address = peer.ip()?;
        (!limits.exempts(address)).then(|| Client::of(address, self.ipv6_prefix))
    }
}
