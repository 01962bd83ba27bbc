//! Types of commands, which are words in the first place of a command line. Leaves out: the list of commands (commands.rs).

use crate::host::Host;
use crate::problem::Problem;

/// An action of a command that takes the server's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
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

/// A command.
pub(crate) struct Word {
    pub(crate) name: &'static str,
    /// The arguments of the command, for the help text.
    pub(crate) arguments: &'static str,
    /// A few words about the command, for the help text.
    pub(crate) summary: &'static str,
    pub(crate) run: Run,
}

/// The way a command is run.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// A command that takes the options of the server.
    Options(Command),
    /// A command with arguments of its own, which serves nothing. Returns the exit code, or an error of the user.
    Tool(fn(&[String], &dyn Host) -> Result<u8, Problem>),
    /// The command `install-service`, which reads options of the server as well. It is no `Tool`: the sources of options use the table of commands,
    /// so its function in that table would make a circle of modules.
    InstallService,
}
