//! Frames (RFC 6455 §5.2). What is sent is one frame for each message, masked with one key. Of what comes only lengths are counted: the
//! payload is kept of control frames, and of messages that are to be compared.

/// A server has to unmask with any.
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// First bytes of frames: the whole message in one, as text; the same compressed (RFC 7692 §6).
pub(crate) const TEXT: u8 = 0x81;
pub(crate) const COMPRESSED_TEXT: u8 = 0xc1;
pub(crate) const PONG: u8 = 0x8a;

const FIN: u8 = 0x80;
const COMPRESSED: u8 = 0x40;
/// Reserved bits that no extension here uses.
const RESERVED: u8 = 0x30;
const MASK: u8 = 0x80;

/// A frame with this first byte.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len();
    let mut frame = vec![first];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..126), _) => frame.push(MASK | short),
        (_, Ok(medium)) => {
            frame.push(MASK | 126);
            frame.extend(medium.to_be_bytes());
        }
        _ => {
            frame.push(MASK | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend(KEY);
    frame.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message(Message),
    /// With its payload.
    Ping(Vec<u8>),
    /// With its code, if it has one.
    Close(Option<u16>),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// Of its frames' payload.
    pub(crate) length: u64,
    pub(crate) compressed: bool,
    /// Empty unless messages are kept.
    pub(crate) payload: Vec<u8>,
}

/// The server's side of a connection.
#[derive(Default)]
pub(crate) struct Incoming {
    /// Messages are kept.
    pub(crate) keeps: bool,
    head: [u8; 10],
    /// So many bytes of the head are there.
    have: usize,
    /// So much of the frame's payload is to come; none while its head comes.
    left: Option<u64>,
    control: Vec<u8>,
    /// The message whose frames come.
    message: Option<Message>,
}

impl Incoming {
    pub(crate) fn keeping() -> Self {
        Self { keeps: true, ..Self::default() }
    }

    /// Takes bytes up to the end of the next message or control frame; nothing if that has not come yet.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, String> {
        loop {
            let Some(left) = self.left else {
                if !self.take_head(bytes)? {
                    return Ok(None);
                }
                continue;
            };
            let count = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            let (part, rest) = bytes.split_at(count);
            *bytes = rest;
            self.take_payload(part);
            let left = left - count as u64;
            if left > 0 {
                self.left = Some(left);
                return Ok(None);
            }
            (self.left, self.have) = (None, 0);
            if let Some(event) = self.end_frame() {
                return Ok(Some(event));
            }
        }
    }

    /// Whether the head is complete.
    fn take_head(&mut self, bytes: &mut &[u8]) -> Result<bool, String> {
        loop {
            let length = match (self.have, self.head[1]) {
                (0 | 1, _) => 2,
                (_, 126) => 4,
                (_, 127) => 10,
                _ => 2,
            };
            if self.have == length {
                break;
            }
            let Some((byte, rest)) = bytes.split_first() else { return Ok(false) };
            self.head[self.have] = *byte;
            self.have += 1;
            *bytes = rest;
        }
        let [first, second, ..] = self.head;
        if first & RESERVED != 0 || second & MASK != 0 {
            return Err(format!("a frame that begins with {first:#04x} {second:#04x}"));
        }
        self.left = Some(match self.have {
            2 => second.into(),
            4 => u16::from_be_bytes([self.head[2], self.head[3]]).into(),
            _ => self.head[2..].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        });
        let begins = Message { compressed: first & COMPRESSED != 0, ..Message::default() };
        match (first & 0x0f, &self.message) {
            (1 | 2, None) => self.message = Some(begins),
            (0, Some(_)) | (8..=10, _) => {}
            (opcode, _) => return Err(format!("a frame with opcode {opcode} where none may be")),
        }
        Ok(true)
    }

    fn is_control(&self) -> bool {
        self.head[0] & 0x08 != 0
    }

    fn take_payload(&mut self, part: &[u8]) {
        if self.is_control() {
            self.control.extend_from_slice(part);
        } else if let Some(message) = &mut self.message {
            message.length += part.len() as u64;
            if self.keeps {
                message.payload.extend_from_slice(part);
            }
        }
    }

    fn end_frame(&mut self) -> Option<Event> {
        if !self.is_control() {
            return if self.head[0] & FIN == 0 { None } else { self.message.take().map(Event::Message) };
        }
        let payload = std::mem::take(&mut self.control);
        match self.head[0] & 0x0f {
            8 => Some(Event::Close(payload.first_chunk().map(|code| u16::from_be_bytes(*code)))),
            9 => Some(Event::Ping(payload)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server sends: these frames without a mask.
    fn wire(frames: &[(u8, usize)]) -> Vec<u8> {
        let mut wire = Vec::new();
        for (first, length) in frames {
            let frame = masked(*first, &vec![b'x'; *length]);
            let head = frame.len() - length - KEY.len();
            wire.extend_from_slice(&frame[..head]);
            let second = wire.len() - head + 1;
            wire[second] &= !MASK;
            wire.extend(vec![b'x'; *length]);
        }
        wire
    }

    fn events(wire: &[u8], part: usize, keeps: bool) -> Vec<Event> {
        let mut incoming = Incoming { keeps, ..Incoming::default() };
        let mut events = Vec::new();
        for mut bytes in wire.chunks(part) {
            while let Some(event) = incoming.next(&mut bytes).expect("frames") {
                events.push(event);
            }
        }
        events
    }

    fn message(length: usize, compressed: bool, keeps: bool) -> Event {
        let payload = if keeps { vec![b'x'; length] } else { Vec::new() };
        Event::Message(Message { length: length as u64, compressed, payload })
    }

    #[test]
    fn messages_of_every_length_end_where_they_end_however_they_come() {
        let lengths = [0, 1, 125, 126, 65_535, 65_536, 70_000];
        let frames: Vec<_> = lengths.iter().map(|length| (TEXT, *length)).collect();
        for (part, keeps) in [(1, false), (7, true), (1 << 20, false)] {
            let expected: Vec<_> = lengths.iter().map(|length| message(*length, false, keeps)).collect();
            assert!(events(&wire(&frames), part, keeps) == expected, "parts of {part}");
        }
    }

    #[test]
    fn frames_of_a_message_are_one_with_a_ping_between_them() {
        let wire = wire(&[(0x41, 300), (0x89, 3), (0x00, 0), (0x80, 200), (0x88, 0)]);
        let expected = vec![Event::Ping(b"xxx".to_vec()), message(500, true, true), Event::Close(None)];
        for part in [1, 2, 1000] {
            assert_eq!(events(&wire, part, true), expected, "parts of {part}");
        }
    }

    #[test]
    fn what_a_server_may_not_send_is_an_error() {
        let masked = masked(TEXT, b"x");
        for wrong in [&masked[..], &[0x80, 0], &[0x91, 0], &[0x83, 0], &[0x01, 0, 0x81, 0]] {
            assert!(Incoming::default().next(&mut &*wrong).is_err(), "{wrong:02x?}");
        }
    }

    #[test]
    fn a_mask_takes_itself_away() {
        let frame = masked(TEXT, b"Hello");
        assert_eq!(frame[..6], [TEXT, MASK | 5, 0x37, 0xfa, 0x21, 0x3d]);
        // The example of RFC 6455 §5.7.
        assert_eq!(frame[6..], [0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }
}
