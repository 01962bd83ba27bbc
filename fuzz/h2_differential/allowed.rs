//! The differences that there may be, each with its reason.

use std::collections::BTreeSet;

use crate::seen::{Head, Seen};

/// The frame that a piece is, if it is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The bytes of the first frame, its header included.
    pub fn length(bytes: &[u8]) -> usize {
        match bytes {
            [l0, l1, l2, ..] => 9 + u32::from_be_bytes([0, *l0, *l1, *l2]) as usize,
            _ => bytes.len(),
        }
    }

    pub fn read(piece: &'a [u8]) -> Self {
        match piece {
            [_, _, _, kind, flags, s0, s1, s2, s3, payload @ ..] if piece.len() == Self::length(piece) => {
                let stream = u32::from_be_bytes([s0 & 0x7f, *s1, *s2, *s3]);
                Self { kind: *kind, flags: *flags, stream, payload }
            }
            _ => Self { kind: 255, ..Self::default() },
        }
    }

    /// The stream whose header block is not complete behind this frame.
    pub fn block_behind(self, before: Option<u32>) -> Option<u32> {
        match self.kind {
            1 | 9 if self.flags & 4 == 0 => Some(self.stream),
            1 | 9 => None,
            _ => before,
        }
    }
}

/// The results of the two servers for a piece.
#[derive(Debug)]
pub struct Difference<'a> {
    pub frame: Frame<'a>,
    /// The stream whose header block was not complete.
    pub block: Option<u32>,
    pub ours: &'a Seen,
    pub theirs: &'a Seen,
    /// The other implementation.
    pub who: &'static str,
    /// Streams that either side has reset before.
    pub reset: &'a BTreeSet<u32>,
    /// The highest stream with a head before.
    pub highest: u32,
}

/// How it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// Both are in the same state.
    Same,
    /// Nothing more is sent on this stream.
    Apart(u32),
    /// The other implementation is no longer looked at.
    Leave,
}

/// A difference that there may be.
struct Rule {
    /// Only of this implementation.
    who: Option<&'static str>,
    /// The reason, with the section of RFC 9113 or of another one.
    #[expect(dead_code, reason = "who reads the list reads it")]
    why: &'static str,
    applies: fn(&Difference<'_>) -> bool,
    then: fn(&Difference<'_>) -> Then,
}

const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;
const INTERNAL_ERROR: u32 = 2;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

const LEAVE: fn(&Difference<'_>) -> Then = |_| Then::Leave;
const APART: fn(&Difference<'_>) -> Then = |difference| Then::Apart(difference.frame.stream);

const RULES: &[Rule] = &[
    // ---- Both end the connection ----
    Rule {
        who: None,
        why: "the codes of errors of framing and of compression: §4.2 and §4.3 name one, but most checks have no order, and h2 has \
              PROTOCOL_ERROR for nearly all of them",
        applies: |d| {
            let general =
                [PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR, STREAM_CLOSED, FLOW_CONTROL_ERROR];
            d.codes().is_some_and(|(ours, theirs)| general.contains(&ours) && general.contains(&theirs))
        },
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "each has its own budgets, of different sizes (§10.5)",
        applies: |d| {
            let is_budget = |code| matches!(code, Some(ENHANCE_YOUR_CALM | INTERNAL_ERROR));
            d.ours.goaway == Some(ENHANCE_YOUR_CALM) || is_budget(d.theirs.goaway)
        },
        then: LEAVE,
    },
    // ---- Only the other one ends the connection ----
    Rule {
        who: None,
        why: "a stream error may be treated as a connection error (§5.4.1)",
        applies: |d| d.only_theirs_ends() && !d.ours.resets.is_empty(),
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "what we answer with a status, another one may take for malformed (§8.1.1)",
        applies: |d| d.only_theirs_ends() && d.ours.heads.iter().any(|head| head.objection.is_some()),
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "an acknowledgement of settings that nobody has sent: no RFC says what it is",
        applies: |d| d.only_theirs_ends() && d.frame.kind == 4 && d.frame.flags & 1 != 0,
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "others close a connection without streams when the peer leaves; for us the server does (§6.8)",
        applies: |d| d.only_theirs_ends() && d.theirs.goaway == Some(NO_ERROR),
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "fragments are decoded as they come, ours when the block is complete (§4.3)",
        applies: |d| {
            d.ours.goaway.is_none()
                && d.is_within_block()
                && (d.theirs.goaway.is_some() || !d.theirs.resets.is_empty())
        },
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "a client's SETTINGS_ENABLE_CONNECT_PROTOCOL has no meaning, so that we do not look at it (RFC 8441 §3)",
        applies: |d| d.only_theirs_ends() && d.has_setting(8),
        then: LEAVE,
    },
    Rule {
        who: Some("nghttp2"),
        why: "nghttp2 takes an empty Host for malformed, we hand it on as in HTTP/1 (RFC 9112 §3.2; RFC 9110 §4.2.2 is about URIs)",
        applies: |d| {
            d.only_theirs_ends() && d.ours.heads.iter().any(|head| head.hosts.iter().any(Vec::is_empty))
        },
        then: LEAVE,
    },
    // ---- Only ours ends the connection ----
    Rule {
        who: Some("h2"),
        why: "h2 does not know RFC 9218",
        applies: |d| d.only_ours_ends() && (d.frame.kind == 16 || d.has_setting(9)),
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "a frame behind the end of a stream may be ignored or an error of stream or connection (§5.1)",
        applies: |d| d.ours.goaway == Some(STREAM_CLOSED) && d.theirs.goaway.is_none(),
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "where a stream is checked: before its block is complete, or behind it (§5.1.1)",
        applies: |d| d.only_ours_ends() && d.frame.kind == 1 && d.is_within_block(),
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "a stream that depends on itself and is not there (RFC 7540 §5.3.1; RFC 9113 §5.3.2 has no dependencies)",
        applies: |d| d.only_ours_ends() && d.frame.kind == 2,
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "the input ends within a frame, of which one has looked at the start",
        applies: |d| d.frame.kind == 255,
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "what comes on a stream that was reset may be ignored or an error, and is not remembered for ever (§5.1, §5.4.2)",
        applies: |d| d.reset.contains(&d.frame.stream),
        then: LEAVE,
    },
    Rule {
        who: Some("h2"),
        why: "h2 resets a stream whose number it must not have, or looks first at the fields (§5.1.1 wants a connection error)",
        applies: |d| {
            let is_wrong = d.frame.stream % 2 == 0 || d.frame.stream <= d.highest;
            d.only_ours_ends() && d.is_head() && is_wrong && d.ours.goaway == Some(PROTOCOL_ERROR)
        },
        then: LEAVE,
    },
    Rule {
        who: Some("nghttp2"),
        why: "nghttp2 forgets streams that are over, and ignores everything on a number that was left out or is over",
        applies: |d| d.only_ours_ends() && d.frame.stream > 0 && d.frame.stream <= d.highest,
        then: LEAVE,
    },
    Rule {
        who: Some("nghttp2"),
        why: "nghttp2 ignores a PRIORITY_UPDATE that RFC 9218 §7.1 has as an error",
        applies: |d| d.only_ours_ends() && d.frame.kind == 16,
        then: LEAVE,
    },
    Rule {
        who: None,
        why: "others check the last stream of a client's GOAWAY: it must be a server's, and must not rise. We open none, and §6.8 asks \
              that of the sender",
        applies: |d| d.only_theirs_ends() && d.frame.kind == 7,
        then: LEAVE,
    },
    Rule {
        who: Some("h2"),
        why: "h2 ignores a client's PUSH_PROMISE or resets a stream for it (§8.4 wants a connection error)",
        applies: |d| d.only_ours_ends() && d.frame.kind == 5,
        then: LEAVE,
    },
    Rule {
        who: Some("h2"),
        why: "h2 resets a stream that depends on itself before it decodes the block (§4.3 wants it decoded)",
        applies: |d| {
            d.only_ours_ends() && d.frame.kind == 1 && d.frame.flags & 32 != 0 && !d.theirs.resets.is_empty()
        },
        then: LEAVE,
    },
    Rule {
        who: Some("nghttp2"),
        why: "nghttp2 looks only at the last value of a setting that is there twice (§6.5.3 wants all of them, in their order)",
        applies: |d| d.only_ours_ends() && d.has_setting_twice(),
        then: LEAVE,
    },
    Rule {
        who: Some("h2"),
        why: "h2 takes a change of the table's size at the start of every fragment (RFC 7541 §4.2 wants it before the first field)",
        applies: |d| d.frame.kind == 9 && d.only_ours_ends() && d.ours.goaway == Some(COMPRESSION_ERROR),
        then: LEAVE,
    },
    Rule {
        who: Some("h2"),
        why: "h2 does not wait for the rest of a block whose start is malformed, and takes other frames in between (§6.10 forbids them)",
        applies: |d| d.block.is_some() && d.only_ours_ends() && d.ours.goaway == Some(PROTOCOL_ERROR),
        then: LEAVE,
    },
    // ---- Streams ----
    Rule {
        who: Some("h2"),
        why: "h2 forgets at the end of a fragment that the block is malformed, as by a pseudo-field that is there twice (§8.3)",
        applies: |d| {
            d.neither_ends() && d.frame.kind == 9 && d.ours.resets == [(d.frame.stream, PROTOCOL_ERROR)]
        },
        then: APART,
    },
    Rule {
        who: None,
        why: "a stream is refused as one that was reset before is still open, or still counts, on one side (§5.1.2)",
        applies: |d| {
            let refused = |seen: &Seen| seen.resets.contains(&(d.frame.stream, REFUSED_STREAM));
            d.neither_ends() && d.is_head() && !d.reset.is_empty() && refused(d.ours) != refused(d.theirs)
        },
        then: LEAVE,
    },
    Rule {
        who: Some("h2"),
        why: "h2 takes pseudo-fields, and those of a connection, in trailers (§8.1 makes them malformed)",
        applies: |d| {
            d.neither_ends()
                && d.is_head()
                && !d.ours.resets.is_empty()
                && d.theirs.heads.is_empty()
                && d.theirs.ends == [d.frame.stream]
        },
        then: APART,
    },
    Rule {
        who: None,
        why: "a stream is reset with another code, as checks have no order",
        applies: |d| {
            let streams = |seen: &Seen| seen.resets.iter().map(|(stream, _)| *stream).collect::<Vec<_>>();
            d.neither_ends() && !d.ours.resets.is_empty() && streams(d.ours) == streams(d.theirs)
        },
        then: |_| Then::Same,
    },
    Rule {
        who: None,
        why: "a head that is malformed by a rule that others do not check",
        applies: |d| {
            d.neither_ends()
                && d.is_head()
                && d.ours.heads.is_empty()
                && d.theirs.heads.iter().any(|head| is_malformed(head, d.who))
        },
        then: APART,
    },
    Rule {
        who: None,
        why: "a head behind the end of a stream may be ignored or an error (§5.1)",
        applies: |d| d.neither_ends() && d.is_head() && d.only_resets(&[STREAM_CLOSED]),
        then: APART,
    },
    Rule {
        who: None,
        why: "ours answers with a status what others hand on",
        applies: |d| d.neither_ends() && d.ours.is_beside_heads(d.theirs) && d.heads_differ_by_objection(),
        then: |_| Then::Same,
    },
    Rule {
        who: None,
        why: "ours answers with a status what others take for malformed (§8.1.1)",
        applies: |d| {
            d.neither_ends()
                && d.ours.heads.iter().any(|head| head.objection.is_some())
                && !d.theirs.resets.is_empty()
        },
        then: APART,
    },
    Rule {
        who: None,
        why: "data on a stream that the peer has reset may be ignored or an error (§5.1)",
        applies: |d| d.neither_ends() && d.frame.kind == 0 && d.only_resets(&[STREAM_CLOSED]),
        then: APART,
    },
];

/// How it goes on behind this, or `None` where it must not be.
pub fn allowed(difference: &Difference<'_>) -> Option<Then> {
    let Difference { ours, theirs, who, .. } = difference;
    let both_end = ours.goaway.is_some() && ours.goaway == theirs.goaway;
    if both_end
        || difference.neither_ends() && ours.is_beside_heads(theirs) && difference.heads_are_the_same()
    {
        return Some(Then::Same);
    }
    let rule =
        RULES.iter().find(|rule| rule.who.is_none_or(|name| name == *who) && (rule.applies)(difference))?;
    Some((rule.then)(difference))
}

/// Whether a head that another implementation hands on is malformed, by one of the rules that this one is known not to check.
fn is_malformed(head: &Head, who: &str) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    // §8.3.1: the path is one of RFC 3986, where no byte but these stands for itself.
    let path = !head.path.iter().all(|byte| matches!(byte, b'!'..=b'~') && *byte != b'#');
    let start = !matches!(head.path.first(), Some(b'/')) && (head.path != b"*" || head.method != b"OPTIONS");
    // RFC 9110 §4.2: no user, no empty host, a port of at most 16 bits.
    let authority = |text: &[u8]| {
        let port = text.rsplit(|byte| *byte == b':').next().filter(|port| port.len() < text.len());
        let colons = text.iter().filter(|byte| **byte == b':').count();
        colons > 1
            || port.is_some_and(|port| port.len() > 5 || !port.iter().all(u8::is_ascii_digit))
            || text.is_empty()
            || text.starts_with(b":")
            || !text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:!$&'()*+,;=".contains(byte))
    };
    // §8.3.1: a Host that differs; RFC 9112 §3.2: two of them.
    let host =
        head.hosts.len() > 1 || head.hosts.iter().any(|host| !host.eq_ignore_ascii_case(&head.authority));
    // §8.2.1, §8.2.2, §8.1.1
    let field = |(name, value): &(Vec<u8>, Vec<u8>)| {
        is_blank(value.first())
            || is_blank(value.last())
            || value.iter().any(u8::is_ascii_control)
            || name == b"te"
    };
    let lengths = head.fields.iter().filter(|(name, _)| name == b"content-length");
    let bad_length = lengths.clone().count() > 1
        || lengths.clone().any(|(_, value)| value.is_empty() || !value.iter().all(u8::is_ascii_digit));
    let connect = head.method == b"CONNECT" || !head.protocol.is_empty();
    // h2 makes a path of none.
    let no_path = who == "h2" && head.path == b"/";
    path || start
        || authority(&head.authority)
        || head.hosts.iter().any(|text| authority(text))
        || host
        || head.fields.iter().any(field)
        || bad_length
        || connect
        || no_path
}

impl Difference<'_> {
    /// HEADERS, or the last piece of a block.
    fn is_head(&self) -> bool {
        self.frame.kind == 1 || self.frame.kind == 9
    }

    fn codes(&self) -> Option<(u32, u32)> {
        self.ours.goaway.zip(self.theirs.goaway)
    }

    fn only_ours_ends(&self) -> bool {
        self.ours.goaway.is_some() && self.theirs.goaway.is_none()
    }

    fn only_theirs_ends(&self) -> bool {
        self.ours.goaway.is_none() && self.theirs.goaway.is_some()
    }

    fn neither_ends(&self) -> bool {
        self.ours.goaway.is_none() && self.theirs.goaway.is_none()
    }

    /// The block is not complete behind this frame.
    fn is_within_block(&self) -> bool {
        self.frame.block_behind(self.block).is_some()
    }

    fn has_setting(&self, number: u8) -> bool {
        self.frame.kind == 4 && self.frame.payload.chunks(6).any(|setting| setting.starts_with(&[0, number]))
    }

    fn has_setting_twice(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.frame.kind == 4 && self.frame.payload.chunks(6).any(|setting| !seen.insert(setting.get(..2)))
    }

    /// One of both has reset streams, all with one of these codes, and nothing else differs.
    fn only_resets(&self, codes: &[u32]) -> bool {
        let (ours, theirs) = (&self.ours.resets, &self.theirs.resets);
        ours.is_empty() != theirs.is_empty()
            && ours.iter().chain(theirs).all(|(_, code)| codes.contains(code))
            && self.ours.heads.is_empty()
            && self.theirs.heads.is_empty()
            && self.ours.pings == self.theirs.pings
            && self.ours.acknowledged == self.theirs.acknowledged
    }

    fn in_order(&self) -> bool {
        // The map of h2 has the fields by their names.
        self.who != "h2"
    }

    fn heads_are_the_same(&self) -> bool {
        let (ours, theirs) = (&self.ours.heads, &self.theirs.heads);
        ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(ours, theirs)| ours.is(theirs, self.in_order()))
    }

    fn heads_differ_by_objection(&self) -> bool {
        let (ours, theirs) = (&self.ours.heads, &self.theirs.heads);
        ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(ours, theirs)| {
                ours.stream == theirs.stream && (ours.objection.is_some() || ours.is(theirs, self.in_order()))
            })
    }
}
