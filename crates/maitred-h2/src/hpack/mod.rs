//! HPACK: the compression of fields (RFC 7541).
//!
//! Promises: a [`Decoder`] and an [`Encoder`] of whole field blocks, each with the dynamic table of one direction of a
//! connection. Every block has to pass through them, in the order of the wire, or the tables of the two peers differ.
//! Once warm, neither allocates.
//!
//! Leaves out: the valid content of a field, the order of pseudo-fields and limits of lists: the caller sees every
//! field. The caller gathers the fragments of CONTINUATION frames.

mod decoder;
mod dynamic_table;
mod encoder;
mod error;
pub mod huffman;
mod integer;
mod known_names;
mod static_table;

#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::HpackError;

/// The size of a table until a SETTINGS frame says otherwise, in bytes (RFC 9113 §6.5.2), and the most that our encoder uses.
pub const DEFAULT_TABLE: usize = 4096;

/// The cost of an entry of a table beside its bytes (RFC 7541 §4.1).
pub const ENTRY_OVERHEAD: usize = 32;
