//! Loading of applications by the host: their specification, and messages to the user.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use maitred_config::validation::Program;
use maitred_config::{Checked, Config, Problem, Wanted, commands};
use maitred_server::Log;

use crate::application_values::ApplicationValues;
use crate::host::{Application, ApplicationSpec, Host, LoadError};

/// Loads an application. `is_other` if the process has become another user; `development` is the token of the page with tracebacks.
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

/// Time of an import after which a line tells of it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes a line if an import takes longer than [`PATIENCE`]. Dropping this ends the wait.
pub(crate) struct Importing {
    /// Dropped at the end of the import, which the waiting thread sees.
    _ends: Sender<()>,
}

impl Importing {
    /// Begins to wait, if `tells`.
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

/// Checks whether an application exists, without running it.
///
/// # Errors
/// The application does not exist.
pub fn look(program: &Program, config: &Config, checked: &Checked, host: &dyn Host) -> Result<(), Problem> {
    host.look(&spec(program, config, checked, false)).map_err(|error| not_loaded(&program.name, error))
}

/// The specification of an application, for the host. `is_other` if the process has become another user.
pub(crate) fn spec(program: &Program, config: &Config, checked: &Checked, is_other: bool) -> ApplicationSpec {
    let identity = checked.wanted.as_ref().filter(|_| is_other);
    ApplicationSpec {
        target: program.name.clone(),
        max_threads: config.most_threads(),
        values: values(program, config),
        environment: checked.environment.clone(),
        identity: identity.map(Wanted::environment).unwrap_or_default(),
        root_path: program.root_path.clone(),
        stuck_after: Some(config.stuck_after).filter(|limit| !limit.is_zero()),
        development: None,
    }
}

/// The values for the language of an application.
fn values(program: &Program, config: &Config) -> ApplicationValues {
    ApplicationValues::of_folder(program.app_dir.as_ref())
        .with("interface", program.interface.word())
        .with_switch("factory", program.factory)
        .with("event-loop", &config.event_loop)
        .with("lifespan", config.lifespan)
        .with_switch("pathsend", config.pathsend)
}

/// The line about an application that could not be loaded.
pub(crate) fn not_loaded(name: &str, error: LoadError) -> Problem {
    let remedy = match commands::meant(name) {
        Some(command) => format!("{} (or did you mean 'maitred {command}'?)", error.remedy),
        None => error.remedy,
    };
    Problem::new(name, error.what, remedy)
}
