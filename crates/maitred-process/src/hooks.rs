//! Functions of the operator beside the serving: before it starts, when a worker is ready, when one has ended.
//!
//! ```text
//! listening -> before_start -> workers: ready, exit, in the order in which it happens -> the end
//! ```
//! Hooks run in order on one thread of their own, in the supervisor or in the only process. Promises: no hook delays serving or supervision,
//! except `before_start`, which is waited for. Leaves out: loading of hooks (the host).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::Duration;

use maitred_config::{Checked, Loaded, Problem, Wanted};
use maitred_server::Log;

use crate::application_values::ApplicationValues;
use crate::host::{Hooks, HooksSpec, Host, LoadError};

/// Most calls that wait while a hook runs; later ones are dropped.
const MOST_WAITING: usize = 1_024;

/// Longest wait for hooks at the end of the process.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Time between two looks for an interruption.
const LOOK: Duration = Duration::from_millis(50);

enum Call {
    BeforeStart(Sender<Result<(), LoadError>>),
    Ready { worker: usize, pid: u32 },
    Exit { worker: usize, pid: u32, code: i32 },
}

/// The hooks of this process and their thread.
pub(crate) struct HookThread {
    /// The hooks as the user named them, for messages.
    name: String,
    calls: SyncSender<Call>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    /// No further call begins.
    closed: Arc<AtomicBool>,
    /// Locked while a hook runs.
    running: Arc<Mutex<()>>,
    told: AtomicBool,
    log: Arc<Log>,
    /// Variables of the configuration that only the hooks of this process need.
    added: Vec<String>,
}

impl HookThread {
    /// Loads the hooks, if there are any. `is_other` if the process has become another user.
    ///
    /// # Errors
    /// The hooks cannot be loaded, or there is no thread.
    pub(crate) fn load(
        host: &dyn Host,
        loaded: &Loaded,
        checked: &Checked,
        is_other: bool,
        log: &Arc<Log>,
    ) -> Result<Option<Self>, Problem> {
        let (config, place) = (&loaded.config, loaded.origins.describe("hooks"));
        let spec = config.hooks.as_ref().map(|target| HooksSpec {
            target: target.display().to_string(),
            values: ApplicationValues::of_folder(config.site.app_dir.as_ref()),
            environment: checked.environment.clone(),
            identity: checked
                .wanted
                .as_ref()
                .filter(|_| is_other)
                .map(Wanted::environment)
                .unwrap_or_default(),
        });
        let absent = checked.environment.iter().map(|(name, _)| name);
        let added = absent.filter(|name| std::env::var_os(name).is_none()).cloned().collect();
        let hooks = host.hooks(spec.as_ref());
        let hooks = hooks.map_err(|error| Problem::new(place.as_str(), error.what, error.remedy))?;
        let Some(hooks) = hooks else { return Ok(None) };
        let name = spec.map_or_else(|| "hooks".to_owned(), |spec| spec.target);
        let started = Self::start(name, hooks, added, Arc::clone(log));
        started.map(Some).map_err(|error| {
            let remedy = "see what limits this process (ulimit, control group)";
            Problem::new(place, format!("no thread can be made: {error}"), remedy)
        })
    }

    fn start(
        name: String,
        hooks: Box<dyn Hooks>,
        added: Vec<String>,
        log: Arc<Log>,
    ) -> std::io::Result<Self> {
        let (calls, waiting) = mpsc::sync_channel(MOST_WAITING);
        let (alive, ended) = mpsc::channel();
        let (closed, running) = (Arc::<AtomicBool>::default(), Arc::<Mutex<()>>::default());
        let runs = {
            let (closed, running, log) = (Arc::clone(&closed), Arc::clone(&running), Arc::clone(&log));
            move || {
                run(&*hooks, &waiting, &closed, &running, &log);
                drop(hooks);
                drop(alive);
            }
        };
        thread::Builder::new().name("maitred-hooks".to_owned()).spawn(runs)?;
        Ok(Self { name, calls, ended, closed, running, told: AtomicBool::new(false), log, added })
    }

    /// Runs `before_start` to its end.
    ///
    /// # Errors
    /// The hook refuses the start, or the user interrupts it.
    pub(crate) fn before_start(&self, host: &dyn Host) -> Result<(), Problem> {
        let (sender, outcome) = mpsc::channel();
        self.call(Call::BeforeStart(sender));
        let problem = |what: String, remedy: String| {
            self.closed.store(true, Ordering::Relaxed);
            Err(Problem::new(format!("{}: before_start", self.name), what, remedy))
        };
        loop {
            match outcome.recv_timeout(LOOK) {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => return problem(error.what, error.remedy),
                Err(RecvTimeoutError::Timeout) if host.is_interrupted() => {
                    return problem("interrupted".to_owned(), "it must run to its end".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return problem("it has panicked".to_owned(), "see the message above".to_owned());
                }
            }
        }
    }

    pub(crate) fn worker_ready(&self, worker: usize, pid: u32) {
        self.call(Call::Ready { worker, pid });
    }

    /// `code` as in [`Hooks::worker_exit`].
    pub(crate) fn worker_exit(&self, worker: usize, pid: u32, code: i32) {
        self.call(Call::Exit { worker, pid, code });
    }

    /// Calls `act`, which must not run beside a hook, unless a hook runs. The caller tries again later.
    pub(crate) fn unless_running(&self, act: impl FnOnce()) {
        match self.running.try_lock() {
            Ok(_idle) => act(),
            Err(TryLockError::Poisoned(_)) => act(),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Variables of the configuration that this process has set for its hooks; workers set them themselves.
    pub(crate) fn added(&self) -> Vec<String> {
        self.added.clone()
    }

    /// Waits at most [`END_LIMIT`] for the calls so far. Calls that have not begun then are dropped.
    pub(crate) fn finish(self) {
        drop(self.calls);
        if self.ended.recv_timeout(END_LIMIT) == Err(RecvTimeoutError::Timeout) {
            self.closed.store(true, Ordering::Relaxed);
            self.log.error(format_args!(
                "{}: hooks have not ended within {} s: they are cut off",
                self.name,
                END_LIMIT.as_secs()
            ));
        }
    }

    fn call(&self, call: Call) {
        let dropped = match self.calls.try_send(call) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => "takes too long: calls of hooks are dropped",
            Err(TrySendError::Disconnected(_)) => "has ended: no further hook is called",
        };
        if !self.told.swap(true, Ordering::Relaxed) {
            self.log.error(format_args!("{}: the thread of the hooks {dropped}", self.name));
        }
    }
}

fn run(hooks: &dyn Hooks, calls: &Receiver<Call>, closed: &AtomicBool, running: &Mutex<()>, log: &Log) {
    while let Ok(call) = calls.recv() {
        if closed.load(Ordering::Relaxed) {
            return;
        }
        let _running = running.lock();
        let name = match call {
            Call::BeforeStart(_) => "before_start",
            Call::Ready { .. } => "worker_ready",
            Call::Exit { .. } => "worker_exit",
        };
        let called = catch_unwind(AssertUnwindSafe(|| match call {
            Call::BeforeStart(outcome) => _ = outcome.send(hooks.before_start()),
            Call::Ready { worker, pid } => hooks.worker_ready(worker, pid),
            Call::Exit { worker, pid, code } => hooks.worker_exit(worker, pid, code),
        }));
        if called.is_err() {
            log.error(format_args!("the hook {name} has panicked"));
        }
    }
}
