//! Limits on the input of a peer, each with its reason, the source of the number and the answer when it is passed.
//!
//! A value equal to the limit is accepted, one more is refused. The numbers are defaults a protocol
//! crate may lower or raise by its settings; relations between them are checked when this file is
//! compiled.

/// The bytes of a whole message head: request line, field lines and the empty line. Past it: 431.
///
/// Reason: the head is the one part of a request that is kept in memory as a whole before a handler decides whether the
/// request is welcome. Source: between the defaults of the field (h11 and Node.js 16 KiB, nginx 4 buffers of 8 KiB, Go
/// 1 MiB); 64 KiB holds every [`MAX_FIELDS`] of usual length, a full [`MAX_TARGET`] and one very long cookie or ticket
/// together.
pub const MAX_HEAD: usize = 64 * 1024;

/// The bytes of a request target. Past it: 414.
///
/// Source: RFC 9112 §3 recommends that request lines of at least 8,000 octets are supported; the
/// next power of two leaves room for the method and the version.
pub const MAX_TARGET: usize = 8 * 1024;

/// The bytes of a method token. Past it: 501, because no method of that length is known.
///
/// Source: the longest method of the IANA registry is `UPDATEREDIRECTREF` (17); 32 leaves room for
/// private ones.
pub const MAX_METHOD: usize = 32;

/// The number of field lines of a head. Past it: 431.
///
/// Reason: look-up is linear and the parser keeps an array of this size. Source: Apache httpd
/// (`LimitRequestFields`) and hyper take 100, browsers behind several proxies send about 40; the
/// next power of two.
pub const MAX_FIELDS: usize = 128;

/// The bytes of one field line, name and value. Past it: 431.
///
/// Reason: a field that is longer is a fault of its site far more often than an intention, such as a
/// cookie that grows with each visit, and this is said before the head is full. Source: Apache httpd
/// (`LimitRequestFieldSize`), nginx and gunicorn take 8 KiB, which cookies and Kerberos tickets are
/// known to pass; IIS and Node.js take 16 KiB. An application that needs more has the option.
pub const MAX_FIELD_LINE: usize = 16 * 1024;

/// The bytes of one chunk-size line with its extensions, without CR LF (RFC 9112 §7.1). Past it:
/// 400, and the connection closes.
///
/// Reason: extensions are skipped, so a long line is only ever padding. Source: Go takes 4 KiB; no
/// extension of that length is in use.
pub const MAX_CHUNK_LINE: usize = 1024;

/// The bytes of all chunk extensions of one body. Past it: 400, and the connection closes.
///
/// Reason: without it a peer sends a kilobyte of extension per byte of body and never meets the
/// limit on bodies (RFC 9112 §7.1.1 asks for such a limit). Source: hyper's limit, 16 KiB.
pub const MAX_CHUNK_EXTENSIONS: usize = 16 * 1024;

/// The bytes of a trailer section (RFC 9112 §7.1.2). Past it: 431, and the connection closes.
///
/// Reason: trailers are held in memory until they are complete. Source: hyper's limit, 16 KiB.
pub const MAX_TRAILERS: usize = 16 * 1024;

/// The number of trailer fields. Past it: 431, and the connection closes.
///
/// Reason: trailers carry a checksum, a signature, a status, timings; half a head's fields is ample.
pub const MAX_TRAILER_FIELDS: usize = 64;

/// The number of ranges in one `Range` field, counted as they were sent. Past it the field is
/// ignored and the whole representation is sent (RFC 9110 §14.2 allows both).
///
/// Reason: every range is one more part with a head of about 100 bytes and a read of its own.
/// Source: Apache httpd takes 200 (`MaxRanges`) since the range attack CVE-2011-3192; readers of
/// paged documents ask for a few dozen at a time.
pub const MAX_RANGES: usize = 64;

/// The bytes a [`FieldSet`](crate::FieldSet) may hold. Past it a field is not added.
///
/// Source: positions in the buffer are 32 bits wide.
pub const MAX_FIELD_SET: usize = u32::MAX as usize;

// A head holds a full target, and one full field line beside it.
const _: () = assert!(MAX_METHOD + MAX_TARGET + MAX_FIELD_LINE < MAX_HEAD);
// RFC 9112 §3: request lines of 8,000 octets are supported.
const _: () = assert!(MAX_TARGET >= 8_000);
// A head of the most fields leaves each of them a usual length.
const _: () = assert!(MAX_FIELDS * 256 <= MAX_HEAD);
// A trailer section is a small head.
const _: () = assert!(MAX_TRAILERS <= MAX_HEAD && MAX_TRAILER_FIELDS <= MAX_FIELDS);
// A chunk-size line holds the 16 digits of the largest size; several lines fit the body's allowance.
const _: () = assert!(MAX_CHUNK_LINE > 16 && MAX_CHUNK_LINE <= MAX_CHUNK_EXTENSIONS);
// The longest range is two numbers of 20 digits, a hyphen and a comma: the most of them fit a line.
const _: () = assert!(MAX_RANGES * 42 <= MAX_FIELD_LINE);
const _: () = assert!(MAX_HEAD < MAX_FIELD_SET);
