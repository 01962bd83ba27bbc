//! The PROXY protocol, version 1. Input: the bytes behind `PROXY `, or, if it begins so, all of it.
//!
//! However the bytes are cut the header is the same and no byte behind it is asked for; a reader of whole lines agrees;
//! written anew it is the same header.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libfuzzer_sys::fuzz_target;
use maitred_forward::proxy::{Header, MAX_V1, ProxyError, Source, Step, parse};

fuzz_target!(|input: &[u8]| {
    let data = if input.starts_with(b"PROXY ") { input.to_vec() } else { [b"PROXY ", input].concat() };
    let found = found(&data);
    match found {
        Some(Ok(header)) => {
            let line = &data[..header.length];
            assert_eq!(slow(line), Some(header.source), "accepted a line that is none");
            assert!(header.tlvs().next().is_none());
            if let Source::Inet { source, destination } = header.source {
                check_written_again(source, destination);
            }
        }
        // A line that a slow reader finds in it is not refused.
        _ => assert!((0..=data.len().min(MAX_V1)).all(|end| slow(&data[..end]).is_none())),
    }
});

/// The result when bytes come one by one; the same when they come at once.
fn found(data: &[u8]) -> Option<Result<Header<'_>, ProxyError>> {
    let mut found = None;
    let mut least = 0;
    for end in 0..=data.len() {
        match parse(&data[..end], 0) {
            Ok(Step::NeedMore { at_least }) => {
                assert!(at_least > end && at_least <= MAX_V1);
                least = least.max(at_least);
            }
            Ok(Step::Header(header)) => {
                assert_eq!(header.length, end, "known before its end");
                assert!(least <= end, "more was asked for than there is");
                found = Some(Ok(header));
                break;
            }
            Err(error) => {
                found = Some(Err(error));
                break;
            }
        }
    }
    match (parse(data, 0), found) {
        (Ok(Step::NeedMore { .. }), None) => {}
        (Ok(Step::Header(header)), Some(Ok(same))) => assert_eq!(header, same),
        // A line is looked at as a whole when all of it has come; its end is always the first thing that is.
        (Err(error), Some(Err(same))) => assert_eq!(error, same),
        other => panic!("{other:?}"),
    }
    found
}

/// A whole line.
fn slow(line: &[u8]) -> Option<Source> {
    let inside = line.strip_suffix(b"\r\n").filter(|_| line.len() <= MAX_V1)?;
    if inside.iter().any(|byte| b"\r\n".contains(byte)) {
        return None;
    }
    if inside == b"PROXY UNKNOWN" || inside.starts_with(b"PROXY UNKNOWN ") {
        return Some(Source::Local);
    }
    let words: Vec<&str> = std::str::from_utf8(inside).ok()?.split(' ').collect();
    let ["PROXY", family, source, destination, source_port, destination_port] = words[..] else {
        return None;
    };
    let address = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::from),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
            _ => None,
        }
    };
    // A number that is written again in the same way has no zeros before it, and no sign.
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| port.to_string() == text);
    Some(Source::Inet {
        source: SocketAddr::new(address(source)?, port(source_port)?),
        destination: SocketAddr::new(address(destination)?, port(destination_port)?),
    })
}

fn check_written_again(source: SocketAddr, destination: SocketAddr) {
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (one, two) = (source.ip(), destination.ip());
    let line = format!("PROXY {family} {one} {two} {} {}\r\n", source.port(), destination.port());
    let Ok(Step::Header(header)) = parse(line.as_bytes(), 0) else { panic!("{line}") };
    assert_eq!((header.length, header.source), (line.len(), Source::Inet { source, destination }));
}
