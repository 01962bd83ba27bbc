//! The upgrade from HTTP/1.1 to HTTP/2 on one connection: `Upgrade: h2c` (RFC 7540 §3.2; RFC 9113 §3.1 names it
//! obsolete).

use crate::settings::PeerSettings;

/// The connection's settings in a request that upgrades.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The payload of a SETTINGS frame, known to be a valid one.
    settings: Vec<u8>,
}

impl Upgrade {
    pub(crate) fn settings(&self) -> &[u8] {
        &self.settings
    }
}

/// Reads the value of `HTTP2-Settings`: the payload of a SETTINGS frame in base64url without padding (RFC 7540 §3.2.1). `None` if it is
/// not one that could stand there: the request is then answered as one that does not upgrade.
pub fn upgrade(value: &[u8]) -> Option<Upgrade> {
    let settings = base64url(value)?;
    if !settings.len().is_multiple_of(6) {
        return None;
    }
    PeerSettings::default().take(&settings, |_| ()).ok()?;
    Some(Upgrade { settings })
}

/// RFC 4648 §5 without padding.
fn base64url(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut sum = 0u32;
        for letter in group {
            sum = sum << 6 | six_bits(*letter)?;
        }
        let [_, first, second, third] = (sum << (6 * (4 - group.len()))).to_be_bytes();
        match group.len() {
            4 => bytes.extend_from_slice(&[first, second, third]),
            3 if third == 0 => bytes.extend_from_slice(&[first, second]),
            2 if second == 0 && third == 0 => bytes.push(first),
            _ => return None,
        }
    }
    Some(bytes)
}

fn six_bits(letter: u8) -> Option<u32> {
    let bits = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(u32::from(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_of_rfc_4648() {
        for (text, bytes) in [
            ("", ""),
            ("Zg", "f"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(base64url(text.as_bytes()).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(base64url(b"-_-_"), Some(vec![0xfb, 0xff, 0xbf]));
        for bad in ["Z", "Zh", "Zm9", "Zm9v+", "Zg==", "Zm9vY", "Zm 9"] {
            assert_eq!(base64url(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_settings_are_valid_ones() {
        // The settings of curl: 100 streams, a window of 32 MiB, no push.
        let curl = upgrade(b"AAMAAABkAAQCAAAAAAIAAAAA").expect("settings");
        let mut peer = PeerSettings::default();
        peer.take(curl.settings(), |_| ()).expect("valid");
        assert_eq!(peer.window, 32 << 20);
        assert!(upgrade(b"").is_some());
        assert_eq!(upgrade(b"AAMAAABkAA"), None, "no multiple of 6 bytes");
        assert_eq!(upgrade(b"AAT_____"), None, "a window that is too large");
    }
}
