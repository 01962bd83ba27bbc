//! Addresses to listen on, with parameters: `127.0.0.1:8000,read-ahead=off`, `https://:443` or `unix:/run/app.sock,mode=660`.
//!
//! Promises: an address is shown as it is written, with its parameters in one order; errors name the wrong part and the nearest right one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use maitred_server::listening::{Address, KeepAlive, SocketOptions, UnixAddress, UnixName};

use crate::accounts::account;
use crate::value::switch;
use crate::{Account, BadValue, did_you_mean, passed_name};

/// An address to listen on, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    scheme: Option<Scheme>,
    place: Place,
    /// The port of https that all requests are sent to.
    pub redirect: Option<u16>,
    /// Whether requests are received completely before the application gets them; `None` without that parameter.
    pub read_ahead: Option<bool>,
    /// Whether the server sends responses to slow readers itself, so that the application's thread is free.
    pub writer: bool,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// The options of the sockets.
    pub options: SocketOptions,
    /// The owner of the file of a Unix socket.
    owner: Option<Account>,
    group: Option<Account>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The scheme as it stands before the address.
    fn prefix(self) -> &'static str {
        match self {
            Self::Http => "http://",
            Self::Https => "https://",
        }
    }

    /// The port of a URL without one.
    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => HTTPS,
        }
    }
}

const HTTPS: u16 = 443;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Tcp(Host, u16),
    Unix(UnixAddress),
    /// Sockets that a service manager passes: those with this name, or all.
    Passed(Option<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    /// `:8000`: all IPv4 interfaces.
    All,
    Name(String),
}

/// The names of the parameters, each with the form of its value. The last three are for the file of a Unix socket.
const PARAMETERS: [(&str, &str); 13] = [
    ("redirect", "https, or https:PORT"),
    ("read-ahead", "on or off"),
    ("writer", "on or off"),
    ("proxy-protocol", "on or off"),
    ("backlog", "a number of connections"),
    ("defer-accept", "seconds"),
    ("fast-open", "a number of connections"),
    ("no-delay", "on or off"),
    ("cork", "on or off"),
    ("keep-alive", "IDLE:INTERVAL:COUNT, two times in seconds and a number"),
    ("mode", "an octal number such as 660"),
    ("owner", "the name or the number of a user"),
    ("group", "the name or the number of a group"),
];

impl ListenAddress {
    /// Whether the listener speaks TLS at this address. A listener without a scheme does if there are certificates, except on a Unix
    /// socket: the proxy in front has certificates of its own.
    pub fn is_tls(&self, has_certificates: bool, address: &Address) -> bool {
        match self.scheme {
            Some(scheme) => scheme == Scheme::Https,
            None => has_certificates && self.redirect.is_none() && matches!(address, Address::Tcp(_)),
        }
    }

    /// Whether the address is written with `https://`.
    pub(crate) fn says_https(&self) -> bool {
        self.scheme == Some(Scheme::Https)
    }

    /// The port on which the listener speaks TLS; none if it does not, or a service manager passes the socket.
    fn https_port(&self) -> Option<u16> {
        let speaks = self.scheme.map_or(self.redirect.is_none(), |scheme| scheme == Scheme::Https);
        match self.place {
            Place::Tcp(_, port) if speaks => Some(port),
            _ => None,
        }
    }

    /// The TCP port; zero is one that the system chooses.
    pub fn port(&self) -> Option<u16> {
        match &self.place {
            Place::Tcp(_, port) => Some(*port),
            _ => None,
        }
    }

    /// For `[::]:8000`, the same address for all IPv4 interfaces: in other servers it means both families, and an IPv6 socket of maitred takes one.
    pub(crate) fn for_ipv4(&self) -> Option<Self> {
        match self.place {
            // The system would choose another port for the second socket.
            Place::Tcp(Host::Address(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), port) if port != 0 => {
                Some(Self { place: Place::Tcp(Host::All, port), ..self.clone() })
            }
            _ => None,
        }
    }

    /// The file of a Unix socket.
    pub fn socket_file(&self) -> Option<&Path> {
        match &self.place {
            Place::Unix(UnixAddress { name: UnixName::Path(path), .. }) => Some(path),
            _ => None,
        }
    }

    /// For sockets of a service manager, their name; `Some(None)` for all such sockets.
    pub fn passed(&self) -> Option<Option<&str>> {
        match &self.place {
            Place::Passed(name) => Some(name.as_deref()),
            _ => None,
        }
    }

    /// Resolves the address; none if a service manager passes the sockets. Names of hosts, users and groups are looked up. A host's first IPv4
    /// address is taken, else its first IPv6 address (many containers name `::1` in /etc/hosts but have no IPv6).
    ///
    /// # Errors
    /// A name cannot be resolved.
    pub fn resolve(&self) -> Result<Option<Address>, BadValue> {
        Ok(Some(match &self.place {
            Place::Passed(_) => return Ok(None),
            Place::Unix(address) => Address::Unix(UnixAddress {
                owner: self.owner.as_ref().map(Account::uid).transpose()?,
                group: self.group.as_ref().map(Account::gid).transpose()?,
                ..address.clone()
            }),
            Place::Tcp(host, port) => self.resolve_host(host, *port)?.into(),
        }))
    }

    fn resolve_host(&self, host: &Host, port: u16) -> Result<SocketAddr, BadValue> {
        let name = match host {
            Host::Address(address) => return Ok(SocketAddr::new(*address, port)),
            Host::All => return Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
            Host::Name(name) => name,
        };
        let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let found = found.and_then(|found| {
            let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
            first.copied().ok_or_else(|| std::io::Error::other("the name has no address"))
        });
        found.map_err(|error| {
            let what = format!("the name in {self} cannot be resolved: {error}");
            BadValue::new(what, "use a number, such as 127.0.0.1")
        })
    }

    /// Resolves an address of TCP.
    ///
    /// # Errors
    /// The name cannot be resolved, or this is no address of TCP.
    pub fn resolve_tcp(&self) -> Result<SocketAddr, BadValue> {
        match self.resolve()? {
            Some(Address::Tcp(address)) => Ok(address),
            _ => Err(BadValue::new(format!("{self} has no port"), "use a number, such as 127.0.0.1:9000")),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BadValue> {
        if let (Place::Passed(_), Some(remedy)) = (&self.place, passed_name::of_unit(name)) {
            return Err(BadValue::new(format!("'{name}' cannot be set for a socket that is passed"), remedy));
        }
        if name == "redirect" && self.says_https() {
            let what = "'redirect' leads from http to https, and this listener is https already";
            return Err(BadValue::new(what, "leave it out, or write http:// before the address"));
        }
        let number = || value.parse::<u32>().ok();
        let on = || switch(value).ok();
        let mut file = match &mut self.place {
            Place::Unix(UnixAddress { name: UnixName::Path(_), mode, .. }) => {
                Some((mode, &mut self.owner, &mut self.group))
            }
            _ => None,
        };
        let done = match (name, &mut file) {
            ("redirect", _) => redirect(value).map(|port| self.redirect = Some(port)),
            ("read-ahead", _) => on().map(|on| self.read_ahead = Some(on)),
            ("writer", _) => on().map(|on| self.writer = on),
            ("proxy-protocol", _) => on().map(|on| self.proxy_protocol = on),
            ("backlog", _) => {
                number().filter(|count| *count > 0).map(|count| self.options.backlog = Some(count))
            }
            ("defer-accept", _) => number().map(|seconds| self.options.defer_accept = Some(seconds)),
            ("fast-open", _) => number().map(|count| self.options.fast_open = Some(count)),
            ("no-delay", _) => on().map(|on| self.options.no_delay = Some(on)),
            ("cork", _) => on().map(|on| self.options.cork = Some(on)),
            ("keep-alive", _) => keep_alive(value).map(|times| self.options.keep_alive = Some(times)),
            ("mode", Some((mode, ..))) => u32::from_str_radix(value, 8)
                .ok()
                .filter(|bits| *bits <= 0o777)
                .map(|bits| **mode = Some(bits)),
            ("owner", Some((_, owner, _))) => account(value).ok().map(|account| **owner = Some(account)),
            ("group", Some((.., group))) => account(value).ok().map(|account| **group = Some(account)),
            ("mode" | "owner" | "group", None) => {
                let what = format!("'{name}' is for the file of a Unix socket");
                return Err(BadValue::new(what, "leave it out, or listen on unix:/PATH"));
            }
            _ => {
                let known = PARAMETERS.iter().map(|(name, _)| *name);
                let remedy = did_you_mean(
                    name,
                    known,
                    format!("there are {}", PARAMETERS.map(|(name, _)| name).join(", ")),
                );
                return Err(BadValue::new(format!("'{name}' is no parameter of a listener"), remedy));
            }
        };
        done.ok_or_else(|| {
            let form = PARAMETERS.iter().find(|(known, _)| *known == name).map_or("", |(_, form)| form);
            BadValue::new(format!("'{value}' is no value of '{name}'"), format!("write {name}= and {form}"))
        })
    }
}

/// Warns of listeners that redirect clients to the usual port of https if no listener has that port. A proxy in front may forward it to another
/// port.
pub fn warnings(listeners: &[ListenAddress]) -> Vec<String> {
    let ports: Vec<u16> = listeners.iter().filter_map(ListenAddress::https_port).collect();
    let is_known = ports.is_empty() || ports.contains(&HTTPS);
    let lost = listeners.iter().filter(|one| one.redirect == Some(HTTPS) && !is_known);
    let warn = |one: &ListenAddress| {
        let port = ports.first().copied().unwrap_or(HTTPS);
        format!(
            "{one}: clients are sent to port {HTTPS}, and https is on port {port}; write redirect=https:{port}, unless something in front \
             leads from {HTTPS} to it"
        )
    };
    lost.map(warn).collect()
}

/// `https` or `https:8443`.
fn redirect(text: &str) -> Option<u16> {
    match text.strip_prefix("https")? {
        "" => Some(HTTPS),
        rest => rest.strip_prefix(':')?.parse().ok().filter(|port| *port > 0),
    }
}

/// `60:10:6`.
fn keep_alive(text: &str) -> Option<KeepAlive> {
    let mut numbers = text.split(':').map(|number| number.parse::<u32>().ok().filter(|number| *number > 0));
    let times = KeepAlive { idle_s: numbers.next()??, interval_s: numbers.next()??, count: numbers.next()?? };
    numbers.next().is_none().then_some(times)
}

impl FromStr for ListenAddress {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        listen(text)
    }
}

/// An address with its parameters.
pub(crate) fn listen(text: &str) -> Result<ListenAddress, BadValue> {
    let mut parts = text.split(',');
    let (scheme, address) = scheme(parts.next().unwrap_or_default().trim());
    let place = place(address)
        .map_err(|bad| scheme.map_or(bad.clone(), |scheme| with_scheme(bad, scheme, address)))?;
    let mut listen = ListenAddress { scheme, ..plain(place) };
    for part in parts {
        let part = part.trim();
        let Some((name, value)) = part.split_once('=') else {
            return Err(BadValue::new(
                format!("'{part}' is no parameter of a listener"),
                "write NAME=VALUE behind the comma, such as read-ahead=off",
            ));
        };
        listen.set(name.trim(), value.trim())?;
    }
    Ok(listen)
}

/// Splits a text into the scheme and the address.
fn scheme(text: &str) -> (Option<Scheme>, &str) {
    let schemes = [Scheme::Http, Scheme::Https].into_iter();
    let mut found = schemes.filter_map(|scheme| Some((Some(scheme), text.strip_prefix(scheme.prefix())?)));
    found.next().unwrap_or((None, text))
}

/// Completes the error about an address behind a scheme: the user may have written a URL, for which there is a suggestion.
fn with_scheme(BadValue { what, remedy }: BadValue, scheme: Scheme, address: &str) -> BadValue {
    let host = address.trim_end_matches('/');
    let meant = [host.to_owned(), format!("{host}:{}", scheme.port())];
    let meant = meant.iter().find_map(|meant| tcp_place(meant));
    let remedy = meant.map_or(remedy, |place| format!("did you mean '{}{place}'?", scheme.prefix()));
    BadValue {
        what: what.replacen(&format!("'{address}'"), &format!("'{}{address}'", scheme.prefix()), 1),
        remedy,
    }
}

/// All sockets that a service manager passes.
pub fn all_passed() -> ListenAddress {
    plain(Place::Passed(None))
}

/// An address of TCP without parameters.
pub(crate) fn tcp(text: &str) -> Result<ListenAddress, BadValue> {
    let listen = listen(text)?;
    if listen == plain(listen.place.clone()) && matches!(listen.place, Place::Tcp(..)) {
        return Ok(listen);
    }
    Err(BadValue::new(
        format!("'{text}' is more than an address"),
        "write host:port, for example 127.0.0.1:9000",
    ))
}

/// An address without parameters.
fn plain(place: Place) -> ListenAddress {
    ListenAddress {
        scheme: None,
        place,
        redirect: None,
        read_ahead: None,
        writer: true,
        proxy_protocol: false,
        options: SocketOptions::default(),
        owner: None,
        group: None,
    }
}

fn place(text: &str) -> Result<Place, BadValue> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix(path).map(Place::Unix);
    }
    if let Some(name) = passed_name::name(text) {
        return name.map(Place::Passed);
    }
    tcp_place(text).ok_or_else(|| {
        BadValue::new(
            format!("'{text}' is not an address to listen on"),
            match suggest(text) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => "write host:port, :port or [ipv6]:port with a port from 0 to 65535, for example 127.0.0.1:8000, or \
                         unix:/PATH"
                    .to_owned(),
            },
        )
    })
}

fn unix(path: &str) -> Result<UnixAddress, BadValue> {
    match path.strip_prefix('@') {
        Some(name) if !name.is_empty() => Ok(UnixAddress::abstract_name(name)),
        None if path.starts_with('/') && !path.ends_with('/') => Ok(UnixAddress::path(PathBuf::from(path))),
        _ => Err(BadValue::new(
            format!("'unix:{path}' is no Unix socket"),
            "write unix:/PATH with the whole path of a file, or unix:@NAME for a name in the kernel",
        )),
    }
}

fn tcp_place(text: &str) -> Option<Place> {
    let (host, port) = text.rsplit_once(':')?;
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let port = port.parse().ok()?;
    let host = if host.is_empty() {
        Host::All
    } else if let Some(inner) = host.strip_prefix('[') {
        Host::Address(inner.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.into())
    } else if let Ok(address) = host.parse::<Ipv4Addr>() {
        Host::Address(address.into())
    } else if is_host_name(host) {
        Host::Name(host.to_ascii_lowercase())
    } else {
        return None;
    };
    Some(Place::Tcp(host, port))
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

/// The address that the user probably meant.
fn suggest(text: &str) -> Option<String> {
    let meant = if text.parse::<u16>().is_ok() {
        format!("127.0.0.1:{text}")
    } else if text.parse::<Ipv6Addr>().is_ok() {
        format!("[{text}]:8000")
    } else if text.starts_with('/') {
        return Some(format!("unix:{text}"));
    } else {
        format!("{text}:8000")
    };
    tcp_place(&meant).map(|place| place.to_string())
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(Host::Address(address), port) => SocketAddr::new(*address, *port).fmt(f),
            Self::Tcp(Host::All, port) => write!(f, ":{port}"),
            Self::Tcp(Host::Name(name), port) => write!(f, "{name}:{port}"),
            Self::Unix(address) => address.fmt(f),
            Self::Passed(None) => f.write_str(passed_name::WORD),
            Self::Passed(Some(name)) => write!(f, "{}:{name}", passed_name::WORD),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, place, redirect, read_ahead, writer, proxy_protocol, options, owner, group } =
            self;
        let word = |on: bool| if on { "on" } else { "off" };
        f.write_str(scheme.map_or("", Scheme::prefix))?;
        place.fmt(f)?;
        match redirect {
            None => {}
            Some(HTTPS) => f.write_str(",redirect=https")?,
            Some(port) => write!(f, ",redirect=https:{port}")?,
        }
        if let Place::Unix(UnixAddress { mode, .. }) = place {
            mode.map_or(Ok(()), |mode| write!(f, ",mode={mode:o}"))?;
        }
        owner.as_ref().map_or(Ok(()), |owner| write!(f, ",owner={owner}"))?;
        group.as_ref().map_or(Ok(()), |group| write!(f, ",group={group}"))?;
        read_ahead.map_or(Ok(()), |on| write!(f, ",read-ahead={}", word(on)))?;
        if !writer {
            f.write_str(",writer=off")?;
        }
        if *proxy_protocol {
            f.write_str(",proxy-protocol=on")?;
        }
        let numbers = [
            ("backlog", options.backlog),
            ("defer-accept", options.defer_accept),
            ("fast-open", options.fast_open),
        ];
        for (name, number) in numbers {
            number.map_or(Ok(()), |number| write!(f, ",{name}={number}"))?;
        }
        options.no_delay.map_or(Ok(()), |on| write!(f, ",no-delay={}", word(on)))?;
        options.cork.map_or(Ok(()), |on| write!(f, ",cork={}", word(on)))?;
        options.keep_alive.map_or(Ok(()), |KeepAlive { idle_s, interval_s, count }| {
            write!(f, ",keep-alive={idle_s}:{interval_s}:{count}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> String {
        listen(text).expect(text).resolve().expect(text).expect("known").to_string()
    }

    #[test]
    fn listen_addresses_in_all_forms() {
        assert_eq!(resolved("127.0.0.1:8000"), "127.0.0.1:8000");
        assert_eq!(resolved(":80"), "0.0.0.0:80");
        assert_eq!(resolved("[::1]:0"), "[::1]:0");
        assert_eq!(resolved("localhost:65535"), "127.0.0.1:65535");
        assert_eq!(resolved("unix:/run/app.sock"), "unix:/run/app.sock");
        assert_eq!(resolved("unix:@app"), "unix:@app");
        assert_eq!(listen("LocalHost:1").expect("a name").to_string(), "localhost:1");
    }

    #[test]
    fn a_listener_has_parameters_behind_its_address_and_shows_them() {
        for text in [
            ":80",
            ":80,read-ahead=on",
            "[::1]:80,read-ahead=off,writer=off",
            "unix:/run/app.sock,mode=660,owner=33,group=33,proxy-protocol=on,backlog=9",
            "unix:/run/app.sock,owner=app,group=www-data",
            "localhost:1,defer-accept=5,fast-open=256,no-delay=off,cork=off,keep-alive=60:10:6",
            "systemd",
            "systemd:http,read-ahead=off,proxy-protocol=on,no-delay=off",
            "https://127.0.0.1:8443",
            "https://:443,proxy-protocol=on",
            "https://systemd:https",
            "http://:80,redirect=https",
            ":80,redirect=https:8443,backlog=9",
            "https://unix:/run/app.sock,mode=660",
        ] {
            assert_eq!(listen(text).expect(text).to_string(), text);
        }
        let both = listen(":80, writer=off, read-ahead=off").expect("in any order, with spaces");
        assert_eq!((both.writer, both.read_ahead), (false, Some(false)));
        assert_eq!(both.to_string(), ":80,read-ahead=off,writer=off");
        for text in [
            ":80,",
            ":80,read-ahead",
            ":80,read-ahead=maybe",
            ":80,backlog=0",
            ":80,redirect",
            ":80,redirect=http",
            ":80,redirect=https:0",
            ":80,redirect=https8443",
            "https://:80,redirect=https",
            "https://",
            "HTTPS://:443",
            "ftp://:21",
            ":80,keep-alive=60",
            ":80,keep-alive=1:2:3:4",
            ":80,mode=660",
            "unix:@app,mode=660",
            "unix:@app,owner=root",
            "unix:/a,owner=",
            "unix:/a,group=4294967295",
            ":80,group=root",
            "unix:/a,mode=888",
            "unix:/a,mode=1777",
            "unix:a",
            "unix:/a/",
            "unix:@",
            ",read-ahead=off",
            "systemd:",
            "systemd:a b",
            "systemd:a:b",
            "systemd,backlog=9",
        ] {
            assert!(listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_redirect_to_a_port_without_a_listener_is_a_warning() {
        let said = |texts: &[&str]| {
            let listeners: Vec<_> = texts.iter().map(|text| listen(text).expect(text)).collect();
            warnings(&listeners)
        };
        let told = said(&["https://127.0.0.1:8443", "127.0.0.1:8080,redirect=https"]);
        assert!(told.len() == 1 && told[0].contains("write redirect=https:8443"), "{told:?}");
        for fine in [
            &["https://:443", ":80,redirect=https"][..],
            &["https://:8443", ":80,redirect=https:8443"],
            &[":443", ":80,redirect=https"],
            &["systemd", ":80,redirect=https"],
            &["http://:8080", ":80,redirect=https"],
        ] {
            assert_eq!(said(fine), [""; 0], "{fine:?}");
        }
    }

    #[test]
    fn a_listener_without_a_scheme_speaks_tls_if_there_are_certificates() {
        let is_tls = |text: &str, has| {
            let listen = listen(text).expect(text);
            listen.is_tls(has, &listen.resolve().expect(text).expect("known"))
        };
        for (text, with, without) in [
            ("127.0.0.1:1", true, false),
            ("127.0.0.1:1,redirect=https", false, false),
            ("unix:/a", false, false),
            ("https://unix:/a", true, true),
            ("http://127.0.0.1:1", false, false),
            ("https://127.0.0.1:1", true, true),
        ] {
            assert_eq!((is_tls(text, true), is_tls(text, false)), (with, without), "{text}");
        }
        let ports = |text: &str| listen(text).expect(text).redirect;
        assert_eq!((ports(":1"), ports(":1,redirect=https")), (None, Some(443)));
        let bad = listen("https://:1,redirect=https").expect_err("it is https");
        assert_eq!(bad.remedy, "leave it out, or write http:// before the address");
    }

    #[test]
    fn owners_are_looked_up_when_the_address_is() {
        let resolved = |text: &str| listen(text).expect(text).resolve();
        let Ok(Some(Address::Unix(unix))) = resolved("unix:/a,owner=root,group=7") else {
            panic!("they are known")
        };
        assert_eq!((unix.owner, unix.group), (Some(0), Some(7)));
        let bad = resolved("unix:/a,group=no such group").expect_err("there is none");
        assert!(bad.what.contains("there is no group 'no such group'"), "{bad:?}");
    }

    #[test]
    fn a_wrong_parameter_is_named_with_the_nearest_right_one() {
        let wrong = |text: &str| listen(text).map_err(|bad| (bad.what, bad.remedy)).expect_err(text);
        let (what, remedy) = wrong(":80,readahead=off");
        assert_eq!(
            (what.as_str(), remedy.as_str()),
            ("'readahead' is no parameter of a listener", "did you mean 'read-ahead'?")
        );
        let (what, remedy) = wrong("unix:/a,mode=rw");
        assert_eq!(
            (what.as_str(), remedy.as_str()),
            ("'rw' is no value of 'mode'", "write mode= and an octal number such as 660")
        );
        let (what, remedy) = wrong("systemd:http,mode=660");
        assert_eq!(
            (what.as_str(), remedy.as_str()),
            ("'mode' cannot be set for a socket that is passed", "set SocketMode= in its .socket unit")
        );
    }

    #[test]
    fn the_control_takes_a_plain_address_of_tcp() {
        assert!(tcp("127.0.0.1:9000").is_ok());
        assert!(tcp("unix:/a").is_err() && tcp(":1,writer=off").is_err() && tcp("systemd").is_err());
        assert!(tcp("https://127.0.0.1:9000").is_err());
    }

    #[test]
    fn a_bad_listen_address_suggests_the_one_that_was_meant() {
        for (text, meant) in [
            ("8000", "'127.0.0.1:8000'"),
            ("127.0.0.1", "'127.0.0.1:8000'"),
            ("/run/app.sock", "'unix:/run/app.sock'"),
            ("::1", "'[::1]:8000'"),
            ("http://localhost:80/", "'http://localhost:80'"),
            ("http://localhost", "'http://localhost:80'"),
            ("https://shop.example/", "'https://shop.example:443'"),
            ("https://[::1]", "'https://[::1]:443'"),
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
}
