//! Arguments: those that a command takes, and those that a question gives.

use crate::Refusal;

/// The argument that a supervisor takes out: only this worker is asked.
pub const WORKER: &str = "worker";

/// An argument of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name: in the help, over HTTP, and with two dashes before it where it is an option.
    pub name: &'static str,
    /// The values it takes, in words.
    pub takes: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Whether it is written `--name VALUE`.
    pub option: bool,
    /// Its value where it is left out, also when a later argument is given.
    pub unless_given: Option<&'static str>,
}

pub(crate) const fn required(name: &'static str, takes: &'static str) -> Argument {
    Argument { name, takes, required: true, option: false, unless_given: None }
}

pub(crate) const fn optional(name: &'static str, takes: &'static str) -> Argument {
    Argument { name, takes, required: false, option: false, unless_given: None }
}

pub(crate) const fn unless_given(name: &'static str, takes: &'static str, value: &'static str) -> Argument {
    Argument { name, takes, required: false, option: false, unless_given: Some(value) }
}

pub(crate) const fn option(name: &'static str, takes: &'static str) -> Argument {
    Argument { name, takes, required: false, option: true, unless_given: None }
}

/// Arguments as they were given: names and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given(pub Vec<(String, String)>);

impl Given {
    /// The value of an argument, the last one if it is given more than once.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// All values of an argument.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn needed(&self, name: &str) -> &str {
        self.value(name).unwrap_or_default()
    }

    /// The seconds that an argument names, with a unit or without.
    pub(crate) fn duration(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let units = [("s", 1), ("min", 60), ("m", 60), ("h", 3600), ("d", 86_400)];
        let parse = |text: &str| {
            let unit = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
            let (digits, seconds) = unit.unwrap_or((text, 1));
            digits.parse::<u32>().ok()?.checked_mul(seconds).filter(|seconds| *seconds > 0).map(u64::from)
        };
        let wrong = |text: &str| {
            Refusal::wrong(format!("{name}: '{text}' is no time; write one such as 90, 10s, 5m, 1h or 7d"))
        };
        self.value(name).map(|text| parse(text).ok_or_else(|| wrong(text))).transpose()
    }
}
