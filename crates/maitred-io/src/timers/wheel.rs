//! The queue of positions: an exact hierarchical wheel (a radix heap with 256 slots a level).
//!
//! An entry lies at the level of the highest byte in which its position differs from `base`, in the slot that this
//! byte names:
//!
//! ```text
//!            level 7 …            level 4            level 3          …  level 0
//!            2^56 ns a slot       4.3 s a slot       16.8 ms a slot      1 ns a slot
//!   base     00                   1c                 80                  17
//!   entry    00                   1c                 a2  → level 3, slot a2
//!   entry    00                   2d  → level 4, slot 2d
//! ```
//!
//! So all entries of a level lie before those of the next, and in a level slot order is time order; the first slot
//! in use holds the earliest entry. When `base` advances to `now`, the slots passed are emptied: entries at or
//! before `now` are due, the others move to a lower level. An entry moves three times at most on its way through
//! timeouts of minutes. Nothing is rounded.
//!
//! Chosen by measurement (examples/timer_cost.rs) over a binary heap.

/// No node: the end of a list.
const NIL: u32 = u32::MAX;
const LEVELS: usize = 8;
const SLOTS: usize = 256;

#[derive(Clone, Copy)]
struct Node {
    position: u64,
    id: u32,
    next: u32,
}

/// A list of nodes and the earliest position in it.
#[derive(Clone, Copy)]
struct List {
    earliest: u64,
    head: u32,
}

const EMPTY: List = List { earliest: u64::MAX, head: NIL };

/// See the module text. 33 KiB, and 16 bytes an entry; entries freed are used again.
pub(super) struct Wheel {
    /// No entry lies before it.
    base: u64,
    lists: Box<[[List; SLOTS]; LEVELS]>,
    /// One bit for each list that is not empty.
    occupied: [[u64; SLOTS / 64]; LEVELS],
    nodes: Vec<Node>,
    free: u32,
    len: usize,
    /// Lists being emptied by `advance`, kept for its allocation.
    passed: Vec<u32>,
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            base: 0,
            lists: Box::new([[EMPTY; SLOTS]; LEVELS]),
            occupied: [[0; SLOTS / 64]; LEVELS],
            nodes: Vec::new(),
            free: NIL,
            len: 0,
            passed: Vec::new(),
        }
    }

    /// The latest time `advance` was called with.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry. `position` is at or after `base`.
    pub(super) fn push(&mut self, position: u64, id: u32) {
        let node = Node { position, id, next: NIL };
        let index = if self.free == NIL {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.len += 1;
        self.link(index);
    }

    /// The earliest position, or `u64::MAX`.
    pub(super) fn earliest(&self) -> u64 {
        for (level, words) in self.occupied.iter().enumerate() {
            if let Some(slot) = first_bit(words) {
                return self.lists[level][slot].earliest;
            }
        }
        u64::MAX
    }

    /// Moves `base` to `now` (at or after `base`) and passes every entry at or before it, and some later ones, to
    /// `judge(position, id)`, which answers where the entry is queued again (after `now`), or `None` to drop it.
    pub(super) fn advance(&mut self, now: u64, mut judge: impl FnMut(u64, u32) -> Option<u64>) {
        self.detach_passed(now);
        self.base = now;
        for list in 0..self.passed.len() {
            let mut index = self.passed[list];
            while index != NIL {
                let Node { position, id, next } = self.nodes[index as usize];
                match judge(position, id) {
                    Some(position) => {
                        self.nodes[index as usize].position = position;
                        self.link(index);
                    }
                    None => self.release(index),
                }
                index = next;
            }
        }
    }

    /// Drops the entries for which `keep` answers false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u64, u32) -> bool) {
        for level in 0..LEVELS {
            for slot in 0..SLOTS {
                let mut index = self.detach(level, slot);
                while index != NIL {
                    let Node { position, id, next } = self.nodes[index as usize];
                    if keep(position, id) {
                        self.link(index)
                    } else {
                        self.release(index)
                    }
                    index = next;
                }
            }
        }
    }

    /// Collects the lists between `base` and `now` in `passed`. Below the highest byte that changes everything has
    /// been passed; in that byte the slots up to the new value; above it nothing.
    fn detach_passed(&mut self, now: u64) {
        let top = level_of(self.base ^ now);
        let first = byte_of(self.base, top);
        let last = byte_of(now, top);
        self.passed.clear();
        for level in 0..=top {
            let slots = if level < top { 0..=SLOTS - 1 } else { first..=last };
            for slot in slots {
                let head = self.detach(level, slot);
                if head != NIL {
                    self.passed.push(head);
                }
            }
        }
    }

    fn detach(&mut self, level: usize, slot: usize) -> u32 {
        self.occupied[level][slot / 64] &= !(1 << (slot % 64));
        std::mem::replace(&mut self.lists[level][slot], EMPTY).head
    }

    fn link(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let level = level_of(node.position ^ self.base);
        let slot = byte_of(node.position, level);
        let list = &mut self.lists[level][slot];
        node.next = list.head;
        list.head = index;
        list.earliest = list.earliest.min(node.position);
        self.occupied[level][slot / 64] |= 1 << (slot % 64);
    }

    fn release(&mut self, index: u32) {
        self.nodes[index as usize].next = self.free;
        self.free = index;
        self.len -= 1;
    }
}

/// The level of the highest byte that is not zero (0 for none).
fn level_of(difference: u64) -> usize {
    ((difference | 1).ilog2() / 8) as usize
}

fn byte_of(position: u64, level: usize) -> usize {
    (position >> (8 * level)) as usize % SLOTS
}

fn first_bit(words: &[u64; SLOTS / 64]) -> Option<usize> {
    let word = words.iter().position(|word| *word != 0)?;
    Some(word * 64 + words[word].trailing_zeros() as usize)
}
