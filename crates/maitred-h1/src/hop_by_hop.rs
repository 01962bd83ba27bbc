//! Fields that belong to the connection or to the framing, not to the application.

/// Fields an application may not set: hop-by-hop (RFC 9110 §7.6.1) or about the framing, which is
/// decided here. `Connection` and `Content-Length` are looked at before they are taken out.
const HOP_BY_HOP: [&str; 10] = [
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Authentication-Info",
    "TE",
    TRAILER,
    "Transfer-Encoding",
    "Upgrade",
];

/// Names the fields behind a body (RFC 9110 §6.6.2). An application may set it that announces them.
pub const TRAILER: &str = "Trailer";

/// The standard spelling of a field that is not sent for an application.
pub fn hop_by_hop(name: &[u8]) -> Option<&'static str> {
    HOP_BY_HOP.into_iter().find(|hop| name.eq_ignore_ascii_case(hop.as_bytes()))
}

/// Whether a trailer of this name could change framing, routing, the request's meaning or its
/// authority after the fact (RFC 9110 §6.5.1).
pub fn is_forbidden_trailer(name: &[u8]) -> bool {
    const FORBIDDEN: [&str; 33] = [
        "content-length",
        "content-encoding",
        "content-type",
        "content-range",
        "host",
        "trailer",
        "te",
        "upgrade",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "expect",
        "max-forwards",
        "cache-control",
        "pragma",
        "range",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "if-range",
        "authorization",
        "www-authenticate",
        "cookie",
        "set-cookie",
        "age",
        "date",
        "expires",
        "location",
        "retry-after",
        "vary",
        "forwarded",
        "via",
    ];
    let starts = |prefix: &str| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    starts("proxy-")
        || starts("x-forwarded-")
        || FORBIDDEN.into_iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden.as_bytes()))
}

/// Whether a value of `Connection` has the option `close` (RFC 9112 §9.6).
pub fn names_close(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}
