//! Who may come in.

use std::fmt;
use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};

use maitred_http::RequestHead;
use maitred_io::local::Peer;

/// Who has asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A process of this machine, over the Unix socket.
    Local(Peer),
    /// A client of the listener for HTTP.
    Remote(SocketAddr),
    /// Whoever has asked the supervisor, as it says.
    Relayed(String),
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(Peer { uid, pid }) => write!(f, "user {uid}, process {pid}"),
            Self::Remote(peer) => write!(f, "{peer}"),
            Self::Relayed(caller) => f.write_str(caller),
        }
    }
}

/// Why somebody is not answered: a status, and a line.
pub(super) type Denied = (u16, &'static str);

/// The Unix socket's file is closed to others already; root gets through it, and is meant to.
pub(super) fn admit_local(peer: Peer) -> Result<(), Denied> {
    let own = maitred_io::local::user();
    if peer.uid == own || peer.uid == 0 {
        return Ok(());
    }
    Err((403, "this server belongs to another user"))
}

/// A page in somebody's browser must not get in, whatever name its host has (DNS rebinding), and neither who does not
/// know the token.
pub(super) fn admit_remote(head: &RequestHead, token: Option<&str>) -> Result<(), Denied> {
    let host = head.authority();
    match token {
        None if !is_loopback(host) => {
            return Err((
                403,
                "the Host is no name of this machine itself; write 127.0.0.1, [::1] or localhost",
            ));
        }
        None => {}
        Some(token) => {
            let shown = head.fields.first("authorization").and_then(bearer).unwrap_or_default();
            if !is_same(shown, token.as_bytes()) {
                return Err((401, "show the token: Authorization: Bearer TOKEN"));
            }
        }
    }
    match head.fields.first("origin") {
        Some(origin) if strip_scheme(origin) != Some(host) => Err((403, "a page of another origin asks")),
        _ => Ok(()),
    }
}

/// Whether `host`, with or without a port, means this machine itself.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

fn strip_scheme(origin: &[u8]) -> Option<&[u8]> {
    origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"))
}

/// Compares without stopping at the first difference: how long it takes says nothing of the token but its length.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differences = shown.iter().zip(token).fold(0, |all, (one, other)| all | black_box(one ^ other));
    shown.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use maitred_h1::{Limits, Receiver};

    use super::*;

    fn admits(fields: &str, token: Option<&str>) -> Result<(), u16> {
        let text = format!("POST /set HTTP/1.1\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        Receiver::new().poll_event(text.as_bytes(), &mut head, &Limits::default()).expect("a head");
        admit_remote(&head, token).map_err(|(status, _)| status)
    }

    #[test]
    fn without_a_token_only_names_of_the_machine_itself_are_answered() {
        for host in
            ["localhost", "LOCALHOST:81", "127.0.0.1:9", "127.8.8.8", "[::1]:80", "[::ffff:127.0.0.1]"]
        {
            assert_eq!(admits(&format!("Host: {host}\r\n"), None), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "10.0.0.1", "[2001:db8::1]:80", "127.0.0.1.evil"]
        {
            assert_eq!(admits(&format!("Host: {host}\r\n"), None), Err(403), "{host}");
        }
    }

    #[test]
    fn a_page_of_another_origin_gets_nothing() {
        let host = "Host: localhost:9\r\n";
        assert_eq!(admits(&format!("{host}Origin: http://localhost:9\r\n"), None), Ok(()));
        for origin in ["http://localhost:3000", "https://evil.example", "null"] {
            assert_eq!(admits(&format!("{host}Origin: {origin}\r\n"), None), Err(403), "{origin}");
        }
    }

    #[test]
    fn a_token_is_shown_whole_or_not_at_all() {
        let token = Some("0123456789abcdef");
        let with = |shown: &str| admits(&format!("Host: a.example\r\nAuthorization: {shown}\r\n"), token);
        assert_eq!(with("Bearer 0123456789abcdef"), Ok(()));
        assert_eq!(with("bearer  0123456789abcdef "), Ok(()));
        for shown in
            ["0123456789abcdef", "Bearer 0123456789abcde", "Bearer 0123456789abcdeF", "Bearer", "Basic x"]
        {
            assert_eq!(with(shown), Err(401), "{shown}");
        }
        assert_eq!(admits("Host: localhost\r\n", token), Err(401));
    }
}
