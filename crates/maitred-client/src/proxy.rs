//! Proxies: their URLs, requests that go through them, and their failures.
//!
//! A request of plain HTTP goes to the proxy with its whole URL as target (RFC 9112 §3.2.2); a connection with TLS goes through
//! a [tunnel](crate::tunnel).
//!
//! Leaves out: SOCKS; authentication other than Basic.

use std::fmt;

use base64ct::{Base64, Encoding};
use maitred_h1::{Malformed, OutgoingRequest};
use maitred_http::FieldSet;
use maitred_tls::ServerFault;

use crate::key::{Key, Place, Proxy, TlsIdentity};

/// Why a text names no proxy that can be used. The text is not shown: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyUrlError {
    /// The scheme is another one than http or https.
    Scheme(Box<str>),
    /// There is no host.
    NoHost,
    /// The port is no number up to 65535.
    Port,
    /// The user or the password has a `%` without two hexadecimal digits, or a control character.
    Credentials,
}

impl fmt::Display for ProxyUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) if scheme.starts_with("socks") => {
                write!(f, "proxies of {scheme} are not supported; use one of HTTP, http://HOST:PORT")
            }
            Self::Scheme(scheme) => {
                write!(f, "'{scheme}' is no scheme of a proxy; write http:// or https://")
            }
            Self::NoHost => f.write_str("the URL of the proxy has no host; write http://HOST:PORT"),
            Self::Port => f.write_str("the port of the proxy is no number up to 65535"),
            Self::Credentials => f.write_str(
                "the user or the password of the proxy cannot be read; write special characters as % and two hexadecimal digits",
            ),
        }
    }
}

impl std::error::Error for ProxyUrlError {}

/// The failure of a proxy on the way to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// The proxy refuses the tunnel by this status and reason.
    Refused(u16, Box<str>),
    /// The proxy's answer is no response.
    Response(Malformed),
    /// The proxy sends interim responses without end.
    Interim,
    /// The proxy has closed the connection before its answer.
    Closed,
    /// The proxy sent bytes behind its answer before the server could send any.
    Surplus,
    /// TLS with the proxy itself.
    Tls(ServerFault),
}

impl fmt::Display for ProxyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(407, reason) => write!(
                f,
                "the proxy wants credentials: 407 {reason}; write them into its URL, http://USER:PASSWORD@HOST:PORT"
            ),
            Self::Refused(status, reason) => {
                write!(f, "the proxy makes no connection to the server: {status} {reason}")
            }
            Self::Response(malformed) => {
                write!(f, "the answer of the proxy is no HTTP response: {malformed}")
            }
            Self::Interim => f.write_str("the proxy sends interim responses without end"),
            Self::Closed => f.write_str("the proxy has closed the connection before its answer"),
            Self::Surplus => {
                f.write_str("the proxy sent bytes behind its answer that no server can have sent")
            }
            Self::Tls(fault) => write!(f, "TLS with the proxy: {fault}"),
        }
    }
}

impl std::error::Error for ProxyFault {}

impl Proxy {
    /// A proxy by its URL, `http://user:password@host:port`; without a scheme it is one of HTTP. `tls` counts for https.
    ///
    /// # Errors
    /// The text is no such URL.
    pub fn of_url(url: &str, tls: TlsIdentity) -> Result<Self, ProxyUrlError> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let scheme = scheme.to_ascii_lowercase();
        let (tls, usual) = match &*scheme {
            "http" => (None, 80),
            "https" => (Some(tls), 443),
            _ => return Err(ProxyUrlError::Scheme(scheme.escape_debug().to_string().into())),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (place, ""),
        };
        let port = match port {
            "" => usual,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| ProxyUrlError::Port)?
            }
            _ => return Err(ProxyUrlError::Port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(ProxyUrlError::NoHost);
        }
        let credentials = user.map(basic).transpose()?;
        Ok(Self { host: host.into(), port, tls, credentials, fields: Box::default() })
    }
}

/// Credentials of Basic (RFC 7617) from the user and the password of a URL.
fn basic(user: &str) -> Result<Box<[u8]>, ProxyUrlError> {
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    let mut plain = decoded(user)?;
    plain.push(b':');
    plain.extend(decoded(password)?);
    Ok(format!("Basic {}", Base64::encode_string(&plain)).into_bytes().into())
}

/// Without percent-encoding (RFC 3986 §2.1).
fn decoded(text: &str) -> Result<Vec<u8>, ProxyUrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let (high, low) =
                    digit(rest.next()).zip(digit(rest.next())).ok_or(ProxyUrlError::Credentials)?;
                high * 16 + low
            }
            byte => byte,
        });
    }
    if bytes.iter().any(u8::is_ascii_control) { Err(ProxyUrlError::Credentials) } else { Ok(bytes) }
}

impl Key {
    /// The place to which the socket is connected: that of the proxy if there is one.
    pub(crate) fn first_place(&self) -> Place {
        match &self.proxy {
            Some(proxy) => Place::Host(proxy.host.clone(), proxy.port),
            None => self.place.clone(),
        }
    }

    /// `host:port`, with brackets around an IPv6 address; without the port if it is `usual`.
    pub(crate) fn authority(&self, usual: Option<u16>) -> String {
        let Place::Host(host, port) = &self.place else { return "localhost".to_owned() };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        if Some(*port) == usual { host } else { format!("{host}:{port}") }
    }
}

/// Gives `begin` the request as it goes out: to a proxy of plain HTTP with the whole URL as target and with the fields for the proxy.
/// The field `Host` is that of the URL then, as a proxy takes no other one into account.
pub(crate) fn adapted<T>(
    key: &Key,
    request: &OutgoingRequest<'_>,
    begin: impl FnOnce(&OutgoingRequest<'_>) -> T,
) -> T {
    let proxy = match &key.proxy {
        Some(proxy) if key.tls.is_none() => proxy,
        // Credentials for the proxy are none of the server behind its tunnel (CVE-2023-32681).
        Some(_) if request.fields.contains("proxy-authorization") => {
            let mut fields = request.fields.clone();
            fields.remove("proxy-authorization");
            return begin(&OutgoingRequest { fields: &fields, ..*request });
        }
        _ => return begin(request),
    };
    let target = whole_target(key, request.target);
    let mut fields = request.fields.clone();
    fields.remove("host");
    push_fields(proxy, &mut fields);
    begin(&OutgoingRequest { target: &target, fields: &fields, ..*request })
}

/// The URL as target; empty, which no request can have, if `target` would make it that of another server.
fn whole_target(key: &Key, target: &[u8]) -> Vec<u8> {
    let whole = [Some(80), None].map(|usual| format!("http://{}", key.authority(usual)).into_bytes());
    let is_own = |url: &Vec<u8>| {
        let (start, rest) = target.split_at_checked(url.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(url) && matches!(rest.first(), None | Some(b'/' | b'?'))
    };
    if whole.iter().any(is_own) {
        return target.to_vec();
    }
    let [mut url, _] = whole;
    match target {
        b"*" => url,
        [b'/', ..] => {
            url.extend_from_slice(target);
            url
        }
        _ => Vec::new(),
    }
}

/// Adds the fields for the proxy. Credentials of the proxy's own take the place of others.
pub(crate) fn push_fields(proxy: &Proxy, fields: &mut FieldSet) {
    if let Some(credentials) = &proxy.credentials {
        fields.set("Proxy-Authorization", credentials);
    }
    for (name, value) in &proxy.fields {
        fields.push(&**name, value);
    }
}

#[cfg(test)]
mod tests {
    use maitred_http::Method;

    use super::*;

    #[test]
    fn urls_name_proxies() {
        let proxy = |url| {
            let proxy = Proxy::of_url(url, TlsIdentity::default())?;
            let credentials = proxy.credentials.map(|text| String::from_utf8(text.into()).expect("text"));
            Ok((proxy.host.to_string(), proxy.port, proxy.tls.is_some(), credentials))
        };
        for (url, host, port, tls, credentials) in [
            ("http://Proxy.example:3128", "proxy.example", 3128, false, None),
            ("proxy:3128/", "proxy", 3128, false, None),
            ("HTTPS://p", "p", 443, true, None),
            ("http://[::1]:8080", "::1", 8080, false, None),
            ("http://[::1]", "::1", 80, false, None),
            ("http://a:b%40c@p:1", "p", 1, false, Some("Basic YTpiQGM=")),
            ("http://a@p:1", "p", 1, false, Some("Basic YTo=")),
        ] {
            let expected = (host.to_owned(), port, tls, credentials.map(str::to_owned));
            assert_eq!(proxy(url), Ok(expected), "{url}");
        }
        for (url, error) in [
            ("socks5h://p:1080", ProxyUrlError::Scheme("socks5h".into())),
            ("ftp://p", ProxyUrlError::Scheme("ftp".into())),
            ("http://", ProxyUrlError::NoHost),
            ("http://:80", ProxyUrlError::NoHost),
            ("http://p:x", ProxyUrlError::Port),
            ("http://p:+1", ProxyUrlError::Port),
            ("http://p:65536", ProxyUrlError::Port),
            ("http://a%4@p", ProxyUrlError::Credentials),
            ("http://a%0a@p", ProxyUrlError::Credentials),
        ] {
            assert_eq!(proxy(url), Err(error), "{url}");
        }
        assert!(ProxyUrlError::Scheme("socks5".into()).to_string().contains("not supported"));
    }

    #[test]
    fn a_request_of_plain_http_goes_out_with_its_whole_url() {
        let proxy = Proxy::of_url("http://a:b@p:3128", TlsIdentity::default()).expect("a URL");
        let sent = |key: &Key, method: &Method, target: &str, host: &str| {
            let mut fields = FieldSet::new();
            fields.push("Host", host);
            fields.push("Proxy-Authorization", "Basic other");
            let request = OutgoingRequest {
                method,
                target: target.as_bytes(),
                authority: b"",
                fields: &fields,
                length: Some(0),
                upgrade: false,
            };
            let mut out = Vec::new();
            adapted(key, &request, |request| maitred_h1::Sender::of_request(request, &mut out))
                .map(|_| String::from_utf8(out).expect("text").replace("\r\n", "|"))
        };
        let written =
            |key: &Key, target: &str, host: &str| sent(key, &Method::Options, target, host).expect("sent");
        let key = |port| Key { proxy: Some(proxy.clone()), ..Key::plain("server", port) };
        let fields = "Host: server:8000|Proxy-Authorization: Basic YTpi||";
        assert_eq!(
            written(&key(8000), "/a?b", "other"),
            format!("OPTIONS http://server:8000/a?b HTTP/1.1|{fields}")
        );
        assert_eq!(
            written(&key(8000), "*", "server:8000"),
            format!("OPTIONS http://server:8000 HTTP/1.1|{fields}")
        );
        assert!(
            written(&key(80), "/", "server").starts_with("OPTIONS http://server/ HTTP/1.1|Host: server|")
        );
        for target in ["http://server:8000/a", "HTTP://Server:8000", "http://server:8000?b"] {
            let expected = format!("OPTIONS {target} HTTP/1.1|");
            assert!(written(&key(8000), target, "other").starts_with(&expected), "{target}");
        }
        assert!(
            written(&key(80), "http://server:80/", "a").starts_with("OPTIONS http://server:80/ HTTP/1.1|")
        );
        for target in [
            "",
            ".evil/x",
            "@evil/x",
            "0/x",
            ":1/x",
            "evil",
            "http://evil/",
            "http://server:80000/",
            "http://server:8000@evil/",
            "http://server:8000.evil/",
            "http://server/",
            "https://server:8000/",
            "evil:443",
        ] {
            for method in [&Method::Get, &Method::Options, &Method::Connect] {
                let refused = sent(&key(8000), method, target, "a").expect_err(target);
                assert_eq!(refused, maitred_h1::HeadError::InvalidTarget, "{method:?} {target}");
            }
        }
        let secure = Key { tls: Some(TlsIdentity::default()), ..key(443) };
        assert_eq!(written(&secure, "/", "server"), "OPTIONS / HTTP/1.1|Host: server||");
    }
}
