//! permessage-deflate (RFC 7692): the agreed parameters, and messages compressed and inflated.

mod compressor;
mod inflater;
mod offer;

pub use compressor::Compressor;
pub(crate) use inflater::Inflater;
pub use offer::negotiate;

use std::fmt::Write;

/// The settings of this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflateSettings {
    /// The largest window, as the power of two of its bytes, for both directions: 9 to 15; a value outside counts as
    /// the nearest one. A client that does not offer `client_max_window_bits` uses 15 for its messages.
    pub max_window_bits: u8,
    /// Whether a message may refer to those before it. It is compressed better then, and each connection keeps the memory for it
    /// ([`Deflate::memory`]).
    pub takeover: bool,
}

/// The parameters that both sides have agreed on (RFC 7692 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deflate {
    /// Our messages may refer to earlier ones.
    pub server_takeover: bool,
    /// The client's messages may refer to earlier ones.
    pub client_takeover: bool,
    /// The window of our messages, as the power of two of its bytes: 9 to 15.
    pub server_bits: u8,
    /// The window of the client's messages, as the power of two of its bytes: 8 to 15.
    pub client_bits: u8,
    /// The client has named a window for us, so that the response has to.
    names_server_bits: bool,
}

impl Deflate {
    /// The value of `Sec-WebSocket-Extensions` in the response (RFC 7692 §5.1).
    pub fn response(&self) -> String {
        let mut value = String::from("permessage-deflate");
        if !self.server_takeover {
            value.push_str("; server_no_context_takeover");
        }
        if !self.client_takeover {
            value.push_str("; client_no_context_takeover");
        }
        if self.names_server_bits || self.server_bits < offer::MAX_BITS {
            // Writing into a string does not fail.
            let _ = write!(value, "; server_max_window_bits={}", self.server_bits);
        }
        // A smaller one was agreed on only if the client has offered to (§7.1.2.2).
        if self.client_bits < offer::MAX_BITS {
            let _ = write!(value, "; client_max_window_bits={}", self.client_bits);
        }
        value
    }

    /// The most bytes of memory that the contexts of a connection take: one for inflating, from the first compressed message on (without
    /// take-over only while one is received), and with take-over one for compressing. Without it connections share a compressor, which
    /// is not counted. The figures are those of zlib-rs 0.6, rounded up.
    pub fn memory(&self) -> usize {
        let compressor = if self.server_takeover { compressor::memory(self.server_bits) } else { 0 };
        inflater::MEMORY + compressor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_names_parameters_that_are_not_the_default() {
        let plain = Deflate {
            server_takeover: true,
            client_takeover: true,
            server_bits: 15,
            client_bits: 15,
            names_server_bits: false,
        };
        assert_eq!(plain.response(), "permessage-deflate");
        assert_eq!(
            Deflate { names_server_bits: true, ..plain }.response(),
            "permessage-deflate; server_max_window_bits=15"
        );
        let all = Deflate {
            server_takeover: false,
            client_takeover: false,
            server_bits: 12,
            client_bits: 11,
            ..plain
        };
        assert_eq!(
            all.response(),
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
             server_max_window_bits=12; client_max_window_bits=11"
        );
    }

    #[test]
    fn a_smaller_window_takes_less_memory() {
        let memory = |server_bits, server_takeover| {
            let deflate = Deflate {
                server_takeover,
                client_takeover: true,
                server_bits,
                client_bits: 15,
                names_server_bits: false,
            };
            deflate.memory()
        };
        assert!(memory(15, false) < memory(9, true));
        for bits in 9..15 {
            assert!(memory(bits, true) < memory(bits + 1, true));
        }
    }
}
