//! The commands, which are words in the first place: `maitred WORD …`. A module of such a name is reached as `check:app` or `./check.py`.
//!
//! The table is the source of the help text, of completion and of the suggestions for unknown words. Leaves out: running a command, which is
//! the matter of maitred-cli.

use crate::nearest;

/// An action of a command that takes the server's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Serve.
    Run,
    /// Serve, and load the application again when it changes.
    Develop,
    /// Print the merged configuration.
    Check,
    /// Print docs/operations/configuration.md.
    Reference,
    /// Print the version.
    Version,
    /// Print the help text.
    Help,
}

/// A command with arguments of its own, which serves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Print the help text about a name.
    Help,
    /// Run the tool of this name that the host of the command has.
    OfHost(&'static str),
    /// Ask and change a running server.
    Ctl,
    /// Show a running server on a terminal.
    Top,
    /// Tell whether a running server is ready.
    Health,
    /// Read access logs.
    Report,
    /// Write a password.
    Passwd,
    /// Write units of systemd.
    InstallService,
    /// Print what a shell completes.
    Completion,
    /// Print the manual page.
    Man,
}

/// A command.
pub struct Word {
    /// The first word of the command line.
    pub name: &'static str,
    /// The arguments of the command, for the help text.
    pub arguments: &'static str,
    /// A few words about the command, for the help text.
    pub summary: &'static str,
    /// The way the command is run.
    pub run: Run,
}

/// The way a command is run.
#[derive(Clone, Copy)]
pub enum Run {
    /// With the options of the server.
    Options(Command),
    /// With arguments of its own.
    Tool(Tool),
}

/// All commands, in the order of the help text.
pub const WORDS: &[Word] = &[
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
        run: Run::Tool(Tool::Help),
    },
    Word {
        name: "init",
        arguments: "[FOLDER]",
        summary: "write a maitred.toml for the application in a folder",
        run: Run::Tool(Tool::OfHost("init")),
    },
    Word {
        name: "migrate",
        arguments: "FILE|\"COMMAND\"",
        summary: "print the maitred.toml for another server's set-up",
        run: Run::Tool(Tool::OfHost("migrate")),
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
        run: Run::Tool(Tool::Ctl),
    },
    Word {
        name: "top",
        arguments: "...",
        summary: "a running server at a glance, on a terminal (top --help)",
        run: Run::Tool(Tool::Top),
    },
    Word {
        name: "health",
        arguments: "...",
        summary: "whether a running server is ready, as an exit code (health --help)",
        run: Run::Tool(Tool::Health),
    },
    Word {
        name: "report",
        arguments: "LOG...",
        summary: "tell from access logs where the time went (report --help)",
        run: Run::Tool(Tool::Report),
    },
    Word {
        name: "passwd",
        arguments: "FILE USER",
        summary: "write the password of a user for basic authentication (passwd --help)",
        run: Run::Tool(Tool::Passwd),
    },
    Word {
        name: "install-service",
        arguments: "...",
        summary: "write the units of systemd for an application (install-service --help)",
        run: Run::Tool(Tool::InstallService),
    },
    Word {
        name: "completion",
        arguments: "SHELL",
        summary: "print what completes options and commands in bash, zsh or fish",
        run: Run::Tool(Tool::Completion),
    },
    Word { name: "man", arguments: "", summary: "print the manual page", run: Run::Tool(Tool::Man) },
    Word {
        name: "reference",
        arguments: "",
        summary: "print the reference of all options as Markdown",
        run: Run::Options(Command::Reference),
    },
];

/// The command with this name.
pub fn find(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

/// The command that the user may have meant by `name`.
pub fn meant(name: &str) -> Option<&'static str> {
    nearest(name, WORDS.iter().map(|word| word.name))
}
