//! HTTP/1 connection state machine: bytes in, events out; commands in, bytes out.
