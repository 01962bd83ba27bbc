//! Error log, access log, and the log of calls to other servers.

use super::definition::{Definition, Kind, Reload, server, site};
use crate::forms::{
    ACCESS_LOG, BYTES, CLIENT_LOG, Count, ERROR_LOG, LEVEL, LOG_FORMAT, MASK, PATHS, PERIOD, SWITCH,
};

/// Closed log files: a year of hours.
const MAX_LOG_FILES: usize = 10_000;
/// Their age in days: a century.
const MAX_LOG_DAYS: usize = 36_500;

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "access-log",
        placeholder: "auto|off|-|PATH",
        kind: Kind::Manner(&site(ACCESS_LOG, |site| &mut site.access_log)),
        default: &["auto"],
        summary: "A line for each request: nowhere (off), to standard output (-), there if it is a terminal (auto), to \
                  standard error (stderr), to the local syslog (syslog) or syslog:HOST:PORT over UDP, to Python's logger \
                  maitred.access (logging), or appended to a file, whose name may have a date (access-%Y%m%d.log).",
        cost: "some CPU for each request, and a write every 5 ms",
        worst: "a reader that does not keep up loses lines, never requests",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "access-log-format",
        placeholder: "NAME|TEXT",
        kind: Kind::Manner(&site(LOG_FORMAT, |site| &mut site.access_log_format)),
        default: &["default"],
        summary: "What is in a line: default, common, combined, times, json, or text with fields ($status $request).",
        cost: "CPU and bytes for each field",
        worst: "a line that no tool reads",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "access-log-mask",
        placeholder: "off|on|BITS4,BITS6",
        kind: Kind::Server(&server(MASK, |config| &mut config.access_log_mask)),
        default: &["off"],
        summary: "How many bits of a peer's address are kept in the access log; on is 24,48.",
        cost: "none",
        worst: "who attacks is not seen in the log; the error log has whole addresses all the same",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "access-log-except",
        placeholder: "/PATH",
        kind: Kind::Server(&server(PATHS, |config| &mut config.access_log_except)),
        summary: "A path whose requests have no line in the access log, as in the rules of pools: /healthz, /assets/*, *.css. \
                  They are counted all the same.",
        cost: "some ten nanoseconds each for a request",
        worst: "errors of these paths are not in the access log either",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "error-log",
        placeholder: "stderr|logging|PATH",
        kind: Kind::Server(&server(ERROR_LOG, |config| &mut config.error_log)),
        default: &["stderr"],
        summary: "Where the error log goes: stderr, stdout, syslog or syslog:HOST:PORT, a file, or logging, which is Python's: loggers \
                  maitred.error, and maitred.wsgi for what WSGI applications write to wsgi.errors.",
        cost: "none",
        worst: "in a file nobody looks at, a problem is not seen; what prevents the start is on standard error",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "client-log",
        placeholder: "off|-|PATH",
        kind: Kind::Server(&server(CLIENT_LOG, |config| &mut config.client_log)),
        default: &["off"],
        summary: "A line for each call to another server that the application makes by maitred.http or its transports: the \
                  request's id, the server, status or end, the time of each part, bytes. To standard output (-), stderr, \
                  syslog or syslog:HOST:PORT, or appended to a file.",
        cost: "about a microsecond for each call, and a write every 5 ms",
        worst: "a reader that does not keep up loses lines, never calls",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "log-level",
        kind: Kind::Server(&server(LEVEL, |config| &mut config.log_level)),
        default: &["info"],
        summary: "How much the error log says. Lines that a WSGI application writes to wsgi.errors are there at every level.",
        cost: "a line for each refused request from info on, for each broken connection at debug",
        worst: "error: what an application does wrong without losing anything is not seen",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "dispatch-trace",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.dispatch_trace)),
        default: &["false"],
        summary: "An entry in the error log for each request: what waited and which threads there were when it got its \
                  thread.",
        cost: "a line for each request, and a lock of its pool",
        worst: "under load entries are dropped, and errors with them",
        ..Definition::of(Reload::Insight)
    },
    Definition {
        name: "log-rotate",
        kind: Kind::Server(&server(PERIOD, |config| &mut config.log_rotate)),
        default: &["off"],
        summary: "When a log file is closed, renamed and followed by a new one: at the first line of another hour or day, \
                  local time.",
        cost: "none",
        worst: "off, and nobody else does it: the file fills the disk",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "log-rotate-size",
        kind: Kind::Server(&server(BYTES, |config| &mut config.log_rotate_size)),
        default: &["0"],
        summary: "The same before the line that would make it longer than this; 0 for no limit. A single line may be longer.",
        cost: "a system call for each write, which has as many lines as the file has room for",
        worst: "very small: many files",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "log-keep",
        placeholder: "NUMBER",
        kind: Kind::Server(&server(Count(0, MAX_LOG_FILES), |config| &mut config.log_keep)),
        default: &["0"],
        summary: "Closed files that are kept of each log; the oldest are removed. 0 for all.",
        cost: "disk space",
        worst: "too few: what happened before is gone; 0: they fill the disk",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "log-keep-days",
        placeholder: "DAYS",
        kind: Kind::Server(&server(Count(0, MAX_LOG_DAYS), |config| &mut config.log_keep_days)),
        default: &["0"],
        summary: "Closed files that were last written to longer ago are removed. 0 for never.",
        cost: "disk space",
        worst: "as log-keep",
        ..Definition::of(Reload::Restart)
    },
];
