//! Every option, once. From these tables come the command line, the environment variables, the keys
//! of `maitred.toml`, `--help`, `maitred check` and docs/operations/configuration.md.

mod application;
mod compression;
mod control;
pub(crate) mod development;
pub(crate) mod familiar;
mod http2;
mod insight;
mod limits;
mod logs;
mod process;
mod proxies;
pub mod renamed;
mod requests;
mod responses;
mod serving;
mod threads;
pub mod tls;
mod websockets;
mod workers;

use std::path::PathBuf;
use std::time::Duration;

use maitred_compress::{CodingLevel, TypePattern};
use maitred_log::{Format, Mask};
use maitred_match::Network;
use maitred_match::PathPattern;
use maitred_server::limits::RouteBandwidth;
use maitred_server::{Overflow, Period, Strategy};

use crate::accounts::{self, Account};
use crate::config::Config;
use crate::error_page::{ErrorPageFile, error_page};
use crate::limits as limit_values;
use crate::listen::{self, ListenAddress};
use crate::log_values::{self, LogPlace};
use crate::mounted::{MountedApplication, mounted};
use crate::problem::did_you_mean;
use crate::proxies::{self as proxy_values, ForwardedField, TrustedProxy};
use crate::tls_values::{self, ClientAuth, Hsts, MinVersion, UnknownName};
use crate::value::{
    self, AcceptModel, BadValue, ControlSocket, Http2, Interface, Lifespan, LogLevel, Mount, Spans,
};
use renamed::Names;

/// An option: its name, what it takes, its default, and what there is to know about it.
#[derive(Clone, Copy)]
pub struct Definition {
    /// The name on the command line (`--name`) and in the file; the variable is made of it.
    pub name: &'static str,
    /// What stands for the value in help texts; empty for switches.
    pub(crate) placeholder: &'static str,
    /// What the value is and where it goes.
    pub kind: Kind,
    /// As it would be written on the command line.
    pub default: &'static [&'static str],
    /// Where it can be set.
    pub(crate) reach: Reach,
    /// What it does, one sentence.
    pub(crate) summary: &'static str,
    /// What more of it costs.
    pub cost: &'static str,
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
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "a variant without a comment has the name of its value's type")]
pub enum Kind {
    /// The application: the argument without a name on the command line.
    Application(Field<Option<String>>),
    Addresses(Field<Vec<ListenAddress>>),
    AddressOrNone(Field<Option<ListenAddress>>),
    Mounts(Field<Vec<Mount>>),
    /// Applications at prefixes.
    Mounted(Field<Vec<MountedApplication>>),
    ErrorPages(Field<Vec<ErrorPageFile>>),
    Count(usize, usize, Field<usize>),
    /// A default that depends on another option is none here.
    CountOrNone(usize, usize, Field<Option<usize>>),
    /// `auto`, which depends on the machine, is none.
    CountOrAuto(usize, usize, Field<Option<usize>>),
    Percent(Field<u8>),
    Seconds(Field<Duration>),
    /// Zero switches it off.
    SecondsOrOff(Field<Duration>),
    /// Zero is at once.
    SecondsOrAtOnce(Field<Duration>),
    Account(Field<Option<Account>>),
    /// An existing file or folder; which one is checked with the rest of the configuration.
    Path(Field<Option<PathBuf>>),
    /// The same, any number of files.
    Files(Field<Vec<PathBuf>>),
    UrlPath(Field<String>),
    EventLoop(Field<String>),
    UrlPathOrNone(Field<Option<String>>),
    Bytes(Field<u64>),
    /// `auto` depends on the machine.
    BytesOrAuto(Field<Option<u64>>),
    /// Requests a second, kept as requests in a thousand seconds.
    Rate(Field<u64>),
    Networks(Field<Vec<Network>>),
    Proxies(Field<Vec<TrustedProxy>>),
    ForwardedFields(Field<Vec<ForwardedField>>),
    Routes(Field<Vec<RouteBandwidth>>),
    Folder(Field<PathBuf>),
    Codings(Field<Vec<CodingLevel>>),
    Types(Field<Vec<TypePattern>>),
    Paths(Field<Vec<PathPattern>>),
    AccessLog(Field<LogPlace>),
    ErrorLog(Field<LogPlace>),
    LogFormat(Field<Format>),
    Mask(Field<Option<Mask>>),
    Period(Field<Option<Period>>),
    ControlSocket(Field<ControlSocket>),
    Level(Field<LogLevel>),
    Interface(Field<Interface>),
    Lifespan(Field<Lifespan>),
    Overflow(Field<Overflow>),
    Spans(Field<Spans>),
    Strategy(Field<Strategy>),
    Accept(Field<AcceptModel>),
    UnknownName(Field<UnknownName>),
    MinVersion(Field<MinVersion>),
    Http2(Field<Http2>),
    ClientAuth(Field<ClientAuth>),
    Hsts(Field<Option<Hsts>>),
    Switch(Field<bool>),
    /// Named pools, which are read and shown by `pools`.
    Pools,
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
/// The longest queue: each request that waits in it keeps a connection, and so a descriptor, of which Linux gives a
/// process 1,048,576 at most unless it is told otherwise (fs.nr_open).
pub(crate) const MAX_QUEUE: usize = 1_000_000;
/// The most connections of one client, and requests at once: as many as there can be connections.
pub(crate) const MAX_CLIENT_CONNECTIONS: usize = 1_000_000;
/// The most workers: as many as processors of a large machine.
pub const MAX_WORKERS: usize = 1_024;
/// The most poll groups: one for each eight of 1,024 processors. Each takes a thread and descriptors.
pub(crate) const MAX_POLL_GROUPS: usize = 128;
/// The most requests of a thread: more are meant as 'never', which is 0.
pub(crate) const MAX_THREAD_REQUESTS: usize = 1_000_000_000;

/// Closed log files: a year of hours.
pub(crate) const MAX_LOG_FILES: usize = 10_000;
/// Their age in days: a century.
pub(crate) const MAX_LOG_DAYS: usize = 36_500;

const PERIODS: &[(&str, Option<Period>)] =
    &[("off", None), ("hourly", Some(Period::Hour)), ("daily", Some(Period::Day))];

const LEVELS: &[(&str, LogLevel)] = &[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
];

const INTERFACES: &[(&str, Interface)] = &[
    (Interface::Auto.word(), Interface::Auto),
    (Interface::Wsgi.word(), Interface::Wsgi),
    (Interface::Asgi.word(), Interface::Asgi),
];

const OVERFLOWS: &[(&str, Overflow)] = &[("wait", Overflow::Wait), ("refuse", Overflow::Refuse)];

const SPANS: &[(&str, Spans)] = &[("kernel", Spans::Kernel), ("read", Spans::Read), ("off", Spans::Off)];

const STRATEGIES: &[(&str, Strategy)] =
    &[("adaptive", Strategy::Adaptive), ("pc", Strategy::Pc), ("pec", Strategy::Pec), ("epc", Strategy::Epc)];

const ACCEPTS: &[(&str, AcceptModel)] =
    &[("shared", AcceptModel::Shared), ("reuseport", AcceptModel::Reuseport)];

const UNKNOWN_NAMES: &[(&str, UnknownName)] =
    &[("default", UnknownName::Default), ("refuse", UnknownName::Refuse)];

const LIFESPANS: &[(&str, Lifespan)] = &[
    (Lifespan::Auto.word(), Lifespan::Auto),
    (Lifespan::On.word(), Lifespan::On),
    (Lifespan::Off.word(), Lifespan::Off),
];

const HTTP2: &[(&str, Http2)] = &[("on", Http2::On), ("off", Http2::Off), ("only", Http2::Only)];
const MIN_VERSIONS: &[(&str, MinVersion)] = &[("1.2", MinVersion::V1_2), ("1.3", MinVersion::V1_3)];

const CLIENT_AUTHS: &[(&str, ClientAuth)] =
    &[("none", ClientAuth::None), ("optional", ClientAuth::Optional), ("required", ClientAuth::Required)];

/// In the order of the help text.
const TABLES: [&[Definition]; 19] = [
    serving::OPTIONS,
    tls::OPTIONS,
    http2::OPTIONS,
    websockets::OPTIONS,
    proxies::OPTIONS,
    threads::POOL,
    threads::NAMED,
    threads::GROUPS,
    workers::OPTIONS,
    application::OPTIONS,
    development::OPTIONS,
    requests::OPTIONS,
    responses::OPTIONS,
    limits::OPTIONS,
    compression::OPTIONS,
    insight::OPTIONS,
    logs::OPTIONS,
    control::OPTIONS,
    process::OPTIONS,
];

impl Default for Config {
    /// The defaults of the tables.
    fn default() -> Self {
        let mut config = Self::empty();
        for definition in all().filter(|definition| !definition.default.is_empty()) {
            let texts: Vec<String> = definition.default.iter().map(ToString::to_string).collect();
            let set = definition.set(&mut config, &texts);
            debug_assert!(set.is_ok(), "the default of {} is not valid", definition.name);
        }
        config
    }
}

/// The options, in the order of the help text.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    TABLES.into_iter().flatten()
}

/// The options beside those of pools that hold at once when they are changed while the server runs.
pub fn live() -> impl Iterator<Item = &'static Definition> {
    let insight = insight::OPTIONS.iter().chain(all().filter(|option| option.name == logs::DISPATCH_TRACE));
    insight.chain(responses::OPTIONS).chain(of_peers())
}

/// Those of them that limit peers.
pub fn of_peers() -> impl Iterator<Item = &'static Definition> {
    let of_tls = tls::OPTIONS.iter().filter(|option| option.name == tls::HANDSHAKE_RATE);
    limits::OPTIONS.iter().filter(|option| option.name != limits::IPV6_PREFIX).chain(of_tls)
}

/// Those of which the terms of TLS are made, which are made anew when the configuration is read again.
pub fn of_terms() -> impl Iterator<Item = &'static Definition> {
    let others = [tls::HANDSHAKE_TIMEOUT, tls::HANDSHAKE_RATE, tls::HSTS];
    tls::OPTIONS.iter().filter(move |option| !others.contains(&option.name))
}

/// Whether this is one of those that say what waits for slow readers.
pub fn is_of_responses(option: &Definition) -> bool {
    responses::OPTIONS.iter().any(|own| own.name == option.name)
}

/// The options that are also the keys of a named pool.
pub fn of_pools() -> impl Iterator<Item = &'static Definition> {
    threads::POOL.iter()
}

/// The option with this name.
pub fn find(name: &str) -> Option<&'static Definition> {
    all().find(|definition| definition.name == name)
}

fn variable(name: &str) -> String {
    format!("MAITRED_{}", name.to_uppercase().replace('-', "_"))
}

/// The key of a pool that is called so, or was.
pub(crate) fn find_of_pool(name: &str, earlier: Names) -> Option<renamed::Found> {
    earlier.find(name, |name| of_pools().find(|known| known.name == name))
}

impl Definition {
    /// The environment variable.
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    /// How it is written on the command line, without its value.
    pub fn flag(&self) -> String {
        if self.is_positional() { self.placeholder.to_owned() } else { format!("--{}", self.name) }
    }

    pub(crate) fn is_positional(&self) -> bool {
        matches!(self.kind, Kind::Application(_))
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        use Kind::{
            Addresses, Codings, ErrorPages, Files, ForwardedFields, Mounted, Mounts, Networks, Paths, Pools,
            Proxies, Routes, Types,
        };
        let kind = &self.kind;
        matches!(
            kind,
            Addresses(_) | Mounts(_) | Mounted(_) | ErrorPages(_) | Networks(_) | Routes(_) | Pools
        ) || matches!(kind, Files(_) | Codings(_) | Types(_) | Paths(_) | Proxies(_) | ForwardedFields(_))
    }

    /// Whether it can be switched off on the command line, `--no-name`.
    pub(crate) fn can_be_off(&self) -> bool {
        matches!(self.kind, Kind::Switch(_))
    }

    /// How it is written in help texts, without its value: `--[no-]compress`.
    pub(crate) fn flags(&self) -> String {
        if self.can_be_off() { format!("--[no-]{}", self.name) } else { self.flag() }
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
    pub fn set(&self, config: &mut Config, texts: &[String]) -> Result<(), BadValue> {
        let text = texts.last().map_or("", String::as_str);
        match &self.kind {
            Kind::Application(field) => {
                *field(config) = texts.last().cloned().filter(|text| !text.is_empty())
            }
            Kind::Addresses(field) => *field(config) = each(texts, listen::listen)?,
            Kind::AddressOrNone(field) => *field(config) = Some(listen::tcp(text)?),
            Kind::Mounts(field) => *field(config) = each(texts, value::mount)?,
            Kind::Mounted(field) => *field(config) = each(texts, mounted)?,
            Kind::ErrorPages(field) => *field(config) = each(texts, error_page)?,
            Kind::Count(min, max, field) => *field(config) = value::count(text, *min, *max)?,
            Kind::CountOrNone(min, max, field) => *field(config) = Some(value::count(text, *min, *max)?),
            Kind::CountOrAuto(min, max, field) => {
                let is_auto = text == limit_values::AUTO;
                *field(config) = (!is_auto).then(|| value::count(text, *min, *max)).transpose()?;
            }
            Kind::Percent(field) => *field(config) = value::percent(text)?,
            Kind::Seconds(field) => *field(config) = value::seconds(text, MIN_SECONDS, MAX_SECONDS)?,
            Kind::SecondsOrOff(field) | Kind::SecondsOrAtOnce(field) => {
                *field(config) = value::seconds(text, 0.0, MAX_SECONDS)?;
            }
            Kind::Account(field) => *field(config) = Some(accounts::account(text)?),
            Kind::Path(field) => *field(config) = Some(value::path(text)?),
            Kind::Files(field) => *field(config) = each(texts, value::path)?,
            Kind::UrlPath(field) => *field(config) = value::url_path(text)?,
            Kind::EventLoop(field) => *field(config) = value::event_loop(text)?,
            Kind::UrlPathOrNone(field) => *field(config) = Some(value::url_path(text)?),
            Kind::Bytes(field) => *field(config) = value::bytes(text)?,
            Kind::BytesOrAuto(field) => *field(config) = limit_values::budget(text)?,
            Kind::Rate(field) => *field(config) = limit_values::rate(text)?,
            Kind::Networks(field) => *field(config) = limit_values::networks(texts)?,
            Kind::Proxies(field) => *field(config) = proxy_values::trusted(texts)?,
            Kind::ForwardedFields(field) => *field(config) = proxy_values::fields(texts)?,
            Kind::Routes(field) => *field(config) = limit_values::routes(texts)?,
            Kind::Folder(field) => *field(config) = value::folder(text)?,
            Kind::Codings(field) => *field(config) = each(texts, value::pattern)?,
            Kind::Types(field) => *field(config) = each(texts, value::pattern)?,
            Kind::Paths(field) => *field(config) = each(texts, value::pattern)?,
            Kind::AccessLog(field) => *field(config) = log_values::access_place(text)?,
            Kind::ErrorLog(field) => *field(config) = log_values::error_place(text)?,
            Kind::LogFormat(field) => *field(config) = log_values::format(text)?,
            Kind::Mask(field) => *field(config) = log_values::mask(text)?,
            Kind::Period(field) => *field(config) = choice(text, PERIODS)?,
            Kind::ControlSocket(field) => *field(config) = value::control_socket(text)?,
            Kind::Level(field) => *field(config) = choice(text, LEVELS)?,
            Kind::Interface(field) => *field(config) = choice(text, INTERFACES)?,
            Kind::Lifespan(field) => *field(config) = choice(text, LIFESPANS)?,
            Kind::Overflow(field) => *field(config) = choice(text, OVERFLOWS)?,
            Kind::Spans(field) => *field(config) = choice(text, SPANS)?,
            Kind::Strategy(field) => *field(config) = choice(text, STRATEGIES)?,
            Kind::Accept(field) => *field(config) = choice(text, ACCEPTS)?,
            Kind::UnknownName(field) => *field(config) = choice(text, UNKNOWN_NAMES)?,
            Kind::MinVersion(field) => *field(config) = choice(text, MIN_VERSIONS)?,
            Kind::Http2(field) => *field(config) = choice(text, HTTP2)?,
            Kind::ClientAuth(field) => *field(config) = choice(text, CLIENT_AUTHS)?,
            Kind::Hsts(field) => *field(config) = tls_values::hsts(text)?,
            Kind::Switch(field) => *field(config) = value::switch(text)?,
            Kind::Pools | Kind::File | Kind::Action => {}
        }
        Ok(())
    }

    /// The value in `config` as `maitred.toml` would have it; `None` where there is none.
    pub fn show(&self, config: &Config) -> Option<String> {
        let mut config = config.clone();
        let config = &mut config;
        Some(match &self.kind {
            Kind::Application(field) => quoted(field(config).as_deref()?),
            Kind::Addresses(field) => list(field(config)),
            Kind::AddressOrNone(field) => quoted(&field(config).as_ref()?.to_string()),
            Kind::Mounts(field) => list(field(config)),
            Kind::Mounted(field) => list(field(config)),
            Kind::ErrorPages(field) => list(field(config)),
            Kind::Count(_, _, field) => field(config).to_string(),
            Kind::CountOrNone(_, _, field) => (*field(config))?.to_string(),
            Kind::CountOrAuto(_, _, field) => {
                field(config).map_or_else(|| quoted(limit_values::AUTO), |count| count.to_string())
            }
            Kind::Percent(field) => field(config).to_string(),
            Kind::Seconds(field) | Kind::SecondsOrOff(field) | Kind::SecondsOrAtOnce(field) => {
                field(config).as_secs_f64().to_string()
            }
            Kind::Account(field) => quoted(&field(config).as_ref()?.to_string()),
            Kind::Path(field) => quoted(&field(config).as_deref()?.to_string_lossy()),
            Kind::Files(field) => {
                list(&field(config).iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>())
            }
            Kind::UrlPath(field) | Kind::EventLoop(field) => quoted(field(config)),
            Kind::UrlPathOrNone(field) => quoted(field(config).as_deref()?),
            Kind::Bytes(field) => value::show_bytes(*field(config)),
            Kind::BytesOrAuto(field) => {
                field(config).map_or_else(|| quoted(limit_values::AUTO), value::show_bytes)
            }
            Kind::Rate(field) => limit_values::show_rate(*field(config)),
            Kind::Networks(field) => list(field(config)),
            Kind::Proxies(field) => list(field(config)),
            Kind::ForwardedFields(field) => list(field(config)),
            Kind::Routes(field) => {
                list(&field(config).iter().map(limit_values::show_route).collect::<Vec<_>>())
            }
            Kind::Folder(field) => quoted(&field(config).display().to_string()),
            Kind::Codings(field) => list(field(config)),
            Kind::Types(field) => list(field(config)),
            Kind::Paths(field) => list(field(config)),
            Kind::AccessLog(field) | Kind::ErrorLog(field) => quoted(&field(config).to_string()),
            Kind::LogFormat(field) => quoted(&field(config).to_string()),
            Kind::Mask(field) => quoted(&log_values::show_mask(*field(config))),
            Kind::Period(field) => quoted(word(*field(config), PERIODS)),
            Kind::ControlSocket(field) => quoted(&field(config).to_string()),
            Kind::Level(field) => quoted(word(*field(config), LEVELS)),
            Kind::Interface(field) => quoted(word(*field(config), INTERFACES)),
            Kind::Lifespan(field) => quoted(word(*field(config), LIFESPANS)),
            Kind::Overflow(field) => quoted(word(*field(config), OVERFLOWS)),
            Kind::Spans(field) => quoted(word(*field(config), SPANS)),
            Kind::Strategy(field) => quoted(word(*field(config), STRATEGIES)),
            Kind::Accept(field) => quoted(word(*field(config), ACCEPTS)),
            Kind::UnknownName(field) => quoted(word(*field(config), UNKNOWN_NAMES)),
            Kind::MinVersion(field) => quoted(word(*field(config), MIN_VERSIONS)),
            Kind::Http2(field) => quoted(word(*field(config), HTTP2)),
            Kind::ClientAuth(field) => quoted(word(*field(config), CLIENT_AUTHS)),
            Kind::Hsts(field) => quoted(&tls_values::show_hsts(*field(config))),
            Kind::Switch(field) => field(config).to_string(),
            Kind::Pools | Kind::File | Kind::Action => return None,
        })
    }

    /// The value in `config` as [`set`](Self::set) reads it.
    pub fn texts(&self, config: &Config) -> Vec<String> {
        let mut own = config.clone();
        match &self.kind {
            Kind::Networks(field) => field(&mut own).iter().map(ToString::to_string).collect(),
            Kind::Routes(field) => field(&mut own).iter().map(limit_values::show_route).collect(),
            Kind::Files(field) => {
                field(&mut own).iter().map(|file| file.to_string_lossy().into_owned()).collect()
            }
            _ => vec![self.show(config).unwrap_or_default().trim_matches('"').to_owned()],
        }
    }

    /// The values it takes, in words.
    pub fn takes(&self) -> String {
        match &self.kind {
            Kind::Application(_) | Kind::File => "text".to_owned(),
            Kind::Mounted(_) | Kind::ErrorPages(_) => "text, or a list of texts".to_owned(),
            Kind::Addresses(_) | Kind::Mounts(_) | Kind::Codings(_) | Kind::Types(_) | Kind::Paths(_) => {
                "text, or a list of texts".to_owned()
            }
            Kind::Count(min, max, _) | Kind::CountOrNone(min, max, _) => {
                format!("whole number from {min} to {max}")
            }
            Kind::CountOrAuto(min, max, _) => format!("auto, or a whole number from {min} to {max}"),
            Kind::Percent(_) => "whole number from 0 to 100".to_owned(),
            Kind::Seconds(_) => format!("seconds from {MIN_SECONDS} to {MAX_SECONDS}, fractions allowed"),
            Kind::SecondsOrOff(_) => format!("seconds from 0 (off) to {MAX_SECONDS}, fractions allowed"),
            Kind::SecondsOrAtOnce(_) => {
                format!("seconds from 0 (at once) to {MAX_SECONDS}, fractions allowed")
            }
            Kind::AddressOrNone(_) => "host:port".to_owned(),
            Kind::ControlSocket(_) => "auto, off or a path".to_owned(),
            Kind::Account(_) => "a name or a number".to_owned(),
            Kind::Path(_) => "a path".to_owned(),
            Kind::Files(_) => "a path, or a list of paths".to_owned(),
            Kind::UrlPath(_) | Kind::UrlPathOrNone(_) => "a URL path".to_owned(),
            Kind::Bytes(_) => "bytes from 0 to 1024g".to_owned(),
            Kind::BytesOrAuto(_) => "auto, or bytes from 0 to 1024g".to_owned(),
            Kind::Rate(_) => limit_values::RATES.to_owned(),
            Kind::Networks(_) => {
                "none, or addresses and networks, separated by commas or as a list".to_owned()
            }
            Kind::Proxies(_) => {
                "none, or addresses, networks and unix, separated by commas or as a list".to_owned()
            }
            Kind::ForwardedFields(_) => "names of fields, separated by commas or as a list".to_owned(),
            Kind::Routes(_) => "none, or PATH=BYTES, separated by commas or as a list".to_owned(),
            Kind::Folder(_) => "a path".to_owned(),
            Kind::AccessLog(_) => {
                "auto, off, - (standard output), stderr, syslog, syslog:HOST:PORT, logging or a path"
                    .to_owned()
            }
            Kind::ErrorLog(_) => "stderr, stdout, syslog, syslog:HOST:PORT, logging or a path".to_owned(),
            Kind::LogFormat(_) => "default, common, combined, times, json, or text with fields".to_owned(),
            Kind::Mask(_) => "off, on, or two numbers, to 32 and to 128".to_owned(),
            Kind::Hsts(_) => tls_values::HSTS.to_owned(),
            Kind::Pools => "a name, and keys with their values behind commas".to_owned(),
            Kind::Switch(_) => "true or false".to_owned(),
            Kind::Action => String::new(),
            // Words of which one is written.
            _ => self.placeholder.replace('|', ", "),
        }
    }
}

/// The remedy for an unknown name: the nearest one, or where all are listed.
pub(crate) fn suggest(name: &str, known: impl Fn(&Definition) -> Option<String>) -> String {
    let names: Vec<String> = all().filter_map(known).collect();
    did_you_mean(name, names.iter().map(String::as_str), "'maitred --help all' lists the options")
}

fn each<T>(texts: &[String], parse: fn(&str) -> Result<T, BadValue>) -> Result<Vec<T>, BadValue> {
    texts.iter().map(|text| parse(text)).collect()
}

fn choice<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, BadValue> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let remedy = did_you_mean(text, names.iter().copied(), "write one of them");
        BadValue::new(format!("'{text}' is none of {}", names.join(", ")), remedy)
    })
}

fn word<T: PartialEq>(value: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, candidate)| *candidate == value).map_or("", |(word, _)| word)
}

/// A TOML basic string: that of JSON, which leaves one control character as it is.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn list<T: ToString>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(|value| quoted(&value.to_string())).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests;
