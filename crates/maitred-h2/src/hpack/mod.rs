//! HPACK (RFC 7541): the compression of header fields.
