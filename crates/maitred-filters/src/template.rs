//! The target of a redirect, and a rewritten path: a text whose `*` stand for the parts of the path that match those of
//! its pattern.
//!
//! A part is decoded, and encoded again for its place, so that no byte of a request becomes a line break, a query or
//! another host.

use std::fmt;
use std::fmt::Write as _;

use maitred_http::Status;

use maitred_match::{BadPattern, PathPattern};

/// Sends the client elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    to: Template,
    status: Status,
}

/// The path that the application, static mounts and pools see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite(Template);

/// The statuses of redirects that name one place (RFC 9110 §15.4).
const STATUSES: [Status; 5] = [
    Status::MOVED_PERMANENTLY,
    Status::FOUND,
    Status::SEE_OTHER,
    Status::TEMPORARY_REDIRECT,
    Status::PERMANENT_REDIRECT,
];

impl Redirect {
    /// The status unless another one is given: the method stays, and clients may remember it.
    pub const STATUS: Status = Status::PERMANENT_REDIRECT;

    /// Leads to `to`, a path or a URL with `http://` or `https://`, for requests whose path is one of `path`.
    ///
    /// # Errors
    /// It is none, it has more `*` than `path`, or this is no status of a redirect.
    pub fn new(to: &str, path: Option<&PathPattern>, status: u16) -> Result<Self, BadPattern> {
        let Some(status) = STATUSES.into_iter().find(|known| known.code() == status) else {
            let known: Vec<String> = STATUSES.iter().map(|status| status.code().to_string()).collect();
            let what = format!("{status} is no status of a redirect");
            return Err(BadPattern::new(what, format!("write one of {}", known.join(", "))));
        };
        Ok(Self { to: Template::parse(to, path, true)?, status })
    }

    /// The status of the answer.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Where it leads, as it was written.
    pub fn to(&self) -> &str {
        &self.to.text
    }

    /// The `Location` for a decoded path that `pattern` matches.
    pub(crate) fn location(
        &self,
        pattern: Option<&PathPattern>,
        path: &[u8],
        query: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        self.to.fill(pattern, path, query)
    }
}

impl Rewrite {
    /// A rewrite to `to`, for requests whose path is one of `path`.
    ///
    /// # Errors
    /// `to` is no path, or has more `*` than `path`.
    pub fn new(to: &str, path: Option<&PathPattern>) -> Result<Self, BadPattern> {
        Template::parse(to, path, false).map(Self)
    }

    /// The new path, as it was written.
    pub fn to(&self) -> &str {
        &self.0.text
    }

    /// Path and query for a decoded path that `pattern` matches.
    pub(crate) fn target(
        &self,
        pattern: Option<&PathPattern>,
        path: &[u8],
        query: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        self.0.fill(pattern, path, query)
    }
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.status.code(), self.to.text)
    }
}

impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Template {
    text: Box<str>,
}

impl Template {
    fn parse(text: &str, path: Option<&PathPattern>, elsewhere: bool) -> Result<Self, BadPattern> {
        let bad = |why: &str, remedy: &str| Err(BadPattern::new(format!("'{text}' {why}"), remedy));
        let url = ["http://", "https://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
        match url {
            Some(_) if elsewhere => {}
            _ if text.starts_with("//") => {
                return bad("begins with two slashes", "write one, or a URL with https://");
            }
            _ if text.starts_with('/') => {}
            _ if elsewhere => return bad("is neither a path nor a URL", "write /path, or https://host/path"),
            _ => return bad("is no path", "begin it with '/'"),
        }
        let host = url.map(|url| &url[..url.find('/').unwrap_or(url.len())]);
        if host.is_some_and(|host| host.is_empty() || host.contains(['*', '?', '#', '@'])) {
            // A client could choose where it leads.
            return bad("has no host before its path", "write https://host/path, with '*' in the path only");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return bad("has a character that no URL has", "write it with % and two digits, such as %20");
        }
        if !elsewhere && text.contains('#') {
            return bad("has a fragment", "leave it out: it is the browser's affair");
        }
        let (stars, known) = (text.matches('*').count(), path.map_or(0, PathPattern::stars));
        if stars > known {
            let what = format!("'{text}' has {stars} '*', and the path {known}");
            return Err(BadPattern::new(
                what,
                "each '*' stands for what that of the path stands for, in their order",
            ));
        }
        Ok(Self { text: text.into() })
    }

    /// The text with the parts of a path in the place of its `*`. The query stays unless the text has one. `None` if the
    /// pattern does not match.
    fn fill(&self, pattern: Option<&PathPattern>, path: &[u8], query: Option<&[u8]>) -> Option<Vec<u8>> {
        let captures = match pattern {
            Some(pattern) => pattern.captures(path)?,
            None => Vec::new(),
        };
        let mut captures = captures.into_iter();
        let mut parts = self.text.split('*');
        let mut out = parts.next()?.as_bytes().to_vec();
        for part in parts {
            match captures.next()? {
                Some(capture) => put(&mut out, capture),
                // `/old` was asked for, and not `/old/`.
                None if out.len() > 1 && out.ends_with(b"/") => drop(out.pop()),
                None => {}
            }
            out.extend_from_slice(part.as_bytes());
        }
        // Two slashes would be the beginning of another host (RFC 3986 §4.2).
        while out.starts_with(b"//") {
            out.remove(0);
        }
        let (before, fragment) = match out.iter().position(|byte| *byte == b'#') {
            Some(at) => out.split_at(at),
            None => (&out[..], &b""[..]),
        };
        match query {
            Some(query) if !before.contains(&b'?') => Some([before, b"?", query, fragment].concat()),
            _ => Some(out),
        }
    }
}

/// Appends a part of a path, encoded (RFC 3986 §3.3; in a query also the characters that separate its parts).
fn put(out: &mut Vec<u8>, part: &[u8]) {
    let in_path = !out.contains(&b'?');
    let part = if out.ends_with(b"/") { part.strip_prefix(b"/").unwrap_or(part) } else { part };
    let mut text = String::with_capacity(part.len());
    for byte in part {
        let plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
        if plain || in_path && b"!$&'()*+,;=:@".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use maitred_http::target;
    use proptest::prelude::*;

    use super::*;

    fn location(pattern: &str, to: &str, target: &str) -> Option<String> {
        let pattern: PathPattern = pattern.parse().expect(pattern);
        let redirect = Redirect::new(to, Some(&pattern), 308).expect(to);
        let (raw, query) = target.split_once('?').map_or((target, None), |(raw, query)| (raw, Some(query)));
        let mut path = Vec::new();
        target::normalise_decoded(raw.as_bytes(), &mut path);
        let found = redirect.location(Some(&pattern), &path, query.map(str::as_bytes))?;
        Some(String::from_utf8(found).expect("ASCII"))
    }

    #[test]
    fn parts_of_the_path_are_kept() {
        for (pattern, to, target, expected) in [
            ("/old/*", "/new/*", "/old/a/b", "/new/a/b"),
            ("/old/*", "/new/*", "/old/", "/new/"),
            ("/old/*", "/new/*", "/old", "/new"),
            ("/old/*", "/*", "/old", "/"),
            ("/old/*", "/new/*", "/old/a%20b%3Fc?x=1&y", "/new/a%20b%3Fc?x=1&y"),
            ("/old/*", "/new?q=*", "/old/a&b=c?x=1", "/new?q=a%26b%3Dc"),
            ("/old/*", "/new?kept=no", "/old/a?x=1", "/new?kept=no"),
            ("/old/*", "/new#top", "/old/a?x=1", "/new?x=1#top"),
            ("/old/*", "https://example.org/*", "/old/%C3%A9?", "https://example.org/%C3%A9?"),
            ("/old/*", "https://example.org/*", "/old", "https://example.org"),
            ("/user/*/is/*", "/*/of/*", "/user/7/is/a/b", "/7/of/a/b"),
            ("*.htm", "/*.html", "/a/b.htm", "/a/b.html"),
            ("*.htm", "/docs/*.html", "/a/b.htm", "/docs/a/b.html"),
            ("/one", "/two", "/one", "/two"),
        ] {
            assert_eq!(location(pattern, to, target).as_deref(), Some(expected), "{pattern} {to} {target}");
        }
    }

    #[test]
    fn a_request_cannot_choose_the_host_or_end_the_line() {
        for (target, expected) in [
            ("/x/%2Fevil.example", "/evil.example"),
            ("/x//evil.example", "/evil.example"),
            ("/x/%2F%2Fevil.example", "/evil.example"),
            ("/x/%5Cevil.example", "/%5Cevil.example"),
            ("/x/%0d%0aSet-Cookie:a", "/%0D%0ASet-Cookie:a"),
        ] {
            assert_eq!(location("/x/*", "/*", target).as_deref(), Some(expected), "{target}");
        }
    }

    #[test]
    fn a_target_that_leads_nowhere_is_an_error_with_its_remedy() {
        let pattern: PathPattern = "/old/*".parse().expect("a pattern");
        for (to, part) in [
            ("new", "is neither a path nor a URL"),
            ("", "is neither a path nor a URL"),
            ("//host/a", "begins with two slashes"),
            ("ftp://host/", "is neither a path nor a URL"),
            ("https://", "has no host before its path"),
            ("https://host*", "has no host before its path"),
            ("https:///a", "has no host before its path"),
            ("/a b", "has a character that no URL has"),
            ("/é", "has a character that no URL has"),
            ("/*/*", "has 2 '*', and the path 1; "),
        ] {
            let error = Redirect::new(to, Some(&pattern), 301).expect_err(to).to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(
            Redirect::new("/a", None, 300)
                .expect_err("no status")
                .to_string()
                .contains("301, 302, 303, 307, 308")
        );
        assert!(Rewrite::new("https://host/", None).expect_err("no path").to_string().contains("is no path"));
        assert!(Rewrite::new("/a#b", None).expect_err("no path").to_string().contains("has a fragment"));
        assert!(Rewrite::new("/*", None).expect_err("no path").to_string().contains("and the path 0"));
    }

    proptest! {
        /// For all requests: a location is one line, on this host, and a rewritten path decodes to the intended one.
        #[test]
        fn no_path_leads_to_another_host(path in "/x(/[a/.%\\\\\\r\\n\u{e9}?#:@2fF0dA]{0,12})?") {
            let pattern: PathPattern = "/x/*".parse().expect("a pattern");
            let redirect = Redirect::new("/*", Some(&pattern), 302).expect("right");
            let Some(found) = redirect.location(Some(&pattern), path.as_bytes(), None) else { return Ok(()) };
            prop_assert!(found.starts_with(b"/") && !found.starts_with(b"//"));
            prop_assert!(found.iter().all(|byte| byte.is_ascii_graphic() && !b"\\?#".contains(byte)));
            let rewrite = Rewrite::new("/y/*", Some(&pattern)).expect("right");
            let rewritten = rewrite.target(Some(&pattern), path.as_bytes(), None).expect("matches");
            let mut decoded = Vec::new();
            target::percent_decode(&rewritten, &mut decoded);
            let kept = path.strip_prefix("/x").expect("begins so");
            // Behind the slash of the new path the first slash of the part is not doubled.
            let kept = if kept.starts_with("//") { &kept[1..] } else { kept };
            prop_assert_eq!(decoded, [b"/y", kept.as_bytes()].concat());
        }
    }
}
