//! The context of a trace: the fields `traceparent` and `tracestate` (W3C Trace Context), as they are received.
//!
//! Promises: a context that is taken over has the exact form of its version; a field that stands twice, or in another form,
//! is as no field. A trace state that is passed on has at most 512 bytes, all printable.
//!
//! Leaves out: whose fields are believed.

use std::fmt::{self, Display};

use maitred_http::trace::{Hex, parse_parent};

/// The longest trace state that is passed on, in bytes: the least that §3.3.1.5 asks for.
pub const MAX_TRACE_STATE: usize = 512;

/// Members that a trace state has at most (§3.3.1.1).
const MAX_MEMBERS: usize = 32;

/// A member of a trace state above this length goes first where the state is too long (§3.3.1.5).
const LONG_MEMBER: usize = 128;

/// The id of a trace, never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The id of a span, never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// The flags of a context that are known: sampled (1), and random (2): the last 56 bits of the trace id are random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

/// A span as other processes name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    /// The trace that the span belongs to.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the trace is kept.
    pub flags: Flags,
}

/// The member list of `tracestate`, as it is passed on; mostly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceState(String);

impl Context {
    /// The context of a request with these values of its fields `traceparent` and `tracestate`; none if it has brought no
    /// valid one, or several.
    pub fn received<'a>(
        parents: impl IntoIterator<Item = &'a [u8]>,
        states: impl IntoIterator<Item = &'a [u8]>,
    ) -> Option<(Self, TraceState)> {
        let mut parents = parents.into_iter();
        let context = Self::parse(parents.next()?)?;
        parents.next().is_none().then(|| (context, TraceState::joined(states)))
    }

    /// Reads a value of `traceparent`.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (trace, span, flags) = parse_parent(value)?;
        Some(Self { trace: TraceId(trace), span: SpanId(span), flags: Flags::of(flags) })
    }
}

impl Flags {
    const KNOWN: u8 = 3;

    /// Flags that say only this.
    #[must_use]
    pub const fn sampled(sampled: bool) -> Self {
        Self(sampled as u8)
    }

    /// The known ones of these bits.
    #[must_use]
    pub const fn of(bits: u8) -> Self {
        Self(bits & Self::KNOWN)
    }

    /// Whether the trace is kept.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        self.0 & 1 != 0
    }

    /// These flags with another answer to [`is_sampled`](Self::is_sampled).
    #[must_use]
    pub const fn with_sampled(self, sampled: bool) -> Self {
        Self(self.0 & !1 | sampled as u8)
    }

    /// As the second part of the field and the flags of OTLP have them.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl TraceId {
    /// An id of these bytes, unless all are zero.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The last eight bytes as a number: what the ratio of a sampler is compared with.
    pub(crate) fn low(self) -> u64 {
        u128::from_be_bytes(self.0) as u64
    }
}

impl SpanId {
    /// An id of these bytes, unless all are zero.
    #[must_use]
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl TraceState {
    /// The state of these values of `tracestate`, which are one list. It is empty if a member is malformed (§3.3.1), or if there
    /// are more than 32. Where the list is too long, long members go first, then those at its end.
    pub fn joined<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut members: Vec<&[u8]> = Vec::new();
        for member in values.into_iter().flat_map(|value| value.split(|byte| *byte == b',')) {
            let member = member.trim_ascii();
            if member.is_empty() {
                continue;
            }
            if members.len() == MAX_MEMBERS || !is_member(member) {
                return Self::default();
            }
            members.push(member);
        }
        let length = |members: &[&[u8]]| members.iter().map(|member| member.len() + 1).sum::<usize>();
        while length(&members) > MAX_TRACE_STATE + 1 {
            let long = members.iter().rposition(|member| member.len() > LONG_MEMBER);
            members.remove(long.unwrap_or(members.len() - 1));
        }
        Self(String::from_utf8(members.join(&b',')).unwrap_or_default())
    }

    /// The value of the field; empty: there is none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `key=value` by §3.3.1.3.
fn is_member(member: &[u8]) -> bool {
    let Some(equals) = member.iter().position(|byte| *byte == b'=') else { return false };
    let (key, value) = member.split_at(equals);
    let is_key = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let begins = key.first().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let value = value.get(1..).unwrap_or_default();
    let is_value = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'=';
    begins && key.len() <= 256 && key.iter().all(is_key) && value.len() <= 256 && value.iter().all(is_value)
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

/// A generator of ids (xoroshiro128++), one for each thread. Its seed has to come from the system: two generators with the same one give
/// the same ids. The ids can be guessed, and are no secret.
#[derive(Clone, Debug)]
pub struct Ids([u64; 2]);

impl Ids {
    /// A generator with this seed.
    #[must_use]
    pub const fn seeded(seed: [u64; 2]) -> Self {
        // The state of all zeros would give zeros for ever.
        Self(if seed[0] | seed[1] == 0 { [1, 0] } else { seed })
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        let [first, second] = self.0;
        let sum = first.wrapping_add(second).rotate_left(17).wrapping_add(first);
        let mixed = first ^ second;
        self.0 = [first.rotate_left(49) ^ mixed ^ (mixed << 21), mixed.rotate_left(28)];
        sum
    }

    /// A new trace.
    pub fn trace(&mut self) -> TraceId {
        loop {
            let number = u128::from(self.number()) << 64 | u128::from(self.number());
            if let Some(id) = TraceId::new(number.to_be_bytes()) {
                return id;
            }
        }
    }

    /// A new span.
    pub fn span(&mut self) -> SpanId {
        loop {
            if let Some(id) = SpanId::new(self.number().to_be_bytes()) {
                return id;
            }
        }
    }
}
