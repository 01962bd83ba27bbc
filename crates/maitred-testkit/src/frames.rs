//! A toy protocol with many streams on one connection, for tests of what is common to all such protocols.
//!
//! A frame is its kind (one byte), its stream and the length of its payload (four bytes each, big-endian), then the payload. A
//! head is text: `METHOD target`, or a status, on the first line, then a field a line. Streams are numbered by the client;
//! credit for stream 0 is that of the connection.

/// The most bytes of data in one frame.
pub const MAX_FRAME: usize = 1024;

/// The bytes that each side may send on a stream before it is given more.
pub const STREAM_WINDOW: u64 = 4096;

/// The same for all streams of a connection together.
pub const CONNECTION_WINDOW: u64 = 16 * 1024;

const HEADER: usize = 9;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The head of a request or of a response.
    Head(u32, String),
    /// A part of a body.
    Data(u32, Vec<u8>),
    /// The request or the response is complete.
    End(u32),
    /// The sender wants nothing more of the stream, and sends nothing more.
    Reset(u32),
    /// So many bytes more may be sent.
    Credit(u32, u32),
    /// The stream becomes a tunnel: bytes in both directions until their ends.
    Tunnel(u32),
}

impl Frame {
    /// The frame's stream.
    pub fn stream(&self) -> u32 {
        match self {
            Self::Head(stream, _)
            | Self::Data(stream, _)
            | Self::End(stream)
            | Self::Reset(stream)
            | Self::Credit(stream, _)
            | Self::Tunnel(stream) => *stream,
        }
    }

    /// The frame as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let (kind, payload) = match self {
            Self::Head(_, text) => (b'H', text.as_bytes().to_vec()),
            Self::Data(_, bytes) => (b'D', bytes.clone()),
            Self::End(_) => (b'E', Vec::new()),
            Self::Reset(_) => (b'R', Vec::new()),
            Self::Credit(_, bytes) => (b'C', bytes.to_be_bytes().to_vec()),
            Self::Tunnel(_) => (b'T', Vec::new()),
        };
        let mut all = frame_header(kind, self.stream(), payload.len());
        all.extend_from_slice(&payload);
        all
    }

    /// The first frame of `data` and its length; none while it is not complete.
    ///
    /// # Errors
    /// It is no frame.
    pub fn first(data: &[u8]) -> Result<Option<(Self, usize)>, &'static str> {
        let Some((header, rest)) = data.split_first_chunk::<HEADER>() else { return Ok(None) };
        let number =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (stream, length) = (number(1), number(5) as usize);
        if length > 16 * MAX_FRAME {
            return Err("a frame that is too long");
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = match (header[0], payload) {
            (b'H', text) => {
                Self::Head(stream, String::from_utf8(text.to_vec()).map_err(|_| "a head that is no text")?)
            }
            (b'D', bytes) => Self::Data(stream, bytes.to_vec()),
            (b'E', []) => Self::End(stream),
            (b'R', []) => Self::Reset(stream),
            (b'C', &[a, b, c, d]) => Self::Credit(stream, u32::from_be_bytes([a, b, c, d])),
            (b'T', []) => Self::Tunnel(stream),
            _ => return Err("no such frame"),
        };
        Ok(Some((frame, HEADER + length)))
    }
}

/// What stands before a payload of so many bytes.
pub fn frame_header(kind: u8, stream: u32, length: usize) -> Vec<u8> {
    let mut header = vec![kind];
    header.extend_from_slice(&stream.to_be_bytes());
    // Test frames are small.
    header.extend_from_slice(&(length as u32).to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let frames = [
            Frame::Head(1, "GET /\nhost: a".into()),
            Frame::Data(3, b"abc".to_vec()),
            Frame::End(3),
            Frame::Reset(5),
            Frame::Credit(0, 70_000),
            Frame::Tunnel(7),
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        let mut rest = &bytes[..];
        for frame in frames {
            assert_eq!(Frame::first(&rest[..HEADER - 1]), Ok(None));
            let (read, length) = Frame::first(rest).unwrap().unwrap();
            assert_eq!(read, frame);
            rest = &rest[length..];
        }
        assert_eq!(Frame::first(b"X\0\0\0\x01\0\0\0\0"), Err("no such frame"));
        assert_eq!(Frame::first(b"D\0\0\0\x01\xff\0\0\0"), Err("a frame that is too long"));
    }
}
