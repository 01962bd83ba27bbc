//! The process as whoever has started it sees it: a service manager, a container, a terminal, a script with a PID file.
//!
//! ```text
//! begin        what the service manager has handed over is taken; the terminal is looked at; signals are kept (early_signals.rs)
//! starts       EXTEND_TIMEOUT_USEC, once
//! claim        the PID file is made and locked
//! serves       the PID file has the number; READY
//! SIGHUP       RELOADING, and READY again when the new configuration serves; or the end, if the terminal has hung up
//! waiting      WATCHDOG, at half of its time
//! stops        STOPPING; from then on EXTEND_TIMEOUT_USEC as long as it takes
//! ```
//! The same for a process that serves and for one that supervises others. Leaves out: datagrams and files
//! (service_manager and pid_file of maitred-io).

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use maitred_server::Log;
use maitred_server::pid_file::{NotClaimed, PidFile};
use maitred_server::service_manager::{Handed, Notifier, Passing};
use maitred_server::terminal::Terminal;
use signal_hook::consts::SIGTERM;

use crate::config::Config;
use crate::early_signals::EarlySignals;
use crate::host::{Signal, Signals, StopSignal};
use crate::origins::Origins;
use crate::passed;
use crate::problem::Problem;
use crate::validation::Checked;

/// The process that a container begins with: what it does not handle does not reach it (pid_namespaces(7)).
const FIRST_PROCESS: u32 = 1;

/// How much longer the end may take each time that this is said, and how often it is.
const EXTENSION: Duration = Duration::from_secs(15);
const EXTEND_EVERY: Duration = Duration::from_secs(5);

/// How much more than `start-timeout` the start may take, with everything before and after the workers'.
const START_GRACE: Duration = Duration::from_secs(10);

/// See the module text.
pub(crate) struct Service {
    notifier: Option<Notifier>,
    /// What was passed, until it is assigned.
    sockets: Passing,
    /// Lines about what cannot be used, for the log once there is one.
    warnings: RefCell<Vec<String>>,
    terminal: Terminal,
    early_signals: EarlySignals,
    pid_file: Option<PidFile>,
    /// What it is doing, in the words for the service manager.
    status: RefCell<String>,
    /// Whether SIGTERM ends the process at once.
    ends_at_once: Arc<AtomicBool>,
    next: Cell<Next>,
    /// Of a worker, whether its supervisor wants the end at once. Otherwise a second signal says so.
    at_once: Option<Arc<AtomicBool>>,
    /// The end has been told.
    stops: Cell<bool>,
    /// Something could not be told.
    failed: Cell<bool>,
}

/// When something is to be said next.
#[derive(Clone, Copy, Default)]
struct Next {
    alive: Option<Instant>,
    extension: Option<Instant>,
}

impl Service {
    /// To be called first: while the process has one thread, and before signals are handled.
    pub(crate) fn begin() -> Self {
        let service = Self::with(Handed::take(), Terminal::at_start());
        if std::process::id() == FIRST_PROCESS {
            // While the application is imported: nobody else handles it, and the kernel would drop it.
            let code = 128 + i32::from(StopSignal::Terminate.number());
            let flag = Arc::clone(&service.ends_at_once);
            // Without it the process cannot be stopped for a moment.
            let _ = signal_hook::flag::register_conditional_shutdown(SIGTERM, code, flag);
        }
        service
    }

    /// That of a worker: its supervisor has all of it.
    pub(crate) fn of_worker(at_once: Arc<AtomicBool>) -> Self {
        Self { at_once: Some(at_once), ..Self::with(Handed::default(), Terminal::default()) }
    }

    fn with(Handed { notifier, sockets, troubles }: Handed, terminal: Terminal) -> Self {
        let alive = notifier.as_ref().and_then(Notifier::watchdog).map(|beat| Instant::now() + beat);
        Self {
            notifier,
            sockets,
            warnings: RefCell::new(troubles),
            terminal,
            early_signals: EarlySignals::keep(terminal),
            pid_file: None,
            status: RefCell::default(),
            ends_at_once: Arc::new(AtomicBool::new(true)),
            next: Cell::new(Next { alive, extension: None }),
            at_once: None,
            stops: Cell::default(),
            failed: Cell::default(),
        }
    }

    /// The sockets that were passed, once.
    pub(crate) fn take_sockets(&mut self) -> Passing {
        std::mem::take(&mut self.sockets)
    }

    /// Puts sockets that were passed in the place of the listeners that stand for them, as [`passed::assign`] says.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn assign(
        &mut self,
        passing: Passing,
        checked: &mut Checked,
        origins: &Origins,
    ) -> Result<Option<Vec<Option<OwnedFd>>>, Problem> {
        passed::assign(checked, origins, passing, self.warnings.get_mut())
    }

    /// Makes the PID file, if one is asked for. With the rights that the process has so far.
    ///
    /// # Errors
    /// A live server has it, or it cannot be made.
    pub(crate) fn claim_pid_file(&mut self, config: &Config, origins: &Origins) -> Result<(), Problem> {
        let Some(path) = &config.pid_file else { return Ok(()) };
        let shown = path.display();
        let claimed = PidFile::claim(path).map_err(|error| {
            let (what, remedy) = match &error {
                NotClaimed::Held(holder) => (
                    format!("{shown} belongs to {holder}, which runs"),
                    match holder.process {
                        Some(process) => format!("stop it (kill {process}), or name another file"),
                        None => "stop it, or name another file".to_owned(),
                    },
                ),
                NotClaimed::SomethingElse => {
                    (format!("{shown} is no PID file: {error}"), "name another file".to_owned())
                }
                NotClaimed::System(error) => {
                    let remedy = "name one in a folder that exists and that this user may write to";
                    (format!("{shown} cannot be made: {error}"), remedy.to_owned())
                }
            };
            Problem::new(origins.describe("pid-file"), what, remedy)
        })?;
        self.pid_file = Some(claimed);
        Ok(())
    }

    /// The PID file, for a successor of this process.
    pub(crate) fn pid_file(&self) -> Option<BorrowedFd<'_>> {
        self.pid_file.as_ref().map(AsFd::as_fd)
    }

    /// Takes the PID file over from the process that this one replaces. Where that has none, or another one, it is claimed.
    pub(crate) fn take_over_pid_file(&mut self, config: &Config, handed: Option<OwnedFd>, log: &Log) {
        let Some(path) = &config.pid_file else { return };
        let taken = handed.and_then(|file| PidFile::take_over(path, file).ok());
        let file = match taken.map_or_else(|| PidFile::claim(path), Ok) {
            Ok(file) => self.pid_file.insert(file),
            Err(error) => {
                return log
                    .error(format_args!("--pid-file: {} cannot be taken over: {error}", path.display()));
            }
        };
        if let Err(error) = file.write() {
            log.error(format_args!("--pid-file: the number of the process cannot be written: {error}"));
        }
    }

    /// Writes the number of the process into the PID file: it serves.
    pub(crate) fn write_pid_file(&self, log: &Log) {
        if let Some(Err(error)) = self.pid_file.as_ref().map(PidFile::write) {
            log.error(format_args!("--pid-file: the number of the process cannot be written: {error}"));
        }
    }

    /// Says that it may take so long until it serves; zero leaves that to the service manager.
    pub(crate) fn starts(&self, limit: Duration) {
        if let Some(notifier) = self.notifier.as_ref().filter(|_| !limit.is_zero()) {
            // What cannot be told is found out, and said, with READY.
            let _ = notifier.extend(limit + START_GRACE);
        }
    }

    /// Tells whoever waits for it that it serves. `status` is what `systemctl status` shows.
    pub(crate) fn serves(&self, status: &str, log: &Log) {
        self.warnings.take().iter().for_each(|warning| log.warn(format_args!("{warning}")));
        status.clone_into(&mut self.status.borrow_mut());
        self.tell(log, |notifier| notifier.ready(status));
    }

    /// Says that the configuration is read again, before and after `read`.
    pub(crate) fn reloads(&self, log: &Log, read: impl FnOnce()) {
        self.begins_reload(log);
        read();
        self.ends_reload(log);
    }

    /// Says that the configuration is read again, until [`ends_reload`](Self::ends_reload).
    pub(crate) fn begins_reload(&self, log: &Log) {
        self.tell(log, Notifier::reloading);
    }

    /// Says that it serves with the configuration of now.
    pub(crate) fn ends_reload(&self, log: &Log) {
        self.tell(log, |notifier| notifier.ready(&self.status.borrow()));
    }

    /// What the successor of this process needs in its environment.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let variables = self.notifier.as_ref().map(Notifier::variables).unwrap_or_default();
        variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// Says that another process is the one of the service from now on; this one is nobody's business any more.
    pub(crate) fn hands_over(&mut self, process: u32, log: &Log) {
        self.tell(log, |notifier| notifier.main_process(process));
        self.notifier = None;
        self.next.take();
    }

    /// Says that the process will end, and from then on that it takes its time.
    pub(crate) fn stops(&self, status: &str, log: &Log) {
        let is_known = self.stops.replace(true);
        self.tell(log, |notifier| if is_known { notifier.status(status) } else { notifier.stopping(status) });
        self.extend();
    }

    /// The signals of `inner`, with what is to be said while it waits for them: beats, more time for the end. SIGHUP of a terminal
    /// that has hung up ends the process.
    pub(crate) fn signals<'a>(&'a self, inner: Box<dyn Signals>) -> Watched<'a> {
        self.handles_signals();
        Watched { service: self, inner, ends: false }
    }

    /// Somebody else answers signals from now on, also those that [came before](Self::early_signal).
    pub(crate) fn handles_signals(&self) {
        self.ends_at_once.store(false, Ordering::Relaxed);
        self.early_signals.end();
    }

    /// A signal that came before anybody answered it; each is told once.
    pub(crate) fn early_signal(&self) -> Option<Signal> {
        self.early_signals.next()
    }

    /// Whether a SIGHUP that has come says that the terminal has hung up.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.terminal.has_hung_up()
    }

    /// When [`beat`](Self::beat) is to be called next.
    pub(crate) fn due(&self) -> Option<Instant> {
        let Next { alive, extension } = self.next.get();
        alive.into_iter().chain(extension).min()
    }

    /// Says what is to be said by now. What cannot be said is told in the log the next time that something changes.
    pub(crate) fn beat(&self) {
        let Some(notifier) = &self.notifier else { return };
        let now = Instant::now();
        let mut next = self.next.get();
        if next.alive.is_some_and(|at| at <= now) {
            self.note(notifier.alive());
            next.alive = notifier.watchdog().map(|beat| now + beat);
            self.next.set(next);
        }
        if next.extension.is_some_and(|at| at <= now) {
            self.extend();
        }
    }

    fn extend(&self) {
        let Some(notifier) = &self.notifier else { return };
        self.note(notifier.extend(EXTENSION));
        let extension = Some(Instant::now() + EXTEND_EVERY);
        self.next.set(Next { extension, ..self.next.get() });
    }

    fn note(&self, told: io::Result<()>) {
        self.failed.set(self.failed.get() || told.is_err());
    }

    fn tell(&self, log: &Log, what: impl FnOnce(&Notifier) -> io::Result<()>) {
        let Some(notifier) = &self.notifier else { return };
        if let Err(error) = what(notifier)
            && !self.failed.replace(true)
        {
            log.warn(format_args!("the service manager cannot be told anything (NOTIFY_SOCKET): {error}"));
        }
    }
}

/// Signals of a process that has a service manager, a terminal, or neither.
pub(crate) struct Watched<'a> {
    service: &'a Service,
    inner: Box<dyn Signals>,
    /// One that ends the process has come.
    ends: bool,
}

impl Signals for Watched<'_> {
    fn wait(&mut self, limit: Option<Duration>) -> Option<Signal> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            self.service.beat();
            let at_once = self.service.at_once.as_ref();
            if self.ends && at_once.is_some_and(|at_once| at_once.swap(false, Ordering::Relaxed)) {
                return Some(Signal::Stop(StopSignal::Terminate));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let due = self.service.due().map(|due| due.saturating_duration_since(Instant::now()));
            let next = left.into_iter().chain(due).min();
            match self.service.early_signal().or_else(|| self.inner.wait(next)) {
                // The shell and the kernel may send it both: the second one says nothing new.
                Some(Signal::Reload) if !self.ends && self.service.has_hung_up() => {
                    self.ends = true;
                    return Some(Signal::Stop(StopSignal::Hangup));
                }
                // A service manager may have sent one as well as the supervisor.
                Some(Signal::Stop(_)) if self.ends && at_once.is_some() => {}
                Some(signal) => {
                    self.ends |= matches!(signal, Signal::Stop(_));
                    return Some(signal);
                }
                None if left.is_some_and(|left| due.is_none_or(|due| left <= due)) => return None,
                None => {}
            }
        }
    }
}
