//! Field blocks of one connection. Input: blocks, each behind a byte with its length.
//!
//! A slow decoder, which reads bit by bit and keeps its table in a list, finds the same fields and the same faults; the
//! table is never above its limit; accepted fields are the same when our encoder has written them and they are read
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_h2::hpack::{Decoder, Encoder, HpackError, huffman};

/// Small, so that entries are evicted.
const LIMIT: usize = 300;

type Fields = Vec<(Vec<u8>, Vec<u8>, bool)>;

fuzz_target!(|input: &[u8]| {
    let (mut decoder, mut slow) = (Decoder::new(LIMIT), Slow { table: Vec::new(), limit: LIMIT });
    let (mut encoder, mut again) = (Encoder::new(), Decoder::new(4096));
    let mut rest = input;
    while let Some((length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        let mut fields = Fields::new();
        let result =
            decoder.decode(block, |name, value, never| fields.push((name.to_vec(), value.to_vec(), never)));
        assert!(decoder.table_size() <= LIMIT);
        let expected = slow.decode(block);
        if result == Err(HpackError::Repeated) {
            // Right only if the table has given four times its size; the last entry was not passed on.
            let given: usize = fields.iter().map(|(name, value, _)| name.len() + value.len()).sum();
            assert!(given + LIMIT > 4 * LIMIT, "{given}");
            return;
        }
        assert_eq!(result.is_ok(), expected.is_some(), "{result:?}");
        let Some(expected) = expected else { return };
        assert_eq!(fields, expected);
        assert_eq!(decoder.table_size(), slow.size());
        check_written_again(fields, &mut encoder, &mut again);
    }
});

fn check_written_again(fields: Fields, encoder: &mut Encoder, decoder: &mut Decoder) {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value, _) in &fields {
        encoder.field(name, value, &mut block);
    }
    let mut read = Vec::new();
    let result = decoder.decode(&block, |name, value, _| read.push((name.to_vec(), value.to_vec())));
    assert_eq!(result, Ok(()));
    let sent = fields.into_iter().map(|(name, value, _)| (name.to_ascii_lowercase(), value));
    assert!(sent.eq(read));
    assert_eq!(encoder.table_size(), decoder.table_size());
}

/// RFC 7541 as it stands there.
struct Slow {
    /// The newest is the last.
    table: Vec<(Vec<u8>, Vec<u8>)>,
    limit: usize,
}

impl Slow {
    fn size(&self) -> usize {
        self.table.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
    }

    fn evict(&mut self, most: usize) {
        while self.size() > most && !self.table.is_empty() {
            self.table.remove(0);
        }
    }

    fn entry(&self, index: u64) -> Option<(Vec<u8>, Vec<u8>)> {
        if index > 61 {
            let place = (self.table.len() as u64).checked_sub(index - 61)?;
            return self.table.get(place as usize).cloned();
        }
        // Each index of the static table is one byte.
        let mut found = None;
        let block = [0x80 | index as u8];
        let result =
            Decoder::new(0).decode(&block, |name, value, _| found = Some((name.to_vec(), value.to_vec())));
        result.ok().and(found)
    }

    fn decode(&mut self, mut rest: &[u8]) -> Option<Fields> {
        let mut fields = Fields::new();
        while let Some(first) = rest.first() {
            let prefix = match first {
                0x80.. => 7,
                0x40.. => 6,
                0x20.. => 5,
                _ => 4,
            };
            let index = integer(&mut rest, prefix)?;
            if prefix == 5 {
                if !fields.is_empty() || index > LIMIT as u64 {
                    return None;
                }
                self.limit = index as usize;
                self.evict(self.limit);
                continue;
            }
            if prefix == 7 {
                let (name, value) = self.entry(index)?;
                fields.push((name, value, false));
                continue;
            }
            let name = if index == 0 { string(&mut rest)? } else { self.entry(index)?.0 };
            let value = string(&mut rest)?;
            if prefix == 6 {
                let size = name.len() + value.len() + 32;
                self.evict(self.limit.saturating_sub(size));
                if size <= self.limit {
                    self.table.push((name.clone(), value.clone()));
                }
            }
            fields.push((name, value, prefix == 4 && first & 0x10 != 0));
        }
        Some(fields)
    }
}

fn integer(rest: &mut &[u8], prefix: u32) -> Option<u64> {
    let most = (1 << prefix) - 1;
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    let mut value = u64::from(*first & most);
    if value < u64::from(most) {
        return Some(value);
    }
    for place in 0..5 {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value += u64::from(*byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            return (value < 1 << 32).then_some(value);
        }
    }
    None
}

fn string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let is_huffman = rest.first()? & 0x80 != 0;
    let length = integer(rest, 7)? as usize;
    let bytes = rest.get(..length)?;
    *rest = &rest[length..];
    if is_huffman { bit_by_bit(bytes) } else { Some(bytes.to_vec()) }
}

fn bit_by_bit(code: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut bits) = (Vec::new(), Vec::new());
    for bit in code.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1)) {
        bits.push(bit);
        if let Some(byte) = SYMBOLS.with(|symbols| symbols.get(&bits).copied()) {
            bytes.push(byte);
            bits.clear();
        }
        if bits.len() == 30 {
            return None;
        }
    }
    (bits.len() < 8 && bits.iter().all(|bit| *bit == 1)).then_some(bytes)
}

thread_local! {
    /// Each byte's code, as the encoder has it: eight times the same byte is eight times its code.
    static SYMBOLS: std::collections::HashMap<Vec<u8>, u8> = (0..=255)
        .map(|byte| {
            let mut code = Vec::new();
            huffman::encode(&[byte; 8], &mut code);
            let bits = code.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1));
            (bits.take(code.len()).collect(), byte)
        })
        .collect();
}
