//! Text with certificates and keys (PEM, RFC 7468): reading it with errors that name the sections found, and writing
//! it.

use std::fmt;

use base64ct::{Base64, Encoding};

/// The largest file that is read, in bytes. A bundle of all public authorities has about 250 kB.
const MAX_FILE: usize = 4 * 1024 * 1024;

/// How many labels an error names, and how many characters of each.
const MAX_LABELS: usize = 4;
const MAX_LABEL: usize = 40;

pub(crate) const ENCRYPTED_KEY: &str = "ENCRYPTED PRIVATE KEY";

/// Why a file has no sections that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PemFault {
    /// No byte is in it.
    Empty,
    /// The file is binary: DER or PKCS#12.
    Binary,
    /// Text in UTF-16.
    Utf16,
    /// No line begins with `-----BEGIN`.
    NoSection,
    /// A section has no end, or another one than its beginning.
    Unfinished(String),
    /// The content of a section is not base64.
    NotBase64(String),
    /// More than 4 MiB.
    TooLarge,
}

impl fmt::Display for PemFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Binary => f.write_str(
                "it is binary, and PEM is needed; write a certificate anew with `openssl x509 -inform der`, a key with `openssl pkey -inform der`, a .p12 or .pfx file with `openssl pkcs12 -nodes`",
            ),
            Self::Utf16 => f.write_str("it is text in UTF-16; save it as UTF-8 or ASCII"),
            Self::NoSection => f.write_str("it has no line that begins with -----BEGIN, so it is not PEM"),
            Self::Unfinished(label) => write!(
                f,
                "the section {label} does not end in a line -----END {label}-----; perhaps the file was copied in part"
            ),
            Self::NotBase64(label) => write!(
                f,
                "the section {label} has something other than base64 in it; perhaps the file was damaged when it was copied"
            ),
            Self::TooLarge => f.write_str("it is larger than 4 MiB"),
        }
    }
}

impl std::error::Error for PemFault {}

#[derive(Debug)]
pub(crate) struct Sections(Vec<Section>);

#[derive(Debug)]
struct Section {
    label: String,
    /// Lines in front of the content (RFC 1421 §4.4): the old form of an encrypted key has some.
    headers: String,
    content: Vec<u8>,
}

impl Sections {
    pub(crate) fn read(file: &[u8]) -> Result<Self, PemFault> {
        if file.is_empty() {
            return Err(PemFault::Empty);
        }
        if file.len() > MAX_FILE {
            return Err(PemFault::TooLarge);
        }
        if file.starts_with(b"\xff\xfe") || file.starts_with(b"\xfe\xff") {
            return Err(PemFault::Utf16);
        }
        let text = String::from_utf8_lossy(file);
        if !text.contains("-----BEGIN ") {
            // A DER sequence, as certificates, keys and PKCS#12 are, with a length of two bytes or in one.
            let is_binary = file.starts_with(b"\x30") || file.contains(&0);
            return Err(if is_binary { PemFault::Binary } else { PemFault::NoSection });
        }
        let mut sections = Vec::new();
        let mut rest = &*text;
        while let Some((_, behind)) = rest.split_once("-----BEGIN ") {
            let (section, behind) = section(behind)?;
            sections.push(section);
            rest = behind;
        }
        Ok(Self(sections))
    }

    pub(crate) fn all<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |section| section.label == label).map(|section| &*section.content)
    }

    pub(crate) fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        // The second is the old name (RFC 7468 §5.1 note), which OpenSSL reads, too.
        self.0
            .iter()
            .filter(|section| matches!(&*section.label, "CERTIFICATE" | "X509 CERTIFICATE"))
            .map(|section| &*section.content)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .filter(|section| section.label.ends_with("PRIVATE KEY") && !is_encrypted(section))
            .map(|section| (&*section.label, &*section.content))
    }

    pub(crate) fn has_encrypted_key(&self) -> bool {
        self.0.iter().any(|section| section.label.ends_with("PRIVATE KEY") && is_encrypted(section))
    }

    pub(crate) fn labels(&self) -> String {
        let mut labels: Vec<String> =
            self.0.iter().take(MAX_LABELS).map(|section| shown(&section.label)).collect();
        if self.0.len() > MAX_LABELS {
            labels.push("others".to_owned());
        }
        labels.join(", ")
    }
}

/// PKCS#8 has a label of its own for it, the older forms a header (RFC 1421 §4.6.1.1).
fn is_encrypted(section: &Section) -> bool {
    let says_so = |line: &str| line.starts_with("Proc-Type:") && line.contains("ENCRYPTED");
    section.label == ENCRYPTED_KEY || section.headers.lines().any(says_so)
}

/// The section whose label begins here, and the text behind it.
fn section(text: &str) -> Result<(Section, &str), PemFault> {
    let label = text.lines().next().unwrap_or_default();
    let label = label.split("-----").next().unwrap_or_default();
    let end = format!("-----END {label}-----");
    let Some((inside, behind)) = text.split_once(&end) else {
        return Err(PemFault::Unfinished(shown(label)));
    };
    if inside.contains("-----BEGIN ") {
        return Err(PemFault::Unfinished(shown(label)));
    }
    let inside = inside.get(label.len()..).and_then(|rest| rest.strip_prefix("-----"));
    let inside = inside.ok_or_else(|| PemFault::Unfinished(shown(label)))?;
    // An empty line ends the headers if there are any.
    let lines = inside.replace("\r\n", "\n");
    let (headers, base64) =
        lines.split_once("\n\n").filter(|(headers, _)| headers.contains(':')).unwrap_or(("", &lines));
    let base64: String = base64.split_ascii_whitespace().collect();
    let content = Base64::decode_vec(&base64).map_err(|_| PemFault::NotBase64(shown(label)))?;
    Ok((Section { label: label.to_owned(), headers: headers.to_owned(), content }, behind))
}

fn shown(label: &str) -> String {
    label.chars().filter(|char| !char.is_control()).take(MAX_LABEL).collect()
}

pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    // 48 bytes are 64 characters (RFC 7468 §2).
    for line in der.chunks(48) {
        text.push_str(&Base64::encode_string(line));
        text.push('\n');
    }
    text + "-----END " + label + "-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(file: &[u8]) -> PemFault {
        Sections::read(file).expect_err("a fault")
    }

    #[test]
    fn sections_are_found_between_other_text() {
        let file = b"subject=x\r\n-----BEGIN CERTIFICATE-----\r\nAQID\r\n-----END CERTIFICATE-----\r\n\r\nnext:\n-----BEGIN EC PARAMETERS-----\nAQ==\n-----END EC PARAMETERS-----\n-----BEGIN EC PRIVATE KEY-----\nBAU=\n-----END EC PRIVATE KEY-----";
        let sections = Sections::read(file).expect("sections");
        assert_eq!(sections.certificates().collect::<Vec<_>>(), [&[1, 2, 3]]);
        assert_eq!(sections.keys().collect::<Vec<_>>(), [("EC PRIVATE KEY", &[4, 5][..])]);
        assert_eq!(sections.labels(), "CERTIFICATE, EC PARAMETERS, EC PRIVATE KEY");
    }

    #[test]
    fn a_written_section_is_read_back() {
        let der: Vec<u8> = (0..200).collect();
        let text = encode("CERTIFICATE", &der);
        assert!(text.lines().all(|line| line.len() <= 64) && !text.contains('\r') && text.ends_with('\n'));
        let sections = Sections::read(text.as_bytes()).expect("sections");
        assert_eq!(sections.certificates().collect::<Vec<_>>(), [&der[..]]);
    }

    #[test]
    fn encrypted_keys_of_both_forms_are_told() {
        let new = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAQID\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let old = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAQID\n-----END RSA PRIVATE KEY-----\n";
        for file in [&new[..], old] {
            let sections = Sections::read(file).expect("sections");
            assert!(sections.has_encrypted_key() && sections.keys().next().is_none());
        }
    }

    #[test]
    fn an_error_names_the_kind_of_a_file_that_is_no_pem() {
        assert_eq!(fault(b""), PemFault::Empty);
        assert_eq!(fault(b"hello\n"), PemFault::NoSection);
        assert_eq!(fault(b"\x30\x82\x01\x0a\x02\x01"), PemFault::Binary);
        assert_eq!(fault(b"\xff\xfe-\0-\0"), PemFault::Utf16);
        assert_eq!(fault(&vec![b' '; MAX_FILE + 1]), PemFault::TooLarge);
    }

    #[test]
    fn a_broken_section_is_named() {
        let cut = PemFault::Unfinished("CERTIFICATE".to_owned());
        assert_eq!(fault(b"-----BEGIN CERTIFICATE-----\nAQID\n"), cut);
        assert_eq!(fault(b"-----BEGIN CERTIFICATE-----\nAQID\n-----END PRIVATE KEY-----\n"), cut);
        let two = b"-----BEGIN CERTIFICATE-----\nAQID\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
        assert_eq!(fault(two), cut);
        let noise = b"-----BEGIN CERTIFICATE-----\nAQ!D\n-----END CERTIFICATE-----\n";
        assert_eq!(fault(noise), PemFault::NotBase64("CERTIFICATE".to_owned()));
    }
}
