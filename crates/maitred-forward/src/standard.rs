//! The elements of the field `Forwarded` (RFC 7239 §4).

use maitred_http::authority::is_authority_with_host;

use crate::node::{self, Node};

/// How many entries of a list are looked at, from the right. There are no chains of so many proxies.
pub const MAX_HOPS: usize = 64;

/// An element with more parameters is malformed. Four are registered.
const MAX_PARAMETERS: usize = 16;

/// A longer node is no address: in brackets the longest has 47 bytes, its port 6.
const MAX_NODE: usize = 64;

/// The element of one proxy. Values of quoted strings are as they stand between the quotes, with their backslashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    node: Option<&'a [u8]>,
    proto: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
}

impl<'a> Element<'a> {
    /// Reads the element that `text` begins with; the number is its length, up to a comma or the end. `None`: malformed.
    ///
    /// Blanks may stand around the semicolons, which the grammar has not, but some proxies write.
    pub(crate) fn read(text: &'a [u8]) -> Option<(Self, usize)> {
        let mut element = Self::default();
        let mut names: [&[u8]; MAX_PARAMETERS] = [&[]; MAX_PARAMETERS];
        let mut free = 0;
        let mut rest = text;
        loop {
            rest = without_blanks(rest);
            match rest.split_first() {
                None | Some((b',', _)) => return Some((element, text.len() - rest.len())),
                Some((b';', behind)) => {
                    rest = behind;
                    continue;
                }
                Some(_) => {}
            }
            let (name, behind) = token(rest)?;
            let (value, behind) = value(behind.strip_prefix(b"=")?)?;
            rest = without_blanks(behind);
            let ends = matches!(rest.first(), None | Some(b',' | b';'));
            // RFC 7239 §4: each parameter once for each element.
            if !ends || names.iter().take(free).any(|known| known.eq_ignore_ascii_case(name)) {
                return None;
            }
            *names.get_mut(free)? = name;
            free += 1;
            element.set(name, value);
        }
    }

    fn set(&mut self, name: &[u8], value: &'a [u8]) {
        let place = if name.eq_ignore_ascii_case(b"for") {
            &mut self.node
        } else if name.eq_ignore_ascii_case(b"proto") {
            &mut self.proto
        } else if name.eq_ignore_ascii_case(b"host") {
            &mut self.host
        } else {
            return;
        };
        *place = Some(value);
    }

    /// Whether its parameters have the values that they may have.
    pub(crate) fn is_understood(&self) -> bool {
        let is_nobody = |node: &[u8]| short(node, &mut [0; MAX_NODE]).is_some_and(node::is_nobody);
        self.node.is_none_or(|node| self.client().is_some() || is_nobody(node))
            && (self.proto.is_none() || self.secure().is_some())
            && (self.host.is_none() || self.host().is_some())
    }

    /// The address of `for` (§5.2).
    pub(crate) fn client(&self) -> Option<Node> {
        short(self.node?, &mut [0; MAX_NODE]).and_then(node::node)
    }

    /// Whether `proto` (§5.4) is a scheme with TLS.
    pub(crate) fn secure(&self) -> Option<bool> {
        short(self.proto?, &mut [0; MAX_NODE]).and_then(node::is_secure)
    }

    /// The text of `host` (§5.3).
    pub(crate) fn host(&self) -> Option<Vec<u8>> {
        let host: Vec<u8> = unescaped(self.host?).collect();
        is_authority_with_host(&host).then_some(host)
    }
}

/// The last elements of one field, the right-most first, without empty ones (RFC 9110 §5.6.1.2).
///
/// They are read from the left: only so it is known which text stands in quotes. A malformed element ends at its first
/// comma, in quotes or not. So a quote that a client opens and does not close seldom hides the elements of proxies
/// behind it, and never changes their meaning.
pub(crate) fn from_the_right(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut last: [&[u8]; MAX_HOPS] = [&[]; MAX_HOPS];
    let mut count = 0;
    let mut rest = Some(field);
    while let Some(text) = rest {
        let to_comma = || text.iter().position(|byte| *byte == b',').unwrap_or(text.len());
        let length = Element::read(text).map_or_else(to_comma, |(_, length)| length);
        let (element, behind) = text.split_at_checked(length).unwrap_or_default();
        if !element.trim_ascii().is_empty()
            && let Some(place) = last.get_mut(count % MAX_HOPS)
        {
            *place = element;
            count += 1;
        }
        rest = behind.strip_prefix(b",");
    }
    let first = count.saturating_sub(MAX_HOPS);
    (first..count).rev().filter_map(move |number| last.get(number % MAX_HOPS).copied())
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

/// RFC 9110 §5.6.2.
fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let end = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
    text.split_at_checked(end).filter(|(token, _)| !token.is_empty())
}

/// A token, or the content of a quoted string (RFC 9110 §5.6.4), and the text behind it.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(inside) = text.strip_prefix(b"\"") else { return token(text) };
    let mut rest = inside;
    loop {
        rest = match rest {
            [b'"', behind @ ..] => {
                return Some((inside.get(..inside.len() - rest.len())?, behind));
            }
            [b'\\', byte, behind @ ..] if is_text(*byte) => behind,
            [b'\\', ..] => return None,
            [byte, behind @ ..] if is_text(*byte) => behind,
            _ => return None,
        };
    }
}

/// Whether a quoted string may have this byte: no control character but the tab.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

/// A value without the backslashes of its quoted pairs.
fn unescaped(value: &[u8]) -> impl Iterator<Item = u8> {
    let mut escaped = false;
    value.iter().copied().filter(move |byte| {
        escaped = *byte == b'\\' && !escaped;
        !escaped
    })
}

/// The same, of a short value.
fn short<'a>(value: &[u8], memory: &'a mut [u8; MAX_NODE]) -> Option<&'a [u8]> {
    let mut length = 0;
    for byte in unescaped(value) {
        *memory.get_mut(length)? = byte;
        length += 1;
    }
    memory.get(..length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_by_the_grammar() {
        for good in [
            "",
            " ",
            ";",
            ";;for=a",
            "for=a;",
            "For=\"[2001:db8:cafe::17]:4711\"",
            "for=192.0.2.60;proto=http;by=203.0.113.43",
            "for=a ; proto=b\t;host=c ",
            "for=\"\"",
            "x=\"a;b=,\\\"c\\\\\"",
            "for=\"\u{e4}\"",
            "a=1;b=2;c=3;d=4;e=5;f=6;g=7;h=8;i=9;j=10;k=11;l=12;m=13;n=14;o=15;p=16",
        ] {
            assert_eq!(Element::read(good.as_bytes()).map(|(_, length)| length), Some(good.len()), "{good}");
            let longer = format!("{good},\"");
            assert_eq!(Element::read(longer.as_bytes()).map(|(_, length)| length), Some(good.len()));
        }
        for bad in [
            "for",
            "for=",
            "=a",
            "for =a",
            "for= a",
            "for=a b",
            "for=a proto=b",
            "for=192.0.2.1:80",
            "for=[::1]",
            "for=\"a",
            "for=\"a\\",
            "for=\"a\\\"",
            "for=\"a\"b",
            "for=a\"b\"",
            "for=\"a\0\"",
            "for=a;For=b",
            "x=1;for=a;X=2",
            "\"for\"=a",
            "for=\u{e4}",
            "a=1;b=2;c=3;d=4;e=5;f=6;g=7;h=8;i=9;j=10;k=11;l=12;m=13;n=14;o=15;p=16;q=17",
        ] {
            assert_eq!(Element::read(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_last_elements_come_from_the_right() {
        for (field, expected) in [
            ("", &[][..]),
            ("for=a", &["for=a"]),
            ("for=a, for=b", &[" for=b", "for=a"]),
            ("for=\"a,b\",c=d", &["c=d", "for=\"a,b\""]),
            (",for=a, ,", &["for=a"]),
            // A quote that does not belong where it stands hides nothing.
            ("for=\"a, for=b", &[" for=b", "for=\"a"]),
            ("for=\"a, for=\"b\"", &[" for=\"b\"", "for=\"a"]),
            ("for=a\", for=\"b,c\"", &[" for=\"b,c\"", "for=a\""]),
        ] {
            assert_eq!(
                from_the_right(field.as_bytes()).collect::<Vec<_>>(),
                expected.iter().map(|text| text.as_bytes()).collect::<Vec<_>>(),
                "{field}"
            );
        }
        let many = (0..100).map(|number| format!("for={number}")).collect::<Vec<_>>().join(",");
        let last: Vec<&[u8]> = from_the_right(many.as_bytes()).collect();
        assert_eq!((last.len(), last[0], last[63]), (64, &b"for=99"[..], &b"for=36"[..]));
    }
}
