//! A running server: start, drain, stop.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use maitred_h1::Limits;
use maitred_io::machine;

use crate::dispatch::{Scheduler, run_driver};
use crate::group::Group;
use crate::listener::Listening;
use crate::log::Log;
use crate::outcome::Counters;
use crate::pool_map::{PoolMap, UnknownPool};
use crate::settings::{DEFAULT_POOL, PoolLimits, PoolRule, Settings, Strategy};
use crate::site::Site;
use crate::spool::{self, Medium, Open, Spooler};

/// A running server. Dropping it ends it at once.
pub struct Server {
    group: Arc<Group>,
    /// That of the pool that every server has.
    strategy: Strategy,
    driver: Option<std::thread::JoinHandle<()>>,
}

/// Why a server could not start.
#[derive(Debug)]
pub enum StartError {
    /// Listening failed on this address.
    Listen(SocketAddr, io::Error),
    /// A rule leads to a pool that does not exist.
    Pool(UnknownPool),
    /// The system refused something else.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Pool(error) => write!(f, "cannot start: {error}"),
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

/// Counts of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open: u64,
    /// Requests answered, refused ones not counted.
    pub requests: u64,
    /// Requests refused before they reached a route.
    pub refused: u64,
    /// Answers with a status of 500 or above.
    pub errors: u64,
    /// Responses that did not reach their end.
    pub cut: u64,
    /// Requests answered with 504 in the place of their handler; among the errors, too.
    pub timeouts: u64,
    /// Body bytes of the answers.
    pub body_bytes: u64,
    /// Application threads that exist or have been asked for.
    pub threads: u64,
}

impl Server {
    /// Listens and serves until [`stop`](Self::stop). Also raises the process's soft limit of open
    /// files to its hard limit.
    ///
    /// # Errors
    /// An address cannot be listened on, or the system is out of descriptors or threads.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let open: Open = {
            let folder = settings.spool.clone();
            Box::new(move || spool::open(&folder))
        };
        if settings.routes.has_application() {
            warn_of_spool(&settings);
        }
        Self::start_with(settings, open)
    }

    /// The same with another way to make the files of large bodies.
    pub(crate) fn start_with(settings: Settings, open: Open) -> Result<Self, StartError> {
        machine::raise_descriptor_limit();
        let mut listeners = Vec::new();
        for listener in &settings.listeners {
            let bound = Listening::bind(listener.address, listener.read_ahead);
            listeners.push(bound.map_err(|error| StartError::Listen(listener.address, error))?);
        }
        let spooler = settings.routes.has_application().then(|| Spooler::start(open)).transpose()?;
        let site = Arc::new(Site {
            routes: settings.routes,
            health_path: settings.health_path,
            metrics_path: settings.metrics_path,
            limits: Limits::default(),
            timeouts: settings.timeouts,
            max_body: settings.max_body,
            body_memory: settings.body_memory,
            spooler,
            log: settings.log,
            counters: Counters::default(),
        });
        let processors = machine::processors();
        let mut first = settings.pool;
        first.limits = polling(&first.limits, first.strategy, &site);
        let names: Vec<&str> = settings.pools.iter().map(|pool| &*pool.name).collect();
        let pool_map = PoolMap::new(&names, &settings.rules).map_err(StartError::Pool)?;
        let scheduler = match settings.threads.event_loop() {
            Some(event_loop) => Scheduler::for_loop(event_loop, first.limits)?,
            None => Scheduler::new(&first, &settings.pools, processors, settings.threads.is_exclusive())?,
        };
        let group = Arc::new(Group::new(site, listeners, scheduler, settings.threads, pool_map)?);
        let own = Arc::clone(&group);
        let driver =
            std::thread::Builder::new().name("maitred-driver".to_owned()).spawn(move || run_driver(&own))?;
        // Dropped, and so ended, on an error.
        let server = Self { group, strategy: first.strategy, driver: Some(driver) };
        server.group.scheduler.start(&server.group)?;
        Ok(server)
    }

    /// The addresses listened on, in the order given, with the ports the system chose.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.group.listeners.iter().map(Listening::address).collect()
    }

    /// The logs.
    pub fn log(&self) -> &Arc<Log> {
        &self.group.site.log
    }

    /// Begins the graceful end and returns at once: no connection is accepted any more, requests
    /// that are being received or run are answered, each answer is the last of its connection.
    pub fn drain(&self) {
        self.group.drain();
    }

    /// Waits until the last connection has ended, at most for `limit`; whether it has.
    pub fn wait_drained(&self, limit: Duration) -> bool {
        self.group.wait_drained(limit)
    }

    /// The counts now.
    pub fn snapshot(&self) -> Snapshot {
        let counters = &self.group.site.counters;
        Snapshot {
            connections: counters.connections.total(),
            open: self.group.open() as u64,
            requests: counters.requests.total(),
            refused: counters.refused.total(),
            errors: counters.errors.total(),
            cut: counters.cut.total(),
            timeouts: counters.timeouts.total(),
            body_bytes: counters.body_bytes.total(),
            threads: self.group.scheduler.threads() as u64,
        }
    }

    /// Changes the limits of the pool called `name`, [`DEFAULT_POOL`](crate::DEFAULT_POOL) for the one every server has.
    /// They hold at once: threads that are too many end after their request, missing ones are made, also for requests
    /// that wait already. Numbers of threads that the pool cannot have are brought into bounds. False when there is no
    /// such pool.
    pub fn set_limits(&self, name: &str, limits: &PoolLimits) -> bool {
        let group = &self.group;
        let limits = if name == DEFAULT_POOL { polling(limits, self.strategy, &group.site) } else { *limits };
        group.scheduler.set_limits(name, &limits, group)
    }

    /// Leads requests to other pools from now on; those that wait stay where they are.
    ///
    /// # Errors
    /// A rule leads to a pool that does not exist; nothing has changed.
    pub fn set_rules(&self, rules: &[PoolRule]) -> Result<(), UnknownPool> {
        let names = self.group.scheduler.names();
        self.group.set_pool_map(PoolMap::new(&names[1..], rules)?);
        Ok(())
    }

    /// The counts of connections, requests, pools and locks as text in the Prometheus exposition format.
    pub fn metrics(&self) -> String {
        self.group.metrics()
    }

    /// Ends at once: connections are cut, threads end as soon as they leave application code.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for listening in &self.group.listeners {
            listening.shut();
        }
        self.group.scheduler.stop();
        if let Some(driver) = self.driver.take() {
            // It ends by itself: it never waits for application code. A panic was logged.
            let _ = driver.join();
        }
        self.group.cut();
        if let Some(spooler) = &self.group.site.spooler {
            spooler.end();
        }
    }
}

/// The limits of the pool whose threads poll, of which there is always one.
fn polling(limits: &PoolLimits, strategy: Strategy, site: &Site) -> PoolLimits {
    let max_threads = if strategy == Strategy::Pc { 1 } else { limits.max_threads.max(1) };
    // Files alone never block a thread, so no further one would ever be called: one a processor.
    let least = if site.routes.has_application() { 1 } else { machine::processors() };
    PoolLimits { min_threads: limits.min_threads.max(least).min(max_threads), max_threads, ..*limits }
}

/// Large bodies in memory after all, or nowhere to put them: said at the start, not at the first upload.
fn warn_of_spool(settings: &Settings) {
    let Settings { spool: folder, body_memory, log, .. } = settings;
    let shown = folder.display();
    match spool::probe(folder) {
        Ok(Medium::Disk) => {}
        Ok(Medium::Memory) => log.warn(format_args!(
            "the spool folder {shown} is in memory (tmpfs): so is every request body of more than {body_memory} bytes; \
             name a folder on a disk with --spool"
        )),
        Err(error) => log.warn(format_args!(
            "no file can be made in the spool folder {shown}: {error}; request bodies of more than {body_memory} bytes \
             will be refused with 503; name another folder with --spool"
        )),
    }
}
