//! The answers of a collector: `Export*ServiceResponse` and `google.rpc.Status`, in protobuf or JSON, whatever was asked for.

use serde_json::Value;

use crate::protobuf::{Read, find};

/// Characters of a message that are kept.
const LONGEST: usize = 200;

/// `partial_success`: the number of rejected items and a message.
pub(super) fn partial(body: &[u8]) -> Option<(u64, String)> {
    if let Ok(Value::Object(answer)) = serde_json::from_slice(body) {
        let partial = answer.get("partialSuccess")?;
        let counts = ["rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"];
        let count = counts.into_iter().find_map(|name| match partial.get(name)? {
            Value::String(text) => text.parse().ok(),
            number => number.as_u64(),
        });
        let message = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
        return Some((count.unwrap_or(0), printable(message.as_bytes())));
    }
    let Some(Read::Bytes(partial)) = find(body, 1) else { return None };
    let count = match find(partial, 1) {
        // A negative number is none.
        Some(Read::Number(count)) => i64::try_from(count).unwrap_or(0) as u64,
        _ => 0,
    };
    let message = match find(partial, 2) {
        Some(Read::Bytes(message)) => printable(message),
        _ => String::new(),
    };
    Some((count, message))
}

/// `: MESSAGE` of a refusal; empty if it has none.
pub(super) fn reason(body: &[u8]) -> String {
    let message = match serde_json::from_slice(body) {
        Ok(Value::Object(status)) => {
            printable(status.get("message").and_then(Value::as_str).unwrap_or_default().as_bytes())
        }
        _ => match find(body, 2) {
            Some(Read::Bytes(message)) => printable(message),
            _ if std::str::from_utf8(body).is_ok() => printable(body),
            _ => String::new(),
        },
    };
    if message.is_empty() { message } else { format!(": {message}") }
}

/// The beginning of a text, fit for one line of a log.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text.get(..4 * LONGEST).unwrap_or(text)).into_owned();
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.trim().chars().map(plain).take(LONGEST).collect()
}
