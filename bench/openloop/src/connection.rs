//! One keep-alive connection with at most one request on its way.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// An answer's head must fit; a longer one is a failed request.
const MAX_HEAD: usize = 16 * 1024;

/// What an answer turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) length: usize,
    /// The server will close the connection.
    pub(crate) closes: bool,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    /// Index of the request whose answer is awaited.
    pub(crate) waiting_for: Option<usize>,
    received: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, waiting_for: None, received: Vec::new() })
    }

    pub(crate) fn send(&mut self, index: usize, request: &[u8]) -> io::Result<()> {
        // A request of some kilobytes always fits the empty socket buffer of an idle connection.
        self.stream.write_all(request)?;
        self.waiting_for = Some(index);
        Ok(())
    }

    /// Reads what there is; the whole answer if it is there. An error means the connection is of no more use.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Answer>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    self.received.extend_from_slice(buffer.get(..length).unwrap_or_default());
                    if let Some(answer) = self.take_answer()? {
                        return Ok(Some(answer));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take_answer(&mut self) -> io::Result<Option<Answer>> {
        let Some((answer, head)) = parse(&self.received)? else { return Ok(None) };
        let end = head + answer.length;
        if self.received.len() > end || (self.received.len() == end && self.waiting_for.is_none()) {
            return Err(io::Error::new(ErrorKind::InvalidData, "bytes that nobody asked for"));
        }
        if self.received.len() < end {
            return Ok(None);
        }
        self.received.clear();
        Ok(Some(answer))
    }
}

/// The answer's head and its size, once it is complete.
pub(crate) fn parse(bytes: &[u8]) -> io::Result<Option<(Answer, usize)>> {
    let wrong = |what| io::Error::new(ErrorKind::InvalidData, what);
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if bytes.len() > MAX_HEAD { Err(wrong("head too long")) } else { Ok(None) };
    };
    let head =
        std::str::from_utf8(bytes.get(..end).unwrap_or_default()).map_err(|_| wrong("head is not text"))?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let mut answer =
        Answer { status: status.ok_or_else(|| wrong("no HTTP/1.1 status"))?, length: 0, closes: false };
    let mut framed = false;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            answer.length = value.trim().parse().map_err(|_| wrong("bad Content-Length"))?;
            framed = true;
        } else if name.eq_ignore_ascii_case("connection") {
            answer.closes = value.trim().eq_ignore_ascii_case("close");
        }
    }
    if framed { Ok(Some((answer, end + 4))) } else { Err(wrong("no Content-Length")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_found_at_any_split() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 6\r\nConnection: Close\r\n\r\nhello\n";
        let expected = Answer { status: 200, length: 6, closes: true };
        let head = bytes.len() - 6;
        for split in 0..head {
            assert_eq!(
                parse(bytes.get(..split).expect("a part")).expect("no error"),
                None,
                "split at {split}"
            );
        }
        assert_eq!(parse(bytes).expect("no error"), Some((expected, head)));
    }

    #[test]
    fn an_answer_without_framing_is_an_error() {
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(parse(b"SMTP ready\r\n\r\n").is_err());
        assert!(parse(&[b'a'; MAX_HEAD + 1]).is_err());
    }
}
