//! The field set (A5): an ordered multi-map of names and values in one contiguous buffer.
//!
//! Two allocations hold any number of fields: the bytes, and one 16-byte entry of 32-bit offsets
//! per field. Both are kept when the set is cleared, so a set that is used again allocates nothing.
//! Look-up compares names without regard to ASCII case. Used for header fields, query and form
//! fields and configuration values.

use std::fmt;

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
}

impl FieldSet {
    /// An empty set that owns no memory yet.
    pub const fn new() -> Self {
        Self { buffer: Vec::new(), entries: Vec::new() }
    }

    /// Removes all fields and keeps the memory for the next use.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.entries.clear();
    }

    /// The number of fields, duplicates counted.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a field; an equal name that is there already stays. A field that would take the
    /// buffer past 4 GiB is not added and `false` is returned.
    pub fn push(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> bool {
        let (name, value) = (name.as_ref(), value.as_ref());
        let start = self.buffer.len();
        let Some(end) = start.checked_add(name.len()).and_then(|n| n.checked_add(value.len())) else {
            return false;
        };
        if u32::try_from(end).is_err() {
            return false;
        }
        self.buffer.extend_from_slice(name);
        self.buffer.extend_from_slice(value);
        self.entries.push(Entry {
            name: Span { start: start as u32, length: name.len() as u32 },
            value: Span { start: (start + name.len()) as u32, length: value.len() as u32 },
        });
        true
    }

    /// Copies `bytes` into the buffer without making a field of them and returns where they stand.
    /// A protocol crate adopts a whole head this way and then names its fields with
    /// [`push_spans`](Self::push_spans), one copy for all of them. `None` past 4 GiB.
    pub fn adopt(&mut self, bytes: &[u8]) -> Option<Span> {
        let start = u32::try_from(self.buffer.len()).ok()?;
        let length = u32::try_from(bytes.len()).ok()?;
        start.checked_add(length)?;
        self.buffer.extend_from_slice(bytes);
        Some(Span { start, length })
    }

    /// Appends a field whose name and value stand in adopted bytes already.
    pub fn push_spans(&mut self, name: Span, value: Span) {
        self.entries.push(Entry { name, value });
    }

    /// The bytes at `span`; empty when the span is not of this set.
    pub fn bytes(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        self.buffer.get(start..start + span.length as usize).unwrap_or_default()
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

    /// Removes every field of this name and returns how many there were. Their bytes stay in the
    /// buffer until the set is cleared.
    pub fn remove(&mut self, name: &str) -> usize {
        let before = self.entries.len();
        let buffer = &self.buffer;
        self.entries.retain(|entry| {
            let start = entry.name.start as usize;
            let bytes = buffer.get(start..start + entry.name.length as usize).unwrap_or_default();
            !bytes.eq_ignore_ascii_case(name.as_bytes())
        });
        before - self.entries.len()
    }
}

impl Span {
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

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(n, v)| (String::from_utf8_lossy(n), String::from_utf8_lossy(v))))
            .finish()
    }
}
