//! The forms of values: how a value is read from texts, shown, and explained. A key of the configuration is a form and a field.
//!
//! Promises: a shown value is TOML with the same meaning. Leaves out: the parsers, which are beside the types of the values.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use maitred_compress::{CodingLevel, TypePattern};
use maitred_http::Method;
use maitred_log::{Format, Mask};
use maitred_match::{CertificatePattern, HeaderPattern, HostCondition, Network, PathPattern};
use maitred_server::limits::RouteBandwidth;
use maitred_server::tls::{UnknownName, Version};
use maitred_server::{HostPattern, Overflow, Period, Strategy, TracePhases, TraceTrust};

use crate::acme_values::{self, Acme, Challenge, Directory, Url};
use crate::error_page::{ErrorPageFile, error_page};
use crate::limits as limit_values;
use crate::mounted::{MountedApplication, mounted};
use crate::otlp::{self, OtlpTo, Signal};
use crate::proxies::{self as proxy_values, ForwardedField, TrustedProxy};
use crate::tls_values::{self, ClientAuth, Hsts};
use crate::value::{self, AcceptModel, ControlSocket, Http2, Interface, Mount, Spans};
use crate::{
    Account, BadValue, ListenAddress, LogLevel, LogPlace, accounts, did_you_mean, listen, log_values,
};

/// The shortest time an option takes, in seconds: timers have this resolution.
const MIN_SECONDS: f64 = 0.001;
/// The longest time an option takes, in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// The content of a value, for completion and the JSON schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Holds {
    /// Any text.
    Text,
    /// The path of a file.
    File,
    /// The path of a folder.
    Folder,
    /// True or false.
    Switch,
    /// A whole number of this range, or `auto` if the last one is true.
    Whole(usize, usize, bool),
    /// Seconds, in this range.
    Seconds(f64, f64),
    /// A number of bytes, or a text such as `16m`.
    Bytes,
    /// A number, or a text.
    NumberOrText,
    /// One of the words.
    Words,
}

/// Facts about the form of a value.
pub struct Facts {
    /// The values it takes, in words.
    pub takes: String,
    /// The content of one value.
    pub holds: Holds,
    /// The words of which one is written, if it is so.
    pub words: Vec<&'static str>,
    /// Whether the value is a list.
    pub is_list: bool,
}

/// The form of values of one type.
pub(crate) trait Form: Sync {
    type Value: Clone;

    fn facts(&self) -> Facts;

    /// Reads a value. Forms of lists take any number of texts, the others the last one.
    fn read(&self, texts: &[String]) -> Result<Self::Value, BadValue>;

    /// The value as `maitred.toml` would have it; `None` where there is none.
    fn show(&self, value: &Self::Value) -> Option<String>;
}

/// A value in a `C`.
pub trait Value<C>: Sync {
    /// The facts about its form.
    fn facts(&self) -> Facts;

    /// Parses `texts` into the value.
    ///
    /// # Errors
    /// The texts are no such value.
    fn set(&self, to: &mut C, texts: &[String]) -> Result<(), BadValue>;

    /// The value as `maitred.toml` would have it; `None` where there is none.
    fn show(&self, of: &C) -> Option<String>;
}

/// A value in a field of a `C`.
pub trait Field<C>: Value<C> {
    /// Takes over the value of `from`, which stays as it is.
    fn take(&self, to: &mut C, from: &mut C);
}

/// A value of a form, in a field of a `C`.
pub(crate) struct At<C: 'static, F: Form> {
    pub(crate) form: F,
    pub(crate) field: fn(&mut C) -> &mut F::Value,
}

impl<C: Clone, F: Form> Value<C> for At<C, F> {
    fn facts(&self) -> Facts {
        self.form.facts()
    }

    fn set(&self, to: &mut C, texts: &[String]) -> Result<(), BadValue> {
        *(self.field)(to) = self.form.read(texts)?;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<String> {
        self.form.show((self.field)(&mut of.clone()))
    }
}

impl<C: Clone, F: Form> Field<C> for At<C, F> {
    fn take(&self, to: &mut C, from: &mut C) {
        *(self.field)(to) = (self.field)(from).clone();
    }
}

/// A value that depends on others in the same `C`, which are set before it.
pub(crate) struct Made<C: 'static> {
    pub(crate) read: fn(&mut C, &[String]) -> Result<(), BadValue>,
    pub(crate) show: fn(&C) -> Option<String>,
    pub(crate) holds: Holds,
    pub(crate) is_list: bool,
}

impl<C> Value<C> for Made<C> {
    fn facts(&self) -> Facts {
        Facts::new(if self.is_list { TEXTS } else { "text" }, self.holds, self.is_list)
    }

    fn set(&self, to: &mut C, texts: &[String]) -> Result<(), BadValue> {
        (self.read)(to, texts)
    }

    fn show(&self, of: &C) -> Option<String> {
        (self.show)(of)
    }
}

impl Facts {
    fn new(takes: &str, holds: Holds, is_list: bool) -> Self {
        Self { takes: takes.to_owned(), holds, words: Vec::new(), is_list }
    }

    /// The placeholder of such a value in help texts.
    pub(crate) fn placeholder(&self) -> String {
        match self.holds {
            Holds::Words => self.words.join("|"),
            Holds::Whole(.., false) => "N".to_owned(),
            Holds::Whole(.., true) => "N|auto".to_owned(),
            Holds::Seconds(..) => "SECONDS".to_owned(),
            Holds::Bytes => "BYTES".to_owned(),
            Holds::File => "FILE".to_owned(),
            Holds::Folder => "FOLDER".to_owned(),
            Holds::Text | Holds::NumberOrText | Holds::Switch => String::new(),
        }
    }
}

/// One text.
pub(crate) struct One<T: 'static> {
    read: fn(&str) -> Result<T, BadValue>,
    show: fn(&T) -> Option<String>,
    takes: &'static str,
    holds: Holds,
}

impl<T: Clone> Form for One<T> {
    type Value = T;

    fn facts(&self) -> Facts {
        Facts::new(self.takes, self.holds, false)
    }

    fn read(&self, texts: &[String]) -> Result<T, BadValue> {
        (self.read)(texts.last().map_or("", String::as_str))
    }

    fn show(&self, value: &T) -> Option<String> {
        (self.show)(value)
    }
}

/// Any number of texts.
pub(crate) struct List<T: 'static> {
    read: fn(&[String]) -> Result<Vec<T>, BadValue>,
    show: fn(&T) -> String,
    takes: &'static str,
    holds: Holds,
}

impl<T: Clone> Form for List<T> {
    type Value = Vec<T>;

    fn facts(&self) -> Facts {
        Facts::new(self.takes, self.holds, true)
    }

    fn read(&self, texts: &[String]) -> Result<Vec<T>, BadValue> {
        (self.read)(texts)
    }

    fn show(&self, values: &Vec<T>) -> Option<String> {
        Some(list(values.iter().map(self.show)))
    }
}

/// One of these words.
pub(crate) struct Choice<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq + Sync> Form for Choice<T> {
    type Value = T;

    fn facts(&self) -> Facts {
        Facts { words: self.words(), ..Facts::new(&self.words().join(", "), Holds::Words, false) }
    }

    fn read(&self, texts: &[String]) -> Result<T, BadValue> {
        let text = texts.last().map_or("", String::as_str);
        self.0.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let names = self.words();
            let remedy = did_you_mean(text, names.iter().copied(), "write one of them");
            BadValue::new(format!("'{text}' is none of {}", names.join(", ")), remedy)
        })
    }

    fn show(&self, value: &T) -> Option<String> {
        self.0.iter().find(|(_, candidate)| candidate == value).map(|(word, _)| quoted(word))
    }
}

impl<T: Copy + PartialEq> Choice<T> {
    /// The word for a value; empty for one without.
    pub(crate) fn word(&self, value: T) -> &'static str {
        self.0.iter().find(|(_, candidate)| *candidate == value).map_or("", |(word, _)| word)
    }

    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, _)| *word).collect()
    }
}

/// A whole number from the first to the second one.
pub(crate) struct Count<T>(pub(crate) T, pub(crate) T);

impl<T: Copy + Display + FromStr + PartialOrd + Sync + TryInto<usize>> Form for Count<T> {
    type Value = T;

    fn facts(&self) -> Facts {
        let takes = format!("whole number from {} to {}", self.0, self.1);
        let [min, max] = [self.0, self.1].map(|bound| bound.try_into().unwrap_or(usize::MAX));
        Facts::new(&takes, Holds::Whole(min, max, false), false)
    }

    fn read(&self, texts: &[String]) -> Result<T, BadValue> {
        value::count(texts.last().map_or("", String::as_str), self.0, self.1)
    }

    fn show(&self, value: &T) -> Option<String> {
        plain(value)
    }
}

/// A value that may be left out.
pub(crate) struct Maybe<F>(pub(crate) F);

impl<F: Form> Form for Maybe<F> {
    type Value = Option<F::Value>;

    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn read(&self, texts: &[String]) -> Result<Self::Value, BadValue> {
        self.0.read(texts).map(Some)
    }

    fn show(&self, value: &Self::Value) -> Option<String> {
        self.0.show(value.as_ref()?)
    }
}

/// A value that depends on the machine if it is `auto`, which is none.
pub(crate) struct Auto<F>(pub(crate) F);

impl<F: Form> Form for Auto<F> {
    type Value = Option<F::Value>;

    fn facts(&self) -> Facts {
        let facts = self.0.facts();
        let (article, holds) = match facts.holds {
            Holds::Whole(min, max, _) => ("a ", Holds::Whole(min, max, true)),
            other => ("", other),
        };
        Facts { takes: format!("auto, or {article}{}", facts.takes), holds, ..facts }
    }

    fn read(&self, texts: &[String]) -> Result<Self::Value, BadValue> {
        let is_auto = texts.last().is_some_and(|text| text == limit_values::AUTO);
        (!is_auto).then(|| self.0.read(texts)).transpose()
    }

    fn show(&self, value: &Self::Value) -> Option<String> {
        value.as_ref().map_or_else(|| Some(quoted(limit_values::AUTO)), |value| self.0.show(value))
    }
}

const TEXTS: &str = "text, or a list of texts";

pub(crate) const APPLICATION: One<Option<String>> = One {
    read: |text| Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
    show: |value| Some(quoted(value.as_deref()?)),
    takes: "text",
    holds: Holds::Text,
};
pub(crate) const SWITCH: One<bool> =
    One { read: value::switch, show: plain, takes: "true or false", holds: Holds::Switch };
pub(crate) const PERCENT: One<u8> = One {
    read: value::percent,
    show: plain,
    takes: "whole number from 0 to 100",
    holds: Holds::Whole(0, 100, false),
};
pub(crate) const SECONDS: One<Duration> = One {
    read: |text| value::seconds(text, MIN_SECONDS, MAX_SECONDS),
    show: |time| plain(&time.as_secs_f64()),
    takes: "seconds from 0.001 to 86400, fractions allowed",
    holds: Holds::Seconds(MIN_SECONDS, MAX_SECONDS),
};
pub(crate) const SECONDS_OR_OFF: One<Duration> = One {
    read: |text| value::seconds(text, 0.0, MAX_SECONDS),
    takes: "seconds from 0 (off) to 86400, fractions allowed",
    holds: Holds::Seconds(0.0, MAX_SECONDS),
    ..SECONDS
};
/// Seconds, where 0 means no limit.
pub(crate) const TIMEOUT: One<Option<Duration>> = One {
    read: |text| value::seconds(text, 0.0, MAX_SECONDS).map(|time| Some(time).filter(|time| !time.is_zero())),
    show: |time| plain(&time.unwrap_or_default().as_secs_f64()),
    takes: SECONDS_OR_OFF.takes,
    holds: SECONDS_OR_OFF.holds,
};
pub(crate) const SECONDS_OR_AT_ONCE: One<Duration> =
    One { takes: "seconds from 0 (at once) to 86400, fractions allowed", ..SECONDS_OR_OFF };
pub(crate) const BYTES: One<u64> = One {
    read: value::bytes,
    show: |bytes| Some(value::show_bytes(*bytes)),
    takes: "bytes from 0 to 1024g",
    holds: Holds::Bytes,
};
pub(crate) const RATE: One<u64> = One {
    read: limit_values::rate,
    show: |rate| Some(limit_values::show_rate(*rate)),
    takes: limit_values::RATES,
    holds: Holds::NumberOrText,
};
pub(crate) const ACCOUNT: One<Account> =
    One { read: accounts::account, show: text, takes: "a name or a number", holds: Holds::NumberOrText };
pub(crate) const HSTS: One<Option<Hsts>> = One {
    read: tls_values::hsts,
    show: |hsts| Some(quoted(&tls_values::show_hsts(*hsts))),
    takes: tls_values::HSTS,
    holds: Holds::NumberOrText,
};

pub(crate) const ACME: One<Acme> = One {
    read: acme_values::acme,
    show: |acme| Some(quoted(acme_values::show_acme(acme))),
    takes: "an address of mail, on or off",
    holds: Holds::Text,
};
pub(crate) const DIRECTORY: One<Directory> =
    written(acme_values::directory, "letsencrypt, letsencrypt-staging or a URL");
pub(crate) const URL: One<Url> = written(acme_values::url, "a URL");
pub(crate) const COMMAND: One<String> = written(acme_values::command, "a command");
pub(crate) const TEXT: One<String> = written(|text| Ok(text.to_owned()), "text");
pub(crate) const CHALLENGES: List<Challenge> = texts(|texts| each(texts, acme_values::challenge), TEXTS);
pub(crate) const NAMES: List<HostPattern> = texts(|texts| each(texts, value::pattern), TEXTS);

/// An existing file; which one is checked with the rest of the configuration.
pub(crate) const FILE: One<PathBuf> =
    One { read: value::path, show: |path| Some(quoted(&shown(path))), takes: "a path", holds: Holds::File };
/// An existing folder, which is checked likewise.
pub(crate) const DIR: One<PathBuf> = One { holds: Holds::Folder, ..FILE };
pub(crate) const FOLDER: One<PathBuf> = One { read: value::folder, ..DIR };
pub(crate) const FILES: List<PathBuf> = List {
    read: |texts| each(texts, value::path),
    show: |path| shown(path),
    takes: "a path, or a list of paths",
    holds: Holds::File,
};

pub(crate) const URL_PATH: One<String> = written(value::url_path, "a URL path");
pub(crate) const EVENT_LOOP: One<String> =
    written(value::event_loop, "auto, asyncio, uvloop, module:factory");
pub(crate) const POOL_NAME: One<String> = written(|text| Ok(text.to_owned()), "the name of a pool");
/// The number is set when all hosts are known.
pub(crate) const HOST: One<HostCondition> =
    written(|text| Ok(HostCondition { number: u16::MAX, name: text.into() }), "text");
pub(crate) const METHOD: One<Method> = written(value::method, "text");
pub(crate) const PATH: One<PathPattern> = written(value::pattern, "text");
pub(crate) const HEADER: One<HeaderPattern> = written(value::pattern, "text");
pub(crate) const NETWORK: One<Network> = written(value::pattern, "text");
pub(crate) const CERTIFICATE: One<CertificatePattern> = written(value::pattern, "text");
pub(crate) const ADDRESS: One<ListenAddress> = written(listen::tcp, "host:port");
pub(crate) const ADDRESSES: List<ListenAddress> = texts(|texts| each(texts, listen::listen), TEXTS);
pub(crate) const MOUNTS: List<Mount> = texts(|texts| each(texts, value::mount), TEXTS);
pub(crate) const MOUNTED: List<MountedApplication> = texts(|texts| each(texts, mounted), TEXTS);
pub(crate) const ERROR_PAGES: List<ErrorPageFile> = texts(|texts| each(texts, error_page), TEXTS);
pub(crate) const CODING_LEVELS: List<CodingLevel> = texts(|texts| each(texts, value::pattern), TEXTS);
pub(crate) const TYPE_PATTERNS: List<TypePattern> = texts(|texts| each(texts, value::pattern), TEXTS);
pub(crate) const PATHS: List<PathPattern> = texts(|texts| each(texts, value::pattern), TEXTS);
pub(crate) const NETWORKS: List<Network> =
    texts(limit_values::networks, "none, or addresses and networks, separated by commas or as a list");
pub(crate) const PROXIES: List<TrustedProxy> =
    texts(proxy_values::trusted, "none, or addresses, networks and unix, separated by commas or as a list");
pub(crate) const FORWARDED_FIELDS: List<ForwardedField> =
    texts(proxy_values::fields, "names of fields, separated by commas or as a list");
pub(crate) const ROUTES: List<RouteBandwidth> = List {
    read: limit_values::routes,
    show: limit_values::show_route,
    takes: "none, or PATH=BYTES, separated by commas or as a list",
    holds: Holds::Text,
};

pub(crate) const ACCESS_LOG: One<LogPlace> = written(
    log_values::access_place,
    "auto, off, - (standard output), stderr, syslog, syslog:HOST:PORT, logging or a path",
);
pub(crate) const ERROR_LOG: One<LogPlace> =
    written(log_values::error_place, "stderr, stdout, syslog, syslog:HOST:PORT, logging or a path");
pub(crate) const CLIENT_LOG: One<LogPlace> =
    written(log_values::client_place, "off, - (standard output), stderr, syslog, syslog:HOST:PORT or a path");
pub(crate) const LOG_FORMAT: One<Format> =
    written(log_values::format, "default, common, combined, times, json, or text with fields");
pub(crate) const CONTROL_SOCKET: One<ControlSocket> = written(value::control_socket, "auto, off or a path");
pub(crate) const MASK: One<Option<Mask>> = One {
    read: log_values::mask,
    show: |mask| Some(quoted(&log_values::show_mask(*mask))),
    takes: "off, on, or two numbers, to 32 and to 128",
    holds: Holds::Text,
};
pub(crate) const PERIOD: Choice<Option<Period>> =
    Choice(&[("off", None), ("hourly", Some(Period::Hour)), ("daily", Some(Period::Day))]);
pub(crate) const LEVEL: Choice<LogLevel> = Choice(&[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
]);
pub(crate) const INTERFACE: Choice<Interface> =
    Choice(&[("auto", Interface::Auto), ("wsgi", Interface::Wsgi), ("asgi", Interface::Asgi)]);

impl Interface {
    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        INTERFACE.word(self)
    }
}

/// A word for the language of the application, which alone acts on the word.
pub(crate) const LIFESPAN: Choice<&str> = Choice(&[("auto", "auto"), ("on", "on"), ("off", "off")]);
pub(crate) const OVERFLOW: Choice<Overflow> =
    Choice(&[("wait", Overflow::Wait), ("refuse", Overflow::Refuse)]);
pub(crate) const SPANS: Choice<Spans> =
    Choice(&[("kernel", Spans::Kernel), ("read", Spans::Read), ("off", Spans::Off)]);
pub(crate) const OTLP: One<OtlpTo> = written(otlp::to, "off, on or a URL");
pub(crate) const OTLP_SIGNALS: List<Signal> =
    texts(otlp::signals, "traces, metrics, logs, separated by commas or as a list");
pub(crate) const TRACE_TRUST: Choice<TraceTrust> =
    Choice(&[("proxies", TraceTrust::Proxies), ("all", TraceTrust::All), ("none", TraceTrust::None)]);
pub(crate) const TRACE_SPANS: Choice<TracePhases> =
    Choice(&[("events", TracePhases::Events), ("spans", TracePhases::Spans)]);
pub(crate) const STRATEGY: Choice<Strategy> = Choice(&[
    ("adaptive", Strategy::Adaptive),
    ("pc", Strategy::Pc),
    ("pec", Strategy::Pec),
    ("epc", Strategy::Epc),
]);
pub(crate) const ACCEPT: Choice<AcceptModel> =
    Choice(&[("shared", AcceptModel::Shared), ("reuseport", AcceptModel::Reuseport)]);
pub(crate) const UNKNOWN_NAME: Choice<UnknownName> =
    Choice(&[("default", UnknownName::Default), ("refuse", UnknownName::Refuse)]);
pub(crate) const HTTP2: Choice<Http2> =
    Choice(&[("on", Http2::On), ("off", Http2::Off), ("only", Http2::Only)]);
pub(crate) const MIN_VERSION: Choice<Version> = Choice(&[("1.2", Version::V1_2), ("1.3", Version::V1_3)]);
pub(crate) const CLIENT_AUTH: Choice<ClientAuth> = Choice(&[
    ("none", ClientAuth::None),
    ("optional", ClientAuth::Optional),
    ("required", ClientAuth::Required),
]);

/// A value that is written as it is shown.
const fn written<T: Display>(read: fn(&str) -> Result<T, BadValue>, takes: &'static str) -> One<T> {
    One { read, show: text, takes, holds: Holds::Text }
}

/// A list of values that are written as they are shown.
const fn texts<T: Display>(read: fn(&[String]) -> Result<Vec<T>, BadValue>, takes: &'static str) -> List<T> {
    List { read, show: T::to_string, takes, holds: Holds::Text }
}

fn each<T>(texts: &[String], parse: fn(&str) -> Result<T, BadValue>) -> Result<Vec<T>, BadValue> {
    texts.iter().map(|text| parse(text)).collect()
}

fn plain<T: Display>(value: &T) -> Option<String> {
    Some(value.to_string())
}

fn text<T: Display>(value: &T) -> Option<String> {
    Some(quoted(&value.to_string()))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A TOML basic string: that of JSON, which leaves one control character as it is.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A TOML list of these texts.
pub(crate) fn list(texts: impl IntoIterator<Item = String>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| quoted(&text)).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_names_of_the_log() {
        assert_eq!(LEVEL.0, LogLevel::ALL.map(|level| (level.name(), level)));
    }

    #[test]
    fn a_budget_is_bytes_or_auto() {
        let budget = |text: &str| Auto(BYTES).read(&[text.to_owned()]);
        assert_eq!((budget("auto"), budget("64m"), budget("0")), (Ok(None), Ok(Some(64 << 20)), Ok(Some(0))));
        assert!(budget("").is_err() && budget("half").is_err());
    }
}
