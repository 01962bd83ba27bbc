//! The values of the options of logs: places, formats, masks.

use std::fmt;
use std::io::IsTerminal;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::OnceLock;

use maitred_log::{BadFormat, Format, Mask};

use crate::{BadValue, did_you_mean, nearest};

/// The place of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogPlace {
    /// No log.
    #[default]
    Off,
    /// Standard output if that is a terminal, else no log. For the access log only, and decided when the configuration has been read.
    Auto,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The local syslog.
    Syslog,
    /// A syslog over UDP: the text as it was written, and the address.
    SyslogAt(String, SocketAddr),
    /// The logging of the application's language.
    Logging,
    /// The logging of the language, by way of this file.
    LoggingAt(PathBuf),
    /// This file, whose name may have the date in it. Lines are appended.
    File(PathBuf),
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Auto => f.write_str(AUTO),
            Self::Stdout => f.write_str("-"),
            Self::Stderr => f.write_str("stderr"),
            Self::Syslog => f.write_str("syslog"),
            Self::Logging | Self::LoggingAt(_) => f.write_str("logging"),
            Self::SyslogAt(text, _) => write!(f, "syslog:{text}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

const AUTO: &str = "auto";

impl LogPlace {
    /// Replaces `auto` by standard output or no log.
    pub fn settle(&mut self) {
        if *self == Self::Auto {
            *self = if is_on_terminal() { Self::Stdout } else { Self::Off };
        }
    }
}

/// Whether standard output was a terminal at the first call. A terminal that hangs up later must not change the configuration.
pub(crate) fn is_on_terminal() -> bool {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    *IS_TERMINAL.get_or_init(|| std::io::stdout().is_terminal())
}

pub(crate) fn access_place(text: &str) -> Result<LogPlace, BadValue> {
    match text {
        "" => Err(BadValue::new("the file name is empty", "write off, - or the path of a file")),
        "off" => Ok(LogPlace::Off),
        AUTO => Ok(LogPlace::Auto),
        "-" => Ok(LogPlace::Stdout),
        _ => place(text),
    }
}

pub(crate) fn error_place(text: &str) -> Result<LogPlace, BadValue> {
    match text {
        "" | "off" | "-" | AUTO => Err(BadValue::new(
            format!("'{text}' is no place for the error log"),
            "write stderr, stdout, syslog, logging or the path of a file",
        )),
        _ => place(text),
    }
}

pub(crate) fn client_place(text: &str) -> Result<LogPlace, BadValue> {
    match text {
        "" | AUTO | "logging" => Err(BadValue::new(
            format!("'{text}' is no place for the client log"),
            "write off, - (standard output), stderr, syslog or the path of a file",
        )),
        "off" => Ok(LogPlace::Off),
        "-" => Ok(LogPlace::Stdout),
        _ => place(text),
    }
}

fn place(text: &str) -> Result<LogPlace, BadValue> {
    match text {
        "stdout" => Ok(LogPlace::Stdout),
        "stderr" => Ok(LogPlace::Stderr),
        "syslog" => Ok(LogPlace::Syslog),
        "logging" => Ok(LogPlace::Logging),
        _ => match text.strip_prefix("syslog:") {
            Some(address) => syslog_at(address),
            None => Ok(LogPlace::File(PathBuf::from(text))),
        },
    }
}

fn syslog_at(text: &str) -> Result<LogPlace, BadValue> {
    let remedy = "write syslog:HOST:PORT, for example syslog:127.0.0.1:514, or syslog alone for /dev/log";
    let found = text.to_socket_addrs().map(|mut addresses| addresses.next());
    match found {
        Ok(Some(address)) => Ok(LogPlace::SyslogAt(text.to_owned(), address)),
        Ok(None) => Err(BadValue::new(format!("'{text}' has no address"), remedy)),
        Err(error) => Err(BadValue::new(format!("'{text}' cannot be sent to: {error}"), remedy)),
    }
}

pub(crate) fn format(text: &str) -> Result<Format, BadValue> {
    Format::parse(text).map_err(|bad| match bad {
        BadFormat::Empty => BadValue::new("the format is empty", format!("write {}", names())),
        BadFormat::NoField(text) => {
            let remedy = did_you_mean(
                &text,
                Format::names(),
                format!("write {}, or text with fields such as $status", names()),
            );
            BadValue::new(format!("'{text}' is neither a format's name nor has it a field"), remedy)
        }
        BadFormat::UnknownField(name) => {
            let remedy = match nearest(&name, Format::fields()) {
                Some(meant) => format!("did you mean ${meant}?"),
                None => "docs/operations/logs.md lists the fields".to_owned(),
            };
            BadValue::new(format!("there is no field ${name}"), remedy)
        }
        BadFormat::NoName(at) => BadValue::new(
            format!("the dollar sign at byte {at} has no name behind it"),
            "write $name, ${name}, or $$ for the sign itself",
        ),
        BadFormat::ControlCharacter => {
            BadValue::new("a format is one line without control characters", "leave them out")
        }
    })
}

fn names() -> String {
    Format::names().collect::<Vec<_>>().join(", ")
}

pub(crate) fn mask(text: &str) -> Result<Option<Mask>, BadValue> {
    match text {
        "off" | "false" | "no" | "0" => return Ok(None),
        "on" | "true" | "yes" | "1" => return Ok(Some(Mask::default())),
        _ => {}
    }
    let bits = |text: &str, most: u8| text.trim().parse::<u8>().ok().filter(|bits| *bits <= most);
    let mask = text.split_once(',').and_then(|(v4, v6)| Some(Mask { v4: bits(v4, 32)?, v6: bits(v6, 128)? }));
    mask.map(Some).ok_or_else(|| {
        BadValue::new(
            format!("'{text}' is neither off, on nor two numbers of bits"),
            "write for example 24,48: the bits that are kept of IPv4 (to 32) and IPv6 (to 128)",
        )
    })
}

pub(crate) fn show_mask(mask: Option<Mask>) -> String {
    mask.map_or("off".to_owned(), |mask| format!("{},{}", mask.v4, mask.v6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_comes_with_the_one_that_was_meant() {
        let bad = format("$status $http_refrer $statsu").expect_err("a wrong field");
        assert_eq!(
            (bad.what.as_str(), bad.remedy.as_str()),
            ("there is no field $statsu", "did you mean $status?")
        );
        let bad = format("combind").expect_err("a wrong name");
        assert_eq!(bad.remedy, "did you mean 'combined'?");
        assert!(format("off").is_err());
    }

    #[test]
    fn places_are_read_as_they_are_shown() {
        for text in [
            "off",
            "auto",
            "-",
            "stderr",
            "logging",
            "syslog",
            "syslog:127.0.0.1:514",
            "/var/log/a-%Y%m%d.log",
            "./off",
        ] {
            assert_eq!(access_place(text).expect(text).to_string(), text);
        }
        for text in ["", "syslog:", "syslog:nobody", "syslog:127.0.0.1:99999"] {
            assert!(access_place(text).is_err(), "{text}");
        }
        assert!(["off", "-", "auto"].into_iter().all(|text| error_place(text).is_err()));
    }

    #[test]
    fn masks_are_bits() {
        assert_eq!(mask("off"), Ok(None));
        assert_eq!(mask("on"), Ok(Some(Mask { v4: 24, v6: 48 })));
        assert_eq!(mask("16, 32"), Ok(Some(Mask { v4: 16, v6: 32 })));
        for text in ["", "24", "33,48", "24,129", "a,b"] {
            assert!(mask(text).is_err(), "{text}");
        }
    }

    /// The page has the fields in a table.
    #[test]
    fn every_field_and_format_is_documented() {
        let page = include_str!("../../../docs/operations/logs.md");
        for name in Format::fields() {
            assert!(page.contains(&format!("`${name}`")), "${name}");
        }
        for name in Format::names() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
