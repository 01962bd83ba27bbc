//! Logs: the values of their options, and what the server makes of them.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use maitred_log::{AccessLogSettings, BadFormat, Format, Level, Log, Mask, strftime};
use maitred_server::{LogTarget, Rotation};

use crate::config::Config;
use crate::problem::{Problem, nearest};
use crate::sources::Origins;
use crate::value::{BadValue, LogLevel};

/// The local syslog (syslog(3)).
const LOCAL_SYSLOG: &str = "/dev/log";

/// Where a log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogPlace {
    /// Nowhere.
    #[default]
    Off,
    /// To standard output.
    Stdout,
    /// To standard error.
    Stderr,
    /// To the local syslog.
    Syslog,
    /// To a syslog that takes UDP: as it was written, and its address.
    SyslogAt(String, SocketAddr),
    /// Appended to this file, whose name may have the date in it.
    File(PathBuf),
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Stdout => f.write_str("-"),
            Self::Stderr => f.write_str("stderr"),
            Self::Syslog => f.write_str("syslog"),
            Self::SyslogAt(text, _) => write!(f, "syslog:{text}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

pub(crate) fn access_place(text: &str) -> Result<LogPlace, BadValue> {
    match text {
        "" => Err(BadValue::new("the file name is empty", "write off, - or the path of a file")),
        "off" => Ok(LogPlace::Off),
        "-" => Ok(LogPlace::Stdout),
        _ => place(text),
    }
}

pub(crate) fn error_place(text: &str) -> Result<LogPlace, BadValue> {
    match text {
        "" | "off" | "-" => Err(BadValue::new(
            format!("'{text}' is no place for the error log"),
            "write stderr, stdout, syslog or the path of a file",
        )),
        _ => place(text),
    }
}

fn place(text: &str) -> Result<LogPlace, BadValue> {
    match text {
        "stdout" => Ok(LogPlace::Stdout),
        "stderr" => Ok(LogPlace::Stderr),
        "syslog" => Ok(LogPlace::Syslog),
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
            let remedy = match nearest(&text, Format::names()) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => format!("write {}, or text with fields such as $status", names()),
            };
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

/// Opens the logs.
pub(crate) fn open(config: &Config, origins: &Origins) -> Result<Arc<Log>, Problem> {
    let access = (config.access_log != LogPlace::Off).then(|| AccessLogSettings {
        target: target(config, &config.access_log),
        format: config.access_log_format.clone(),
        mask: config.access_log_mask,
        synchronous: config.access_log_sync,
    });
    let errors = target(config, &config.error_log);
    // One after the other, so that an error is that of the right one.
    let log = Log::open(level(config.log_level), errors, None)
        .map_err(|error| not_opened("error-log", &config.error_log, &error, origins))?;
    let log = match access {
        Some(access) => log
            .with_access(access)
            .map_err(|error| not_opened("access-log", &config.access_log, &error, origins))?,
        None => log,
    };
    log.set_trace(config.dispatch_trace);
    Ok(Arc::new(log))
}

/// ENXIO: a named pipe that no process has opened for reading.
const NO_READER: i32 = 6;

fn not_opened(option: &str, place: &LogPlace, error: &std::io::Error, origins: &Origins) -> Problem {
    // Standard error and standard output are open already: it is the file, the syslog, or a thread.
    let what = format!("the log cannot be opened ({place}): {error}");
    let remedy = match place {
        LogPlace::Syslog => "start a syslog that listens at /dev/log, or name another place",
        _ if error.raw_os_error() == Some(NO_READER) => "start the reader of this pipe before the server",
        _ => "name a file that this user may append to",
    };
    Problem::new(origins.describe(option), what, remedy)
}

pub(crate) fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::Error,
        LogLevel::Warn => Level::Warn,
        LogLevel::Info => Level::Info,
        LogLevel::Debug => Level::Debug,
    }
}

fn target(config: &Config, place: &LogPlace) -> LogTarget {
    match place {
        LogPlace::Off | LogPlace::Stderr => LogTarget::Stderr,
        LogPlace::Stdout => LogTarget::Stdout,
        LogPlace::Syslog => LogTarget::Syslog(LOCAL_SYSLOG.into()),
        LogPlace::SyslogAt(_, address) => LogTarget::SyslogUdp(*address),
        LogPlace::File(path) if is_rotated(config, path) => {
            let days = u64::try_from(config.log_keep_days).unwrap_or(u64::MAX);
            let rotation = Rotation {
                max_bytes: config.log_rotate_size,
                period: config.log_rotate,
                keep: config.log_keep,
                max_age: Duration::from_secs(days.saturating_mul(86_400)),
                strftime,
            };
            LogTarget::Rotated(path.clone(), rotation)
        }
        LogPlace::File(path) => LogTarget::Path(path.clone()),
    }
}

fn is_rotated(config: &Config, path: &Path) -> bool {
    let is_pattern = path.file_name().and_then(|name| name.to_str()).is_some_and(Rotation::is_pattern);
    is_pattern || config.log_rotate_size > 0 || config.log_rotate.is_some()
}

/// Checks what no single option can know.
pub(crate) fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    for (name, place) in [("access-log", &config.access_log), ("error-log", &config.error_log)] {
        if let LogPlace::File(path) = place {
            check_file(path).map_err(|(what, remedy)| Problem::new(origins.describe(name), what, remedy))?;
        }
    }
    let direct = match &config.access_log {
        LogPlace::Syslog | LogPlace::SyslogAt(..) => Some("syslog"),
        LogPlace::File(path) if is_rotated(config, path) => Some("a file that is rotated"),
        _ => None,
    };
    if let Some(direct) = direct.filter(|_| config.access_log_sync) {
        return Err(Problem::new(
            origins.describe("access-log-sync"),
            format!("{direct} is written by a thread of its own"),
            "leave it out, or name a plain file",
        ));
    }
    Ok(())
}

/// What is wrong, and the remedy.
fn check_file(path: &Path) -> Result<(), (String, String)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() {
        Err((format!("{} is a folder", path.display()), "name a file in it".to_owned()))
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let what = format!("there is no folder {} for the file {}", folder.display(), path.display());
        Err((what, "create it or correct the path".to_owned()))
    } else {
        Ok(())
    }
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
        for text in ["off", "-", "stderr", "syslog", "syslog:127.0.0.1:514", "/var/log/a-%Y%m%d.log", "./off"]
        {
            assert_eq!(access_place(text).expect(text).to_string(), text);
        }
        for text in ["", "syslog:", "syslog:nobody", "syslog:127.0.0.1:99999"] {
            assert!(access_place(text).is_err(), "{text}");
        }
        assert!(error_place("off").is_err() && error_place("-").is_err());
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
