//! A server's result for one piece of the client's bytes, in words that all servers share.

use std::collections::BTreeMap;

/// Streams that may be open, the window of each, that of the connection, and bytes of a list of fields: the same for all servers.
pub const MAX_STREAMS: u32 = 4;
pub const STREAM_WINDOW: u32 = 1000;
pub const CONNECTION_WINDOW: u32 = 1 << 20;
pub const MAX_HEAD: u32 = 65_536;

/// A server under test. Each answers a request that is complete, on every other stream of a client, with a 200 that ends the stream;
/// requests on the others stay without an answer. None gives credit for data.
pub trait Server {
    /// Its name in reports.
    fn name(&self) -> &'static str;
    /// Takes bytes, and does all that follows from them.
    fn feed(&mut self, bytes: &[u8], seen: &mut Seen);
}

/// Whether the request of a stream is answered.
pub fn is_answered(stream: u32) -> bool {
    stream % 4 == 1
}

/// The outcome of one piece.
#[derive(Debug, Default)]
pub struct Seen {
    pub heads: Vec<Head>,
    pub data: BTreeMap<u32, Vec<u8>>,
    /// Streams whose request is complete.
    pub ends: Vec<u32>,
    /// RST_STREAM that were sent: streams and codes.
    pub resets: Vec<(u32, u32)>,
    /// Why the connection ends.
    pub goaway: Option<u32>,
    /// Acknowledgements of PING.
    pub pings: Vec<Vec<u8>>,
    /// Acknowledgements of SETTINGS.
    pub acknowledged: usize,
}

/// A request.
#[derive(Debug, Default)]
pub struct Head {
    pub stream: u32,
    pub method: Vec<u8>,
    pub path: Vec<u8>,
    pub authority: Vec<u8>,
    pub protocol: Vec<u8>,
    /// All but Host, the pieces of a cookie joined and at the end.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Answered without a handler, with this status; only ours says so.
    pub objection: Option<u16>,
    /// The values of all Host fields.
    pub hosts: Vec<Vec<u8>>,
}

impl Head {
    /// Whether both say the same. The order of fields with different names is not looked at where it is not `in_order`.
    pub fn is(&self, other: &Self, in_order: bool) -> bool {
        let parts = |head: &Self| {
            (
                head.stream,
                head.method.clone(),
                head.path.clone(),
                head.authority.clone(),
                head.protocol.clone(),
            )
        };
        let fields = |head: &Self| {
            let mut fields = head.fields.clone();
            if !in_order {
                fields.sort_by(|one, other| one.0.cmp(&other.0));
            }
            fields
        };
        parts(self) == parts(other) && fields(self) == fields(other)
    }

    /// Brings fields, Host and cookie into the common form.
    pub fn normal(mut self) -> Self {
        let mut cookie: Option<Vec<u8>> = None;
        let mut kept = Vec::new();
        for (name, value) in self.fields {
            if name == b"host" {
                self.hosts.push(value.clone());
            }
            match &name[..] {
                b"host" if self.authority.is_empty() => self.authority = value,
                b"host" => {}
                b"cookie" => match &mut cookie {
                    Some(all) => {
                        all.extend_from_slice(b"; ");
                        all.extend_from_slice(&value);
                    }
                    None => cookie = Some(value),
                },
                _ => kept.push((name, value)),
            }
        }
        kept.extend(cookie.map(|cookie| (b"cookie".to_vec(), cookie)));
        self.fields = kept;
        self
    }
}

impl Seen {
    /// Whether all but the heads and the end of the connection is the same.
    pub fn is_beside_heads(&self, other: &Self) -> bool {
        self.data == other.data
            && self.ends == other.ends
            && self.resets == other.resets
            && self.pings == other.pings
            && self.acknowledged == other.acknowledged
    }

    /// Reads frames that a server has written; those that are not complete stay.
    pub fn note_written(&mut self, written: &mut Vec<u8>) {
        let mut at = 0;
        while let Some([l0, l1, l2, kind, flags, s0, s1, s2, s3]) = written.get(at..at + 9) {
            let length = u32::from_be_bytes([0, *l0, *l1, *l2]) as usize;
            let stream = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
            let Some(payload) = written.get(at + 9..at + 9 + length) else { break };
            let word = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("4 bytes"));
            match kind {
                3 => self.resets.push((stream, word(0))),
                4 if flags & 1 != 0 => self.acknowledged += 1,
                6 if flags & 1 != 0 => self.pings.push(payload.to_vec()),
                7 => self.goaway = Some(word(4)),
                _ => {}
            }
            at += 9 + length;
        }
        written.drain(..at);
    }

    /// The content of a stream in the piece that resets it depends on the order of checks and not on their outcome. The
    /// order of the acknowledgements of a piece and of the ends of several streams has no meaning, either.
    pub fn settle(&mut self) {
        let is_reset = |stream: u32| self.resets.iter().any(|(number, _)| *number == stream);
        self.data.retain(|stream, bytes| !is_reset(*stream) && !bytes.is_empty());
        self.ends.retain(|stream| !is_reset(*stream));
        self.heads.retain(|head| !is_reset(head.stream));
        self.ends.sort_unstable();
        self.resets.sort_unstable();
        self.resets.dedup();
    }
}
