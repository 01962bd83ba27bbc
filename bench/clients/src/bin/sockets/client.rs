//! One client: its opening handshake, and where it is in sending a message and in its answer. It has one message on its way at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use flate2::{Decompress, FlushDecompress, Status};

use super::Result;
use super::frames::{self, Event, Incoming, Message};

/// The example key of RFC 6455 §1.3, and the `Sec-WebSocket-Accept` that answers it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The head of the answer is shorter.
const HEAD: usize = 4096;

/// What is cut from the end of a compressed message (RFC 7692 §7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// The window that the messages are compressed with, as a power of two.
const WINDOW_BITS: u32 = 12;

/// What all clients do.
pub(crate) struct Work {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) messages: Vec<Sent>,
    /// Messages are compressed, and answers may be.
    pub(crate) deflates: bool,
}

/// A message that is to come back.
pub(crate) struct Sent {
    pub(crate) text: Vec<u8>,
    pub(crate) frame: Vec<u8>,
}

impl Work {
    fn request(&self) -> String {
        // What browsers offer.
        let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
        format!(
            "GET {} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n{}\r\n",
            self.path,
            if self.deflates { offer } else { "" }
        )
    }
}

/// What came out of one turn.
#[derive(Default)]
pub(crate) struct Moved {
    pub(crate) answered: u64,
    /// Of the answers' payload, as it came.
    pub(crate) bytes: u64,
    pub(crate) compressed: u64,
}

pub(crate) struct Client {
    stream: TcpStream,
    /// The head of the handshake's answer; nothing behind it.
    head: Option<Vec<u8>>,
    incoming: Incoming,
    /// Which message is on its way or was the last, and how much of its frame is sent.
    message: usize,
    sent: usize,
    /// No answer is awaited.
    idle: bool,
    /// Pongs, for behind that frame.
    control: Vec<u8>,
}

impl Client {
    /// Connects and makes the handshake, sends the first message, and compares the message that comes back.
    pub(crate) fn open(work: &Work, place: usize) -> Result<Self> {
        let mut stream = TcpStream::connect(work.address)?;
        stream.set_nodelay(true)?;
        stream.write_all(work.request().as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            head: Some(Vec::new()),
            incoming: Incoming::keeping(),
            message: place % work.messages.len(),
            sent: 0,
            idle: false,
            control: Vec::new(),
        })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends the next message; its answer is only counted.
    pub(crate) fn ask(&mut self, work: &Work) -> Result<()> {
        self.incoming.keeps = false;
        self.message = (self.message + 1) % work.messages.len();
        (self.sent, self.idle) = (0, false);
        self.send(work)
    }

    /// Sends what the socket takes, and reads what has come.
    pub(crate) fn go_on(&mut self, work: &Work, buffer: &mut [u8]) -> Result<Moved> {
        let mut moved = Moved::default();
        if self.head.is_none() {
            self.send(work)?;
        }
        // Events are edges: whatever filled the buffer may have more behind it.
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err("the server has ended a connection".into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(moved),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("a connection: {error}").into()),
            };
            self.take(&buffer[..count], work, &mut moved)?;
            if count < buffer.len() {
                return Ok(moved);
            }
        }
    }

    fn send(&mut self, work: &Work) -> Result<()> {
        let frame = &work.messages[self.message].frame;
        while self.sent < frame.len() {
            match self.stream.write(&frame[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) => return full(error),
            }
        }
        while !self.control.is_empty() {
            match self.stream.write(&self.control) {
                Ok(count) => drop(self.control.drain(..count)),
                Err(error) => return full(error),
            }
        }
        Ok(())
    }

    fn take(&mut self, mut bytes: &[u8], work: &Work, moved: &mut Moved) -> Result<()> {
        if let Some(head) = &mut self.head {
            let before = head.len();
            head.extend_from_slice(bytes);
            let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else {
                return if head.len() > HEAD { Err("the head is too long".into()) } else { Ok(()) };
            };
            check_head(&String::from_utf8_lossy(&head[..end]), work.deflates)?;
            bytes = &bytes[end + 4 - before..];
            self.head = None;
            self.send(work)?;
        }
        while let Some(event) = self.incoming.next(&mut bytes)? {
            match event {
                Event::Message(message) => self.end_message(&message, work, moved)?,
                Event::Ping(payload) => {
                    self.control.extend(frames::masked(frames::PONG, &payload));
                    self.send(work)?;
                }
                Event::Close(code) => return Err(format!("the server has closed with {code:?}").into()),
            }
        }
        Ok(())
    }

    fn end_message(&mut self, message: &Message, work: &Work, moved: &mut Moved) -> Result<()> {
        let text = &work.messages[self.message].text;
        if self.idle {
            return Err("an answer to nothing".into());
        }
        if message.compressed && !work.deflates {
            return Err("a compressed answer where none was offered".into());
        }
        if !message.compressed && message.length != text.len() as u64 {
            return Err(format!("an answer of {} bytes, not {}", message.length, text.len()).into());
        }
        if self.incoming.keeps && *text != opened(message, text.len())? {
            return Err("the answer is another text".into());
        }
        self.idle = true;
        moved.answered += 1;
        moved.bytes += message.length;
        moved.compressed += u64::from(message.compressed);
        Ok(())
    }
}

fn full(error: io::Error) -> Result<()> {
    match error.kind() {
        ErrorKind::WouldBlock => Ok(()),
        _ => Err(format!("a connection: {error}").into()),
    }
}

/// Whether this head opens a WebSocket, and agrees on what was offered.
fn check_head(head: &str, deflates: bool) -> Result<()> {
    let field = |wanted: &str| {
        let fields = head.lines().filter_map(|line| line.split_once(':'));
        let mut values = fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        values.next().map_or("", |(_, value)| value.trim())
    };
    if !head.starts_with("HTTP/1.1 101") || field("sec-websocket-accept") != ACCEPT {
        return Err(format!("not a WebSocket: {}", head.lines().next().unwrap_or_default()).into());
    }
    let mut extension = field("sec-websocket-extensions").split(';').map(str::trim);
    match (deflates, extension.next()) {
        (false, None | Some("")) => return Ok(()),
        (true, Some("permessage-deflate")) => {}
        (true, None | Some("")) => return Err("it agrees on no permessage-deflate".into()),
        (_, Some(name)) => return Err(format!("it agrees on {name}").into()),
    }
    let bits = extension.find_map(|parameter| parameter.strip_prefix("client_max_window_bits="));
    match bits.map(|bits| bits.trim_matches('"').parse::<u32>()) {
        None => Ok(()),
        Some(Ok(WINDOW_BITS..)) => Ok(()),
        Some(_) => Err("it wants a smaller window than the messages are compressed with".into()),
    }
}

/// What the message says. No message has come before it on its connection, so that it refers to none.
fn opened(message: &Message, length: usize) -> Result<Vec<u8>> {
    if !message.compressed {
        return Ok(message.payload.clone());
    }
    let sealed = [&message.payload[..], &TAIL].concat();
    // One byte more than it may have shows one that is too long.
    let mut text = Vec::with_capacity(length + 1);
    match Decompress::new(false).decompress_vec(&sealed, &mut text, FlushDecompress::Sync)? {
        Status::Ok | Status::StreamEnd => Ok(text),
        Status::BufError => Err("a compressed answer that cannot be opened".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};

    fn head(status: &str, extension: &str) -> String {
        let upgrade = "upgrade: websocket\r\nConnection: Upgrade";
        format!("HTTP/1.1 {status}\r\n{upgrade}\r\nSEC-WebSocket-Accept: {ACCEPT}\r\n{extension}")
    }

    #[test]
    fn what_is_agreed_on_is_what_was_offered() {
        let deflate = "Sec-WebSocket-Extensions: permessage-deflate";
        let bits = |bits: &str| format!("{deflate}; server_max_window_bits=9; client_max_window_bits={bits}");
        for (head, deflates, is_right) in [
            (head("101 Switching Protocols", ""), false, true),
            (head("200 OK", ""), false, false),
            (head("101 A", "").replace(ACCEPT, "s3"), false, false),
            (head("101 A", ""), true, false),
            (head("101 A", deflate), false, false),
            (head("101 A", deflate), true, true),
            (head("101 A", &bits("12")), true, true),
            (head("101 A", &bits("\"15\"")), true, true),
            (head("101 A", &bits("11")), true, false),
        ] {
            assert_eq!(check_head(&head, deflates).is_ok(), is_right, "{head}, {deflates}");
        }
    }

    #[test]
    fn a_compressed_message_is_opened_and_one_that_is_longer_is_another_one() {
        let text = b"{\"name\": \"a text\", \"again\": \"a text, again and again and again\"}";
        let mut sealed = Vec::with_capacity(1000);
        let mut compress = Compress::new(Compression::default(), false);
        compress.compress_vec(text, &mut sealed, FlushCompress::Sync).expect("room");
        let payload = sealed.strip_suffix(&TAIL).expect("a flush").to_vec();
        assert!(payload.len() < text.len());
        let message = Message { length: payload.len() as u64, compressed: true, payload };
        assert_eq!(opened(&message, text.len()).expect("a text"), text);
        assert_ne!(opened(&message, text.len() - 5).unwrap_or_default(), &text[..text.len() - 5]);
    }
}
