//! The merged configuration: nothing but data. `options/` defines the options; `validation.rs` checks whether they fit together.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use maitred_filters::FilterRule;
use maitred_log::{Format, Mask};
use maitred_match::PathPattern;
use maitred_server::{
    CompressionSettings, HostPattern, Insight, Limits, Period, PoolLimits, PoolRule, Strategy,
    WebSocketSettings, WriterSettings,
};

use crate::acme_values::{Acme, AcmeConfig};
use crate::error_page::ErrorPageFile;
use crate::mounted::MountedApplication;
use crate::otlp::OtlpConfig;
use crate::proxies::{ForwardedField, TrustedProxy};
use crate::tls_values::{ClientAuth, Hsts, TlsConfig};
use crate::value::{AcceptModel, ControlSocket, Http2, Interface, Mount, Spans};
use crate::{Account, ListenAddress, LogLevel, LogPlace, limits};

/// The values of all options. The meaning of the fields is that of the options with the
/// same names, see docs/operations/configuration.md. `Default` is what they are before the defaults of the options are filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The default host: it answers requests that no virtual host is for.
    pub site: SiteConfig,
    /// Virtual hosts, in the order in which they were named first.
    pub hosts: Vec<HostConfig>,
    /// Addresses to listen on; at least one.
    pub listen: Vec<ListenAddress>,
    /// TLS of all hosts.
    pub tls: TlsConfig,
    /// Orders of certificates.
    pub acme: AcmeConfig,
    /// Whether the server speaks HTTP/2.
    pub http2: Http2,
    /// Whether a client of HTTP/1.1 may go over to HTTP/2.
    pub http2_upgrade: bool,
    /// The options of development.
    pub development: DevelopmentConfig,
    /// The most streams of an HTTP/2 connection at a time.
    pub http2_streams: usize,
    /// Whether the server speaks WebSocket.
    pub has_websockets: bool,
    /// The settings of WebSocket.
    pub websockets: WebSocketSettings,
    /// The proxies whose forwarded fields count.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The fields of proxies that count.
    pub forwarded_fields: Vec<ForwardedField>,
    /// The default pool: threads of all requests that no rule leads to another pool.
    pub pool: PoolConfig,
    /// Further pools, in the order in which they were named first.
    pub pools: Vec<NamedPool>,
    /// Rules that lead requests to pools; of two equal rules the later one decides.
    pub rules: Vec<PoolRule>,
    /// Filters of requests and responses; of two for the same requests the later one decides.
    pub filters: Vec<FilterConfig>,
    /// Groups of polling threads, from 1 to `max_threads` of the default pool; one for each 8 processors if none is set.
    pub poll_groups: Option<usize>,
    /// Folders whose files the application may submit.
    pub sendfile: Vec<Mount>,
    /// The event loop of an ASGI application.
    pub event_loop: String,
    /// Whether ASGI applications take part in the lifespan protocol.
    pub lifespan: &'static str,
    /// Most requests on the event loop at a time, from 0, which is any number, to 1,000,000.
    pub loop_requests: usize,
    /// Whether ASGI applications may have the engine send files by path.
    pub pathsend: bool,
    /// The current directory of the process.
    pub chdir: Option<PathBuf>,
    /// Environment variables for the application.
    pub env_file: Option<PathBuf>,
    /// The module, or the file, with hooks.
    pub hooks: Option<PathBuf>,
    /// The path at which the engine itself answers whether it serves.
    pub health_path: Option<String>,
    /// The path of the engine's page of figures.
    pub metrics_path: Option<String>,
    /// The way the parts of a request's time are measured.
    pub spans: Spans,
    /// The measurements of requests, but for those that [`spans`](Self::spans) says.
    pub insight: Insight,
    /// Traces and figures by OpenTelemetry.
    pub otlp: OtlpConfig,
    /// Time in the application after which a request is reported as stuck; zero for never.
    pub stuck_after: Duration,
    /// Longest time from the first to the last byte of a request head; more than zero.
    pub head_timeout: Duration,
    /// Most bytes of a request head.
    pub max_head: u64,
    /// Most bytes of one field of a head.
    pub max_field: u64,
    /// Longest time without progress in a body; more than zero.
    pub body_timeout: Duration,
    /// Longest idle time between two requests; more than zero.
    pub keep_alive: Duration,
    /// Bytes of a request body that are kept in memory in any case.
    pub body_memory: u64,
    /// Bytes of memory for all longer bodies.
    pub body_budget: u64,
    /// Threads that write bodies to files.
    pub spool_threads: usize,
    /// The folder for longer bodies, and for responses that wait for slow readers.
    pub spool: PathBuf,
    /// Limits on peers: their least speed, their most requests.
    pub limits: Limits,
    /// Whether responses are compressed.
    pub compress: bool,
    /// The settings of compression.
    pub compression: CompressionSettings,
    /// Limits of responses that wait for slow readers.
    pub writer: WriterSettings,
    /// The user that the process becomes when it listens.
    pub user: Option<Account>,
    /// The group of that user, if another one than the user's own is meant.
    pub group: Option<Account>,
    /// The file that has the number of the process while it serves.
    pub pid_file: Option<PathBuf>,
    /// Time from SIGTERM to the drain.
    pub drain_delay: Duration,
    /// Worker processes.
    pub workers: WorkersConfig,
    /// Time for running requests after a stop signal; more than zero.
    pub drain_timeout: Duration,
    /// Time for streams of events after a stop signal.
    pub events_timeout: Duration,
    /// Bits of addresses that the access log keeps; all without a mask.
    pub access_log_mask: Option<Mask>,
    /// Paths whose requests have no line in the access log.
    pub access_log_except: Vec<PathPattern>,
    /// The place of the error log.
    pub error_log: LogPlace,
    /// The place of the log of calls to other servers.
    pub client_log: LogPlace,
    /// Whether an entry of the error log says how each request got its thread.
    pub dispatch_trace: bool,
    /// The period after which a new log file is begun.
    pub log_rotate: Option<Period>,
    /// Bytes after which a new log file is begun; zero for no limit.
    pub log_rotate_size: u64,
    /// Closed log files that are kept; zero for all.
    pub log_keep: usize,
    /// Days after which closed log files are removed; zero for never.
    pub log_keep_days: usize,
    /// The least level of entries in the error log.
    pub log_level: LogLevel,
    /// The socket at which the server answers `maitred ctl`.
    pub control: ControlSocket,
    /// The address at which the server answers the same questions over HTTP.
    pub admin: Option<ListenAddress>,
    /// The file with the token for that address.
    pub admin_token_file: Option<PathBuf>,
    /// The file that keeps the history of the figures over a restart.
    pub history: Option<PathBuf>,
}

/// The options of one host. The meaning of the fields is that of the options with the same names. `Default` is what they are before those of the options are filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteConfig {
    /// `module:attr`, a path to a program, or a folder.
    pub application: Option<String>,
    /// The calling convention of the application.
    pub interface: Interface,
    /// Whether the attribute makes the application instead of being it.
    pub factory: bool,
    /// The folder of the application's modules, instead of the current directory.
    pub app_dir: Option<PathBuf>,
    /// The URL path of the application: starts with `/` and does not end with one, except for `/`.
    pub root_path: String,
    /// Further applications.
    pub mounted: Vec<MountedApplication>,
    /// Folders of static files, without the one given as application.
    pub mounts: Vec<Mount>,
    /// Whether folders without an index file are listed.
    pub listing: bool,
    /// Pages for errors.
    pub error_pages: Vec<ErrorPageFile>,
    /// The largest request body in bytes.
    pub max_body: u64,
    /// The place of the access log.
    pub access_log: LogPlace,
    /// The format of its lines.
    pub access_log_format: Format,
    /// Files of certificates.
    pub certificates: Vec<PathBuf>,
    /// Files of their keys, in the same order; keys may also be in the files of the certificates.
    pub keys: Vec<PathBuf>,
    /// Files of OCSP responses, in the same order; `-` for none.
    pub ocsp: Vec<PathBuf>,
    /// Whether certificates are ordered.
    pub acme: Acme,
    /// Whether clients are asked for a certificate.
    pub client_auth: ClientAuth,
    /// Files of the authorities that sign certificates of clients.
    pub client_ca: Vec<PathBuf>,
    /// Files of lists of revoked certificates of clients.
    pub client_crl: Vec<PathBuf>,
    /// The value of Strict-Transport-Security.
    pub hsts: Option<Hsts>,
}

/// A virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The first name of the host, as in the head of its table.
    pub name: String,
    /// All names of the host, with the first one.
    pub names: Vec<HostPattern>,
    /// The pool whose threads run its requests, unless a rule says otherwise.
    pub pool: Option<String>,
    /// The options of the host; `hosts` replaces those that are not among `given` by the default host's.
    pub site: SiteConfig,
    /// The keys in the tables of the host.
    pub given: BTreeSet<&'static str>,
}

/// The threads of a pool. The meaning of the fields is that of the options with the same names. `Default` is what they are before those of the options are filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolConfig {
    /// Limits that may change while the server runs; `max_lost` among them follows from the next field.
    pub limits: PoolLimits,
    /// Lost threads that the pool replaces; as many as `max_threads` if none is set.
    pub max_lost_threads: Option<usize>,
    /// The choice of the thread that runs a request; in a named pool `Adaptive` or `Pec`.
    pub strategy: Strategy,
}

/// The options of development.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DevelopmentConfig {
    /// Whether the code is loaded again when it changes.
    pub on: bool,
    /// Folders to watch, instead of the current one and the application's.
    pub watch: Vec<PathBuf>,
}

/// Worker processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkersConfig {
    /// Number of workers; one for each processor if none is set.
    pub count: Option<usize>,
    /// Whether workers are forked from a process that has loaded the application.
    pub preload: bool,
    /// The model by which workers accept connections.
    pub accept: AcceptModel,
    /// Longest start of a worker; zero for no limit.
    pub start_timeout: Duration,
    /// Requests after which a worker is replaced; zero for never.
    pub requests: usize,
    /// Age at which a worker is replaced; zero for never.
    pub lifetime: Duration,
    /// Bytes of a worker's own memory above which it is replaced; zero for never.
    pub memory: u64,
    /// Time after which a worker is replaced if requests wait and none has ended; zero for never.
    pub stuck: Duration,
    /// Time without a ready worker after which clients get 503.
    pub unavailable_after: Duration,
}

impl WorkersConfig {
    /// Returns the number of workers on this machine.
    pub fn number(&self) -> usize {
        self.count.unwrap_or_else(maitred_io::machine::worker_count)
    }
}

/// A pool besides the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPool {
    /// The name in rules, logs and statistics.
    pub name: String,
    /// The threads of the pool.
    pub threads: PoolConfig,
}

/// A filter as it is written. The meaning of the keys is in docs/operations/filters.md.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterConfig {
    /// The filter without the authentication, whose file is read when the server starts.
    pub rule: FilterRule,
    /// The authentication of clients by password.
    pub basic_auth: Option<BasicAuthConfig>,
}

/// The value of `basic-auth`, with its realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BasicAuthConfig {
    /// Clients are not asked for a password, even if a less specific filter asks.
    Off,
    /// Clients need the password of one of the users.
    Users {
        /// The file of the users.
        file: PathBuf,
        /// The realm, which browsers show.
        realm: String,
    },
}

impl Config {
    /// Divides limits of the whole server by the number of workers: memory, connections, bandwidths. Limits of one client stay as
    /// they are.
    pub fn share(&mut self, workers: usize) {
        let workers = workers.max(1) as u64;
        let part = |whole: &mut u64| {
            if *whole > 0 {
                *whole = (*whole / workers).max(1);
            }
        };
        part(&mut self.body_budget);
        part(&mut self.writer.budget);
        limits::share(&mut self.limits, workers);
        let pools = self.pools.iter_mut().map(|pool| &mut pool.threads);
        std::iter::once(&mut self.pool).chain(pools).for_each(|pool| part(&mut pool.limits.bandwidth));
    }
}
