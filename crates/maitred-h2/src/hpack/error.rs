//! Why a field block cannot be read.

use std::fmt;

/// A field block that cannot be read, or is not. The table is lost with it: the connection ends with COMPRESSION_ERROR (RFC 9113 §4.3),
/// where the peer asks for too much with ENHANCE_YOUR_CALM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// A number needs more than 32 bits, or more bytes than such a number has (RFC 7541 §5.1).
    Integer,
    /// The index is 0, or neither table has an entry there (RFC 7541 §2.3.3, §6.1).
    Index,
    /// The Huffman code ends in more than 7 bits of padding, in other bits than those of EOS, or contains EOS (RFC 7541 §5.2).
    Huffman,
    /// A change of the table's size behind a field (RFC 7541 §4.2).
    LateSizeUpdate,
    /// A table larger than the size that was announced (RFC 7541 §6.3).
    SizeUpdate,
    /// The block takes far more bytes out of the table than there are in it.
    Repeated,
}

impl HpackError {
    /// The reason, for the error log; contains nothing the peer sent.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "a field block ends within a field",
            Self::Integer => "an integer of a field block is too large",
            Self::Index => "a field block refers to an entry that is in no table",
            Self::Huffman => "a Huffman code of a field block has wrong padding or contains EOS",
            Self::LateSizeUpdate => "a field block changes the table's size behind a field",
            Self::SizeUpdate => "a field block makes the table larger than it may be",
            Self::Repeated => "a field block repeats the table's entries far too often",
        }
    }
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for HpackError {}
