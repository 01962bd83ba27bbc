//! The maitred command: its words, and which crate answers each.
//!
//! A library because two programs offer the command: the Rust binary `maitred`, and the Python package,
//! whose [`Host`] imports applications. Leaves out: options (maitred-config), serving (maitred-process), tools (maitred-tools), and loading of
//! applications (the host).

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

use maitred_config::commands::{self, Command, Run, Tool};
use maitred_config::help::Help;
use maitred_config::options::renamed::NAMES;
use maitred_config::output::{EXIT_SUCCESS, EXIT_USAGE, print, say};
use maitred_config::problem::Problem;
use maitred_config::sources::{self, Inputs, Loaded};
use maitred_config::{completion, help, man, reference, validation};
use maitred_process::host::Host;
use maitred_process::part::Part;
use maitred_process::{logs, run};
use maitred_tools::{check, ctl, health, install_service, passwd, top};

/// Runs the whole command. `arguments` are those of the process, beginning with the program's name, which
/// is ignored; `host` loads applications. Returns the exit code when the server has ended: 0, 1 or 2 as
/// above, or 128 and the number of the signal that ended it at once. Messages for the user go to standard
/// error, output that the user asked for (`--help`, `check`) to standard output.
pub fn main(arguments: Vec<OsString>, host: &dyn Host) -> u8 {
    let ended = inputs(arguments).and_then(|mut inputs| {
        if let Some((first, rest)) = inputs.arguments.split_first()
            && let Some(Run::Tool(tool)) = commands::find(first).map(|word| word.run)
        {
            return run_tool(tool, rest, host);
        }
        let part = match Part::of(&mut inputs, host)? {
            ControlFlow::Continue(part) => part,
            ControlFlow::Break(code) => return Ok(code),
        };
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

fn execute(loaded: &Loaded, inputs: Inputs, part: Part, host: &dyn Host) -> Result<u8, Problem> {
    let warnings = loaded.warnings.iter().filter(|_| !part.is_worker());
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
        Command::Check => check::check(loaded, host),
        Command::Reference => Ok(print(&reference::markdown())),
        Command::Help => show_help(&loaded.topic, host),
        Command::Version => {
            Ok(print(&format!("maitred {} ({})\n", env!("CARGO_PKG_VERSION"), host.languages())))
        }
    }
}

/// Runs a command with arguments of its own.
fn run_tool(tool: Tool, arguments: &[String], host: &dyn Host) -> Result<u8, Problem> {
    match tool {
        Tool::Help => show_help(arguments, host),
        Tool::OfHost(name) => of_host(name, arguments, host),
        Tool::Ctl => Ok(ctl::main(arguments)),
        Tool::Top => top::top(arguments, host),
        Tool::Health => health::health(arguments),
        Tool::Report => maitred_report::report(arguments).map(|text| print(&text)),
        Tool::Passwd => passwd::passwd(arguments).map(|text| print(&text)),
        Tool::InstallService => install_service::install_service(arguments, host),
        Tool::Completion => completion::run(arguments),
        Tool::Man => man::run(arguments),
    }
}

/// Prints the help about these names.
fn show_help(topic: &[String], host: &dyn Host) -> Result<u8, Problem> {
    match help::about(topic)? {
        Help::Text(text) => Ok(print(&text)),
        Help::OfTool(text, tool) => {
            print(&text);
            run_tool(tool, &["--help".to_owned()], host)
        }
    }
}

/// Runs a tool of the host.
fn of_host(name: &str, arguments: &[String], host: &dyn Host) -> Result<u8, Problem> {
    if let Some(code) = host.tool(name, arguments) {
        return Ok(code);
    }
    let what = "this program has no Python, which this command is written in";
    let remedy = format!("run the command of the Python package: python -m maitred {name}");
    if let [argument] = arguments
        && (argument == "--help" || argument == "-h")
    {
        let summary = commands::find(name).map(|word| word.summary).unwrap_or_default();
        print(&format!("maitred {name}: {summary}\n\nThe words behind it: {remedy} --help\n"));
        return Ok(EXIT_SUCCESS);
    }
    Err(Problem::new(name, what, remedy))
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
