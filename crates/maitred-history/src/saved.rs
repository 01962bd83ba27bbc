//! A history as bytes, for a file.
//!
//! ```text
//! "maitred history\n"   8 bytes: a sum over the names of the figures, the steps and the buckets
//! for each step:        8 bytes: how many rows; the rows, each with its interval and its cells (4 bytes each)
//! behind them:          the routes of each minute, which may be missing
//! at the end:           8 bytes: a sum over everything before
//! ```
//! All numbers are little-endian. Promises: a file that was cut off or changed is not taken for a history, nor is one
//! that another version has written with other figures.

use crate::figure::{CELLS, Figure};
use crate::latency::{self, BUCKETS};
use crate::{ByRoute, History, Level, STEPS};

const TITLE: &[u8; 16] = b"maitred history\n";

/// Why bytes are no history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file does not begin as a history does.
    NotOne,
    /// The file has other figures or steps than this version.
    OtherVersion,
    /// The file ends too early, or has been changed.
    Changed,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotOne => "it is no history of maitred",
            Self::OtherVersion => "another version of maitred has written it, with other figures",
            Self::Changed => "it was cut off or changed",
        })
    }
}

impl History {
    /// All rows. The interval that is not over is among them.
    pub fn to_bytes(&mut self) -> Vec<u8> {
        self.levels.iter_mut().for_each(Level::write);
        let rows: usize = self.levels.iter().map(|level| level.ring.rows().count()).sum();
        let mut bytes = Vec::with_capacity(64 + rows * 4 * (CELLS + 1));
        bytes.extend(TITLE);
        bytes.extend(layout().to_le_bytes());
        for level in &self.levels {
            bytes.extend((level.ring.rows().count() as u64).to_le_bytes());
            for (interval, cells) in level.ring.rows() {
                bytes.extend((interval as u32).to_le_bytes());
                cells.iter().for_each(|cell| bytes.extend(cell.to_le_bytes()));
            }
        }
        self.routes.write(&mut bytes);
        bytes.extend(sum(&bytes).to_le_bytes());
        bytes
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// It is none of this version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damage> {
        let rest = bytes.strip_prefix(TITLE).ok_or(Damage::NotOne)?;
        let (version, _) = number(rest).ok_or(Damage::Changed)?;
        if version != layout() {
            return Err(Damage::OtherVersion);
        }
        let (body, end) = bytes.split_last_chunk::<8>().ok_or(Damage::Changed)?;
        if sum(body) != u64::from_le_bytes(*end) {
            return Err(Damage::Changed);
        }
        Self::read(body.get(TITLE.len() + 8..).unwrap_or_default()).ok_or(Damage::Changed)
    }

    fn read(mut rest: &[u8]) -> Option<Self> {
        let mut history = Self::default();
        for level in &mut history.levels {
            let (rows, behind) = number(rest)?;
            rest = behind;
            for _ in 0..rows {
                let (interval, behind) = rest.split_first_chunk::<4>()?;
                let (row, behind) = behind.split_at_checked(4 * CELLS)?;
                let mut cells = [0; CELLS];
                for (cell, bytes) in cells.iter_mut().zip(row.as_chunks::<4>().0) {
                    *cell = u32::from_le_bytes(*bytes);
                }
                level.ring.write(u32::from_le_bytes(*interval).into(), &cells);
                rest = behind;
            }
        }
        history.routes = ByRoute::read(rest)?;
        Some(history)
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), rest))
}

/// Differs where rows mean something else.
fn layout() -> u64 {
    let names = Figure::all().flat_map(|figure| figure.name().bytes().chain([0]));
    let steps = STEPS.iter().flat_map(|(step, room)| [*step, *room as u64]);
    let numbers = steps.chain((0..BUCKETS).map(latency::lower)).flat_map(u64::to_le_bytes);
    sum(&names.chain(numbers).collect::<Vec<_>>())
}

/// FNV-1a over 8 bytes at a time: against accidents, not against an attacker that may write the file.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let whole = words.fold(0xcbf2_9ce4_8422_2325, step);
    rest.iter().fold(whole ^ bytes.len() as u64, |sum, byte| step(sum, u64::from(*byte)))
}
