//! The values of options: text in, a type with the right meaning out.
//!
//! Every parser answers with what is wrong and a remedy; where it was written is added by the
//! caller.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use maitred_match::BadPattern;

use crate::problem::nearest;

/// What is wrong with a value, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadValue {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl BadValue {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

/// Where to listen: a host name or an address, and a port; and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: ListenHost,
    port: u16,
    read_ahead: Option<bool>,
    writer: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ListenHost {
    Address(IpAddr),
    /// `:8000`: all IPv4 interfaces.
    All,
    Name(String),
}

impl ListenAddress {
    /// The port; 0 lets the system choose a free one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether requests are received completely before the application gets them; `None` if nothing is said about it.
    pub fn read_ahead(&self) -> Option<bool> {
        self.read_ahead
    }

    /// Whether the server sends on what a slow reader has not taken yet, while the application's thread is free.
    pub fn has_writer(&self) -> bool {
        self.writer
    }

    /// The socket address. A name is looked up; its first IPv4 address is taken, else its first
    /// IPv6 address (many containers name `::1` in /etc/hosts but have no IPv6).
    ///
    /// # Errors
    /// The name cannot be resolved.
    pub fn resolve(&self) -> std::io::Result<SocketAddr> {
        match &self.host {
            ListenHost::Address(address) => Ok(SocketAddr::new(*address, self.port)),
            ListenHost::All => Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.port)),
            ListenHost::Name(name) => {
                let found: Vec<SocketAddr> = (name.as_str(), self.port).to_socket_addrs()?.collect();
                let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
                first.copied().ok_or_else(|| std::io::Error::other("the name has no address"))
            }
        }
    }
}

impl FromStr for ListenAddress {
    type Err = BadListenAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_listen(text).ok_or(BadListenAddress)
    }
}

/// The text is not `host:port`, `:port` or `[v6]:port`, with nothing behind it or `,read-ahead=` or `,writer=` and `on` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadListenAddress;

fn parse_listen(text: &str) -> Option<ListenAddress> {
    let mut parts = text.split(',');
    let mut listen = parse_address(parts.next()?)?;
    for part in parts {
        match part.trim().split_once('=')? {
            ("read-ahead", value) => listen.read_ahead = Some(switch(value).ok()?),
            ("writer", value) => listen.writer = switch(value).ok()?,
            _ => return None,
        }
    }
    Some(listen)
}

fn parse_address(text: &str) -> Option<ListenAddress> {
    let (host, port) = text.rsplit_once(':')?;
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let port = port.parse().ok()?;
    let host = if host.is_empty() {
        ListenHost::All
    } else if let Some(inner) = host.strip_prefix('[') {
        ListenHost::Address(inner.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.into())
    } else if let Ok(address) = host.parse::<Ipv4Addr>() {
        ListenHost::Address(address.into())
    } else if is_host_name(host) {
        ListenHost::Name(host.to_ascii_lowercase())
    } else {
        return None;
    };
    Some(ListenAddress { host, port, read_ahead: None, writer: true })
}

/// RFC 1123 §2.1: letters, digits, hyphens, dots. A last label of digits only is a mistyped
/// IPv4 address, never a name.
fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.len() <= 253 && host.split('.').all(label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            ListenHost::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            ListenHost::All => write!(f, ":{}", self.port),
            ListenHost::Name(name) => write!(f, "{name}:{}", self.port),
        }?;
        if let Some(on) = self.read_ahead {
            write!(f, ",read-ahead={}", if on { "on" } else { "off" })?;
        }
        if self.writer { Ok(()) } else { f.write_str(",writer=off") }
    }
}

pub(crate) fn listen(text: &str) -> Result<ListenAddress, BadValue> {
    if let Some((address, parameters)) = text.split_once(',')
        && parse_address(address).is_some()
        && parse_listen(text).is_none()
    {
        return Err(BadValue::new(
            format!("'{parameters}' is no parameter of a listener"),
            format!("write {address},read-ahead=off or {address},writer=off, or leave it out"),
        ));
    }
    text.parse().map_err(|BadListenAddress| {
        BadValue::new(
            format!("'{text}' is not an address to listen on"),
            match suggest_listen(text) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => "write host:port, :port or [ipv6]:port with a port from 0 to 65535, \
                         for example 127.0.0.1:8000"
                    .to_owned(),
            },
        )
    })
}

fn suggest_listen(text: &str) -> Option<String> {
    let meant = if text.parse::<u16>().is_ok() {
        format!("127.0.0.1:{text}")
    } else if let Some(rest) = text.strip_prefix("http://") {
        rest.trim_end_matches('/').to_owned()
    } else if text.parse::<Ipv6Addr>().is_ok() {
        format!("[{text}]:8000")
    } else {
        format!("{text}:8000")
    };
    parse_listen(&meant).map(|address| address.to_string())
}

/// A folder of static files at a prefix of the URL path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Starts with `/` and does not end with one, except for the root, which is `/`.
    pub prefix: String,
    /// The folder; relative to the current directory where it is not absolute.
    pub folder: PathBuf,
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.prefix, self.folder.display())
    }
}

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
    Ok(Mount { prefix, folder: PathBuf::from(folder) })
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

/// The URL path without slashes at its end, if nobody could read it in another way.
fn plain_url(url: &str) -> Option<String> {
    let prefix = url.trim_end_matches('/');
    let plain = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
    let printable = |byte: u8| byte > b' ' && byte != 0x7f && !b"?#%\\".contains(&byte);
    let is_plain = prefix.bytes().all(printable) && prefix.split('/').skip(1).all(plain);
    is_plain.then(|| if prefix.is_empty() { "/" } else { prefix }.to_owned())
}

/// The kinds of event loops that have a name of their own.
const EVENT_LOOPS: [&str; 3] = ["auto", "asyncio", "uvloop"];

/// One of the names, or `module:factory`.
pub(crate) fn event_loop(text: &str) -> Result<String, BadValue> {
    let is_path =
        |text: &str| text.split('.').all(|part| !part.is_empty() && !part.contains([' ', ':', '/']));
    match text.split_once(':') {
        Some((module, factory)) if is_path(module) && is_path(factory) => Ok(text.to_owned()),
        None if EVENT_LOOPS.contains(&text) => Ok(text.to_owned()),
        _ => Err(BadValue::new(
            format!("'{text}' is neither {} nor module:factory", EVENT_LOOPS.join(", ")),
            match nearest(text, EVENT_LOOPS) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => "write one of them".to_owned(),
            },
        )),
    }
}

pub(crate) fn path(text: &str) -> Result<PathBuf, BadValue> {
    if text.is_empty() {
        return Err(BadValue::new("the path is empty", "give a path or leave the option out"));
    }
    Ok(PathBuf::from(text))
}

pub(crate) fn count(text: &str, min: usize, max: usize) -> Result<usize, BadValue> {
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

/// What maitred-server reads by itself.
pub(crate) fn pattern<T: FromStr<Err = BadPattern>>(text: &str) -> Result<T, BadValue> {
    text.parse().map_err(|BadPattern { what, remedy }| BadValue { what, remedy })
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

/// How the parts of a request's time are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spans {
    /// From the kernel's receipt on.
    Kernel,
    /// From the server's reading on.
    Read,
    /// Not at all.
    Off,
}

/// Where a running server answers `maitred ctl`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ControlSocket {
    /// In a folder of this user, with the number of the process in its name.
    #[default]
    Auto,
    /// Nowhere.
    Off,
    /// At this path.
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

/// How much the error log says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Only what went wrong and lost something.
    Error,
    /// Also what went wrong and was put right.
    Warn,
    /// Also start, stop and other rare events.
    #[default]
    Info,
    /// Everything.
    Debug,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> String {
        listen(text).expect(text).resolve().expect(text).to_string()
    }

    #[test]
    fn listen_addresses_in_all_forms() {
        assert_eq!(resolved("127.0.0.1:8000"), "127.0.0.1:8000");
        assert_eq!(resolved(":80"), "0.0.0.0:80");
        assert_eq!(resolved("[::1]:0"), "[::1]:0");
        assert_eq!(resolved("localhost:65535"), "127.0.0.1:65535");
        assert_eq!(listen("LocalHost:1").expect("a name").to_string(), "localhost:1");
    }

    #[test]
    fn a_listener_has_parameters_behind_its_address() {
        assert_eq!(listen(":80").expect("plain").read_ahead(), None);
        let on = listen(":80,read-ahead=on").expect("said");
        assert_eq!((on.read_ahead(), on.to_string().as_str()), (Some(true), ":80,read-ahead=on"));
        let off = listen("[::1]:80, read-ahead=off").expect("with a space");
        assert_eq!((off.read_ahead(), off.to_string().as_str()), (Some(false), "[::1]:80,read-ahead=off"));
        let both = listen(":80,writer=off,read-ahead=off").expect("in any order");
        assert_eq!((both.has_writer(), both.to_string().as_str()), (false, ":80,read-ahead=off,writer=off"));
        assert!(off.has_writer());
        for text in [":80,", ":80,read-ahead", ":80,read-ahead=maybe", ":80,backlog=3", ",read-ahead=off"] {
            assert!(listen(text).is_err(), "{text}");
        }
        let bad = listen(":80,readahead=off").expect_err("a wrong name");
        assert_eq!(bad.what, "'readahead=off' is no parameter of a listener");
        assert_eq!(bad.remedy, "write :80,read-ahead=off or :80,writer=off, or leave it out");
    }

    #[test]
    fn a_bad_listen_address_suggests_the_one_that_was_meant() {
        for (text, meant) in [
            ("8000", "'127.0.0.1:8000'"),
            ("127.0.0.1", "'127.0.0.1:8000'"),
            ("::1", "'[::1]:8000'"),
            ("http://localhost:80/", "'localhost:80'"),
        ] {
            let bad = listen(text).expect_err(text);
            assert!(bad.remedy.contains(meant), "{text}: {}", bad.remedy);
        }
        for text in
            ["", ":", "a:65536", "a:+1", "1.2.3:80", "1.2.3.400:80", "[::1:80", "a b:80", "-a:80", "::1:80"]
        {
            assert!(listen(text).is_err(), "{text}");
        }
    }

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
