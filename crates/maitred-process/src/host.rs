//! The interface of the command to the program around it: the loader of applications, hooks and signals.
//!
//! The Rust binary brings a host without a language; the Python package brings one that imports
//! WSGI and ASGI applications. Options of one language pass through as a [table of values](ApplicationValues).

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use maitred_client::Observer;
use maitred_config::LogLevel;
use maitred_runtime::{Handler, ThreadHost};
use maitred_server::terminal::Terminal;

use crate::application_values::ApplicationValues;

/// The program around the command.
pub trait Host: Sync {
    /// Hands over the error log, before [`load`](Self::load); in a fork a second log replaces the first one. A host without entries may
    /// ignore the log.
    fn use_error_log(&self, _log: ErrorLog) {}

    /// Hands over the receiver of the reports of all calls to other servers. Called when the server has started; a host without a client may
    /// ignore the receiver.
    fn use_calls(&self, _calls: Arc<dyn Observer>) {}

    /// Whether logs can go to the logging of the host's language ([`logging_place`](Self::logging_place)).
    fn has_logging(&self) -> bool {
        false
    }

    /// A file to which the lines of this log are written, so that they reach the logging of the language. Called before
    /// [`load`](Self::load), once for each log; lines are passed on from [`signals`](Self::signals) on.
    ///
    /// # Errors
    /// The host has no logging, or no descriptor is left.
    fn logging_place(&self, _log: LogName) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Passes on the last lines, at most for `limit`. Called when all lines have been written.
    fn end_logging(&self, _limit: Duration) {}

    /// Loads an application. Called for each one, on the thread that called [`main`](crate::main), after
    /// the configuration has been checked, the process has become the user that it is to be, and before the server starts. Of the
    /// applications that run on an event loop all have the same `threads`, which also make the threads of the others.
    ///
    /// # Errors
    /// The application cannot be loaded: one line with a remedy, which the command prints before it ends with exit code 2.
    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError>;

    /// Checks whether the application that [`load`](Self::load) would load exists, without running any of its code. A host that cannot tell
    /// returns `Ok`.
    ///
    /// # Errors
    /// As of [`load`](Self::load).
    fn look(&self, _spec: &ApplicationSpec) -> Result<(), LoadError> {
        Ok(())
    }

    /// Loads an application in a process that workers are forked from (`preload`), and begins nothing that has a thread. In a fork,
    /// [`load`](Self::load) of the same target is given what was loaded here.
    ///
    /// # Errors
    /// As of [`load`](Self::load). Hosts without an implementation refuse every application.
    fn preload(&self, _spec: &ApplicationSpec) -> Result<(), LoadError> {
        Err(LoadError::new("this program loads nothing that workers could share", "leave preload out"))
    }

    /// All applications have been preloaded.
    ///
    /// # Errors
    /// The process cannot be forked soundly, because it has several threads.
    fn prepare_fork(&self) -> Result<(), LoadError> {
        Ok(())
    }

    /// Forks a process whose parent ends at once. Returns its number, and in the new process none. There the host is like a new one that has
    /// the preloaded applications.
    ///
    /// # Errors
    /// No process can be made.
    fn fork(&self) -> io::Result<Option<u32>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Loads hooks: those that the user has named, or a program's own. Called once in a process that is no worker, on the thread that called
    /// [`main`](crate::main), before it listens (but for `--user`) and before any application is loaded.
    ///
    /// # Errors
    /// As of [`load`](Self::load). Hosts without an implementation refuse hooks that the user names.
    fn hooks(&self, spec: Option<&HooksSpec>) -> Result<Option<Box<dyn Hooks>>, LoadError> {
        match spec {
            None => Ok(None),
            Some(HooksSpec { target, .. }) => Err(LoadError::new(
                format!("this program has no Python and cannot run the hooks of '{target}'"),
                "leave hooks out, or run the maitred command of the Python package (python -m maitred)",
            )),
        }
    }

    /// Whether the user has interrupted a wait of this thread: Ctrl-C before [`signals`](Self::signals). Needed only where SIGINT does
    /// not end the process then.
    fn is_interrupted(&self) -> bool {
        false
    }

    /// Installs the signal handling. Called after [`load`](Self::load), so that what the
    /// application installed while it was imported can be chained.
    ///
    /// # Errors
    /// The handlers cannot be installed; the command ends with exit code 1.
    fn signals(&self) -> io::Result<Box<dyn Signals>>;

    /// Begins the end of the application, which may take `limit`, and returns at once. Called when the last
    /// request has been answered or cut off, also if the server did not start, once or twice: the second
    /// time without time.
    fn end_application(&self, _limit: Duration) {}

    /// Waits at most for `limit` until the application has ended; returns whether it has.
    fn wait_application_ended(&self, _limit: Duration) -> bool {
        true
    }

    /// Folders from which the host reads programs while it runs, each with a description: a user without the right to read these cannot run
    /// applications.
    fn folders(&self) -> Vec<(&'static str, PathBuf)> {
        Vec::new()
    }

    /// The command that started this program, without its arguments: a supervisor starts workers by the same command, by path.
    fn command(&self) -> Vec<OsString> {
        std::env::args_os().take(1).collect()
    }

    /// Tells the host that this process becomes a supervisor, which handles signals itself and never loads an application.
    fn supervises(&self) {}

    /// Runs a tool that is written in the host's language: the exit code, or none if the host has no tool of this name.
    fn tool(&self, _name: &str, _arguments: &[String]) -> Option<u8> {
        None
    }

    /// The languages this program runs, for `--version`: `"Python 3.11.7"`, or `"native"`.
    fn languages(&self) -> &'static str;
}

/// Writes an entry, which may have several lines, to the server's error log if the log has that level. Never waits for the
/// reader of the log; entries are dropped if the reader is too slow. Entries are written without time and level until the
/// server serves, and with both from then on. When [`main`](crate::main) returns,
/// entries before that are flushed; later entries may be lost.
pub type ErrorLog = Arc<dyn Fn(Voice, &str) + Send + Sync>;

/// A log that goes to the logging of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogName {
    /// Entries with time and level.
    Error,
    /// Lines of an access log.
    Access,
}

/// The author of an entry of the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The server, or the host for it.
    Server(LogLevel),
    /// The application: one line, whose level only the application knows. The line is written at every level of the log.
    Application,
}

/// The signals of the process that the command answers.
pub trait Signals {
    /// Waits for the next of [`Signal::answered`]: for ever without a `limit`, else at most for
    /// `limit` (zero looks without waiting), then `None`. Called only on the thread that called
    /// [`main`](crate::main). A signal that came between two calls is reported by the next one.
    fn wait(&mut self, limit: Option<Duration>) -> Option<Signal>;
}

/// A signal that the command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A signal that ends the server.
    Stop(StopSignal),
    /// SIGHUP: the server reads the configuration again.
    Reload,
    /// SIGUSR1: the server opens the log files anew.
    Reopen,
    /// A signal for a supervisor. A process that is none logs that, and goes on.
    ForSupervisor(SupervisorSignal),
}

impl Signal {
    /// The signals that a host reports. A signal for a supervisor that the application handles itself is left to the application.
    pub fn answered() -> Vec<Self> {
        use SupervisorSignal::{Fewer, More};
        let has_terminal = Terminal::at_start().is_there();
        // A terminal uses these two itself, to stop a program in the background that reads from it.
        let is_terminals = |signal: &Self| matches!(signal, Self::ForSupervisor(More | Fewer));
        Self::ALL.into_iter().filter(|signal| !has_terminal || !is_terminals(signal)).collect()
    }

    /// All that a supervisor answers.
    pub(crate) const ALL: [Self; 7] = [
        Self::Stop(StopSignal::Interrupt),
        Self::Stop(StopSignal::Terminate),
        Self::Reload,
        Self::Reopen,
        Self::ForSupervisor(SupervisorSignal::Upgrade),
        Self::ForSupervisor(SupervisorSignal::More),
        Self::ForSupervisor(SupervisorSignal::Fewer),
    ];

    /// The number of the signal (POSIX).
    pub fn number(self) -> u8 {
        match self {
            Self::Stop(stop) => stop.number(),
            Self::Reload => 1,
            Self::Reopen => signal_hook::consts::SIGUSR1 as u8,
            Self::ForSupervisor(signal) => signal.number(),
        }
    }
}

/// A signal that only a supervisor answers: without one it would end or stop the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupervisorSignal {
    /// SIGUSR2: a new program takes over.
    Upgrade,
    /// SIGTTIN: one worker more.
    More,
    /// SIGTTOU: one worker fewer.
    Fewer,
}

impl SupervisorSignal {
    /// The number of the signal (POSIX).
    pub fn number(self) -> u8 {
        match self {
            Self::Upgrade => signal_hook::consts::SIGUSR2 as u8,
            Self::More => signal_hook::consts::SIGTTIN as u8,
            Self::Fewer => signal_hook::consts::SIGTTOU as u8,
        }
    }
}

impl fmt::Display for SupervisorSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upgrade => "SIGUSR2",
            Self::More => "SIGTTIN",
            Self::Fewer => "SIGTTOU",
        })
    }
}

/// A signal that ends the server: the first one drains, the second one ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGINT, for example from Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP of a terminal that has hung up. A host reports [`Signal::Reload`]; the command tells the two apart.
    Hangup,
}

impl StopSignal {
    /// The number of the signal (POSIX).
    pub fn number(self) -> u8 {
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }
}

impl fmt::Display for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hangup => "SIGHUP (the terminal has hung up)",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

/// The application to load, and the way to load it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationSpec {
    /// The user's text, in the form of the language: for Python `module`, `module:attr`, `path/to/app.py` or `path/to/app.py:attr`.
    pub target: String,
    /// The greatest number of application threads, at least 1.
    pub max_threads: usize,
    /// The values that only its language understands.
    pub values: ApplicationValues,
    /// Variables to set before the application is imported, except those that the environment has.
    pub environment: Vec<(String, String)>,
    /// Variables to set even if the environment has them: those of the user that the process has become.
    pub identity: Vec<(String, String)>,
    /// The URL path of the application: `/`, or one without a slash at its end.
    pub root_path: String,
    /// Time in the application after which a request is reported; `None` for never.
    pub stuck_after: Option<Duration>,
    /// The token of development. Browsers with this token are shown tracebacks, and an application that cannot be loaded is replaced by one
    /// that shows the reason.
    pub development: Option<String>,
}

/// Functions that are called at events of the workers. One thread, `maitred-hooks`, makes all calls, in the supervisor if there are several
/// workers, else in the only process.
pub trait Hooks: Send {
    /// The server listens, and no worker has been started; in the only process, no application has been loaded. Not called where a new program
    /// takes over from one that serves (SIGUSR2), nor at SIGHUP.
    ///
    /// # Errors
    /// The server does not start; the command prints the error and ends with exit code 2.
    fn before_start(&self) -> Result<(), LoadError> {
        Ok(())
    }

    /// This worker, numbered from 1 on, serves as process `pid`. The only process is worker 1.
    fn worker_ready(&self, _worker: usize, _pid: u32) {}

    /// The process of this worker has ended, also one that was never ready: with this exit code from 0 to 255, or, below zero, by this signal.
    /// The only process is about to end.
    fn worker_exit(&self, _worker: usize, _pid: u32, _code: i32) {}
}

/// The hooks to load, and the way to load them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksSpec {
    /// The user's text: `module` or `path/to/file.py`.
    pub target: String,
    /// The values that only their language understands.
    pub values: ApplicationValues,
    /// Variables to set before the hooks are imported, except those that the environment has.
    pub environment: Vec<(String, String)>,
    /// Variables to set even if the environment has them: those of the user that the process has become.
    pub identity: Vec<(String, String)>,
}

/// A loaded application.
pub struct Application {
    /// The handler of the application's requests.
    pub handler: Arc<dyn Handler>,
    /// The maker of the application's threads.
    pub threads: Arc<dyn ThreadHost>,
    /// Text of the start-up line, for example `WSGI app:app`.
    pub description: String,
    /// Text of the same line if the application does not run on application threads: `one event loop (uvloop)`.
    pub runs_on: Option<String>,
}

/// The reason why an application could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The fault, in one line.
    pub what: String,
    /// The remedy, in one line.
    pub remedy: String,
}

impl LoadError {
    /// An error with its remedy. Neither ends with a full stop.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for LoadError {}
