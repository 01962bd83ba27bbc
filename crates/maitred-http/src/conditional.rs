//! Conditional requests (RFC 9110 §13).
//!
//! Decides from the fields of a request and the validators of the selected representation, which
//! exists; for one that does not, `If-Match: *` is the caller's to refuse.

use crate::date;
use crate::fields::FieldSet;
use crate::method::Method;

/// The validators of the selected representation (RFC 9110 §8.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The entity tag as `ETag` says it, with its quotes and with `W/` where it is weak.
    pub etag: Option<&'a str>,
    /// The modification time in seconds since 1970.
    pub last_modified: Option<u64>,
}

/// The verdict about the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Apply the method.
    Proceed {
        /// Whether the `Range` field counts.
        ranges: bool,
    },
    /// Answer 304 with the validators and without content.
    NotModified,
    /// Answer 412.
    PreconditionFailed,
}

/// Evaluates the conditions in the order of RFC 9110 §13.2.2: `If-Match`, else
/// `If-Unmodified-Since`; then `If-None-Match`, else `If-Modified-Since` (GET and HEAD only); then
/// `Range` with `If-Range` (GET only, §14.2).
///
/// - `If-Match` compares strongly, `If-None-Match` weakly; several field lines are one list; a member
///   that is not an entity tag matches nothing; `*` counts only alone.
/// - A date that is not one, several dates, or a representation without a modification time make the
///   date's field count as absent.
/// - `If-Range` holds for a strong entity tag that is equal, or for a date that is exactly the
///   modification time. A representation that may have changed twice within that second has a weak
///   date (§8.8.2.2); only the caller can know and then leaves `last_modified` out.
/// - More than one `Range` line is no valid field, and no range counts.
/// - CONNECT, OPTIONS and TRACE select no representation, so nothing is evaluated (§13.2.1).
pub fn evaluate(method: &Method, fields: &FieldSet, validators: &Validators) -> Verdict {
    if matches!(method, Method::Connect | Method::Options | Method::Trace) {
        return Verdict::Proceed { ranges: false };
    }
    if fields.contains("if-match") {
        if !any_tag(fields, "if-match", validators.etag, strong_match) {
            return Verdict::PreconditionFailed;
        }
    } else if modified_since(fields, "if-unmodified-since", validators) == Some(true) {
        return Verdict::PreconditionFailed;
    }
    let reads = matches!(method, Method::Get | Method::Head);
    if fields.contains("if-none-match") {
        if any_tag(fields, "if-none-match", validators.etag, weak_match) {
            return if reads { Verdict::NotModified } else { Verdict::PreconditionFailed };
        }
    } else if reads && modified_since(fields, "if-modified-since", validators) == Some(false) {
        return Verdict::NotModified;
    }
    Verdict::Proceed { ranges: *method == Method::Get && ranges_count(fields, validators) }
}

/// Whether the `Range` field of a GET counts, as far as `If-Range` is concerned: the last step of [`evaluate`] alone.
pub fn ranges_count(fields: &FieldSet, validators: &Validators) -> bool {
    only(fields, "range").is_some() && if_range(fields, validators)
}

/// The value of a field that stands on one line only.
fn only<'a>(fields: &'a FieldSet, name: &'a str) -> Option<&'a [u8]> {
    let mut values = fields.all(name);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// Whether the representation was modified after the date of this field; `None` where the field does
/// not count.
fn modified_since(fields: &FieldSet, name: &str, validators: &Validators) -> Option<bool> {
    let date = date::parse(only(fields, name)?)?;
    Some(validators.last_modified? > date)
}

/// Whether the ranges count as far as `If-Range` is concerned (RFC 9110 §13.1.5).
fn if_range(fields: &FieldSet, validators: &Validators) -> bool {
    if !fields.contains("if-range") {
        return true;
    }
    let Some(value) = only(fields, "if-range") else { return false };
    match next_tag(value) {
        Some((tag, [])) => validators.etag.is_some_and(|etag| strong_match(tag, etag.as_bytes())),
        Some(_) => false,
        None => date::parse(value).is_some_and(|date| Some(date) == validators.last_modified),
    }
}

/// Whether `*`, or any entity tag of the list, matches.
fn any_tag(fields: &FieldSet, name: &str, etag: Option<&str>, matches: fn(&[u8], &[u8]) -> bool) -> bool {
    if only(fields, name) == Some(b"*") {
        return true;
    }
    let Some(etag) = etag else { return false };
    fields.all(name).any(|line| tags(line).any(|tag| matches(tag, etag.as_bytes())))
}

/// The entity tags of a list. Other text is skipped up to the next comma.
fn tags(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        while let Some(start) = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b',')) {
            let member = rest.get(start..)?;
            let (tag, after) = match next_tag(member) {
                Some((tag, after)) => (Some(tag), after),
                None => (None, member),
            };
            let end = after.iter().position(|byte| *byte == b',').unwrap_or(after.len());
            let (gap, next) = after.split_at_checked(end)?;
            rest = next;
            if tag.is_some() && gap.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
                return tag;
            }
        }
        None
    })
}

/// An entity tag at the start of `bytes` and the rest (RFC 9110 §8.8.3). A search for commas and spaces would not do: a
/// tag may contain them.
fn next_tag(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let weak = if bytes.starts_with(b"W/") { 2 } else { 0 };
    let (b'"', opaque) = bytes.get(weak..)?.split_first()? else { return None };
    let length = opaque.iter().position(|byte| !matches!(byte, 0x21 | 0x23..=0x7e | 0x80..))?;
    (opaque.get(length) == Some(&b'"')).then(|| bytes.split_at_checked(weak + length + 2))?
}

/// Strong comparison (RFC 9110 §8.8.3.2): both strong and equal.
fn strong_match(one: &[u8], other: &[u8]) -> bool {
    one == other && one.starts_with(b"\"")
}

/// Weak comparison: equal but for `W/`.
fn weak_match(one: &[u8], other: &[u8]) -> bool {
    opaque(one) == opaque(other)
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}
