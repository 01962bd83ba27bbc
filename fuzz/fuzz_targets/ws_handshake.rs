//! The fields of the opening handshake. Input: lines; the first is a key, then `p` and a value of `Sec-WebSocket-Protocol`, or any other
//! byte and a value of `Sec-WebSocket-Extensions`.
//!
//! A key is accepted if it is the base64 of 16 bytes; several fields are one list; names are tokens and come once; the
//! agreed parameters are within the offer and the settings, a slow reader agrees, and the response names them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_ws::{Deflate, DeflateSettings, accept_key, negotiate, subprotocols};

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n');
    check_key(lines.next().unwrap_or_default());
    let (mut protocols, mut extensions) = (Vec::new(), Vec::new());
    for line in lines {
        match line {
            [b'p', value @ ..] => protocols.push(value),
            [_, value @ ..] => extensions.push(value),
            [] => {}
        }
    }
    check_protocols(&protocols);
    for takeover in [true, false] {
        for max_window_bits in [9, 12, 15] {
            check_extensions(&extensions, DeflateSettings { max_window_bits, takeover });
        }
    }
});

fn check_key(key: &[u8]) {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let is_key =
        key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(|byte| DIGITS.contains(byte));
    let accept = accept_key(key);
    assert_eq!(accept.is_some(), is_key);
    if let Some(accept) = accept {
        assert!(accept[..27].iter().all(|byte| DIGITS.contains(byte)) && accept[27] == b'=');
    }
}

fn is_token(text: &[u8]) -> bool {
    let separators = b"\"(),/:;<=>?@[\\]{}";
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_graphic() && !separators.contains(byte))
}

/// `text` without spaces and tabs at its ends.
fn trimmed(text: &[u8]) -> &[u8] {
    let is = |byte: &u8| !b" \t".contains(byte);
    let Some(start) = text.iter().position(is) else { return &[] };
    let end = text.iter().rposition(is).unwrap_or(start);
    &text[start..=end]
}

fn check_protocols(values: &[&[u8]]) {
    let found = subprotocols(values.iter().copied());
    let joined = values.join(&b", "[..]);
    assert_eq!(subprotocols([&joined[..]].into_iter()).as_ref(), found.as_ref());
    let elements: Vec<_> =
        joined.split(|byte| *byte == b',').map(trimmed).filter(|one| !one.is_empty()).collect();
    let Ok(found) = found else {
        return assert!(elements.iter().any(|one| !is_token(one)) || elements.len() > 64);
    };
    assert!(found.iter().all(|name| is_token(name.as_bytes())));
    let mut once: Vec<&[u8]> = Vec::new();
    for element in elements {
        if !once.contains(&element) {
            once.push(element);
        }
    }
    assert_eq!(found.iter().map(|name| name.as_bytes()).collect::<Vec<_>>(), once);
}

fn check_extensions(values: &[&[u8]], settings: DeflateSettings) {
    let agreed = negotiate(values.iter().copied(), &settings);
    if !values.iter().any(|value| value.contains(&b'"')) {
        assert_eq!(agreed.map(|agreed| agreed.response()), slow(values, settings));
    }
    let Some(agreed) = agreed else { return };
    assert!(
        (9..=settings.max_window_bits).contains(&agreed.server_bits)
            && (8..=15).contains(&agreed.client_bits)
    );
    assert!(settings.takeover || !agreed.server_takeover && !agreed.client_takeover);
    // As an offer to a side that takes everything, the response gives the agreed parameters.
    let all = DeflateSettings { max_window_bits: 15, takeover: true };
    let response = agreed.response();
    let again = negotiate([response.as_bytes()].into_iter(), &all).expect("a response is an offer");
    let parts = |deflate: &Deflate| {
        (deflate.server_takeover, deflate.client_takeover, deflate.server_bits, deflate.client_bits)
    };
    assert_eq!(parts(&again), parts(&agreed));
}

/// RFC 7692 §7.1 for lists without quoted strings: the response to the first good offer.
fn slow(values: &[&[u8]], settings: DeflateSettings) -> Option<String> {
    'values: for value in values {
        for element in value.split(|byte| *byte == b',') {
            if trimmed(element).is_empty() {
                continue;
            }
            let mut parts = element.split(|byte| *byte == b';').map(trimmed);
            let name = parts.next().unwrap_or_default();
            let mut parameters = Vec::new();
            for part in parts {
                let mut two = part.splitn(2, |byte| *byte == b'=').map(trimmed);
                let (name, value) = (two.next().unwrap_or_default(), two.next());
                if !is_token(name) || value.is_some_and(|value| !is_token(value)) {
                    continue 'values;
                }
                parameters.push((name, value));
            }
            if !is_token(name) {
                continue 'values;
            }
            if name == b"permessage-deflate"
                && let Some(response) = slow_offer(&parameters, settings)
            {
                return Some(response);
            }
        }
    }
    None
}

fn slow_offer(parameters: &[(&[u8], Option<&[u8]>)], settings: DeflateSettings) -> Option<String> {
    let named = |name: &[u8]| parameters.iter().filter(|(other, _)| *other == name).collect::<Vec<_>>();
    let known = [
        "server_no_context_takeover",
        "client_no_context_takeover",
        "server_max_window_bits",
        "client_max_window_bits",
    ];
    if parameters.iter().any(|(name, _)| !known.iter().any(|known| known.as_bytes() == *name)) {
        return None;
    }
    let mut response = String::from("permessage-deflate");
    for (number, name) in known.iter().enumerate() {
        let found = named(name.as_bytes());
        if found.len() > 1 {
            return None;
        }
        let value = found.first().map(|(_, value)| *value);
        if number < 2 {
            if value.is_some_and(|value| value.is_some()) {
                return None;
            }
            if value.is_some() || !settings.takeover {
                response.push_str(&format!("; {name}"));
            }
            continue;
        }
        let bits = match value {
            None => 15,
            Some(None) if number == 3 => 15,
            Some(None) => return None,
            Some(Some(text)) => (8..=15).find(|bits| bits.to_string().as_bytes() == text)?,
        };
        let bits = if number == 2 || value.is_some() { bits.min(settings.max_window_bits) } else { bits };
        if number == 2 && bits < 9 {
            return None;
        }
        if bits < 15 || number == 2 && value.is_some() {
            response.push_str(&format!("; {name}={bits}"));
        }
    }
    Some(response)
}
