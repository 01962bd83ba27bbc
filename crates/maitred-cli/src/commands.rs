//! The commands, which are words in the first place: `maitred WORD …`. A module of such a name is reached as `check:app` or `./check.py`.
//!
//! A new command is a line of [`WORDS`] and a file beside this one. The table is the source of the dispatch, of the help text and of
//! the suggestions for unknown words.

use crate::host::Host;
use crate::output::{EXIT_SUCCESS, print};
use crate::problem::{Problem, nearest};
pub(crate) use crate::words::{Command, Run, Word};
use crate::{completion, ctl, health, help, man, passwd, top};

/// All commands, in the order of the help text.
pub(crate) const WORDS: &[Word] = &[
    Word {
        name: "dev",
        arguments: "APPLICATION",
        summary: "serve while you work on it: loads changes, shows tracebacks",
        run: Run::Options(Command::Develop),
    },
    Word {
        name: "help",
        arguments: "[NAME|all]",
        summary: "all about an option, a command or a table; alone, what is needed daily",
        run: Run::Tool(|arguments, host| help::run(arguments, WORDS, host)),
    },
    Word {
        name: "init",
        arguments: "[FOLDER]",
        summary: "write a maitred.toml for the application in a folder",
        run: Run::Tool(|arguments, host| of_host("init", arguments, host)),
    },
    Word {
        name: "migrate",
        arguments: "FILE|\"COMMAND\"",
        summary: "print the maitred.toml for another server's set-up",
        run: Run::Tool(|arguments, host| of_host("migrate", arguments, host)),
    },
    Word {
        name: "check",
        arguments: "...",
        summary: "print the merged configuration and where each value came from",
        run: Run::Options(Command::Check),
    },
    Word {
        name: "ctl",
        arguments: "...",
        summary: "ask and change a running server; 'maitred ctl' lists what",
        run: Run::Tool(|arguments, _| Ok(ctl::main(arguments))),
    },
    Word {
        name: "top",
        arguments: "...",
        summary: "a running server at a glance, on a terminal (top --help)",
        run: Run::Tool(top::top),
    },
    Word {
        name: "health",
        arguments: "...",
        summary: "whether a running server is ready, as an exit code (health --help)",
        run: Run::Tool(|arguments, _| health::health(arguments)),
    },
    Word {
        name: "report",
        arguments: "LOG...",
        summary: "tell from access logs where the time went (report --help)",
        run: Run::Tool(|arguments, _| {
            let text = maitred_report::report(arguments);
            text.map(|text| print(&text))
                .map_err(|mistake| Problem::new(mistake.place, mistake.what, mistake.remedy))
        }),
    },
    Word {
        name: "passwd",
        arguments: "FILE USER",
        summary: "write the password of a user for basic authentication (passwd --help)",
        run: Run::Tool(|arguments, _| passwd::passwd(arguments).map(|text| print(&text))),
    },
    Word {
        name: "install-service",
        arguments: "...",
        summary: "write the units of systemd for an application (install-service --help)",
        run: Run::InstallService,
    },
    Word {
        name: "completion",
        arguments: "SHELL",
        summary: "print what completes options and commands in bash, zsh or fish",
        run: Run::Tool(|arguments, _| completion::run(arguments, WORDS)),
    },
    Word {
        name: "man",
        arguments: "",
        summary: "print the manual page",
        run: Run::Tool(|arguments, _| man::run(arguments, WORDS)),
    },
    Word {
        name: "reference",
        arguments: "",
        summary: "print the reference of all options as Markdown",
        run: Run::Options(Command::Reference),
    },
];

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
        let summary = find(name).map(|word| word.summary).unwrap_or_default();
        print(&format!("maitred {name}: {summary}\n\nThe words behind it: {remedy} --help\n"));
        return Ok(EXIT_SUCCESS);
    }
    Err(Problem::new(name, what, remedy))
}

/// The command with this name.
pub(crate) fn find(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

/// The command that the user may have meant by `name`.
pub(crate) fn meant(name: &str) -> Option<&'static str> {
    nearest(name, WORDS.iter().map(|word| word.name))
}
