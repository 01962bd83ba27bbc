//! The names that options have in other servers, for people who know them: `--host`, `--bind`, `--ssl-keyfile`.
//!
//! Promises: a name that means the same there and here works on the command line and in `maitred.run`, and one that means
//! something else is an error that says what to write. Leaves out: names of ours that are spelt as theirs (`--workers`), and
//! how several of them make one value (sources/familiar.rs).

mod pointers;
mod table;
mod values;

use std::fmt;

pub(crate) use values::{ADDRESS, address, own_value};

use crate::options;
use crate::value::BadValue;

/// A server that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Uvicorn,
    Gunicorn,
    Granian,
    Hypercorn,
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uvicorn => "uvicorn",
            Self::Gunicorn => "gunicorn",
            Self::Granian => "granian",
            Self::Hypercorn => "hypercorn",
        })
    }
}

/// An option of other servers.
pub(crate) struct Familiar {
    /// As they are written on the command line: `--bind`, `-b`.
    pub(crate) names: &'static [&'static str],
    pub(crate) of: &'static [Of],
    pub(crate) becomes: Becomes,
    /// What differs, or how the value is read; may be empty.
    pub(crate) note: &'static str,
}

/// What an option of another server is here.
pub(crate) enum Becomes {
    /// This option, with the same value or, of a switch, with none.
    Option(&'static str),
    /// This option, whose value is written in another way.
    Translated(&'static str, fn(&str) -> Result<String, BadValue>),
    /// A switch there, and here this option with this value.
    Fixed(&'static str, &'static str),
    /// The value says which option it is; the first one is named in lists.
    Chosen(&'static str, fn(&str) -> Result<(&'static str, String), BadValue>),
    /// A part of a value that several of them make.
    Part(Part),
    /// What a server here does always.
    Always,
    /// Nothing; the note says what to do.
    Nothing,
}

/// What belongs together with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Host,
    Port,
    /// The path of a Unix socket.
    Socket,
    /// The mode of its file.
    Mode,
    Backlog,
    StaticRoute,
    StaticFolder,
    /// Whether proxies are believed at all.
    ProxyHeaders(bool),
    /// Which ones.
    Proxies,
}

impl Part {
    /// The option that it is a part of.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Host | Self::Port | Self::Socket | Self::Mode | Self::Backlog => "listen",
            Self::StaticRoute | Self::StaticFolder => "static",
            Self::ProxyHeaders(_) | Self::Proxies => "trusted-proxies",
        }
    }
}

/// A familiar name as it was written.
pub(crate) struct Written<'a> {
    pub(crate) familiar: &'static Familiar,
    /// With its dashes.
    pub(crate) name: &'static str,
    /// The value behind `=`, or behind the letter.
    pub(crate) attached: Option<&'a str>,
}

/// All of them: first those that are options here.
pub(crate) fn all() -> impl Iterator<Item = &'static Familiar> {
    table::OPTIONS.iter().chain(pointers::POINTERS)
}

/// The one that is written so on the command line: `--name`, `--name=VALUE`, `-n` or `-nVALUE`.
pub(crate) fn find(argument: &str) -> Option<Written<'_>> {
    let (flag, attached) = match argument.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (argument, None),
    };
    let whole = |wanted: &str, attached| {
        let named = |familiar: &'static Familiar| {
            let name = familiar.names.iter().find(|name| **name == wanted)?;
            Some(Written { familiar, name, attached })
        };
        all().find_map(named)
    };
    if let Some(written) = whole(flag, attached) {
        return Some(written);
    }
    let is_short = argument.starts_with('-') && !argument.starts_with("--");
    // `-workers` is no letter with a value.
    if !is_short || options::find(&flag[1..]).is_some() || whole(&format!("-{flag}"), None).is_some() {
        return None;
    }
    let (letter, value) = argument.split_at_checked(2)?;
    whole(letter, Some(value)).filter(|written| written.familiar.takes_value())
}

/// The names that lead to an option of ours.
pub(crate) fn of_option(option: &str) -> impl Iterator<Item = &'static str> {
    all()
        .filter(move |familiar| familiar.option() == Some(option))
        .flat_map(|familiar| familiar.names)
        .copied()
}

impl Familiar {
    /// The option that it is here.
    pub(crate) fn option(&self) -> Option<&'static str> {
        match self.becomes {
            Becomes::Option(name)
            | Becomes::Translated(name, _)
            | Becomes::Fixed(name, _)
            | Becomes::Chosen(name, _) => Some(name),
            Becomes::Part(part) => Some(part.option()),
            Becomes::Always | Becomes::Nothing => None,
        }
    }

    /// Whether a value stands behind it. What is nothing here is refused before its value is looked at.
    pub(crate) fn takes_value(&self) -> bool {
        match self.becomes {
            Becomes::Option(name) => options::find(name).is_some_and(|option| !option.is_switch()),
            Becomes::Translated(..) | Becomes::Chosen(..) => true,
            Becomes::Part(part) => !matches!(part, Part::ProxyHeaders(_)),
            Becomes::Fixed(..) | Becomes::Always | Becomes::Nothing => false,
        }
    }

    /// `uvicorn, granian`.
    pub(crate) fn whose(&self) -> String {
        self.of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// What it is here, in words of the reference: `` `--listen`: the note ``.
    pub(crate) fn meaning(&self) -> String {
        let option = match self.becomes {
            Becomes::Fixed(name, value) => match options::find(name).is_some_and(|option| option.is_switch())
            {
                true => format!("`--no-{name}`"),
                false => format!("`--{name} {value}`"),
            },
            Becomes::Always => "always so".to_owned(),
            Becomes::Nothing => return format!("refused: {}", self.note),
            _ => self.option().map(|name| format!("`--{name}`")).unwrap_or_default(),
        };
        if self.note.is_empty() { option } else { format!("{option}: {}", self.note) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_once_and_is_none_of_ours() {
        let mut seen = std::collections::BTreeSet::new();
        for name in all().flat_map(|familiar| familiar.names) {
            assert!(seen.insert(*name), "{name} stands twice");
            let own = name.strip_prefix("--").and_then(options::find);
            assert!(own.is_none(), "{name} is an option of maitred");
            assert!(name.starts_with('-') && *name != "-h" && *name != "-V", "{name}");
        }
    }

    #[test]
    fn every_name_leads_to_an_option_or_says_what_to_do() {
        for familiar in all() {
            match familiar.option() {
                Some(option) => assert!(options::find(option).is_some(), "{option}"),
                None => assert!(familiar.note.len() > 10, "{:?}", familiar.names),
            }
            assert!(!familiar.of.is_empty(), "{:?}", familiar.names);
        }
    }

    /// An option of ours that a note names has to be there.
    #[test]
    fn what_a_note_names_exists() {
        let ours = |name: &str| options::find(name).is_some() || find(&format!("--{name}")).is_some();
        for familiar in all() {
            for word in familiar.note.split([' ', ',', ';', ':', '(', ')', '\'']) {
                if let Some(name) = word.strip_prefix("--") {
                    assert!(ours(name), "{:?} names --{name}", familiar.names);
                }
            }
        }
    }

    #[test]
    fn letters_have_their_value_behind_them_and_words_do_not() {
        let attached = |argument| find(argument).map(|written| (written.name, written.attached));
        assert_eq!(attached("-w"), Some(("-w", None)));
        assert_eq!(attached("-w4"), Some(("-w", Some("4"))));
        assert_eq!(attached("-b=:80"), Some(("-b", Some(":80"))));
        assert_eq!(attached("-b127.0.0.1:80"), Some(("-b", Some("127.0.0.1:80"))));
        assert_eq!(attached("--bind=:80"), Some(("--bind", Some(":80"))));
        for argument in ["-workers", "-bind", "-bind=:80", "--workers", "--", "-", "-ä", "-h", "-V"] {
            assert!(find(argument).is_none(), "{argument}");
        }
    }
}
