//! A running server: start, drain, stop.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use arc_swap::ArcSwapOption;
use maitred_compress::Compression;
use maitred_dispatch::{Scheduler, run_backup_poller};
use maitred_exchange::Routes;
use maitred_filters::Filters;
use maitred_h1::Limits;
use maitred_io::listener::{Address, BindError, Listener};
use maitred_io::machine;
use maitred_limits::Guard;
use maitred_log::Log;
use maitred_runtime::{Handler, ThreadHost};
use maitred_spool as spool;
use maitred_spool::{BodyMemory, Medium, Open, Spooler};

use crate::connection::{Connection, Group};
use crate::engine_calls::EngineCalls;
use crate::engine_client::{Driver, EngineClient};
use crate::figures;
use crate::group::groups::{self, Groups};
use crate::group::thread_registry::{Role, own_name};
use crate::inspect::{Connections, Routing, ServerFigures, Threads};
use crate::listener::{BoundListeners, ListenerState, Listening};
use crate::live_settings::LiveSettings;
use crate::otlp::{OtlpState, Sender};
use crate::pool_map::{PoolMap, UnknownPool};
use crate::pools::{Pools, parts, polling};
use crate::settings::{PoolSettings, Settings, Strategy};
#[cfg(doc)]
use crate::sharing::Accept;
use crate::thread_hosts::{HostMismatch, ThreadHosts};
use maitred_exchange::hosts::{Hosts, SameName};
use maitred_exchange::proxies::Proxies;
use maitred_exchange::site::{
    Contexts, Counters, Figures, Handshakes, Http2Counters, Measures, Names, Recent, Site, WebSocketCounters,
};
use maitred_exchange::spill::Spilling;
use maitred_exchange::traced::Traced;

/// The pool of handlers that do not run on the event loop, where there is one.
pub const BESIDE_LOOP: &str = "threads";

/// Name of the threads that poll while no other thread can; the system keeps 15 bytes.
const BACKUP_POLLER: &str = "maitred-poller";

/// A running server. Dropping the server ends it at once.
pub struct Server {
    /// The groups, at least one.
    groups: Vec<Arc<Group>>,
    /// The way to the collector of OpenTelemetry, if there is one.
    otlp: Option<Arc<Sender>>,
    /// The client for calls of the engine itself, and their driver.
    client: EngineClient,
    calls: Arc<EngineCalls>,
    /// Strategy of the default pool.
    strategy: Strategy,
    /// The backup pollers, one for each group.
    backup_pollers: Vec<std::thread::JoinHandle<()>>,
}

/// Reason for which a server could not start.
#[derive(Debug)]
pub enum StartError {
    /// Listening failed on this address.
    Listen(Address, BindError),
    /// A rule leads to a pool that does not exist.
    Pool(UnknownPool),
    /// Two virtual hosts have the same name.
    Host(SameName),
    /// Hosts of threads, pools and applications do not fit together.
    Threads(HostMismatch),
    /// The system refused a thread.
    Thread(io::Error),
    /// The system refused something else.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Pool(error) => write!(f, "cannot start: {error}"),
            Self::Host(error) => write!(f, "cannot start: {error}"),
            Self::Threads(error) => write!(f, "cannot start: {error}"),
            Self::Thread(error) => write!(
                f,
                "cannot start: no thread can be made: {error}; see what limits threads and memory (ulimit -u, TasksMax, \
                 control group)"
            ),
            Self::System(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Server {
    /// Listens, unless the sockets are [bound already](Settings::bound), and serves until [`stop`](Self::stop). Also
    /// raises the process's soft limit of open files to its hard limit.
    ///
    /// # Errors
    /// Listening on an address failed, or the system is out of descriptors or threads.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        Self::start_after(settings, |_| ())
    }

    /// The same; `prepared` is called before a thread of the server runs, and so before the first request.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn start_after(settings: Settings, prepared: impl FnOnce(&Self)) -> Result<Self, StartError> {
        let open: Open = {
            let folder = settings.spool.clone();
            Box::new(move || spool::open(&folder))
        };
        let is_served = |routes: &Routes| routes.has_application();
        if is_served(&settings.routes) || settings.hosts.iter().any(|host| is_served(&host.routes)) {
            warn_of_spool(&settings);
        }
        Self::start_with(settings, open, prepared)
    }

    /// Starts with another way to make the files of large bodies.
    pub(crate) fn start_with(
        settings: Settings,
        open: Open,
        prepared: impl FnOnce(&Self),
    ) -> Result<Self, StartError> {
        machine::raise_descriptor_limit();
        // An error drops the server, and so ends it.
        let mut server = Self::prepare(settings, open)?;
        prepared(&server);
        for group in &server.groups {
            let own = Arc::clone(group);
            let poller = std::thread::Builder::new().name(BACKUP_POLLER.to_owned());
            let body = move || {
                own.groups.thread_registry.join(BACKUP_POLLER.to_owned(), Role::BackupPoller);
                run_backup_poller(&own);
            };
            server.backup_pollers.push(poller.spawn(body).map_err(StartError::Thread)?);
        }
        for group in &server.groups {
            group.scheduler.sort_by(crate::group::Job::route, crate::group::Job::connection);
            group.scheduler.start(group).map_err(StartError::Thread)?;
        }
        Ok(server)
    }

    /// Makes a server without its threads.
    pub(crate) fn prepare(mut settings: Settings, open: Open) -> Result<Self, StartError> {
        let bound = match settings.bound.take() {
            Some(bound) => bound,
            None => BoundListeners::bind(&settings.listeners)
                .map_err(|(address, error)| StartError::Listen(address, error))?,
        };
        if bound.addresses().count() != settings.listeners.len() {
            return Err(io::Error::other("there are not as many sockets as listeners").into());
        }
        let hosts = Hosts::new(settings.routes, settings.pages, settings.hosts).map_err(StartError::Host)?;
        let polling_host = settings.threads.get(settings.pool.thread_host).cloned();
        let looped = polling_host.filter(|host| host.event_loop().is_some());
        let beside_loop = match &looped {
            Some(host) if hosts.applications().any(|each| runs_beside(&*each.handler, &**host)) => {
                Some(beside_loop(&settings.pool, &mut settings.pools))
            }
            _ => None,
        };
        let of_pools = [&settings.pool].into_iter().chain(&settings.pools);
        let thread_hosts = ThreadHosts::new(settings.threads, of_pools).map_err(StartError::Threads)?;
        thread_hosts.check(hosts.applications()).map_err(StartError::Threads)?;
        let names = Names {
            own: [&settings.health_path, &settings.metrics_path],
            listeners: bound.addresses().map(ToString::to_string).collect(),
            pools: [&settings.pool]
                .into_iter()
                .chain(&settings.pools)
                .map(|pool| pool.name.clone())
                .collect(),
        };
        settings.log.set_names(maitred_log::Names {
            pools: names.pools.clone(),
            listeners: names.listeners.clone(),
            hosts: hosts.all().iter().map(|host| host.name().to_owned()).collect(),
        });
        let arena = figures::arena(settings.figures);
        let figures = Figures::new(&hosts, names, &arena);
        figures.set_on(settings.insight.statistics);
        let of_pools = [&settings.pool].into_iter().chain(&settings.pools);
        let mut guard =
            Guard::new(&settings.limits, of_pools.map(|pool| pool.limits.bandwidth), settings.clients);
        guard.count_in(&arena);
        let spooler =
            hosts.has_application().then(|| Spooler::start(open, settings.spool_threads)).transpose();
        let spooler = spooler.map_err(StartError::Thread)?;
        let filters = Filters::new(settings.filters, settings.native_filters, &settings.log)?;
        let compression = settings.compression.map(|settings| {
            let mut compression = Compression::new(settings);
            compression.count_in(&arena);
            compression
        });
        let site = Arc::new(Site {
            hosts,
            beside_loop,
            loop_requests: settings.loop_requests,
            filters,
            health_path: settings.health_path,
            metrics_path: settings.metrics_path,
            metrics_handler: settings.metrics_handler,
            language: settings.language,
            limits: Limits {
                max_head: settings.max_head,
                max_field_line: settings.max_field,
                ..Limits::default()
            },
            proxies: Proxies::new(settings.forwarding),
            guard,
            timeouts: settings.timeouts,
            tls: ArcSwapOption::new(settings.tls),
            challenges: settings.challenges,
            http2: settings.http2,
            handshakes: Handshakes::new(&arena),
            http2_counters: Http2Counters::new(&arena),
            contexts: Contexts::new(settings.websockets.map_or(0, |websockets| websockets.contexts)),
            websockets: settings.websockets,
            websocket_counters: WebSocketCounters::new(&arena),
            polling: settings.several.then(Once::new),
            max_body: settings.max_body,
            body_memory: settings.body_memory,
            body_budget: BodyMemory::new(settings.body_budget),
            spooler,
            compression,
            spilling: Spilling::new(settings.writer),
            submissions: settings.submissions,
            log: settings.log,
            own_name,
            counters: Counters::new(&arena),
            counted: arena.memory(),
            measures: Measures::new(settings.insight),
            figures,
            traced: Traced::default(),
            recent: Recent::default(),
            tracing: settings.tracing,
            metrics: OnceLock::new(),
        });
        site.figures.calls.write_to(&site.log);
        site.trace_late_calls();
        let mut first = settings.pool;
        first.limits = polling(&first.limits, first.strategy, &site);
        let names: Vec<&str> = settings.pools.iter().map(|pool| &*pool.name).collect();
        let pool_map = Arc::new(PoolMap::new(&names, &settings.rules).map_err(StartError::Pool)?);
        let host = thread_hosts.of(0);
        let locks = thread_hosts.locks();
        let count = count_groups(settings.poll_groups, &first, &**host, &site.log);
        let processors = machine::processors().div_ceil(count);
        let mut schedulers = if let Some(event_loop) = host.event_loop() {
            vec![Scheduler::for_loop(event_loop, &first, &settings.pools, &locks)?]
        } else if count == 1 {
            vec![Scheduler::new(&first, &settings.pools, processors, &locks)?]
        } else {
            let part = |limits| PoolSettings { limits, ..first.clone() };
            let firsts: Vec<_> = parts(&first.limits, count).map(part).collect();
            Scheduler::linked(&firsts, &settings.pools, processors, &locks)?
        };
        for (number, scheduler) in schedulers.iter_mut().enumerate() {
            scheduler.count_in(&arena, number == 0);
        }
        let listeners = bound.listen(&settings.listeners, &settings.accept);
        for listening in &listeners {
            listening.warn(&site.log);
            listening.set_receipts(settings.insight.receipt);
        }
        let shared = Arc::new(Groups::new(count, listeners, settings.accept, thread_hosts));
        let mut groups = Vec::with_capacity(count);
        for (number, scheduler) in schedulers.into_iter().enumerate() {
            let place = (number, &shared);
            groups.push(Arc::new(Group::new(Arc::clone(&site), place, scheduler, Arc::clone(&pool_map))?));
        }
        shared.introduce(&groups);
        let own = Arc::downgrade(&groups[0]);
        let text =
            move |format| own.upgrade().map_or_else(String::new, |group: Arc<Group>| group.metrics(format));
        // The cell is still empty.
        let _ = site.metrics.set(Box::new(text));
        let client = settings.client;
        let calls = Arc::new(EngineCalls::by(&groups));
        let driver = Arc::clone(&calls) as Arc<dyn Driver>;
        client.serve(Arc::clone(&driver), Arc::clone(&site.figures.calls) as Arc<_>);
        let otlp = Sender::begin(settings.otlp, &groups, &driver);
        Ok(Self {
            groups,
            client,
            calls,
            otlp,
            strategy: first.strategy,
            backup_pollers: Vec::with_capacity(count),
        })
    }

    /// The group that accepts; its scheduler has the parts that all groups share.
    pub(crate) fn first(&self) -> &Arc<Group> {
        &self.groups[0]
    }

    pub(crate) fn shared(&self) -> &Groups<Connection> {
        &self.first().groups
    }

    /// The addresses of the listeners, in the order given, with the ports that the system chose.
    pub fn addresses(&self) -> Vec<Address> {
        self.shared().listeners.iter().map(|listening| listening.address().clone()).collect()
    }

    /// The listeners in the order given.
    pub fn listeners(&self) -> impl Iterator<Item = ListenerState> {
        self.shared().listeners.iter().map(Listening::state)
    }

    /// The connections and their requests.
    pub fn connections(&self) -> Connections<'_> {
        Connections(&self.groups)
    }

    /// The threads.
    pub fn threads(&self) -> Threads<'_> {
        Threads(self.first())
    }

    /// The pools.
    pub fn pools(&self) -> Pools<'_> {
        Pools { groups: &self.groups, strategy: self.strategy }
    }

    /// The hosts, routes and pools to which requests are led.
    pub fn routing(&self) -> Routing<'_> {
        Routing(self.first())
    }

    /// The counts and times since the start.
    pub fn figures(&self) -> ServerFigures<'_> {
        ServerFigures(&self.groups)
    }

    /// The settings that hold at once when they are changed.
    pub fn settings(&self) -> LiveSettings<'_> {
        LiveSettings(self.first())
    }

    /// The client for calls of the engine itself to other servers.
    pub fn client(&self) -> &EngineClient {
        &self.client
    }

    /// The logs.
    pub fn log(&self) -> &Arc<Log> {
        &self.first().site.log
    }

    /// Whether the health check answers that requests may come.
    pub fn is_ready(&self) -> bool {
        self.shared().is_ready()
    }

    /// Makes the [health path](Settings::health_path) say that this server will end: 503, on a connection that
    /// closes. All else goes on as before, so that a load balancer can lead new requests elsewhere before
    /// [`drain`](Self::drain).
    pub fn set_unready(&self) {
        self.shared().set_unready();
    }

    /// Begins the drain and returns at once: no connection is accepted any more, requests that are being received or
    /// run are answered, each response is the last of its connection. Connections that wait to be accepted are served
    /// first, unless other processes [accept](Accept) at the same addresses, or a successor will.
    pub fn drain(&self) {
        if self.shared().begin_drain() {
            self.first().close_listeners();
            self.first().leave_line();
            // After the above, so that no connection is added any more.
            self.groups.iter().for_each(|group| group.tell_idle());
        }
    }

    /// Whether the graceful end has begun.
    pub fn is_draining(&self) -> bool {
        self.shared().is_draining()
    }

    /// Begins the drain of the last of several processes: no other process will accept, so waiting connections are
    /// served first. Of several processes that end together all may do so: each takes some connections.
    pub fn drain_last(&self) {
        self.shared().take_rest();
        self.drain();
    }

    /// Takes and serves the connections that wait at a socket of a worker that is gone, of the listener with this
    /// number, and closes the socket here. Returns the number of connections.
    ///
    /// # Errors
    /// The socket has another address or kind, and is closed here. Or there is no room for more connections: returns
    /// the socket for another attempt.
    pub fn empty(&self, listener: usize, socket: OwnedFd) -> Result<usize, (Option<OwnedFd>, io::Error)> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "there is no such listener");
        let listening = self.shared().listeners.get(listener).ok_or_else(|| (None, none()))?;
        let surplus = Listener::adopt(socket, listening.address(), &listening.options())
            .map_err(|error| (None, error.into()))?;
        let slot = u32::try_from(listener).unwrap_or(u32::MAX);
        listening.empty(self.first(), &surplus, slot).map_err(|error| (Some(surplus.into()), error))
    }

    /// Ends streams of events (`text/event-stream`), whose handlers [`drain`](Self::drain) has asked to end; the
    /// handlers cannot send any more.
    pub fn end_events(&self) {
        self.shared().end_events();
        self.groups.iter().for_each(|group| group.tell_idle());
    }

    /// The way to the collector of OpenTelemetry, by signal; empty without one.
    pub fn otlp(&self) -> Vec<OtlpState> {
        self.otlp.as_ref().map(|otlp| otlp.states()).unwrap_or_default()
    }

    /// Has the items that wait for the collector sent within `limit`, and takes no more of them.
    pub fn finish_otlp(&self, limit: Duration) {
        if let Some(otlp) = &self.otlp {
            otlp.finish(limit);
        }
    }

    /// Waits until these items have had their end, at most for `limit`; returns whether they have.
    pub fn wait_otlp_finished(&self, limit: Duration) -> bool {
        self.otlp.as_ref().is_none_or(|otlp| otlp.wait_finished(limit))
    }

    /// Whether all remaining connections only wait for handlers whose peers are gone, in a server that drains.
    pub fn has_only_abandoned(&self) -> bool {
        self.shared().has_only_abandoned()
    }

    /// Waits until the last connection has ended, at most for `limit`. Returns whether the last one has ended.
    pub fn wait_drained(&self, limit: Duration) -> bool {
        self.shared().wait_drained(limit)
    }

    /// Ends at once: connections are cut, threads end as soon as they leave application code.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for listening in &self.shared().listeners {
            listening.shut(&self.first().scheduler.poller, self.log());
        }
        self.first().leave_line();
        self.groups.iter().for_each(|group| group.scheduler.announce_stop());
        self.groups.iter().for_each(|group| group.scheduler.stop());
        for poller in self.backup_pollers.drain(..) {
            // The thread ends by itself: it never waits for application code. A panic was logged.
            let _ = poller.join();
        }
        self.calls.end();
        let driver = Arc::clone(&self.calls) as Arc<dyn Driver>;
        self.client.leave(&driver);
        if let Some(otlp) = &self.otlp {
            otlp.close(&driver);
        }
        for group in &self.groups {
            group.cut();
        }
        if let Some(spooler) = &self.first().site.spooler {
            spooler.end();
        }
        self.first().site.filters.end();
    }
}

/// The number of poll groups: one where a single thread at a time reads or runs requests, since a second descriptor
/// would gain nothing.
fn count_groups(wanted: usize, first: &PoolSettings, host: &dyn ThreadHost, log: &Log) -> usize {
    let single = host.is_exclusive() || host.event_loop().is_some() || first.strategy != Strategy::Adaptive;
    let max_threads = if single { 1 } else { first.limits.max_threads };
    let count = groups::count(wanted, machine::processors(), max_threads);
    if wanted > count {
        let why = if single {
            "one thread at a time reads or runs requests"
        } else {
            "there is one for each thread at most"
        };
        log.warn(format_args!("poll groups: {count} instead of {wanted}: {why}"));
    }
    count
}

/// Whether this handler runs on threads beside the event loop of this host.
fn runs_beside(handler: &dyn Handler, looped: &dyn ThreadHost) -> bool {
    let language = handler.language();
    !handler.runs_on_event_loop() && (language.is_empty() || language == looped.language())
}

/// The number of the pool of handlers that do not run on the event loop: the pool called [`BESIDE_LOOP`], otherwise a
/// new one with the limits of the default pool, which has no threads for these handlers.
fn beside_loop(first: &PoolSettings, others: &mut Vec<PoolSettings>) -> usize {
    if let Some(position) = others.iter().position(|pool| pool.name == BESIDE_LOOP) {
        return position + 1;
    }
    others.push(PoolSettings { name: BESIDE_LOOP.to_owned(), ..first.clone() });
    others.len()
}

/// Warns at the start of large bodies in memory or of a missing place for them, instead of at the first upload.
fn warn_of_spool(settings: &Settings) {
    let Settings { spool: folder, log, .. } = settings;
    let shown = folder.display();
    match spool::probe(folder) {
        Ok(Medium::Disk) => {}
        Ok(Medium::Memory) => log.warn(format_args!(
            "the spool folder {shown} is in memory (tmpfs): so is every request body that goes there; \
             name a folder on a disk with --spool"
        )),
        Err(error) => log.warn(format_args!(
            "no file can be made in the spool folder {shown}: {error}; request bodies that memory does not keep \
             (--body-memory, --body-budget) will be refused with 503; name another folder with --spool"
        )),
    }
}
