//! Access control for queries and changes.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use maitred_http::{Method, RequestHead};
use maitred_io::local::Credentials;

use super::sessions::{CSRF, Sessions, is_same};

/// The origin of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A process of this machine, over the Unix socket.
    Local(Credentials),
    /// A client of the listener for HTTP.
    Remote(SocketAddr),
    /// A client of the supervisor, in the supervisor's words.
    Relayed(String),
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(Credentials { uid, pid, .. }) => write!(f, "user {uid}, process {pid}"),
            Self::Remote(peer) => write!(f, "{peer}"),
            Self::Relayed(caller) => f.write_str(caller),
        }
    }
}

pub(super) type Denied = (u16, &'static str);

/// The Unix socket's file is closed to others already; root gets through it, and is meant to.
pub(super) fn admit_local(peer: Credentials) -> Result<(), Denied> {
    let own = maitred_io::local::user();
    if peer.uid == own || peer.uid == 0 {
        return Ok(());
    }
    Err((403, "this server belongs to another user"))
}

/// Fields that proxies add. With one of them the client is not on this machine.
const OF_PROXIES: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Checks the place that a request comes from, with or without a token. A page in a user's browser is refused, whatever
/// name its host has (DNS rebinding). Without a token, clients on other machines are refused.
pub(super) fn admit_place(head: &RequestHead, has_token: bool) -> Result<(), Denied> {
    let host = head.authority();
    if !has_token && !is_loopback(host) {
        return Err((403, "the Host is no name of this machine itself; write 127.0.0.1, [::1] or localhost"));
    }
    if !has_token && OF_PROXIES.iter().any(|name| head.fields.contains(name)) {
        return Err((403, "this came through a proxy, for which a token is needed: admin-token-file"));
    }
    if head.fields.first("origin").is_some_and(|origin| strip_scheme(origin) != Some(host)) {
        return Err((403, "a page of another origin asks"));
    }
    // Fetch Metadata (W3C): a link from elsewhere may lead here, and nothing else may come from there.
    let fetched = |name: &str, value: &[u8]| head.fields.first(name).is_some_and(|found| found == value);
    let is_foreign = fetched("sec-fetch-site", b"cross-site") || fetched("sec-fetch-site", b"same-site");
    let is_link = head.method == Method::Get && fetched("sec-fetch-mode", b"navigate");
    if is_foreign && !is_link { Err((403, "a page of another site asks")) } else { Ok(()) }
}

/// Checks the token or the session cookie of a request from an admitted place. Returns the CSRF value that changes of
/// its session have to carry. `judge` says whether a shown text is the token.
pub(super) fn admit_who(
    head: &RequestHead,
    token: Option<&str>,
    sessions: &Sessions,
    judge: impl FnOnce(&[u8], &str) -> Result<(), Denied>,
) -> Result<String, Denied> {
    let Some(token) = token else { return Ok(sessions.open_csrf().to_owned()) };
    if let Some(shown) = head.fields.first("authorization").and_then(bearer) {
        // A browser does not add this field by itself, so that no other page can have it sent.
        return judge(shown, token).map(|()| String::new());
    }
    sessions.csrf(head.fields.all("cookie"), Instant::now()).ok_or(NO_TOKEN)
}

pub(super) const NO_TOKEN: Denied =
    (401, "show the token: Authorization: Bearer TOKEN, or sign in at /dashboard/");

/// Checks that a change is meant by its sender: one from a browser carries a value that only our own page knows.
pub(super) fn admit_change(head: &RequestHead, csrf: &str) -> Result<(), Denied> {
    let has = |name: &str| head.fields.contains(name);
    let is_browser = has("origin") || has("sec-fetch-site") || has("cookie");
    if csrf.is_empty() || !is_browser {
        return Ok(());
    }
    let shown = head.fields.first(CSRF).unwrap_or_default();
    if is_same(shown, csrf.as_bytes()) {
        Ok(())
    } else {
        Err((403, "a change from a browser shows X-CSRF-Token, as /dashboard/session has it"))
    }
}

pub(super) const TOO_MANY: Denied = (429, "too many wrong tokens from this address; try again in a moment");

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

#[cfg(test)]
mod tests {
    use maitred_h1::{Limits, Receiver};

    use super::*;

    fn admits(fields: &str, token: Option<&str>) -> Result<(), u16> {
        let text = format!("POST /set HTTP/1.1\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        Receiver::new().poll_event(text.as_bytes(), &mut head, &Limits::default()).expect("a head");
        let sessions = Sessions::new(1).expect("random numbers");
        let admitted = admit_place(&head, token.is_some())
            .and_then(|()| {
                admit_who(&head, token, &sessions, |shown, token| {
                    if is_same(shown, token.as_bytes()) { Ok(()) } else { Err(NO_TOKEN) }
                })
            })
            .and_then(|csrf| admit_change(&head, &csrf));
        admitted.map_err(|(status, _)| status)
    }

    #[test]
    fn without_a_token_clients_behind_a_proxy_are_refused() {
        let host = "Host: localhost\r\n";
        for field in
            ["X-Forwarded-For: 10.0.0.1", "Forwarded: for=_x", "Via: 1.1 vegur", "X-Real-IP: 10.0.0.1"]
        {
            assert_eq!(admits(&format!("{host}{field}\r\n"), None), Err(403), "{field}");
            let shown = format!("{host}{field}\r\nAuthorization: Bearer 0123456789abcdef\r\n");
            assert_eq!(admits(&shown, Some("0123456789abcdef")), Ok(()), "{field}");
        }
    }

    #[test]
    fn a_change_from_a_browser_is_from_our_own_page() {
        let host = "Host: localhost:9\r\n";
        let own = [
            "Origin: http://localhost:9",
            "Sec-Fetch-Site: same-origin",
            "Cookie: a=1",
            "Origin: http://localhost:9\r\nX-CSRF-Token: 00",
        ];
        for fields in own {
            assert_eq!(admits(&format!("{host}{fields}\r\n"), None), Err(403), "{fields}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(admits(&format!("{host}Sec-Fetch-Site: {site}\r\n"), None), Err(403), "{site}");
        }
        assert_eq!(admits(host, None), Ok(()), "curl");
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
