//! The vocabulary, by its public face.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod coding;
mod conditional;
mod date;
mod fields;
mod range;
mod target;
