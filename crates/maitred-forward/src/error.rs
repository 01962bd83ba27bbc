//! Why bytes are no header of the PROXY protocol.

use std::fmt;

/// Why the bytes are no header. The connection is to be closed (§2.1, §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyError {
    /// Neither version begins so.
    Signature,
    /// Version 1: neither `TCP4`, `TCP6` nor `UNKNOWN`.
    Protocol,
    /// Version 1: no line end within [`MAX_V1`](crate::proxy::MAX_V1) bytes.
    LineTooLong,
    /// Version 1: CR without LF, or LF without CR.
    LineEnd,
    /// Version 1: not two addresses and two ports with single spaces between them.
    Line,
    /// Version 1: no address, or one of the other family.
    Address,
    /// Version 1: no number from 0 to 65535, or zeros before it.
    Port,
    /// A version other than 2 behind the signature of version 2.
    Version,
    /// Version 2: neither `LOCAL` nor `PROXY`.
    Command,
    /// Version 2: a family or protocol that is not specified.
    Family,
    /// Version 2: a client over UDP, or over a Unix socket for datagrams.
    Datagram,
    /// Version 2: longer than the limit.
    TooLong,
    /// Version 2: the rest is shorter than the addresses of its family.
    AddressesCutOff,
    /// Version 2: a value is longer than the rest of the header.
    TlvCutOff,
    /// Version 2: the same in the value that speaks of TLS.
    TlsCutOff,
    /// Version 2: a unique identifier of more than 128 bytes.
    UniqueIdTooLong,
    /// Version 2: a checksum that does not have four bytes, or two of them.
    ChecksumForm,
    /// Version 2: the checksum is not that of the header.
    Checksum,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => "no PROXY header: the first bytes are of neither version",
            Self::Protocol => "the PROXY line has neither TCP4, TCP6 nor UNKNOWN",
            Self::LineTooLong => "the PROXY line is longer than 107 bytes",
            Self::LineEnd => "the PROXY line does not end in CRLF",
            Self::Line => {
                "the PROXY line does not have two addresses and two ports with single spaces between them"
            }
            Self::Address => "the PROXY line has something that is no address of its family",
            Self::Port => "the PROXY line has something that is no port",
            Self::Version => "the version of the PROXY header is not 2",
            Self::Command => "the PROXY header has an unknown command",
            Self::Family => "the PROXY header has an unknown address family or protocol",
            Self::Datagram => "the PROXY header is for datagrams",
            Self::TooLong => "the PROXY header is longer than the limit",
            Self::AddressesCutOff => "the PROXY header is too short for its addresses",
            Self::TlvCutOff => "a value in the PROXY header is cut off",
            Self::TlsCutOff => "what the PROXY header says of TLS is cut off",
            Self::UniqueIdTooLong => "the unique identifier in the PROXY header is longer than 128 bytes",
            Self::ChecksumForm => {
                "the PROXY header has a checksum that does not have four bytes, or two of them"
            }
            Self::Checksum => "the checksum of the PROXY header is wrong",
        })
    }
}

impl std::error::Error for ProxyError {}
