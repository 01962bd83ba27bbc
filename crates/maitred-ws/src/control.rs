//! The payload of control frames, which is short enough to be kept in place.

/// The most bytes in the payload of a control frame (RFC 6455 §5.5).
pub(crate) const MAX_CONTROL: usize = 125;

/// The payload of a control frame, at most 125 bytes, without allocation.
#[derive(Clone, Copy)]
pub struct Control {
    bytes: [u8; MAX_CONTROL],
    length: u8,
}

impl Control {
    pub(crate) const EMPTY: Self = Self { bytes: [0; MAX_CONTROL], length: 0 };

    /// The payload, unmasked.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..usize::from(self.length)).unwrap_or_default()
    }

    /// Appends bytes up to the end of the room; the rest is dropped.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let room = self.bytes.iter_mut().skip(usize::from(self.length));
        for (place, byte) in room.zip(bytes) {
            *place = *byte;
            self.length += 1;
        }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_bytes().escape_ascii().to_string())
    }
}

impl PartialEq for Control {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Control {}

/// The reason in a close frame: UTF-8, at most 123 bytes, without allocation. The peer chooses it; it may hold control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(Control);

impl Reason {
    /// `None` if it is not UTF-8.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        str::from_utf8(text).ok()?;
        let mut kept = Control::EMPTY;
        kept.append(text);
        Some(Self(kept))
    }

    /// The text; empty if the peer gave none.
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.0.as_bytes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_room_are_dropped() {
        let mut control = Control::EMPTY;
        control.append(b"Hel");
        control.append(b"lo");
        assert_eq!(control.as_bytes(), b"Hello");
        control.append(&[b'x'; 200]);
        assert_eq!(control.as_bytes().len(), MAX_CONTROL);
    }

    #[test]
    fn payloads_are_equal_by_their_content() {
        let (mut one, mut other) = (Control::EMPTY, Control::EMPTY);
        one.append(b"a");
        assert_ne!(one, other);
        other.append(b"a");
        assert_eq!(one, other);
        assert_eq!(format!("{one:?}"), "\"a\"");
    }

    #[test]
    fn a_reason_is_utf8() {
        assert_eq!(Reason::new("é".as_bytes()).expect("UTF-8").as_str(), "é");
        assert_eq!(Reason::new(b"\xc3"), None);
    }
}
