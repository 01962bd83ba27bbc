//! TLS: certificates, tickets, and the server's end of a connection without its socket.

/// What the TLS listeners of a server go by; never changed: a reload puts another one in its place.
#[derive(Debug)]
pub struct Terms {
    _private: (),
}
