//! What a command is: a word that comes first. Leaves out: which there are (commands.rs).

use crate::host::Host;
use crate::problem::Problem;

/// What the command is asked to do.
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
    /// What may stand behind it, for the help text.
    pub(crate) arguments: &'static str,
    /// What it does, a few words for the help text.
    pub(crate) summary: &'static str,
    pub(crate) run: Run,
}

/// How a command is run.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// It takes the options of the server.
    Options(Command),
    /// It has arguments of its own and serves nothing: the exit code, or an error of the user's making.
    Tool(fn(&[String], &dyn Host) -> Result<u8, Problem>),
    /// The same for `install-service`, which reads options of the server as well: no room that they need may use it.
    InstallService,
}
