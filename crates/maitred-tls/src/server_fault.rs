//! Why a session with a server has failed: one line for the caller, and a word for counters.

use std::fmt;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use time::OffsetDateTime;

use crate::certificate::CertificateInfo;
use crate::errors::{alert, version_name};
use crate::noted::SessionNotes;

/// How many names of a certificate an error shows.
const MAX_NAMES: usize = 5;

/// Why a session with a server has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFault {
    /// The first bytes are not of TLS.
    NotTls {
        /// They begin an HTTP response in clear text.
        is_http: bool,
        /// The first bytes, in printable characters.
        first: Box<str>,
    },
    /// The server speaks no version of TLS that is spoken here: the one that it has chosen.
    NoCommonVersion(Option<u16>),
    /// No cipher suite, group or signature is common.
    NoCommonParameters,
    /// No protocol is common (ALPN, RFC 7301 §3.2).
    NoCommonProtocol,
    /// The server's certificate has expired, or one of its chain, at this time in seconds since 1970.
    Expired(u64),
    /// The server's certificate is not valid before this time, or one of its chain.
    NotYetValid(u64),
    /// The server's certificate is for other names.
    WrongName {
        /// The name that was asked for.
        wanted: Box<str>,
        /// The names that it is for.
        names: Box<[String]>,
        /// The common name, which does not count (RFC 9525 §6.1).
        common_name: Option<Box<str>>,
    },
    /// No trusted authority has issued the server's certificate.
    UnknownAuthority {
        /// The issuer in it, by RFC 4514.
        issuer: Box<str>,
        /// It has signed itself.
        is_self_signed: bool,
    },
    /// The server's certificate cannot be accepted for another reason.
    Certificate(Box<str>),
    /// The server asks for a certificate of the client, and there is none.
    ClientCertificateWanted,
    /// The server refuses the client's certificate by this alert.
    ClientCertificateRefused(u8),
    /// The server has ended the session by this alert (RFC 8446 §6).
    Alert {
        /// The number of the alert.
        number: u8,
        /// The alert came before the handshake was complete.
        in_handshake: bool,
    },
    /// The server has closed the connection in the handshake.
    Closed,
    /// The server has sent something that TLS does not allow.
    Misbehaved(Box<str>),
    /// The fault is on our side.
    Internal(Box<str>),
}

/// The circumstances in which an error of rustls came.
pub(crate) struct Circumstances<'a> {
    pub(crate) noted: &'a SessionNotes,
    pub(crate) host: &'a str,
    /// No byte of a response has come.
    pub(crate) is_new: bool,
    pub(crate) in_handshake: bool,
    pub(crate) has_certificate: bool,
    pub(crate) first: &'a [u8],
}

impl ServerFault {
    pub(crate) fn new(error: &Error, at: &Circumstances<'_>) -> Self {
        if at.in_handshake && is_not_tls(at.first) {
            return Self::NotTls { is_http: at.first.starts_with(b"HTTP/"), first: shown(at.first) };
        }
        match error {
            Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            ) => Self::NoCommonVersion(chosen_version(at.first)),
            Error::PeerIncompatible(_) => Self::NoCommonParameters,
            Error::NoApplicationProtocol => Self::NoCommonProtocol,
            Error::InvalidCertificate(fault) => Self::of_certificate(fault, at),
            Error::AlertReceived(alert) => Self::of_alert(u8::from(*alert), at),
            Error::DecryptError
            | Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::NoCertificatesPresented
            | Error::PeerSentOversizedRecord => match chosen_version(at.first) {
                Some(version) if version < 0x0303 => Self::NoCommonVersion(Some(version)),
                _ => Self::Misbehaved(error.to_string().into()),
            },
            other => Self::Internal(other.to_string().into()),
        }
    }

    /// In TLS 1.3 the client is done before the server has seen the client's certificate: the alert comes in the place of
    /// a response.
    fn of_alert(number: u8, at: &Circumstances<'_>) -> Self {
        const PROTOCOL_VERSION: u8 = 70;
        const CERTIFICATE_REQUIRED: u8 = 116;
        const NO_APPLICATION_PROTOCOL: u8 = 120;
        match number {
            PROTOCOL_VERSION if at.in_handshake => Self::NoCommonVersion(None),
            NO_APPLICATION_PROTOCOL if at.in_handshake => Self::NoCommonProtocol,
            CERTIFICATE_REQUIRED if !at.has_certificate => Self::ClientCertificateWanted,
            // handshake_failure, bad_certificate up to unknown_ca, access_denied
            40 | 42..=46 | 48 | 49 | CERTIFICATE_REQUIRED if at.noted.is_client_asked && at.is_new => {
                match at.has_certificate {
                    true => Self::ClientCertificateRefused(number),
                    false => Self::ClientCertificateWanted,
                }
            }
            _ => Self::Alert { number, in_handshake: at.in_handshake },
        }
    }

    fn of_certificate(fault: &CertificateError, at: &Circumstances<'_>) -> Self {
        let server = at.noted.server.as_deref();
        match fault {
            CertificateError::ExpiredContext { not_after, .. } => Self::Expired(not_after.as_secs()),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::NotYetValid(not_before.as_secs())
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::WrongName {
                    wanted: at.host.into(),
                    names: server.map(|server| server.names.clone()).unwrap_or_default().into(),
                    common_name: server.and_then(|server| server.common_name.as_deref()).map(Into::into),
                }
            }
            CertificateError::UnknownIssuer => Self::UnknownAuthority {
                issuer: server.map_or("", |server| &server.issuer).into(),
                is_self_signed: server.is_some_and(|server| server.is_self_signed),
            },
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                Self::Certificate("it is not for servers (its extended key usage lacks serverAuth)".into())
            }
            CertificateError::BadSignature => Self::Certificate("a signature in its chain is wrong".into()),
            CertificateError::UnsupportedSignatureAlgorithmContext { .. }
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
                Self::Certificate(
                    "a signature in its chain is of a kind that is not accepted, such as SHA-1".into(),
                )
            }
            CertificateError::Other(_) if server.is_some_and(|server| server.is_authority) => {
                Self::Certificate("it is that of an authority (CA:TRUE), not of a server; trust exactly this certificate, or have another one issued".into())
            }
            other => Self::Certificate(other.to_string().into()),
        }
    }

    /// The fault as a word for logs and counters.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NotTls { .. } => "not-tls",
            Self::NoCommonVersion(_) => "version",
            Self::NoCommonParameters => "parameters",
            Self::NoCommonProtocol => "protocol",
            Self::Expired(_) => "certificate-expired",
            Self::NotYetValid(_) => "certificate-not-yet-valid",
            Self::WrongName { .. } => "certificate-name",
            Self::UnknownAuthority { .. } => "unknown-authority",
            Self::Certificate(_) => "certificate",
            Self::ClientCertificateWanted => "client-certificate-wanted",
            Self::ClientCertificateRefused(_) => "client-certificate-refused",
            Self::Alert { .. } => "alert",
            Self::Closed => "closed",
            Self::Misbehaved(_) => "misbehaved",
            Self::Internal(_) => "internal",
        }
    }
}

/// Whether the bytes are no record of a handshake or an alert (RFC 8446 §5.1).
fn is_not_tls(first: &[u8]) -> bool {
    !matches!(first, [] | [0x15 | 0x16] | [0x15 | 0x16, 3, ..])
}

/// `legacy_version` of a ServerHello.
fn chosen_version(first: &[u8]) -> Option<u16> {
    match first {
        [0x16, 3, _, _, _, 2, _, _, _, major, minor, ..] => Some(u16::from_be_bytes([*major, *minor])),
        _ => None,
    }
}

fn shown(first: &[u8]) -> Box<str> {
    first.escape_ascii().to_string().into()
}

/// A day of UTC.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    time.map_or_else(
        || format!("{seconds} s since 1970"),
        |time| format!("{:04}-{:02}-{:02}", time.year(), u8::from(time.month()), time.day()),
    )
}

fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        text.push_str(&format!(" and {} more", names.len() - MAX_NAMES));
    }
    text
}

/// An alert with its name.
fn named(number: u8) -> String {
    match alert(number).map(|(name, _)| name).or_else(|| AlertDescription::from(number).as_str()) {
        Some(name) => format!("{name} ({number})"),
        None => number.to_string(),
    }
}

impl fmt::Display for ServerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTls { is_http: true, .. } => f.write_str(
                "the server speaks HTTP in clear text on this port: write http://, or the port of https",
            ),
            Self::NotTls { first, .. } => {
                write!(f, "the server does not speak TLS on this port: it begins with '{first}'")
            }
            Self::NoCommonVersion(Some(version)) => {
                write!(f, "the server speaks {}, and TLS 1.2 or newer is needed", version_name(*version))
            }
            Self::NoCommonVersion(None) => {
                f.write_str("the server speaks no version of TLS that is spoken here, TLS 1.2 or newer")
            }
            Self::NoCommonParameters => {
                f.write_str("the server has no cipher suite, group or signature that is used here")
            }
            Self::NoCommonProtocol => f.write_str(
                "the server has no protocol that is offered to it (ALPN); it may be no HTTP server",
            ),
            Self::Expired(at) => {
                write!(f, "the certificate of the server, or one of its chain, has expired on {}", date(*at))
            }
            Self::NotYetValid(from) => write!(
                f,
                "the certificate of the server, or one of its chain, is not valid before {}; is the clock right?",
                date(*from)
            ),
            Self::WrongName { wanted, names, common_name: Some(common_name) } if names.is_empty() => write!(
                f,
                "the certificate of the server is not for {wanted}: it has no name but the common name {common_name}, which does not count (it needs a subjectAltName)"
            ),
            Self::WrongName { wanted, names, .. } if names.is_empty() => {
                write!(f, "the certificate of the server is not for {wanted}: it has no name")
            }
            Self::WrongName { wanted, names, .. } => {
                write!(f, "the certificate of the server is not for {wanted} but for {}", listed(names))
            }
            Self::UnknownAuthority { issuer, is_self_signed: true } => write!(
                f,
                "the certificate of the server has signed itself ({issuer}), and is not trusted; to trust it, give it as authority"
            ),
            Self::UnknownAuthority { issuer, .. } => write!(
                f,
                "no trusted authority has issued the certificate of the server; its issuer is {issuer}; to trust that one, give its certificate as authority"
            ),
            Self::Certificate(what) => {
                write!(f, "the certificate of the server cannot be accepted: {what}")
            }
            Self::ClientCertificateWanted => {
                f.write_str("the server asks for a certificate of the client, and none is given")
            }
            Self::ClientCertificateRefused(number) => {
                write!(f, "the server refuses the certificate of the client by the alert {}", named(*number))
            }
            Self::Alert { number, in_handshake } => {
                let when = if *in_handshake { "the handshake" } else { "the connection" };
                write!(f, "the server has ended {when} by the alert {}", named(*number))?;
                // Behind the handshake handshake_failure means that a renegotiation was refused (RFC 5246 §7.2.2).
                let meaning = alert(*number).filter(|_| *in_handshake || *number != 40);
                meaning.map_or(Ok(()), |(_, meaning)| write!(f, ": {meaning}"))
            }
            Self::Closed => f.write_str("the server has closed the connection in the handshake"),
            Self::Misbehaved(what) => write!(f, "the server breaks the rules of TLS: {what}"),
            Self::Internal(what) => write!(f, "the TLS session cannot go on: {what}"),
        }
    }
}

impl std::error::Error for ServerFault {}

/// Notes a server's certificate for the error.
pub(crate) fn note_server(der: &[u8]) {
    if let Ok(certificate) = crate::x509::Certificate::read(der) {
        let info = Box::new(CertificateInfo::new(&certificate));
        crate::noted::note(|noted| noted.server = Some(info));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_server_and_the_remedy() {
        let text = |fault: ServerFault| fault.to_string();
        let wrong = |names: &[&str], common_name: Option<&str>| ServerFault::WrongName {
            wanted: "a.example".into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            common_name: common_name.map(Into::into),
        };
        assert_eq!(
            text(wrong(&["b.example", "::1"], Some("a.example"))),
            "the certificate of the server is not for a.example but for b.example, ::1"
        );
        assert!(text(wrong(&["b"; 7], None)).ends_with("b, b, b, b, b and 2 more"));
        assert!(text(wrong(&[], Some("a.example"))).contains("common name a.example, which does not count"));
        assert!(text(ServerFault::Expired(1_800_000_000)).ends_with("has expired on 2027-01-15"));
        assert!(text(ServerFault::Expired(u64::MAX)).ends_with("s since 1970"));
        assert_eq!(
            text(ServerFault::NoCommonVersion(Some(0x0302))),
            "the server speaks TLS 1.1, and TLS 1.2 or newer is needed"
        );
        let alert = |number| text(ServerFault::Alert { number, in_handshake: true });
        assert_eq!(
            alert(112),
            "the server has ended the handshake by the alert unrecognized_name (112): it does not know the name"
        );
        assert!(alert(200).ends_with("the alert 200"));
        let refused = text(ServerFault::Alert { number: 40, in_handshake: false });
        assert_eq!(refused, "the server has ended the connection by the alert handshake_failure (40)");
    }

    #[test]
    fn first_bytes_tell_what_the_server_speaks() {
        let (noted, error) = (SessionNotes::default(), Error::DecryptError);
        let fault = |first: &[u8]| {
            let at = Circumstances {
                noted: &noted,
                host: "a",
                is_new: true,
                in_handshake: true,
                has_certificate: false,
                first,
            };
            ServerFault::new(&error, &at)
        };
        assert!(matches!(fault(b"HTTP/1.1 400 Bad"), ServerFault::NotTls { is_http: true, .. }));
        assert!(fault(b"220 mail\r\n").to_string().ends_with("begins with '220 mail\\r\\n'"));
        let hello = [0x16, 3, 2, 0, 50, 2, 0, 0, 46, 3, 2];
        assert_eq!(fault(&hello), ServerFault::NoCommonVersion(Some(0x0302)));
        assert!(matches!(fault(&[0x16, 3, 3, 0, 50, 2, 0, 0, 46, 3, 3]), ServerFault::Misbehaved(_)));
    }
}
