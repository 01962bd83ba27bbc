//! Reading the values of a file: places for errors, and texts.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::options::renamed::Names;
use crate::{Definition, Problem, Source};

/// A file while it is read.
pub(super) struct Reading<'a> {
    /// The name as messages have it.
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) source: fn(String, usize) -> Source,
    /// Earlier names of options.
    pub(super) earlier: Names,
}

impl Reading<'_> {
    fn line(&self, offset: usize) -> usize {
        line_at(self.text.as_bytes(), offset)
    }

    /// The name of the line with this byte, for errors.
    pub(super) fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.name, self.line(offset))
    }

    /// The source of a key or a value at this byte.
    pub(super) fn source(&self, offset: usize) -> Source {
        (self.source)(self.name.to_owned(), self.line(offset))
    }
}

/// The text of a file.
pub(crate) fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(bytes).map_err(|error| {
        let line = line_at(error.as_bytes(), error.utf8_error().valid_up_to());
        Problem::new(format!("{name}:{line}"), "the text is not UTF-8", "save the file as UTF-8")
    })
}

/// The line with this byte, from 1 on.
fn line_at(bytes: &[u8], offset: usize) -> usize {
    1 + bytes[..offset].iter().filter(|byte| **byte == b'\n').count()
}

/// A key or a value, with its span.
pub(super) type Key<'a> = Spanned<Cow<'a, str>>;
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// The entries as they are written.
pub(super) fn in_order<'a, 'b>(table: &'b DeTable<'a>) -> Vec<(&'b Key<'a>, &'b Value<'a>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The offset in the file, the fault, and the remedy.
pub(super) type Wrong = (usize, String, String);

/// The value as it would be written on the command line.
pub(super) fn texts(definition: &Definition, value: &Value<'_>) -> Result<Vec<String>, Wrong> {
    match value.get_ref() {
        DeValue::Array(values) if definition.is_repeatable() => {
            values.iter().map(|value| text(&definition.takes(), value)).collect()
        }
        _ => Ok(vec![text(&definition.takes(), value)?]),
    }
}

/// One value. `takes` says what may be written.
pub(super) fn text(takes: &str, value: &Value<'_>) -> Result<String, Wrong> {
    let at = value.span().start;
    Ok(match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.to_string(),
            Err(_) => number.as_str().to_owned(),
        },
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        other => {
            let what = format!("the value is of the type {}", other.type_str());
            return Err((at, what, format!("expected: {takes}")));
        }
    })
}
