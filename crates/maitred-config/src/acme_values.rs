//! The values of the options about certificates by ACME.

use std::fmt;
use std::path::PathBuf;

use maitred_certificates::{LETS_ENCRYPT, LETS_ENCRYPT_STAGING};
use maitred_server::HostPattern;

use crate::BadValue;

/// Orders of certificates for all hosts. The meaning of the fields is that of the options with the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The names of the default host.
    pub hosts: Vec<HostPattern>,
    /// The authority.
    pub directory: Directory,
    /// The file with the authorities that sign the directory's own certificate; the system's if there is none.
    pub authorities: Option<PathBuf>,
    /// The folder of accounts and certificates; the usual one if there is none.
    pub folder: Option<PathBuf>,
    /// The profile that is asked for.
    pub profile: Option<String>,
    /// A file with the key of an account elsewhere, or `env:` and the name of a variable that has the key.
    pub external_account: Option<PathBuf>,
    /// The name of the authority at the end of the chain.
    pub chain: Option<String>,
    /// The challenges in the order in which they are tried.
    pub challenges: Vec<Challenge>,
    /// The command that makes and removes entries of the DNS.
    pub hook: Option<String>,
    /// Names whose certificates are ordered when a client asks for one.
    pub on_demand: Vec<HostPattern>,
    /// The URL that says whether such a name is served.
    pub ask: Option<Url>,
}

/// Whether certificates are ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Acme {
    /// They are not.
    #[default]
    Off,
    /// They are. The authority may write to this address.
    On(Option<String>),
}

/// The challenges of authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A request on port 80.
    Http,
    /// A handshake on port 443.
    TlsAlpn,
    /// An entry of the DNS.
    Dns,
}

/// The URL of a directory (RFC 8555 section 7.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    word: Option<&'static str>,
    url: String,
}

/// A URL with http or https.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url(String);

/// Words for directories that need no URL.
const KNOWN: [(&str, &str); 2] =
    [("letsencrypt", LETS_ENCRYPT), ("letsencrypt-staging", LETS_ENCRYPT_STAGING)];

const CHALLENGES: [(&str, Challenge); 3] =
    [("http", Challenge::Http), ("tls-alpn", Challenge::TlsAlpn), ("dns", Challenge::Dns)];

impl Directory {
    /// The URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether the authority is known to certify public names alone.
    pub fn is_public(&self) -> bool {
        KNOWN.iter().any(|(_, url)| *url == self.url)
    }
}

impl Default for Directory {
    fn default() -> Self {
        let [(word, url), ..] = KNOWN;
        Self { word: Some(word), url: url.to_owned() }
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word.unwrap_or(&self.url))
    }
}

impl Url {
    /// The URL as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CHALLENGES.iter().find(|(_, known)| known == self).map_or("", |(word, _)| word))
    }
}

/// `off`, `on`, or an address of mail.
pub(crate) fn acme(text: &str) -> Result<Acme, BadValue> {
    let is_address = |text: &str| {
        let parts = text.split_once('@').filter(|(name, host)| !name.is_empty() && host.contains('.'));
        parts.is_some() && text.bytes().all(|byte| byte.is_ascii_graphic() && !b",;<>".contains(&byte))
    };
    match text {
        "off" | "false" => Ok(Acme::Off),
        "on" | "true" => Ok(Acme::On(None)),
        _ => match text.strip_prefix("mailto:").unwrap_or(text) {
            contact if is_address(contact) => Ok(Acme::On(Some(contact.to_owned()))),
            _ => Err(BadValue::new(
                format!("'{text}' is no address of mail"),
                "write one to which the authority may write, such as you@example.org, or on, or off",
            )),
        },
    }
}

pub(crate) fn show_acme(value: &Acme) -> &str {
    match value {
        Acme::Off => "off",
        Acme::On(None) => "on",
        Acme::On(Some(contact)) => contact,
    }
}

pub(crate) fn directory(text: &str) -> Result<Directory, BadValue> {
    if let Some((word, url)) = KNOWN.into_iter().find(|(word, url)| *word == text || *url == text) {
        return Ok(Directory { word: Some(word), url: url.to_owned() });
    }
    let rest = text.strip_prefix("https://").filter(|rest| is_rest_of_url(rest));
    rest.map(|_| Directory { word: None, url: text.to_owned() }).ok_or_else(|| {
        BadValue::new(
            format!("'{text}' is no directory of an authority"),
            "write letsencrypt, letsencrypt-staging, or the URL of a directory, which begins with https://",
        )
    })
}

pub(crate) fn url(text: &str) -> Result<Url, BadValue> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.filter(|rest| is_rest_of_url(rest)).map(|_| Url(text.to_owned())).ok_or_else(|| {
        BadValue::new(
            format!("'{text}' is no URL"),
            "write one, such as http://127.0.0.1:8000/may-have-certificate",
        )
    })
}

/// Whether there is a host, and nothing that a URL cannot have.
fn is_rest_of_url(rest: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#@".contains(&byte);
    !rest.is_empty() && !rest.starts_with(['/', '?', ':']) && rest.bytes().all(is_plain)
}

pub(crate) fn challenge(text: &str) -> Result<Challenge, BadValue> {
    let known = CHALLENGES.into_iter().find(|(word, _)| *word == text).map(|(_, challenge)| challenge);
    known.ok_or_else(|| BadValue::new(format!("'{text}' is no challenge"), "write http, tls-alpn or dns"))
}

pub(crate) fn command(text: &str) -> Result<String, BadValue> {
    match text.split_whitespace().next() {
        Some(_) => Ok(text.to_owned()),
        None => Err(BadValue::new("the command is empty", "write the path of a program")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_an_address_of_mail() {
        for (text, shown) in [
            ("you@example.org", "you@example.org"),
            ("mailto:you@example.org", "you@example.org"),
            ("on", "on"),
            ("false", "off"),
        ] {
            assert_eq!(show_acme(&acme(text).expect(text)), shown);
        }
        for text in ["", "you", "@example.org", "you@host", "a b@example.org", "a@example.org,b@example.org"]
        {
            assert!(acme(text).expect_err(text).remedy.contains("you@example.org"), "{text}");
        }
    }

    #[test]
    fn a_directory_is_a_word_or_a_url_of_https() {
        let known = directory("https://acme-v02.api.letsencrypt.org/directory").expect("known");
        assert_eq!((known.to_string().as_str(), known.is_public()), ("letsencrypt", true));
        assert_eq!(known, Directory::default());
        let own = directory("https://localhost:14000/dir").expect("a URL");
        assert_eq!((own.to_string().as_str(), own.is_public()), ("https://localhost:14000/dir", false));
        for text in ["", "letsencript", "http://localhost/dir", "https://", "https:///dir", "https://a b/"] {
            assert!(directory(text).is_err(), "{text}");
        }
        assert!(
            url("http://127.0.0.1:8000/ask?x=1").is_ok()
                && url("/ask").is_err()
                && url("http://u@h/").is_err()
        );
    }

    #[test]
    fn challenges_are_words() {
        for word in ["http", "tls-alpn", "dns"] {
            assert_eq!(challenge(word).expect(word).to_string(), word);
        }
        assert!(challenge("dns-01").is_err() && command(" ").is_err());
    }
}
