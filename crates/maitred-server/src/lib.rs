//! The way of a request: listener, connection, dispatch, handler, writer, outcome.
//!
//! Promises: everything that is not application code happens outside application threads' waiting;
//! no thread waits for the reader of a complete body; with every application thread blocked, the
//! engine still reads, writes, answers from files, refuses and times out.
//!
//! Leaves out: protocols (maitred-h1), system calls (maitred-io), languages (maitred-runtime's
//! handlers), options and files of configuration (maitred-config).
//!
//! Begin with [`Routes`], [`Settings`] and [`Server`]:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use maitred_http::{ResponseHead, Status};
//! use maitred_runtime::Exchange;
//! use maitred_server::{Level, Log, LogTarget, Routes, Server, Settings};
//!
//! let handler = |exchange: Exchange| drop(exchange.respond(ResponseHead::new(Status::OK), "Hello\n"));
//! let log = Arc::new(Log::open(Level::Info, LogTarget::Stderr, None)?);
//! let mut settings = Settings::new(Routes::new().with_application(Arc::new(handler)), log);
//! settings.listeners.push("127.0.0.1:8000".parse()?);
//! let server = Server::start(settings)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! maitred-dispatch decides which thread runs what, `group` has the connections, and `connection` is one of them; the code map
//! is docs/architecture.md, the way of one request docs/life-of-a-request.md.

mod connection;
mod engine_calls;
mod engine_client;
pub mod figures;
mod group;
pub mod inspect;
mod listener;
mod live_settings;
mod merged;
mod metrics;
mod otlp;
mod otlp_figures;
mod otlp_settings;
pub mod pool_map;
mod pools;
mod roles;
mod server;
mod settings;
mod sharing;
mod thread_hosts;
mod worker_listeners;

pub use engine_client::{EngineClient, Task};
pub use group::slots::{NoPlace, Place};
pub use inspect::Snapshot;
pub use listener::{BoundListeners, ListenerSettings};
pub use maitred_compress::CompressionSettings;
pub use maitred_exchange::admission::https_address;
pub use maitred_exchange::hosts::{Host, HostSettings, Hosts, SameName};
pub use maitred_exchange::pages::{ErrorPage, ErrorPages, PageFor};
pub use maitred_exchange::proxies::Forwarding;
pub use maitred_exchange::routes::{Application, Route, Routes};
pub use maitred_exchange::site::{
    ApplicationTiming, Calls, Computing, DatabaseUse, Http2Settings, Insight, LeafCount, OutgoingUse,
    RunningCall, Statistics, Timeouts, WebSocketSettings,
};
pub use maitred_exchange::spill::WriterSettings;
pub use maitred_exchange::tracing::{
    TraceLabel, TracePhases, TraceRules, TraceTrust, Tracing, seed as trace_seed, span_id,
};
pub use maitred_files::Submissions;
pub use maitred_forward::forwarded::{Believed, Trusted};
pub use maitred_io::line_writer::{Period, Rotation, Target as LogTarget};
pub use maitred_io::listener as listening;
pub use maitred_io::{accounts, machine, pid_file, process, rights, service_manager, terminal};
pub use maitred_limits as limits;
pub use maitred_limits::{Applied, Limits, Rule};
pub use maitred_log::{AccessLogSettings, Level, Log, Progress, RequestId, printable};
pub use maitred_stats::pool::{END_REASONS, START_REASONS};
pub use maitred_tls as tls;
pub use otlp::OtlpState;
pub use otlp_settings::{OtlpSettings, OtlpTarget};
pub use pool_map::PoolMap;
pub use roles::CONTROL;
pub use server::{BESIDE_LOOP, Server, StartError};
pub use settings::{
    CertificatePattern, DEFAULT_POOL, HeaderPattern, HostCondition, HostPattern, Network, Overflow,
    PathPattern, PoolLimits, PoolRule, PoolSettings, Settings, Strategy,
};
pub use sharing::{Accept, Bell};
pub use thread_hosts::HostMismatch;
pub use worker_listeners::WorkerListeners;
