//! Serving: from the configuration to a running server, and from a signal to its end.

use crate::config::{self, Config, Target};
use crate::host::{Application, ApplicationSpec, Host};
use crate::problem::Problem;
use crate::sources::Loaded;
use crate::sources::command_line::meant_command;

/// Serves until a signal ends it; returns the exit code.
pub(crate) fn run(loaded: &Loaded, host: &dyn Host) -> Result<u8, Problem> {
    let config = &loaded.config;
    let checked = config::check(config, &loaded.origins)?;
    if checked.target.is_none() && checked.mounts.is_empty() {
        return Err(Problem::new(
            "nothing to serve",
            "no application was given",
            "for example: maitred app:app, maitred path/to/app.py, maitred folder/, or application = \
             \"app:app\" in maitred.toml",
        ));
    }
    let application = match &checked.target {
        Some(Target::Program(name)) => Some(load(name, config, host)?),
        _ => None,
    };
    let _ = application.map(|application| application.description);
    Ok(crate::EXIT_SUCCESS)
}

fn load(name: &str, config: &Config, host: &dyn Host) -> Result<Application, Problem> {
    let spec = ApplicationSpec {
        target: name.to_owned(),
        interface: config.interface,
        max_threads: config.max_threads,
    };
    host.load(&spec).map_err(|error| {
        let remedy = match meant_command(name) {
            Some(command) => format!("{} (or did you mean 'maitred {command}'?)", error.remedy),
            None => error.remedy,
        };
        Problem::new(name, error.what, remedy)
    })
}
