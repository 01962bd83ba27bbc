//! Every option, once. From this table come the command line, the environment variables, the keys
//! of `maitred.toml`, `--help`, `maitred check` and docs/operations/configuration.md.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::Config;
use crate::host::Interface;
use crate::value::{self, AccessLog, BadValue, ListenAddress, LogLevel, Mount};

/// An option: its name, what it takes, its default, and what there is to know about it.
pub(crate) struct Definition {
    /// The name on the command line (`--name`) and in the file; the variable is made of it.
    pub(crate) name: &'static str,
    /// What stands for the value in help texts; empty for switches.
    pub(crate) placeholder: &'static str,
    /// What the value is and where it goes.
    pub(crate) kind: Kind,
    /// As it would be written on the command line.
    pub(crate) default: &'static [&'static str],
    /// Where it can be set.
    pub(crate) reach: Reach,
    /// What it does, one sentence.
    pub(crate) summary: &'static str,
    /// What more of it costs.
    pub(crate) cost: &'static str,
    /// What a bad choice leads to.
    pub(crate) worst: &'static str,
}

/// Where an option can be set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Command line, environment and file.
    Everywhere,
    /// Not in the file: it says which file.
    NotInFile,
    /// Only on the command line.
    CommandLine,
}

/// What the value of an option is, and the field of [`Config`] it goes to.
pub(crate) enum Kind {
    /// The application: the argument without a name on the command line.
    Application(Field<Option<String>>),
    Addresses(Field<Vec<ListenAddress>>),
    Mounts(Field<Vec<Mount>>),
    Count(usize, usize, Field<usize>),
    Seconds(Field<Duration>),
    /// Zero switches it off.
    SecondsOrOff(Field<Duration>),
    /// An existing file or folder; which one is checked with the rest of the configuration.
    Path(Field<Option<PathBuf>>),
    UrlPath(Field<String>),
    EventLoop(Field<String>),
    UrlPathOrNone(Field<Option<String>>),
    Bytes(Field<u64>),
    Folder(Field<PathBuf>),
    AccessLog(Field<AccessLog>),
    Level(Field<LogLevel>),
    Interface(Field<Interface>),
    Switch(Field<bool>),
    /// The configuration file.
    File,
    /// Prints something instead of serving.
    Action,
}

pub(crate) type Field<T> = fn(&mut Config) -> &mut T;

/// The shortest time an option takes, in seconds: timers have this resolution.
pub(crate) const MIN_SECONDS: f64 = 0.001;
/// The longest time an option takes, in seconds: a day.
pub(crate) const MAX_SECONDS: f64 = 86_400.0;
/// The greatest number of threads: beyond it their stacks fill the usual limit of a process
/// (kernel.threads-max is about 15,000 for each GiB of memory).
pub(crate) const MAX_THREADS: usize = 10_000;

const LEVELS: &[(&str, LogLevel)] = &[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
];

const INTERFACES: &[(&str, Interface)] =
    &[("auto", Interface::Auto), ("wsgi", Interface::Wsgi), ("asgi", Interface::Asgi)];

/// The options, in the order of the help text.
pub(crate) const OPTIONS: &[Definition] = &[
    Definition {
        name: "application",
        placeholder: "APPLICATION",
        kind: Kind::Application(|config| &mut config.application),
        default: &[],
        reach: Reach::Everywhere,
        summary: "What to serve: module:attr, path/to/app.py (finds `app` or `application`) or a \
                  folder of static files.",
        cost: "",
        worst: "",
    },
    Definition {
        name: "listen",
        placeholder: "ADDR[,read-ahead=off]",
        kind: Kind::Addresses(|config| &mut config.listen),
        default: &["127.0.0.1:8000"],
        reach: Reach::Everywhere,
        summary: "An address to accept connections on: host:port, :port (all IPv4 interfaces) or \
                  [ipv6]:port. Port 0 takes a free one. A name stands for its first IPv4 address, else \
                  its first IPv6 address. With `,read-ahead=off` behind it a WSGI application gets a request \
                  after its head, and wsgi.input reads the body from the connection as it comes, for \
                  applications that work on uploads while they arrive; without it, when it is complete.",
        cost: "a descriptor each",
        worst: ":port and [::]:port accept everyone who can reach the machine; read-ahead=off: each slow \
                upload keeps a thread",
    },
    Definition {
        name: "min-threads",
        placeholder: "N",
        kind: Kind::Count(1, MAX_THREADS, |config| &mut config.min_threads),
        default: &["1"],
        reach: Reach::Everywhere,
        summary: "Application threads that are kept when there is nothing to do. An ASGI application has none.",
        cost: "a stack and what the application keeps per thread (a database connection, for example)",
        worst: "too many hold memory and connections for nothing",
    },
    Definition {
        name: "max-threads",
        placeholder: "N",
        kind: Kind::Count(1, MAX_THREADS, |config| &mut config.max_threads),
        default: &["10"],
        reach: Reach::Everywhere,
        summary: "Application threads at most, that is, requests the application handles at the same time. \
                  An ASGI application has none, and no such limit.",
        cost: "a stack and what the application keeps per thread, only while they are needed",
        worst: "too few: requests queue behind slow ones; too many: they queue in the database instead",
    },
    Definition {
        name: "static",
        placeholder: "/URL=FOLDER",
        kind: Kind::Mounts(|config| &mut config.mounts),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Serve the files of FOLDER below /URL, without the application. The longest matching \
                  URL wins.",
        cost: "none for requests elsewhere",
        worst: "everything in the folder that is not a dot-file is public",
    },
    Definition {
        name: "listing",
        placeholder: "",
        kind: Kind::Switch(|config| &mut config.listing),
        default: &["false"],
        reach: Reach::Everywhere,
        summary: "List the files of static folders that have no index.html.",
        cost: "reading the folder for each such request",
        worst: "shows names that nobody was meant to guess",
    },
    Definition {
        name: "interface",
        placeholder: "auto|wsgi|asgi",
        kind: Kind::Interface(|config| &mut config.interface),
        default: &["auto"],
        reach: Reach::Everywhere,
        summary: "The calling convention of the application; auto looks at it.",
        cost: "none",
        worst: "the wrong one makes every request fail",
    },
    Definition {
        name: "loop",
        placeholder: "auto|asyncio|uvloop|module:factory",
        kind: Kind::EventLoop(|config| &mut config.event_loop),
        default: &["auto"],
        reach: Reach::Everywhere,
        summary: "The event loop of an ASGI application; auto takes uvloop if it is installed, else asyncio. A \
                  factory is called without arguments.",
        cost: "none",
        worst: "asyncio's own loop takes more CPU than uvloop, mostly for what the application does itself",
    },
    Definition {
        name: "factory",
        placeholder: "",
        kind: Kind::Switch(|config| &mut config.factory),
        default: &["false"],
        reach: Reach::Everywhere,
        summary: "The attribute is called without arguments, once, and returns the application. Without a name \
                  `create_app` or `make_app` is looked for.",
        cost: "none",
        worst: "an application that can be called without arguments is taken for a factory",
    },
    Definition {
        name: "app-dir",
        placeholder: "DIR",
        kind: Kind::Path(|config| &mut config.app_dir),
        default: &[],
        reach: Reach::Everywhere,
        summary: "The folder in which the application's module is looked for, instead of the current one; it is \
                  put first on Python's sys.path.",
        cost: "none",
        worst: "files of that folder hide modules with the same name",
    },
    Definition {
        name: "chdir",
        placeholder: "DIR",
        kind: Kind::Path(|config| &mut config.chdir),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Change to this folder after the configuration is read and before anything else: all other \
                  relative paths, those of the application too, are relative to it.",
        cost: "none",
        worst: "paths that were meant from where the command was started lead elsewhere",
    },
    Definition {
        name: "env-file",
        placeholder: "FILE",
        kind: Kind::Path(|config| &mut config.env_file),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Environment variables for the application, set before it is imported: lines NAME=value, with \
                  quotes, comments and `export` as a shell has them, and without expansion. What the \
                  environment has already stays. Options of maitred itself are not read from it.",
        cost: "none",
        worst: "it usually holds secrets: never leave it in a folder that is served",
    },
    Definition {
        name: "root-path",
        placeholder: "/URL",
        kind: Kind::UrlPath(|config| &mut config.root_path),
        default: &["/"],
        reach: Reach::Everywhere,
        summary: "The URL below which the application stands: SCRIPT_NAME for WSGI, and PATH_INFO is the path \
                  without it; root_path for ASGI, whose path stays whole. A request that is not below it \
                  reaches the application as if the option were not set. Static folders are named by their \
                  full URL.",
        cost: "a fraction of a microsecond for each request",
        worst: "behind a proxy that takes the prefix off it has no effect: let the proxy leave it",
    },
    Definition {
        name: "health-path",
        placeholder: "/URL",
        kind: Kind::UrlPathOrNone(|config| &mut config.health_path),
        default: &[],
        reach: Reach::Everywhere,
        summary: "The engine itself answers GET and HEAD of this URL path with 200 and `ok`, and with 503 and \
                  `draining` after a stop signal. It needs no application thread: it says that the process \
                  serves, and nothing of the application.",
        cost: "a comparison for each request",
        worst: "it hides an application's page of that name, and everyone may ask",
    },
    Definition {
        name: "stuck-after",
        placeholder: "SECONDS",
        kind: Kind::SecondsOrOff(|config| &mut config.stuck_after),
        default: &["10"],
        reach: Reach::Everywhere,
        summary: "A request that has been in the application this long gets one entry in the error log, with \
                  its thread, its age and the Python stack of the thread; 0 switches it off. The request goes \
                  on. For ASGI the time is not used: unless it is 0, an event loop that stands still while \
                  something waits is told after a tenth of a second, with its stack.",
        cost: "some nanoseconds for each request and a thread that sleeps",
        worst: "too short fills the log; a response that is streamed for longer is reported too, once",
    },
    Definition {
        name: "head-timeout",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.head_timeout),
        default: &["10"],
        reach: Reach::Everywhere,
        summary: "Time from the first byte of a request head, or from the start of the connection for the \
                  first one, to its last byte; then 408 and close.",
        cost: "slow peers hold a connection and a buffer this long",
        worst: "too short cuts off peers on bad networks",
    },
    Definition {
        name: "body-timeout",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.body_timeout),
        default: &["30"],
        reach: Reach::Everywhere,
        summary: "Time without a byte of a request body, then 408 and close; and time without the peer \
                  taking a byte of a response, then close.",
        cost: "slow peers hold what is buffered for them this long",
        worst: "too short cuts off peers on bad networks; one byte in time keeps a body alive",
    },
    Definition {
        name: "keep-alive",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.keep_alive),
        default: &["75"],
        reach: Reach::Everywhere,
        summary: "Time a connection may be idle between two requests; then it is closed.",
        cost: "a descriptor and a small record per idle connection",
        worst: "shorter than a proxy's in front of it: the proxy meets closed connections (502)",
    },
    Definition {
        name: "max-body",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.max_body),
        default: &["1g"],
        reach: Reach::Everywhere,
        summary: "The largest request body; a larger one gets 413. Whole number, or with k, m or g \
                  (units of 1024). The default, that of Apache httpd and waitress, lets uploads pass \
                  and leaves it to the application to take less.",
        cost: "what is beyond body-memory is in the spool folder until the request is answered",
        worst: "this much disk for every connection that uploads at the same time, and this much memory \
                if the application reads it in one piece",
    },
    Definition {
        name: "body-memory",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.body_memory),
        default: &["256k"],
        reach: Reach::Everywhere,
        summary: "How much of a request body is kept in memory; a longer one goes to a file in the \
                  spool folder. The default holds forms and documents; from there on a file costs little \
                  beside receiving the body.",
        cost: "this much memory for every request with such a body, while it is received and answered",
        worst: "too much: slow uploads fill the memory; too little: the disk is used for small forms",
    },
    Definition {
        name: "spool",
        placeholder: "FOLDER",
        kind: Kind::Folder(|config| &mut config.spool),
        default: &["/var/tmp"],
        reach: Reach::Everywhere,
        summary: "The folder for request bodies beyond body-memory. The files have no names and are gone \
                  with the request or the process. A folder in memory (tmpfs, often /tmp) is warned of.",
        cost: "a descriptor and the body's size for each such request",
        worst: "a full disk: such uploads get 507, other requests are served; a slow one delays them only",
    },
    Definition {
        name: "drain-timeout",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.drain_timeout),
        default: &["30"],
        reach: Reach::Everywhere,
        summary: "Time for running requests to end after SIGTERM or SIGINT; then they are cut off.",
        cost: "the process stays this much longer at most; for the end of an ASGI application some seconds more",
        worst: "longer than the supervisor's own limit: it kills the process first (systemd 90 s, \
                Kubernetes 30 s)",
    },
    Definition {
        name: "access-log",
        placeholder: "off|-|PATH",
        kind: Kind::AccessLog(|config| &mut config.access_log),
        default: &["off"],
        reach: Reach::Everywhere,
        summary: "A line for each request: nowhere, to standard output, or appended to a file.",
        cost: "some CPU and a write for each request",
        worst: "a reader that does not keep up loses lines, never requests",
    },
    Definition {
        name: "log-level",
        placeholder: "error|warn|info|debug",
        kind: Kind::Level(|config| &mut config.log_level),
        default: &["info"],
        reach: Reach::Everywhere,
        summary: "How much the error log on standard error says.",
        cost: "a line for each refused request from info on, for each broken connection at debug",
        worst: "error: what an application does wrong without losing anything is not seen",
    },
    Definition {
        name: "config",
        placeholder: "FILE",
        kind: Kind::File,
        default: &[],
        reach: Reach::NotInFile,
        summary: "The configuration file, instead of maitred.toml in the current directory. The files \
                  FILE.d/*.toml are read after it.",
        cost: "",
        worst: "",
    },
    Definition {
        name: "version",
        placeholder: "",
        kind: Kind::Action,
        default: &[],
        reach: Reach::CommandLine,
        summary: "Print the version and the languages it runs (also -V).",
        cost: "",
        worst: "",
    },
    Definition {
        name: "help",
        placeholder: "",
        kind: Kind::Action,
        default: &[],
        reach: Reach::CommandLine,
        summary: "Print this text (also -h).",
        cost: "",
        worst: "",
    },
];

/// The option with this name.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    OPTIONS.iter().find(|definition| definition.name == name)
}

impl Definition {
    /// The environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("MAITRED_{}", self.name.to_uppercase().replace('-', "_"))
    }

    /// How it is written on the command line, without its value.
    pub(crate) fn flag(&self) -> String {
        if self.is_positional() { self.placeholder.to_owned() } else { format!("--{}", self.name) }
    }

    pub(crate) fn is_positional(&self) -> bool {
        matches!(self.kind, Kind::Application(_))
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        matches!(self.kind, Kind::Addresses(_) | Kind::Mounts(_))
    }

    /// Whether it can stand on the command line without a value.
    pub(crate) fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Switch(_) | Kind::Action)
    }

    pub(crate) fn is_in_file(&self) -> bool {
        self.reach == Reach::Everywhere
    }

    pub(crate) fn is_in_environment(&self) -> bool {
        self.reach != Reach::CommandLine
    }

    /// Parses `texts` into the option's field of `config`. All but repeatable options have one.
    pub(crate) fn set(&self, config: &mut Config, texts: &[String]) -> Result<(), BadValue> {
        let text = texts.last().map_or("", String::as_str);
        match &self.kind {
            Kind::Application(field) => {
                *field(config) = texts.last().cloned().filter(|text| !text.is_empty())
            }
            Kind::Addresses(field) => *field(config) = all(texts, value::listen)?,
            Kind::Mounts(field) => *field(config) = all(texts, value::mount)?,
            Kind::Count(min, max, field) => *field(config) = value::count(text, *min, *max)?,
            Kind::Seconds(field) => *field(config) = value::seconds(text, MIN_SECONDS, MAX_SECONDS)?,
            Kind::SecondsOrOff(field) => *field(config) = value::seconds(text, 0.0, MAX_SECONDS)?,
            Kind::Path(field) => *field(config) = Some(value::path(text)?),
            Kind::UrlPath(field) => *field(config) = value::url_path(text)?,
            Kind::EventLoop(field) => *field(config) = value::event_loop(text)?,
            Kind::UrlPathOrNone(field) => *field(config) = Some(value::url_path(text)?),
            Kind::Bytes(field) => *field(config) = value::bytes(text)?,
            Kind::Folder(field) => *field(config) = value::folder(text)?,
            Kind::AccessLog(field) => *field(config) = value::access_log(text)?,
            Kind::Level(field) => *field(config) = choice(text, LEVELS)?,
            Kind::Interface(field) => *field(config) = choice(text, INTERFACES)?,
            Kind::Switch(field) => *field(config) = value::switch(text)?,
            Kind::File | Kind::Action => {}
        }
        Ok(())
    }

    /// The value in `config` as `maitred.toml` would have it; `None` where there is none.
    pub(crate) fn show(&self, config: &Config) -> Option<String> {
        let mut config = config.clone();
        let config = &mut config;
        Some(match &self.kind {
            Kind::Application(field) => quoted(field(config).as_deref()?),
            Kind::Addresses(field) => list(field(config)),
            Kind::Mounts(field) => list(field(config)),
            Kind::Count(_, _, field) => field(config).to_string(),
            Kind::Seconds(field) | Kind::SecondsOrOff(field) => field(config).as_secs_f64().to_string(),
            Kind::Path(field) => quoted(&field(config).as_deref()?.to_string_lossy()),
            Kind::UrlPath(field) | Kind::EventLoop(field) => quoted(field(config)),
            Kind::UrlPathOrNone(field) => quoted(field(config).as_deref()?),
            Kind::Bytes(field) => value::show_bytes(*field(config)),
            Kind::Folder(field) => quoted(&field(config).display().to_string()),
            Kind::AccessLog(field) => quoted(&field(config).to_string()),
            Kind::Level(field) => quoted(word(*field(config), LEVELS)),
            Kind::Interface(field) => quoted(word(*field(config), INTERFACES)),
            Kind::Switch(field) => field(config).to_string(),
            Kind::File | Kind::Action => return None,
        })
    }

    /// The values it takes, in words.
    pub(crate) fn takes(&self) -> String {
        match &self.kind {
            Kind::Application(_) | Kind::File => "text".to_owned(),
            Kind::Addresses(_) | Kind::Mounts(_) => "text, or a list of texts".to_owned(),
            Kind::Count(min, max, _) => format!("whole number from {min} to {max}"),
            Kind::Seconds(_) => format!("seconds from {MIN_SECONDS} to {MAX_SECONDS}, fractions allowed"),
            Kind::SecondsOrOff(_) => format!("seconds from 0 (off) to {MAX_SECONDS}, fractions allowed"),
            Kind::Path(_) => "a path".to_owned(),
            Kind::UrlPath(_) | Kind::UrlPathOrNone(_) => "a URL path".to_owned(),
            Kind::Bytes(_) => "bytes from 0 to 1024g".to_owned(),
            Kind::Folder(_) => "a path".to_owned(),
            Kind::AccessLog(_) => "off, - or a path".to_owned(),
            Kind::Level(_) | Kind::Interface(_) | Kind::EventLoop(_) => self.placeholder.replace('|', ", "),
            Kind::Switch(_) => "true or false".to_owned(),
            Kind::Action => String::new(),
        }
    }
}

fn all<T>(texts: &[String], parse: fn(&str) -> Result<T, BadValue>) -> Result<Vec<T>, BadValue> {
    texts.iter().map(|text| parse(text)).collect()
}

fn choice<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, BadValue> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let remedy = match crate::problem::nearest(text, names.iter().copied()) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => "write one of them".to_owned(),
        };
        BadValue::new(format!("'{text}' is none of {}", names.join(", ")), remedy)
    })
}

fn word<T: PartialEq>(value: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, candidate)| *candidate == value).map_or("", |(word, _)| word)
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn list<T: ToString>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(|value| quoted(&value.to_string())).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_option() {
        for definition in OPTIONS {
            let texts: Vec<String> = definition.default.iter().map(ToString::to_string).collect();
            if !texts.is_empty() {
                definition.set(&mut Config::default(), &texts).expect(definition.name);
            }
        }
    }

    #[test]
    fn every_option_says_what_it_does_and_settings_say_what_they_cost() {
        for definition in OPTIONS {
            assert!(definition.summary.len() > 10, "{}", definition.name);
            let is_setting = definition.is_in_file() && !definition.is_positional();
            assert_eq!(
                is_setting,
                !definition.cost.is_empty() && !definition.worst.is_empty(),
                "{}",
                definition.name
            );
        }
    }

    #[test]
    fn a_misspelt_choice_suggests_the_nearest() {
        let bad = find("log-level")
            .expect("exists")
            .set(&mut Config::default(), &["wran".to_owned()])
            .expect_err("bad");
        assert_eq!(bad.what, "'wran' is none of error, warn, info, debug");
        assert_eq!(bad.remedy, "did you mean 'warn'?");
    }

    #[test]
    fn a_shown_value_is_toml_with_the_same_meaning() {
        for (name, text) in
            [("max-body", "17k"), ("head-timeout", "0.25"), ("static", "/a=b\"c"), ("access-log", "x\\y")]
        {
            let definition = find(name).expect(name);
            let mut config = Config::default();
            definition.set(&mut config, &[text.to_owned()]).expect(text);
            let line = format!("{name} = {}", definition.show(&config).expect(name));
            let table: toml::Table = line.parse().expect(&line);
            let value = match &table[name] {
                toml::Value::Array(values) => values[0].as_str().expect("text").to_owned(),
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(value, text);
        }
    }
}
