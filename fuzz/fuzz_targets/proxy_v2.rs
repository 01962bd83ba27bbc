//! The PROXY protocol, version 2. Input: the bytes behind the signature, or, if it begins so, all of it.
//!
//! However the bytes are cut the header is the same and no byte behind it is asked for; a slow reader of whole headers
//! agrees; a header that was refused for its checksum alone is accepted with the right one.
#![no_main]

use std::net::{IpAddr, SocketAddr};

use libfuzzer_sys::fuzz_target;
use maitred_forward::proxy::{Header, ProxyError, Source, Step, Tlv, parse};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Of a header, in bytes.
const LIMIT: usize = 1024;

fuzz_target!(|input: &[u8]| {
    let mut data = if input.starts_with(SIGNATURE) { input.to_vec() } else { [SIGNATURE, input].concat() };
    check(&data);
    if let Err(ProxyError::Checksum) = parse(&data, LIMIT) {
        let place = make_right(&mut data);
        check(&data);
        assert!(matches!(parse(&data, LIMIT), Ok(Step::Header(_))), "the checksum is right");
        data[place] ^= 1;
        assert_eq!(parse(&data, LIMIT), Err(ProxyError::Checksum));
    }
});

fn check(data: &[u8]) {
    let mut refused = None;
    for end in 0..data.len() {
        match parse(&data[..end], LIMIT) {
            Ok(Step::NeedMore { at_least }) => {
                assert!(refused.is_none() && at_least > end && at_least <= LIMIT);
            }
            Ok(Step::Header(header)) => {
                assert!(header.length <= end);
                assert_eq!(parse(&data[..header.length], LIMIT), Ok(Step::Header(header)));
                assert!(
                    matches!(parse(&data[..header.length - 1], LIMIT), Ok(Step::NeedMore { at_least }) if at_least <= header.length)
                );
            }
            Err(error) => assert_eq!(*refused.get_or_insert(error), error, "another error"),
        }
    }
    match parse(data, LIMIT) {
        Ok(Step::Header(header)) => check_header(data, &header),
        Ok(Step::NeedMore { .. }) => assert!(refused.is_none()),
        Err(error) => {
            assert!(refused.is_none_or(|before| before == error));
            assert!(!error.to_string().is_empty());
        }
    }
}

fn check_header(data: &[u8], header: &Header<'_>) {
    let length = 16 + usize::from(data[14]) * 256 + usize::from(data[15]);
    assert_eq!(header.length, length);
    assert!(length <= LIMIT && matches!(data[12], 0x20 | 0x21));
    let block = &data[16..length];
    let family = if data[12] == 0x20 { 0 } else { data[13] };
    let (source, addresses) = match family {
        0x11 => (inet::<4>(block), 12),
        0x21 => (inet::<16>(block), 36),
        0x31 => (Source::Unix, 216),
        other => {
            assert!(other >> 4 == 0 || other & 0x0f == 0);
            (Source::Local, block.len())
        }
    };
    assert_eq!(header.source, source);
    let values = values(&block[addresses..]);
    let first = |kind: u8| values.iter().find(|value| value.0 == kind).map(|value| value.1);
    assert_eq!(header.tlvs().map(|tlv| (tlv.kind, tlv.value)).collect::<Vec<_>>(), values);
    assert_eq!(header.alpn(), first(Tlv::ALPN));
    assert_eq!(header.authority(), first(Tlv::AUTHORITY));
    assert_eq!(header.unique_id(), first(Tlv::UNIQUE_ID));
    let tls = first(Tlv::TLS);
    assert_eq!(header.tls().map(|tls| tls.client), tls.map(|value| value[0]));
    if let (Some(tls), Some(value)) = (header.tls(), tls) {
        let nested = self::values(&value[5..]);
        assert_eq!(tls.verify, value[1..5].iter().fold(0, |sum, byte| sum * 256 + u32::from(*byte)));
        assert_eq!(tls.tlvs().map(|tlv| (tlv.kind, tlv.value)).collect::<Vec<_>>(), nested);
        assert_eq!(tls.is_verified(), matches!(tls.client & 6, 1..) && tls.verify == 0);
    }
    if let Some(sent) = first(Tlv::CRC32C) {
        let mut again = data[..length].to_vec();
        make_right(&mut again);
        assert_eq!(again, data[..length], "the checksum {sent:?}");
    }
}

fn inet<const N: usize>(block: &[u8]) -> Source
where
    IpAddr: From<[u8; N]>,
{
    let address = |at: usize| <[u8; N]>::try_from(&block[at..at + N]).expect("the length");
    let port = |at: usize| (u16::from(block[at]) << 8) | u16::from(block[at + 1]);
    Source::Inet {
        source: SocketAddr::new(address(0).into(), port(2 * N)),
        destination: SocketAddr::new(address(N).into(), port(2 * N + 2)),
    }
}

/// Types and values, padding left out.
fn values(mut block: &[u8]) -> Vec<(u8, &[u8])> {
    let mut values = Vec::new();
    while !block.is_empty() {
        let end = 3 + usize::from(block[1]) * 256 + usize::from(block[2]);
        if block[0] != Tlv::NOOP {
            values.push((block[0], &block[3..end]));
        }
        block = &block[end..];
    }
    values
}

/// Writes the checksum to its place in the header, bit by bit after RFC 3720 Appendix B.4, and returns the place.
fn make_right(data: &mut [u8]) -> usize {
    let length = 16 + usize::from(data[14]) * 256 + usize::from(data[15]);
    let mut at = 16
        + match data[13] {
            0x11 => 12,
            0x21 => 36,
            _ => 216,
        };
    while data[at] != Tlv::CRC32C {
        at += 3 + usize::from(data[at + 1]) * 256 + usize::from(data[at + 2]);
    }
    let place = at + 3;
    data[place..place + 4].fill(0);
    let mut sum = u32::MAX;
    for byte in &data[..length] {
        for bit in 0..8 {
            let lowest = (sum ^ u32::from(byte >> bit)) & 1;
            sum = (sum >> 1) ^ (lowest * 0x82f6_3b78);
        }
    }
    data[place..place + 4].copy_from_slice(&(!sum).to_be_bytes());
    place
}
