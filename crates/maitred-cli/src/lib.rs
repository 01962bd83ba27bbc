//! The maitred command: options, configuration files, check, run.
//!
//! A library because two programs offer the command: the Rust binary `maitred`, and the Python package,
//! whose [`Host`] imports applications. Every option is defined once, in `options`. Leaves out:
//! serving (maitred-server) and loading of applications (the host).

mod accounts;
mod application_values;
mod check;
mod commands;
mod completion;
mod config;
mod configuration;
mod control;
mod ctl;
mod development;
mod drain_delay;
mod early;
mod early_signals;
mod env_file;
mod error_page;
mod filters;
mod health;
mod help;
mod holder;
mod hooks;
mod host;
mod hosts;
mod http2;
mod install_service;
mod languages;
mod lifetime;
mod limits;
mod listen;
mod listeners;
mod loading;
mod log_values;
mod logs;
mod man;
mod mounted;
mod operator;
mod options;
mod origins;
mod output;
mod passed;
mod passed_name;
mod passwd;
mod pools;
mod problem;
mod proxies;
mod reference;
mod reload;
mod rights;
mod run;
mod service;
mod settings;
mod sockets;
mod sources;
mod supervisor;
mod tls;
mod tls_values;
mod tls_watch;
mod tool_line;
mod top;
mod validation;
mod value;
mod websockets;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

pub use accounts::Account;
pub use application_values::ApplicationValues;
pub use config::{
    BasicAuthConfig, Config, DevelopmentConfig, FilterConfig, HostConfig, NamedPool, PoolConfig, SiteConfig,
    WorkersConfig,
};
pub use error_page::ErrorPageFile;
pub use host::{
    Application, ApplicationSpec, ErrorLog, Hooks, HooksSpec, Host, LoadError, LogName, Signal, Signals,
    StopSignal, SupervisorSignal, Voice,
};
pub use listen::{BadListenAddress, ListenAddress};
pub use log_values::LogPlace;
pub use maitred_io::standard_streams::fill as fill_standard_streams;
pub use maitred_server::printable;
pub use mounted::MountedApplication;
pub use output::{EXIT_FAILURE, EXIT_SUCCESS, EXIT_USAGE};
pub use problem::Problem;
pub use proxies::{ForwardedField, TrustedProxy};
pub use tls_values::{ClientAuth, Hsts, MinVersion, TlsConfig, UnknownName};
pub use value::{AcceptModel, ControlSocket, Http2, Interface, Lifespan, LogLevel, Mount};
pub use websockets::WebSocketConfig;

use commands::Command;
use commands::Run;
use options::renamed::NAMES;
use output::{print, say};
use sources::{Inputs, Loaded};
use supervisor::{AS_SUCCESSOR, AS_TEMPLATE, AS_WORKER, Predecessor, Preloading, Worker};

/// Runs the whole command. `arguments` are those of the process, beginning with the program's name, which
/// is ignored; `host` loads applications. Returns the exit code when the server has ended: 0, 1 or 2 as
/// above, or 128 and the number of the signal that ended it at once. Messages for the user go to standard
/// error, output that the user asked for (`--help`, `check`) to standard output.
pub fn main(arguments: Vec<OsString>, host: &dyn Host) -> u8 {
    let ended = inputs(arguments).and_then(|mut inputs| {
        if let Some((first, rest)) = inputs.arguments.split_first() {
            match commands::find(first).map(|word| word.run) {
                Some(Run::Tool(run)) => return run(rest, host),
                Some(Run::InstallService) => return install_service::install_service(rest, host),
                Some(Run::Options(_)) | None => {}
            }
        }
        let mut part = Part::of(&mut inputs)?;
        if let Part::Template(template) = part {
            match template.run(&mut inputs, host)? {
                Some(code) => return Ok(code),
                None => part = Part::worker(&mut inputs)?,
            }
        }
        let loaded = sources::load(&inputs).inspect_err(|problem| part.failed(problem))?;
        // SIGHUP reads the files again, when the current folder may be another one.
        inputs.folder = std::env::current_dir().unwrap_or(inputs.folder);
        execute(&loaded, inputs, part, host)
    });
    match ended {
        Ok(code) => code,
        Err(problem) => {
            say(&problem.to_string());
            EXIT_USAGE
        }
    }
}

/// The part of this process among the processes of a server.
enum Part {
    /// The only process, or the supervisor.
    First,
    Worker(Worker),
    /// The process from which workers are forked.
    Template(Preloading),
    /// The supervisor that takes over from another one.
    Successor(Predecessor),
}

impl Part {
    /// Reads the part from the first argument and takes that argument out. Only a supervisor gives such arguments.
    fn of(inputs: &mut Inputs) -> Result<Self, Problem> {
        match inputs.arguments.first().map(String::as_str) {
            Some(AS_WORKER) => {
                inputs.arguments.remove(0);
                Self::worker(inputs)
            }
            Some(AS_TEMPLATE) => {
                inputs.arguments.remove(0);
                Preloading::join().map(Self::Template)
            }
            Some(AS_SUCCESSOR) => {
                inputs.arguments.remove(0);
                Predecessor::join().map(Self::Successor)
            }
            _ => Ok(Self::First),
        }
    }

    fn worker(inputs: &mut Inputs) -> Result<Self, Problem> {
        let worker = Worker::join()?;
        inputs.files = Some(worker.setup.files.clone());
        inputs.workers = Some(worker.setup.workers);
        Ok(Self::Worker(worker))
    }

    /// In a worker, tells the supervisor why this process does not start.
    fn failed(&self, problem: &Problem) {
        if let Self::Worker(worker) = self {
            worker.failed(problem);
        }
    }
}

fn execute(loaded: &Loaded, inputs: Inputs, part: Part, host: &dyn Host) -> Result<u8, Problem> {
    let warnings = loaded.warnings.iter().filter(|_| !matches!(part, Part::Worker(_)));
    for warning in warnings {
        say(&format!("warning: {warning}"));
    }
    if matches!(loaded.command, Command::Run | Command::Check) {
        logs::check_logging(&loaded.config, &loaded.origins, host)
            .inspect_err(|problem| part.failed(problem))?;
        validation::change_folder(&loaded.config, &loaded.origins)
            .inspect_err(|problem| part.failed(problem))?;
    }
    match loaded.command {
        Command::Run | Command::Develop => run::run(loaded, inputs, part, host),
        Command::Check => {
            print(&check::report(loaded));
            let checked = validation::check(&loaded.config, &loaded.origins)?;
            for program in checked.programs() {
                loading::look(program, &loaded.config, &checked, host)?;
            }
            let tls = tls::Material::read(&loaded.config, &loaded.origins, tls::From::Disk)?;
            let lines = tls.iter().flat_map(|tls| tls::report(tls));
            Ok(print(&lines.map(|line| format!("# TLS: {line}\n")).collect::<String>()))
        }
        Command::Reference => Ok(print(&reference::markdown())),
        Command::Help => help::run(&loaded.topic, commands::WORDS, host),
        Command::Version => {
            Ok(print(&format!("maitred {} ({})\n", env!("CARGO_PKG_VERSION"), host.languages())))
        }
    }
}

/// Reads arguments and variables as text; both must be UTF-8.
fn inputs(arguments: Vec<OsString>) -> Result<Inputs, Problem> {
    let text = |place: &str, value: OsString| {
        value.into_string().map_err(|value| {
            Problem::new(place, format!("{} is not UTF-8", value.display()), "use UTF-8 text")
        })
    };
    let arguments = arguments.into_iter().skip(1).map(|argument| text("command line", argument));
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| sources::environment::is_read(name))
        .map(|(name, value)| Ok((name.clone(), text(&name, value)?)));
    let mut environment: Vec<(String, String)> = environment.collect::<Result<_, Problem>>()?;
    environment.sort();
    Ok(Inputs {
        arguments: arguments.collect::<Result<_, _>>()?,
        environment,
        folder: ".".into(),
        started_in: current_folder(),
        earlier: NAMES,
        files: None,
        workers: None,
    })
}

/// The folder in which the process was started, by the shell's name for it (`PWD`): a link in that path may lead elsewhere when the next
/// worker starts there.
fn current_folder() -> PathBuf {
    let real = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let named = std::env::var_os("PWD").map(PathBuf::from).filter(|named| named.is_absolute());
    let is_same = |named: &PathBuf| std::fs::canonicalize(named).is_ok_and(|found| found == real);
    named.filter(is_same).unwrap_or(real)
}
