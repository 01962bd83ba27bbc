//! The wire format of Protocol Buffers, as far as OTLP needs it: fields are written, and the answers of a collector read.

use crate::writer::{Field, Writer};

/// Wire types (<https://protobuf.dev/programming-guides/encoding/>).
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// Appends fields.
pub(crate) struct Protobuf<'a>(pub(crate) &'a mut Vec<u8>);

impl Protobuf<'_> {
    fn tag(&mut self, field: Field, kind: u32) {
        varint(self.0, u64::from(field.0 << 3 | kind));
    }

    /// Writes a field with its length before it.
    fn long(&mut self, field: Field, content: impl FnOnce(&mut Self)) {
        self.tag(field, BYTES);
        let start = self.0.len();
        // Most are below 128 bytes, whose length is one byte.
        self.0.push(0);
        content(self);
        let length = self.0.len() - start - 1;
        match self.0.get_mut(start) {
            Some(place) if length < 128 => *place = length as u8,
            _ => {
                let mut prefix = Vec::with_capacity(5);
                varint(&mut prefix, length as u64);
                self.0.splice(start..=start, prefix);
            }
        }
    }
}

impl Writer for Protobuf<'_> {
    fn item(&mut self, content: impl FnOnce(&mut Self)) {
        self.long(Field(2, ""), content);
    }

    fn message(&mut self, field: Field, content: impl FnOnce(&mut Self)) {
        self.long(field, content);
    }

    fn messages<T>(&mut self, field: Field, items: impl Iterator<Item = T>, each: impl Fn(&mut Self, T)) {
        for item in items {
            self.long(field, |writer| each(writer, item));
        }
    }

    fn written(&mut self, _: Field, items: &[u8]) {
        self.0.extend_from_slice(items);
    }

    fn text(&mut self, field: Field, text: &[u8]) {
        self.long(field, |writer| match std::str::from_utf8(text) {
            Ok(_) => writer.0.extend_from_slice(text),
            Err(_) => writer.0.extend_from_slice(String::from_utf8_lossy(text).as_bytes()),
        });
    }

    fn id(&mut self, field: Field, id: &[u8]) {
        self.long(field, |writer| writer.0.extend_from_slice(id));
    }

    fn bool(&mut self, field: Field, value: bool) {
        self.small(field, value.into());
    }

    fn small(&mut self, field: Field, value: u32) {
        self.tag(field, VARINT);
        varint(self.0, value.into());
    }

    fn fixed32(&mut self, field: Field, value: u32) {
        self.tag(field, FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn signed(&mut self, field: Field, value: i32) {
        self.small(field, (value << 1 ^ value >> 31) as u32);
    }

    fn integer(&mut self, field: Field, value: i64) {
        self.tag(field, VARINT);
        varint(self.0, value as u64);
    }

    fn fixed_integer(&mut self, field: Field, value: i64) {
        self.fixed64(field, value as u64);
    }

    fn fixed64(&mut self, field: Field, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn double(&mut self, field: Field, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    fn fixed64s(&mut self, field: Field, values: &[u64]) {
        self.long(field, |writer| {
            values.iter().for_each(|value| writer.0.extend_from_slice(&value.to_le_bytes()));
        });
    }

    fn varints(&mut self, field: Field, values: &[u64]) {
        self.long(field, |writer| values.iter().for_each(|value| varint(writer.0, *value)));
    }

    fn doubles(&mut self, field: Field, values: &[f64]) {
        self.long(field, |writer| {
            values.iter().for_each(|value| writer.0.extend_from_slice(&value.to_le_bytes()));
        });
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field of a message that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The last field with this number; none, too, if the message is broken before it.
pub(crate) fn find(mut message: &[u8], number: u64) -> Option<Read<'_>> {
    let mut found = None;
    while !message.is_empty() {
        let Some((tag, read)) = field(&mut message) else { break };
        if tag >> 3 == number {
            found = Some(read);
        }
    }
    found
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Read<'a>)> {
    let tag = take_varint(rest)?;
    let read = match (tag & 7) as u32 {
        VARINT => Read::Number(take_varint(rest)?),
        FIXED64 => Read::Bytes(take(rest, 8)?),
        FIXED32 => Read::Bytes(take(rest, 4)?),
        BYTES => {
            let length = take_varint(rest)?;
            Read::Bytes(take(rest, usize::try_from(length).ok()?)?)
        }
        _ => return None,
    };
    Some((tag, read))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let [byte] = *take(rest, 1)? else { return None };
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}
