//! The way from an input to the bytes of a client.
//!
//! The first byte chooses the parts that the client leaves out: 1 its preface and its settings, 2 that it knows the
//! server's settings. Then there are records of a kind, flags, a stream, a length and so many bytes, as in the target
//! `h2_connection`: a kind below 128 is a frame of that type as it stands, 255 stands for bytes without a frame, and
//! the others are frames that are right as far as the flags and the bytes let them be.

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const ACKNOWLEDGED: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";

/// `GET https://a/`.
const REQUEST: &[u8] = b"\x82\x84\x87\x01\x01a";

const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const HAS_PRIORITY: u8 = 32;

/// Fields for which there is a rule.
const FIELDS: &[(&str, &str)] = &[
    (":method", "GET"),
    (":method", "POST"),
    (":method", "CONNECT"),
    (":method", "OPTIONS"),
    (":scheme", "https"),
    (":scheme", "http"),
    (":path", "/"),
    (":path", "/a/b?c=d"),
    (":path", "*"),
    (":path", ""),
    (":path", "a"),
    (":authority", "a"),
    (":authority", "a:1"),
    (":authority", ""),
    (":authority", "u@a"),
    (":protocol", "websocket"),
    (":status", "200"),
    (":unknown", "x"),
    ("host", "a"),
    ("host", "a:1"),
    ("host", "b"),
    ("content-length", "0"),
    ("content-length", "1"),
    ("content-length", "5"),
    ("content-length", "+5"),
    ("content-length", "5,5"),
    ("content-length", ""),
    ("cookie", "a=b"),
    ("cookie", "c=d"),
    ("cookie", ""),
    ("te", "trailers"),
    ("te", "gzip"),
    ("connection", "close"),
    ("keep-alive", "1"),
    ("proxy-connection", "close"),
    ("transfer-encoding", "chunked"),
    ("upgrade", "h2c"),
    ("expect", "100-continue"),
    ("x", "y"),
    ("x", "z"),
    ("accept", "*/*"),
    ("X", "upper"),
    ("a b", "blank"),
    ("", "empty"),
    ("x-blank", " y"),
    ("x-blank", "y\t"),
    ("x-tab", "y\tz"),
    ("x-line", "y\r\nz"),
    ("x-nul", "y\0z"),
    ("x-del", "y\x7fz"),
    ("x-high", "\u{e9}"),
    ("x-empty", ""),
    ("priority", "u=1, i"),
    ("content-type", "text/plain"),
    ("content-type", "text/html"),
];

const NUMBERS: &[u32] = &[
    0,
    1,
    2,
    10,
    100,
    999,
    1000,
    4096,
    16_383,
    16_384,
    65_535,
    1 << 20,
    (1 << 24) - 1,
    1 << 24,
    (1 << 31) - 1,
    u32::MAX,
];

/// All bytes of the client.
pub fn client(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let Some((first, mut rest)) = input.split_first() else { return out };
    if first & 1 == 0 {
        out.extend_from_slice(PREFACE);
    }
    if first & 2 == 0 {
        out.extend_from_slice(ACKNOWLEDGED);
    }
    while let [kind, flags, stream, length, behind @ ..] = rest {
        let (payload, behind) = behind.split_at((*length as usize).min(behind.len()));
        rest = behind;
        record(*kind, *flags, *stream, payload, &mut out);
    }
    out
}

fn record(kind: u8, flags: u8, stream: u8, payload: &[u8], out: &mut Vec<u8>) {
    let first = payload.first().copied().unwrap_or_default();
    match kind {
        0..=127 => frame(kind, flags, stream, payload, out),
        255 => out.extend_from_slice(payload),
        _ => match kind % 8 {
            0 => headers(flags | END_HEADERS, stream, &block(payload), out),
            // The same in pieces.
            1 => {
                let block = block(payload.get(1..).unwrap_or_default());
                let mut pieces = block.chunks(1 + usize::from(first)).peekable();
                let mut kind = 1;
                while let Some(piece) = pieces.next() {
                    let last = if pieces.peek().is_none() { END_HEADERS } else { 0 };
                    match kind {
                        1 => headers(flags & !END_HEADERS | last, stream, piece, out),
                        _ => frame(kind, last, stream, piece, out),
                    }
                    kind = 9;
                }
            }
            // Data of a length.
            2 => {
                let length = payload.iter().fold(0, |all, byte| all + usize::from(*byte) * 2).min(20_000);
                let mut data = vec![b'd'; length];
                if flags & PADDED != 0 {
                    data.insert(0, first);
                    data.resize(data.len() + usize::from(first), 0);
                }
                frame(0, flags & (PADDED | 1), stream, &data, out);
            }
            3 => frame(8, flags, stream, &number(first).to_be_bytes(), out),
            4 => {
                let mut settings = Vec::new();
                for pair in payload.chunks_exact(2) {
                    settings.extend_from_slice(&[0, pair[0] % 12]);
                    settings.extend_from_slice(&number(pair[1]).to_be_bytes());
                }
                frame(4, 0, 0, &settings, out);
            }
            // A request with a field of any name and value.
            5 => {
                let name_length = payload.iter().position(|byte| *byte == 0).unwrap_or(payload.len());
                let (name, value) = payload.split_at(name_length);
                let mut field = Vec::new();
                literal(0, name, value.get(1..).unwrap_or_default(), &mut field);
                let at_start = name.first() == Some(&b':');
                let parts = if at_start { [&field, REQUEST] } else { [REQUEST, &field] };
                headers(flags | END_HEADERS, stream, &parts.concat(), out);
            }
            // Frames of one length.
            6 => {
                let (kind, length) = [(6, 8), (3, 4), (2, 5), (7, 8), (16, 8)][usize::from(first) % 5];
                let mut bytes = payload.get(1..).unwrap_or_default().to_vec();
                bytes.resize(length, 0);
                frame(kind, flags, stream, &bytes, out);
            }
            _ => {
                let mut all = REQUEST.to_vec();
                all.extend_from_slice(&block(payload));
                headers(flags | END_HEADERS, stream, &all, out);
            }
        },
    }
}

fn number(at: u8) -> u32 {
    NUMBERS[usize::from(at) % NUMBERS.len()]
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8], out: &mut Vec<u8>) {
    let [_, l0, l1, l2] = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[l0, l1, l2, kind, flags, 0, 0, 0, stream]);
    out.extend_from_slice(payload);
}

/// HEADERS with the parts that its flags ask for.
fn headers(flags: u8, stream: u8, block: &[u8], out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    if flags & PADDED != 0 {
        payload.push(3);
    }
    if flags & HAS_PRIORITY != 0 {
        payload.extend_from_slice(&[0, 0, 0, 0, 16]);
    }
    payload.extend_from_slice(block);
    if flags & PADDED != 0 {
        payload.extend_from_slice(&[0; 3]);
    }
    frame(1, flags, stream, &payload, out);
}

/// A block in which each byte stands for a field: below 64 one of the list, below 128 the same which becomes an entry of the table, and
/// any other one an entry of the table.
fn block(bytes: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for byte in bytes {
        let (name, value) = FIELDS[usize::from(byte & 63) % FIELDS.len()];
        match byte {
            0..=63 => literal(0, name.as_bytes(), value.as_bytes(), &mut block),
            64..=127 => literal(0x40, name.as_bytes(), value.as_bytes(), &mut block),
            _ => block.push(*byte),
        }
    }
    block
}

/// A literal field (RFC 7541 §6.2) without Huffman codes. Lengths above 126 have one byte more, of at most 127.
fn literal(first: u8, name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    block.push(first);
    for text in [name, value] {
        let text = &text[..text.len().min(254)];
        match text.len() {
            0..=126 => block.push(text.len() as u8),
            long => block.extend_from_slice(&[127, (long - 127) as u8]),
        }
        block.extend_from_slice(text);
    }
}
