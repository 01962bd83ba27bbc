//! The way of a request: listener, connection, dispatch, handler, writer, outcome.
//!
//! Promises: everything that is not application code happens outside application threads' waiting;
//! no thread waits for the reader of a complete body; with every application thread blocked, the
//! engine still reads, writes, answers from files, refuses and times out.
//!
//! Leaves out: protocols (maitred-h1), system calls (maitred-io), languages (maitred-runtime's
//! handlers), options and files of configuration (maitred-cli).

mod access_log;
mod connection;
mod dispatch;
mod group;
mod listener;
pub mod log;
mod outcome;
mod responder;
pub mod route;
mod scratch;
mod server;
mod settings;
mod site;
pub mod static_files;
mod writer;

pub use log::{Level, Log};
pub use maitred_io::line_writer::Target as LogTarget;
pub use route::Routes;
pub use server::{Server, Snapshot, StartError};
pub use settings::{Settings, Timeouts};
