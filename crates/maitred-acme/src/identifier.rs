//! A name or an address for which a certificate is ordered.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name or an address for which a certificate is ordered. As text: the name in lower case, or the address as RFC 5952
/// writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Identifier {
    /// A name of a host in ASCII and lower case, without a dot at its end; `*.` may stand in front of it.
    Dns(String),
    /// An address.
    Ip(IpAddr),
}

/// Why a text is no name for which a certificate can be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifierError(String);

impl Identifier {
    /// The name that a CA checks: without `*.`.
    pub(crate) fn checked(&self) -> Self {
        match self {
            Self::Dns(name) => Self::Dns(name.strip_prefix("*.").unwrap_or(name).to_owned()),
            Self::Ip(_) => self.clone(),
        }
    }
}

impl FromStr for Identifier {
    type Err = IdentifierError;

    /// Reads a name or an address; an IPv6 address may stand in brackets.
    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        let refused = |why: &str| Err(IdentifierError(format!("{text:?} {why}")));
        let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(Self::Ip(address));
        }
        if !text.is_ascii() {
            return refused("is not ASCII; write an international name in its form with xn--");
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let labels = name.strip_prefix("*.").unwrap_or(&name);
        // RFC 1035 §2.3.4 has both lengths.
        let is_label = |label: &str| {
            let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            (1..=63).contains(&label.len())
                && label.bytes().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if name.len() > 253 || !labels.split('.').all(is_label) {
            return refused("is no name of a host");
        }
        if !labels.contains('.') || labels.rsplit('.').next().is_some_and(|last| last.parse::<u32>().is_ok())
        {
            return refused("is no public name: a CA gives certificates to names such as shop.example");
        }
        Ok(Self::Dns(name))
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => f.write_str(name),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

impl TryFrom<String> for Identifier {
    type Error = IdentifierError;

    fn try_from(text: String) -> Result<Self, IdentifierError> {
        text.parse()
    }
}

impl From<Identifier> for String {
    fn from(identifier: Identifier) -> Self {
        identifier.to_string()
    }
}

impl fmt::Display for IdentifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IdentifierError {}
