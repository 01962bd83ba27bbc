//! The way from fields to field blocks (RFC 7541 §6), as a server sends them.
//!
//! A field that is in the table costs two hashes, one comparison and one byte. These fields go into the table: those
//! whose name it does not have yet; values of a name whose last entry was referred to; and a value that comes twice in
//! a row. So a name whose value is another one each time (an identifier of the request, say) has one entry and does not
//! push others out. Names that are known for that, and for secrets, are in [`known_names`].

use super::dynamic_table::DynamicTable;
use super::known_names::{self, Indexing};
use super::{DEFAULT_TABLE, ENTRY_OVERHEAD, huffman, integer, static_table};

/// More than the 128 entries that a table of 4096 bytes can have, so that few fields share a slot.
const FIELD_SLOTS: usize = 256;
/// A response has some ten names.
const NAME_SLOTS: usize = 64;

/// Shorter strings have a length of one byte, 126 at most.
const MAX_TRIED: usize = 127;

/// The writing end of one direction of a connection. Its table has 4096 bytes at most, also for a peer that offers
/// more: fields of responses fit, and each connection costs that memory.
#[derive(Clone, Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// How many entries were inserted, modulo 2^16. An entry's number is this count after its insertion.
    inserted: u16,
    /// The number of the newest entry for a hash of name and value. It may be evicted or another field's: look at it.
    by_field: [u16; FIELD_SLOTS],
    by_name: [NameSlot; NAME_SLOTS],
    update: Option<SizeUpdate>,
    name: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct NameSlot {
    /// The number of the newest entry. It may be evicted or another name's.
    newest: u16,
    /// Bits of the hash of the last value that was not in the table.
    last: u16,
    /// Whether an entry was referred to since the newest one was inserted.
    used: bool,
}

/// The change of the table's size that the next block has to announce (RFC 7541 §4.2).
#[derive(Clone, Copy, Debug)]
struct SizeUpdate {
    smallest: usize,
    last: usize,
}

#[derive(Clone, Copy)]
struct Hashes {
    name: u64,
    field: u64,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder with an empty table of 4096 bytes, the initial size of every peer.
    pub fn new() -> Self {
        Self {
            table: DynamicTable::new(DEFAULT_TABLE),
            inserted: 0,
            by_field: [0; FIELD_SLOTS],
            by_name: [NameSlot::default(); NAME_SLOTS],
            update: None,
            name: Vec::new(),
        }
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE, in bytes. The table gets this size, at most 4096 bytes, with the next
    /// [`begin`](Self::begin); the acknowledgement of the setting has to be sent before.
    pub fn set_max_table(&mut self, peers: u32) {
        let wanted = usize::try_from(peers).unwrap_or(DEFAULT_TABLE).min(DEFAULT_TABLE);
        let smallest = self.update.map_or(self.table.max(), |update| update.smallest).min(wanted);
        let is_new = wanted != self.table.max() || smallest != self.table.max();
        self.update = is_new.then_some(SizeUpdate { smallest, last: wanted });
    }

    /// Starts a block: appends the changes of the table's size that are due.
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(update) = self.update.take() {
            self.resize(update, out);
        }
    }

    fn resize(&mut self, update: SizeUpdate, out: &mut Vec<u8>) {
        if update.smallest < update.last {
            integer::write(0x20, 5, update.smallest, out);
            self.table.set_max(update.smallest);
        }
        integer::write(0x20, 5, update.last, out);
        self.table.set_max(update.last);
    }

    /// Appends the pseudo-field `:status`. `code` has three digits.
    #[inline]
    pub fn status(&mut self, code: u16, out: &mut Vec<u8>) {
        let index: u8 = match code {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits = [code / 100 % 10, code / 10 % 10, code % 10].map(|digit| b'0' + digit as u8);
                return self.field(b":status", &digits, out);
            }
        };
        out.push(0x80 | index);
    }

    /// Appends a field. Upper-case letters of the name become lower-case ones; nothing else is checked.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let hashes = Hashes::of(name, value);
        match self.find_field(hashes, name, value) {
            Some(index) => {
                if let Some(slot) = self.by_name.get_mut(name_slot(hashes)) {
                    slot.used = true;
                }
                integer::write(0x80, 7, index, out);
            }
            None => self.absent(hashes, name, value, out),
        }
    }

    /// The bytes of the table's entries, 32 more for each (RFC 7541 §4.1).
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    /// The bytes of memory this encoder owns beside itself, used or not.
    pub fn memory(&self) -> usize {
        self.table.memory() + self.name.capacity()
    }

    #[inline]
    fn find_field(&self, hashes: Hashes, name: &[u8], value: &[u8]) -> Option<usize> {
        let number = self.by_field.get(field_slot(hashes))?;
        let place = self.place(*number);
        let (entry_name, entry_value) = self.table.entry(place)?;
        (entry_value == value && known_names::is_same(entry_name, name)).then_some(dynamic_index(place))
    }

    fn find_name(&self, hashes: Hashes, name: &[u8]) -> Option<usize> {
        let slot = self.by_name.get(name_slot(hashes))?;
        let place = self.place(slot.newest);
        let (entry_name, _) = self.table.entry(place)?;
        known_names::is_same(entry_name, name).then_some(dynamic_index(place))
    }

    /// The place of an entry with this number, behind those that came later. It may be behind the last entry.
    #[inline]
    fn place(&self, number: u16) -> usize {
        usize::from(self.inserted.wrapping_sub(number))
    }

    /// A field that the dynamic table does not have.
    #[inline(never)]
    fn absent(&mut self, hashes: Hashes, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let (known, indexing) = known_names::find(hashes.name, name);
        if let Some(index) = find_static(known, value) {
            return integer::write(0x80, 7, index, out);
        }
        let (pattern, prefix) = match indexing {
            Indexing::Usual => return self.perhaps_inserted(hashes, known, name, value, out),
            Indexing::Without => (0x00, 4),
            Indexing::Never => (0x10, 4),
        };
        integer::write(pattern, prefix, known, out);
        if known == 0 {
            self.keep_name(name);
            write_string(&self.name, out);
        }
        write_string(value, out);
    }

    /// A field that goes into the table if another one with its value may be expected. `known` is its name's static index.
    fn perhaps_inserted(
        &mut self,
        hashes: Hashes,
        known: usize,
        name: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) {
        let dynamic = self.find_name(hashes, name);
        let inserts = self.is_worth_an_entry(hashes, dynamic.is_some())
            && name.len() + value.len() + ENTRY_OVERHEAD <= self.table.max() / 2;
        let index = if known == 0 { dynamic.unwrap_or(0) } else { known };
        let (pattern, prefix) = if inserts { (0x40, 6) } else { (0x00, 4) };
        integer::write(pattern, prefix, index, out);
        if index == 0 || inserts {
            self.keep_name(name);
        }
        if index == 0 {
            write_string(&self.name, out);
        }
        write_string(value, out);
        if inserts {
            self.insert(hashes, value);
        }
    }

    fn keep_name(&mut self, name: &[u8]) {
        self.name.clear();
        self.name.extend(name.iter().map(u8::to_ascii_lowercase));
    }

    fn is_worth_an_entry(&mut self, hashes: Hashes, has_name: bool) -> bool {
        let Some(slot) = self.by_name.get_mut(name_slot(hashes)) else { return false };
        let last = hashes.field as u16;
        let comes_again = slot.last == last;
        slot.last = last;
        !has_name || slot.used || comes_again
    }

    fn insert(&mut self, hashes: Hashes, value: &[u8]) {
        if !self.table.insert(&self.name, value) {
            return;
        }
        self.inserted = self.inserted.wrapping_add(1);
        if let Some(slot) = self.by_field.get_mut(field_slot(hashes)) {
            *slot = self.inserted;
        }
        if let Some(slot) = self.by_name.get_mut(name_slot(hashes)) {
            slot.newest = self.inserted;
            slot.used = false;
        }
    }
}

impl Hashes {
    #[inline]
    fn of(name: &[u8], value: &[u8]) -> Self {
        let name = known_names::hash(name);
        Self { name, field: hash_value(name, value) }
    }
}

#[inline]
fn hash_value(seed: u64, value: &[u8]) -> u64 {
    let seed = seed ^ value.len() as u64;
    if let Some(last) = value.last_chunk() {
        // Bytes that are taken twice do no harm.
        let (pairs, _) = value.as_chunks();
        let hash = pairs.iter().fold(seed, |hash, pair| mix(hash, u128::from_le_bytes(*pair)));
        mix(hash, u128::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (value.first_chunk(), value.last_chunk()) {
        mix(seed, u128::from(u64::from_le_bytes(*first)) << 64 | u128::from(u64::from_le_bytes(*last)))
    } else {
        mix(seed, u128::from(known_names::short_word(value)))
    }
}

/// Both halves of the product of both halves count.
#[inline]
fn mix(hash: u64, bytes: u128) -> u64 {
    /// 2^64 divided by the golden ratio.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash ^ bytes as u64) * u128::from(ODD ^ (bytes >> 64) as u64);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn field_slot(hashes: Hashes) -> usize {
    (hashes.field >> 32) as usize % FIELD_SLOTS
}

#[inline]
fn name_slot(hashes: Hashes) -> usize {
    (hashes.name >> 58) as usize % NAME_SLOTS
}

#[inline]
fn dynamic_index(place: usize) -> usize {
    static_table::LENGTH + 1 + place
}

/// The index of the static entry with this value among those that have the same name as the first one.
#[inline]
fn find_static(first: usize, value: &[u8]) -> Option<usize> {
    // Where no other entry has the name, the value is empty, but for one.
    let last = match first {
        0 => return None,
        2 | 4 | 6 => first + 1,
        8 => 14,
        _ => first,
    };
    (first..=last).find(|index| static_table::entry(*index).is_some_and(|entry| entry.1 == value))
}

/// A string literal (§5.2), with the Huffman code where that is shorter.
fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    if bytes.len() < MAX_TRIED {
        // One way instead of two: the length is known behind the code.
        out.push(0x80);
        huffman::encode(bytes, out);
        let length = out.len() - start - 1;
        if length < bytes.len() {
            if let Some(first) = out.get_mut(start) {
                *first |= length as u8;
            }
            return;
        }
        out.truncate(start);
    } else {
        let length = huffman::encoded_len(bytes);
        if length < bytes.len() {
            integer::write(0x80, 7, length, out);
            return huffman::encode(bytes, out);
        }
    }
    integer::write(0x00, 7, bytes.len(), out);
    out.extend_from_slice(bytes);
}
