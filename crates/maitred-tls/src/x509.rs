//! Certificates and revocation lists in DER (RFC 5280 §4, §5): the fields that are shown and compared.
//!
//! Leaves out whether a certificate is to be believed: rustls verifies signatures, dates, names and constraints with its own reader.

use crate::der::{
    BIT_STRING, BOOLEAN, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE, SET, Value, explicit,
    implicit,
};

/// 2.5.29.17, .19, .35, .37
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];

/// 2.5.29.37.0 and 1.3.6.1.5.5.7.3.1
const ANY_USAGE: &[u8] = &[0x55, 0x1d, 37, 0];
const SERVER_USAGE: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];

/// A certificate.
#[derive(Clone, Debug)]
pub(crate) struct Certificate<'a> {
    pub(crate) whole: &'a [u8],
    /// The content of the integer.
    pub(crate) serial: &'a [u8],
    pub(crate) issuer: Name<'a>,
    pub(crate) not_before: u64,
    pub(crate) not_after: u64,
    pub(crate) subject: Name<'a>,
    pub(crate) key: PublicKey<'a>,
    /// Type and content.
    pub(crate) extensions: Vec<(&'a [u8], &'a [u8])>,
}

/// A distinguished name.
#[derive(Clone, Debug)]
pub(crate) struct Name<'a> {
    pub(crate) whole: &'a [u8],
    pub(crate) sets: Vec<Vec<Attribute<'a>>>,
}

/// An attribute of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute<'a> {
    pub(crate) kind: &'a [u8],
    pub(crate) value: Value<'a>,
}

/// A public key with its algorithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicKey<'a> {
    pub(crate) whole: &'a [u8],
    pub(crate) algorithm: &'a [u8],
    /// Of an elliptic curve: its name.
    pub(crate) curve: Option<&'a [u8]>,
    pub(crate) bits: &'a [u8],
}

/// An alternative name of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GeneralName<'a> {
    Email(&'a str),
    Dns(&'a str),
    Uri(&'a str),
    Address(&'a [u8]),
}

/// A list of revoked certificates.
#[derive(Clone, Debug)]
pub(crate) struct RevocationList<'a> {
    /// Whether it names its version, as version 2 does.
    pub(crate) has_version: bool,
    pub(crate) issuer: Name<'a>,
    pub(crate) this_update: u64,
    pub(crate) next_update: Option<u64>,
    pub(crate) revoked: usize,
}

impl<'a> Certificate<'a> {
    /// Reads one certificate, which ends where `der` ends.
    ///
    /// # Errors
    /// The part that cannot be read, in a sentence without a full stop.
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, &'static str> {
        let mut outer = Reader::new(der);
        let mut certificate = outer.inside(SEQUENCE).ok_or("it is no certificate in DER")?;
        if !outer.is_empty() {
            return Err("something stands behind its end");
        }
        let mut fields = certificate.inside(SEQUENCE).ok_or("it is no certificate in DER")?;
        let is_signed = certificate.value(SEQUENCE).is_some() && certificate.value(BIT_STRING).is_some();
        if !is_signed || !certificate.is_empty() {
            return Err("its signature cannot be read");
        }
        // The version.
        fields.value(explicit(0));
        let serial = fields.content(INTEGER).filter(|serial| !serial.is_empty());
        let serial = serial.ok_or("its serial number cannot be read")?;
        fields.value(SEQUENCE).ok_or("the kind of its signature cannot be read")?;
        let issuer = Name::read(&mut fields).ok_or("its issuer cannot be read")?;
        let (not_before, not_after) = validity(&mut fields).ok_or("its validity cannot be read")?;
        let subject = Name::read(&mut fields).ok_or("its subject cannot be read")?;
        let key = PublicKey::read(&mut fields).ok_or("its public key cannot be read")?;
        // Numbers of issuer and subject, of the time before 1996.
        fields.value(implicit(1));
        fields.value(implicit(2));
        let extensions = extensions(&mut fields).ok_or("its extensions cannot be read")?;
        if !fields.is_empty() {
            return Err("it has an unknown field");
        }
        Ok(Self { whole: der, serial, issuer, not_before, not_after, subject, key, extensions })
    }

    /// The alternative names of these kinds; none if the extension cannot be read.
    pub(crate) fn alternative_names(&self) -> Vec<GeneralName<'a>> {
        let names = self.extension(ALTERNATIVE_NAME).and_then(|mut names| names.inside(SEQUENCE)?.all());
        names.unwrap_or_default().iter().filter_map(GeneralName::new).collect()
    }

    /// Whether the certificate may issue others.
    pub(crate) fn is_authority(&self) -> bool {
        let constraints = self.extension(BASIC_CONSTRAINTS).and_then(|mut value| value.inside(SEQUENCE));
        constraints.and_then(|mut constraints| constraints.content(BOOLEAN)).is_some_and(|is| is != [0])
    }

    /// Whether the extended key usage allows servers, or says nothing.
    pub(crate) fn is_for_servers(&self) -> bool {
        let usages = self.extension(EXTENDED_KEY_USAGE).and_then(|mut usages| usages.inside(SEQUENCE)?.all());
        usages.is_none_or(|usages| {
            usages.iter().any(|usage| [ANY_USAGE, SERVER_USAGE].contains(&usage.content))
        })
    }

    /// The identifier of the issuer's key.
    pub(crate) fn issuer_key(&self) -> Option<&'a [u8]> {
        self.extension(AUTHORITY_KEY)?.inside(SEQUENCE)?.content(implicit(0))
    }

    fn extension(&self, kind: &[u8]) -> Option<Reader<'a>> {
        self.extensions.iter().find(|(other, _)| *other == kind).map(|(_, content)| Reader::new(content))
    }
}

fn validity(fields: &mut Reader<'_>) -> Option<(u64, u64)> {
    let mut validity = fields.inside(SEQUENCE)?;
    Some((validity.time()?, validity.time()?))
}

fn extensions<'a>(fields: &mut Reader<'a>) -> Option<Vec<(&'a [u8], &'a [u8])>> {
    let Some(mut outer) = fields.inside(explicit(3)) else { return Some(Vec::new()) };
    let extensions = outer.inside(SEQUENCE)?.all()?;
    let extension = |value: Value<'a>| {
        let mut extension = value.inside(SEQUENCE)?;
        let kind = extension.content(OBJECT_IDENTIFIER)?;
        // Whether it is critical.
        extension.value(BOOLEAN);
        Some((kind, extension.content(OCTET_STRING)?))
    };
    extensions.into_iter().map(extension).collect()
}

impl<'a> Name<'a> {
    /// The next value as a name.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let value = reader.value(SEQUENCE)?;
        let set = |set: Value<'a>| set.inside(SET)?.all()?.into_iter().map(Attribute::new).collect();
        let sets = Reader::new(value.content).all()?.into_iter().map(set).collect::<Option<_>>()?;
        Some(Self { whole: value.whole, sets })
    }
}

impl<'a> Attribute<'a> {
    fn new(value: Value<'a>) -> Option<Self> {
        let mut parts = value.inside(SEQUENCE)?;
        Some(Self { kind: parts.content(OBJECT_IDENTIFIER)?, value: parts.any()? })
    }
}

impl<'a> PublicKey<'a> {
    /// The next value as a key.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let value = reader.value(SEQUENCE)?;
        let mut parts = Reader::new(value.content);
        let mut algorithm = parts.inside(SEQUENCE)?;
        let kind = algorithm.content(OBJECT_IDENTIFIER)?;
        let curve = algorithm.content(OBJECT_IDENTIFIER);
        // The first byte counts the bits at the end that are none.
        let (_, bits) = parts.content(BIT_STRING)?.split_first()?;
        Some(Self { whole: value.whole, algorithm: kind, curve, bits })
    }

    /// The bits of an RSA key, in whole bytes.
    pub(crate) fn rsa_bits(&self) -> Option<usize> {
        let modulus = Reader::new(self.bits).inside(SEQUENCE)?.content(INTEGER)?;
        Some(8 * modulus.iter().skip_while(|byte| **byte == 0).count())
    }
}

impl<'a> GeneralName<'a> {
    /// `None`: the name is of another kind, or no ASCII.
    fn new(value: &Value<'a>) -> Option<Self> {
        let text = || std::str::from_utf8(value.content).ok().filter(|text| text.is_ascii());
        match value.tag & 0x1f {
            _ if value.tag & 0xe0 != implicit(0) => None,
            1 => text().map(Self::Email),
            2 => text().map(Self::Dns),
            6 => text().map(Self::Uri),
            7 => Some(Self::Address(value.content)),
            _ => None,
        }
    }
}

impl<'a> RevocationList<'a> {
    /// Reads one list.
    ///
    /// # Errors
    /// The part that cannot be read, in a sentence without a full stop.
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, &'static str> {
        const NO_LIST: &str = "it is no list of revoked certificates in DER";
        let mut list = Reader::new(der).inside(SEQUENCE).ok_or(NO_LIST)?;
        let mut fields = list.inside(SEQUENCE).ok_or(NO_LIST)?;
        let has_version = fields.value(INTEGER).is_some();
        fields.value(SEQUENCE).ok_or(NO_LIST)?;
        let issuer = Name::read(&mut fields).ok_or("its issuer cannot be read")?;
        let this_update = fields.time().ok_or("its time cannot be read")?;
        let next_update = fields.time();
        let revoked = fields.inside(SEQUENCE).map_or(Some(Vec::new()), Reader::all);
        let revoked = revoked.ok_or("the certificates on it cannot be read")?.len();
        Ok(Self { has_version, issuer, this_update, next_update, revoked })
    }
}
