//! The application's own part of a response head: checked, and rid of what is decided elsewhere.

use maitred_http::ResponseHead;
use maitred_http::fields::{is_token, is_value};

use crate::error::HeadError;
use crate::framing::parse_decimal;
use crate::hop::hop_by_hop;
use crate::write;

/// What the application's fields say about things decided here.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) has_date: bool,
    pub(crate) has_server: bool,
    pub(crate) close: bool,
    pub(crate) length: Option<u64>,
    pub(crate) removed: Vec<&'static str>,
}

/// Appends the status line and the fields that are the application's own.
///
/// # Errors
/// The head cannot be sent; what was appended is to be taken back.
pub(crate) fn write_head(head: &ResponseHead, out: &mut Vec<u8>) -> Result<Found, HeadError> {
    let reason = head.reason.as_deref().unwrap_or_else(|| head.status.reason().as_bytes());
    if head.reason.is_some() && !is_value(reason) {
        return Err(HeadError::InvalidReason);
    }
    write::status_line(head.status, reason, out);
    let mut found = Found::default();
    let checked = head.fields.is_checked();
    for (name, value) in head.fields.iter() {
        if !checked && !is_token(name) {
            return Err(HeadError::InvalidName(name.escape_ascii().to_string()));
        }
        if !checked && !is_value(value) {
            return Err(HeadError::InvalidValue(name.escape_ascii().to_string()));
        }
        if found.note(name, value)? {
            write::field(name, value, out);
        }
    }
    Ok(found)
}

impl Found {
    /// Looks at a field; whether it is sent as it is.
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<bool, HeadError> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        // First letters and length tell nearly all fields apart from those that matter here.
        match (name.first().map(|byte| byte | 0x20), name.len()) {
            (Some(b'd'), 4) if is("date") => self.has_date = true,
            (Some(b's'), 6) if is("server") => self.has_server = true,
            (Some(b'c'), 14) if is("content-length") => {
                self.note_length(value)?;
                return Ok(false);
            }
            (Some(b'c'), 10) if is("connection") && value.eq_ignore_ascii_case(b"close") => {
                self.close = true;
                return Ok(false);
            }
            (Some(b'c' | b'k' | b'p' | b't' | b'u'), _) => {
                if let Some(hop) = hop_by_hop(name) {
                    self.close |= hop == "Connection" && names_close(value);
                    self.removed.push(hop);
                    return Ok(false);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        let length = parse_decimal(value.trim_ascii()).ok_or(HeadError::ContentLength)?;
        if self.length.replace(length).is_some_and(|before| before != length) {
            return Err(HeadError::ContentLength);
        }
        Ok(())
    }
}

fn names_close(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}
