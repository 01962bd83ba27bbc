//! A rule that leads requests to a pool, and a request. Input: the path, the header and the client of the rule on a
//! line each, then the path and the peer of the request on a line each, then `Name: value` of each of its fields.
#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use maitred_http::RequestHead;
use maitred_match::{HeaderPattern, Network, PathPattern};
use maitred_server::{PoolMap, PoolRule};

/// The table of the slow matcher is as large as the product of the lengths.
const MAX_LENGTH: usize = 512;

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n').map(|line| &line[..line.len().min(MAX_LENGTH)]);
    let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (pattern, header, client) = (text(), text(), text());
    let path = lines.next().unwrap_or_default();
    let peer =
        lines.next().and_then(|line| std::str::from_utf8(line).ok()).and_then(|text| text.parse().ok());
    let peer: IpAddr = peer.unwrap_or(IpAddr::from([10, 0, 0, 1]));
    let mut head = RequestHead::default();
    for line in lines.take(64) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default();
        head.fields.push(name, parts.next().unwrap_or_default().trim_ascii());
    }

    let path_rule = pattern.parse::<PathPattern>().ok();
    let header_rule = header.parse::<HeaderPattern>().ok();
    let client_rule = client.parse::<Network>().ok();
    let on_path = path_rule.as_ref().is_none_or(|parsed| check_path(parsed, &pattern, path));
    let on_header = header_rule.as_ref().is_none_or(|parsed| check_header(parsed, &head));
    let on_client = client_rule.as_ref().is_none_or(|parsed| check_client(parsed, peer.to_canonical()));

    let rule = PoolRule {
        host: None,
        pool: "one".to_owned(),
        method: None,
        path: path_rule,
        header: header_rule,
        client: client_rule,
        certificate: None,
    };
    let map = PoolMap::new(&["one"], &[rule]).expect("the pool exists");
    assert_eq!(map.find(&head, path, Some(peer)), usize::from(on_path && on_header && on_client));
});

fn check_path(parsed: &PathPattern, text: &str, path: &[u8]) -> bool {
    assert_eq!(parsed.to_string(), text.replace("%3f", "%3F"));
    assert!(text.starts_with(['/', '*']) && !text.contains(['?', '#', '\\', '\0']));
    // The last, as it makes the objects that others begin with.
    let plain = text.replace("%23", "#").replace("%3F", "?").replace("%3f", "?").replace("%25", "%");
    // Every pattern stands for itself with something in the place of each `*`.
    assert!(parsed.matches(plain.replace('*', "x").as_bytes()));
    let pattern = plain.as_bytes();
    let last = pattern.len() - 1;
    let everywhere = |position: usize| position == 0 || position == last;
    let whole = stands_for(pattern, path, everywhere);
    // A pattern below another one has a slash: `*/*` names no folder.
    let is_folder = |folder: &&[u8]| *folder != b"*" && (!folder.is_empty() || path.is_empty());
    let folder = pattern.strip_suffix(b"/*").filter(is_folder);
    let expected = whole || folder.is_some_and(|folder| stands_for(folder, path, |_| false));
    assert_eq!(parsed.matches(path), expected);
    expected
}

fn check_header(parsed: &HeaderPattern, head: &RequestHead) -> bool {
    let text = parsed.to_string();
    assert_eq!(text.parse().as_ref(), Ok(parsed));
    let (name, value) = text.split_once(": ").expect("a name and a value");
    let is_named = |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
    let fits = |found: &[u8]| stands_for(value.as_bytes(), found, |_| true);
    let expected = head.fields.iter().any(|(name, found)| is_named(name) && fits(found));
    assert_eq!(parsed.matches(&head.fields), expected);
    expected
}

fn check_client(parsed: &Network, peer: IpAddr) -> bool {
    let text = parsed.to_string();
    assert_eq!(text.parse().as_ref(), Ok(parsed));
    let (address, prefix) = text.split_once('/').unwrap_or((&text, ""));
    let address: IpAddr = address.parse().expect("an address");
    assert_eq!(address, address.to_canonical());
    assert!(parsed.contains(address));
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => format!("{:032b}", u32::from(address)),
        IpAddr::V6(address) => format!("{:0128b}", u128::from(address)),
    };
    let (own, other) = (bits(address), bits(peer));
    let prefix = if prefix.is_empty() { own.len() } else { prefix.parse().expect("a number") };
    let expected = own.len() == other.len() && own[..prefix] == other[..prefix];
    assert_eq!(parsed.contains(peer), expected);
    expected
}

/// Whether `pattern` matches `text`, by the beginnings of the one that match the beginnings of the other. A `*` stands
/// for slashes, too, where `crosses` says so.
fn stands_for(pattern: &[u8], text: &[u8], crosses: impl Fn(usize) -> bool) -> bool {
    let mut row = vec![false; text.len() + 1];
    row[0] = true;
    for (position, wanted) in pattern.iter().enumerate() {
        let mut next = vec![false; text.len() + 1];
        for end in 0..=text.len() {
            next[end] = match wanted {
                b'*' => row[end] || end > 0 && next[end - 1] && (crosses(position) || text[end - 1] != b'/'),
                byte => end > 0 && row[end - 1] && text[end - 1] == *byte,
            };
        }
        row = next;
    }
    row[text.len()]
}
