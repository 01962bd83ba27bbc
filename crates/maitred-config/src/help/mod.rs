//! The help text: options of daily use, one option, command or table, or all of them.
//!
//! Promises: everything but the choice of options of daily use comes from the tables of options, of familiar names and of
//! commands. Leaves out: the reference in Markdown (reference.rs), and the help of commands that have arguments of their own.

mod fill;
mod schema;
mod tables;

use std::fmt::Write;

use crate::commands::{self, Command, Run, Tool, WORDS, Word};
use crate::options::familiar::{self, Familiar, Is};
use crate::reference::default;
use crate::{Definition, Problem, nearest, options};
use fill::{INDENT, fill};

const ALL: &str = "all";

/// The name that stands for the JSON schema of maitred.toml.
const SCHEMA: &str = "schema";

/// The help about a name.
pub enum Help {
    /// The whole text.
    Text(String),
    /// The text about an option or a table of that name, if there is one, and the command that has the rest of the text.
    OfTool(String, Tool),
}

/// Returns the help about these names: options with or without dashes, familiar names, commands. Without any the short text.
///
/// # Errors
/// There is no such name.
pub fn about(topic: &[String]) -> Result<Help, Problem> {
    Ok(Help::Text(match topic {
        [] => short(),
        [name] if name == "--help" || name == "-h" => {
            commands::find("help").map(about_word).unwrap_or_default()
        }
        [name] if name == ALL => all(),
        [name] if name == SCHEMA => schema::text(),
        [name, ..] => return about_name(name),
    }))
}

/// Whether this may be the name of an option or of a command; an application often is none.
pub fn is_topic(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Options of daily use: titles, each with options and their purposes.
const DAILY: &[(&str, &[(&str, &str)])] = &[
    (
        "Where",
        &[
            ("listen", "host:port or unix:/PATH; also --host and --port, or --bind"),
            ("tls-cert", "https with this certificate, and its key (--tls-key FILE)"),
            ("static", "files below a URL, beside the application"),
            ("trusted-proxies", "whose X-Forwarded-For counts"),
        ],
    ),
    (
        "How many",
        &[
            ("workers", "processes; threads serve in each"),
            ("max-threads", "requests that a WSGI application handles at the same time"),
            ("worker-requests", "a worker is replaced after so many"),
        ],
    ),
    (
        "The application",
        &[
            ("factory", "it is what the function returns"),
            ("app-dir", "where its module is looked for"),
            ("env-file", "variables for it"),
        ],
    ),
    (
        "What it says",
        &[
            ("access-log", "a line for each request"),
            ("log-level", "how much the error log says"),
            ("config", "instead of maitred.toml"),
        ],
    ),
];

/// The text of `maitred --help`: it fits a screen.
fn short() -> String {
    let mut text = format!(
        "maitred {}: serves Python applications (WSGI, ASGI) and static files.\n\n\
         \x20 maitred app:app                        the object app of the module app, on 127.0.0.1:8000\n\
         \x20 maitred app:app --port 80 --workers 4  on port 80 of 127.0.0.1, with four processes\n\
         \x20 maitred ./public/                      the files of a folder\n\
         \x20 maitred check app:app                  print the configuration, and serve nothing\n\
         \x20 maitred ctl status                     ask a server that runs\n\n",
        env!("CARGO_PKG_VERSION")
    );
    for (title, daily) in DAILY {
        let _ = writeln!(text, "{title}:");
        for (name, what) in *daily {
            let written = options::find(name).map(written).unwrap_or_default();
            let _ = writeln!(text, "  {written:<37}  {what}");
        }
    }
    let names: Vec<&str> = WORDS.iter().map(|word| word.name).collect();
    let mut listed = String::new();
    fill(&mut listed, &format!("Commands: {}", names.join(", ")), "");
    text.push_str(&listed);
    text.push_str("'maitred help NAME' tells all about an option or a command, 'maitred help all' about every option,\n'maitred help schema' is the JSON schema of maitred.toml.\n");
    text
}

/// An option with its value: `--listen ADDR`, `--[no-]factory`. A value that is too wide for the column becomes VALUE.
fn written(definition: &Definition) -> String {
    if definition.is_switch() {
        return definition.flags();
    }
    let whole = format!("{} {}", definition.flags(), definition.shown_placeholder());
    // The usual form of an address.
    let brief = if definition.name == "listen" { "ADDR" } else { "VALUE" };
    if whole.len() <= 37 { whole } else { format!("{} {brief}", definition.flags()) }
}

/// The help about the option, table or command with this name.
fn about_name(name: &str) -> Result<Help, Problem> {
    let bare = name.trim_start_matches('-').replace('_', "-");
    let bare = bare.strip_prefix("no-").filter(|rest| options::find(rest).is_some()).unwrap_or(&bare);
    let option = options::find(bare).filter(|_| !name.starts_with('-') || name.starts_with("--"));
    let familiar = option.is_none().then(|| familiar_of(name)).flatten();
    // A name with dashes is no command.
    let word = commands::find(name);
    let mut text = option.map(about_option).unwrap_or_default();
    if let Some(table) = tables::find(name).filter(|_| !name.starts_with('-')) {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&tables::text(table));
    }
    if let Some(familiar) = familiar {
        text.push_str(&about_familiar(familiar));
    }
    let Some(word) = word else {
        return if text.is_empty() { Err(unknown(name)) } else { Ok(Help::Text(text)) };
    };
    if !text.is_empty() {
        text.push('\n');
    }
    match word.run {
        // The command itself has the text about its arguments.
        Run::Tool(tool) if !matches!(tool, Tool::Help | Tool::InstallService) => Ok(Help::OfTool(text, tool)),
        _ => Ok(Help::Text(text + &about_word(word))),
    }
}

/// The familiar option with this name; a single letter has one dash.
fn familiar_of(name: &str) -> Option<Familiar> {
    let bare = name.trim_start_matches('-');
    let name = if bare.len() == 1 { format!("-{bare}") } else { format!("--{}", bare.replace('_', "-")) };
    familiar::all().find(|familiar| familiar.name == name)
}

fn unknown(name: &str) -> Problem {
    let bare = name.trim_start_matches('-');
    let theirs = familiar::all().map(|familiar| familiar.name.trim_start_matches('-'));
    let names = options::all().map(|option| option.name).chain(WORDS.iter().map(|word| word.name));
    let of_tables = crate::tables::ALL.into_iter().flat_map(|table| table.names);
    let remedy = match nearest(bare, names.chain(of_tables).chain(theirs)) {
        Some(meant) => format!("did you mean 'maitred help {meant}'?"),
        None => "'maitred help all' has every option, and 'maitred help' the commands".to_owned(),
    };
    Problem::new("help", format!("there is no option, command or table '{name}'"), remedy)
}

/// A command that has no help of its own.
fn about_word(Word { name, arguments, summary, run }: &Word) -> String {
    let more = match run {
        Run::Options(Command::Check) => {
            "It takes the application and the options that the server is started with, checks them, the application's file, \
             certificates and folders, and exits with 2 at the first mistake. What it prints is a maitred.toml, and behind \
             each value where it came from."
        }
        Run::Options(Command::Develop) => {
            "It takes the application and the options of the server. The code is loaded again when its files change, the browser shows tracebacks \
             to whoever has opened the link of the terminal, and Ctrl-C ends at once (docs/development.md)."
        }
        Run::Options(_) => "It takes no further arguments.",
        Run::Tool(Tool::InstallService) => "'maitred install-service --help' has its options.",
        Run::Tool(_) => {
            "NAME is an option with or without dashes, one of another server (bind, ssl-keyfile), a command, or a table of maitred.toml (filter, host, pool)."
        }
    };
    let arguments = if *arguments == "..." { "[APPLICATION] [OPTIONS]" } else { arguments };
    let mut text = format!("maitred {name} {arguments}").trim_end().to_owned();
    let _ = write!(text, ": {summary}.\n\n");
    fill(&mut text, more, "");
    text
}

fn about_familiar(Familiar { name, is }: Familiar) -> String {
    let mut text = String::new();
    match is {
        Is::Option(option, _) => {
            fill(&mut text, &format!("{name} of other servers is here {}.", option.flag()), "");
            text.push('\n');
            text.push_str(&about_option(option));
        }
        Is::Other(instead) => {
            fill(&mut text, &format!("{name} of other servers is no option here: {instead}."), "");
        }
    }
    text
}

fn about_option(definition: &Definition) -> String {
    let mut text = String::new();
    head(&mut text, definition);
    for paragraph in paragraphs(definition) {
        fill(&mut text, &paragraph, INDENT);
    }
    if definition.is_in_environment() {
        fill(&mut text, &format!("Value: {}.", definition.takes()), INDENT);
        let file = if definition.is_in_file() {
            format!(", in maitred.toml: {}", definition.name)
        } else {
            String::new()
        };
        fill(&mut text, &format!("In the environment: {}{file}.", definition.variable()), INDENT);
    }
    text
}

/// The text of `maitred --help all`.
fn all() -> String {
    let mut text = format!(
        "maitred {}: serves Python applications and static files.\n\n{}\nOptions:\n",
        env!("CARGO_PKG_VERSION"),
        usage()
    );
    for definition in options::all().filter(|definition| !definition.is_positional()) {
        head(&mut text, definition);
        for paragraph in paragraphs(definition) {
            fill(&mut text, &paragraph, INDENT);
        }
    }
    text.push_str(
        "\nEvery option except --version and --help can also be set as MAITRED_<NAME> in the environment\n\
         and, except --config, as <name> in maitred.toml; the command line wins over the environment, the\n\
         environment over the files. 'maitred check' shows the result. Names that other servers have for an\n\
         option ('also') work on the command line.\n",
    );
    text
}

const USAGE: &str = "\
Usage: maitred [COMMAND] [APPLICATION] [OPTIONS]

  maitred app:app            the object app in the module app
  maitred path/to/app.py     the object app or application in a file (or path/to/app.py:name)
  maitred folder/            the static files of a folder
";

/// A line for each command.
fn usage() -> String {
    let mut text = USAGE.to_owned();
    for Word { name, arguments, summary, .. } in WORDS {
        let written = format!("maitred {name} {arguments}");
        let _ = writeln!(text, "  {written:<26} {summary}");
    }
    text
}

/// `--listen ADDR  (repeatable)`.
fn head(text: &mut String, definition: &Definition) {
    let is_plain = definition.is_switch() || definition.is_positional();
    let value = if is_plain { String::new() } else { format!(" {}", definition.shown_placeholder()) };
    let more = if definition.is_repeatable() { "  (repeatable)" } else { "" };
    let _ = writeln!(text, "  {}{value}{more}", definition.flags());
}

fn paragraphs(definition: &Definition) -> Vec<String> {
    let mut all = vec![definition.summary.to_owned()];
    if definition.is_in_file() {
        all.push(format!("Default: {}.", default(definition).unwrap_or_else(|| "none".to_owned())));
    }
    if !definition.cost.is_empty() {
        all.push(format!("Cost: {}. Worst case: {}.", definition.cost, definition.worst));
    }
    let also = familiar::of_option(definition.name);
    if !also.is_empty() {
        all.push(format!("Also: {}.", also.join(", ")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_text_fits_a_screen() {
        let text = short();
        assert!(text.lines().count() <= 30, "{} lines", text.lines().count());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        for (name, _) in DAILY.iter().flat_map(|(_, daily)| *daily) {
            assert!(options::find(name).is_some(), "{name}");
        }
        for word in WORDS {
            assert!(text.contains(word.name), "{}", word.name);
        }
    }

    #[test]
    fn the_whole_text_names_every_option_and_fits_a_terminal() {
        let text = all();
        for definition in options::all().filter(|definition| !definition.is_positional()) {
            assert!(text.contains(&format!("  {}", definition.flags())), "{}", definition.name);
        }
        assert!(text.contains("--[no-]statistics\n"));
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[test]
    fn applications_are_no_topics() {
        for text in ["workers", "--bind", "-b", "no-compress", "all", "max_threads"] {
            assert!(is_topic(text), "{text}");
        }
        for text in ["app:app", "app.py", "site/", "--", ""] {
            assert!(!is_topic(text), "{text}");
        }
    }
}
