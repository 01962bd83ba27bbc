//! Names of virtual hosts: the pattern of a host, and the host in the authority of a request (`host:port`).

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::sync::Arc;

use crate::pattern::BadPattern;

/// The longest name that is looked up: that of a domain (RFC 1035 section 2.3.4), with brackets around an address.
pub const MAX_HOST: usize = 255;

/// A name of a virtual host. Names are in lower case, without a port and without the final dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This name: `shop.example`, `192.0.2.7`, `[2001:db8::7]`.
    Exact(Box<str>),
    /// All names that end with a dot and this: `*.shop.example` without its `*.`. Not this name itself.
    Below(Box<str>),
}

impl FromStr for HostPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |why: &str, remedy: &str| BadPattern::new(format!("the host '{text}' {why}"), remedy);
        let example = "write a name such as shop.example or *.shop.example";
        if !text.is_ascii() {
            return Err(bad("is not ASCII", "write the form that clients send, which begins with xn--"));
        }
        if text == "*" {
            return Err(bad(
                "means every host",
                "what stands outside of host tables is for every other host",
            ));
        }
        let lower = text.to_ascii_lowercase();
        if lower.starts_with('[') {
            let address = lower.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let Some(address) = address.and_then(|address| address.parse::<Ipv6Addr>().ok()) else {
                return Err(bad(
                    "is no IPv6 address in brackets",
                    "write it without a port, such as [2001:db8::7]",
                ));
            };
            return Ok(Self::Exact(format!("[{address}]").into()));
        }
        if text.contains(':') {
            return Err(bad("has a port", "leave it out: a host is the same on every listener"));
        }
        let name = lower.strip_suffix('.').unwrap_or(&lower);
        let (name, below) = match name.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.contains('*') {
            return Err(bad("has a '*' that is not its first label", "write it as *.shop.example"));
        }
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        if name.len() > 253 || !name.split('.').all(is_label) {
            return Err(bad("is no name of a host", example));
        }
        Ok(if below { Self::Below(name.into()) } else { Self::Exact(name.into()) })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

/// The name in an authority (`host[:port]`, RFC 3986 section 3.2.2), in lower case, without the port and the final dot; none if
/// it is empty or longer than a name can be. `room` is memory for it.
pub fn host_name<'a>(authority: &[u8], room: &'a mut [u8; MAX_HOST]) -> Option<&'a str> {
    if let Some(rest) = authority.strip_prefix(b"[") {
        let end = rest.iter().position(|byte| *byte == b']')?;
        let address: Ipv6Addr = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        let mut left = &mut room[..];
        write!(left, "[{address}]").ok()?;
        let used = MAX_HOST - left.len();
        return std::str::from_utf8(&room[..used]).ok();
    }
    let name = authority.split(|byte| *byte == b':').next().unwrap_or_default();
    let name = name.strip_suffix(b".").unwrap_or(name);
    let room = room.get_mut(..name.len()).filter(|room| !room.is_empty())?;
    room.copy_from_slice(name);
    room.make_ascii_lowercase();
    std::str::from_utf8(room).ok()
}

/// The hosts by their names: the one with exactly a name, else the one with the longest `*.` name that fits.
#[derive(Clone, Debug, Default)]
pub struct HostTable {
    exact: HashMap<Box<str>, u16>,
    /// The hosts by the part behind the `*.`.
    below: HashMap<Box<str>, u16>,
}

impl HostTable {
    /// Gives the host with this number a name. Which host had it before?
    pub fn insert(&mut self, name: &HostPattern, host: u16) -> Option<u16> {
        match name {
            HostPattern::Exact(name) => self.exact.insert(name.clone(), host),
            HostPattern::Below(name) => self.below.insert(name.clone(), host),
        }
    }

    /// The number of the host that this authority (`host[:port]`) asks for.
    pub fn find(&self, authority: &[u8]) -> Option<u16> {
        let mut room = [0; MAX_HOST];
        let name = host_name(authority, &mut room)?;
        if let Some(number) = self.exact.get(name) {
            return Some(*number);
        }
        let mut rest = name;
        while let Some((_, parent)) = rest.split_once('.').filter(|_| !self.below.is_empty()) {
            if let Some(number) = self.below.get(parent) {
                return Some(*number);
            }
            rest = parent;
        }
        None
    }
}

/// A virtual host as the condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCondition {
    /// The number of the host, as the head of a request has it.
    pub number: u16,
    /// The name in the configuration.
    pub name: Arc<str>,
}

impl fmt::Display for HostCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_have_one_form() {
        for (text, shown) in [
            ("shop.example", "shop.example"),
            ("Shop.Example.", "shop.example"),
            ("*.shop.example", "*.shop.example"),
            ("localhost", "localhost"),
            ("192.0.2.7", "192.0.2.7"),
            ("[2001:DB8:0::7]", "[2001:db8::7]"),
            ("xn--mnchen-3ya.example", "xn--mnchen-3ya.example"),
            ("a_b.example", "a_b.example"),
        ] {
            assert_eq!(text.parse::<HostPattern>().map(|it| it.to_string()).ok().as_deref(), Some(shown));
        }
    }

    #[test]
    fn invalid_names_are_refused_with_a_remedy() {
        for (text, why) in [
            ("", "no name"),
            ("*", "every host"),
            ("a..b", "no name"),
            (".a", "no name"),
            ("shop.example:80", "port"),
            ("shop.*.example", "first label"),
            ("*shop.example", "first label"),
            ("münchen.example", "ASCII"),
            ("[::1]:80", "brackets"),
            ("[::g]", "brackets"),
            ("a b", "no name"),
            ("http://a", "port"),
        ] {
            let error = text.parse::<HostPattern>().expect_err(text);
            assert!(error.what.contains(why), "{text}: {}", error.what);
        }
    }

    proptest::proptest! {
        /// Property for all bytes of a peer: no panic, and a name is found in any case, with a port and with a dot at
        /// its end.
        #[test]
        fn a_name_is_found_however_it_is_written(text in "[a-zA-Z0-9.\\-_:\\[\\]*%\\x00-\\xff]{0,300}", port: u16) {
            let find = |authority: &str| host_name(authority.as_bytes(), &mut [0; MAX_HOST]).map(str::to_owned);
            let _ = find(&text);
            if let Ok(HostPattern::Exact(name)) = text.parse() {
                for written in [text.clone(), text.to_uppercase(), format!("{name}."), format!("{name}:{port}")] {
                    let found = find(&written);
                    proptest::prop_assert_eq!(found.as_deref(), Some(&*name), "{}", written);
                }
            }
        }
    }

    #[test]
    fn an_authority_means_a_name_without_port_and_dot() {
        let name = |authority: &str| host_name(authority.as_bytes(), &mut [0; MAX_HOST]).map(str::to_owned);
        for (authority, expected) in [
            ("shop.example", Some("shop.example")),
            ("SHOP.example:8443", Some("shop.example")),
            ("shop.example.:80", Some("shop.example")),
            ("[::1]:80", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("[2001:DB8:0:0::7]:80", Some("[2001:db8::7]")),
            ("[::g]", None),
            ("", None),
            (":80", None),
            (".", None),
            ("[::1", None),
        ] {
            assert_eq!(name(authority).as_deref(), expected, "{authority}");
        }
        assert_eq!(name(&"a".repeat(MAX_HOST)), Some("a".repeat(MAX_HOST)));
        assert_eq!(name(&"a".repeat(MAX_HOST + 1)), None);
    }
}
