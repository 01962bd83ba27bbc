//! The program's part in the control of its server: names, settings, the end of the process.

use serde_json::Value;

use maitred_certificates::Status;
use maitred_server::Server;

/// The program around a server.
pub trait Owner: Send + Sync + 'static {
    /// Facts about the program for `status`: names with their values, such as `language`.
    fn about(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The settings that [`set`](Self::set) takes, with their present values.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// All options as they hold now, and where each came from.
    fn configuration(&self) -> Vec<Configured> {
        Vec::new()
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// There is no such setting, the value is not one of it, or only a restart changes it; nothing has changed.
    fn set(&self, _server: &Server, name: &str, _value: &str) -> Result<Done, Refusal> {
        Err(Refusal::unknown(format!("there is no setting '{name}' here")))
    }

    /// The files of the certificates, in the order of the server's [`Terms`](maitred_server::tls::Terms).
    fn certificate_files(&self) -> Vec<String> {
        Vec::new()
    }

    /// The certificates that are ordered from an authority (ACME), by their names.
    fn orders(&self) -> Vec<Status> {
        Vec::new()
    }

    /// Loads the files that TLS goes by anew.
    ///
    /// # Errors
    /// There are none here, or one is not valid; nothing has changed.
    fn reload_tls(&self, _server: &Server) -> Result<Done, Refusal> {
        Err(Refusal::conflict("TLS has no files here"))
    }

    /// Adds a rule that leads requests to a pool, before those that are as specific.
    ///
    /// # Errors
    /// It is not one, or there is no such pool; nothing has changed.
    fn add_rule(&self, _server: &Server, _rule: &str) -> Result<Done, Refusal> {
        Err(Refusal::conflict("the rules cannot be changed here"))
    }

    /// Removes the rule with this number, as the map shows it.
    ///
    /// # Errors
    /// There is none; nothing has changed.
    fn remove_rule(&self, _server: &Server, _number: &str) -> Result<Done, Refusal> {
        Err(Refusal::conflict("the rules cannot be changed here"))
    }

    /// Ends the process gracefully, as SIGTERM does. Returns at once.
    ///
    /// # Errors
    /// It cannot; the server goes on.
    fn drain(&self, server: &Server) -> Result<Done, Refusal> {
        server.drain();
        Ok(Done::line("the server drains"))
    }
}

/// A program that adds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOwner;

impl Owner for NoOwner {}

/// A setting that can be changed while the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of the setting in `set`.
    pub name: String,
    /// The present value.
    pub value: String,
    /// The value by the sources of the configuration: a different present value was set at run time.
    pub configured: String,
    /// The values it takes, in words.
    pub takes: String,
}

/// An option as it holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Its name; of a table with that before it, `pool.reports.queue`.
    pub name: String,
    /// The value as the file would have it; none where it is not set. No secret.
    pub value: Option<String>,
    /// Where it was written, in words.
    pub from: String,
}

/// The result of a change: lines for the log and for the caller, and an optional value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// One for each thing that has changed, with the value before and after.
    pub lines: Vec<String>,
    /// The answer in the place of the lines, if there is one.
    pub value: Option<Value>,
}

impl Done {
    /// One thing has changed.
    pub fn line(line: impl Into<String>) -> Self {
        Self { lines: vec![line.into()], value: None }
    }
}

/// Why a question is not answered, or a change not made. One clear line, with the valid values or the nearest name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 400, 404 or 409.
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Refusal {
    /// A value is wrong.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self { status: 400, text: text.into() }
    }

    /// There is nothing of that name.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { status: 404, text: text.into() }
    }

    /// It cannot be done in the present state.
    pub fn conflict(text: impl Into<String>) -> Self {
        Self { status: 409, text: text.into() }
    }

    /// The line.
    pub fn text(&self) -> &str {
        &self.text
    }
}
