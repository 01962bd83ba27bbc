//! Sums of all exchanges, without routes and pools: for a reader that asks every second.

use std::sync::atomic::AtomicU64;

use maitred_stats::{Foreign, Leaf, LeafKey, Owner};

use super::{Figures, Statistics};

/// Sums of a process, or of several.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Whether exchanges are counted now.
    pub on: bool,
    /// All exchanges.
    pub all: Leaf,
    /// By the first digit of the status; 0 without a response.
    pub classes: [u64; 6],
}

impl Totals {
    /// The sums in the memory of another process; none unless they have this version.
    #[must_use]
    pub fn read(words: &[AtomicU64], owner: Owner) -> Option<Self> {
        let foreign = Foreign::find(words, owner)?;
        let mut totals = Self { on: owner == Owner::Runs && foreign.is_on(), ..Self::default() };
        foreign.leaves(|key, leaf| totals.add(key, &leaf));
        Some(totals)
    }

    /// Adds the sums of another process.
    pub fn merge(&mut self, other: &Self) {
        self.on |= other.on;
        self.all.merge(&other.all);
        for (mine, theirs) in self.classes.iter_mut().zip(other.classes) {
            *mine = mine.saturating_add(theirs);
        }
    }

    fn add(&mut self, key: LeafKey, leaf: &Leaf) {
        self.all.merge(leaf);
        if let Some(class) = self.classes.get_mut(usize::from(key.class)) {
            *class = class.saturating_add(leaf.requests);
        }
    }
}

impl From<&Statistics> for Totals {
    fn from(statistics: &Statistics) -> Self {
        let mut totals = Self { on: statistics.on, all: statistics.server.clone(), classes: [0; 6] };
        for (name, leaf) in &statistics.classes {
            let digit = name.bytes().next().unwrap_or_default().wrapping_sub(b'0');
            if let Some(class) = totals.classes.get_mut(usize::from(digit)) {
                *class = class.saturating_add(leaf.requests);
            }
        }
        totals
    }
}

impl Figures {
    /// The sums now.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { on: self.is_on(), ..Totals::default() };
        self.recorder.leaves(|key, leaf| totals.add(key, &leaf));
        totals
    }
}
