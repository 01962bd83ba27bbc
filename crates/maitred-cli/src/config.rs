//! The merged configuration: nothing but data. What its options are says `options/`, what several of them mean together
//! `validation.rs`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use maitred_filters::FilterRule;
use maitred_log::{Format, Mask};
use maitred_match::PathPattern;
use maitred_server::{CompressionSettings, HostPattern, Overflow, Period, PoolRule, Strategy};

use crate::accounts::Account;
use crate::error_page::ErrorPageFile;
use crate::host::{Interface, Lifespan};
use crate::limits::LimitConfig;
use crate::listen::ListenAddress;
use crate::log_values::LogPlace;
use crate::mounted::MountedApplication;
use crate::proxies::{ForwardedField, TrustedProxy};
use crate::tls_values::{ClientAuth, Hsts, TlsConfig};
use crate::value::{AcceptModel, ControlSocket, Http2, LogLevel, Mount, Spans};
use crate::websockets::WebSocketConfig;

/// Everything that can be configured. The meaning of the fields is that of the options with the
/// same names, see docs/operations/configuration.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The default host: what requests get that no other host is for.
    pub site: SiteConfig,
    /// Virtual hosts, in the order in which they were named first.
    pub hosts: Vec<HostConfig>,
    /// At least one.
    pub listen: Vec<ListenAddress>,
    /// TLS of all hosts.
    pub tls: TlsConfig,
    /// Whether HTTP/2 is spoken.
    pub http2: Http2,
    /// Whether a client of HTTP/1.1 may go over to it.
    pub http2_upgrade: bool,
    /// Whether somebody works on the application.
    pub development: DevelopmentConfig,
    /// The most streams of an HTTP/2 connection at a time.
    pub http2_streams: usize,
    /// How WebSocket is spoken.
    pub websockets: WebSocketConfig,
    /// The proxies that are believed.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Which of their fields.
    pub forwarded_fields: Vec<ForwardedField>,
    /// The threads of all requests that no rule leads elsewhere.
    pub pool: PoolConfig,
    /// Further pools, in the order in which they were named first.
    pub pools: Vec<NamedPool>,
    /// Which requests are whose; of two equal rules the later one decides.
    pub rules: Vec<PoolRule>,
    /// What requests meet before they are answered; of two for the same requests the later one decides.
    pub filters: Vec<FilterConfig>,
    /// From 1 to `max_threads` of the default pool; as many as fit the processors without it.
    pub poll_groups: Option<usize>,
    /// Folders whose files the application may submit.
    pub sendfile: Vec<Mount>,
    /// The event loop of an ASGI application.
    pub event_loop: String,
    /// Whether ASGI applications are told of the start and the end.
    pub lifespan: Lifespan,
    /// From 0, which is any number, to 1,000,000.
    pub loop_requests: usize,
    /// Whether ASGI applications may have files sent by their paths.
    pub pathsend: bool,
    /// Becomes the current directory.
    pub chdir: Option<PathBuf>,
    /// Environment variables for the application.
    pub env_file: Option<PathBuf>,
    /// The module, or the file, with functions that are called for workers.
    pub hooks: Option<PathBuf>,
    /// Where the engine itself says that it serves.
    pub health_path: Option<String>,
    /// Where the engine itself shows its figures.
    pub metrics_path: Option<String>,
    /// How the parts of a request's time are measured.
    pub spans: Spans,
    /// Requests are counted by route.
    pub statistics: bool,
    /// Clients are told them.
    pub server_timing: bool,
    /// Requests without an id get one.
    pub request_ids: bool,
    /// Clients are told the id of their request.
    pub response_ids: bool,
    /// From when on a request is reported as stuck; zero for never.
    pub stuck_after: Duration,
    /// From the first to the last byte of a request head; more than zero.
    pub head_timeout: Duration,
    /// Bytes of a request head.
    pub max_head: u64,
    /// Bytes of one field of a head.
    pub max_field: u64,
    /// Without progress in a body; more than zero.
    pub body_timeout: Duration,
    /// Idle between two requests; more than zero.
    pub keep_alive: Duration,
    /// Bytes of a request body that are kept in memory in any case.
    pub body_memory: u64,
    /// Bytes of memory for all longer bodies.
    pub body_budget: u64,
    /// Threads that write bodies to files.
    pub spool_threads: usize,
    /// Where longer bodies are kept, and what waits for slow readers.
    pub spool: PathBuf,
    /// How slow peers may be, and how much they may ask for.
    pub limits: LimitConfig,
    /// Whether responses are compressed.
    pub compress: bool,
    /// How.
    pub compression: CompressionSettings,
    /// Bytes of a streamed response that wait in memory.
    pub response_memory: u64,
    /// Bytes of one response that wait in files; zero for none.
    pub response_file: u64,
    /// Bytes of complete bodies that wait in memory.
    pub response_budget: u64,
    /// Who the process becomes when it listens.
    pub user: Option<Account>,
    /// Its group.
    pub group: Option<Account>,
    /// Has the number of the process while it serves.
    pub pid_file: Option<PathBuf>,
    /// From SIGTERM to the drain.
    pub drain_delay: Duration,
    /// Worker processes.
    pub workers: WorkersConfig,
    /// For running requests after a stop signal; more than zero.
    pub drain_timeout: Duration,
    /// For streams of events after a stop signal.
    pub events_timeout: Duration,
    /// How much of an address is kept there.
    pub access_log_mask: Option<Mask>,
    /// Paths whose requests have no line.
    pub access_log_except: Vec<PathPattern>,
    /// Whether its lines are written before anything else is done.
    pub access_log_sync: bool,
    /// Where the error log goes.
    pub error_log: LogPlace,
    /// Whether an entry says how each request got its thread.
    pub dispatch_trace: bool,
    /// How long a log file lasts.
    pub log_rotate: Option<Period>,
    /// How long it becomes, in bytes; zero for no limit.
    pub log_rotate_size: u64,
    /// Closed log files that are kept; zero for all.
    pub log_keep: usize,
    /// For so many days at most; zero for ever.
    pub log_keep_days: usize,
    /// How much the error log says.
    pub log_level: LogLevel,
    /// Where the server answers `maitred ctl`.
    pub control: ControlSocket,
    /// Where it answers the same over HTTP.
    pub admin: Option<ListenAddress>,
    /// What has to be shown there.
    pub admin_token_file: Option<PathBuf>,
    /// Keeps the history of the figures over a restart.
    pub history: Option<PathBuf>,
}

/// What a host serves. The meaning of the fields is that of the options with the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteConfig {
    /// `module:attr`, a path to a program, or a folder.
    pub application: Option<String>,
    /// The calling convention of the application.
    pub interface: Interface,
    /// Whether the attribute makes the application instead of being it.
    pub factory: bool,
    /// Where modules are looked for, instead of the current directory.
    pub app_dir: Option<PathBuf>,
    /// The URL path of the application: starts with `/` and does not end with one, except for `/`.
    pub root_path: String,
    /// Further applications.
    pub mounted: Vec<MountedApplication>,
    /// Folders of static files, without the one given as application.
    pub mounts: Vec<Mount>,
    /// Whether folders without an index file are listed.
    pub listing: bool,
    /// What errors look like.
    pub error_pages: Vec<ErrorPageFile>,
    /// The largest request body in bytes.
    pub max_body: u64,
    /// Where the access log goes.
    pub access_log: LogPlace,
    /// What is in its lines.
    pub access_log_format: Format,
    /// Files of certificates.
    pub certificates: Vec<PathBuf>,
    /// Of their keys, in the same order; without those that are in the files of the certificates.
    pub keys: Vec<PathBuf>,
    /// Of OCSP responses, in the same order; `-` for none.
    pub ocsp: Vec<PathBuf>,
    /// Whether clients show a certificate.
    pub client_auth: ClientAuth,
    /// The authorities that sign those.
    pub client_ca: Vec<PathBuf>,
    /// Which of those are not valid any more.
    pub client_crl: Vec<PathBuf>,
    /// What browsers are told about https.
    pub hsts: Option<Hsts>,
}

impl SiteConfig {
    /// What the option table fills.
    pub(crate) fn empty() -> Self {
        Self {
            application: None,
            interface: Interface::Auto,
            factory: false,
            app_dir: None,
            root_path: String::new(),
            mounted: Vec::new(),
            mounts: Vec::new(),
            listing: false,
            error_pages: Vec::new(),
            max_body: 0,
            access_log: LogPlace::Off,
            access_log_format: Format::default(),
            certificates: Vec::new(),
            keys: Vec::new(),
            ocsp: Vec::new(),
            client_auth: ClientAuth::None,
            client_ca: Vec::new(),
            client_crl: Vec::new(),
            hsts: None,
        }
    }
}

/// A virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its first name, as it is written in the head of its table.
    pub name: String,
    /// That and the others.
    pub names: Vec<HostPattern>,
    /// The pool whose threads run its requests, unless a rule says otherwise.
    pub pool: Option<String>,
    /// What it serves; what is not among `given` is the default host's, as `hosts` says.
    pub site: SiteConfig,
    /// The keys that its tables have.
    pub given: BTreeSet<&'static str>,
}

/// The threads of a pool. The meaning of the fields is that of the options with the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// At most `max_threads`; from 1 on in the default pool, from 0 on in a named one.
    pub min_threads: usize,
    /// From 1 to 10,000.
    pub max_threads: usize,
    /// From 1 to 1,000,000.
    pub queue: usize,
    /// Percent, at most `queue_high`.
    pub queue_low: u8,
    /// Percent, at most 100.
    pub queue_high: u8,
    /// More than zero.
    pub thread_idle: Duration,
    /// Zero for never.
    pub thread_requests: usize,
    /// Zero for never.
    pub request_timeout: Duration,
    /// As many as `max_threads` without it.
    pub max_lost_threads: Option<usize>,
    /// Whether an exception is raised in the thread of a request that has timed out.
    pub interrupt: bool,
    /// What becomes of a request that finds the queue full.
    pub overflow: Overflow,
    /// Bytes per second; zero for any number.
    pub bandwidth: u64,
    /// Who runs a request; in a named pool `Adaptive` or `Pec`.
    pub strategy: Strategy,
}

/// The options of development.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DevelopmentConfig {
    /// Whether the code is loaded again when it changes.
    pub on: bool,
    /// What is watched, instead of the current folder and the application's.
    pub watch: Vec<PathBuf>,
}

/// Worker processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkersConfig {
    /// How many; without it one for each processor.
    pub count: Option<usize>,
    /// They are forked from a process that has the application.
    pub preload: bool,
    /// How they take connections.
    pub accept: AcceptModel,
    /// For the start of one; zero for any time.
    pub start_timeout: Duration,
    /// One is replaced after so many requests; zero for never.
    pub requests: usize,
    /// One is replaced at this age; zero for never.
    pub lifetime: Duration,
    /// One is replaced when it has more bytes of memory of its own; zero for never.
    pub memory: u64,
    /// One is replaced when requests wait and none has ended for so long; zero for never.
    pub stuck: Duration,
    /// Without a worker that serves; then clients are told.
    pub unavailable_after: Duration,
}

impl WorkersConfig {
    /// How many workers that means on this machine.
    pub(crate) fn number(&self) -> usize {
        self.count.unwrap_or_else(maitred_io::machine::worker_count)
    }
}

/// A pool besides the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPool {
    /// What rules, logs and statistics call it.
    pub name: String,
    /// Its threads.
    pub threads: PoolConfig,
}

impl PoolConfig {
    /// What the option table fills.
    pub(crate) const EMPTY: Self = Self {
        min_threads: 0,
        max_threads: 0,
        queue: 0,
        queue_low: 0,
        queue_high: 0,
        thread_idle: Duration::ZERO,
        thread_requests: 0,
        request_timeout: Duration::ZERO,
        max_lost_threads: None,
        interrupt: false,
        overflow: Overflow::Wait,
        bandwidth: 0,
        strategy: Strategy::Adaptive,
    };
}

/// A filter as it is written. The meaning of the keys is in docs/operations/filters.md.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterConfig {
    /// All of it but the authentication, whose file is read when the server starts.
    pub rule: FilterRule,
    /// Who is asked for a password.
    pub basic_auth: Option<BasicAuthConfig>,
}

/// The value of `basic-auth`, with its realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BasicAuthConfig {
    /// Nobody, whatever a less specific filter says.
    Off,
    /// Everybody.
    Users {
        /// Where the users are.
        file: PathBuf,
        /// What clients show.
        realm: String,
    },
}

impl Config {
    /// The part that one of several workers has of what is for all together: memory, connections, bandwidths. Limits of one client
    /// are those of each worker.
    pub(crate) fn share(&mut self, workers: usize) {
        let workers = workers.max(1) as u64;
        let part = |whole: &mut u64| {
            if *whole > 0 {
                *whole = (*whole / workers).max(1);
            }
        };
        part(&mut self.body_budget);
        part(&mut self.response_budget);
        self.limits.share(workers);
        let pools = self.pools.iter_mut().map(|pool| &mut pool.threads);
        std::iter::once(&mut self.pool).chain(pools).for_each(|pool| part(&mut pool.bandwidth));
    }

    /// What the option table fills.
    pub(crate) fn empty() -> Self {
        Self {
            site: SiteConfig::empty(),
            hosts: Vec::new(),
            listen: Vec::new(),
            tls: TlsConfig::default(),
            http2: Http2::On,
            http2_upgrade: false,
            development: DevelopmentConfig::default(),
            http2_streams: 128,
            websockets: WebSocketConfig::default(),
            trusted_proxies: Vec::new(),
            forwarded_fields: Vec::new(),
            pool: PoolConfig::EMPTY,
            pools: Vec::new(),
            rules: Vec::new(),
            filters: Vec::new(),
            poll_groups: None,
            sendfile: Vec::new(),
            event_loop: String::new(),
            lifespan: Lifespan::Auto,
            loop_requests: 0,
            pathsend: false,
            chdir: None,
            env_file: None,
            hooks: None,
            health_path: None,
            metrics_path: None,
            spans: Spans::Kernel,
            statistics: true,
            server_timing: false,
            request_ids: false,
            response_ids: false,
            stuck_after: Duration::ZERO,
            head_timeout: Duration::ZERO,
            max_head: 0,
            max_field: 0,
            body_timeout: Duration::ZERO,
            keep_alive: Duration::ZERO,
            body_memory: 0,
            body_budget: 0,
            spool_threads: 0,
            spool: PathBuf::new(),
            limits: LimitConfig::EMPTY,
            compress: false,
            compression: CompressionSettings::default(),
            response_memory: 0,
            response_file: 0,
            response_budget: 0,
            user: None,
            group: None,
            pid_file: None,
            drain_delay: Duration::ZERO,
            workers: WorkersConfig::default(),
            drain_timeout: Duration::ZERO,
            events_timeout: Duration::ZERO,
            access_log_mask: None,
            access_log_except: Vec::new(),
            access_log_sync: false,
            error_log: LogPlace::default(),
            dispatch_trace: false,
            log_rotate: None,
            log_rotate_size: 0,
            log_keep: 0,
            log_keep_days: 0,
            log_level: LogLevel::default(),
            control: ControlSocket::default(),
            admin: None,
            admin_token_file: None,
            history: None,
        }
    }
}
