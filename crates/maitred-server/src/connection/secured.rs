//! TLS facts for requests: the session of their connection, and the time of the handshake.

use maitred_http::{TlsClient, TlsSession};
use maitred_stats::Times;
use maitred_tls::{ClientIdentity, ClientName, Handshake};

/// Times of a handshake, in monotonic nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaking {
    /// End of the accept or of the PROXY header.
    pub(crate) began: u64,
    /// End of the handshake, not before `began`.
    pub(crate) ended: u64,
}

impl Shaking {
    /// Adds the handshake to the times of the first request, as if the request had arrived right after the handshake.
    /// The client's pause between both counts for no span.
    pub(crate) fn count(self, times: &mut Times) {
        times.handshake = self.ended - self.began;
        times.arrived = self.began + times.arrived.saturating_sub(self.ended);
    }
}

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

    #[test]
    fn the_first_request_has_the_time_of_the_handshake_and_no_pause() {
        let shaking = Shaking { began: 100, ended: 130 };
        for (received, arrived) in [(130, 100), (500, 470), (120, 100)] {
            let mut times = Times { arrived: received, ..Times::default() };
            shaking.count(&mut times);
            times.complete = received.max(130);
            assert_eq!((times.arrived, times.handshake), (arrived, 30), "{received}");
            assert_eq!(times.spans().0[0], 30, "{received}: the pause is in no span");
        }
    }
}
