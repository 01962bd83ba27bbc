//! A client's identity by its certificate, which has been verified.

use std::fmt;
use std::net::IpAddr;

use crate::certificate::{self, CertificateInfo};
use crate::x509::{Certificate, GeneralName};

/// A client's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The fields of its certificate: subject, issuer, serial number, fingerprint, dates.
    pub certificate: CertificateInfo,
    /// The subject's alternative names.
    pub names: Vec<ClientName>,
    /// The certificates in DER as the client has sent them, its own first. The client says which others it sends: not all of them need to have been used.
    pub chain: Vec<Box<[u8]>>,
}

/// An alternative name of a client (RFC 5280 §4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientName {
    /// A host, as it is written in the certificate.
    Dns(String),
    /// A mailbox.
    Email(String),
    /// A URI, such as `spiffe://shop.example/orders`.
    Uri(String),
    /// An address.
    Ip(IpAddr),
}

impl fmt::Display for ClientName {
    /// As OpenSSL writes it: `DNS:shop.example`. Control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Dns(name) => ("DNS", name),
            Self::Email(name) => ("email", name),
            Self::Uri(name) => ("URI", name),
            Self::Ip(address) => return write!(f, "IP Address:{address}"),
        };
        write!(f, "{kind}:")?;
        name.chars().try_for_each(|char| {
            if char.is_control() { write!(f, "{}", char.escape_default()) } else { write!(f, "{char}") }
        })
    }
}

impl ClientIdentity {
    /// The identity by a chain in DER, the client's own certificate first. `None`: there is none, or the first one
    /// cannot be read.
    pub fn new(chain: Vec<Box<[u8]>>) -> Option<Self> {
        let own = Certificate::read(chain.first()?).ok()?;
        let names = own.alternative_names().into_iter().filter_map(|name| match name {
            GeneralName::Dns(name) => Some(ClientName::Dns(name.to_owned())),
            GeneralName::Email(name) => Some(ClientName::Email(name.to_owned())),
            GeneralName::Uri(name) => Some(ClientName::Uri(name.to_owned())),
            GeneralName::Address(bytes) => certificate::ip_address(bytes).map(ClientName::Ip),
        });
        let names = names.collect();
        let certificate = CertificateInfo::new(&own);
        Some(Self { certificate, names, chain })
    }

    /// The client's own certificate in PEM.
    pub fn pem(&self) -> String {
        self.chain.first().map(|der| crate::pem::encode("CERTIFICATE", der)).unwrap_or_default()
    }

    /// Each certificate that the client has sent, in PEM, its own first.
    pub fn pems(&self) -> impl Iterator<Item = String> {
        self.chain.iter().map(|der| crate::pem::encode("CERTIFICATE", der))
    }

    /// All certificates that the client has sent, in PEM, its own first.
    pub fn chain_pem(&self) -> String {
        self.pems().collect()
    }
}
