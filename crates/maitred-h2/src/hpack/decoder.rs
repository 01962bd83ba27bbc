//! The way from field blocks to fields (RFC 7541 §3, §6).

use super::dynamic_table::DynamicTable;
use super::{DEFAULT_TABLE, HpackError, huffman, integer, static_table};

/// Memory for decoded strings that is kept between blocks, in bytes: more than a usual field has.
///
/// Reason: each connection keeps it, also an idle one.
const KEPT_SCRATCH: usize = 1024;

/// How many times the table's largest size the fields of one block may take out of the table, in bytes.
///
/// Reason: one byte of a block can be a field of 4 KiB, so that a few bytes fill a whole head, and a few kilobytes hundreds of megabytes
/// (CVE-2016-6581). Source: an encoder names each entry about once in a block, which is one table at most; four leave room for fields
/// that are repeated.
const MOST_TABLES: usize = 4;

/// The reading end of one direction of a connection.
#[derive(Clone, Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The size that we announce in SETTINGS_HEADER_TABLE_SIZE.
    max_table: usize,
    /// Name and value of the present field, where they stand neither in the block nor in a table.
    scratch: Vec<u8>,
    /// Bytes that the fields of the present block have taken out of the table.
    copied: usize,
}

/// A string of the block, as it stands there.
#[derive(Clone, Copy)]
struct Text<'a> {
    bytes: &'a [u8],
    huffman: bool,
}

impl Decoder {
    /// A decoder whose table the peer may make `max_table` bytes large: SETTINGS_HEADER_TABLE_SIZE. Until the peer has
    /// acknowledged that setting it may use 4096 bytes, so that a smaller one asks for care of the caller.
    pub fn new(max_table: usize) -> Self {
        Self {
            table: DynamicTable::new(max_table.min(DEFAULT_TABLE)),
            max_table,
            scratch: Vec::new(),
            copied: 0,
        }
    }

    /// Decodes one whole block. `sink` gets every field in its order: the name, the value, and whether no hop may ever
    /// put it into a table (RFC 7541 §6.2.3). The names are as the peer wrote them. One byte of a block can be a field
    /// as large as the table, so a caller that gathers fields has to count their bytes.
    ///
    /// # Errors
    /// The block cannot be read; fields before the fault have been reported. The connection has to end.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut sink: impl FnMut(&[u8], &[u8], bool),
    ) -> Result<(), HpackError> {
        self.copied = 0;
        let mut rest = block;
        let mut fields = false;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match *first {
                0x80.. => self.indexed(*first, &mut rest, &mut sink)?,
                0x40..=0x7f => self.inserted(*first, &mut rest, &mut sink)?,
                0x20..=0x3f if fields => return Err(HpackError::LateSizeUpdate),
                0x20..=0x3f => {
                    self.size_update(*first, &mut rest)?;
                    continue;
                }
                _ => {
                    let text = self.literal(*first, 4, &mut rest)?;
                    let (name, value) = text.of(&self.scratch);
                    sink(name, value, first & 0x10 != 0);
                }
            }
            fields = true;
        }
        if self.scratch.capacity() > KEPT_SCRATCH {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    /// The bytes of the table's entries, 32 more for each (RFC 7541 §4.1); at most the announced size.
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    /// The bytes of memory this decoder owns, used or not.
    pub fn memory(&self) -> usize {
        self.table.memory() + self.scratch.capacity()
    }

    /// Both parts of the field are those of an entry (§6.1).
    #[inline]
    fn indexed(
        &mut self,
        first: u8,
        rest: &mut &[u8],
        sink: &mut impl FnMut(&[u8], &[u8], bool),
    ) -> Result<(), HpackError> {
        let index = integer::read(first, 7, rest)?;
        let (name, value) = match index.checked_sub(static_table::LENGTH + 1) {
            None => static_table::entry(index).ok_or(HpackError::Index)?,
            Some(index) => {
                let entry = self.table.entry(index).ok_or(HpackError::Index)?;
                count_copy(&mut self.copied, entry.0.len() + entry.1.len(), self.max_table)?;
                entry
            }
        };
        sink(name, value, false);
        Ok(())
    }

    /// The field becomes an entry (§6.2.1).
    fn inserted(
        &mut self,
        first: u8,
        rest: &mut &[u8],
        sink: &mut impl FnMut(&[u8], &[u8], bool),
    ) -> Result<(), HpackError> {
        let text = self.literal(first, 6, rest)?;
        let (name, value) = text.of(&self.scratch);
        sink(name, value, false);
        self.table.insert(name, value);
        Ok(())
    }

    /// The table gets another limit (§6.3).
    fn size_update(&mut self, first: u8, rest: &mut &[u8]) -> Result<(), HpackError> {
        let max = integer::read(first, 5, rest)?;
        if max > self.max_table {
            return Err(HpackError::SizeUpdate);
        }
        self.table.set_max(max);
        Ok(())
    }

    /// A field with a literal value, its name an entry's or a literal too. The entry's name is copied: the insertion of the
    /// field may evict it.
    fn literal<'a>(
        &mut self,
        first: u8,
        prefix: u32,
        rest: &mut &'a [u8],
    ) -> Result<Literal<'a>, HpackError> {
        let index = integer::read(first, prefix, rest)?;
        self.scratch.clear();
        let name = if index == 0 {
            let text = Text::read(rest)?;
            self.plain(text)?
        } else if let Some((name, _)) = static_table::entry(index) {
            Some(name)
        } else {
            let (name, _) = self.table.entry(index - static_table::LENGTH - 1).ok_or(HpackError::Index)?;
            count_copy(&mut self.copied, name.len(), self.max_table)?;
            self.scratch.extend_from_slice(name);
            None
        };
        let name_end = self.scratch.len();
        let text = Text::read(rest)?;
        let value = self.plain(text)?;
        Ok(Literal { name, name_end, value })
    }

    /// The string where it stands in the block; `None` where it was decoded into the scratch memory.
    fn plain<'a>(&mut self, text: Text<'a>) -> Result<Option<&'a [u8]>, HpackError> {
        if !text.huffman {
            return Ok(Some(text.bytes));
        }
        huffman::decode(text.bytes, &mut self.scratch)?;
        Ok(None)
    }
}

/// Counts bytes that a field takes out of the table.
/// Errors: they are more than a block may take.
fn count_copy(copied: &mut usize, bytes: usize, max_table: usize) -> Result<(), HpackError> {
    *copied += bytes;
    if *copied > max_table.saturating_mul(MOST_TABLES) { Err(HpackError::Repeated) } else { Ok(()) }
}

/// A literal field: parts that are `None` stand in the scratch memory.
struct Literal<'a> {
    name: Option<&'a [u8]>,
    /// Where the name ends there and the value begins.
    name_end: usize,
    value: Option<&'a [u8]>,
}

impl<'a> Literal<'a> {
    #[inline]
    fn of(&self, scratch: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let (name, value) = scratch.split_at_checked(self.name_end).unwrap_or_default();
        (self.name.unwrap_or(name), self.value.unwrap_or(value))
    }
}

impl<'a> Text<'a> {
    /// A string literal (§5.2).
    #[inline]
    fn read(rest: &mut &'a [u8]) -> Result<Self, HpackError> {
        let (first, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
        *rest = behind;
        let length = integer::read(*first, 7, rest)?;
        let (bytes, behind) = rest.split_at_checked(length).ok_or(HpackError::Truncated)?;
        *rest = behind;
        Ok(Self { bytes, huffman: first & 0x80 != 0 })
    }
}
