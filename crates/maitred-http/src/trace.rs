//! The place of a request in a distributed trace (W3C Trace Context), for the server, its logs and the calls of its application.
//!
//! Leaves out: the trust in its fields, and spans (maitred-trace, maitred-exchange).

/// Ids of a request in a trace. Nothing that a peer sends becomes one without the rules of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracePlace {
    /// The trace.
    pub trace: [u8; 16],
    /// The span of the request in this server.
    pub span: [u8; 8],
    /// The span of the caller; zero where the trace begins here.
    pub parent: [u8; 8],
    /// The flags of `traceparent`; the lowest bit says that the trace is recorded.
    pub flags: u8,
    /// Trace and span that a caller without trust has named.
    pub link: Option<([u8; 16], [u8; 8])>,
}

/// The way by which a request has come, for its span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The client has used TLS.
    pub secure: bool,
    /// The other end of the connection: the client, or a proxy.
    pub peer: Option<std::net::IpAddr>,
}

/// An id of a trace or a span in lower-case hexadecimal digits.
#[derive(Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl Hex<'_> {
    /// The digits of each byte.
    fn digits(self) -> impl Iterator<Item = u8> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or(b'0');
        self.0.iter().flat_map(move |byte| [digit(byte >> 4), digit(byte & 15)])
    }

    /// Appends the digits.
    pub fn push(self, out: &mut Vec<u8>) {
        out.extend(self.digits());
    }
}

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl TracePlace {
    /// Whether the trace is recorded, by the decision of the caller or of the server.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 != 0
    }

    /// The value of `traceparent` that names `span` as the parent: what an application or another server gets.
    #[must_use]
    pub fn parent_field(&self, span: [u8; 8]) -> [u8; 55] {
        let flags = [self.flags];
        let parts: [&[u8]; 3] = [&self.trace, &span, &flags];
        let mut field = *b"00-00000000000000000000000000000000-0000000000000000-00";
        let mut digits = parts.into_iter().flat_map(|part| Hex(part).digits());
        for byte in field.iter_mut().skip(2).filter(|byte| **byte != b'-') {
            *byte = digits.next().unwrap_or(b'0');
        }
        field
    }
}

/// Trace, span and flags of a value of `traceparent`; none unless it has the exact form of its version.
#[must_use]
pub fn parse_parent(value: &[u8]) -> Option<([u8; 16], [u8; 8], u8)> {
    let (fixed, more) = value.split_at_checked(55)?;
    let mut parts = fixed.split(|byte| *byte == b'-');
    let [version] = digits(parts.next()?)?;
    let (trace, span) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let [flags] = digits(parts.next()?)?;
    // A later version may append parts (§4.1); 255 is none.
    let fits = if version == 0 { more.is_empty() } else { more.first().is_none_or(|byte| *byte == b'-') };
    let is_one = fits && version != u8::MAX && trace != [0; 16] && span != [0; 8] && parts.next().is_none();
    is_one.then_some((trace, span, flags))
}

/// Exactly so many bytes, as digits in lower case.
fn digits<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_names_a_span_of_the_trace_as_the_parent() {
        let place = TracePlace { trace: [0x4b; 16], span: [1; 8], flags: 1, ..TracePlace::default() };
        let field = place.parent_field([0xa0; 8]);
        assert_eq!(&field, b"00-4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b-a0a0a0a0a0a0a0a0-01");
        assert_eq!(Hex(&place.span).to_string(), "0101010101010101");
        assert!(place.is_sampled() && !TracePlace::default().is_sampled());
    }
}
