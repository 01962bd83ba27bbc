//! The field set (A5): an ordered multi-map of names and values in one contiguous buffer.
//!
//! Two allocations hold any number of fields: the bytes, and one 16-byte entry of 32-bit offsets
//! per field. Both start large enough for a small head and double from there, so that a usual head
//! costs four allocations, two where the caller reserves, and none in a set that is used again:
//! clearing keeps the memory. Look-up compares names without regard to ASCII case and walks the
//! entries in order. Used for header fields, query and form fields and configuration values.
//!
//! Leaves out: the valid content of a name or a value (the protocol crates check that), and giving back the bytes of
//! single fields: the bytes of a removed or replaced field stay in the buffer until the set is cleared.

use std::fmt;

/// The bytes of the buffer when the first field comes: ten fields of a usual head.
const FIRST_BYTES: usize = 512;
/// The entries when the first field comes.
const FIRST_FIELDS: usize = 16;

/// One name and one value as positions in the buffer.
#[derive(Clone, Copy)]
struct Entry {
    name: Span,
    value: Span,
}

/// A position in the buffer of a [`FieldSet`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Span {
    start: u32,
    length: u32,
}

/// An ordered multi-map with case-insensitive names in one contiguous buffer.
#[derive(Clone, Default)]
pub struct FieldSet {
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    /// A field came otherwise than by `push_checked`.
    unchecked: bool,
}

/// Why a field is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidField {
    /// The name is not a token (RFC 9110 §5.6.2).
    Name,
    /// The value has a control character other than the tab (RFC 9110 §5.5).
    Value,
    /// The set would pass [`MAX_FIELD_SET`](crate::limits::MAX_FIELD_SET).
    Size,
}

impl FieldSet {
    /// An empty set that owns no memory yet.
    pub const fn new() -> Self {
        Self { buffer: Vec::new(), entries: Vec::new(), unchecked: false }
    }

    /// An empty set with room for `fields` fields of `bytes` bytes together, names and values.
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        Self { buffer: Vec::with_capacity(bytes), entries: Vec::with_capacity(fields), unchecked: false }
    }

    /// Makes room for `fields` more fields of `bytes` bytes together.
    pub fn reserve(&mut self, fields: usize, bytes: usize) {
        self.buffer.reserve(bytes);
        self.entries.reserve(fields);
    }

    /// Removes all fields and keeps the memory for the next use. Spans of this set are void then.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.entries.clear();
        self.unchecked = false;
    }

    /// Keeps the first `fields` fields. Adopted bytes stay, and so does the memory.
    pub fn truncate(&mut self, fields: usize) {
        self.entries.truncate(fields);
    }

    /// The number of fields, duplicates counted.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of memory this set owns, used or not. 0 for a set that never held anything.
    pub fn memory(&self) -> usize {
        self.buffer.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// The bytes the buffer holds: names, values and adopted bytes, also those of fields that were
    /// removed or replaced.
    pub fn used(&self) -> usize {
        self.buffer.len()
    }

    /// Appends a field; an equal name that is there already stays. Spaces around the value are no part
    /// of it (RFC 9110 section 5.5). A field that would take the buffer past
    /// [`MAX_FIELD_SET`](crate::limits::MAX_FIELD_SET) is not added and `false` is returned.
    pub fn push(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> bool {
        self.unchecked = true;
        self.append(name.as_ref(), value.as_ref())
    }

    /// Appends a field that can be sent as it is.
    ///
    /// # Errors
    /// It cannot; nothing was appended.
    pub fn push_checked(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidField> {
        if !is_token(name) {
            return Err(InvalidField::Name);
        }
        if !is_value(value) {
            return Err(InvalidField::Value);
        }
        if self.append(name, value) { Ok(()) } else { Err(InvalidField::Size) }
    }

    /// Whether every field came by [`push_checked`](Self::push_checked).
    pub fn is_checked(&self) -> bool {
        !self.unchecked
    }

    fn append(&mut self, name: &[u8], value: &[u8]) -> bool {
        // HTTP/2 forbids them (RFC 9113 section 8.2.1), and Django begins Set-Cookie with one.
        let value = trimmed(value);
        let Some((name_span, value_span)) = Span::pair(self.buffer.len(), name.len(), value.len()) else {
            return false;
        };
        self.start(name.len().saturating_add(value.len()));
        self.buffer.extend_from_slice(name);
        self.buffer.extend_from_slice(value);
        self.entries.push(Entry { name: name_span, value: value_span });
        true
    }

    /// Makes `value` the only value of `name`: the first field of this name gets it, in its place and
    /// spelling, further ones are removed; without one it is appended. `false`, and nothing is
    /// changed, past [`MAX_FIELD_SET`](crate::limits::MAX_FIELD_SET).
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) -> bool {
        let value = trimmed(value.as_ref());
        let Some(place) = self.entries.iter().position(|entry| self.is_named(entry, name)) else {
            return self.push(name, value);
        };
        self.unchecked = true;
        // Always at the end: the old value's bytes may be those of another span, too.
        let Some(span) = self.adopt(value) else { return false };
        let mut index = 0;
        let buffer = &self.buffer;
        self.entries.retain_mut(|entry| {
            let keeps = index <= place || !entry.name.of(buffer).eq_ignore_ascii_case(name.as_bytes());
            if index == place {
                entry.value = span;
            }
            index += 1;
            keeps
        });
        true
    }

    /// Appends a field unless one of this name is there; whether it was appended.
    pub fn push_missing(&mut self, name: &str, value: impl AsRef<[u8]>) -> bool {
        !self.contains(name) && self.push(name, value)
    }

    /// Copies `bytes` into the buffer without making a field of them and returns where they stand.
    /// A protocol crate adopts a whole head this way and then names its fields with
    /// [`push_spans`](Self::push_spans), one copy for all of them. `None` past
    /// [`MAX_FIELD_SET`](crate::limits::MAX_FIELD_SET).
    pub fn adopt(&mut self, bytes: &[u8]) -> Option<Span> {
        let span = Span::at(self.buffer.len(), bytes.len())?;
        self.start(bytes.len());
        self.buffer.extend_from_slice(bytes);
        Some(span)
    }

    /// The first reservation of a set that owns no memory, so that it does not grow from 8 bytes.
    fn start(&mut self, bytes: usize) {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(bytes.max(FIRST_BYTES));
        }
        if self.entries.capacity() == 0 {
            self.entries.reserve_exact(FIRST_FIELDS);
        }
    }

    /// Appends a field whose name and value stand in adopted bytes already. A span that is not of
    /// this set reads as empty.
    pub fn push_spans(&mut self, name: Span, value: Span) {
        self.unchecked = true;
        self.entries.push(Entry { name, value });
    }

    /// The bytes at `span`; empty when the span is not of this set.
    pub fn bytes(&self, span: Span) -> &[u8] {
        span.of(&self.buffer)
    }

    /// The first value of `name`.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.entries.iter().find(|entry| self.is_named(entry, name)).map(|entry| self.bytes(entry.value))
    }

    fn is_named(&self, entry: &Entry, name: &str) -> bool {
        entry.name.length as usize == name.len()
            && self.bytes(entry.name).eq_ignore_ascii_case(name.as_bytes())
    }

    /// Every value of `name`, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.entries
            .iter()
            .filter(move |entry| self.is_named(entry, name))
            .map(|entry| self.bytes(entry.value))
    }

    /// Whether a field of this name is there.
    pub fn contains(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// All fields in order, names as they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> + '_ {
        self.entries.iter().map(|entry| (self.bytes(entry.name), self.bytes(entry.value)))
    }

    /// Keeps the fields whose names `keeps` says. The bytes of the others stay in the buffer until the set is cleared.
    pub fn retain(&mut self, mut keeps: impl FnMut(&[u8]) -> bool) {
        let buffer = &self.buffer;
        self.entries.retain(|entry| keeps(entry.name.of(buffer)));
    }

    /// Removes every field of this name and returns how many there were. Their bytes stay in the
    /// buffer until the set is cleared.
    pub fn remove(&mut self, name: &str) -> usize {
        let before = self.entries.len();
        let buffer = &self.buffer;
        self.entries.retain(|entry| !entry.name.of(buffer).eq_ignore_ascii_case(name.as_bytes()));
        before - self.entries.len()
    }
}

impl Span {
    /// `length` bytes from `start`; `None` where the end does not fit 32 bits.
    fn at(start: usize, length: usize) -> Option<Self> {
        let (start, length) = (u32::try_from(start).ok()?, u32::try_from(length).ok()?);
        start.checked_add(length)?;
        Some(Self { start, length })
    }

    /// A name from `start` and its value directly behind it.
    fn pair(start: usize, name: usize, value: usize) -> Option<(Self, Self)> {
        Some((Self::at(start, name)?, Self::at(start.checked_add(name)?, value)?))
    }

    fn of(self, buffer: &[u8]) -> &[u8] {
        let start = self.start as usize;
        let end = start.saturating_add(self.length as usize);
        buffer.get(start..end).unwrap_or_default()
    }

    /// The part of this span from `start`, `length` bytes long; empty where it would leave the span.
    pub fn part(self, start: usize, length: usize) -> Span {
        match start.checked_add(length) {
            Some(end) if end <= self.length as usize => {
                Span { start: self.start + start as u32, length: length as u32 }
            }
            _ => Span::default(),
        }
    }

    /// The number of bytes.
    pub fn len(self) -> usize {
        self.length as usize
    }

    /// Whether the span is empty.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// Whether `name` is a token (RFC 9110 §5.6.2).
pub fn is_token(name: &[u8]) -> bool {
    let is_usual = |byte: u8| (byte | 0x20).is_ascii_lowercase() | (byte == b'-');
    // Without a way out in the middle the compiler takes many bytes at a time.
    let usual = name.iter().fold(true, |all, byte| all & is_usual(*byte));
    !name.is_empty() && (usual || name.iter().all(|byte| is_token_byte(*byte)))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A value without the spaces and tabs around it.
fn trimmed(value: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let (Some(first), Some(last)) =
        (value.iter().position(|byte| !is_space(byte)), value.iter().rposition(|byte| !is_space(byte)))
    else {
        return &[];
    };
    value.get(first..=last).unwrap_or_default()
}

/// Whether `value` has no control character but the tab (RFC 9110 §5.5).
pub fn is_value(value: &[u8]) -> bool {
    let is_control = |byte: u8| ((byte < 0x20) & (byte != b'\t')) | (byte == 0x7f);
    !value.iter().fold(false, |any, byte| any | is_control(*byte))
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(n, v)| (String::from_utf8_lossy(n), String::from_utf8_lossy(v))))
            .finish()
    }
}

#[cfg(test)]
mod tests;
