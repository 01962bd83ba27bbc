//! The client's offers in `Sec-WebSocket-Extensions` (RFC 6455 §9.1, RFC 7692 §7.1).

use super::{Deflate, DeflateSettings};
use crate::token::{is_token_byte, token};

/// The largest window, which is the default.
pub(super) const MAX_BITS: u8 = 15;
/// The smallest window that zlib compresses for; the one of 8 bits does not work there.
const MIN_SERVER_BITS: u8 = 9;

/// The first acceptable offer of permessage-deflate in the values of `Sec-WebSocket-Extensions`. `None` if there is none: the
/// connection then goes without.
///
/// An offer is declined if a parameter is unknown, is named twice or has no good value, and if it asks for a window of 8 bits, which
/// zlib cannot compress for. Where a value is not a list of extensions, it ends there: offers before that count.
pub fn negotiate<'a>(values: impl Iterator<Item = &'a [u8]>, settings: &DeflateSettings) -> Option<Deflate> {
    for value in values {
        let mut list = List { rest: value };
        while let Some((name, offer)) = list.extension() {
            let offer = offer.filter(|_| name == "permessage-deflate");
            if let Some(deflate) = offer.and_then(|offer| agree(&offer, settings)) {
                return Some(deflate);
            }
        }
    }
    None
}

/// An offer of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offer {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_max_window_bits: Option<u8>,
    /// Named without a value it is that of the largest.
    client_max_window_bits: Option<u8>,
}

impl Offer {
    /// Adds a parameter (RFC 7692 §7.1.1, §7.1.2). `None` if the offer has to be declined for it.
    fn add(&mut self, name: &str, value: Option<&str>) -> Option<()> {
        let again = match name {
            "server_no_context_takeover" if value.is_none() => {
                std::mem::replace(&mut self.server_no_context_takeover, true)
            }
            "client_no_context_takeover" if value.is_none() => {
                std::mem::replace(&mut self.client_no_context_takeover, true)
            }
            "server_max_window_bits" => self.server_max_window_bits.replace(bits(value?)?).is_some(),
            "client_max_window_bits" => {
                let bits = value.map_or(Some(MAX_BITS), bits)?;
                self.client_max_window_bits.replace(bits).is_some()
            }
            _ => return None,
        };
        (!again).then_some(())
    }
}

/// 8 to 15, without zeros before it.
fn bits(value: &str) -> Option<u8> {
    match value.as_bytes() {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}

fn agree(offer: &Offer, settings: &DeflateSettings) -> Option<Deflate> {
    let most = settings.max_window_bits.clamp(MIN_SERVER_BITS, MAX_BITS);
    let server_bits = offer.server_max_window_bits.unwrap_or(MAX_BITS).min(most);
    if server_bits < MIN_SERVER_BITS {
        return None;
    }
    Some(Deflate {
        server_takeover: settings.takeover && !offer.server_no_context_takeover,
        client_takeover: settings.takeover && !offer.client_no_context_takeover,
        server_bits,
        client_bits: offer.client_max_window_bits.map_or(MAX_BITS, |bits| bits.min(most)),
        names_server_bits: offer.server_max_window_bits.is_some(),
    })
}

/// A list of extensions: `name; parameter; parameter=value; parameter="value", name …`. It is read no further than to where it is none.
struct List<'a> {
    rest: &'a [u8],
}

impl<'a> List<'a> {
    /// The next extension's name, and its parameters if they are those of an offer that can be accepted. `None` at the end, and where it
    /// is not a list.
    fn extension(&mut self) -> Option<(&'a str, Option<Offer>)> {
        // Empty elements are left out (RFC 9110 §5.6.1.2).
        while self.skip_blanks().is_some_and(|byte| byte == b',') {
            self.rest = self.rest.get(1..)?;
        }
        let name = self.token()?;
        let mut offer = Some(Offer::default());
        loop {
            match self.skip_blanks() {
                None => return Some((name, offer)),
                Some(b',') => {
                    self.rest = self.rest.get(1..)?;
                    return Some((name, offer));
                }
                Some(b';') => {
                    self.rest = self.rest.get(1..)?;
                    let good = self.parameter(offer.as_mut())?;
                    offer = offer.filter(|_| good);
                }
                Some(_) => return None,
            }
        }
    }

    /// Reads a parameter and adds it. Whether the offer can still be accepted; `None` where it is not a list.
    fn parameter(&mut self, offer: Option<&mut Offer>) -> Option<bool> {
        self.skip_blanks();
        let name = self.token()?;
        let quoted;
        let value = if self.skip_blanks() == Some(b'=') {
            self.rest = self.rest.get(1..)?;
            if self.skip_blanks() == Some(b'"') {
                quoted = self.quoted()?;
                // It is a token when the marks are off (RFC 6455 §9.1).
                Some(token(&quoted)?)
            } else {
                Some(self.token()?)
            }
        } else {
            None
        };
        Some(offer.is_some_and(|offer| offer.add(name, value).is_some()))
    }

    /// Skips spaces and tabs, and returns the next byte without taking it.
    fn skip_blanks(&mut self) -> Option<u8> {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    fn token(&mut self) -> Option<&'a str> {
        let end = self.rest.iter().position(|byte| !is_token_byte(*byte)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        token(text)
    }

    /// A quoted string without its marks and backslashes (RFC 9110 §5.6.4).
    fn quoted(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut bytes = self.rest.iter().enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.rest = self.rest.get(at + 1..)?;
                    return Some(text);
                }
                b'\\' => text.push(*bytes.next()?.1),
                _ => text.push(*byte),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: DeflateSettings = DeflateSettings { max_window_bits: 15, takeover: true };

    fn response(values: &[&str], settings: DeflateSettings) -> Option<String> {
        negotiate(values.iter().map(|value| value.as_bytes()), &settings).map(|deflate| deflate.response())
    }

    #[track_caller]
    fn accepted(offer: &str, expected: &str) {
        assert_eq!(response(&[offer], ALL).as_deref(), Some(expected), "{offer}");
    }

    #[track_caller]
    fn declined(offer: &str) {
        assert_eq!(response(&[offer], ALL), None, "{offer}");
    }

    #[test]
    fn the_offers_in_the_rfc() {
        // RFC 7692 §7.1.2.1, §7.1.2.2, §7.1.3.
        accepted("permessage-deflate", "permessage-deflate");
        accepted(
            "permessage-deflate; client_max_window_bits; server_max_window_bits=10",
            "permessage-deflate; server_max_window_bits=10",
        );
        accepted(
            "permessage-deflate; server_max_window_bits=10, permessage-deflate",
            "permessage-deflate; server_max_window_bits=10",
        );
        accepted(
            "permessage-deflate; client_max_window_bits; server_max_window_bits=10, permessage-deflate; client_max_window_bits",
            "permessage-deflate; server_max_window_bits=10",
        );
    }

    #[test]
    fn offers_of_browsers() {
        accepted("permessage-deflate; client_max_window_bits", "permessage-deflate");
        accepted("permessage-deflate", "permessage-deflate");
        accepted("x-webkit-deflate-frame, permessage-deflate", "permessage-deflate");
    }

    #[test]
    fn the_smaller_window_counts() {
        let settings = DeflateSettings { max_window_bits: 12, takeover: true };
        let of = |offer: &str| response(&[offer], settings);
        assert_eq!(
            of("permessage-deflate").as_deref(),
            Some("permessage-deflate; server_max_window_bits=12")
        );
        assert_eq!(
            of("permessage-deflate; client_max_window_bits").as_deref(),
            Some("permessage-deflate; server_max_window_bits=12; client_max_window_bits=12")
        );
        assert_eq!(
            of("permessage-deflate; client_max_window_bits=8; server_max_window_bits=9").as_deref(),
            Some("permessage-deflate; server_max_window_bits=9; client_max_window_bits=8")
        );
        assert_eq!(
            of("permessage-deflate; server_max_window_bits=15; client_max_window_bits=15").as_deref(),
            Some("permessage-deflate; server_max_window_bits=12; client_max_window_bits=12")
        );
    }

    #[test]
    fn settings_outside_their_range_count_as_the_nearest() {
        let with = |max_window_bits| {
            let settings = DeflateSettings { max_window_bits, takeover: true };
            negotiate([&b"permessage-deflate"[..]].into_iter(), &settings).map(|deflate| deflate.server_bits)
        };
        assert_eq!((with(0), with(99)), (Some(9), Some(15)));
    }

    #[test]
    fn a_context_is_kept_if_both_want_it() {
        let off = DeflateSettings { max_window_bits: 15, takeover: false };
        assert_eq!(
            response(&["permessage-deflate"], off).as_deref(),
            Some("permessage-deflate; server_no_context_takeover; client_no_context_takeover")
        );
        accepted(
            "permessage-deflate; server_no_context_takeover",
            "permessage-deflate; server_no_context_takeover",
        );
        accepted(
            "permessage-deflate; client_no_context_takeover",
            "permessage-deflate; client_no_context_takeover",
        );
    }

    #[test]
    fn a_named_window_is_answered() {
        accepted(
            "permessage-deflate; server_max_window_bits=15",
            "permessage-deflate; server_max_window_bits=15",
        );
    }

    #[test]
    fn the_first_acceptable_offer_is_taken() {
        accepted(
            "permessage-deflate; server_max_window_bits=8, permessage-deflate; server_max_window_bits=9",
            "permessage-deflate; server_max_window_bits=9",
        );
        let two = [
            "x; y=\"a,b\"",
            "permessage-deflate; nonsense",
            "permessage-deflate; client_no_context_takeover",
        ];
        assert_eq!(response(&two, ALL).as_deref(), Some("permessage-deflate; client_no_context_takeover"));
        assert_eq!(response(&[], ALL), None);
    }

    #[test]
    fn bad_parameters_decline_an_offer() {
        for parameters in [
            "server_max_window_bits",
            "server_max_window_bits=8",
            "server_max_window_bits=7",
            "server_max_window_bits=16",
            "server_max_window_bits=010",
            "server_max_window_bits=+9",
            "server_max_window_bits=9; server_max_window_bits=9",
            "server_max_window_bits=\"\"",
            "client_max_window_bits=7",
            "client_max_window_bits; client_max_window_bits=9",
            "client_max_window_bits=16",
            "client_no_context_takeover=1",
            "server_no_context_takeover=true",
            "server_no_context_takeover; server_no_context_takeover",
            "client_no_context_takeover; client_no_context_takeover",
            "unknown",
            "Server_no_context_takeover",
        ] {
            declined(&format!("permessage-deflate; {parameters}"));
        }
        declined("permessage_deflate");
    }

    #[test]
    fn a_value_may_be_quoted() {
        accepted(
            "permessage-deflate;server_max_window_bits=\"1\\0\"",
            "permessage-deflate; server_max_window_bits=10",
        );
        accepted(
            "permessage-deflate ;\tserver_max_window_bits = 10 ,",
            "permessage-deflate; server_max_window_bits=10",
        );
    }

    #[test]
    fn a_broken_list_ends_at_its_fault() {
        for broken in [
            "permessage-deflate;",
            "permessage-deflate; =1, permessage-deflate",
            "permessage-deflate a, permessage-deflate",
            "x; y=\"a, permessage-deflate",
            "x; y=\"a b\", permessage-deflate",
            "=, permessage-deflate",
            "\u{e9}, permessage-deflate",
        ] {
            declined(broken);
        }
        accepted("permessage-deflate, ???", "permessage-deflate");
        assert_eq!(response(&["???", "permessage-deflate"], ALL).as_deref(), Some("permessage-deflate"));
        accepted(" , ,permessage-deflate", "permessage-deflate");
    }
}
