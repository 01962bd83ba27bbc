//! The options that name a server, for all commands that ask one.

use std::path::PathBuf;

use maitred_config::Problem;

use super::choose::{self, Which};
use super::client::{Failed, Place};
use crate::tool_line;

/// The names of these options; each has a value.
pub(crate) const OPTIONS: [&str; 6] = ["socket", "server", "pid", "port", "url", "token-file"];

/// The values of these options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    socket: Option<PathBuf>,
    server: Option<Which>,
    /// `--server`, `--pid` or `--port`.
    by: Option<&'static str>,
    url: Option<String>,
    token_file: Option<PathBuf>,
}

impl Named {
    /// The server that a command line names.
    ///
    /// # Errors
    /// A value is wrong, or two servers are named.
    pub(crate) fn of(given: &tool_line::Given, command: &str) -> Result<Self, Problem> {
        let mut named = Self::default();
        for name in OPTIONS {
            let Some(value) = given.value(name) else { continue };
            named.set(name, value.to_owned()).map_err(|text| {
                let help = format!("'maitred {command} --help' tells more");
                let (what, remedy) = text.split_once("; ").unwrap_or((&text, &help));
                Problem::new(command, what, remedy)
            })?;
        }
        Ok(named)
    }

    /// Notes the value of one of [`OPTIONS`].
    ///
    /// # Errors
    /// The value is wrong, or two servers are named.
    pub(crate) fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "socket" => self.socket = Some(value.into()),
            "server" => self.name("--server", Which::Any(value))?,
            "pid" => self.name("--pid", Which::process(&value)?)?,
            "port" => self.name("--port", Which::port(&value)?)?,
            "url" => self.url = Some(value),
            _ => self.token_file = Some(value.into()),
        }
        let named = [
            ("--socket", self.socket.is_some()),
            (self.by.unwrap_or_default(), self.server.is_some()),
            ("--url", self.url.is_some()),
        ];
        let mut named = named.into_iter().filter(|(_, is)| *is).map(|(name, _)| name);
        match (named.next(), named.next()) {
            (Some(one), Some(other)) => {
                Err(format!("{one} and {other} name two servers; leave one of them out"))
            }
            _ => Ok(()),
        }
    }

    fn name(&mut self, by: &'static str, which: Which) -> Result<(), String> {
        match self.by.replace(by).filter(|other| *other != by) {
            Some(other) => Err(format!("{other} and {by} name two servers; leave one of them out")),
            None => {
                self.server = Some(which);
                Ok(())
            }
        }
    }

    /// The place of the named server; of the only server of this user, if none was named.
    pub(crate) fn place(&self) -> Result<Place, Failed> {
        match (&self.socket, &self.server, &self.url) {
            (Some(path), _, _) => Ok(Place::Socket(path.clone())),
            (None, Some(server), _) => choose::named(server).map(Place::Socket).map_err(Failed::Mistaken),
            (None, None, Some(url)) => Place::of_url(url, self.token_file.as_deref()),
            (None, None, None) => choose::only_one().map(Place::Socket).map_err(Failed::Mistaken),
        }
    }
}
