//! The command line: `maitred [check] [APPLICATION] [--option VALUE | --option=VALUE]...`

use crate::commands::{self, Command, Run};
use crate::help;
use crate::options::development::RELOAD;
use crate::options::familiar::{self, Written};
use crate::options::renamed::{Names, Renamed, Used};
use crate::options::{self, Definition, Kind, Reach};
use crate::origins::Source;
use crate::problem::{Problem, nearest};
use crate::value::BadValue;

use super::Assignment;
use super::familiar::Parts;

/// A parsed command line.
pub(crate) struct CommandLine {
    pub(crate) command: Command,
    /// The topic of help; empty for the short text.
    pub(crate) topic: Vec<String>,
    pub(crate) config_file: Option<String>,
    pub(crate) assignments: Vec<Assignment>,
    /// Earlier names of options in the assignments.
    pub(crate) renamed: Used,
}

/// Parses the arguments without the program's name. An option given twice: the last one counts,
/// repeatable ones are collected.
pub(crate) fn parse(arguments: &[String], earlier: Names) -> Result<CommandLine, Problem> {
    let mut line = CommandLine {
        command: Command::Run,
        topic: Vec::new(),
        config_file: None,
        assignments: Vec::new(),
        renamed: Used::default(),
    };
    let mut rest = arguments.iter().map(String::as_str).peekable();
    if let Some(Run::Options(command)) =
        rest.peek().and_then(|first| commands::find(first)).map(|word| word.run)
    {
        line.command = command;
        // `maitred check --help` is about check.
        line.topic.extend(rest.next().map(ToOwned::to_owned));
        if command == Command::Develop {
            line.command = Command::Run;
            if let Some(reload) = options::find(RELOAD) {
                line.add(reload, "true", None)?;
            }
        }
    }
    let mut parts = Parts::default();
    let mut only_names = false;
    while let Some(argument) = rest.next() {
        if !only_names && argument == "--" {
            only_names = true;
        } else if !only_names && argument.len() > 1 && argument.starts_with('-') {
            let mut next = || rest.next_if(|next| !next.starts_with("--"));
            match find(argument, earlier)? {
                Flag::Own { definition, renamed, off, attached } => {
                    line.renamed.add(definition.flag(), renamed);
                    let value = match attached {
                        Some(value) => value,
                        None if off => "false",
                        None if definition.is_switch() => "true",
                        None => next().ok_or_else(|| missing_value(definition))?,
                    };
                    let called = |BadValue { what, remedy }| Problem::new(definition.flag(), what, remedy);
                    let value = familiar::own_value(definition.name, value).map_err(called)?.unwrap_or(value);
                    line.add(definition, value, None)?;
                    if is_help(definition)
                        && let Some(topic) = rest.next_if(|next| help::is_topic(next))
                    {
                        line.topic = vec![topic.to_owned()];
                    }
                }
                Flag::Familiar(written) => parts.take(&written, next, &mut line)?,
            }
        } else {
            line.add_application(argument)?;
        }
    }
    parts.finish(&mut line)?;
    Ok(line)
}

/// An argument with dashes.
enum Flag<'a> {
    /// An option of maitred.
    Own {
        definition: &'static Definition,
        /// The earlier name that was used.
        renamed: Option<Renamed>,
        /// Whether the argument is `--no-name`.
        off: bool,
        /// The value behind `=`.
        attached: Option<&'a str>,
    },
    /// An option of another server.
    Familiar(Written<'a>),
}

/// Prefix that switches a switch off.
const NO: &str = "no-";

fn find(argument: &str, earlier: Names) -> Result<Flag<'_>, Problem> {
    let (flag, attached) = match argument.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (argument, None),
    };
    let name = match flag {
        "-h" => "help",
        "-V" => "version",
        _ => flag.strip_prefix("--").unwrap_or_default(),
    };
    let known = |name: &str| options::find(name).filter(|definition| !definition.is_positional());
    let negated = name.strip_prefix(NO);
    let switch = |name: &str| known(name).filter(|known| known.can_be_off());
    let found = earlier.find(name, known).map(|found| (found, false));
    let found = found.or_else(|| Some((earlier.find(negated?, switch)?, true)));
    let Some(((definition, renamed), off)) = found else {
        if let Some(written) = familiar::find(argument) {
            return Ok(Flag::Familiar(written));
        }
        return Err(Problem::new(flag, "unknown option", suggest(flag, negated.is_some())));
    };
    if attached.is_some() && (off || definition.reach == Reach::CommandLine) {
        return Err(Problem::new(flag, "takes no value", "leave the value out"));
    }
    Ok(Flag::Own { definition, renamed, off, attached })
}

/// The remedy for an unknown option: the nearest option, or the list of all.
fn suggest(flag: &str, negated: bool) -> String {
    let own = options::all().filter(|known| !known.is_positional()).map(|known| {
        if negated && known.can_be_off() { format!("--{NO}{}", known.name) } else { known.flag() }
    });
    let own: Vec<String> = own.collect();
    let theirs = familiar::all().filter(|familiar| familiar.option().is_some());
    let theirs = theirs.flat_map(|familiar| familiar.names).copied();
    match nearest(flag, own.iter().map(String::as_str).chain(theirs)) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => "'maitred --help all' lists the options".to_owned(),
    }
}

fn is_help(definition: &Definition) -> bool {
    matches!(definition.kind, Kind::Action) && definition.name == "help"
}

/// Whether the file is a configuration of gunicorn (`gunicorn.conf.py`) or hypercorn (with a prefix).
fn is_of_another_server(file: &str) -> bool {
    file.ends_with(".py") || file.starts_with("python:") || file.starts_with("file:")
}

fn missing_value(definition: &Definition) -> Problem {
    let example = definition.default.first().map_or(definition.placeholder, |default| default);
    Problem::new(definition.flag(), "needs a value", format!("for example {} {example}", definition.flag()))
}

impl CommandLine {
    /// Adds a value, by a name that another server has for the option if there is one.
    pub(super) fn add(
        &mut self,
        definition: &'static Definition,
        value: &str,
        name: Option<&'static str>,
    ) -> Result<(), Problem> {
        match definition.kind {
            // The first action counts; the rest of the line is still checked.
            Kind::Action if matches!(self.command, Command::Help | Command::Version) => {}
            Kind::Action => {
                self.command = if definition.name == "version" { Command::Version } else { Command::Help };
            }
            Kind::File if value.is_empty() => return Err(missing_value(definition)),
            Kind::File if is_of_another_server(value) => {
                return Err(Problem::new(
                    definition.flag(),
                    format!("{value} is Python, and maitred's configuration is TOML"),
                    format!("'maitred migrate {value}' prints what it says as maitred.toml"),
                ));
            }
            Kind::File => self.config_file = Some(value.to_owned()),
            _ => {
                let source = name.map_or(Source::CommandLine, |name| Source::Familiar(vec![name]));
                let earlier = self
                    .assignments
                    .iter_mut()
                    .find(|earlier| definition.is_repeatable() && earlier.definition.name == definition.name);
                match earlier {
                    Some(earlier) => {
                        earlier.texts.push(value.to_owned());
                        earlier.source.also(&source);
                    }
                    None => self.assignments.push(Assignment {
                        definition,
                        texts: vec![value.to_owned()],
                        source,
                    }),
                }
            }
        }
        Ok(())
    }

    fn add_application(&mut self, argument: &str) -> Result<(), Problem> {
        if argument.is_empty() {
            return Err(Problem::new(
                "application",
                "the name is empty",
                "give module:attr, a file or a folder",
            ));
        }
        if let Some(first) = self.assignments.iter().find(|earlier| earlier.definition.is_positional()) {
            let first = first.texts.join(" ");
            let remedy = if commands::find(argument).is_some() {
                format!("put the command first: maitred {argument} {first}")
            } else {
                match commands::meant(&first) {
                    Some(command) => format!("did you mean 'maitred {command} {argument}'?"),
                    None => "start one process for each".to_owned(),
                }
            };
            return Err(Problem::new(argument, format!("a second application after '{first}'"), remedy));
        }
        match options::find("application") {
            Some(definition) => self.add(definition, argument, None),
            None => Ok(()),
        }
    }
}
