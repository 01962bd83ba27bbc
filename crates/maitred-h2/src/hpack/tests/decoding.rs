//! Errors of the decoder, and its table.

use super::{fields_of, pairs};
use crate::hpack::HpackError::{
    self, Huffman, Index, Integer, LateSizeUpdate, Repeated, SizeUpdate, Truncated,
};
use crate::hpack::{Decoder, integer};

fn refusal(block: &[u8]) -> HpackError {
    fields_of(&mut Decoder::new(4096), block).expect_err("a fault")
}

/// A block that inserts a field.
fn inserting(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0x40];
    for text in [name, value] {
        integer::write(0, 7, text.len(), &mut block);
        block.extend_from_slice(text.as_bytes());
    }
    block
}

#[test]
fn an_empty_block_has_no_fields() {
    assert_eq!(fields_of(&mut Decoder::new(4096), b""), Ok(vec![]));
}

#[test]
fn faults_are_told_apart() {
    for (block, error) in [
        // Index 0, and indices behind both tables.
        (&b"\x80"[..], Index),
        (b"\xbe", Index),
        (b"\x7e\x01a", Index),
        (b"\x0f\x2f\x01a", Index),
        // The largest number of five bytes that has 32 bits, and the next one.
        (b"\xff\x80\xff\xff\xff\x0f", Index),
        (b"\xff\x81\xff\xff\xff\x0f", Integer),
        (b"\xff\x80\x80\x80\x80\x10", Integer),
        (b"\xff\xff\xff\xff\xff\x0f", Integer),
        (b"\xff\x80\x80\x80\x80\x80\x00", Integer),
        (b"\x3f\xff\xff\xff\xff\xff\xff\xff\xff\x7f", Integer),
        (b"\x00\x01a\x7f\x80\x80\x80\x80\x10", Integer),
        // A size update behind a field, and above 4096.
        (b"\x82\x20", LateSizeUpdate),
        (b"\x3f\xe2\x1f", SizeUpdate),
        // Eight bits of padding, and EOS.
        (b"\x00\x81\xff\x01a", Huffman),
        (b"\x00\x01a\x84\xff\xff\xff\xff", Huffman),
    ] {
        assert_eq!(refusal(block), error, "{block:x?}");
    }
}

#[test]
fn a_block_that_ends_anywhere_within_a_field_is_refused() {
    let field = b"\x40\x0acustom-key\x0dcustom-header";
    for end in 1..field.len() {
        assert_eq!(refusal(&field[..end]), Truncated, "{end}");
    }
    for block in [&b"\xff"[..], b"\xff\x80", b"\x3f", b"\x7f", b"\x10", b"\x00\x7f", b"\x0f", b"\x44\x85abcd"]
    {
        assert_eq!(refusal(block), Truncated, "{block:x?}");
    }
}

#[test]
fn numbers_may_have_zeros_in_front_up_to_five_bytes() {
    // 127 + 0 is one behind the entries there are; with 66 inserted fields it is the oldest.
    let mut decoder = Decoder::new(4096);
    for _ in 0..66 {
        fields_of(&mut decoder, &inserting("a", "b")).expect("a block");
    }
    for block in [&b"\xff\x00"[..], b"\xff\x80\x00", b"\xff\x80\x80\x80\x80\x00"] {
        assert_eq!(fields_of(&mut decoder, block), Ok(pairs(&[("a", "b")])), "{block:x?}");
    }
    assert_eq!(fields_of(&mut decoder, b"\xff\x01"), Err(Index));
}

#[test]
fn the_fields_before_a_fault_are_reported() {
    let mut count = 0;
    let decoded = Decoder::new(4096).decode(b"\x82\x84\x80", |_, _, _| count += 1);
    assert_eq!((decoded, count), (Err(Index), 2));
}

#[test]
fn only_the_representation_of_6_2_3_is_never_indexed() {
    let mut seen = Vec::new();
    let block = b"\x82\x00\x01a\x01b\x10\x01a\x01b\x40\x01a\x01b\x1f\x08\x01b\xbe";
    Decoder::new(4096).decode(block, |_, _, never| seen.push(never)).expect("a block");
    assert_eq!(seen, [false, false, true, false, true, false]);
}

#[test]
fn entries_are_evicted_from_the_oldest_on() {
    // Two entries of 34 bytes and no third one.
    let mut decoder = Decoder::new(101);
    for name in ["a", "b", "c"] {
        fields_of(&mut decoder, &inserting(name, "1")).expect("a block");
    }
    assert_eq!(decoder.table_size(), 68);
    assert_eq!(fields_of(&mut decoder, b"\xbe\xbf"), Ok(pairs(&[("c", "1"), ("b", "1")])));
    assert_eq!(fields_of(&mut decoder, b"\xc0"), Err(Index));
}

#[test]
fn a_field_as_large_as_the_table_is_its_only_entry_and_a_larger_one_empties_it() {
    let mut decoder = Decoder::new(100);
    fields_of(&mut decoder, &inserting("a", "1")).expect("a block");
    let most = "x".repeat(67);
    fields_of(&mut decoder, &inserting("b", &most)).expect("a block");
    assert_eq!(fields_of(&mut decoder, b"\xbe"), Ok(pairs(&[("b", &most)])));
    assert_eq!((fields_of(&mut decoder, b"\xbf"), decoder.table_size()), (Err(Index), 100));
    let more = "x".repeat(68);
    assert_eq!(fields_of(&mut decoder, &inserting("c", &more)), Ok(pairs(&[("c", &more)])));
    assert_eq!((fields_of(&mut decoder, b"\xbe"), decoder.table_size()), (Err(Index), 0));
}

/// RFC 7541 §4.4: the name is that of an entry which the insertion evicts.
#[test]
fn the_name_of_an_entry_that_is_evicted_stays_whole() {
    let mut decoder = Decoder::new(64);
    fields_of(&mut decoder, &inserting("the-name", "first")).expect("a block");
    let expected = pairs(&[("the-name", "a value for which there is room")]);
    let mut block = b"\x7e\x1f".to_vec();
    block.extend_from_slice(b"a value for which there is room");
    assert_eq!(fields_of(&mut decoder, &block), Ok(expected));
    // 8 + 31 + 32 bytes are too many.
    assert_eq!(decoder.table_size(), 0);
    fields_of(&mut decoder, &inserting("the-name", "first")).expect("a block");
    assert_eq!(fields_of(&mut decoder, b"\x7e\x01x\xbe"), Ok(pairs(&[("the-name", "x"), ("the-name", "x")])));
    assert_eq!(decoder.table_size(), 41);
}

#[test]
fn size_updates_at_the_start_evict() {
    let mut decoder = Decoder::new(4096);
    for name in ["a", "b", "c"] {
        fields_of(&mut decoder, &inserting(name, "1")).expect("a block");
    }
    // 68 bytes: two entries stay.
    assert_eq!(fields_of(&mut decoder, b"\x3f\x25\xbf"), Ok(pairs(&[("b", "1")])));
    assert_eq!(decoder.table_size(), 68);
    // To nothing and back to 4096 (RFC 7541 §4.2): all are gone, and there is room again.
    assert_eq!(fields_of(&mut decoder, b"\x20\x3f\xe1\x1f"), Ok(vec![]));
    assert_eq!(decoder.table_size(), 0);
    fields_of(&mut decoder, &inserting("d", &"x".repeat(4000))).expect("a block");
    assert_eq!(decoder.table_size(), 4033);
}

#[test]
fn a_table_larger_than_usual_begins_with_the_usual_size() {
    let mut decoder = Decoder::new(8192);
    let large = "x".repeat(5000);
    fields_of(&mut decoder, &inserting("a", &large)).expect("a block");
    assert_eq!(decoder.table_size(), 0);
    // 8192 is 31 + 8161.
    let mut block = b"\x3f\xe1\x3f".to_vec();
    block.extend(inserting("a", &large));
    fields_of(&mut decoder, &block).expect("a block");
    assert_eq!(decoder.table_size(), 5033);
}

/// The memory is bounded for all insertions: twice the table and the entries it can have.
#[test]
fn the_memory_is_bounded() {
    let mut decoder = Decoder::new(4096);
    for count in 0..5000_usize {
        let (large, small) = ("v".repeat(count * 7919 % 4200), count.to_string());
        fields_of(&mut decoder, &inserting("large", &large)).expect("a block");
        assert!(decoder.table_size() <= 4096);
        fields_of(&mut decoder, &inserting("small", &small)).expect("a block");
        assert!(decoder.table_size() <= 4096);
        assert_eq!(fields_of(&mut decoder, b"\xbe"), Ok(pairs(&[("small", &small)])));
        if small.len() + large.len() <= 4096 - 2 * ("large".len() + 32) {
            assert_eq!(fields_of(&mut decoder, b"\xbf"), Ok(pairs(&[("large", &large)])));
        }
    }
    for _ in 0..1000 {
        fields_of(&mut decoder, b"\x40\x00\x00").expect("a block");
    }
    assert_eq!(decoder.table_size(), 4096);
    assert!(decoder.memory() <= 8192 + 4096, "{}", decoder.memory());
}

#[test]
fn the_memory_of_a_large_string_is_given_back() {
    let mut decoder = Decoder::new(4096);
    // 20,000 zeros of five bits.
    let mut block = b"\x00\x01a".to_vec();
    integer::write(0x80, 7, 12_500, &mut block);
    block.extend([0].repeat(12_500));
    let fields = fields_of(&mut decoder, &block).expect("a block");
    assert_eq!(fields, pairs(&[("a", &"0".repeat(20_000))]));
    assert_eq!(decoder.memory(), 0);
}

#[test]
fn a_block_takes_four_tables_out_of_the_table_at_most() {
    let mut decoder = Decoder::new(4096);
    // With its overhead it fills the table.
    fields_of(&mut decoder, &inserting("x", &"v".repeat(4096 - 33))).expect("a block");
    let entry = 4096 - 32;
    for _ in 0..100 {
        let fields = fields_of(&mut decoder, &[0xbe].repeat(4)).expect("each block counts for itself");
        assert_eq!(fields.len(), 4);
    }
    // The rest of four tables is that of names.
    let named = b"\x0f\x2f\x00".repeat(4 * 4096 - 4 * entry);
    let full = [&[0xbe].repeat(4)[..], &named].concat();
    assert!(fields_of(&mut decoder, &full).is_ok());
    for more in [&b"\xbe"[..], b"\x0f\x2f\x00", b"\x7e\x00"] {
        assert_eq!(fields_of(&mut decoder.clone(), &[&full, more].concat()), Err(Repeated));
    }
    assert!(
        fields_of(&mut decoder, &[&full[..], b"\x82", b"\x00\x01a\x01b"].concat()).is_ok(),
        "other fields"
    );
}
