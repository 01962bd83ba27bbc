//! Requests to a CA and its answers, reduced to the parts that ACME uses.

use std::time::Duration;

use maitred_http::date;
use serde::de::DeserializeOwned;

use crate::fault::{Fault, Kind};

/// The longest answer of a CA that is read, in bytes. A chain has about 6 kB, an order of 100 names about 20 kB.
pub const MAX_RESPONSE: usize = 256 * 1024;

/// The longest URL and nonce of a CA.
const MAX_URL: usize = 2048;
const MAX_NONCE: usize = 512;

/// How many fields `Link` of an answer are read.
const MAX_LINKS: usize = 16;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET: the directory, renewal information.
    Get,
    /// HEAD: a nonce.
    Head,
    /// POST: everything else, signed.
    Post,
}

/// A request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// The field `Content-Type`; `None` without a body.
    pub content_type: Option<&'static str>,
    /// The field `Accept` of a certificate.
    pub accept: Option<&'static str>,
    /// The body.
    pub body: Vec<u8>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The field `Replay-Nonce`.
    pub nonce: Option<String>,
    /// The field `Location`.
    pub location: Option<String>,
    /// The field `Retry-After`.
    pub retry_after: Option<String>,
    /// The fields `Link`.
    pub links: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpRequest {
    pub(crate) fn plain(method: Method, url: &str) -> Self {
        Self { method, url: url.to_owned(), content_type: None, accept: None, body: Vec::new() }
    }
}

impl HttpResponse {
    /// The parts that count of an answer with these fields.
    pub fn new<'a>(status: u16, fields: impl IntoIterator<Item = (&'a str, &'a str)>, body: Vec<u8>) -> Self {
        let mut response = Self { status, body, ..Self::default() };
        for (name, value) in fields {
            let value = || value.trim().to_owned();
            match name.to_ascii_lowercase().as_str() {
                "replay-nonce" => response.nonce = Some(value()),
                "location" => response.location = Some(value()),
                "retry-after" => response.retry_after = Some(value()),
                "link" if response.links.len() < MAX_LINKS => response.links.push(value()),
                _ => {}
            }
        }
        response
    }

    /// The nonce, if it is one (RFC 8555 §6.5.1).
    pub(crate) fn take_nonce(&mut self) -> Option<String> {
        self.nonce.take().filter(|nonce| nonce.len() <= MAX_NONCE && is_base64url(nonce))
    }

    /// The wait that the CA asks for (RFC 9110 §10.2.3), at the time `now`.
    pub(crate) fn wait(&self, now: u64) -> Option<Duration> {
        let text = self.retry_after.as_deref()?;
        let at = || date::parse(text.as_bytes()).map(|at| at.saturating_sub(now));
        text.parse().ok().or_else(at).map(Duration::from_secs)
    }

    /// The body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T, Fault> {
        if self.body.len() > MAX_RESPONSE {
            return Err(Fault::unreadable(&format!("{what} is longer than {MAX_RESPONSE} bytes")));
        }
        serde_json::from_slice(&self.body).map_err(|error| Fault::unreadable(&format!("{what}: {error}")))
    }

    /// The targets of the links with this relation (RFC 8288).
    pub(crate) fn linked(&self, relation: &str) -> impl Iterator<Item = &str> {
        self.links.iter().filter_map(move |link| {
            let (target, parameters) = link.strip_prefix('<')?.split_once('>')?;
            let is_it = |parameter: &str| {
                let (name, value) = parameter.split_once('=').unwrap_or_default();
                name.trim().eq_ignore_ascii_case("rel") && value.trim().trim_matches('"') == relation
            };
            parameters.split(';').any(is_it).then_some(target)
        })
    }
}

/// Whether the text is base64url without padding, and not empty.
pub(crate) fn is_base64url(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// A URL of the CA, if requests may go there: by https to any host, as CAs use several; otherwise only to the origin of
/// the directory, which the operator has named.
pub(crate) fn checked_url(url: &str, directory: &str) -> Result<String, Fault> {
    let is_text = url.len() <= MAX_URL && url.bytes().all(|byte| byte.is_ascii_graphic());
    let is_https = url.strip_prefix("https://").is_some_and(|rest| !rest.starts_with(['/', '?', '#', ':']));
    let is_own = origin(directory).is_some_and(|own| origin(url) == Some(own));
    if is_text && (is_https && url.len() > "https://".len() || is_own) {
        return Ok(url.to_owned());
    }
    let shown: String = url.chars().take(100).flat_map(char::escape_default).collect();
    Err(Fault::new(
        Kind::Unreadable,
        &format!("the CA names the URL \"{shown}\", to which no request may go"),
    ))
}

/// Scheme, host and port.
fn origin(url: &str) -> Option<&str> {
    let behind = url.find("://")? + 3;
    let host = url.get(behind..)?.find(['/', '?', '#']).map_or(url.len(), |end| behind + end);
    url.get(..host).filter(|_| host > behind)
}
