//! The process of a server: its start, signals, reload and end, alone or as supervisor and workers.
//!
//! ```text
//! run -> early (rights) -> logs, hooks -> supervisor/, or: loading -> settings -> the server -> lifetime (signals, drain, end)
//!                                                           reload, operator, tls_watch: changes meanwhile
//! ```
//! A program with another language implements [`host::Host`]. Leaves out: the configuration (maitred-config), requests (maitred-server).

pub mod application_values;
mod certificates;
mod control;
mod development;
mod early;
mod early_signals;
mod holder;
mod hooks;
pub mod host;
mod languages;
mod lifetime;
mod listeners;
pub mod loading;
pub mod logs;
mod operator;
mod otlp;
pub mod part;
mod passed;
mod reload;
pub mod run;
mod service;
mod settings;
mod sockets;
mod supervisor;
mod tls_terms;
mod tls_watch;
