//! The protocol of a connection. `h1/` and `framed/` have the differences; code for every exchange takes a
//! [`Carrier`](super::carrier::Carrier).

use super::framed::Framed;
use super::h1::H1;

/// The protocol of a connection; see the module text.
pub(crate) enum Protocol {
    /// One exchange at a time, in the order of the requests.
    H1(H1),
    /// HTTP/2: any number of exchanges at once, interleaved in frames.
    Framed(Box<Framed>),
}

impl Protocol {
    /// HTTP/1 before the first request.
    pub(crate) fn h1() -> Self {
        Self::H1(H1::default())
    }
}

/// Calls a function with the protocol of a connection as its carrier, and with the wire.
macro_rules! with_carrier {
    ($connection:expr, |$carrier:ident, $wire:ident| $call:expr) => {{
        let $crate::connection::Connection { protocol, wire: $wire, .. } = $connection;
        match protocol {
            $crate::connection::Protocol::H1($carrier) => $call,
            $crate::connection::Protocol::Framed(framed) => {
                let $carrier = &mut **framed;
                $call
            }
        }
    }};
}

/// As [`with_carrier`], to look only.
macro_rules! see_carrier {
    ($connection:expr, |$carrier:ident, $wire:ident| $call:expr) => {{
        let $crate::connection::Connection { protocol, wire: $wire, .. } = $connection;
        match protocol {
            $crate::connection::Protocol::H1($carrier) => $call,
            $crate::connection::Protocol::Framed(framed) => {
                let $carrier = &**framed;
                $call
            }
        }
    }};
}

pub(crate) use {see_carrier, with_carrier};
