//! What the program around the command brings along: the loader of applications and the signals.
//!
//! The Rust binary brings a host without a language; the Python package brings one that imports
//! WSGI and ASGI applications.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use maitred_runtime::{Handler, ThreadHost};
use maitred_server::terminal::Terminal;

use crate::value::LogLevel;

/// What the program around the command can do.
pub trait Host: Sync {
    /// Hands over the error log, before [`load`](Self::load); in a fork once more, in the place of the first one. A host without anything to say
    /// need not take it.
    fn use_error_log(&self, _log: ErrorLog) {}

    /// Whether logs can go to the logging of its language ([`logging_place`](Self::logging_place)).
    fn has_logging(&self) -> bool {
        false
    }

    /// A file to which the lines of this log are written, so that they reach the logging of the language. Called before
    /// [`load`](Self::load), once for each log; lines are passed on from [`signals`](Self::signals) on.
    ///
    /// # Errors
    /// There is none, or no descriptor is left.
    fn logging_place(&self, _log: LogName) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// All lines have been written: passes on the last ones, at most for `limit`.
    fn end_logging(&self, _limit: Duration) {}

    /// Loads an application. Called for each one, on the thread that called [`main`](crate::main), after
    /// the configuration has been checked, the process has become the user that it is to be, and before the server starts. Of the
    /// applications that run on an event loop all have the same `threads`, which also make the threads of the others.
    ///
    /// # Errors
    /// One clear line with its remedy; the command prints it and ends with exit code 2.
    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError>;

    /// Looks whether there is what [`load`](Self::load) would load, and runs nothing of it. A host that cannot tell says nothing.
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
    /// As of [`load`](Self::load). Without an implementation none can be loaded so.
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

    /// Forks a process whose parent ends at once: its number, and none in that process, where the host is as if it were new, but for what was preloaded.
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
    /// As of [`load`](Self::load). Without an implementation none can be named.
    fn hooks(&self, spec: Option<&HooksSpec>) -> Result<Option<Box<dyn Hooks>>, LoadError> {
        match spec {
            None => Ok(None),
            Some(HooksSpec { target, .. }) => Err(LoadError::new(
                format!("this program has no Python and cannot run the hooks of '{target}'"),
                "leave hooks out, or run the maitred command of the Python package (python -m maitred)",
            )),
        }
    }

    /// Whether the user has interrupted what this thread waits for: Ctrl-C before [`signals`](Self::signals). Needed only where SIGINT does
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

    /// Waits at most for `limit` until the application has ended; whether it has.
    fn wait_application_ended(&self, _limit: Duration) -> bool {
        true
    }

    /// Folders from which it reads programs while it runs, and what each is: a user who cannot read them cannot run applications.
    fn folders(&self) -> Vec<(&'static str, PathBuf)> {
        Vec::new()
    }

    /// How this program was started, without its arguments: a supervisor starts workers in the same way, by path.
    fn command(&self) -> Vec<OsString> {
        std::env::args_os().take(1).collect()
    }

    /// This process is going to be a supervisor, which takes signals itself and never loads an application.
    fn supervises(&self) {}

    /// Runs a tool that is written in the host's language: the exit code, or none if the host has no tool of this name.
    fn tool(&self, _name: &str, _arguments: &[String]) -> Option<u8> {
        None
    }

    /// The languages this program runs, for `--version`: `"Python 3.11.7"`, or `"native"`.
    fn languages(&self) -> &'static str;
}

/// Writes an entry, which may have several lines, to the server's error log if it has that level. Never waits for the
/// reader of the log; entries are dropped when it is too slow. Entries are written without time and level until the
/// server serves, and with both from then on. When [`main`](crate::main) returns,
/// what was written before is flushed; later entries may be lost.
pub type ErrorLog = Arc<dyn Fn(Voice, &str) + Send + Sync>;

/// A log that goes to the logging of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogName {
    /// Entries with time and level.
    Error,
    /// Lines of an access log.
    Access,
}

/// Who says an entry of the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The server, or the host for it.
    Server(LogLevel),
    /// The application: one line, whose level only the application knows. It is written whatever the level of the log is.
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
    /// It ends the server.
    Stop(StopSignal),
    /// SIGHUP: it reads the configuration again.
    Reload,
    /// SIGUSR1: it opens the log files anew.
    Reopen,
    /// It is for a supervisor, which this process is not: it says so, and goes on.
    ForSupervisor(SupervisorSignal),
}

impl Signal {
    /// Those that are to be reported. What the application handles itself is left to it, if it is for a supervisor.
    pub fn answered() -> Vec<Self> {
        use SupervisorSignal::{Fewer, More, Upgrade};
        let mut signals = vec![
            Self::Stop(StopSignal::Interrupt),
            Self::Stop(StopSignal::Terminate),
            Self::Reload,
            Self::Reopen,
            Self::ForSupervisor(Upgrade),
        ];
        // Where there is a terminal these two are its own: a program in the background that reads from it is stopped by one.
        if !Terminal::at_start().is_there() {
            signals.extend([Self::ForSupervisor(More), Self::ForSupervisor(Fewer)]);
        }
        signals
    }

    /// The number of the signal (POSIX).
    pub fn number(self) -> u8 {
        match self {
            Self::Stop(stop) => stop.number(),
            Self::Reload => 1,
            Self::Reopen => u8::try_from(signal_hook::consts::SIGUSR1).unwrap_or(10),
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
        let number = match self {
            Self::Upgrade => signal_hook::consts::SIGUSR2,
            Self::More => signal_hook::consts::SIGTTIN,
            Self::Fewer => signal_hook::consts::SIGTTOU,
        };
        u8::try_from(number).unwrap_or_default()
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
    /// SIGHUP because the terminal has hung up; the command finds that out, a host reports [`Signal::Reload`].
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

/// Which application to load and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationSpec {
    /// As the user wrote it: `module`, `module:attr`, `path/to/app.py` or `path/to/app.py:attr`.
    pub target: String,
    /// The calling convention.
    pub interface: Interface,
    /// The greatest number of application threads, at least 1.
    pub max_threads: usize,
    /// Whether the attribute is called without arguments to get the application.
    pub factory: bool,
    /// Where modules are looked for, instead of the current directory.
    pub app_dir: Option<PathBuf>,
    /// Variables to set before the application is imported, unless the environment has them.
    pub environment: Vec<(String, String)>,
    /// Variables to set whatever the environment has: those of the user that the process has become.
    pub identity: Vec<(String, String)>,
    /// The URL path of the application: `/`, or one without a slash at its end.
    pub root_path: String,
    /// The event loop of an ASGI application: `auto`, `asyncio`, `uvloop` or `module:factory`.
    pub event_loop: String,
    /// Whether ASGI applications are told of the start and the end.
    pub lifespan: Lifespan,
    /// Whether ASGI applications are offered that the server sends files by their paths.
    pub pathsend: bool,
    /// How long a request may be in the application before it is reported; `None` for ever.
    pub stuck_after: Option<Duration>,
    /// Somebody works on the application: what its host can say of errors it shows in the browser, to whoever shows this token. An application that
    /// cannot be loaded is one that tells why.
    pub development: Option<String>,
}

/// A program that embeds the command hears here what happens to the workers. One thread, `maitred-hooks`, makes all calls, in the process
/// that loads no application if there are several workers, else in the only one.
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

/// Which hooks to load and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksSpec {
    /// As the user wrote it: `module` or `path/to/file.py`.
    pub target: String,
    /// Where modules are looked for, instead of the current directory.
    pub app_dir: Option<PathBuf>,
    /// Variables to set before, unless the environment has them.
    pub environment: Vec<(String, String)>,
    /// Variables to set whatever the environment has: those of the user that the process has become.
    pub identity: Vec<(String, String)>,
}

/// Whether ASGI applications are told of the start and the end of the server (ASGI Lifespan specification 2.0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifespan {
    /// If they take part.
    #[default]
    Auto,
    /// They have to take part; one that raises instead cannot be served.
    On,
    /// They are not.
    Off,
}

/// The calling convention of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// The host looks at the application and decides.
    #[default]
    Auto,
    /// WSGI (PEP 3333).
    Wsgi,
    /// ASGI 3.
    Asgi,
}

/// A loaded application.
pub struct Application {
    /// What answers requests.
    pub handler: Arc<dyn Handler>,
    /// Who makes its threads.
    pub threads: Arc<dyn ThreadHost>,
    /// For the start-up line, for example `WSGI app:app`.
    pub description: String,
    /// For the same line, what it runs on if not on application threads: `one event loop (uvloop)`.
    pub runs_on: Option<String>,
}

/// Why an application could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// What is wrong, in one line.
    pub what: String,
    /// What to do about it, in one line.
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
