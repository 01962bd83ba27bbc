//! The upgrade from HTTP/1.1 to HTTP/2 on one connection: `Upgrade: h2c` (RFC 7540 §3.2; RFC 9113 §3.1 names it
//! obsolete).

use base64ct::{Base64UrlUnpadded, Encoding};

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
    let settings = Base64UrlUnpadded::decode_vec(std::str::from_utf8(value).ok()?).ok()?;
    if !settings.len().is_multiple_of(6) {
        return None;
    }
    PeerSettings::default().take(&settings, |_| ()).ok()?;
    Some(Upgrade { settings })
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
            assert_eq!(Base64UrlUnpadded::decode_vec(text).as_deref(), Ok(bytes.as_bytes()), "{text}");
        }
        assert_eq!(Base64UrlUnpadded::decode_vec("-_-_"), Ok(vec![0xfb, 0xff, 0xbf]));
        for bad in ["Z", "Zh", "Zm9", "Zm9v+", "Zg==", "Zm9vY", "Zm 9"] {
            assert!(Base64UrlUnpadded::decode_vec(bad).is_err(), "{bad}");
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
