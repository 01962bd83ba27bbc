//! The access log's line, as a [`Format`] says.
//!
//! What a client sent is made printable, so that a line is always one line and a terminal is not
//! told what to do. The thread that has answered makes the line, the log's own thread writes it.

use std::cell::RefCell;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use maitred_http::target;
use maitred_io::line_writer::Notice;
use maitred_match::PathPattern;

use crate::format::{Escape, Format};
use crate::line::Line;
use crate::mask::Mask;
use crate::outcome::Outcome;

/// What the indexes of an outcome mean, for the log.
#[derive(Default)]
pub struct Names {
    /// The pools, the default one first.
    pub pools: Vec<String>,
    /// The listeners.
    pub listeners: Vec<String>,
    /// The virtual hosts; the default one, which comes first, has no name.
    pub hosts: Vec<String>,
}

pub(crate) struct Lines {
    pub(crate) format: Format,
    pub(crate) mask: Option<Mask>,
    pub(crate) except: Vec<PathPattern>,
    pub(crate) names: Arc<OnceLock<Names>>,
    pub(crate) worker: Arc<AtomicU32>,
}

thread_local! {
    static LINE: RefCell<Line> = RefCell::default();
    static PATH: RefCell<Vec<u8>> = RefCell::default();
}

impl Lines {
    pub(crate) fn with_line(&self, outcome: &Outcome<'_>, write: impl FnOnce(&[u8])) {
        if !self.except.is_empty() && self.leaves_out(outcome.head.path()) {
            return;
        }
        LINE.with_borrow_mut(|line| write(line.make(self, outcome)));
    }

    /// By the path as rules of pools see it.
    fn leaves_out(&self, path: &[u8]) -> bool {
        PATH.with_borrow_mut(|decoded| {
            target::normalise_decoded(path, decoded);
            self.except.iter().any(|pattern| pattern.matches(decoded))
        })
    }

    pub(crate) fn notice(&self) -> Option<fn(Notice) -> String> {
        (self.format.escape == Escape::Json).then_some(|notice| match notice {
            Notice::Missing(lines) => {
                format!("{{\"notice\":\"lines are missing here\",\"missing\":{lines}}}")
            }
            Notice::NotRotated(error) => {
                format!("{{\"notice\":\"this log could not be rotated\",\"errno\":{error}}}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use maitred_http::{RequestHead, Status, TlsClient, TlsSession, Version};
    use maitred_stats::Times;

    use super::*;
    use crate::outcome::{Database, End, Outgoing};
    use crate::request_id::RequestId;

    fn line(format: &str, mask: Option<Mask>, peer: &str, agent: &[u8]) -> String {
        let mut head = RequestHead::default();
        head.fields.push("User-Agent", agent);
        let outcome =
            Outcome { peer: peer.parse::<std::net::SocketAddr>().unwrap().into(), ..outcome(&head) };
        written(lines(format, mask), &outcome)
    }

    fn outcome(head: &RequestHead) -> Outcome<'_> {
        Outcome {
            head,
            peer: "192.0.2.1:99".parse::<std::net::SocketAddr>().unwrap().into(),
            id: RequestId::Made(1),
            listener: 0,
            pool: Some(0),
            route: None,
            told_route: "",
            status: Status::OK,
            body_bytes: 6,
            times: Times { arrived: 1_000_000, done: 2_500_000, ..Times::default() },
            end: End::Complete,
            database: None,
            outgoing: None,
        }
    }

    fn lines(format: &str, mask: Option<Mask>) -> Lines {
        let format = Format::parse(format).unwrap();
        Lines { format, mask, except: Vec::new(), names: Arc::default(), worker: Arc::new(AtomicU32::new(2)) }
    }

    fn written(lines: Lines, outcome: &Outcome<'_>) -> String {
        let mut out = Vec::new();
        lines.with_line(outcome, |line| out.extend_from_slice(line));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn requests_of_some_paths_have_no_line() {
        let of = |path: &str| {
            let mut head = RequestHead::default();
            head.path_and_query = head.fields.adopt(path.as_bytes()).unwrap();
            let except = ["/healthz", "/assets/*", "*.css"].map(|pattern| pattern.parse().unwrap()).into();
            written(Lines { except, ..lines("$path", None) }, &outcome(&head))
        };
        for path in ["/healthz", "/healthz?full=1", "/./healthz", "/%68ealthz", "/assets/a/b.js", "/a/b.css"]
        {
            assert_eq!(of(path), "", "{path}");
        }
        assert_eq!((of("/health"), of("/a/assets/b")), ("/health\n".to_owned(), "/a/assets/b\n".to_owned()));
    }

    #[test]
    fn a_line_is_one_line_whatever_the_client_sent() {
        let line = line("default", None, "192.0.2.1:99", b"a\"b\x1b[31m\xff");
        assert!(line.starts_with("192.0.2.1 - - ["), "{line}");
        assert!(line.ends_with("\" 200 6 \"-\" \"a\\\"b\\x1b[31m\\xff\" 0.001500\n"), "{line}");
    }

    #[test]
    fn common_and_combined_are_what_the_tools_read() {
        let time = |line: &str| line.split_once(']').unwrap().1.to_owned();
        assert_eq!(time(&line("common", None, "[::1]:1", b"x")), " \"GET  HTTP/1.1\" 200 6\n");
        let combined = line("combined", None, "[::1]:1", b"x");
        assert!(combined.ends_with(" 200 6 \"-\" \"x\"\n"), "{combined}");
    }

    #[test]
    fn lines_of_text_write_the_version_of_http_2_with_a_dot() {
        let of = |format: &str| {
            let head = RequestHead { version: Version::Http2, ..RequestHead::default() };
            written(lines(format, None), &outcome(&head))
        };
        for format in ["common", "combined", "default", "times", "\"$request_method  $server_protocol\""] {
            let line = of(format);
            assert!(line.contains("\"GET  HTTP/2.0\""), "{line}");
        }
        assert!(of("json").contains("\"protocol\":\"HTTP/2\""));
    }

    #[test]
    fn json_is_json_whatever_the_client_sent() {
        let line = line("json", None, "192.0.2.1:99", b"q\"\\\n\x7f\xff \xe2\x82\xac \xf0\x9f\x98\x80");
        assert!(line.contains(r#""agent":"q\"\\\u000a\u007f\ufffd \u20ac \ud83d\ude00""#), "{line}");
        assert!(line.contains("\"status\":200,"), "{line}");
        let last = r#","db":0.000000,"db_statements":0,"outgoing":0.000000,"outgoing_calls":0,"outgoing_failed":0,"outgoing_slowest":""}"#;
        assert!(line.trim_end().ends_with(last), "{line}");
        assert!(line.is_ascii() && line.lines().count() == 1);
    }

    #[test]
    fn the_route_is_what_requests_have_in_common() {
        let mut head = RequestHead::default();
        head.path_and_query = head.fields.adopt(b"/user/17/a\"b?q=1").unwrap();
        let outcome = |(pool, route)| Outcome {
            head: &head,
            id: RequestId::Made(1),
            peer: "192.0.2.1:99".parse::<std::net::SocketAddr>().unwrap().into(),
            listener: 0,
            pool,
            route,
            told_route: "",
            status: Status::OK,
            body_bytes: 0,
            times: Times::default(),
            end: End::Complete,
            database: None,
            outgoing: None,
        };
        let handler = (Some(0), None);
        for (format, by, line) in [
            ("$worker", handler, "2\n"),
            ("$route", handler, "GET /user/*/a\\\"b\n"),
            ("{\"route\":\"$route\"}", handler, "{\"route\":\"GET /user/*/a\\\\\\\"b\"}\n"),
            ("$route", (None, Some("/static/*")), "/static/*\n"),
            ("$route", (Some(0), Some("GET /user/<name>")), "GET /user/<name>\n"),
            ("$route", (None, None), "-\n"),
        ] {
            assert_eq!(written(lines(format, None), &outcome(by)), line);
        }
    }

    #[test]
    fn the_session_of_a_request_by_tls_is_told() {
        let client = TlsClient { subject: "CN=\"till\",O=Shop".into(), ..TlsClient::default() };
        let session = TlsSession {
            version: "TLSv1.3",
            suite: "TLS_AES_128_GCM_SHA256",
            group: Some("X25519MLKEM768"),
            sni: Some("shop.example".into()),
            client: Some(client),
            ..TlsSession::default()
        };
        let mut head = RequestHead { tls: Some(Arc::new(session)), ..RequestHead::default() };
        let format = "$tls_protocol $tls_cipher $tls_group $tls_resumed $tls_sni $tls_client $tls_handshake";
        let times = Times { handshake: 1_234_567, ..Times::default() };
        let told = |head: &RequestHead, format: &str, times| {
            let outcome = Outcome {
                head,
                id: RequestId::Made(1),
                peer: "192.0.2.1:99".parse::<std::net::SocketAddr>().unwrap().into(),
                listener: 0,
                pool: None,
                route: None,
                told_route: "",
                status: Status::OK,
                body_bytes: 0,
                times,
                end: End::Complete,
                database: None,
                outgoing: None,
            };
            written(lines(format, None), &outcome)
        };
        assert_eq!(
            told(&head, format, times),
            "TLSv1.3 TLS_AES_128_GCM_SHA256 X25519MLKEM768 no shop.example CN=\\\"till\\\",O=Shop 0.001234\n"
        );
        let json = "{\"client\":\"$tls_client\",\"handshake\":$tls_handshake}";
        assert_eq!(
            told(&head, json, times),
            "{\"client\":\"CN=\\\"till\\\",O=Shop\",\"handshake\":0.001234}\n"
        );
        head.tls = None;
        assert_eq!(told(&head, format, Times::default()), "- - - - - - 0.000000\n", "without TLS");
        assert_eq!(told(&head, json, Times::default()), "{\"client\":\"\",\"handshake\":0.000000}\n");
    }

    #[test]
    fn a_short_line_says_what_took_the_time() {
        let mut head = RequestHead::default();
        head.target = head.fields.adopt(b"/a\x1b[2J?q=1").unwrap();
        let (database, outgoing) = (std::cell::Cell::new(None), std::cell::Cell::new(None));
        let told = |format: &str, status, times, end| {
            let outcome = Outcome {
                head: &head,
                id: RequestId::Made(1),
                peer: "192.0.2.1:99".parse::<std::net::SocketAddr>().unwrap().into(),
                listener: 0,
                pool: Some(0),
                route: None,
                told_route: "",
                status,
                body_bytes: 0,
                times,
                end,
                database: database.get(),
                outgoing: outgoing.get(),
            };
            let line = written(lines(format, None), &outcome);
            // The time of day, which is of now.
            let (clock, rest) = line.split_at(line.find(' ').unwrap());
            (clock.trim_start_matches("\x1b[2m").len(), rest.to_owned())
        };
        let quick = Times { arrived: 1, begun: 1, done: 1_500_001, written: 1_600_001, ..Times::default() };
        assert_eq!(
            told("short", Status::OK, quick, End::Complete),
            (8, " 200 GET /a\\x1b[2J?q=1  1.6 ms (run 1.5, write 0.1)\n".to_owned())
        );
        let slow = Times { begun: 100_000_001, done: 1_300_000_001, written: 0, ..quick };
        let (_, line) = told("short", Status::NOT_FOUND, slow, End::PeerGone);
        assert_eq!(
            line,
            " 404 GET /a\\x1b[2J?q=1  1300 ms (queue 100, run 1200) peer-gone\n         \
             slow: the application took 1200 of 1300 ms\n"
        );
        let (_, line) = told("short-color", Status::OK, quick, End::Complete);
        assert!(line.contains(" \x1b[32m200\x1b[0m GET "), "{line:?}");
        assert!(line.ends_with("\x1b[2m (run 1.5, write 0.1)\x1b[0m\n"), "{line:?}");
        database.set(Some(Database { statements: 4, nanos: 1_100_000_000 }));
        let (_, line) = told("short", Status::OK, slow, End::Complete);
        assert_eq!(
            line,
            " 200 GET /a\\x1b[2J?q=1  1300 ms (queue 100, run 1200, db 1100 (4))\n         \
             slow: the application took 1200 of 1300 ms, 1100 of them in the database (4 statements)\n"
        );
        let (_, line) = told("x $db_statements $db", Status::OK, slow, End::Complete);
        assert_eq!(line, " 4 1.100000\n");
        database.set(None);
        outgoing.set(Some(Outgoing {
            calls: 2,
            failed: 1,
            nanos: 1_100_000_000,
            slowest: "https://api.example:443",
            slowest_nanos: 1_000_000_000,
            slowest_part: "first byte",
        }));
        let (_, line) = told("short", Status::OK, slow, End::Complete);
        assert_eq!(
            line,
            " 200 GET /a\\x1b[2J?q=1  1300 ms (queue 100, run 1200, calls 1100 (2))\n         \
             slow: the application took 1200 of 1300 ms, 1100 of them in 2 calls, most in one to \
             https://api.example:443 (first byte: 1000)\n"
        );
        let variables =
            "x $outgoing $outgoing_calls $outgoing_failed $outgoing_slowest $outgoing_slowest_time";
        let (_, line) = told(variables, Status::OK, slow, End::Complete);
        assert_eq!(line, " 1.100000 2 1 https://api.example:443 1.000000\n");
        outgoing.set(None);
        let (_, line) = told(variables, Status::OK, slow, End::Complete);
        assert_eq!(line, " 0.000000 0 0 - 0.000000\n");
        let mut own = RequestHead::default();
        own.target = own.fields.adopt(b"/shop/.maitred/version").unwrap();
        let outcome = Outcome {
            head: &own,
            id: RequestId::Made(1),
            peer: "192.0.2.1:99".parse::<std::net::SocketAddr>().unwrap().into(),
            listener: 0,
            pool: Some(0),
            route: None,
            told_route: "",
            status: Status::OK,
            body_bytes: 0,
            times: quick,
            end: End::Complete,
            database: None,
            outgoing: None,
        };
        assert_eq!(written(lines("short", None), &outcome), "");
        assert_ne!(written(lines("common", None), &outcome), "");
    }

    #[test]
    fn addresses_are_masked() {
        let mask = Some(Mask::default());
        assert_eq!(line("$remote_addr", mask, "192.0.2.77:99", b""), "192.0.2.0\n");
        assert_eq!(line("$remote_addr", mask, "[2001:db8:1:2:3::4]:99", b""), "2001:db8:1::\n");
        assert_eq!(line("$remote_addr", mask, "[::ffff:192.0.2.77]:99", b""), "192.0.2.0\n");
    }

    #[test]
    fn the_times_tell_when_it_began() {
        let line = line("$start $start_iso $run $total", None, "192.0.2.1:99", b"");
        let parts: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(parts[0].split_once('.').unwrap().1.len(), 6);
        assert!(parts[0].parse::<f64>().unwrap() > 0.0);
        assert!(parts[1].ends_with('Z'));
        assert_eq!(parts[2..], ["0.001500", "0.001500"]);
    }
}
