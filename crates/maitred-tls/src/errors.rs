//! Why a session has failed: one line for the log, and a word for counters.

use std::fmt;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

use crate::handshake::Version;
use crate::noted::{RefusedName, SessionNotes};

/// Why a session has failed. The peer gets the alert that is unsent then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The first bytes are not of TLS; whether they are those of an HTTP request in clear text.
    NotTls {
        /// See [`is_plain_http`](crate::is_plain_http).
        is_http: bool,
    },
    /// No version of TLS is common.
    NoCommonVersion {
        /// The version that old clients offer at most (`legacy_version` of RFC 8446 §4.1.2); newer clients say TLS 1.2 there.
        offered: Option<u16>,
        /// The oldest version that is allowed here.
        minimum: Version,
    },
    /// No cipher suite is common.
    NoCommonSuite,
    /// No group for the exchange of keys is common.
    NoCommonGroup,
    /// The client can verify no signature that one of our keys makes.
    NoCommonSignature,
    /// No protocol is common (ALPN, RFC 7301 §3.2).
    NoCommonProtocol,
    /// No certificate is for the name that the client asks for, in printable characters.
    UnknownName(Box<str>),
    /// The client names no server, and only known names are answered.
    MissingName,
    /// The client's certificate was refused.
    Client {
        /// The fault of the certificate.
        fault: ClientFault,
        /// Whose certificate it is, by RFC 4514, if it can be read.
        subject: Option<Box<str>>,
    },
    /// The peer has ended the session by this alert (RFC 8446 §6).
    Alert {
        /// The number of the alert.
        number: u8,
        /// The peer sent it before the handshake was complete.
        in_handshake: bool,
    },
    /// The peer has sent something that TLS does not allow.
    Misbehaved(Box<str>),
    /// A record cannot be opened: it was changed on its way, or made with another key.
    BadRecord,
    /// The client is not able to do something that is needed.
    Incompatible(Box<str>),
    /// The fault is on our side.
    Internal(Box<str>),
}

/// Why a client's certificate was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFault {
    /// The client has no certificate, and one is required.
    Absent,
    /// The certificate has expired, or one of its chain.
    Expired,
    /// The certificate is not valid yet, or one of its chain.
    NotYetValid,
    /// The certificate has been revoked, or one of its chain.
    Revoked,
    /// No trusted authority has issued it.
    UnknownIssuer,
    /// There is no list of revoked certificates of an authority in the chain.
    NoRevocationList,
    /// The list of revoked certificates of an authority in its chain is out of date.
    OldRevocationList,
    /// The certificate is not for clients (its extended key usage lacks clientAuth).
    Purpose,
    /// A signature in its chain, or that of the handshake, is wrong.
    Signature,
    /// A signature in its chain is of a kind that is not accepted, such as SHA-1.
    Algorithm,
    /// The certificate is broken, or has something critical that is not known here.
    Form,
}

/// Why sessions fail, as a word for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The first bytes are not of TLS.
    NotTls,
    /// No version is common.
    Version,
    /// No cipher suite, group or signature is common.
    Parameters,
    /// No protocol is common.
    Protocol,
    /// No certificate is for the name.
    Name,
    /// A certificate is required, and the client has none.
    NoClientCertificate,
    /// The client's certificate was refused.
    ClientCertificate,
    /// The peer sent an alert.
    Alert,
    /// The peer broke the rules of TLS.
    Misbehaved,
    /// The fault is on our side.
    Internal,
}

impl Reason {
    /// All of them, in their order.
    pub const ALL: [Self; 10] = [
        Self::NotTls,
        Self::Version,
        Self::Parameters,
        Self::Protocol,
        Self::Name,
        Self::NoClientCertificate,
        Self::ClientCertificate,
        Self::Alert,
        Self::Misbehaved,
        Self::Internal,
    ];

    /// The reason as it is written in figures.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotTls => "not-tls",
            Self::Version => "version",
            Self::Parameters => "parameters",
            Self::Protocol => "protocol",
            Self::Name => "name",
            Self::NoClientCertificate => "no-client-certificate",
            Self::ClientCertificate => "client-certificate",
            Self::Alert => "alert",
            Self::Misbehaved => "misbehaved",
            Self::Internal => "internal",
        }
    }
}

impl SessionError {
    /// The word for it.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NotTls { .. } => Reason::NotTls,
            Self::NoCommonVersion { .. } => Reason::Version,
            Self::NoCommonSuite | Self::NoCommonGroup | Self::NoCommonSignature | Self::Incompatible(_) => {
                Reason::Parameters
            }
            Self::NoCommonProtocol => Reason::Protocol,
            Self::UnknownName(_) | Self::MissingName => Reason::Name,
            Self::Client { fault: ClientFault::Absent, .. } => Reason::NoClientCertificate,
            Self::Client { .. } => Reason::ClientCertificate,
            Self::Alert { .. } => Reason::Alert,
            Self::Misbehaved(_) | Self::BadRecord => Reason::Misbehaved,
            Self::Internal(_) => Reason::Internal,
        }
    }

    pub(crate) fn new(error: &Error, noted: &SessionNotes, minimum: Version, offered: Option<u16>) -> Self {
        match &noted.refused {
            Some(RefusedName::Unknown(name)) => return Self::UnknownName(name.clone()),
            Some(RefusedName::Missing) => return Self::MissingName,
            None => {}
        }
        let of_client = |fault| Self::Client { fault, subject: noted.client.clone() };
        match error {
            Error::PeerIncompatible(
                PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::SupportedVersionsExtensionRequired,
            ) => Self::NoCommonVersion { offered, minimum },
            // Other features that it lacks came with TLS 1.2.
            Error::PeerIncompatible(_) if offered.is_some_and(|version| version < 0x0303) => {
                Self::NoCommonVersion { offered, minimum }
            }
            Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => Self::NoCommonSuite,
            Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon) => Self::NoCommonGroup,
            Error::PeerIncompatible(PeerIncompatible::NoSignatureSchemesInCommon) => Self::NoCommonSignature,
            Error::PeerIncompatible(other) => Self::Incompatible(format!("{other:?}").into()),
            Error::NoApplicationProtocol => Self::NoCommonProtocol,
            Error::NoCertificatesPresented => of_client(ClientFault::Absent),
            Error::InvalidCertificate(fault) => of_client(client_fault(fault)),
            Error::AlertReceived(alert) => Self::Alert { number: u8::from(*alert), in_handshake: false },
            Error::DecryptError => Self::BadRecord,
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord => Self::Misbehaved(error.to_string().into()),
            other => Self::Internal(other.to_string().into()),
        }
    }

    pub(crate) fn in_handshake(self, in_handshake: bool) -> Self {
        match self {
            Self::Alert { number, .. } => Self::Alert { number, in_handshake },
            other => other,
        }
    }
}

fn client_fault(error: &CertificateError) -> ClientFault {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => ClientFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ClientFault::NotYetValid
        }
        CertificateError::Revoked => ClientFault::Revoked,
        CertificateError::UnknownIssuer => ClientFault::UnknownIssuer,
        CertificateError::UnknownRevocationStatus => ClientFault::NoRevocationList,
        CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. } => {
            ClientFault::OldRevocationList
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            ClientFault::Purpose
        }
        CertificateError::BadSignature => ClientFault::Signature,
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => ClientFault::Algorithm,
        _ => ClientFault::Form,
    }
}

impl fmt::Display for ClientFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "the client has no certificate, and one is required",
            Self::Expired => "the client certificate, or one of its chain, has expired",
            Self::NotYetValid => "the client certificate, or one of its chain, is not valid yet",
            Self::Revoked => "the client certificate, or one of its chain, has been revoked",
            Self::UnknownIssuer => "no trusted authority has issued the client certificate",
            Self::NoRevocationList => {
                "there is no list of revoked certificates (CRL) of an authority in the chain of the client certificate"
            }
            Self::OldRevocationList => {
                "the list of revoked certificates (CRL) of an authority in the chain of the client certificate is out of date; fetch a new one"
            }
            Self::Purpose => "the certificate is not for clients (its extended key usage lacks clientAuth)",
            Self::Signature => {
                "a signature in the chain of the client certificate, or the one of the handshake, is wrong"
            }
            Self::Algorithm => {
                "the chain of the client certificate has a signature of a kind that is not accepted, such as SHA-1"
            }
            Self::Form => {
                "the client certificate, or one of its chain, is broken or has a critical extension that is not known"
            }
        })
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTls { is_http: true } => {
                f.write_str("the peer speaks HTTP in clear text where TLS is expected; its URL should begin with https://")
            }
            Self::NotTls { is_http: false } => f.write_str("the first bytes of the peer are not of TLS"),
            Self::NoCommonVersion { offered: Some(offered), minimum } if *offered < 0x0303 => {
                let name = version_name(*offered);
                write!(f, "the peer offers no common TLS version: at most {name}, and {minimum} is needed")
            }
            Self::NoCommonVersion { minimum, .. } => {
                write!(f, "the peer offers no common TLS version: {minimum} or newer is needed")
            }
            Self::NoCommonSuite => f.write_str("the peer offers no common cipher suite"),
            Self::NoCommonGroup => f.write_str("the peer offers no common group for the exchange of keys"),
            Self::NoCommonSignature => {
                f.write_str("the peer can verify no signature that a key of this server makes; an RSA certificate beside an ECDSA one serves old clients")
            }
            Self::NoCommonProtocol => f.write_str("the peer asks for protocols (ALPN) that this listener does not have"),
            Self::UnknownName(name) => write!(f, "there is no certificate for the name {name}"),
            Self::MissingName => f.write_str("the peer names no server, and unknown names are refused"),
            Self::Client { fault, subject: Some(subject) } => write!(f, "{fault}: {subject}"),
            Self::Client { fault, subject: None } => fault.fmt(f),
            Self::Alert { number, in_handshake } => {
                let when = if *in_handshake { "the handshake" } else { "the connection" };
                match alert(*number) {
                    Some((name, meaning)) => {
                        write!(f, "the peer has ended {when} by the alert {name} ({number}): {meaning}")
                    }
                    None => match AlertDescription::from(*number).as_str() {
                        Some(name) => write!(f, "the peer has ended {when} by the alert {name} ({number})"),
                        None => write!(f, "the peer has ended {when} by the alert {number}"),
                    },
                }
            }
            Self::Misbehaved(what) => write!(f, "the peer breaks the rules of TLS: {what}"),
            Self::BadRecord => {
                f.write_str("a record of the peer cannot be decrypted: it was changed on its way, or made with another key")
            }
            Self::Incompatible(what) => write!(f, "the peer is not able to do what is needed: {what}"),
            Self::Internal(what) => write!(f, "the TLS session cannot go on: {what}"),
        }
    }
}

impl std::error::Error for SessionError {}

pub(crate) fn version_name(number: u16) -> String {
    match number {
        0x0300 => "SSL 3".to_owned(),
        0x0301 => "TLS 1.0".to_owned(),
        0x0302 => "TLS 1.1".to_owned(),
        other => format!("version {other:#06x}"),
    }
}

/// The meaning of a peer's alert for the operator (RFC 8446 §6.2).
pub(crate) fn alert(number: u8) -> Option<(&'static str, &'static str)> {
    Some(match number {
        0 => ("close_notify", "it has gone away"),
        20 => ("bad_record_mac", "it cannot decrypt a record; something on the way may change bytes"),
        40 => ("handshake_failure", "it finds nothing common"),
        42 => ("bad_certificate", "it finds the certificate broken"),
        43 => ("unsupported_certificate", "it does not know this kind of certificate"),
        44 => ("certificate_revoked", "it says that the certificate has been revoked"),
        45 => ("certificate_expired", "it says that the certificate has expired; is its clock right?"),
        46 => (
            "certificate_unknown",
            "it does not accept the certificate; a self-signed one has to be trusted first",
        ),
        48 => (
            "unknown_ca",
            "it does not trust the authority of the certificate, or an intermediate certificate is missing in the chain",
        ),
        51 => ("decrypt_error", "it finds a signature of the handshake wrong"),
        70 => ("protocol_version", "it does not take the version of TLS"),
        80 => ("internal_error", "something is wrong on its side"),
        90 => ("user_canceled", "somebody has stopped it there"),
        112 => ("unrecognized_name", "it does not know the name"),
        113 => ("bad_certificate_status_response", "it does not accept the OCSP response"),
        116 => ("certificate_required", "it requires a certificate"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_the_order_of_their_list_and_have_names_of_their_own() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(Reason::ALL.iter().filter(|other| other.as_str() == reason.as_str()).count(), 1);
        }
    }

    #[test]
    fn errors_name_the_peer_and_the_fault() {
        let text = |error: SessionError| error.to_string();
        let version = |offered| SessionError::NoCommonVersion { offered, minimum: Version::V1_2 };
        assert_eq!(
            text(version(Some(0x0302))),
            "the peer offers no common TLS version: at most TLS 1.1, and TLS 1.2 is needed"
        );
        assert_eq!(
            text(version(Some(0x0303))),
            "the peer offers no common TLS version: TLS 1.2 or newer is needed"
        );
        assert_eq!(text(version(None)), text(version(Some(0x0304))));
        assert_eq!(
            text(SessionError::Client { fault: ClientFault::Revoked, subject: Some("CN=Ada".into()) }),
            "the client certificate, or one of its chain, has been revoked: CN=Ada"
        );
        let alert = |number, in_handshake| text(SessionError::Alert { number, in_handshake });
        assert!(
            alert(48, true).starts_with(
                "the peer has ended the handshake by the alert unknown_ca (48): it does not trust"
            )
        );
        assert_eq!(alert(22, false), "the peer has ended the connection by the alert RecordOverflow (22)");
        assert_eq!(alert(200, false), "the peer has ended the connection by the alert 200");
    }
}
