//! Asking a proxy for a tunnel to the server: CONNECT (RFC 9110 §9.3.6).

use std::fmt;

use maitred_h1::{Event, Limits, OutgoingRequest, Receiver, Responses, Sender};
use maitred_http::{FieldSet, Method, ResponseHead, Status};

use crate::error::Error;
use crate::exchange::MAX_INTERIM;
use crate::key::{Key, Proxy};
use crate::proxy::{ProxyFault, push_fields};

/// The most characters of a reason in an error.
const MAX_REASON: usize = 80;

/// One question to a proxy.
pub(crate) struct Tunnel {
    out: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    receiver: Receiver<Responses>,
    head: ResponseHead,
    interim: u8,
}

impl Tunnel {
    /// Asks `proxy` for the server of `key`.
    pub(crate) fn to(key: &Key, proxy: &Proxy) -> Result<Self, Error> {
        let authority = key.authority(None);
        let mut fields = FieldSet::new();
        push_fields(proxy, &mut fields);
        let mut out = Vec::new();
        let request = OutgoingRequest {
            method: &Method::Connect,
            target: authority.as_bytes(),
            authority: authority.as_bytes(),
            fields: &fields,
            length: Some(0),
            upgrade: false,
        };
        let (_, report) = Sender::of_request(&request, &mut out)?;
        let receiver = Receiver::of_response(report.asked);
        let head = ResponseHead::new(Status::OK);
        Ok(Self { out, sent: 0, received: Vec::new(), receiver, head, interim: 0 })
    }

    /// The bytes to send next.
    pub(crate) fn to_transmit(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    pub(crate) fn transmitted(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Takes bytes of the proxy: whether the tunnel is there.
    pub(crate) fn receive(&mut self, bytes: &[u8], limits: &Limits) -> Result<bool, ProxyFault> {
        self.received.extend_from_slice(bytes);
        loop {
            let step = self.receiver.poll_response(&self.received, &mut self.head, limits);
            let step = step.map_err(ProxyFault::Response)?;
            let facts = if let Event::Head(facts) = step.event { Some(facts) } else { None };
            let consumed = step.consumed;
            self.received.drain(..consumed);
            match facts {
                None => return Ok(false),
                Some(facts) if facts.interim && self.interim < MAX_INTERIM => self.interim += 1,
                Some(facts) if facts.interim => return Err(ProxyFault::Interim),
                Some(facts) if !facts.switched => return Err(self.refusal()),
                Some(_) if !self.received.is_empty() => return Err(ProxyFault::Surplus),
                Some(_) => return Ok(true),
            }
        }
    }

    fn refusal(&self) -> ProxyFault {
        let status = self.head.status;
        let reason = match &self.head.reason {
            Some(reason) if !reason.is_empty() => {
                String::from_utf8_lossy(reason).chars().take(MAX_REASON).collect()
            }
            _ => status.reason().to_owned(),
        };
        ProxyFault::Refused(status.code(), reason.escape_debug().to_string().into())
    }
}

/// Without the bytes, which have the proxy's credentials.
impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel")
            .field("to_transmit", &self.to_transmit().len())
            .field("received", &self.received.len())
            .field("interim", &self.interim)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::TlsIdentity;

    fn tunnel() -> Tunnel {
        let mut proxy = Proxy::of_url("http://a:b@p", TlsIdentity::default()).expect("a URL");
        proxy.fields = [("X-Office".into(), b"1"[..].into())].into();
        Tunnel::to(&Key::plain("::1", 443), &proxy).expect("a request")
    }

    fn answer(bytes: &[u8]) -> Result<bool, ProxyFault> {
        let whole = tunnel().receive(bytes, &Limits::of_responses());
        let mut tunnel = tunnel();
        let mut in_bytes = bytes.chunks(1).map(|byte| tunnel.receive(byte, &Limits::of_responses()));
        let in_bytes = in_bytes.find(|result| *result != Ok(false)).unwrap_or(Ok(false));
        // A byte behind the head that comes later can be the server's.
        assert!(in_bytes == whole || (whole == Err(ProxyFault::Surplus) && in_bytes == Ok(true)));
        whole
    }

    #[test]
    fn the_request_names_server_and_credentials() {
        let text = String::from_utf8(tunnel().to_transmit().to_vec()).expect("text").replace("\r\n", "|");
        assert_eq!(
            text,
            "CONNECT [::1]:443 HTTP/1.1|Host: [::1]:443|Proxy-Authorization: Basic YTpi|X-Office: 1||"
        );
    }

    #[test]
    fn the_credentials_are_not_shown() {
        let mut tunnel = tunnel();
        tunnel.receive(b"HTTP/1.1 200", &Limits::of_responses()).expect("a part");
        let expected = "Tunnel { to_transmit: 93, received: 12, interim: 0, .. }";
        assert_eq!(format!("{tunnel:?}"), expected);
    }

    #[test]
    fn answers_of_a_proxy() {
        assert_eq!(answer(b"HTTP/1.1 200 Connection established\r\n\r\n"), Ok(true));
        assert_eq!(answer(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"), Ok(true));
        assert_eq!(answer(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), Ok(true));
        assert_eq!(answer(b"HTTP/1.1 200 O"), Ok(false));
        let refused = |status, reason: &str| Err(ProxyFault::Refused(status, reason.into()));
        assert_eq!(
            answer(b"HTTP/1.1 407 Proxy Auth\r\nContent-Length: 0\r\n\r\n"),
            refused(407, "Proxy Auth")
        );
        assert_eq!(answer(b"HTTP/1.1 502\r\n\r\n"), refused(502, "Bad Gateway"));
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\n\r\nx"), Err(ProxyFault::Surplus));
        assert!(matches!(answer(b"SSH-2.0-x\r\n"), Err(ProxyFault::Response(_))));
        let interim = b"HTTP/1.1 103 E\r\n\r\n".repeat(11);
        assert_eq!(answer(&interim), Err(ProxyFault::Interim));
    }
}
