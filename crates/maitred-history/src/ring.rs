//! Rows of one step, the newest ones: as many as there is room for.

use std::ops::Range;

use crate::figure::CELLS;

/// A row, and the interval it is of.
#[derive(Clone, Copy)]
struct Slot {
    /// The number of the interval since 1970 and one; 0 while there is none.
    interval: u32,
    cells: [u32; CELLS],
}

/// Bytes of a row.
pub(crate) const ROW_BYTES: usize = size_of::<Slot>();

pub(crate) struct Ring {
    slots: Vec<Slot>,
    room: usize,
    /// The interval that was written first: its row is the first one, so that rows are added at the end.
    first: Option<u64>,
    /// The oldest and the newest one that was written.
    oldest: u64,
    newest: Option<u64>,
}

impl Ring {
    pub(crate) const fn new(room: usize) -> Self {
        Self { slots: Vec::new(), room, first: None, oldest: 0, newest: None }
    }

    pub(crate) fn write(&mut self, interval: u64, cells: &[u32; CELLS]) {
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(self.room);
        }
        if self.first.is_none() {
            (self.first, self.oldest) = (Some(interval), interval);
        }
        self.oldest = self.oldest.min(interval);
        let at = self.place(interval);
        // Grown as it is used: rows that are never written take no memory.
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Slot { interval: 0, cells: [0; CELLS] });
        }
        self.slots[at] = Slot { interval: number(interval), cells: *cells };
        self.newest = Some(self.newest.map_or(interval, |newest| newest.max(interval)));
    }

    /// The row of an interval; none of one that nothing was written of, or too long ago.
    pub(crate) fn row(&self, interval: u64) -> Option<&[u32; CELLS]> {
        let slot = self.slots.get(self.place(interval))?;
        (slot.interval == number(interval)).then_some(&slot.cells)
    }

    /// The rows with their intervals, the oldest first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &[u32; CELLS])> {
        let kept = self.within(0..u64::MAX);
        kept.filter_map(|interval| Some((interval, self.row(interval)?)))
    }

    pub(crate) fn forget_after(&mut self, interval: u64) {
        for slot in self.slots.iter_mut().filter(|slot| slot.interval > number(interval)) {
            slot.interval = 0;
        }
        self.newest = self.newest.map(|newest| newest.min(interval));
        self.oldest = self.oldest.min(interval);
    }

    pub(crate) fn within(&self, wanted: Range<u64>) -> Range<u64> {
        let Some(newest) = self.newest else { return 0..0 };
        let oldest = (newest + 1).saturating_sub(self.room as u64).max(self.oldest);
        let from = wanted.start.max(oldest);
        from..wanted.end.min(newest + 1).max(from)
    }

    pub(crate) fn newest(&self) -> Option<u64> {
        self.newest
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * ROW_BYTES
    }

    fn place(&self, interval: u64) -> usize {
        let room = self.room as u64;
        ((interval + room - self.first.unwrap_or_default() % room) % room) as usize
    }
}

/// Seconds since 1970 fit until the year 2106.
fn number(interval: u64) -> u32 {
    u32::try_from(interval + 1).unwrap_or(u32::MAX)
}
