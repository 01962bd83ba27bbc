//! Distinguished names as text (RFC 4514): `CN=Ada,OU=Tests,O=Shop`.

use std::fmt::Write;

use crate::der::{self, Value};
use crate::x509::{Attribute, Name};

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// The name as text, the last element first (RFC 4514 §2.1). Types have the short names of §3 and of OpenSSL, others their numbers with
/// the value in hexadecimal digits (§2.4). The text has no control character.
pub(crate) fn text(name: &Name<'_>) -> String {
    let mut text = String::new();
    for set in name.sets.iter().rev() {
        if !text.is_empty() {
            text.push(',');
        }
        for (number, attribute) in set.iter().enumerate() {
            if number > 0 {
                text.push('+');
            }
            write_attribute(&mut text, attribute);
        }
    }
    text
}

pub(crate) fn common_name(name: &Name<'_>) -> Option<String> {
    let mut attributes = name.sets.iter().flatten();
    attributes.rfind(|attribute| attribute.kind == COMMON_NAME).and_then(|attribute| value(&attribute.value))
}

fn write_attribute(text: &mut String, attribute: &Attribute<'_>) {
    match (short_name(attribute.kind), value(&attribute.value)) {
        (Some(kind), Some(value)) => {
            text.push_str(kind);
            text.push('=');
            escape(text, &value);
        }
        (kind_name, _) => {
            match kind_name {
                Some(name) => text.push_str(name),
                None => text.push_str(&der::dotted(attribute.kind)),
            }
            text.push_str("=#");
            for byte in attribute.value.whole {
                hex(text, *byte);
            }
        }
    }
}

/// The short names of RFC 4514 §3, and those of OpenSSL for others (RFC 4519, RFC 2985) in this form.
fn short_name(kind: &[u8]) -> Option<&'static str> {
    Some(match kind {
        COMMON_NAME => "CN",
        [0x55, 4, 4] => "SN",
        [0x55, 4, 5] => "serialNumber",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 9] => "STREET",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        [0x55, 4, 12] => "title",
        [0x55, 4, 42] => "GN",
        // 0.9.2342.19200300.100.1.1 and .25
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1] => "UID",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => "DC",
        // 1.2.840.113549.1.9.1
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1] => "emailAddress",
        _ => return None,
    })
}

fn value(value: &Value<'_>) -> Option<String> {
    match value.tag {
        // UTF8String, NumericString, PrintableString, IA5String, VisibleString.
        12 | 18 | 19 | 22 | 26 => std::str::from_utf8(value.content).ok().map(str::to_owned),
        // TeletexString: everybody writes Latin-1 in it.
        20 => Some(value.content.iter().copied().map(char::from).collect()),
        // BMPString.
        30 => {
            let (pairs, []) = value.content.as_chunks::<2>() else { return None };
            char::decode_utf16(pairs.iter().copied().map(u16::from_be_bytes)).collect::<Result<_, _>>().ok()
        }
        _ => None,
    }
}

/// RFC 4514 §2.4.
fn escape(text: &mut String, value: &str) {
    let last = value.chars().count().saturating_sub(1);
    for (number, char) in value.chars().enumerate() {
        match char {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => {
                text.push('\\');
                text.push(char);
            }
            '#' if number == 0 => text.push_str("\\#"),
            ' ' if number == 0 || number == last => text.push_str("\\ "),
            _ if char.is_control() => {
                let mut bytes = [0; 4];
                for byte in char.encode_utf8(&mut bytes).bytes() {
                    text.push('\\');
                    hex(text, byte);
                }
            }
            _ => text.push(char),
        }
    }
}

fn hex(text: &mut String, byte: u8) {
    // To write to a text cannot fail.
    let _ = write!(text, "{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::Reader;

    /// Type, tag of the value, value.
    type Attribute<'a> = (&'a [u8], u8, &'a [u8]);

    /// A name of sets of attributes.
    fn name(sets: &[&[Attribute<'_>]]) -> Vec<u8> {
        fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
            let length = u8::try_from(content.len()).expect("short");
            assert!(length < 128);
            [&[tag, length], content].concat()
        }
        let sets: Vec<Vec<u8>> = sets
            .iter()
            .map(|set| {
                let attributes: Vec<Vec<u8>> = set
                    .iter()
                    .map(|(kind, tag, value)| tagged(0x30, &[tagged(6, kind), tagged(*tag, value)].concat()))
                    .collect();
                tagged(0x31, &attributes.concat())
            })
            .collect();
        tagged(0x30, &sets.concat())
    }

    fn text_of(sets: &[&[Attribute<'_>]]) -> String {
        let der = name(sets);
        text(&Name::read(&mut Reader::new(&der)).expect("a name"))
    }

    const CN: &[u8] = &[0x55, 4, 3];
    const O: &[u8] = &[0x55, 4, 10];
    const OU: &[u8] = &[0x55, 4, 11];

    #[test]
    fn the_last_element_comes_first_and_sets_have_a_plus() {
        assert_eq!(
            text_of(&[&[(O, 12, b"Shop")], &[(OU, 19, b"Sales"), (CN, 12, b"J. Smith")]]),
            "OU=Sales+CN=J. Smith,O=Shop"
        );
        assert_eq!(text_of(&[]), "");
    }

    #[test]
    fn values_are_escaped() {
        for (value, expected) in [
            (&b"James \"Jim\" Smith, III"[..], r#"CN=James \"Jim\" Smith\, III"#),
            (b" # ", r"CN=\ #\ "),
            (b"#x", r"CN=\#x"),
            (b" ", r"CN=\ "),
            (b"a+b;c<d>e\\f=g", r"CN=a\+b\;c\<d\>e\\f=g"),
            (b"Before\rAfter\n\0", r"CN=Before\0dAfter\0a\00"),
            ("Lu\u{10d}i\u{107}".as_bytes(), "CN=Lu\u{10d}i\u{107}"),
            ("\u{85}".as_bytes(), r"CN=\c2\85"),
        ] {
            assert_eq!(text_of(&[&[(CN, 12, value)]]), expected);
        }
    }

    #[test]
    fn every_string_type_is_read() {
        assert_eq!(text_of(&[&[(CN, 20, b"caf\xe9")]]), "CN=caf\u{e9}");
        assert_eq!(text_of(&[&[(CN, 30, b"\0c\x01\x07")]]), "CN=c\u{107}");
        assert_eq!(text_of(&[&[(CN, 30, b"\xd8\0")]]), "CN=#1e02d800");
        assert_eq!(text_of(&[&[(CN, 12, b"\xff")]]), "CN=#0c01ff");
    }

    #[test]
    fn unknown_types_are_numbers_with_digits() {
        // The example of RFC 4514 §4.
        assert_eq!(
            text_of(&[&[(&[0x2b, 6, 1, 4, 1, 0x8b, 0x3a, 0], 4, b"Hi")]]),
            "1.3.6.1.4.1.1466.0=#04024869"
        );
        assert_eq!(
            text_of(&[&[(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], 22, b"a@shop.example")]]),
            "emailAddress=a@shop.example"
        );
    }

    #[test]
    fn the_last_common_name_counts() {
        let der = name(&[&[(CN, 12, b"first")], &[(O, 12, b"Shop")], &[(CN, 12, b"a,b")]]);
        let name = Name::read(&mut Reader::new(&der)).expect("a name");
        assert_eq!(common_name(&name).as_deref(), Some("a,b"));
    }
}
