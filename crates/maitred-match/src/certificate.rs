//! The condition on the certificate of a client.

use std::fmt;
use std::str::FromStr;

use maitred_http::{TlsClient, TlsSession};

use crate::pattern::{BadPattern, Case, matches_text};

/// A condition on the certificate of a client. Each `*` stands for any characters, also none; `*` alone is every
/// certificate that has been verified.
///
/// Compared with the common name of the subject, the whole subject (RFC 4514), and each host, mailbox and URI of its
/// alternative names; one that fits is enough. Case matters, except for hosts. A client without a certificate never
/// fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificatePattern {
    text: Box<str>,
    /// The text in lower case, for hosts.
    lower: Box<str>,
}

impl FromStr for CertificatePattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            let remedy =
                "write a name such as till.shop.example or *.shop.example, or * for every certificate";
            return Err(BadPattern::new("the name of the client is empty", remedy));
        }
        if text.contains(char::is_control) {
            let shown = text.escape_debug();
            return Err(BadPattern::new(
                format!("the name of the client '{shown}' has a control character"),
                "leave it out",
            ));
        }
        Ok(Self { text: text.into(), lower: text.to_ascii_lowercase().into() })
    }
}

impl CertificatePattern {
    /// Whether the client of this session has such a certificate.
    pub fn matches(&self, session: Option<&TlsSession>) -> bool {
        session.and_then(|session| session.client.as_ref()).is_some_and(|client| self.is_of(client))
    }

    fn is_of(&self, client: &TlsClient) -> bool {
        let fits = |name: &str| matches_text(self.text.as_bytes(), name.as_bytes(), Case::Matters);
        // A certificate may have no name at all.
        &*self.text == "*"
            || client.common_name.as_deref().is_some_and(fits)
            || fits(&client.subject)
            || client.names.iter().any(|name| fits(name))
            || client
                .hosts
                .iter()
                .any(|host| matches_text(self.lower.as_bytes(), host.as_bytes(), Case::Matters))
    }

    /// Whether it has no `*`.
    pub fn is_literal(&self) -> bool {
        !self.text.contains('*')
    }
}

impl fmt::Display for CertificatePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> TlsSession {
        let client = TlsClient {
            subject: "CN=Till 3,O=Shop".into(),
            common_name: Some("Till 3".into()),
            issuer: "CN=The authority".into(),
            hosts: vec!["till-3.shop.example".into()],
            names: vec!["Till3@shop.example".into(), "spiffe://shop.example/tills/3".into()],
            ..TlsClient::default()
        };
        TlsSession { client: Some(client), ..TlsSession::default() }
    }

    #[test]
    fn any_of_the_names_of_a_client_may_fit() {
        let session = session();
        for (pattern, fits) in [
            ("Till 3", true),
            ("Till *", true),
            ("till 3", false),
            ("Till", false),
            ("CN=Till 3,O=Shop", true),
            ("*,O=Shop", true),
            ("CN=The authority", false),
            ("Till-3.Shop.example", true),
            ("*.shop.example", true),
            ("*.other.example", false),
            ("Till3@shop.example", true),
            ("till3@shop.example", false),
            ("spiffe://shop.example/tills/*", true),
            ("spiffe://shop.example/offices/*", false),
            ("*", true),
        ] {
            let parsed: CertificatePattern = pattern.parse().expect(pattern);
            assert_eq!(parsed.matches(Some(&session)), fits, "{pattern}");
            assert_eq!(parsed.to_string(), pattern);
            assert_eq!(parsed.is_literal(), !pattern.contains('*'));
        }
    }

    #[test]
    fn no_client_without_a_certificate_fits() {
        let any: CertificatePattern = "*".parse().expect("a pattern");
        assert!(!any.matches(None));
        assert!(!any.matches(Some(&TlsSession::default())));
        let nameless = TlsSession { client: Some(TlsClient::default()), ..TlsSession::default() };
        assert!(any.matches(Some(&nameless)));
    }

    #[test]
    fn a_pattern_that_no_certificate_can_fit_is_an_error_with_its_remedy() {
        for (text, part) in
            [(" ", "is empty; write a name such as"), ("a\nb", "has a control character; leave it")]
        {
            let error = text.parse::<CertificatePattern>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
