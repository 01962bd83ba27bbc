//! The examples of RFC 7541 appendix C.

use super::{fields_of, hex, pairs};
use crate::hpack::{Decoder, Encoder, integer};

/// Decodes one block and checks its fields and the size of the table behind it.
fn check(decoder: &mut Decoder, block: &[u8], fields: &[(&str, &str)], table: usize) {
    assert_eq!(fields_of(decoder, block), Ok(pairs(fields)));
    assert_eq!(decoder.table_size(), table);
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const RESPONSES: [&[(&str, &str)]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
    ],
];

/// C.4, which our encoder makes as it stands there.
const REQUEST_BLOCKS: [&str; 3] = [
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
];

#[test]
fn c_1_integers() {
    for (value, prefix, code) in
        [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a]), (31, 5, &[0x1f, 0x00])]
    {
        let mut written = Vec::new();
        integer::write(0, prefix, value, &mut written);
        assert_eq!(written, code);
        let mut rest = &code[1..];
        assert_eq!(integer::read(code[0], prefix, &mut rest), Ok(value));
        assert!(rest.is_empty());
    }
}

#[test]
fn c_2_representations() {
    let custom = [("custom-key", "custom-header")];
    check(&mut Decoder::new(4096), b"\x40\x0acustom-key\x0dcustom-header", &custom, 55);
    check(&mut Decoder::new(4096), b"\x04\x0c/sample/path", &[(":path", "/sample/path")], 0);
    let mut never = Vec::new();
    let block = b"\x10\x08password\x06secret";
    let decoded = Decoder::new(4096).decode(block, |name, value, is_never| {
        never.push((name.to_vec(), value.to_vec(), is_never));
    });
    assert_eq!((decoded, never), (Ok(()), vec![(b"password".to_vec(), b"secret".to_vec(), true)]));
    check(&mut Decoder::new(4096), b"\x82", &[(":method", "GET")], 0);
}

#[test]
fn c_3_requests_without_huffman_code() {
    let mut decoder = Decoder::new(4096);
    let [first, second, third] = REQUESTS;
    check(&mut decoder, b"\x82\x86\x84\x41\x0fwww.example.com", first, 57);
    check(&mut decoder, b"\x82\x86\x84\xbe\x58\x08no-cache", second, 110);
    check(&mut decoder, b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value", third, 164);
}

#[test]
fn c_4_requests_with_huffman_code() {
    let mut decoder = Decoder::new(4096);
    for ((block, fields), table) in REQUEST_BLOCKS.iter().zip(REQUESTS).zip([57, 110, 164]) {
        check(&mut decoder, &hex(block), fields, table);
    }
}

#[test]
fn the_encoder_makes_c_4() {
    let mut encoder = Encoder::new();
    for (fields, block) in REQUESTS.iter().zip(REQUEST_BLOCKS) {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in *fields {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut out);
        }
        assert_eq!(out, hex(block));
    }
    assert_eq!(encoder.table_size(), 164);
}

#[test]
fn c_5_responses_without_huffman_code() {
    let mut decoder = Decoder::new(256);
    let [first, second, third] = RESPONSES;
    let block =
        b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x6e\x17https://www.example.com";
    check(&mut decoder, block, first, 222);
    // The status evicts the one before.
    check(&mut decoder, b"\x48\x03307\xc1\xc0\xbf", second, 222);
    let block = b"\x88\xc1\x61\x1dMon, 21 Oct 2013 20:13:22 GMT\xc0\x5a\x04gzip\
        \x77\x38foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    check(&mut decoder, block, third, 215);
}

#[test]
fn c_6_responses_with_huffman_code() {
    let mut decoder = Decoder::new(256);
    let blocks = [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];
    for ((block, fields), table) in blocks.iter().zip(RESPONSES).zip([222, 222, 215]) {
        check(&mut decoder, &hex(block), fields, table);
    }
}
