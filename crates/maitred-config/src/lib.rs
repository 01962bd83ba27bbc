//! The configuration of the command: options from flags, variables and files, merged, checked and explained.
//!
//! ```text
//! options/, familiar and earlier names  ─┐
//! sources  command line, environment, files ─> Config, Origins ─> validation ─> Checked
//!          tables: pools, hosts, filters  ─┘                  └─> check, configuration, help, reference, man, completion
//! ```
//! Every option is defined once, in [`options`], every kind of tables by a schema in its own file (`tables` lists them); the forms of values
//! are in [`forms`]. An error names the place of the value, the fault and a remedy. Leaves out: whatever begins, changes or ends a process.

pub mod accounts;
pub mod acme;
pub mod acme_values;
pub mod check;
pub mod commands;
pub mod completion;
pub mod config;
pub mod configuration;
pub mod development;
mod env_file;
pub mod error_page;
pub mod filters;
pub mod forms;
pub mod help;
pub mod hosts;
pub mod http2;
pub mod limits;
pub mod listen;
pub mod log_values;
pub mod logs;
pub mod man;
pub mod mounted;
pub mod options;
pub mod origins;
pub mod otlp;
pub mod otlp_variables;
pub mod output;
mod passed_name;
pub mod pools;
pub mod problem;
pub mod proxies;
pub mod reference;
pub mod rights;
mod schema;
pub mod sources;
mod tables;
pub mod tls;
pub mod tls_values;
pub mod validation;
pub mod value;

pub use accounts::Account;
pub use config::{Config, HostConfig, PoolConfig, SiteConfig};
pub use listen::ListenAddress;
pub use log_values::LogPlace;
pub use options::Definition;
pub use origins::{Origins, Source};
pub use output::{EXIT_FAILURE, EXIT_SUCCESS, EXIT_USAGE, print, say};
pub use problem::{Problem, did_you_mean, nearest};
pub use rights::Wanted;
pub use sources::{Inputs, Loaded};
pub use validation::{Checked, CheckedListener, PassedName};
pub use value::{BadValue, LogLevel};
