//! What a running server shows of itself: connections, requests, threads, pools. The control asks here.
//!
//! Promises: each connection is looked at under its own lock and copied, and no two locks are held at once. So a
//! request may be missing in two lists, or end, while the others are looked at.

use std::sync::Arc;

use maitred_filters::Filters;
use maitred_http::RequestHead;
use maitred_io::listener::{ActiveOptions, Address, SocketOptions};
use maitred_io::machine;
use maitred_limits::Guard;
use maitred_match::Shape;
use maitred_runtime::{InterpreterLock, ThreadStack};
use maitred_stats::LockSnapshot;
use maitred_stats::exposition::Format;
use maitred_stats::pool::PoolFigures;

use crate::connection::Key;
use crate::destination::asks_for;
use crate::group::slots::Token;
use crate::pool_map::PoolMap;
use crate::server::Server;
use maitred_spool::{BodyMemoryFigures, Spooler};

use crate::hosts::Hosts;
use crate::routes::Application;
use crate::settings::PoolLimits;
use crate::{Place, roles};

pub use crate::connection::snapshot::{ConnectionSnapshot, Delivery, State};
pub use crate::connection::stream::RequestSummary;
pub use crate::connection::writer::Marks;
pub use crate::group::thread_registry::{Inside, Member, Role, Times};
pub use crate::roles::{ProcessThread, ThreadList};
pub use crate::site::{RecentRequest, RecentRequests};
pub use crate::traced::Dispatched;

/// A listener as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Where it listens.
    pub address: Address,
    /// The options of its socket that were asked for.
    pub options: SocketOptions,
    /// What the kernel has of them; none once it is closed.
    pub active: Option<ActiveOptions>,
    /// Whether connections speak TLS.
    pub tls: bool,
    /// Whether connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// The port of https that its requests are sent to.
    pub redirect: Option<u16>,
    /// Whether its requests are received completely before their handlers run; of an event loop, short ones.
    pub read_ahead: bool,
    /// Whether the engine sends on what its peers do not take at once.
    pub writer: bool,
    /// Whether it still accepts connections.
    pub accepts: bool,
}

/// A request that waits for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Where it is.
    pub place: Place,
    /// The number of its pool.
    pub pool: usize,
    /// Since when, in monotonic nanoseconds.
    pub since: u64,
}

impl Server {
    /// The listeners in the order given.
    pub fn listeners(&self) -> impl Iterator<Item = ListenerState> {
        self.shared().listeners.iter().map(|listening| ListenerState {
            address: listening.address().clone(),
            options: listening.options(),
            active: listening.active(),
            tls: listening.speaks_tls(),
            proxy_protocol: listening.expects_proxy_header(),
            redirect: listening.redirect(),
            read_ahead: listening.read_ahead() != Some(false),
            writer: listening.has_writer(),
            accepts: !listening.is_closed(),
        })
    }

    /// What connections of HTTP/2 have done: names of figures with counts, those that are not zero.
    pub fn http2(&self) -> Vec<(String, u64)> {
        self.first().site.http2_counters.totals()
    }

    /// Connections that speak HTTP/2 now.
    pub fn http2_open(&self) -> u64 {
        self.first().site.http2_counters.open()
    }

    /// WebSockets that are open.
    pub fn websockets_open(&self) -> u64 {
        self.first().site.websocket_counters.open()
    }

    /// What WebSockets have come to: names of figures with counts, those that are not zero.
    pub fn websockets(&self) -> Vec<(String, u64)> {
        self.first().site.websocket_counters.totals()
    }

    /// What TLS handshakes have come to: names of figures with counts, those that are not zero.
    pub fn tls_handshakes(&self) -> Vec<(String, u64)> {
        self.first().site.handshakes.totals()
    }

    /// Whether more requests may come, as the health path says.
    pub fn is_ready(&self) -> bool {
        self.shared().is_ready()
    }

    /// Whether the graceful end has begun.
    pub fn is_draining(&self) -> bool {
        self.shared().is_draining()
    }

    /// How many poll groups there are.
    pub fn poll_groups(&self) -> usize {
        self.groups().len()
    }

    /// Requests run by a thread of another poll group.
    pub fn migrations(&self) -> u64 {
        self.groups().iter().map(|group| group.scheduler.migrations()).sum()
    }

    /// The names of the pools by their numbers.
    pub fn pool_names(&self) -> Vec<&str> {
        self.first().scheduler.names()
    }

    /// The figures of the pools by their numbers.
    pub fn pool_figures(&self) -> Vec<PoolFigures> {
        self.first().pool_figures()
    }

    /// The limits of the pools by their numbers: of the default pool the sums over all poll groups.
    pub fn pool_limits(&self) -> Vec<PoolLimits> {
        let mut limits = self.first().scheduler.limits();
        for group in &self.groups()[1..] {
            let part = group.scheduler.limits().swap_remove(0);
            let whole = &mut limits[0];
            whole.min_threads += part.min_threads;
            whole.max_threads += part.max_threads;
            whole.queue += part.queue;
            whole.max_lost += part.max_lost;
        }
        limits
    }

    /// Request bodies that each pool's requests had in files, by the numbers of the pools.
    pub fn spooled(&self) -> Vec<u64> {
        self.first().site.figures.spooled().collect()
    }

    /// Which pool runs which request.
    pub fn pool_map(&self) -> Arc<PoolMap> {
        self.first().pool_map()
    }

    /// The number of the pool that runs a request for this application, where the rules lead to `pool`: the event loop runs those
    /// that are made for it, whatever the rules say, and no others.
    pub fn pool_for(&self, application: &Application, pool: usize) -> usize {
        self.first().pool_for(&*application.handler, pool)
    }

    /// The virtual hosts, and what answers which path of each.
    pub fn hosts(&self) -> &Hosts {
        &self.first().site.hosts
    }

    /// What statistics call the route of this shape, which leads to an application.
    pub fn route_name(&self, shape: Shape<'_>) -> String {
        self.first().site.figures.name_of(shape)
    }

    /// The route that statistics count a path of the host with this number under if the engine answers it.
    pub fn engine_route(&self, path: &[u8], host: u16) -> Option<String> {
        let site = &self.first().site;
        site.figures.route_of_engine(path, host, &site.hosts).map(|route| route.name.clone())
    }

    /// The paths at which the engine itself answers, with the options that name them.
    pub fn engine_paths(&self) -> [(&'static str, Option<&str>); 2] {
        let site = &self.first().site;
        [("health-path", site.health_path.as_deref()), ("metrics-path", site.metrics_path.as_deref())]
    }

    /// The option that names the path if the engine itself answers this request.
    pub fn engine_answers(&self, head: &RequestHead) -> Option<&'static str> {
        self.engine_paths().into_iter().find(|(_, path)| asks_for(*path, head)).map(|(option, _)| option)
    }

    /// What requests meet before the routes.
    pub fn filter_chain(&self) -> &Filters {
        &self.first().site.filters
    }

    /// What request bodies hold in memory beyond what each may hold in any case.
    pub fn body_memory(&self) -> BodyMemoryFigures {
        self.first().site.body_budget.figures()
    }

    /// What waits to be written to files of bodies or is being written, and what was.
    pub fn spool_progress(&self) -> (u64, u64) {
        self.first().site.spooler.as_ref().map(Spooler::progress).unwrap_or_default()
    }

    /// How many threads can run the application's code at once: one where the language has one lock for all, or one thread.
    pub fn parallel_threads(&self) -> usize {
        let has_loop = || self.members().iter().any(|member| member.role == Role::EventLoop);
        if self.first().host.is_exclusive() || has_loop() { 1 } else { machine::processors() }
    }

    /// The lock of the application's interpreter, where the language has one that can be looked at.
    pub fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        self.first().host.interpreter_lock()
    }

    /// Whether the pool with this number is run by an event loop.
    pub fn is_loop(&self, pool: usize) -> bool {
        pool == 0 && self.members().iter().any(|member| member.role == Role::EventLoop)
    }

    /// What limits peers, and how often it has.
    pub fn guard(&self) -> &Guard {
        &self.first().site.guard
    }

    /// The counts of all locks.
    pub fn locks(&self) -> Vec<LockSnapshot> {
        self.first().locks()
    }

    /// All figures as text in this format.
    pub fn metrics_in(&self, format: Format) -> String {
        self.first().metrics(format)
    }

    /// The same without what statistics say of exchanges and without an end: for who merges the figures of several processes
    /// ([`merge_pages`](crate::figures::merge_pages)).
    pub fn own_metrics_in(&self, format: Format) -> String {
        self.first().own_metrics(format)
    }

    /// How the last requests got their threads, the latest first. Empty unless the dispatch trace is on.
    pub fn dispatched(&self) -> Vec<Dispatched> {
        self.first().site.traced.all()
    }

    /// The slowest requests of the last two minutes, and the last that failed.
    pub fn recent(&self) -> RecentRequests {
        self.first().site.recent.all()
    }

    /// The connection at a place, if it is still there.
    pub fn connection(&self, place: Place) -> Option<ConnectionSnapshot> {
        let token = Token::from_u64(place.token);
        let group = self.groups().get(place.group)?;
        let slot = group.slots.find(token.slot)?;
        let resident = slot.lock();
        let own = resident.as_ref().filter(|_| slot.generation() == token.generation);
        own.map(|connection| connection.show(group))
    }

    /// The connection that an event of a thread belongs to ([`Member::event`]), if it is still there.
    pub fn connection_of(&self, event: u64) -> Option<(Place, ConnectionSnapshot)> {
        let mut places = (0..self.groups().len()).map(|group| Place { group, token: event, stream: 0 });
        places.find_map(|place| Some((place, self.connection(place)?)))
    }

    /// Calls `look` with every connection and its place.
    pub fn each_connection(&self, mut look: impl FnMut(Place, ConnectionSnapshot)) {
        for group in self.groups() {
            for (number, slot) in group.connections() {
                let shown = {
                    let resident = slot.lock();
                    resident.as_ref().map(|connection| (slot.generation(), connection.show(group)))
                };
                if let Some((generation, shown)) = shown {
                    let token = Token { slot: number, generation }.to_u64();
                    look(Place { group: group.number, token, stream: 0 }, shown);
                }
            }
        }
    }

    /// Requests that wait for a thread, at most `max` of each poll group and pool.
    pub fn waiting(&self, max: usize) -> Vec<Waiting> {
        let mut found = Vec::new();
        for group in self.groups() {
            let all = group.number == self.first().number;
            group.scheduler.look_at_waiting(all, max, |pool, job, since| {
                found.push(Waiting { place: job.home, pool, since });
            });
        }
        found
    }

    /// Ends the exchange at this place as if its peer had gone. Where a connection has one exchange at a time, the next turn
    /// closes the connection.
    pub fn end(&self, place: Place) {
        let Some(group) = self.groups().get(place.group) else { return };
        let key = Key { token: Token::from_u64(place.token), stream: place.stream };
        group.with_connection(key.token, |connection| connection.end_by_operator(group, key));
    }

    /// The threads that serve, or run requests.
    pub fn members(&self) -> Vec<Arc<Member>> {
        self.shared().thread_registry.members()
    }

    /// All threads of the process. Empty where the system does not list them. Takes about 10 µs for each.
    pub fn threads(&self) -> ThreadList {
        roles::list(&self.shared().thread_registry)
    }

    /// What the threads of the application's language are doing: this one, or all. `serving` are the system's numbers of
    /// those that run requests. None if the language has no stacks to show.
    pub fn stacks(&self, wanted: Option<i32>, serving: &[i32]) -> Option<Vec<ThreadStack>> {
        self.first().host.stacks(wanted, serving)
    }
}
