//! The command line: `maitred [check] [APPLICATION] [--option VALUE | --option=VALUE]...`

use crate::commands::{self, Command, Run};
use crate::options::development::RELOAD;
use crate::options::renamed::{Names, Renamed, Used};
use crate::options::{self, Definition, Kind, Reach};
use crate::problem::Problem;

use super::{Assignment, suggest};
use crate::origins::Source;

/// A parsed command line.
pub(crate) struct CommandLine {
    pub(crate) command: Command,
    pub(crate) config_file: Option<String>,
    pub(crate) assignments: Vec<Assignment>,
    /// Earlier names of options among them.
    pub(crate) renamed: Used,
}

/// Parses the arguments without the program's name. An option given twice: the last one counts,
/// repeatable ones are collected.
pub(crate) fn parse(arguments: &[String], earlier: Names) -> Result<CommandLine, Problem> {
    let mut line = CommandLine {
        command: Command::Run,
        config_file: None,
        assignments: Vec::new(),
        renamed: Used::default(),
    };
    let mut rest = arguments.iter().map(String::as_str).peekable();
    if let Some(Run::Options(command)) =
        rest.peek().and_then(|first| commands::find(first)).map(|word| word.run)
    {
        rest.next();
        line.command = command;
        if command == Command::Develop {
            line.command = Command::Run;
            if let Some(reload) = options::find(RELOAD) {
                line.add(reload, "true")?;
            }
        }
    }
    let mut only_names = false;
    while let Some(argument) = rest.next() {
        if !only_names && argument == "--" {
            only_names = true;
        } else if !only_names && argument.len() > 1 && argument.starts_with('-') {
            let Flag { definition, renamed, off, attached } = find(argument, earlier)?;
            line.renamed.add(definition.flag(), renamed);
            let value = match attached {
                Some(value) => value,
                None if off => "false",
                None if definition.is_switch() => "true",
                None => {
                    rest.next_if(|next| !next.starts_with("--")).ok_or_else(|| missing_value(definition))?
                }
            };
            line.add(definition, value)?;
        } else {
            line.add_application(argument)?;
        }
    }
    Ok(line)
}

/// What an argument with dashes says.
struct Flag<'a> {
    definition: &'static Definition,
    /// The earlier name that was used.
    renamed: Option<Renamed>,
    /// It is `--no-name`.
    off: bool,
    /// The value behind `=`.
    attached: Option<&'a str>,
}

/// What stands before the name of a switch to switch it off.
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
        let written = |known: &Definition| match negated {
            Some(_) if known.can_be_off() => Some(format!("--{NO}{}", known.name)),
            _ => (!known.is_positional()).then(|| known.flag()),
        };
        return Err(Problem::new(flag, "unknown option", suggest(flag, written)));
    };
    if attached.is_some() && (off || definition.reach == Reach::CommandLine) {
        return Err(Problem::new(flag, "takes no value", "leave the value out"));
    }
    Ok(Flag { definition, renamed, off, attached })
}

fn missing_value(definition: &Definition) -> Problem {
    let example = definition.default.first().map_or(definition.placeholder, |default| default);
    Problem::new(definition.flag(), "needs a value", format!("for example {} {example}", definition.flag()))
}

impl CommandLine {
    fn add(&mut self, definition: &'static Definition, value: &str) -> Result<(), Problem> {
        match definition.kind {
            // What was asked first counts; the rest of the line is still checked.
            Kind::Action if matches!(self.command, Command::Help | Command::Version) => {}
            Kind::Action => {
                self.command = if definition.name == "version" { Command::Version } else { Command::Help };
            }
            Kind::File if value.is_empty() => return Err(missing_value(definition)),
            Kind::File => self.config_file = Some(value.to_owned()),
            _ => {
                let earlier = self
                    .assignments
                    .iter_mut()
                    .find(|earlier| definition.is_repeatable() && earlier.definition.name == definition.name);
                match earlier {
                    Some(earlier) => earlier.texts.push(value.to_owned()),
                    None => self.assignments.push(Assignment {
                        definition,
                        texts: vec![value.to_owned()],
                        source: Source::CommandLine,
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
            Some(definition) => self.add(definition, argument),
            None => Ok(()),
        }
    }
}
