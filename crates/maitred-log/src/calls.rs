//! The client log: a line for each call to another server.
//!
//! ```text
//! 2026-11-29T14:03:11.123456Z id=6a1f-1 server=https://api.example:443 status=200 end=complete reused=yes retried=no slot=0.000012 \
//! resolve=- connect=- tls=- first_byte=0.012300 total=0.015000 sent=123 received=4567
//! ```
//! Times are seconds; a hyphen stands for a part that did not occur. Leaves out: paths and fields of requests, which may have secrets.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::line_writer::{LineWriter, Options, Target};

use crate::escape::push_escaped;
use crate::format::Escape;
use crate::number::{push_decimal, push_seconds};
use crate::wall_time::write_iso_time;

/// How long lines wait for others.
const LINGER: Duration = Duration::from_millis(5);

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct CallLine<'a> {
    /// The id of the request that the call belongs to.
    pub id: Option<&'a str>,
    /// The server.
    pub server: &'a str,
    /// The status of the response.
    pub status: Option<u16>,
    /// The end: `complete`, `dropped`, `timeout`, or the name of a failure.
    pub end: &'a str,
    /// The phase of a time-out.
    pub phase: Option<&'a str>,
    /// The connection had served another call.
    pub reused: bool,
    /// The request was sent twice.
    pub retried: bool,
    /// The parts with their names, in their order.
    pub parts: &'a [(&'static str, Option<Duration>)],
    /// The whole call.
    pub total: Duration,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

pub(crate) struct ClientLog(pub(crate) LineWriter);

thread_local! {
    static LINE: RefCell<(String, Vec<u8>)> = RefCell::default();
}

impl ClientLog {
    pub(crate) fn open(target: Target, capacity: usize, options: Options) -> io::Result<Self> {
        let writer = LineWriter::open_with(target, capacity, options)?;
        writer.set_linger(LINGER);
        Ok(Self(writer))
    }

    pub(crate) fn write(&self, call: &CallLine<'_>) {
        // A thread that ends has no buffer any more, and its line is lost.
        let _ = LINE.try_with(|buffers| {
            let (time, line) = &mut *buffers.borrow_mut();
            time.clear();
            write_iso_time(time, clock::unix_micros());
            line.clear();
            line.extend_from_slice(time.as_bytes());
            push(line, call);
            self.0.write(line);
        });
    }
}

fn push(out: &mut Vec<u8>, call: &CallLine<'_>) {
    out.extend_from_slice(b" id=");
    push_word(out, call.id.unwrap_or("-"));
    out.extend_from_slice(b" server=");
    push_word(out, call.server);
    out.extend_from_slice(b" status=");
    match call.status {
        Some(status) => push_decimal(out, status.into()),
        None => out.push(b'-'),
    }
    out.extend_from_slice(b" end=");
    push_word(out, call.end);
    if let Some(phase) = call.phase {
        out.push(b':');
        push_word(out, phase);
    }
    for (name, is) in [(" reused=", call.reused), (" retried=", call.retried)] {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(if is { b"yes" } else { b"no" });
    }
    for (name, time) in call.parts.iter().copied().chain([("total", Some(call.total))]) {
        out.push(b' ');
        out.extend(name.bytes().map(|byte| if byte == b' ' { b'_' } else { byte }));
        out.push(b'=');
        match time {
            Some(time) => push_seconds(out, u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            None => out.push(b'-'),
        }
    }
    out.extend_from_slice(b" sent=");
    push_decimal(out, call.sent);
    out.extend_from_slice(b" received=");
    push_decimal(out, call.received);
    out.push(b'\n');
}

/// A text without a space, so that words of a line stay words.
fn push_word(out: &mut Vec<u8>, text: &str) {
    let begin = out.len();
    push_escaped(out, text.as_bytes(), Escape::Text);
    for byte in out.iter_mut().skip(begin).filter(|byte| **byte == b' ') {
        *byte = b'-';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    const CALL: CallLine<'_> = CallLine {
        id: Some("6a1f-1"),
        server: "https://api.example:443",
        status: Some(200),
        end: "complete",
        phase: None,
        reused: true,
        retried: false,
        parts: &[
            ("slot", Some(Duration::from_micros(12))),
            ("connect", None),
            ("first byte", Some(Duration::from_millis(1234))),
        ],
        total: Duration::from_millis(1500),
        sent: 123,
        received: 4567,
    };

    fn line(call: &CallLine<'_>) -> String {
        let mut out = Vec::new();
        push(&mut out, call);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_call_is_one_line_of_words() {
        assert_eq!(
            line(&CALL),
            " id=6a1f-1 server=https://api.example:443 status=200 end=complete reused=yes retried=no slot=0.000012 connect=- \
             first_byte=1.234000 total=1.500000 sent=123 received=4567\n"
        );
        let lost = CallLine { id: None, status: None, end: "timeout", phase: Some("first byte"), ..CALL };
        assert!(
            line(&lost).starts_with(" id=- server=https://api.example:443 status=- end=timeout:first-byte ")
        );
        let odd = line(&CallLine { server: "http+unix:///run/a b\nc\u{1b}", ..CALL });
        assert!(odd.contains(" server=http+unix:///run/a-b\\x0ac\\x1b status"), "{odd}");
        assert_eq!(odd.lines().count(), 1);
    }

    #[test]
    fn lines_reach_their_file_and_go_on_in_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("client.log");
        let log = crate::Log::open(Level::Error, Target::Stderr, None).unwrap();
        assert!(!log.writes_calls());
        log.call(&CALL);
        let log = log.with_calls(Target::Path(path.clone())).unwrap();
        assert!(log.writes_calls());
        log.call(&CALL);
        log.flush(Duration::from_secs(20));
        std::fs::rename(&path, folder.path().join("old.log")).unwrap();
        log.reopen();
        log.call(&CallLine { status: Some(503), ..CALL });
        log.finish(Duration::from_secs(20));
        let [old, new] =
            ["old.log", "client.log"].map(|name| std::fs::read_to_string(folder.path().join(name)).unwrap());
        assert!(old.lines().count() == 1 && old.contains(" status=200 "), "{old}");
        assert!(new.lines().count() == 1 && new.contains(" status=503 "), "{new}");
        assert_eq!(new.split(' ').next().map(str::len), Some("2026-11-29T14:03:11.123456Z".len()));
        assert_eq!(log.dropped_calls(), Some(0));
    }
}
