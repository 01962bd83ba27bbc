//! Whether a response may be compressed, and its head then.
//!
//! A response that is compressed for some clients varies (RFC 9110 §12.5.5), and says so to all of them. Fields that
//! depend on the representation change with it: a strong entity tag becomes weak (§8.8.3), the length and the offer of
//! ranges go.

use maitred_http::coding::Coding;
use maitred_http::{FieldSet, RequestHead, ResponseHead, Status};

use crate::CompressionSettings;

/// The meaning of the application's head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Compression has nothing to do with it.
    Apart,
    /// The application asks that it is not compressed, by `Content-Encoding: identity`.
    Refused,
    /// The response may be compressed. The length of its body is known, or not.
    Eligible { length: Option<u64> },
}

/// Looks at a head. `length` is that of the body where it is known otherwise than by `Content-Length`.
pub(crate) fn look_at(settings: &CompressionSettings, head: &ResponseHead, length: Option<u64>) -> Finding {
    let forbids = head.status.forbids_body() || head.status == Status::PARTIAL_CONTENT;
    if forbids || head.status.code() < 200 {
        return Finding::Apart;
    }
    let (mut has_type, mut length, mut refused) = (false, length, false);
    for (name, value) in head.fields.iter() {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            // Of several types the last one counts in most clients; RFC 9110 §8.3 allows one.
            12 if is("content-type") => has_type = settings.has_type(value),
            16 if is("content-encoding") => match value.trim_ascii().eq_ignore_ascii_case(b"identity") {
                true => refused = true,
                false => return Finding::Apart,
            },
            13 if is("cache-control") && has_token(value, b"no-transform") => return Finding::Apart,
            // Digests are of the bytes that are sent (RFC 9530 §2 and §3).
            6 if is("digest") => return Finding::Apart,
            11 if is("repr-digest") || is("content-md5") => return Finding::Apart,
            14 if is("content-digest") => return Finding::Apart,
            13 if is("content-range") => return Finding::Apart,
            14 if is("content-length") => length = length.or_else(|| decimal(value)),
            _ => {}
        }
    }
    if refused {
        Finding::Refused
    } else if has_type && length.is_none_or(|length| length >= settings.min_length.max(1)) {
        Finding::Eligible { length }
    } else {
        Finding::Apart
    }
}

/// The length that a `Content-Length` says.
pub fn decimal(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value.trim_ascii()).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Whether a token is in a list (RFC 9110 §5.6.1), compared without case.
fn has_token(list: &[u8], token: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|member| member.trim_ascii().eq_ignore_ascii_case(token))
}

/// The head without the application's wish, which is no coding and not to be sent (RFC 9110 §8.4.1).
pub(crate) fn without_wish(head: &ResponseHead) -> ResponseHead {
    let mut head = head.clone();
    head.fields.remove("Content-Encoding");
    head
}

/// The head of a response that could have been compressed.
pub(crate) fn varying(head: &ResponseHead) -> ResponseHead {
    let mut head = head.clone();
    vary(&mut head.fields);
    head
}

/// The head of a response that is compressed. `None`: it is too long for that.
pub(crate) fn compressed(head: &ResponseHead, coding: Coding) -> Option<ResponseHead> {
    let mut head = varying(head);
    let token = coding.token()?;
    head.fields.remove("Content-Length");
    head.fields.remove("Accept-Ranges");
    weaken(&mut head.fields);
    head.fields.push("Content-Encoding", token).then_some(head)
}

/// Adds `Accept-Encoding` to `Vary`, in one line: some caches read only one.
fn vary(fields: &mut FieldSet) {
    let mut all = fields.all("vary").collect::<Vec<_>>().join(&b", "[..]);
    if has_token(&all, b"*") || has_token(&all, b"accept-encoding") {
        return;
    }
    if !all.is_empty() {
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(b"Accept-Encoding");
    fields.set("Vary", all);
}

/// Makes a strong entity tag weak.
fn weaken(fields: &mut FieldSet) {
    let weak = fields.first("etag").filter(|tag| tag.starts_with(b"\"")).map(|tag| [b"W/", tag].concat());
    if let Some(weak) = weak {
        fields.set("ETag", weak);
    }
}

/// The head of a 304 for a client that has a compressed form: the application sends the strong tag that it knows, and
/// the client's cache finds no response by it, because it has the weak one (RFC 9111 §4.3.4). `None`: leave it as it
/// is.
pub(crate) fn not_modified(request: &RequestHead, head: &ResponseHead) -> Option<ResponseHead> {
    let tag = head.fields.first("etag").filter(|tag| tag.starts_with(b"\""))?;
    let named = |wanted: &[u8]| {
        request.fields.all("if-none-match").any(|list| {
            let starts = list.windows(wanted.len()).enumerate().filter(|(_, part)| *part == wanted);
            // A tag begins at the start of a member: `W/"a"` is not `"a"`.
            starts.into_iter().any(|(at, _)| at == 0 || matches!(list[at - 1], b' ' | b'\t' | b','))
        })
    };
    if !named(&[b"W/", tag].concat()) || named(tag) {
        return None;
    }
    let mut head = varying(head);
    weaken(&mut head.fields);
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> ResponseHead {
        fields.iter().fold(ResponseHead::new(Status::OK), |head, (name, value)| head.with(name, value))
    }

    fn finding(fields: &[(&str, &str)], length: Option<u64>) -> Finding {
        look_at(&CompressionSettings::default(), &head(fields), length)
    }

    const TEXT: (&str, &str) = ("Content-Type", "text/plain; charset=utf-8");

    #[test]
    fn long_texts_and_streams_of_text_may_be_compressed() {
        let eligible = |length| Finding::Eligible { length };
        assert_eq!(finding(&[TEXT], Some(1024)), eligible(Some(1024)));
        assert_eq!(finding(&[TEXT], None), eligible(None));
        assert_eq!(finding(&[TEXT, ("Content-Length", "5000")], None), eligible(Some(5000)));
        assert_eq!(finding(&[TEXT, ("cache-control", "max-age=3, public")], None), eligible(None));
    }

    #[test]
    fn short_bodies_other_types_and_encoded_ones_are_left_alone() {
        for (fields, length) in [
            (&[TEXT][..], Some(1023)),
            (&[TEXT], Some(0)),
            (&[TEXT, ("Content-Length", "1023")], None),
            (&[], None),
            (&[("Content-Type", "image/png")], None),
            (&[TEXT, ("Content-Encoding", "gzip")], None),
            (&[TEXT, ("content-encoding", "identity"), ("Content-Encoding", "br")], None),
            (&[TEXT, ("Content-Range", "bytes 0-4/5")], None),
            (&[TEXT, ("Cache-Control", "public, No-Transform")], None),
            (&[TEXT, ("Content-Digest", "sha-256=:AA==:")], None),
            (&[TEXT, ("Repr-Digest", "sha-256=:AA==:")], None),
            (&[TEXT, ("Digest", "sha-256=AA==")], None),
            (&[TEXT, ("Content-MD5", "AA==")], None),
        ] {
            assert_eq!(finding(fields, length), Finding::Apart, "{fields:?} {length:?}");
        }
        for status in [Status::NO_CONTENT, Status::NOT_MODIFIED, Status::PARTIAL_CONTENT] {
            let head = ResponseHead { status, ..head(&[TEXT]) };
            assert_eq!(look_at(&CompressionSettings::default(), &head, None), Finding::Apart, "{status:?}");
        }
    }

    #[test]
    fn an_application_can_refuse() {
        let fields = [TEXT, ("Content-Encoding", "Identity")];
        assert_eq!(finding(&fields, None), Finding::Refused);
        assert!(!without_wish(&head(&fields)).fields.contains("content-encoding"));
    }

    #[test]
    fn a_compressed_form_has_a_head_of_its_own() {
        let plain = head(&[
            TEXT,
            ("ETag", "\"a\""),
            ("Accept-Ranges", "bytes"),
            ("Content-Length", "5000"),
            ("Vary", "Cookie"),
            ("Vary", "Origin"),
        ]);
        let coded = compressed(&plain, Coding::Zstd).expect("short").fields;
        let all: Vec<(String, String)> = coded
            .iter()
            .map(|(name, value)| [name, value].map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
            .map(|[name, value]| (name, value))
            .collect();
        let expected = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("ETag", "W/\"a\""),
            ("Vary", "Cookie, Origin, Accept-Encoding"),
            ("Content-Encoding", "zstd"),
        ];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_head_that_varies_or_is_weak_already_stays_so() {
        for vary in ["*", "accept-encoding", "Cookie, Accept-Encoding"] {
            let fields = compressed(&head(&[("Vary", vary), ("ETag", "W/\"a\"")]), Coding::Gzip)
                .expect("short")
                .fields;
            assert_eq!(fields.all("vary").collect::<Vec<_>>(), [vary.as_bytes()]);
            assert_eq!(fields.first("etag"), Some(&b"W/\"a\""[..]));
        }
    }

    #[test]
    fn a_304_says_the_tag_that_the_client_has() {
        let answer = ResponseHead::new(Status::NOT_MODIFIED).with("ETag", "\"a\"");
        for (asked, expected) in [
            ("W/\"a\"", Some("W/\"a\"")),
            ("\"b\", W/\"a\"", Some("W/\"a\"")),
            ("\"a\"", None),
            ("W/\"a\", \"a\"", None),
            ("W/\"ab\"", None),
            ("*", None),
        ] {
            let mut request = RequestHead::default();
            request.fields.push("If-None-Match", asked);
            let changed = not_modified(&request, &answer);
            let tag = changed.as_ref().map(|head| head.fields.first("etag").unwrap_or_default());
            assert_eq!(tag, expected.map(str::as_bytes), "{asked}");
            assert!(changed.is_none_or(|head| head.fields.contains("vary")));
        }
    }
}
