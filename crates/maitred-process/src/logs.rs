//! Opens the logs that the configuration names.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use maitred_config::logs::is_rotated;
use maitred_config::problem::folder_of;
use maitred_config::{Config, LogPlace, Origins, Problem};
use maitred_log::{AccessLogSettings, Log, strftime};
use maitred_server::rights::Identity;
use maitred_server::{LogTarget, Rotation};

use crate::host::{Host, LogName};

/// The local syslog (syslog(3)).
const LOCAL_SYSLOG: &str = "/dev/log";

/// Which process of those that write to the same logs this is.
pub(crate) enum Writer {
    Only,
    Supervisor,
    Worker(u32),
}

pub(crate) fn open(config: &Config, origins: &Origins, writer: &Writer) -> Result<Arc<Log>, Problem> {
    let access = (config.site.access_log != LogPlace::Off).then(|| AccessLogSettings {
        target: target(config, &config.site.access_log),
        format: config.site.access_log_format.clone(),
        mask: config.access_log_mask,
        except: config.access_log_except.clone(),
    });
    let errors = target(config, &config.error_log);
    // One after the other, so that an error is that of the right one.
    let log = match writer {
        Writer::Only => Log::open(config.log_level, errors, None),
        Writer::Supervisor | Writer::Worker(_) => Log::open_shared(config.log_level, errors),
    };
    let log = log.map_err(|error| not_opened("error-log", &config.error_log, &error, origins))?;
    let log = match access {
        Some(access) => log
            .with_access(access)
            .map_err(|error| not_opened("access-log", &config.site.access_log, &error, origins))?,
        None => log,
    };
    let log = open_of_hosts(config, origins, log)?;
    // A supervisor makes no calls.
    let log = match &config.client_log {
        LogPlace::Off => log,
        _ if matches!(writer, Writer::Supervisor) => log,
        place => log
            .with_calls(target(config, place))
            .map_err(|error| not_opened("client-log", place, &error, origins))?,
    };
    log.set_trace(config.dispatch_trace);
    if let Writer::Worker(number) = writer {
        log.set_worker(*number);
    }
    Ok(Arc::new(log))
}

/// Whether any log goes to the logging of a language, and which option says so.
fn to_logging(config: &Config) -> Option<(&'static str, Option<&str>)> {
    let of_hosts = config.hosts.iter().filter(|host| host.has_log());
    let mut of_hosts = of_hosts.filter(|host| host.site.access_log == LogPlace::Logging);
    match () {
        () if config.error_log == LogPlace::Logging => Some(("error-log", None)),
        () if config.site.access_log == LogPlace::Logging => Some(("access-log", None)),
        () => of_hosts.next().map(|host| ("access-log", Some(&*host.name))),
    }
}

/// Checks that there is such a logging.
///
/// # Errors
/// There is none.
pub fn check_logging(config: &Config, origins: &Origins, host: &dyn Host) -> Result<(), Problem> {
    let Some((option, of_host)) = to_logging(config).filter(|_| !host.has_logging()) else { return Ok(()) };
    Err(Problem::new(
        origins.describe_in(of_host, option),
        "'logging' is Python's, and this program has no Python",
        "name another place, or run the maitred command of the Python package (python -m maitred)",
    ))
}

/// The configuration in which the logs that go to the logging of the language have a file for that; none if no log does. A supervisor
/// loads no application, which would configure it: what it writes itself goes to standard error.
pub(crate) fn with_logging(config: &Config, writer: &Writer, host: &dyn Host) -> io::Result<Option<Config>> {
    if to_logging(config).is_none() {
        return Ok(None);
    }
    let mut own = config.clone();
    let place = |place: &mut LogPlace, name| -> io::Result<()> {
        if *place == LogPlace::Logging {
            *place = match writer {
                Writer::Supervisor => LogPlace::Stderr,
                _ => LogPlace::LoggingAt(host.logging_place(name)?),
            };
        }
        Ok(())
    };
    place(&mut own.error_log, LogName::Error)?;
    place(&mut own.site.access_log, LogName::Access)?;
    for host in own.hosts.iter_mut().filter(|host| host.has_log()) {
        place(&mut host.site.access_log, LogName::Access)?;
    }
    Ok(Some(own))
}

/// Opens the access logs of hosts that have one of their own.
fn open_of_hosts(config: &Config, origins: &Origins, log: Log) -> Result<Log, Problem> {
    let own = (1..).zip(config.sites().skip(1)).filter_map(|(number, (host, site))| {
        let host = host.filter(|host| host.has_log())?;
        Some((number, host, site))
    });
    own.into_iter().try_fold(log, |log, (number, host, site)| {
        let place = &site.access_log;
        let settings = (*place != LogPlace::Off).then(|| AccessLogSettings {
            target: target(config, place),
            format: site.access_log_format.clone(),
            mask: config.access_log_mask,
            except: config.access_log_except.clone(),
        });
        log.with_access_of_host(number, settings).map_err(|error| {
            let written = origins.describe_host(&host.name, Some("access-log"));
            let (what, remedy) = why_not_opened(place, &error);
            Problem::new(written, what, remedy)
        })
    })
}

/// Where the logs go: those of all, and the access logs of hosts.
fn places(config: &Config) -> impl Iterator<Item = &LogPlace> {
    let own = config.hosts.iter().filter(|host| host.has_log()).map(|host| &host.site.access_log);
    [&config.site.access_log, &config.error_log, &config.client_log].into_iter().chain(own)
}

/// Makes the files of the logs for the user that the process becomes before it opens them.
pub(crate) fn give(config: &Config, identity: &Identity) {
    for place in places(config) {
        target(config, place).give_to(identity);
    }
}

pub(crate) fn folders(config: &Config) -> impl Iterator<Item = &Path> {
    places(config).filter_map(|place| match place {
        // Not of a device or a pipe.
        LogPlace::File(path) if path.is_file() || !path.exists() => Some(folder_of(path)),
        _ => None,
    })
}

/// ENXIO: a named pipe that no process has opened for reading.
const NO_READER: i32 = 6;

fn not_opened(option: &str, place: &LogPlace, error: &std::io::Error, origins: &Origins) -> Problem {
    let (what, remedy) = why_not_opened(place, error);
    Problem::new(origins.describe(option), what, remedy)
}

fn why_not_opened(place: &LogPlace, error: &std::io::Error) -> (String, &'static str) {
    // Standard error and standard output are open already: it is the file, the syslog, or a thread.
    let what = format!("the log cannot be opened ({place}): {error}");
    let remedy = match place {
        LogPlace::Syslog => "start a syslog that listens at /dev/log, or name another place",
        LogPlace::File(path) if path.starts_with("/dev") => {
            "this user may not open it: write - for standard output (error-log: stdout or stderr)"
        }
        _ if error.raw_os_error() == Some(NO_READER) => "start the reader of this pipe before the server",
        _ => "name a file that this user may append to",
    };
    (what, remedy)
}

fn target(config: &Config, place: &LogPlace) -> LogTarget {
    match place {
        LogPlace::Off | LogPlace::Auto | LogPlace::Logging | LogPlace::Stderr => LogTarget::Stderr,
        LogPlace::LoggingAt(path) => LogTarget::Path(path.clone()),
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
