//! The values of options: text in, a type with the right meaning out.
//!
//! The error of every parser has the fault and a remedy; the caller adds the origin of the text.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use maitred_http::Method;
use maitred_http::fields::is_token;
pub use maitred_log::Level as LogLevel;
use maitred_match::BadPattern;

use crate::{Problem, did_you_mean};

/// The fault of a value, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl BadValue {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }

    /// The error of the user who wrote the value at `place`.
    pub fn at(self, place: impl Into<String>) -> Problem {
        Problem::new(place, self.what, self.remedy)
    }
}

impl From<BadPattern> for BadValue {
    fn from(BadPattern { what, remedy }: BadPattern) -> Self {
        Self { what, remedy }
    }
}

/// The model by which several workers accept connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptModel {
    /// All workers accept from one queue.
    #[default]
    Shared,
    /// Each worker has a queue of its own (SO_REUSEPORT).
    Reuseport,
}

/// The calling convention of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interface {
    /// The host looks at the application and decides.
    #[default]
    Auto,
    /// WSGI (PEP 3333).
    Wsgi,
    /// ASGI 3.
    Asgi,
}

/// A folder of static files at a prefix of the URL path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Starts with `/` and does not end with one, except for the root, which is `/`.
    pub prefix: String,
    /// The folder; relative to the current directory where it is not absolute.
    pub folder: PathBuf,
    /// The file of the folder that is sent for paths without a file: `index.html`.
    pub fallback: Option<String>,
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.prefix, self.folder.display())?;
        self.fallback.iter().try_for_each(|file| write!(f, "{FALLBACK}{file}"))
    }
}

/// Prefix of the fallback file in the text of a mount.
const FALLBACK: &str = ",fallback=";

pub(crate) fn mount(text: &str) -> Result<Mount, BadValue> {
    let remedy = "write /url=folder, for example /assets=./public";
    let bad = |why: &str| BadValue::new(format!("'{text}' {why}"), remedy);
    let (url, folder) = text.split_once('=').ok_or_else(|| bad("has no '='"))?;
    if !url.starts_with('/') {
        return Err(bad("does not start with '/'"));
    }
    if folder.is_empty() {
        return Err(bad("names no folder"));
    }
    let prefix = plain_url(url).ok_or_else(|| bad(NOT_PLAIN))?;
    let (folder, fallback) = match folder.split_once(FALLBACK) {
        Some((folder, file)) => {
            let file = file.trim_start_matches('/');
            let is_plain = !file.is_empty() && plain_url(&format!("/{file}")).is_some();
            if !is_plain || file.split('/').any(|part| part.starts_with('.')) {
                let what = format!("'{file}' is no file of a folder that is served");
                return Err(BadValue::new(what, "write fallback=index.html"));
            }
            (folder, Some(file.to_owned()))
        }
        None => (folder, None),
    };
    Ok(Mount { prefix, folder: PathBuf::from(folder), fallback })
}

/// The path of a URL, without a slash at its end: `/` or `/a/b`.
pub(crate) fn url_path(text: &str) -> Result<String, BadValue> {
    let bad = |why: &str| BadValue::new(format!("'{text}' {why}"), "write a URL path such as /site or /");
    if !text.starts_with('/') {
        return Err(bad("does not start with '/'"));
    }
    plain_url(text).ok_or_else(|| bad(NOT_PLAIN))
}

const NOT_PLAIN: &str = "is not a plain URL path (no empty segment, '.', '..', '?', '#', '%', '\\')";

/// The URL path without slashes at its end; none for a path that has several readings, such as one with escapes or dots.
fn plain_url(url: &str) -> Option<String> {
    let prefix = url.trim_end_matches('/');
    let plain = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
    let printable = |byte: u8| byte > b' ' && byte != 0x7f && !b"?#%\\".contains(&byte);
    let is_plain = prefix.bytes().all(printable) && prefix.split('/').skip(1).all(plain);
    is_plain.then(|| if prefix.is_empty() { "/" } else { prefix }.to_owned())
}

/// The kinds of event loops that have a name of their own.
const EVENT_LOOPS: [&str; 3] = ["auto", "asyncio", "uvloop"];

/// Parses the name of an event loop, or `module:factory`.
pub(crate) fn event_loop(text: &str) -> Result<String, BadValue> {
    let is_path =
        |text: &str| text.split('.').all(|part| !part.is_empty() && !part.contains([' ', ':', '/']));
    match text.split_once(':') {
        Some((module, factory)) if is_path(module) && is_path(factory) => Ok(text.to_owned()),
        None if EVENT_LOOPS.contains(&text) => Ok(text.to_owned()),
        _ => Err(BadValue::new(
            format!("'{text}' is neither {} nor module:factory", EVENT_LOOPS.join(", ")),
            did_you_mean(text, EVENT_LOOPS, "write one of them"),
        )),
    }
}

pub(crate) fn path(text: &str) -> Result<PathBuf, BadValue> {
    if text.is_empty() {
        return Err(BadValue::new("the path is empty", "give a path or leave the option out"));
    }
    Ok(PathBuf::from(text))
}

pub(crate) fn count<T: Copy + Display + FromStr + PartialOrd>(
    text: &str,
    min: T,
    max: T,
) -> Result<T, BadValue> {
    text.parse().ok().filter(|number| (min..=max).contains(number)).ok_or_else(|| {
        BadValue::new(
            format!("'{text}' is not a whole number from {min} to {max}"),
            format!("give one, for example {min}"),
        )
    })
}

pub(crate) fn percent(text: &str) -> Result<u8, BadValue> {
    let number = text.parse().ok().filter(|number| (0..=100).contains(number));
    number.ok_or_else(|| {
        BadValue::new(format!("'{text}' is not a whole number from 0 to 100"), "give one, for example 10")
    })
}

pub(crate) fn seconds(text: &str, min: f64, max: f64) -> Result<Duration, BadValue> {
    text.parse()
        .ok()
        .filter(|number: &f64| (min..=max).contains(number))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            BadValue::new(
                format!("'{text}' is not a time in seconds from {min} to {max}"),
                "give a number without unit, for example 30 or 0.5",
            )
        })
}

/// The largest number of bytes an option takes: 1 TiB, more than the disks that bodies go to.
pub(crate) const MAX_BYTES: u64 = 1 << 40;

pub(crate) fn bytes(text: &str) -> Result<u64, BadValue> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let unit: Option<u64> = match suffix.to_ascii_lowercase().as_str() {
        "" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
    let product = number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    product.filter(|bytes| *bytes <= MAX_BYTES).ok_or_else(|| {
        BadValue::new(
            format!("'{text}' is not a number of bytes from 0 to 1024g"),
            "give a whole number with k, m or g (units of 1024) or nothing behind it, for example 16m",
        )
    })
}

/// Parses a value whose type has its own parser.
pub(crate) fn pattern<T: FromStr<Err = BadPattern>>(text: &str) -> Result<T, BadValue> {
    text.parse().map_err(BadValue::from)
}

/// Parses a method. Methods are case-sensitive (RFC 9110 §9.1): `get` is another one than `GET`, and surely a mistake.
pub(crate) fn method(text: &str) -> Result<Method, BadValue> {
    let upper = text.to_ascii_uppercase();
    let is_known = !matches!(Method::from_token(&upper), Method::Other(_));
    let remedy = match upper {
        upper if upper != text && is_known => format!("did you mean '{upper}'?"),
        _ if is_token(text.as_bytes()) => return Ok(Method::from_token(text)),
        _ => "write one, such as POST, or a path that starts with '/'".to_owned(),
    };
    Err(BadValue::new(format!("'{text}' is no method"), remedy))
}

pub(crate) fn folder(text: &str) -> Result<PathBuf, BadValue> {
    match text {
        "" => Err(BadValue::new("the folder's name is empty", "write its path, for example /var/tmp")),
        path => Ok(PathBuf::from(path)),
    }
}

/// `bytes` in the largest unit that divides it.
pub(crate) fn show_bytes(bytes: u64) -> String {
    [(30, "g"), (20, "m"), (10, "k")]
        .into_iter()
        .find(|(shift, _)| bytes != 0 && bytes.trailing_zeros() >= *shift)
        .map_or(bytes.to_string(), |(shift, unit)| format!("\"{}{unit}\"", bytes >> shift))
}

pub(crate) fn switch(text: &str) -> Result<bool, BadValue> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(BadValue::new(format!("'{text}' is neither on nor off"), "write true or false")),
    }
}

/// Whether HTTP/2 is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2 {
    /// Clients choose between HTTP/1.1 and HTTP/2.
    #[default]
    On,
    /// The server speaks HTTP/1.1 only.
    Off,
    /// The server speaks HTTP/2 only.
    Only,
}

/// The way the parts of a request's time are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spans {
    /// From the kernel's receipt on.
    #[default]
    Kernel,
    /// From the server's reading on.
    Read,
    /// Not at all.
    Off,
}

/// The socket at which a running server answers `maitred ctl`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ControlSocket {
    /// A socket in a folder of this user, with the number of the process in its name.
    #[default]
    Auto,
    /// No socket.
    Off,
    /// The socket at this path.
    Path(PathBuf),
}

impl fmt::Display for ControlSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

pub(crate) fn control_socket(text: &str) -> Result<ControlSocket, BadValue> {
    match text {
        "" => Err(BadValue::new("the path is empty", "write auto, off or the path of a socket")),
        "auto" => Ok(ControlSocket::Auto),
        "off" => Ok(ControlSocket::Off),
        path => Ok(ControlSocket::Path(PathBuf::from(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_normalised() {
        let parsed = mount("/assets/=./a=b").expect("a mount");
        assert_eq!((parsed.prefix.as_str(), parsed.folder.to_str()), ("/assets", Some("./a=b")));
        assert_eq!(mount("/=x").expect("the root").prefix, "/");
        for text in
            ["assets=x", "/assets", "/assets=", "/a//b=x", "/a/../b=x", "/a?b=x", "/a%20b=x", "/a b=x"]
        {
            assert!(mount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn url_paths_are_plain_and_have_no_slash_at_the_end() {
        assert_eq!(url_path("/"), Ok("/".to_owned()));
        assert_eq!(url_path("/a/b/"), Ok("/a/b".to_owned()));
        for text in ["", "a", "/a//b", "/../a", "/a?b", "/a%20b"] {
            assert!(url_path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_hold_their_range() {
        assert_eq!(count("1", 1, 10), Ok(1));
        assert_eq!(count("10", 1, 10), Ok(10));
        for text in ["0", "11", "-1", "1.5", "", "many"] {
            assert!(count(text, 1, 10).is_err(), "{text}");
        }
    }

    #[test]
    fn seconds_take_fractions_and_nothing_strange() {
        assert_eq!(seconds("0.25", 0.001, 60.0), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("60", 0.001, 60.0), Ok(Duration::from_secs(60)));
        for text in ["0", "-1", "60.1", "inf", "nan", "30s", "", "1e300"] {
            assert!(seconds(text, 0.001, 60.0).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_take_binary_units() {
        for (text, value) in
            [("0", 0), ("1000", 1000), ("16m", 16 << 20), ("1KiB", 1024), ("1024g", MAX_BYTES)]
        {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "m", "1kb", "1.5m", "-1", "1025g", "99999999999999999999", "99999999999g"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(show_bytes(16 << 20), "\"16m\"");
        assert_eq!(show_bytes(1000), "1000");
        assert_eq!(show_bytes(0), "0");
    }
}
