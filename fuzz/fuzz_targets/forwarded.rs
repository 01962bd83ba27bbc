//! The fields of proxies. Input: the networks of trusted proxies on a line, with commas, then `Name: value` of each field.
//!
//! A slow reader that keeps every entry agrees, for `Forwarded` a reader byte by byte with a state. A list is the same
//! whether it stands in one field or in several, quotes excepted.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use maitred_forward::forwarded::{self, Believed, MAX_HOPS, Said, Trusted, is_forwarding_field};
use maitred_http::FieldSet;

const LISTS: [&str; 5] =
    ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"];

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n');
    let networks = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let networks = networks.split(',').take(8).filter_map(|text| text.parse().ok()).collect();
    let trusted = Trusted::new(networks, false);
    let mut fields = FieldSet::new();
    for line in lines {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default();
        check_name(name);
        fields.push(name, parts.next().unwrap_or_default().trim_ascii());
    }

    let all = Believed { client: true, scheme: true, host: true, port: true, standard: false };
    let said = read(&fields, &trusted, all);
    assert_eq!(said, slow(&fields, &trusted));
    let standard = Believed { standard: true, ..all };
    let said = read(&fields, &trusted, standard);
    assert_eq!(said, slow_standard(&fields, &trusted));

    let mut joined = FieldSet::new();
    for name in LISTS {
        let values: Vec<&[u8]> = fields.all(name).collect();
        if !values.is_empty() {
            joined.push(name, values.join(&b','));
        }
    }
    assert_eq!(read(&joined, &trusted, all), slow(&fields, &trusted), "fields are one list");
    if !input.contains(&b'"') {
        assert_eq!(read(&joined, &trusted, standard), said, "fields are one list");
    }
});

/// The result that the slow reader has, too: it does not tell which field is malformed.
fn read(fields: &FieldSet, trusted: &Trusted, believed: Believed) -> Said {
    Said { malformed: None, ..forwarded::read(fields, trusted, believed) }
}

fn check_name(name: &[u8]) {
    let plain =
        name.to_ascii_lowercase().iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect();
    let plain: Vec<u8> = plain;
    let known: [&[u8]; 4] = [b"forwarded", b"x-real-ip", b"x-request-start", b"proxy"];
    let expected = known.contains(&plain.as_slice()) || plain.starts_with(b"x-forwarded-");
    assert_eq!(is_forwarding_field(name), expected);
}

type Client = Option<(IpAddr, Option<u16>)>;

/// The client of a chain, as (its place from the right, its entry).
fn walk(addresses: &[Client], trusted: &Trusted) -> Option<(usize, (IpAddr, Option<u16>))> {
    let known: Vec<_> = addresses.iter().take(MAX_HOPS).map_while(|address| *address).collect();
    let client = known.iter().position(|(address, _)| !trusted.trusts_ip(*address));
    let place = client.or_else(|| known.len().checked_sub(1))?;
    Some((place, known[place]))
}

fn slow(fields: &FieldSet, trusted: &Trusted) -> Said {
    let list = |name: &str| -> Vec<String> {
        let values: Vec<&[u8]> = fields.all(name).collect();
        if values.is_empty() {
            return Vec::new();
        }
        // Latin-1: a valid value has nothing outside ASCII.
        let text: String = values.join(&b',').iter().map(|byte| char::from(*byte)).collect();
        let blanks = [' ', '\t', '\r', '\x0c', '\n'];
        let entries = text.rsplit(',').map(|entry| entry.trim_matches(blanks).to_owned());
        // An empty one counts for nothing (RFC 9110 §5.6.1.2).
        entries.filter(|entry| !entry.is_empty()).collect()
    };
    let last = |name: &str| list(name).into_iter().next();
    let addresses: Vec<Client> = list("x-forwarded-for").iter().map(|entry| address(entry, true)).collect();
    let port = last("x-forwarded-port").as_deref().and_then(decimal).filter(|port| *port > 0);
    Said {
        client: walk(&addresses, trusted).map(|(_, client)| client),
        secure: last("x-forwarded-proto").and_then(|scheme| secure(&scheme)),
        host: last("x-forwarded-host").filter(|host| is_authority(host)).map(String::into_bytes),
        port,
        malformed: None,
    }
}

fn decimal(text: &str) -> Option<u16> {
    let is_number = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse::<u32>().ok()?.try_into().ok()).flatten()
}

fn secure(scheme: &str) -> Option<bool> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => Some(true),
        "http" | "ws" => Some(false),
        _ => None,
    }
}

/// In a list the address may be IPv6 without brackets, and its port is a number.
fn address(text: &str, in_list: bool) -> Client {
    if in_list && let Ok(six) = text.parse::<Ipv6Addr>() {
        return Some((IpAddr::from(six).to_canonical(), None));
    }
    let (address, port) = match text.rsplit_once(':') {
        Some((address, port)) if !text.ends_with(']') => (address, Some(port)),
        _ => (text, None),
    };
    let inside = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address: IpAddr = match inside {
        Some(six) => six.parse::<Ipv6Addr>().ok()?.into(),
        None => address.parse::<Ipv4Addr>().ok()?.into(),
    };
    let port = match port {
        None => None,
        Some(hidden) if !in_list && hidden.starts_with('_') => {
            let name = &hidden[1..];
            let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if name.is_empty() || !name.bytes().all(valid) {
                return None;
            }
            None
        }
        Some(text) => Some(decimal(text)?),
    };
    Some((address.to_canonical(), port))
}

/// RFC 3986 §3.2.2 from the right: the port stands behind the last colon, unless that is in brackets.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (text, ""),
    };
    let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let name = inside.unwrap_or(host);
    let escapes = name
        .split('%')
        .skip(1)
        .all(|behind| behind.len() >= 2 && behind.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()));
    let known = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=%".contains(&byte)
            || (byte == b':' && inside.is_some())
    };
    let digits = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.is_empty() || digits && port.parse::<u16>().is_ok();
    !name.is_empty() && name.bytes().all(known) && escapes && port
}

fn slow_standard(fields: &FieldSet, trusted: &Trusted) -> Said {
    let mut elements: Vec<Option<Vec<(String, String)>>> = Vec::new();
    for field in fields.all("forwarded") {
        let mut rest = field;
        loop {
            let found = element(rest);
            let comma = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            let length = found.as_ref().map_or(comma, |(_, length)| *length);
            if !rest[..length].trim_ascii().is_empty() {
                elements.push(found.map(|(pairs, _)| pairs));
            }
            if length == rest.len() {
                break;
            }
            rest = &rest[length + 1..];
        }
    }
    elements.reverse();
    let of = |place: usize, wanted: &str| {
        let pairs = elements.get(place)?.as_ref()?;
        pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
    };
    let addresses: Vec<Client> =
        (0..elements.len()).map(|place| of(place, "for").and_then(|text| address(&text, false))).collect();
    let client = walk(&addresses, trusted);
    let place = client.map_or(0, |(place, _)| place);
    Said {
        client: client.map(|(_, client)| client),
        secure: of(place, "proto").and_then(|scheme| secure(&scheme)),
        host: of(place, "host").filter(|host| is_authority(host)).map(String::into_bytes),
        port: None,
        malformed: None,
    }
}

/// Where the reader is in an element.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Between,
    Name,
    Start,
    Token,
    Quoted,
    Escaped,
    Behind,
}

/// The pairs of the element that `text` begins with, and its length. Latin-1, names in lower case.
fn element(text: &[u8]) -> Option<(Vec<(String, String)>, usize)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut place = Place::Between;
    let is_token = |byte: u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte);
    let is_text = |byte: u8| byte == b'\t' || !byte.is_ascii_control();
    let mut length = text.len();
    for (at, byte) in text.iter().copied().enumerate() {
        let last = pairs.last_mut();
        place = match (place, byte) {
            (Place::Between | Place::Token | Place::Behind, b',') => {
                length = at;
                place = Place::Between;
                break;
            }
            (Place::Between, b' ' | b'\t') => Place::Between,
            (Place::Between | Place::Token | Place::Behind, b';') => Place::Between,
            (Place::Token | Place::Behind, b' ' | b'\t') => Place::Behind,
            (Place::Between, _) if is_token(byte) => {
                pairs.push((char::from(byte.to_ascii_lowercase()).to_string(), String::new()));
                Place::Name
            }
            (Place::Name, b'=') => Place::Start,
            (Place::Name, _) if is_token(byte) => {
                last?.0.push(char::from(byte.to_ascii_lowercase()));
                Place::Name
            }
            (Place::Start, b'"') => Place::Quoted,
            (Place::Start | Place::Token, _) if is_token(byte) => {
                last?.1.push(char::from(byte));
                Place::Token
            }
            (Place::Quoted, b'"') => Place::Behind,
            (Place::Quoted, b'\\') => Place::Escaped,
            (Place::Quoted | Place::Escaped, _) if is_text(byte) => {
                last?.1.push(char::from(byte));
                Place::Quoted
            }
            _ => return None,
        };
    }
    let ends = matches!(place, Place::Between | Place::Token | Place::Behind);
    let once = |place: usize| pairs[..place].iter().all(|(name, _)| *name != pairs[place].0);
    (ends && pairs.len() <= 16 && (0..pairs.len()).all(once)).then_some((pairs, length))
}
