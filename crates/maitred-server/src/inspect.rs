//! Views of a running server for the control: connections, requests, threads, pools.
//!
//! Promises: each connection is copied under its own lock, and no two locks are held at once. So a request may be
//! missing in two lists, or end, while the others are read.

use std::sync::Arc;

use maitred_filters::Filters;
use maitred_http::RequestHead;
use maitred_io::listener::{ActiveOptions, Address, SocketOptions};
use maitred_io::machine;
use maitred_limits::Guard;
use maitred_match::Shape;
use maitred_runtime::{ThreadHost, ThreadStack};
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

/// The present state of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Address of the listener.
    pub address: Address,
    /// Requested socket options.
    pub options: SocketOptions,
    /// Socket options in the kernel; none once the listener is closed.
    pub active: Option<ActiveOptions>,
    /// Connections speak TLS.
    pub tls: bool,
    /// Connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Port of https to which requests are redirected.
    pub redirect: Option<u16>,
    /// Requests are received completely before their handlers run; for an event loop only short ones.
    pub read_ahead: bool,
    /// The engine queues and sends on the bytes that peers do not take at once.
    pub writer: bool,
    /// The listener still accepts connections.
    pub accepts: bool,
}

/// A request that waits for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Place of the request.
    pub place: Place,
    /// Number of the pool.
    pub pool: usize,
    /// Begin of the wait, in monotonic nanoseconds.
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

    /// Counts of HTTP/2 connections above zero, by name of the figure.
    pub fn http2(&self) -> Vec<(String, u64)> {
        self.first().site.http2_counters.totals()
    }

    /// Number of open connections with HTTP/2.
    pub fn http2_open(&self) -> u64 {
        self.first().site.http2_counters.open()
    }

    /// Number of open WebSockets.
    pub fn websockets_open(&self) -> u64 {
        self.first().site.websocket_counters.open()
    }

    /// Counts of WebSockets above zero, by name of the figure.
    pub fn websockets(&self) -> Vec<(String, u64)> {
        self.first().site.websocket_counters.totals()
    }

    /// Counts of TLS handshakes above zero, by name of the figure.
    pub fn tls_handshakes(&self) -> Vec<(String, u64)> {
        self.first().site.handshakes.totals()
    }

    /// Whether the health check answers that requests may come.
    pub fn is_ready(&self) -> bool {
        self.shared().is_ready()
    }

    /// Whether the graceful end has begun.
    pub fn is_draining(&self) -> bool {
        self.shared().is_draining()
    }

    /// Number of poll groups.
    pub fn poll_groups(&self) -> usize {
        self.groups().len()
    }

    /// Number of requests run by a thread of another poll group.
    pub fn migrations(&self) -> u64 {
        self.groups().iter().map(|group| group.scheduler.migrations()).sum()
    }

    /// The names of the pools by their numbers.
    pub fn pool_names(&self) -> Vec<&str> {
        self.first().scheduler.pools().map(|pool| &*pool.name).collect()
    }

    /// The figures of the pools by their numbers.
    pub fn pool_figures(&self) -> Vec<PoolFigures> {
        self.first().pool_figures()
    }

    /// The limits of the pools by their numbers: of the default pool the sums over all poll groups.
    pub fn pool_limits(&self) -> Vec<PoolLimits> {
        let mut limits = self.first().scheduler.pools().map(|pool| pool.threads.limits()).collect::<Vec<_>>();
        for group in &self.groups()[1..] {
            let part = group.scheduler.pool_at(0).threads.limits();
            let whole = &mut limits[0];
            whole.min_threads += part.min_threads;
            whole.max_threads += part.max_threads;
            whole.queue += part.queue;
            whole.max_lost += part.max_lost;
        }
        limits
    }

    /// Numbers of request bodies in files, by number of the pool.
    pub fn spooled(&self) -> Vec<u64> {
        self.first().site.figures.spooled().collect()
    }

    /// Map from requests to pools.
    pub fn pool_map(&self) -> Arc<PoolMap> {
        self.first().pool_map()
    }

    /// The number of the pool that runs a request for this application, where the rules lead to `pool`: the event
    /// loop runs requests for its own applications, whatever the rules say, and no others.
    pub fn pool_for(&self, application: &Application, pool: usize) -> usize {
        self.first().pool_for(&*application.handler, pool)
    }

    /// The virtual hosts with their routes.
    pub fn hosts(&self) -> &Hosts {
        &self.first().site.hosts
    }

    /// The name in statistics of the route of this shape, which leads to an application.
    pub fn route_name(&self, shape: Shape<'_>) -> String {
        self.first().site.figures.name_of(shape)
    }

    /// The route in statistics of an answer of the engine at a path of the host with this number.
    pub fn engine_route(&self, path: &[u8], host: u16) -> Option<String> {
        let site = &self.first().site;
        site.figures.route_of_engine(path, host, &site.hosts).map(|route| route.name.clone())
    }

    /// The engine's own paths, with the options that name them.
    pub fn engine_paths(&self) -> [(&'static str, Option<&str>); 2] {
        let site = &self.first().site;
        [("health-path", site.health_path.as_deref()), ("metrics-path", site.metrics_path.as_deref())]
    }

    /// The option that names the path of this request, if the engine itself answers it.
    pub fn engine_answers(&self, head: &RequestHead) -> Option<&'static str> {
        self.engine_paths().into_iter().find(|(_, path)| asks_for(*path, head)).map(|(option, _)| option)
    }

    /// The filters that requests pass before the routes.
    pub fn filter_chain(&self) -> &Filters {
        &self.first().site.filters
    }

    /// Memory of request bodies beyond the memory for one.
    pub fn body_memory(&self) -> BodyMemoryFigures {
        self.first().site.body_budget.figures()
    }

    /// Bytes of bodies that wait to be written to files or are being written, and bytes written.
    pub fn spool_progress(&self) -> (u64, u64) {
        self.first().site.spooler.as_ref().map(Spooler::progress).unwrap_or_default()
    }

    /// Number of threads that can run the application's code at once: one where the language has one lock for all, or
    /// one thread.
    pub fn parallel_threads(&self) -> usize {
        let has_loop = || self.members().iter().any(|member| member.role == Role::EventLoop);
        let hosts = &self.first().site.thread_hosts;
        let of_host = |host: &Arc<dyn ThreadHost>| match host.is_exclusive() || has_loop() {
            true => 1,
            false => machine::processors(),
        };
        hosts.all().iter().map(of_host).sum::<usize>().min(machine::processors())
    }

    /// Whether a thread that sleeps in the system call of this number, with this first argument, waits for the interpreter of a
    /// language that shows its lock.
    pub fn is_interpreter_waited_for(&self, call: i64, argument: u64) -> bool {
        self.first().site.thread_hosts.is_interpreter_waited_for(call, argument)
    }

    /// Whether an event loop runs the pool with this number.
    pub fn is_loop(&self, pool: usize) -> bool {
        pool == 0 && self.members().iter().any(|member| member.role == Role::EventLoop)
    }

    /// The limits on peers, and counts of their application.
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

    /// The figures as text in this format, without the statistics of exchanges and without an end, for merging the
    /// figures of several processes ([`merge_pages`](crate::figures::merge_pages)).
    pub fn own_metrics_in(&self, format: Format) -> String {
        self.first().own_metrics(format)
    }

    /// Traces of the last requests, the latest first: how each got its thread. Empty unless the dispatch trace is on.
    pub fn dispatched(&self) -> Vec<Dispatched> {
        self.first().site.traced.all()
    }

    /// The slowest requests of the last two minutes, and the last failed ones.
    pub fn recent(&self) -> RecentRequests {
        self.first().site.recent.all()
    }

    /// The connection at a place, if it still exists.
    pub fn connection(&self, place: Place) -> Option<ConnectionSnapshot> {
        let token = Token::from_u64(place.token);
        let group = self.groups().get(place.group)?;
        let slot = group.slots.find(token.slot)?;
        let resident = slot.lock();
        let own = resident.as_ref().filter(|_| slot.generation() == token.generation);
        own.map(|connection| connection.show(group))
    }

    /// The connection of an event of a thread ([`Member::event`]), if it still exists.
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

    /// Ends the exchange at this place as if the peer had gone. Where a connection has one exchange at a time, the
    /// next turn closes the connection.
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

    /// Stacks of threads of the applications' languages: of one thread, or of all. `serving` lists the system numbers
    /// of the threads that run requests. None if no language has stacks to show.
    pub fn stacks(&self, wanted: Option<i32>, serving: &[i32]) -> Option<Vec<ThreadStack>> {
        let (members, hosts) = (self.members(), &self.first().site.thread_hosts);
        let host_of = |tid: i32| {
            let member = members.iter().find(|member| member.tid == tid)?;
            Some(hosts.number_of(member.pool.unwrap_or_default()))
        };
        let mut found = None;
        for (number, host) in hosts.all().iter().enumerate() {
            // Any language may know a thread that an application has made.
            if wanted.and_then(host_of).is_some_and(|own| own != number) {
                continue;
            }
            let own: Vec<i32> =
                serving.iter().copied().filter(|tid| host_of(*tid).is_none_or(|own| own == number)).collect();
            if let Some(stacks) = host.stacks(wanted, &own) {
                found.get_or_insert_with(Vec::new).extend(stacks);
            }
        }
        found
    }
}
