//! `maitred ctl`: asks and changes a running server.
//!
//! ```text
//! mod.rs   the command line    choose.rs, named.rs  the choice of a server    client.rs  one request
//! show.rs, history.rs  the answer for people    snapshot.rs  the answer as a file
//! ```
//! The questions are those of the server's table ([`maitred_control::commands`]). This module knows two by name: `history`, whose answer is
//! made for programs, and `snapshot`, which ends in a file.

pub(crate) mod choose;
pub(crate) mod client;
mod history;
pub(crate) mod named;
pub(crate) mod show;
mod snapshot;

use std::path::PathBuf;

use maitred_config::{EXIT_USAGE, nearest, print, say};
use maitred_control::{Command, Given, SNAPSHOT, WORKER};

use named::Named;

/// Options of every command with a value.
fn own() -> impl Iterator<Item = &'static str> {
    named::OPTIONS.into_iter().chain([WORKER])
}

/// Runs the command with the arguments behind `ctl`; the exit code: 0, 1 for a refusal, 2 for a mistake of the user.
pub fn main(arguments: &[String]) -> u8 {
    let line = match Line::parse(arguments) {
        Ok(line) => line,
        Err(text) => {
            say(&text);
            return EXIT_USAGE;
        }
    };
    let Some((command, given)) = &line.asked else { return print(&help()) };
    let is_history = command.name == history::NAME && !line.json;
    let given = if is_history { &history::for_people(given) } else { given };
    let answer = line.named.place().and_then(|place| client::ask(&place, command, given));
    match answer {
        Ok(value) if is_history => print(&show::show(&history::rows(value))),
        Ok(value) if command.name == SNAPSHOT => snapshot::write(&value, line.file.as_deref(), line.json),
        Ok(value) if line.json => print(&format!("{value:#}\n")),
        Ok(value) => print(&show::show(&value)),
        Err(failed) => failed.told(),
    }
}

/// The command line behind `ctl`.
#[derive(Default)]
struct Line {
    named: Named,
    /// The number of one worker.
    worker: Option<String>,
    json: bool,
    /// The file for a snapshot.
    file: Option<PathBuf>,
    /// None for help.
    asked: Option<(&'static Command, Given)>,
}

impl Line {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut line = Self::default();
        let mut words = Vec::new();
        let mut options = Vec::new();
        let mut rest = arguments.iter();
        let mut only_words = false;
        while let Some(argument) = rest.next() {
            let name = match argument.strip_prefix("--") {
                Some("") if !only_words => {
                    only_words = true;
                    continue;
                }
                Some(name) if !only_words => name,
                _ if argument == "-h" && !only_words => return Ok(Self::default()),
                _ => {
                    words.push(argument.clone());
                    continue;
                }
            };
            let (name, attached) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            match (name, &attached) {
                ("json", None) => line.json = true,
                ("help", None) => return Ok(Self::default()),
                ("json" | "help", Some(_)) => return Err(format!("--{name} takes no value; leave it out")),
                _ => {
                    let value = attached.or_else(|| rest.next().cloned());
                    let value = value.ok_or_else(|| match takes_value(name) {
                        true => format!("--{name} needs a value; write --{name} VALUE"),
                        false => unknown_option(name, None),
                    })?;
                    match name {
                        WORKER => line.worker = Some(value),
                        _ if named::OPTIONS.contains(&name) => line.named.set(name, value)?,
                        _ => options.push((name.to_owned(), value)),
                    }
                }
            }
        }
        if words.is_empty() {
            return match options.first() {
                None => Ok(line),
                Some((name, _)) => Err(unknown_option(name, None)),
            };
        }
        if words[0] == SNAPSHOT && words.len() == 2 {
            line.file = words.pop().map(PathBuf::from);
        }
        let (command, mut given) = command(words, options)?;
        given.0.extend(line.worker.take().map(|worker| (WORKER.to_owned(), worker)));
        line.asked = Some((command, given));
        Ok(line)
    }
}

/// Finds the command in the first words, and its arguments in the rest.
fn command(words: Vec<String>, options: Vec<(String, String)>) -> Result<(&'static Command, Given), String> {
    let two = words.get(1).map(|second| format!("{} {second}", words[0]));
    let found = two.and_then(|name| Some((maitred_control::find(&name).ok()?, 2)));
    let (command, count) = match found {
        Some(found) => found,
        None => (maitred_control::find(&words[0]).map_err(|refusal| refusal.text().to_owned())?, 1),
    };
    let names: Vec<_> = command.arguments.iter().filter(|argument| !argument.option).collect();
    let spare = (names.len() + count).saturating_sub(words.len());
    let left_out = names.iter().take(spare).take_while(|argument| argument.unless_given.is_some()).count();
    let mut names = names.into_iter().skip(left_out);
    let mut given = Vec::new();
    for word in words.into_iter().skip(count) {
        let Some(argument) = names.next() else {
            return Err(format!("'{word}' is too much; it is written {}", command.usage()));
        };
        given.push((argument.name.to_owned(), word));
    }
    for (name, value) in options {
        if !command.arguments.iter().any(|argument| argument.option && argument.name == name) {
            return Err(unknown_option(&name, Some(command)));
        }
        given.push((name, value));
    }
    let given = Given(given);
    command.check(&given).map_err(|refusal| refusal.text().to_owned())?;
    Ok((command, given))
}

/// Whether any command has an option with a value of this name.
fn takes_value(name: &str) -> bool {
    let mut arguments = maitred_control::commands().iter().flat_map(|command| command.arguments);
    own().any(|own| own == name) || arguments.any(|argument| argument.option && argument.name == name)
}

fn unknown_option(name: &str, command: Option<&Command>) -> String {
    let own = command.map_or(&[][..], |command| command.arguments).iter();
    let own = own.filter(|argument| argument.option).map(|argument| argument.name);
    match nearest(name, own.chain(self::own()).chain(["json", "help"])) {
        Some(meant) => format!("--{name}: unknown option; did you mean '--{meant}'?"),
        None => format!("--{name}: unknown option; 'maitred ctl' lists what there is"),
    }
}

fn help() -> String {
    /// Width of the column of commands; a longer command has a line of its own.
    const WIDTH: usize = 18;
    let mut text = String::from(
        "maitred ctl: asks and changes a running server.\n\n\
         Usage: maitred ctl [--pid N | --port N | --server WHICH | --socket PATH | --url URL [--token-file FILE]]\n\
         \x20                  [--json] COMMAND ...\n\n\
         \x20 --pid N            one of the server's processes, the supervisor's or a worker's; without any of\n\
         \x20                    these the only server of this user; root finds those of others\n\
         \x20 --port N           a port that it listens on\n\
         \x20 --server WHICH     a process, a port or an address such as 127.0.0.1:8000\n\
         \x20 --socket PATH      the socket of the server (its option --control)\n\
         \x20 --url URL          the address of the server (its option --admin), such as http://127.0.0.1:9000\n\
         \x20 --token-file FILE  the token for that address\n\
         \x20 --pool NAME        with every query: only what is of this pool\n\
         \x20 --worker N         only what is of this worker process, where a supervisor has several\n\
         \x20 --json             the answer as JSON\n",
    );
    for (title, change) in [("Queries", false), ("Changes", true)] {
        text.push_str(&format!("\n{title}:\n"));
        for command in maitred_control::commands().iter().filter(|command| command.change == change) {
            let usage = command.brief_usage();
            let separator = if usage.len() > WIDTH { format!("\n{:WIDTH$}   ", "") } else { " ".to_owned() };
            text.push_str(&format!("  {usage:<WIDTH$}{separator}{}\n", command.help));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Line, String> {
        Line::parse(
            &line.split(' ').filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect::<Vec<_>>(),
        )
    }

    fn error(line: &str) -> String {
        parse(line).err().unwrap_or_else(|| panic!("{line}"))
    }

    #[test]
    fn words_are_arguments_in_their_order_and_options_have_names() {
        let line =
            parse("--json explain GET /a?b=1 --from=192.0.2.1 --header X:1 --header Y:2").expect("right");
        let (command, given) = line.asked.expect("a command");
        assert!(line.json);
        assert_eq!(
            (command.name, given.value("method"), given.value("url")),
            ("explain", Some("GET"), Some("/a?b=1"))
        );
        assert_eq!(given.all("header").collect::<Vec<_>>(), ["X:1", "Y:2"]);
        let (_, given) = parse("explain https://shop.example/").expect("right").asked.expect("a command");
        assert_eq!((given.value("method"), given.value("url")), (None, Some("https://shop.example/")));
        let (command, given) = parse("deliveries end 0.1.2").expect("right").asked.expect("a command");
        assert_eq!((command.name, given.value("id")), ("deliveries end", Some("0.1.2")));
        assert_eq!(parse("deliveries").expect("right").asked.expect("a command").0.name, "deliveries");
        let line = parse("snapshot now.html --json").expect("right");
        assert!(line.json && line.file == Some("now.html".into()));
        assert_eq!(error("snapshot a b"), "'a' is too much; it is written snapshot [--pool POOL]");
        assert!(parse("").expect("right").asked.is_none());
        assert!(parse("status --help").expect("right").asked.is_none());
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        assert_eq!(error("statsu"), "there is no command 'statsu'; did you mean 'status'?");
        assert_eq!(
            error("set x"),
            "set needs value: a value that settings shows; it is written set NAME VALUE [--pool POOL]"
        );
        assert_eq!(error("status now"), "'now' is too much; it is written status [--pool POOL]");
        assert_eq!(error("explain GET / --form x"), "--form: unknown option; did you mean '--from'?");
        assert_eq!(error("status --socket"), "--socket needs a value; write --socket VALUE");
        assert_eq!(error("--jsno x"), "--jsno: unknown option; did you mean '--json'?");
        assert_eq!(error("status --jsno"), "--jsno: unknown option; did you mean '--json'?");
        assert!(error("--socket a --url b status").contains("two servers"));
        assert!(error("--pid 1 --port 2 status").contains("--pid and --port name two servers"));
        assert!(error("--pid 1 --socket a status").contains("two servers"));
        assert_eq!(error("--pid x status").split(';').next(), Some("--pid: 'x' is no number of a process"));
    }

    #[test]
    fn the_help_has_every_command() {
        let text = help();
        for command in maitred_control::commands() {
            assert!(text.contains(&command.brief_usage()) && text.contains(command.help), "{}", command.name);
        }
    }
}
