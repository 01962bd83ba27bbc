//! Processes that workers are forked from (`preload`), on both sides.
//!
//! ```text
//! supervisor                                     template (one thread, the application imported, no socket of ours)
//!     ---- setup ------------------------------------->
//!     <--- ready, or failed (why) ---------------------
//!     ---- fork, with the worker's channel -----------> forks twice; the process between them ends
//!     <--- forked (its number), or refused (why) ------
//! ```
//! The supervisor adopts orphans, so the worker becomes its child. The worker goes on like a started one: it reads its setup from its channel.
//! The template may therefore end at any time. It ends when its supervisor is gone or starts a new template.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use maitred_config::{EXIT_SUCCESS, Inputs, Problem, sources, validation};
use maitred_io::channel::Channel;
use maitred_io::child::{self, Child, Ended, Program};
use serde::{Deserialize, Serialize};

use super::Happening;
use super::message::{Setup, read, read_setup, to_text, unreadable};
use crate::host::{Host, LoadError, Voice};
use crate::loading;

/// The first argument of a template.
pub(crate) const AS_TEMPLATE: &str = "--as-template";

/// Longest wait for a fork, during which the supervisor does nothing else.
const FORK_LIMIT: Duration = Duration::from_secs(5);

/// A template, on the supervisor's side. Dropping this kills the template.
pub(crate) struct Template {
    /// Number of the template, so that late news of an earlier one can be told apart.
    pub(crate) number: u64,
    pub(crate) is_ready: bool,
    child: Arc<Child>,
    channel: Channel,
}

impl Template {
    /// Starts a template. `happenings` gets its news: ready or failed, and later its end.
    ///
    /// # Errors
    /// No process, thread or descriptor can be had.
    pub(crate) fn start(
        number: u64,
        program: &Program,
        setup: &Setup,
        happenings: &Sender<Happening>,
    ) -> io::Result<Self> {
        let (own, other) = Channel::pair()?;
        let receiving = own.try_clone()?;
        own.send(&to_text(setup), &[])?;
        let child = Arc::new(Child::start(program, other.into_descriptor())?);
        let this = Self { number, is_ready: false, child: Arc::clone(&child), channel: own };
        let told = happenings.clone();
        let waits = thread::Builder::new().name("maitred-template".to_owned()).spawn(move || {
            let said = receiving.receive().ok().map(|message| read(&message.text));
            drop(receiving);
            let failed = match said {
                Some(Some(FromTemplate::Ready)) => {
                    let _ = told.send(Happening::Template(number, Ok(())));
                    None
                }
                Some(Some(FromTemplate::Failed(cause))) => Some(cause),
                Some(_) => {
                    child.kill();
                    Some(unreadable())
                }
                None => None,
            };
            let ended = match child.wait() {
                Ok(Ended::Code(code)) => format!("the process that preloads has ended with exit code {code}"),
                Ok(Ended::Signal(signal)) => {
                    format!("the process that preloads was killed by signal {signal}")
                }
                Err(error) => format!("the process that preloads is gone: {error}"),
            };
            let _ = told.send(Happening::Template(number, Err(failed.unwrap_or(ended))));
        });
        waits.inspect_err(|_| this.child.end_now())?;
        Ok(this)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Has the template fork a worker with this standard input.
    ///
    /// # Errors
    /// The template cannot fork, or it is gone.
    pub(crate) fn fork(&self, input: &OwnedFd) -> io::Result<Child> {
        self.channel.set_receive_limit(Some(FORK_LIMIT))?;
        self.channel.send(b"fork", &[input.as_fd()])?;
        match read(&self.channel.receive()?.text) {
            Some(FromTemplate::Forked(pid)) => Child::adopt(pid),
            Some(FromTemplate::Failed(cause)) => Err(io::Error::other(cause)),
            _ => Err(io::Error::other(unreadable())),
        }
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // Killed, since a template serves no client, and may be stuck in its import.
        self.child.kill();
    }
}

#[derive(Serialize, Deserialize)]
enum FromTemplate {
    Ready,
    Failed(String),
    Forked(u32),
}

/// This process as a template.
pub(crate) struct Preloading {
    channel: Channel,
    setup: Setup,
}

impl Preloading {
    /// Receives the setup from the supervisor.
    pub(crate) fn join() -> Result<Self, Problem> {
        let wrong = |what: String| {
            Problem::new(
                AS_TEMPLATE,
                what,
                "it is the supervisor's; start 'maitred --preload --workers N …' instead",
            )
        };
        let channel = Channel::take_standard_input()
            .map_err(|error| wrong(format!("this process has no supervisor: {error}")))?;
        let received =
            channel.receive().map_err(|error| wrong(format!("the supervisor is gone: {error}")))?;
        let setup = read_setup(AS_TEMPLATE, &received.text).inspect_err(|problem| {
            // The supervisor logs this. If the supervisor cannot read this, standard error has it.
            let _ = channel.send(&to_text(&FromTemplate::Failed(problem.to_string())), &[]);
        })?;
        // The kernel ends the template with its supervisor, also while it imports: a template has no thread to watch the channel. The parent in the
        // sense of prctl(2) is the thread that has started the template, which is the supervisor's main thread.
        child::end_with_parent().map_err(|error| wrong(error.to_string()))?;
        Ok(Self { channel, setup })
    }

    /// Loads the applications and forks workers until the supervisor is gone; then returns the exit code. Returns none in a fork, which goes on as
    /// a worker that was just started, but has its applications loaded.
    pub(crate) fn run(self, inputs: &mut Inputs, host: &dyn Host) -> Result<Option<u8>, Problem> {
        inputs.files = Some(self.setup.files.clone());
        let loaded = self.load(inputs, host).inspect_err(|problem| {
            let failed = FromTemplate::Failed(problem.to_string());
            // A supervisor that is gone needs no answer.
            let _ = self.channel.send(&to_text(&failed), &[]);
        });
        loaded?;
        if self.channel.send(&to_text(&FromTemplate::Ready), &[]).is_err() {
            return Ok(Some(EXIT_SUCCESS));
        }
        while let Ok(message) = self.channel.receive() {
            let Some(input) = message.descriptors.into_iter().next() else { continue };
            let answer = match host.fork() {
                Ok(Some(pid)) => FromTemplate::Forked(pid),
                Ok(None) => return self.become_worker(&input, inputs).map(|()| None),
                Err(error) => FromTemplate::Failed(error.to_string()),
            };
            drop(input);
            if self.channel.send(&to_text(&answer), &[]).is_err() {
                break;
            }
        }
        Ok(Some(EXIT_SUCCESS))
    }

    fn load(&self, inputs: &Inputs, host: &dyn Host) -> Result<(), Problem> {
        let loaded = sources::load(inputs)?;
        validation::change_folder(&loaded.config, &loaded.origins)?;
        let checked = validation::check(&loaded.config, &loaded.origins)?;
        let level = loaded.config.log_level;
        // Entries go to standard error: a log has a thread, and a template has only one. Workers open their own logs.
        host.use_error_log(Arc::new(move |voice, entry| match voice {
            Voice::Server(of) if of > level => {}
            _ => maitred_config::output::say_plain(entry),
        }));
        for program in checked.programs() {
            let spec = loading::spec(program, &loaded.config, &checked, self.setup.acts);
            host.preload(&spec).map_err(|error| loading::not_loaded(&program.name, error))?;
        }
        let place = loaded.origins.describe("preload");
        host.prepare_fork().map_err(|LoadError { what, remedy }| Problem::new(place, what, remedy))
    }

    /// Makes a fork like a process that the supervisor has started. The template's channel is closed here.
    fn become_worker(self, input: &OwnedFd, inputs: &Inputs) -> Result<(), Problem> {
        let system = |error: io::Error| {
            Problem::new(
                AS_TEMPLATE,
                format!("the fork cannot become a worker: {error}"),
                "see the limits of the process",
            )
        };
        child::lead_group().map_err(system)?;
        Channel::give_standard_input(input).map_err(system)?;
        std::env::set_current_dir(&inputs.started_in).map_err(system)
    }
}

/// The arguments of a template, behind the command of the program.
pub(crate) fn arguments(inputs: &Inputs) -> impl Iterator<Item = OsString> {
    [AS_TEMPLATE.into()].into_iter().chain(inputs.arguments.iter().map(OsString::from))
}
