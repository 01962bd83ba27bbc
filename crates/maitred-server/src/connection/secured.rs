//! TLS facts for requests: the session of their connection.

use maitred_http::{TlsClient, TlsSession};
use maitred_tls::{ClientIdentity, ClientName, Handshake};

/// Builds the session facts for requests from the handshake.
pub(super) fn session(handshake: Handshake) -> TlsSession {
    let Handshake { version, suite, group, resumed, sni, alpn, certificate, client_chain, .. } = handshake;
    TlsSession {
        version: version.as_str(),
        version_number: version.number(),
        suite: suite.name,
        suite_number: suite.number,
        group,
        resumed,
        sni,
        alpn,
        server_certificate: Some(certificate),
        // The verifier has parsed this chain already.
        client: ClientIdentity::new(client_chain).map(client),
    }
}

fn client(identity: ClientIdentity) -> TlsClient {
    let chain = identity.pems().map(Into::into).collect();
    let ClientIdentity { certificate, names: alternative, .. } = identity;
    let (mut hosts, mut names) = (Vec::new(), Vec::new());
    for name in alternative {
        match name {
            ClientName::Dns(name) => hosts.push(name.to_ascii_lowercase().into()),
            ClientName::Email(name) | ClientName::Uri(name) => names.push(name.into()),
            ClientName::Ip(_) => {}
        }
    }
    TlsClient {
        subject: certificate.subject.into(),
        common_name: certificate.common_name.map(Into::into),
        issuer: certificate.issuer.into(),
        serial: certificate.serial.into(),
        valid_until: utc(certificate.not_after).into(),
        hosts,
        names,
        chain,
    }
}

/// Formats seconds since 1970 as OpenSSL prints dates of certificates.
fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(String::new, |time| time.strftime("%b %e %H:%M:%S %Y GMT").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_openssl_does() {
        assert_eq!(utc(0), "Jan  1 00:00:00 1970 GMT");
        assert_eq!(utc(1_795_521_600), "Nov 24 12:00:00 2026 GMT");
        assert_eq!(utc(u64::MAX), "");
    }
}
