//! Fields that a filter removes, sets or adds.

use std::fmt;

use maitred_http::FieldSet;
use maitred_http::fields::{is_token, is_value};

use maitred_match::BadPattern;

/// Changes of the fields of a request or a response: fields are removed first, then set, then added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChanges {
    removed: Vec<String>,
    set: Vec<(String, String)>,
    added: Vec<(String, String)>,
}

/// Whose fields are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A request on its way to the application.
    Request,
    /// A response on its way to the client.
    Response,
}

/// Fields that say where a message ends or belong to the connection (RFC 9110 §7.6.1): the engine's own.
const OF_THE_ENGINE: [&str; 8] = [
    "Connection",
    "Content-Length",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

/// Fields of a request that have been acted on already.
const ACTED_ON: [&str; 2] = ["Expect", "Host"];

impl FieldChanges {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Has all fields of this name removed.
    ///
    /// # Errors
    /// It is no name, or that of a field that is the engine's.
    pub fn remove(&mut self, side: Side, name: &str) -> Result<(), BadPattern> {
        self.removed.push(checked_name(side, name.trim(), name)?);
        Ok(())
    }

    /// Has `Name: value` be the only field of its name.
    ///
    /// # Errors
    /// As [`remove`](Self::remove), or the value is none.
    pub fn set(&mut self, side: Side, field: &str) -> Result<(), BadPattern> {
        self.set.push(parse(side, field)?);
        Ok(())
    }

    /// Has `Name: value` added, besides others of its name.
    pub fn add(&mut self, side: Side, field: &str) -> Result<(), BadPattern> {
        self.added.push(parse(side, field)?);
        Ok(())
    }

    /// The names of removed fields.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        self.removed.iter().map(String::as_str)
    }

    /// The fields that become the only ones of their names, as `Name: value`.
    pub fn set_fields(&self) -> impl Iterator<Item = String> {
        self.set.iter().map(text)
    }

    /// The added fields, as `Name: value`.
    pub fn added(&self) -> impl Iterator<Item = String> {
        self.added.iter().map(text)
    }

    pub(crate) fn apply(&self, fields: &mut FieldSet) {
        for name in &self.removed {
            fields.remove(name);
        }
        // Four gigabytes of fields are the only reason not to.
        for (name, value) in &self.set {
            let _ = fields.set(name, value);
        }
        for (name, value) in &self.added {
            let _ = fields.push(name, value);
        }
    }
}

fn text((name, value): &(String, String)) -> String {
    format!("{name}: {value}")
}

fn parse(side: Side, field: &str) -> Result<(String, String), BadPattern> {
    let Some((name, value)) = field.split_once(':') else {
        return Err(BadPattern::new(format!("the field '{field}' has no ':'"), "write Name: value"));
    };
    let value = value.trim();
    if !is_value(value.as_bytes()) {
        let what = format!("the field '{}' has a value with a control character", field.escape_default());
        return Err(BadPattern::new(what, "leave it out"));
    }
    Ok((checked_name(side, name.trim(), field)?, value.to_owned()))
}

fn checked_name(side: Side, name: &str, field: &str) -> Result<String, BadPattern> {
    if !is_token(name.as_bytes()) {
        let what = format!("'{}' has no name of a field", field.escape_default());
        return Err(BadPattern::new(what, "write letters, digits and '-', such as X-Kind"));
    }
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    let of_request = side == Side::Request && ACTED_ON.iter().any(is);
    if OF_THE_ENGINE.iter().any(is) || of_request {
        let what = format!("the field {name} is the engine's own");
        return Err(BadPattern::new(what, "leave it out"));
    }
    Ok(name.to_owned())
}

impl fmt::Display for FieldChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let removed = self.removed.iter().map(|name| format!("remove {name}"));
        let set = self.set_fields().map(|field| format!("set {field}"));
        let added = self.added().map(|field| format!("add {field}"));
        f.write_str(&removed.chain(set).chain(added).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_removed_first_and_added_last() {
        let mut fields = FieldSet::new();
        for (name, value) in [("X-A", "1"), ("x-a", "2"), ("X-B", "1"), ("X-C", "1")] {
            fields.push(name, value);
        }
        let mut changes = FieldChanges::default();
        assert!(changes.is_empty());
        changes.add(Side::Response, "X-C: 2").expect("right");
        changes.set(Side::Response, "X-A:  3 ").expect("right");
        changes.set(Side::Response, "X-D: ").expect("right");
        changes.remove(Side::Response, "x-b").expect("right");
        changes.apply(&mut fields);
        let all: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii()))
            .collect();
        assert_eq!(all, ["X-A=3", "X-C=1", "X-D=", "X-C=2"]);
        assert_eq!(changes.to_string(), "remove x-b; set X-A: 3; set X-D: ; add X-C: 2");
    }

    #[test]
    fn invalid_fields_and_those_of_the_engine_are_errors() {
        let error =
            |side, field: &str| FieldChanges::default().set(side, field).expect_err(field).to_string();
        assert_eq!(error(Side::Response, "X-A"), "the field 'X-A' has no ':'; write Name: value");
        assert!(error(Side::Response, "X A: 1").contains("has no name of a field"));
        assert!(error(Side::Response, "X-A: a\r\nB: c").contains("a control character"));
        for name in ["content-length", "Connection", "Transfer-Encoding"] {
            for side in [Side::Request, Side::Response] {
                assert!(error(side, &format!("{name}: 1")).contains("is the engine's own"), "{name}");
                assert!(FieldChanges::default().remove(side, name).is_err(), "{name}");
            }
        }
        assert!(error(Side::Request, "host: a").contains("is the engine's own"));
        assert_eq!(FieldChanges::default().set(Side::Response, "Expect: a"), Ok(()));
    }
}
