//! One client: its connection, its session, and where it is in an answer.  What it sends is short and always fits into the socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

/// The head of an answer is shorter.
const HEAD: usize = 4096;

/// What all clients do.
pub(crate) struct Work {
    pub(crate) address: SocketAddr,
    /// One for each client, with the tickets that it has.
    pub(crate) configs: Vec<Arc<ClientConfig>>,
    pub(crate) request: Vec<u8>,
    /// Of an answer's body.
    pub(crate) length: usize,
    /// A client asks on and on over one connection; otherwise once, and the server is to close the connection.
    pub(crate) is_kept: bool,
}

pub(crate) enum Fault {
    /// The answer is another one than it should be.
    Wrong(String),
    /// The connection cannot be used any more.
    Broken(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// What came out of one turn.
#[derive(Default)]
pub(crate) struct Moved {
    pub(crate) answered: u64,
    /// Of bodies.
    pub(crate) bytes: u64,
    pub(crate) handshake: Option<Agreed>,
    /// Another connection is to be opened.
    pub(crate) ended: bool,
}

pub(crate) struct Agreed {
    pub(crate) resumed: bool,
    /// Lines: suite and group.
    pub(crate) agreed: String,
}

/// What is to come of a body.
#[derive(Clone, Copy)]
enum Left {
    Bytes(usize),
    /// In chunks (RFC 9112 §7.1): what has come, and its last bytes. Nothing follows an answer, so they show its end.
    Chunks(usize, [u8; LAST.len()]),
}

/// The end of the last chunk but one, and the last one.
const LAST: &[u8; 7] = b"\r\n0\r\n\r\n";

impl Left {
    /// Takes these bytes, and says whether it is complete.
    fn take(&mut self, bytes: &[u8], length: usize) -> Result<bool, Fault> {
        match self {
            Self::Bytes(left) => match left.checked_sub(bytes.len()) {
                Some(rest) => {
                    *left = rest;
                    Ok(rest == 0)
                }
                None => Err(Fault::Wrong("more than was asked for".into())),
            },
            Self::Chunks(total, last) => {
                *total += bytes.len();
                let news = &bytes[bytes.len().saturating_sub(LAST.len())..];
                last.rotate_left(news.len() % LAST.len());
                let at = LAST.len() - news.len();
                last[at..].copy_from_slice(news);
                let ends = last == LAST;
                if ends && *total < length {
                    return Err(Fault::Wrong("less than was asked for".into()));
                }
                Ok(ends)
            }
        }
    }
}

/// What all clients receive into, and open to.
pub(crate) struct Buffers {
    sealed: Vec<u8>,
    plain: Vec<u8>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { sealed: vec![0; 128 << 10], plain: vec![0; 32 << 10] }
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    session: ClientConnection,
    is_open: bool,
    /// The answer's head so far; empty while the body comes.
    head: Vec<u8>,
    /// What is left of the body; none while the head comes.
    left: Option<Left>,
    /// The answer is complete, and the connection is to be closed by the server.
    closes: bool,
}

impl Client {
    pub(crate) fn open(work: &Work, place: usize) -> io::Result<Self> {
        let stream = TcpStream::connect(work.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let session =
            ClientConnection::new(Arc::clone(&work.configs[place]), name).map_err(io::Error::other)?;
        let mut client =
            Self { stream, session, is_open: false, head: Vec::new(), left: None, closes: false };
        client.send()?;
        Ok(client)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads once what has come, and does what is to be done about it.
    pub(crate) fn go_on(&mut self, work: &Work, buffers: &mut Buffers) -> Result<Moved, Fault> {
        let mut moved = Moved::default();
        let count = match self.stream.read(&mut buffers.sealed) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(moved);
            }
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            if !self.closes {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            moved.ended = true;
            return Ok(moved);
        }
        self.take(&buffers.sealed[..count], &mut buffers.plain, work, &mut moved)?;
        self.send()?;
        Ok(moved)
    }

    fn take(
        &mut self,
        mut bytes: &[u8],
        plain: &mut [u8],
        work: &Work,
        moved: &mut Moved,
    ) -> Result<(), Fault> {
        while !bytes.is_empty() {
            self.session.read_tls(&mut bytes)?;
            let state = self.session.process_new_packets().map_err(io::Error::other)?;
            if !self.is_open && !self.session.is_handshaking() {
                self.is_open = true;
                moved.handshake = Some(self.agreed());
                self.session.writer().write_all(&work.request)?;
            }
            if state.plaintext_bytes_to_read() > 0 {
                self.read(plain, work, moved)?;
            }
        }
        Ok(())
    }

    /// Reads plaintext, and asks again behind an answer that is complete.
    fn read(&mut self, plain: &mut [u8], work: &Work, moved: &mut Moved) -> Result<(), Fault> {
        loop {
            let count = match self.session.reader().read(plain) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut body = &plain[..count];
            let mut left = match self.left {
                Some(left) => left,
                None => {
                    let before = self.head.len();
                    self.head.extend_from_slice(body);
                    let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
                        if self.head.len() > HEAD {
                            return Err(Fault::Wrong("the head is too long".into()));
                        }
                        continue;
                    };
                    let left = body_of(&self.head[..end], work.length)?;
                    body = &body[end + 4 - before..];
                    self.head.clear();
                    left
                }
            };
            let ends = left.take(body, work.length)?;
            moved.bytes += body.len() as u64;
            self.left = Some(left);
            if ends {
                self.left = None;
                moved.answered += 1;
                if work.is_kept {
                    self.session.writer().write_all(&work.request)?;
                } else {
                    self.closes = true;
                }
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.stream)?;
        }
        Ok(())
    }

    fn agreed(&self) -> Agreed {
        let suite = self.session.negotiated_cipher_suite();
        let group = self.session.negotiated_key_exchange_group();
        Agreed {
            resumed: self.session.handshake_kind() == Some(HandshakeKind::Resumed),
            agreed: format!(
                "suite {}\ngroup {}\n",
                suite.and_then(|suite| suite.suite().as_str()).unwrap_or("none"),
                group.map_or_else(|| "none".to_owned(), |group| format!("{:?}", group.name()))
            ),
        }
    }
}

/// What comes behind this head, which has to be that of an answer of this length.
fn body_of(head: &[u8], length: usize) -> Result<Left, Fault> {
    let wrong = |what: &str| {
        let head = String::from_utf8_lossy(head);
        Err(Fault::Wrong(format!("{what}: {}", head.lines().next().unwrap_or_default())))
    };
    if !head.starts_with(b"HTTP/1.1 200") {
        return wrong("not answered right");
    }
    let field = |name: &[u8]| {
        let at = head.windows(name.len()).position(|field| field.eq_ignore_ascii_case(name))?;
        head[at + name.len()..].split(|byte| *byte == b'\r').next()
    };
    match field(b"\r\ncontent-length: ") {
        Some(value) if value == length.to_string().as_bytes() => Ok(Left::Bytes(length)),
        Some(_) => wrong("another length"),
        None if field(b"\r\ntransfer-encoding: ") == Some(b"chunked") => Ok(Left::Chunks(0, [0; LAST.len()])),
        None => wrong("no length"),
    }
}
