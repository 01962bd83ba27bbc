use proptest::prelude::*;

use super::*;

fn socket(text: &str) -> SocketAddr {
    text.parse().expect("an address with its port")
}

fn inet(source: &str, destination: &str) -> Source {
    Source::Inet { source: socket(source), destination: socket(destination) }
}

fn header(data: &[u8]) -> Header<'_> {
    match parse(data, USUAL_LIMIT) {
        Ok(Step::Header(header)) => header,
        other => panic!("{other:?}"),
    }
}

/// All cuts of a header: more is asked for, never beyond its end, and the bytes behind it change nothing.
fn check_every_cut(data: &[u8], limit: usize) {
    let whole = parse(data, limit);
    assert!(matches!(whole, Ok(Step::Header(found)) if found.length == data.len()), "{whole:?}");
    for end in 0..data.len() {
        match parse(&data[..end], limit) {
            Ok(Step::NeedMore { at_least }) => {
                assert!(end < at_least && at_least <= data.len(), "{end}: {at_least}")
            }
            other => panic!("{end}: {other:?}"),
        }
    }
    for behind in [&b"\r\n"[..], b"GET / HTTP/1.1\r\n", b"PROXY UNKNOWN\r\n", b"\0"] {
        assert_eq!(parse(&[data, behind].concat(), limit), whole);
    }
}

/// An error stays one with all further bytes, and no beginning of it is a header.
fn check_refused(data: &[u8], limit: usize, expected: ProxyError) {
    assert_eq!(parse(data, limit), Err(expected), "{}", data.escape_ascii());
    let mut refused = None;
    for end in 0..=data.len() {
        match parse(&data[..end], limit) {
            Ok(Step::Header(header)) => panic!("{end}: {header:?}"),
            Ok(Step::NeedMore { at_least }) => assert!(refused.is_none() && at_least > end),
            Err(error) => assert_eq!(*refused.get_or_insert(error), error),
        }
    }
}

#[test]
fn lines_of_version_1() {
    for (line, source) in [
        ("TCP4 192.168.0.1 192.168.0.11 56324 443", inet("192.168.0.1:56324", "192.168.0.11:443")),
        (
            "TCP4 255.255.255.255 255.255.255.255 65535 65535",
            inet("255.255.255.255:65535", "255.255.255.255:65535"),
        ),
        ("TCP4 0.0.0.0 0.0.0.0 0 0", inet("0.0.0.0:0", "0.0.0.0:0")),
        ("TCP6 2001:db8::1 ::1 1 2", inet("[2001:db8::1]:1", "[::1]:2")),
        ("TCP6 2001:DB8:0:0:0:0:0:1 ::ffff:192.0.2.1 1 2", inet("[2001:db8::1]:1", "[::ffff:192.0.2.1]:2")),
        (
            "TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
            inet(
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
            ),
        ),
        ("UNKNOWN", Source::Local),
        ("UNKNOWN ", Source::Local),
        ("UNKNOWN  what\tever \u{e4} \0", Source::Local),
        (
            "UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
            Source::Local,
        ),
    ] {
        let line = format!("PROXY {line}\r\n");
        assert_eq!(header(line.as_bytes()).source, source, "{line}");
        assert_eq!(header(line.as_bytes()).tlvs().count(), 0);
        // The limit is for version 2.
        check_every_cut(line.as_bytes(), 0);
    }
}

#[test]
fn invalid_lines_of_version_1() {
    let long = format!("UNKNOWN {}\r\n", "x".repeat(MAX_V1 - 15));
    for (line, expected) in [
        ("TCP4 192.168.0.1 192.168.0.11 56324 443\n", ProxyError::LineEnd),
        ("TCP4 192.168.0.1 192.168.0.11 56324 443\rx", ProxyError::LineEnd),
        ("UNKNOWN\n", ProxyError::LineEnd),
        ("UNKNOWN x\nPROXY UNKNOWN\r\n", ProxyError::LineEnd),
        ("UNKNOWN \r\r\n", ProxyError::LineEnd),
        (&long, ProxyError::LineTooLong),
        ("TCP4 192.168.0.1  192.168.0.11 56324 443\r\n", ProxyError::Line),
        ("TCP4  192.168.0.1 192.168.0.11 56324 443\r\n", ProxyError::Line),
        ("TCP4 192.168.0.1 192.168.0.11 56324 443 \r\n", ProxyError::Line),
        ("TCP4 192.168.0.1 192.168.0.11 56324\r\n", ProxyError::Line),
        ("TCP4 \r\n", ProxyError::Line),
        ("TCP4 192.168.0.1 192.168.0.11 56324 443 1\r\n", ProxyError::Line),
        ("TCP4 192.168.0.1\t192.168.0.11 56324 443 1\r\n", ProxyError::Address),
        ("TCP4 2001:db8::1 ::1 1 2\r\n", ProxyError::Address),
        ("TCP4 192.168.0.1 ::1 1 2\r\n", ProxyError::Address),
        ("TCP6 192.168.0.1 192.168.0.11 1 2\r\n", ProxyError::Address),
        ("TCP6 [::1] ::1 1 2\r\n", ProxyError::Address),
        ("TCP6 fe80::1%eth0 ::1 1 2\r\n", ProxyError::Address),
        ("TCP4 192.168.0.01 192.168.0.11 1 2\r\n", ProxyError::Address),
        ("TCP4 192.168.0 192.168.0.11 1 2\r\n", ProxyError::Address),
        ("TCP4 192.168.0.256 192.168.0.11 1 2\r\n", ProxyError::Address),
        ("TCP4 localhost 192.168.0.11 1 2\r\n", ProxyError::Address),
        ("TCP4 192.168.0.\u{e4} 192.168.0.11 1 2\r\n", ProxyError::Address),
        ("TCP4 192.168.0.1 192.168.0.11 01 2\r\n", ProxyError::Port),
        ("TCP4 192.168.0.1 192.168.0.11 1 00\r\n", ProxyError::Port),
        ("TCP4 192.168.0.1 192.168.0.11 1 65536\r\n", ProxyError::Port),
        ("TCP4 192.168.0.1 192.168.0.11 1 +2\r\n", ProxyError::Port),
        ("TCP4 192.168.0.1 192.168.0.11 1 -2\r\n", ProxyError::Port),
        ("TCP4 192.168.0.1 192.168.0.11 1 0x2\r\n", ProxyError::Port),
        ("TCP4 192.168.0.1 192.168.0.11 1 123456\r\n", ProxyError::Port),
        ("UDP4 192.168.0.1 192.168.0.11 1 2\r\n", ProxyError::Protocol),
        ("TCP5", ProxyError::Protocol),
        ("tcp4 ", ProxyError::Protocol),
        (" TCP4", ProxyError::Protocol),
        ("UNKNOWNX", ProxyError::Protocol),
        ("TCP4\r\n", ProxyError::Protocol),
        ("\r\n", ProxyError::Protocol),
    ] {
        check_refused(format!("PROXY {line}").as_bytes(), USUAL_LIMIT, expected);
    }
    assert_eq!(long.len() + 6, MAX_V1 + 1);
}

#[test]
fn a_byte_that_neither_version_has_is_told_at_once() {
    for data in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"PRI * HTTP/2.0\r\n",
        b"POST",
        b"PROXYTCP4",
        b"proxy",
        b"\r\nGET / ",
        b"\r\n\r\nGET",
        b"\x16\x03\x01",
        b"\n",
        b"\r\n\r\n\0\r\nQUIT\r",
    ] {
        check_refused(data, USUAL_LIMIT, ProxyError::Signature);
        let valid = [&b"PROXY UNKNOWN\r\n"[..], SIGNATURE];
        let same = |other: &[u8]| data.iter().zip(other).take_while(|(one, two)| one == two).count();
        let differs = valid.into_iter().map(same).max().expect("two");
        assert!(parse(&data[..differs], USUAL_LIMIT).is_ok());
        assert_eq!(parse(&data[..=differs], USUAL_LIMIT), Err(ProxyError::Signature));
    }
}

#[test]
fn a_line_that_will_be_too_long_is_told_as_soon_as_it_is() {
    let line = format!("PROXY UNKNOWN {}", "x".repeat(200));
    for end in 0..line.len() {
        let found = parse(&line.as_bytes()[..end], USUAL_LIMIT);
        // The line end takes two bytes.
        assert_eq!(found.is_err(), end > MAX_V1 - 2, "{end}");
    }
    let with_cr = [&line.as_bytes()[..MAX_V1 - 2], b"\r"].concat();
    assert_eq!(parse(&with_cr, 0), Ok(Step::NeedMore { at_least: MAX_V1 }));
}

/// A header of version 2.
fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("16 bits").to_be_bytes();
    [&SIGNATURE[..], &[command, family], &length, rest].concat()
}

fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind], &u16::try_from(value.len()).expect("16 bits").to_be_bytes()[..], value].concat()
}

const FOUR: &[u8] = &[192, 0, 2, 1, 192, 0, 2, 2, 0x12, 0x34, 0x01, 0xbb];

fn four_with(tlvs: &[Vec<u8>]) -> Vec<u8> {
    binary(0x21, 0x11, &[FOUR, &tlvs.concat()].concat())
}

#[test]
fn headers_of_version_2() {
    let mut six = [0; 36];
    (six[0], six[15], six[31], six[33], six[35]) = (0xfd, 1, 2, 80, 81);
    let unix = [b'/'; 216];
    let four_source = inet("192.0.2.1:4660", "192.0.2.2:443");
    for (command, family, rest, source) in [
        (0x21, 0x11, FOUR, four_source),
        (0x21, 0x21, &six, inet("[fd00::1]:80", "[::2]:81")),
        (0x21, 0x31, &unix, Source::Unix),
        (0x21, 0x00, b"", Source::Local),
        (0x21, 0x00, b"anything", Source::Local),
        (0x21, 0x10, FOUR, Source::Local),
        (0x21, 0x01, b"\x03", Source::Local),
        (0x20, 0x00, b"", Source::Local),
        (0x20, 0x11, FOUR, Source::Local),
        (0x20, 0x11, b"\xff", Source::Local),
        (0x20, 0xff, b"\x03\0\x04\0\0\0\0", Source::Local),
    ] {
        let data = binary(command, family, rest);
        assert_eq!(header(&data).source, source);
        assert_eq!(header(&data).tlvs().count(), 0);
        check_every_cut(&data, USUAL_LIMIT);
        // The shortest limit, and one byte less.
        check_every_cut(&data, data.len());
        check_refused(&data, data.len() - 1, ProxyError::TooLong);
    }
    let longest = binary(0x20, 0, &[7; 65535]);
    assert!(matches!(parse(&longest, MAX_V2), Ok(Step::Header(header)) if header.length == MAX_V2));
}

#[test]
fn invalid_headers_of_version_2() {
    let unix = [0; 216];
    for (data, expected) in [
        (binary(0x11, 0x11, FOUR), ProxyError::Version),
        (binary(0x31, 0x11, FOUR), ProxyError::Version),
        (binary(0x01, 0x11, FOUR), ProxyError::Version),
        (binary(0x22, 0x11, FOUR), ProxyError::Command),
        (binary(0x2f, 0x11, FOUR), ProxyError::Command),
        (binary(0x21, 0x12, FOUR), ProxyError::Datagram),
        (binary(0x21, 0x22, &unix), ProxyError::Datagram),
        (binary(0x21, 0x32, &unix), ProxyError::Datagram),
        (binary(0x21, 0x13, FOUR), ProxyError::Family),
        (binary(0x21, 0x41, FOUR), ProxyError::Family),
        (binary(0x21, 0x03, FOUR), ProxyError::Family),
        (binary(0x21, 0xf0, FOUR), ProxyError::Family),
        (binary(0x21, 0x11, &FOUR[1..]), ProxyError::AddressesCutOff),
        (binary(0x21, 0x11, b""), ProxyError::AddressesCutOff),
        (binary(0x21, 0x21, &[0; 35]), ProxyError::AddressesCutOff),
        (binary(0x21, 0x31, &unix[1..]), ProxyError::AddressesCutOff),
        (four_with(&[vec![1]]), ProxyError::TlvCutOff),
        (four_with(&[vec![1, 0]]), ProxyError::TlvCutOff),
        (four_with(&[vec![1, 0, 1]]), ProxyError::TlvCutOff),
        (four_with(&[tlv(1, b"h2"), vec![4, 0xff, 0xff, 0]]), ProxyError::TlvCutOff),
        (four_with(&[tlv(0x20, &[1, 0, 0, 0])]), ProxyError::TlsCutOff),
        (four_with(&[tlv(0x20, &[1, 0, 0, 0, 0, 0x21])]), ProxyError::TlsCutOff),
        (four_with(&[tlv(0x20, &[1, 0, 0, 0, 0, 0x21, 0, 2, 7])]), ProxyError::TlsCutOff),
        (four_with(&[tlv(5, &[7; 129])]), ProxyError::UniqueIdTooLong),
        (four_with(&[tlv(3, &[0; 3])]), ProxyError::ChecksumForm),
        (four_with(&[tlv(3, &[0; 5])]), ProxyError::ChecksumForm),
        (four_with(&[tlv(3, &[0; 4]), tlv(3, &[0; 4])]), ProxyError::ChecksumForm),
        (four_with(&[tlv(3, &[0; 4])]), ProxyError::Checksum),
    ] {
        check_refused(&data, USUAL_LIMIT, expected);
    }
    // Told before the rest has come.
    assert_eq!(parse(&binary(0x11, 0x11, FOUR)[..13], USUAL_LIMIT), Err(ProxyError::Version));
    assert_eq!(parse(&binary(0x21, 0x12, FOUR)[..14], USUAL_LIMIT), Err(ProxyError::Datagram));
    assert_eq!(parse(&binary(0x21, 0x11, &[0; 4090])[..16], USUAL_LIMIT), Err(ProxyError::TooLong));
    assert_eq!(parse(&binary(0x21, 0x21, FOUR)[..16], USUAL_LIMIT), Err(ProxyError::AddressesCutOff));
}

#[test]
fn values_behind_the_addresses() {
    let tls = [&[0x05, 0, 0, 0, 0][..], &tlv(0x21, b"TLSv1.3"), &tlv(0x04, b"x"), &tlv(0x22, b"example.com")]
        .concat();
    let data = four_with(&[
        tlv(0x04, &[0; 5]),
        tlv(0x01, b"h2"),
        tlv(0x02, b"example.org"),
        tlv(0x01, b"http/1.1"),
        tlv(0x05, &[7; 128]),
        tlv(0x04, b""),
        tlv(0x20, &tls),
        tlv(0xe0, b""),
    ]);
    let header = header(&data);
    assert_eq!(header.tlvs().map(|tlv| tlv.kind).collect::<Vec<_>>(), [1, 2, 1, 5, 0x20, 0xe0]);
    assert_eq!(header.alpn(), Some(&b"h2"[..]));
    assert_eq!(header.authority(), Some(&b"example.org"[..]));
    assert_eq!(header.unique_id(), Some(&[7; 128][..]));
    let tls = header.tls().expect("it is there");
    assert!(tls.is_secure() && tls.has_certificate() && tls.is_verified());
    assert_eq!((tls.version(), tls.common_name()), (Some(&b"TLSv1.3"[..]), Some(&b"example.com"[..])));
    assert_eq!(tls.tlvs().map(|tlv| tlv.kind).collect::<Vec<_>>(), [0x21, 0x22]);
    check_every_cut(&data, USUAL_LIMIT);

    // Flags and result, by themselves. Only a given certificate is verified.
    for (client, verify, expected) in [
        (0, 0, (false, false, false)),
        (1, 0, (true, false, false)),
        (1, 1, (true, false, false)),
        (3, 0, (true, true, true)),
        (3, 0x0100_0000, (true, true, false)),
        (5, 1, (true, true, false)),
    ] {
        let value = [&[client], &u32::to_be_bytes(verify)[..]].concat();
        let data = four_with(&[tlv(Tlv::TLS, &value)]);
        let tls = self::header(&data).tls().expect("it is there");
        assert_eq!((tls.is_secure(), tls.has_certificate(), tls.is_verified()), expected);
        assert_eq!((tls.version(), tls.common_name(), tls.verify), (None, None, verify));
    }

    let unix = binary(0x21, 0x31, &[&[0; 216][..], &tlv(0x02, b"a")].concat());
    assert_eq!(self::header(&unix).authority(), Some(&b"a"[..]));
}

/// A header of a load balancer of AWS: a checksum, a value of its own, padding.
#[test]
fn the_checksum_of_a_real_header() {
    let mut data =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x54\xac\x1f\x07\x71\xac\x1f\x0a\x1f\xc8\xf2\0\x50".to_vec();
    data.extend(tlv(Tlv::CRC32C, &[0xe8, 0xd6, 0x89, 0x2d]));
    data.extend(tlv(0xea, b"\x01vpce-08d2bf15fac5001c9"));
    data.extend(tlv(Tlv::NOOP, &[0; 36]));
    assert_eq!(header(&data).source, inet("172.31.7.113:51442", "172.31.10.31:80"));
    assert_eq!(header(&data).tlvs().map(|tlv| tlv.kind).collect::<Vec<_>>(), [3, 0xea]);
    check_every_cut(&data, USUAL_LIMIT);
    for bit in 0..8 * data.len() {
        let mut other = data.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        // Without `PROXY`, or without the type of the checksum, the checksum is not checked.
        let unchecked = matches!(bit / 8, 12 | 13 | 28);
        let found = parse(&other, USUAL_LIMIT);
        assert!(unchecked || !matches!(found, Ok(Step::Header(_))), "{bit}: {found:?}");
    }
}

#[test]
fn errors_name_the_fault() {
    assert_eq!(ProxyError::Signature.to_string(), "no PROXY header: the first bytes are of neither version");
    assert_eq!(ProxyError::LineTooLong.to_string(), format!("the PROXY line is longer than {MAX_V1} bytes"));
}

fn tlvs() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let kind = any::<u8>().prop_filter("has a form of its own", |kind| ![3, 0x20].contains(kind));
    prop::collection::vec((kind, prop::collection::vec(any::<u8>(), 0..=128)), 0..8)
}

proptest! {
    #[test]
    fn a_header_that_is_written_is_read_again(
        source in any::<SocketAddr>(),
        destination in any::<SocketAddr>(),
        values in tlvs(),
        place in any::<prop::sample::Index>(),
        wrong in 1..=u32::MAX,
    ) {
        let (mut block, family) = match (source, destination) {
            (SocketAddr::V4(one), SocketAddr::V4(two)) => ([one.ip().octets(), two.ip().octets()].concat(), 0x11),
            (one, two) => {
                let six = |address: SocketAddr| match address.ip() {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                ([six(one), six(two)].concat(), 0x21)
            }
        };
        block.extend(source.port().to_be_bytes());
        block.extend(destination.port().to_be_bytes());
        let mut written: Vec<Vec<u8>> = values.iter().map(|(kind, value)| tlv(*kind, value)).collect();
        let place = place.index(written.len() + 1);
        written.insert(place, tlv(Tlv::CRC32C, &[0; 4]));
        let at = FIXED_V2 + block.len() + written[..place].concat().len() + 3;
        block.extend(written.concat());
        let mut data = binary(0x21, family, &block);
        let sum = crate::crc32c::crc32c(&data);
        data[at..at + 4].copy_from_slice(&sum.to_be_bytes());

        let read = header(&data);
        prop_assert_eq!(read.length, data.len());
        let Source::Inet { source: from, destination: to } = read.source else { panic!("{read:?}") };
        let same = |one: SocketAddr, two: SocketAddr| one.port() == two.port() && one.ip().to_canonical() == two.ip().to_canonical();
        prop_assert!(same(from, source) && same(to, destination));
        let found: Vec<(u8, Vec<u8>)> =
            read.tlvs().filter(|tlv| tlv.kind != Tlv::CRC32C).map(|tlv| (tlv.kind, tlv.value.to_vec())).collect();
        let expected: Vec<_> = values.into_iter().filter(|(kind, _)| *kind != Tlv::NOOP).collect();
        prop_assert_eq!(found, expected);
        check_every_cut(&data, USUAL_LIMIT);

        data[at..at + 4].copy_from_slice(&(sum ^ wrong).to_be_bytes());
        prop_assert_eq!(parse(&data, USUAL_LIMIT), Err(ProxyError::Checksum));
    }

    #[test]
    fn a_line_that_is_written_is_read_again(source in any::<[u8; 16]>(), ports in any::<[u16; 2]>(), six in any::<bool>()) {
        let (one, two): (IpAddr, IpAddr) = if six {
            (source.into(), [source[1]; 16].into())
        } else {
            ([source[0], source[1], source[2], source[3]].into(), [source[4]; 4].into())
        };
        let family = if six { "TCP6" } else { "TCP4" };
        let line = format!("PROXY {family} {one} {two} {} {}\r\n", ports[0], ports[1]);
        let expected = Source::Inet { source: SocketAddr::new(one, ports[0]), destination: SocketAddr::new(two, ports[1]) };
        prop_assert_eq!(header(line.as_bytes()).source, expected);
        check_every_cut(line.as_bytes(), USUAL_LIMIT);
    }

    #[test]
    fn no_bytes_make_it_panic(
        start in prop::sample::select(vec![
            &b""[..],
            b"PROXY ",
            b"PROXY TCP4 ",
            b"PROXY UNKNOWN",
            SIGNATURE,
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x30\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..120),
        limit in 0..200_usize,
    ) {
        let data = [start, &rest].concat();
        match parse(&data, limit) {
            Ok(Step::Header(header)) => {
                prop_assert!(header.length <= data.len() && header.length <= limit.max(MAX_V1));
                prop_assert!(header.tlvs().all(|tlv| tlv.value.len() < header.length));
                header.tls().map(|tls| tls.tlvs().count());
                check_every_cut(&data[..header.length], limit);
            }
            Ok(Step::NeedMore { at_least }) => prop_assert!(at_least > data.len()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
