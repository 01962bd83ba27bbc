//! Control of a running server: queries and changes over a Unix socket, and over HTTP on a listener of its own.
//!
//! Promises: a thread of its own that needs no application thread: with all of them stuck it answers. A query takes the
//! lock of a connection only to copy its state, and nothing waits for a query. A refused change has changed nothing; a
//! change that was made is in the error log with its caller.
//!
//! A file imports those before it:
//!
//! ```text
//! given, owner, question --> query --> a file for each group of commands --> table --> snapshot --> answer --> inner --> dashboard, http --> control
//! arguments, refusals        context                                         names                             server or relay
//! ```
//!
//! Leaves out: the command line (`maitred ctl`, in maitred-tools), and the valid values of settings, which the [`Owner`]
//! checks.

mod access;
mod answer;
mod change;
mod control;
mod counted;
mod dashboard;
mod deliveries;
mod doors;
mod explain;
mod finding;
mod given;
mod guests;
mod history;
mod http;
mod http2;
mod inner;
mod lock;
mod logs;
mod memory;
mod nearest;
mod otlp;
mod over_time;
pub mod own_sockets;
mod owner;
mod pool;
mod query;
mod question;
mod recent;
mod requests;
mod response;
mod sessions;
mod shown;
mod snapshot;
mod sockets;
mod stats;
mod status;
mod strangers;
mod table;
mod threads;
mod tls;
mod upstreams;
mod watch;
mod websockets;

pub use access::Caller;
pub use answer::help;
pub use control::Control;
pub use counted::{Counted, PoolCounted};
pub use doors::{DoorSettings, Doors, NotOpened, read_token};
use finding::picture_of;
pub use finding::{FINDING, Finder};
pub use given::{Argument, Given, WORKER};
pub use history::{CounterSums, Keeper, Look, ProcessFigures, counts_of};
pub use inner::{Relay, WrongToken};
pub use lock::lock;
pub use logs::{LOGS, merge_logs};
pub use maitred_io::local;
pub use memory::{MEMORY, process_row};
pub use nearest::{did_you_mean, nearest};
pub use owner::{Configured, Done, NoOwner, Owner, Refusal, Setting};
pub use question::{Answered, Question};
pub use recent::{RECENT, merge_recent};
pub use snapshot::{HIDDEN, snapshot_name, snapshot_of, snapshot_page};
pub use stats::stats_of;
pub use table::{Command, SNAPSHOT, commands, find};
pub use upstreams::{UPSTREAMS, upstreams_of};

use pool::Wanted;
use query::QueryContext;
