//! Wire scripts: the client's bytes and the expected ones of the server, as text.
//!
//! ```text
//! # a comment
//! > GET / HTTP/1.1        the client sends this line and CRLF
//! > Host: a
//! >
//! >> raw\x00bytes         the client sends this without a line end
//! < HTTP/1.1 200 OK       exactly this line and CRLF must come back
//! <
//! << body                 exactly this must come back, without a line end
//! = open                  nothing more came back and the connection is open
//! = closed                nothing more came back and the connection was closed
//! ```
//! `\r`, `\n`, `\t`, `\0`, `\\` and `\xHH` stand for bytes. Leading white space of a line is ignored.

use std::fmt::Write;

/// The other side of a script: a server without a network.
pub trait Peer {
    /// Takes bytes from the client.
    fn handle_input(&mut self, bytes: &[u8]);

    /// Returns the bytes for the client, and forgets them.
    fn poll_transmit(&mut self) -> Vec<u8>;

    /// Whether the connection was closed from this side.
    fn is_closed(&self) -> bool;
}

/// A parsed wire script.
#[derive(Debug)]
pub struct Script {
    steps: Vec<(usize, Step)>,
}

#[derive(Debug)]
enum Step {
    Send(Vec<u8>),
    Expect(Vec<u8>),
    Closed(bool),
}

impl Script {
    /// Reads a script.
    ///
    /// # Panics
    /// When a line has no known form.
    pub fn parse(text: &str) -> Self {
        let mut steps: Vec<(usize, Step)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let step = parse_line(line).unwrap_or_else(|| panic!("line {}: {line:?}", index + 1));
            match (steps.last_mut(), step) {
                (Some((_, Step::Send(all))), Step::Send(more)) => all.extend(more),
                (Some((_, Step::Expect(all))), Step::Expect(more)) => all.extend(more),
                (_, step) => steps.push((index + 1, step)),
            }
        }
        Self { steps }
    }

    /// All bytes the client sends.
    pub fn client_bytes(&self) -> Vec<u8> {
        let sent = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Send(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        sent.collect::<Vec<_>>().concat()
    }

    /// Plays the script, the client's bytes cut into pieces of at most `piece` bytes.
    ///
    /// # Panics
    /// When the bytes that come back differ from the script.
    pub fn play(&self, peer: &mut dyn Peer, piece: usize) {
        let mut received = Vec::new();
        for (line, step) in &self.steps {
            match step {
                Step::Send(bytes) => {
                    check(*line, piece, b"", &received);
                    bytes.chunks(piece.max(1)).for_each(|bytes| peer.handle_input(bytes));
                    received.extend(peer.poll_transmit());
                }
                Step::Expect(expected) => {
                    received.extend(peer.poll_transmit());
                    check(*line, piece, expected, &received);
                    received.clear();
                }
                Step::Closed(expected) => {
                    received.extend(peer.poll_transmit());
                    check(*line, piece, b"", &received);
                    assert_eq!(peer.is_closed(), *expected, "line {line}: closed, pieces of {piece} bytes");
                }
            }
        }
        check(self.steps.len(), piece, b"", &received);
    }
}

fn check(line: usize, piece: usize, expected: &[u8], received: &[u8]) {
    if expected != received {
        let mut report = String::new();
        for (title, bytes) in [("expected", expected), ("received", received)] {
            let _ = write!(report, "\n{title}:\n");
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                let _ = writeln!(report, "    {}", part.escape_ascii());
            }
        }
        panic!("line {line}, pieces of {piece} bytes:{report}");
    }
}

fn parse_line(line: &str) -> Option<Step> {
    let (mark, rest) = line.split_at(line.find(' ').unwrap_or(line.len()));
    let text = rest.strip_prefix(' ').unwrap_or(rest);
    let ended = |text| {
        let mut bytes = unescape(text)?;
        bytes.extend_from_slice(b"\r\n");
        Some(bytes)
    };
    match mark {
        ">" => ended(text).map(Step::Send),
        ">>" => unescape(text).map(Step::Send),
        "<" => ended(text).map(Step::Expect),
        "<<" => unescape(text).map(Step::Expect),
        "=" if text == "closed" => Some(Step::Closed(true)),
        "=" if text == "open" => Some(Step::Closed(false)),
        _ => None,
    }
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, behind)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (byte, length) = match behind.as_bytes().first()? {
            b'r' => (b'\r', 1),
            b'n' => (b'\n', 1),
            b't' => (b'\t', 1),
            b'0' => (0, 1),
            b'\\' => (b'\\', 1),
            b'x' => (u8::from_str_radix(behind.get(1..3)?, 16).ok()?, 3),
            _ => return None,
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends every line back and closes at a line that says so.
    #[derive(Default)]
    struct Echo {
        held: Vec<u8>,
        out: Vec<u8>,
        closed: bool,
    }

    impl Peer for Echo {
        fn handle_input(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.held.push(*byte);
                if *byte == b'\n' {
                    self.closed |= self.held == b"close\r\n";
                    self.out.append(&mut self.held);
                }
            }
        }

        fn poll_transmit(&mut self) -> Vec<u8> {
            std::mem::take(&mut self.out)
        }

        fn is_closed(&self) -> bool {
            self.closed
        }
    }

    const SCRIPT: &str = r"
        # two lines, the second in two parts
        > one
        >> t\x77o\\
        < one
        = open
        >> \r\n
        << two\\\r\n
        > close
        < close
        = closed
    ";

    #[test]
    fn a_script_passes_when_the_peer_follows_it() {
        for piece in [1, 2, 3, 100] {
            Script::parse(SCRIPT).play(&mut Echo::default(), piece);
        }
        assert_eq!(Script::parse(SCRIPT).client_bytes(), b"one\r\ntwo\\\r\nclose\r\n");
    }

    #[test]
    #[should_panic(expected = "line 3")]
    fn another_answer_fails() {
        Script::parse("\n> a\n< b\n").play(&mut Echo::default(), 100);
    }

    #[test]
    #[should_panic(expected = "received:\n    a\\r\\n")]
    fn an_answer_without_a_request_fails() {
        Script::parse("> a\n").play(&mut Echo::default(), 100);
    }

    #[test]
    #[should_panic(expected = "closed")]
    fn a_connection_that_stays_open_fails() {
        Script::parse("> a\n< a\n= closed\n").play(&mut Echo::default(), 100);
    }

    #[test]
    #[should_panic(expected = "line 1")]
    fn an_unknown_line_fails() {
        Script::parse("GET / HTTP/1.1");
    }
}
