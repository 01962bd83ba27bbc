//! Error log and access log.

use super::{Definition, Kind, MAX_LOG_DAYS, MAX_LOG_FILES, Reach};

/// An option that can be changed while the server runs.
pub(super) const DISPATCH_TRACE: &str = "dispatch-trace";

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "access-log",
        placeholder: "auto|off|-|PATH",
        kind: Kind::AccessLog(|config| &mut config.site.access_log),
        default: &["auto"],
        reach: Reach::Everywhere,
        summary: "A line for each request: nowhere (off), to standard output (-), there if it is a terminal (auto), to \
                  standard error (stderr), to the local syslog (syslog) or syslog:HOST:PORT over UDP, to Python's logger \
                  maitred.access (logging), or appended to a file, whose name may have a date (access-%Y%m%d.log).",
        cost: "some CPU for each request, and a write every 5 ms",
        worst: "a reader that does not keep up loses lines, never requests",
    },
    Definition {
        name: "access-log-format",
        placeholder: "NAME|TEXT",
        kind: Kind::LogFormat(|config| &mut config.site.access_log_format),
        default: &["default"],
        reach: Reach::Everywhere,
        summary: "What is in a line: default, common, combined, times, json, or text with fields ($status $request).",
        cost: "CPU and bytes for each field",
        worst: "a line that no tool reads",
    },
    Definition {
        name: "access-log-mask",
        placeholder: "off|on|BITS4,BITS6",
        kind: Kind::Mask(|config| &mut config.access_log_mask),
        default: &["off"],
        reach: Reach::Everywhere,
        summary: "How many bits of a peer's address are kept in the access log; on is 24,48.",
        cost: "none",
        worst: "who attacks is not seen in the log; the error log has whole addresses all the same",
    },
    Definition {
        name: "access-log-except",
        placeholder: "/PATH",
        kind: Kind::Paths(|config| &mut config.access_log_except),
        default: &[],
        reach: Reach::Everywhere,
        summary: "A path whose requests have no line in the access log, as in the rules of pools: /healthz, /assets/*, *.css. \
                  They are counted all the same.",
        cost: "some ten nanoseconds each for a request",
        worst: "errors of these paths are not in the access log either",
    },
    Definition {
        name: "error-log",
        placeholder: "stderr|logging|PATH",
        kind: Kind::ErrorLog(|config| &mut config.error_log),
        default: &["stderr"],
        reach: Reach::Everywhere,
        summary: "Where the error log goes: stderr, stdout, syslog or syslog:HOST:PORT, a file, or logging, which is Python's: loggers \
                  maitred.error, and maitred.wsgi for what WSGI applications write to wsgi.errors.",
        cost: "none",
        worst: "in a file nobody looks at, a problem is not seen; what prevents the start is on standard error",
    },
    Definition {
        name: "log-level",
        placeholder: "error|warn|info|debug",
        kind: Kind::Level(|config| &mut config.log_level),
        default: &["info"],
        reach: Reach::Everywhere,
        summary: "How much the error log says. Lines that a WSGI application writes to wsgi.errors are there at every level.",
        cost: "a line for each refused request from info on, for each broken connection at debug",
        worst: "error: what an application does wrong without losing anything is not seen",
    },
    Definition {
        name: DISPATCH_TRACE,
        placeholder: "",
        kind: Kind::Switch(|config| &mut config.dispatch_trace),
        default: &["false"],
        reach: Reach::Everywhere,
        summary: "An entry in the error log for each request: what waited and which threads there were when it got its \
                  thread.",
        cost: "a line for each request, and a lock of its pool",
        worst: "under load entries are dropped, and errors with them",
    },
    Definition {
        name: "log-rotate",
        placeholder: "off|hourly|daily",
        kind: Kind::Period(|config| &mut config.log_rotate),
        default: &["off"],
        reach: Reach::Everywhere,
        summary: "When a log file is closed, renamed and followed by a new one: at the first line of another hour or day, \
                  local time.",
        cost: "none",
        worst: "off, and nobody else does it: the file fills the disk",
    },
    Definition {
        name: "log-rotate-size",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.log_rotate_size),
        default: &["0"],
        reach: Reach::Everywhere,
        summary: "The same before the line that would make it longer than this; 0 for no limit. A single line may be longer.",
        cost: "a system call for each write, which has as many lines as the file has room for",
        worst: "very small: many files",
    },
    Definition {
        name: "log-keep",
        placeholder: "NUMBER",
        kind: Kind::Count(0, MAX_LOG_FILES, |config| &mut config.log_keep),
        default: &["0"],
        reach: Reach::Everywhere,
        summary: "Closed files that are kept of each log; the oldest are removed. 0 for all.",
        cost: "disk space",
        worst: "too few: what happened before is gone; 0: they fill the disk",
    },
    Definition {
        name: "log-keep-days",
        placeholder: "DAYS",
        kind: Kind::Count(0, MAX_LOG_DAYS, |config| &mut config.log_keep_days),
        default: &["0"],
        reach: Reach::Everywhere,
        summary: "Closed files that were last written to longer ago are removed. 0 for never.",
        cost: "disk space",
        worst: "as log-keep",
    },
];
