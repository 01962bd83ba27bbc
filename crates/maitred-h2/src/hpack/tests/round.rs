//! Encoded fields are decoded to themselves.

use proptest::prelude::*;

use crate::hpack::{DEFAULT_TABLE, Decoder, Encoder};

type Bytes = Vec<u8>;

/// A block: size changes before it, and its fields.
#[derive(Clone, Debug)]
struct Block {
    sizes: Vec<u32>,
    fields: Vec<(Bytes, Bytes)>,
}

/// Names that come again, in the static table and outside, and any others.
fn name() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        prop::sample::select(vec![
            "content-type",
            "date",
            "server",
            "etag",
            "set-cookie",
            "vary",
            "x-id",
            "x-b",
            ":path"
        ])
        .prop_map(|name| name.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>().prop_map(|byte| byte.to_ascii_lowercase()), 0..40),
    ]
}

fn value() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        4 => prop::sample::select(vec!["", "/", "a", "text/html", "Tue, 24 Nov 2026 10:00:00 GMT", "maitred"])
            .prop_map(|value| value.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..60),
        1 => prop::collection::vec(any::<u8>(), 0..5000),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    let sizes = prop::collection::vec(prop_oneof![0_u32..200, 0_u32..10_000], 0..3);
    let sizes = prop_oneof![3 => Just(Vec::new()), 1 => sizes];
    (sizes, prop::collection::vec((name(), value()), 0..12))
        .prop_map(|(sizes, fields)| Block { sizes, fields })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_blocks_go_round(blocks in prop::collection::vec(block(), 1..12)) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(DEFAULT_TABLE));
        for Block { sizes, fields } in blocks {
            sizes.iter().for_each(|size| encoder.set_max_table(*size));
            let mut out = Vec::new();
            encoder.begin(&mut out);
            for (name, value) in &fields {
                encoder.field(&name.to_ascii_uppercase(), value, &mut out);
            }
            let mut decoded = Vec::new();
            let result = decoder.decode(&out, |name, value, _| decoded.push((name.to_vec(), value.to_vec())));
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(decoded, fields);
            prop_assert_eq!(encoder.table_size(), decoder.table_size());
            if let Some(size) = sizes.last() {
                prop_assert!(encoder.table_size() <= *size as usize);
            }
        }
    }

    /// Any bytes give an answer, not a panic, and never more than the table may have.
    #[test]
    fn any_bytes_are_answered(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..6)) {
        let mut decoder = Decoder::new(200);
        for block in blocks {
            let _ = decoder.decode(&block, |_, _, _| ());
            prop_assert!(decoder.table_size() <= 200);
        }
    }
}
