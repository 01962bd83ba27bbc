//! The command line: `maitred [check] [APPLICATION] [--option VALUE | --option=VALUE]...`

use std::net::IpAddr;

use crate::commands::{self, Command, Run};
use crate::options::development::RELOAD;
use crate::options::familiar::{self, Familiar, Is};
use crate::options::renamed::{Names, Renamed, Used};
use crate::options::{self, Kind};
use crate::origins::Assignment;
use crate::{Definition, Problem, Source, acme_values, did_you_mean, help};

/// A parsed command line.
pub(crate) struct CommandLine {
    pub(crate) command: Command,
    /// The topic of help; empty for the short text.
    pub(crate) topic: Vec<String>,
    /// `check --acme`, with a value of the option or without one.
    pub(crate) looks: bool,
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
        looks: false,
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
    // Of other servers; together they are one address.
    let (mut hosts, mut port) = (Vec::new(), None);
    let mut only_names = false;
    while let Some(argument) = rest.next() {
        if !only_names && argument == "--" {
            only_names = true;
        } else if !only_names && argument.len() > 1 && argument.starts_with('-') {
            let Flag { definition, renamed, name, value } = find(argument, earlier)?;
            line.renamed.add(definition.flag(), renamed);
            if line.command == Command::Check && definition.name == "acme" && value.is_none() {
                line.looks = true;
                if rest.peek().is_none_or(|next| acme_values::acme(next).is_err()) {
                    continue;
                }
            }
            let value = match value {
                Some(value) => value,
                None if definition.is_switch() => "true",
                None => rest
                    .next_if(|next| !next.starts_with("--"))
                    .ok_or_else(|| missing_value(definition, name))?,
            };
            match name {
                Some("--host") => hosts.push(value),
                Some("--port") => port = Some(value),
                _ => line.add(definition, value, name)?,
            }
            if is_help(definition)
                && let Some(topic) = rest.next_if(|next| help::is_topic(next))
            {
                line.topic = vec![topic.to_owned()];
            }
        } else {
            line.add_application(argument)?;
        }
    }
    let host = line.add_names(hosts)?;
    line.add_host_and_port(host, port)?;
    Ok(line)
}

/// An argument with dashes.
struct Flag<'a> {
    definition: &'static Definition,
    /// The earlier name of the option, if it was used.
    renamed: Option<Renamed>,
    /// The name in another server, if it was used.
    name: Option<&'static str>,
    /// The value behind `=`, or the fixed one of `--no-name`.
    value: Option<&'a str>,
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
    let takes_none = || Problem::new(flag, "takes no value", "leave the value out");
    let (found, fixed) = match earlier.find(name, known) {
        Some(found) => (Some(found), None),
        None => (negated.and_then(|name| earlier.find(name, switch)), Some("false")),
    };
    if let Some((definition, renamed)) = found {
        return match attached {
            Some(_) if fixed.is_some() || !definition.is_in_environment() => Err(takes_none()),
            _ => Ok(Flag { definition, renamed, name: None, value: attached.or(fixed) }),
        };
    }
    let (Familiar { name, is }, behind) = familiar::find(flag)
        .ok_or_else(|| Problem::new(flag, "unknown option", suggest(flag, negated.is_some())))?;
    match is {
        Is::Other(instead) => Err(Problem::new(name, "an option of another server", instead)),
        Is::Option(_, Some(_)) if attached.is_some() => Err(takes_none()),
        Is::Option(definition, fixed) => {
            Ok(Flag { definition, renamed: None, name: Some(name), value: attached.or(behind).or(fixed) })
        }
    }
}

/// The remedy for an unknown option: the nearest option, or the list of all.
fn suggest(flag: &str, negated: bool) -> String {
    let own = options::all().filter(|known| !known.is_positional()).map(|known| {
        if negated && known.can_be_off() { format!("--{NO}{}", known.name) } else { known.flag() }
    });
    let own: Vec<String> = own.collect();
    let theirs = familiar::taken().map(|familiar| familiar.name);
    did_you_mean(flag, own.iter().map(String::as_str).chain(theirs), "'maitred --help all' lists the options")
}

fn is_help(definition: &Definition) -> bool {
    matches!(definition.kind, Kind::Action) && definition.name == "help"
}

/// Whether the file is a configuration of gunicorn (`gunicorn.conf.py`) or hypercorn (with a prefix).
fn is_of_another_server(file: &str) -> bool {
    file.ends_with(".py") || file.starts_with("python:") || file.starts_with("file:")
}

fn missing_value(definition: &Definition, name: Option<&str>) -> Problem {
    let example =
        definition.default.first().map_or_else(|| definition.shown_placeholder(), ToString::to_string);
    let flag = definition.flag();
    Problem::new(name.unwrap_or(&flag), "needs a value", format!("for example {flag} {example}"))
}

impl CommandLine {
    /// Adds a value, by a name that another server has for the option if there is one.
    fn add(
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
            Kind::File if value.is_empty() => return Err(missing_value(definition, None)),
            Kind::File if is_of_another_server(value) => {
                return Err(Problem::new(
                    definition.flag(),
                    format!("{value} is Python, and maitred's configuration is TOML"),
                    format!("'maitred migrate {value}' prints what it says as maitred.toml"),
                ));
            }
            Kind::File => self.config_file = Some(value.to_owned()),
            _ => {
                let source = name.map_or(Source::CommandLine, Source::Familiar);
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

    /// Beside `--acme` each `--host` that is a name and no address is a name of the site. Returns the last other one, which is an address as in
    /// other servers.
    fn add_names<'a>(&mut self, hosts: Vec<&'a str>) -> Result<Option<&'a str>, Problem> {
        let orders = self.looks || self.assignments.iter().any(|given| given.definition.name == "acme");
        let is_name =
            |host: &str| host.contains('.') && host.parse::<IpAddr>().is_err() && !host.contains(':');
        let (names, addresses): (Vec<_>, Vec<_>) =
            hosts.into_iter().partition(|host| orders && is_name(host));
        let option = options::find("acme-host");
        for name in names {
            option.map_or(Ok(()), |option| self.add(option, name, None))?;
        }
        Ok(addresses.last().copied())
    }

    /// `--host` and `--port` of other servers, whose defaults are ours.
    fn add_host_and_port(&mut self, host: Option<&str>, port: Option<&str>) -> Result<(), Problem> {
        let name = match (host, port) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => "--host and --port",
            (Some(_), None) => "--host",
            (None, Some(_)) => "--port",
        };
        let (host, port) = (host.unwrap_or("127.0.0.1"), port.unwrap_or("8000"));
        let is_bare = host.contains(':') && !host.starts_with('[');
        let address = if is_bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        options::find("listen").map_or(Ok(()), |listen| self.add(listen, &address, Some(name)))
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
