//! OTLP/JSON: the JSON of Protocol Buffers, but ids as digits and enumerations as numbers.

use std::io::Write;

use maitred_http::trace::Hex;

use crate::writer::{Field, Writer};

/// Appends members to an object.
pub(crate) struct Json<'a>(pub(crate) &'a mut Vec<u8>);

impl Json<'_> {
    fn separate(&mut self) {
        if !matches!(self.0.last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push(b',');
        }
    }

    fn key(&mut self, field: Field) -> &mut Vec<u8> {
        self.separate();
        let _ = write!(self.0, "\"{}\":", field.1);
        self.0
    }

    fn plain(&mut self, field: Field, value: impl std::fmt::Display) {
        let _ = write!(self.key(field), "{value}");
    }

    /// A number of 64 bits is a string: those of JavaScript have 53.
    fn quoted(&mut self, field: Field, value: impl std::fmt::Display) {
        let _ = write!(self.key(field), "\"{value}\"");
    }

    fn list<T>(&mut self, field: Field, items: impl Iterator<Item = T>, each: impl Fn(&mut Self, T)) {
        self.key(field).push(b'[');
        for item in items {
            self.separate();
            each(self, item);
        }
        self.0.push(b']');
    }

    fn object(&mut self, content: impl FnOnce(&mut Self)) {
        self.0.push(b'{');
        content(self);
        self.0.push(b'}');
    }

    fn number(&mut self, value: f64) {
        let _ = match value {
            value if value.is_finite() => write!(self.0, "{value}"),
            value if value.is_nan() => write!(self.0, "\"NaN\""),
            value => write!(self.0, "\"{}Infinity\"", if value < 0.0 { "-" } else { "" }),
        };
    }
}

impl Writer for Json<'_> {
    fn item(&mut self, content: impl FnOnce(&mut Self)) {
        self.object(content);
    }

    fn message(&mut self, field: Field, content: impl FnOnce(&mut Self)) {
        self.key(field);
        self.object(content);
    }

    fn messages<T>(&mut self, field: Field, items: impl Iterator<Item = T>, each: impl Fn(&mut Self, T)) {
        self.list(field, items, |writer, item| writer.object(|writer| each(writer, item)));
    }

    fn written(&mut self, field: Field, items: &[u8]) {
        self.key(field).push(b'[');
        self.0.extend_from_slice(items);
        self.0.push(b']');
    }

    fn text(&mut self, field: Field, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let out = self.key(field);
        // Writing to memory does not fail, and a text has no key that could be wrong.
        let _ = serde_json::to_writer(out, &text);
    }

    fn id(&mut self, field: Field, id: &[u8]) {
        let out = self.key(field);
        out.push(b'"');
        Hex(id).push(out);
        out.push(b'"');
    }

    fn bool(&mut self, field: Field, value: bool) {
        self.plain(field, value);
    }

    fn small(&mut self, field: Field, value: u32) {
        self.plain(field, value);
    }

    fn fixed32(&mut self, field: Field, value: u32) {
        self.plain(field, value);
    }

    fn signed(&mut self, field: Field, value: i32) {
        self.plain(field, value);
    }

    fn integer(&mut self, field: Field, value: i64) {
        self.quoted(field, value);
    }

    fn fixed_integer(&mut self, field: Field, value: i64) {
        self.quoted(field, value);
    }

    fn fixed64(&mut self, field: Field, value: u64) {
        self.quoted(field, value);
    }

    fn double(&mut self, field: Field, value: f64) {
        self.key(field);
        self.number(value);
    }

    fn fixed64s(&mut self, field: Field, values: &[u64]) {
        self.list(field, values.iter(), |writer, value| drop(write!(writer.0, "\"{value}\"")));
    }

    fn varints(&mut self, field: Field, values: &[u64]) {
        self.fixed64s(field, values);
    }

    fn doubles(&mut self, field: Field, values: &[f64]) {
        self.list(field, values.iter(), |writer, value| writer.number(*value));
    }
}
