//! The figures of another process: of one that was killed, or of one that runs.
//!
//! Promises: no exchange that a killed process has noted is in its figures twice, and at most one is missing: the one that was on its way
//! from its ring into a leaf. Exchanges of routes that the process gave up at that moment may be in twice. No content of the memory makes a reader fail; figures that are impossible are not shown.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::area::{self, Area, BYTES, LOST, ON};
use crate::arena::{Kind, runs};
use crate::distribution::Distribution;
use crate::names::read_names;
use crate::recorder::{BATCH, LEAVES_BYTES, WORDS};
use crate::rings::{DecodedSample, noted};
use crate::routes::read_routes;
use crate::table::{Leaf, LeafKey, TimingKey};

/// How often one reading looks again because something was being changed: a change takes some microseconds.
const TRIES: u32 = 5_000;

/// Whose memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The figures of a process that has ended, including samples that its threads had noted and not counted.
    Ended,
    /// The counted figures of a running process. They are complete once it has been asked to
    /// [`fold_all`](crate::Recorder::fold_all).
    Runs,
}

/// The figures of exchanges in the memory of another process.
pub struct Foreign<'a> {
    area: Area<'a>,
    routes: &'a [AtomicU64],
    owner: Owner,
}

impl<'a> Foreign<'a> {
    /// The figures in the memory of an [`Arena`](crate::Arena); none if there is no [`Recorder`](crate::Recorder) of
    /// this version.
    pub fn find(words: &'a [AtomicU64], owner: Owner) -> Option<Self> {
        let find = |kind: Kind| runs(words).find(|found| found.kind == kind as u8);
        let recorder = find(Kind::Recorder)?;
        let routes = find(Kind::Routes).map(|found| found.content).unwrap_or_default();
        Some(Self { area: Area::new(recorder.content.get(..WORDS)?, LEAVES_BYTES)?, routes, owner })
    }

    /// Visits the leaves as [`Recorder::leaves`](crate::Recorder::leaves) does, but for an order: a key may come twice.
    pub fn leaves(&self, mut visit: impl FnMut(LeafKey, Leaf)) {
        self.read(|area, first| area.read_leaves(first, BATCH), &mut visit);
        let mut noted = BTreeMap::<LeafKey, Leaf>::new();
        self.noted(|sample| {
            if let DecodedSample::Exchange(key, bytes, spans) = sample {
                noted.entry(LeafKey::unpack(key)).or_default().record(bytes, spans);
            }
        });
        noted.into_iter().for_each(|(key, leaf)| visit(key, leaf));
    }

    /// Visits the timings as [`Recorder::timings`](crate::Recorder::timings) does, likewise.
    pub fn timings(&self, mut visit: impl FnMut(TimingKey, Distribution)) {
        self.read(|area, first| area.read_timings(first, BATCH), &mut visit);
        let mut noted = BTreeMap::<TimingKey, Distribution>::new();
        self.noted(|sample| {
            if let DecodedSample::Timing(key, nanos) = sample {
                noted.entry(key).or_default().record(nanos);
            }
        });
        noted.into_iter().for_each(|(key, nanos)| visit(key, nanos));
    }

    fn read<K, T>(&self, read: impl Fn(&Area<'_>, usize) -> Vec<(K, T)>, visit: &mut impl FnMut(K, T)) {
        let mut tries = TRIES;
        for first in (0..).step_by(BATCH) {
            let batch = match self.owner {
                Owner::Ended => read(&self.area, first),
                Owner::Runs => self.area.unchanged(&mut tries, || read(&self.area, first)),
            };
            let last = batch.len() < BATCH;
            batch.into_iter().for_each(|(key, figures)| visit(key, figures));
            if last {
                return;
            }
        }
    }

    /// Calls `visit` with the samples that threads had noted and not counted when their process ended.
    fn noted(&self, mut visit: impl FnMut(DecodedSample)) {
        if self.owner == Owner::Runs {
            return;
        }
        self.area.rings().flat_map(|ring| ring.samples()).for_each(|(_, sample)| visit(noted(sample)));
    }

    /// The names of routes, by number.
    pub fn routes(&self) -> Vec<String> {
        read_routes(self.routes)
    }

    /// The names of `Server-Timing` entries, by number.
    pub fn names(&self) -> Vec<String> {
        read_names(area::names(self.area.all))
    }

    /// `Server-Timing` entries that were counted nowhere, for want of memory.
    pub fn lost_timings(&self) -> u64 {
        self.area.head[LOST].load(Relaxed)
    }

    /// Whether the process counts exchanges.
    pub fn is_on(&self) -> bool {
        self.area.head[ON].load(Relaxed) != 0
    }

    /// Bytes that the figures took when the rings were folded last, without the [`Routes`](crate::Routes).
    pub fn bytes(&self) -> usize {
        usize::try_from(self.area.head[BYTES].load(Relaxed)).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;
