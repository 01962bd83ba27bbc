//! Where a value lies in a sparse histogram: a slot for each power of two, with 32 steps each.
//!
//! ```text
//! slot 0: 0 to 2,047 in steps of 64        slot n: 2^(n + 10) to 2^(n + 11) - 1 in 32 steps
//! ```
//! A value is read back as the middle of its step: from 2,048 on at most 1/64 (1.6 %) away, below at most 32.

/// Steps to a slot. A middle is half a step away at most, so 32 keep the error below 2 %.
pub(crate) const STEPS: usize = 32;

/// Below 2 to this power the steps are as wide as those of the first power above: 64 ns, which is the cost of two
/// readings of the clock.
const LINEAR: u32 = 11;

const LINEAR_WIDTH: u32 = LINEAR - STEPS.ilog2();

/// Slots that there can be.
pub(crate) const SLOTS: usize = (u64::BITS - LINEAR) as usize + 1;

/// Slot and step of a value.
pub(crate) fn place(value: u64) -> (usize, usize) {
    if value < 1 << LINEAR {
        return (0, (value >> LINEAR_WIDTH) as usize);
    }
    let power = value.ilog2();
    let step = (value >> (power - STEPS.ilog2())) as usize % STEPS;
    ((power - LINEAR) as usize + 1, step)
}

pub(crate) fn bounds(slot: usize, step: usize) -> (u64, u64) {
    let shift = LINEAR_WIDTH + slot.saturating_sub(1) as u32;
    let base = if slot == 0 { 0 } else { STEPS };
    let first = ((base + step) as u64) << shift;
    (first, first + ((1 << shift) - 1))
}

/// The value that a step is read back as.
pub(crate) fn middle(slot: usize, step: usize) -> u64 {
    let (first, last) = bounds(slot, step);
    first + (last - first) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_without_gap() {
        let mut next = 0_u64;
        for slot in 0..SLOTS {
            for step in 0..STEPS {
                let (first, last) = bounds(slot, step);
                assert_eq!(first, next);
                assert_eq!((place(first), place(last)), ((slot, step), (slot, step)));
                next = last.wrapping_add(1);
            }
        }
        assert_eq!(next, 0, "the last step ends at 2^64 - 1");
    }
}
