//! What a host is told of an application, and what the user is told if it cannot be loaded.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use maitred_server::Log;

use crate::commands;
use crate::config::Config;
use crate::host::{Application, ApplicationSpec, Host, LoadError};
use crate::problem::Problem;
use crate::rights::Wanted;
use crate::validation::{Checked, Program};

/// Loads an application. `is_other` if the process has become another user; `development` is the token of who works on the application.
pub(crate) fn load(
    program: &Program,
    config: &Config,
    checked: &Checked,
    (is_other, development): (bool, Option<&str>),
    host: &dyn Host,
) -> Result<Application, Problem> {
    let spec = ApplicationSpec {
        development: development.map(ToOwned::to_owned),
        ..spec(program, config, checked, is_other)
    };
    host.load(&spec).map_err(|error| not_loaded(&program.name, error))
}

/// How long applications are imported before that is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells that applications are imported, if that takes a while: until this is dropped.
pub(crate) struct Importing {
    /// Its end is what is waited for.
    _ends: Sender<()>,
}

impl Importing {
    /// From now on, with a line in the log, if `tells`.
    pub(crate) fn begin(names: Vec<String>, log: &Arc<Log>, tells: bool) -> Self {
        let (ends, ended) = channel();
        let log = Arc::clone(log);
        let is_any = !names.is_empty();
        let wait = move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                log.plain(&format!("importing {} …", names.join(", ")));
            }
        };
        if tells && is_any {
            // Without a thread there is no line.
            let _ = thread::Builder::new().name("maitred-import".to_owned()).spawn(wait);
        }
        Self { _ends: ends }
    }
}

/// Looks whether an application is there.
pub(crate) fn look(
    program: &Program,
    config: &Config,
    checked: &Checked,
    host: &dyn Host,
) -> Result<(), Problem> {
    host.look(&spec(program, config, checked, false)).map_err(|error| not_loaded(&program.name, error))
}

/// What a host is told of an application. `is_other` if the process has become another user.
pub(crate) fn spec(program: &Program, config: &Config, checked: &Checked, is_other: bool) -> ApplicationSpec {
    let identity = checked.wanted.as_ref().filter(|_| is_other);
    ApplicationSpec {
        target: program.name.clone(),
        interface: program.interface,
        max_threads: config.most_threads(),
        factory: program.factory,
        app_dir: program.app_dir.clone(),
        environment: checked.environment.clone(),
        identity: identity.map(Wanted::environment).unwrap_or_default(),
        root_path: program.root_path.clone(),
        event_loop: config.event_loop.clone(),
        lifespan: config.lifespan,
        pathsend: config.pathsend,
        stuck_after: Some(config.stuck_after).filter(|limit| !limit.is_zero()),
        development: None,
    }
}

/// The line about an application that could not be loaded.
pub(crate) fn not_loaded(name: &str, error: LoadError) -> Problem {
    let remedy = match commands::meant(name) {
        Some(command) => format!("{} (or did you mean 'maitred {command}'?)", error.remedy),
        None => error.remedy,
    };
    Problem::new(name, error.what, remedy)
}
