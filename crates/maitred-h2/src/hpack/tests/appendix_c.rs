//! The examples of RFC 7541 appendix C.

use crate::hpack::{Decoder, Encoder, HpackError, huffman};

#[test]
fn it_goes_round() {
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::new(4096);
    for _ in 0..3 {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        encoder.status(200, &mut block);
        encoder.field(b"Content-Type", b"text/html; charset=utf-8", &mut block);
        encoder.field(b"server", b"maitred", &mut block);
        encoder.field(b"content-length", b"1234", &mut block);
        let mut fields = Vec::new();
        decoder.decode(&block, |n, v, _| fields.push((n.to_vec(), v.to_vec()))).expect("a block");
        assert_eq!(fields.len(), 4);
        assert_eq!(fields[1], (b"content-type".to_vec(), b"text/html; charset=utf-8".to_vec()));
        let _ = (HpackError::Index, huffman::encoded_len(&block));
    }
}
