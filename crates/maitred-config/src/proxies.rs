//! Trusted proxies, and the fields of theirs that count: `--trusted-proxies 10.0.0.0/8,unix`.

use std::fmt;

use maitred_match::{BadPattern, Network};
use maitred_server::{Believed, Forwarding, Trusted};

use crate::limits::items;
use crate::{BadValue, did_you_mean};

/// Trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedProxy {
    /// Proxies with addresses of this network.
    Network(Network),
    /// Proxies that connect to a Unix socket.
    Unix,
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Unix => f.write_str(UNIX),
        }
    }
}

/// A field that a proxy sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedField {
    /// `X-Forwarded-For`.
    For,
    /// `X-Forwarded-Proto`.
    Proto,
    /// `X-Forwarded-Host`.
    Host,
    /// `X-Forwarded-Port`.
    Port,
    /// `Forwarded`, in the place of all others.
    Standard,
}

impl fmt::Display for ForwardedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FIELDS.iter().find(|(_, field)| field == self).map_or("", |(name, _)| name))
    }
}

const UNIX: &str = "unix";

const FIELDS: [(&str, ForwardedField); 5] = [
    ("x-forwarded-for", ForwardedField::For),
    ("x-forwarded-proto", ForwardedField::Proto),
    ("x-forwarded-host", ForwardedField::Host),
    ("x-forwarded-port", ForwardedField::Port),
    ("forwarded", ForwardedField::Standard),
];

pub(crate) fn trusted(texts: &[String]) -> Result<Vec<TrustedProxy>, BadValue> {
    let one = |text: &str| match text {
        UNIX => Ok(TrustedProxy::Unix),
        _ => text.parse().map(TrustedProxy::Network).map_err(|BadPattern { .. }| {
            let what = format!("'{text}' is neither a network nor 'unix'");
            BadValue::new(
                what,
                "write the addresses of your proxies, such as 10.0.0.0/8 or 127.0.0.1, or unix",
            )
        }),
    };
    items(texts).map(one).collect()
}

pub(crate) fn fields(texts: &[String]) -> Result<Vec<ForwardedField>, BadValue> {
    let one = |text: &str| {
        let name = text.to_ascii_lowercase();
        FIELDS.iter().find(|(known, _)| *known == name).map(|(_, field)| *field).ok_or_else(|| {
            let names = FIELDS.map(|(name, _)| name);
            let remedy = did_you_mean(&name, names, "write one of them");
            BadValue::new(format!("'{text}' is none of {}", names.join(", ")), remedy)
        })
    };
    let fields: Vec<ForwardedField> = items(texts).map(one).collect::<Result<_, _>>()?;
    if fields.contains(&ForwardedField::Standard) && fields.len() > 1 {
        return Err(BadValue::new(
            "'forwarded' says all of it, and stands alone",
            "write forwarded, or some of the others: which of both forms came later is not known (RFC 7239)",
        ));
    }
    Ok(fields)
}

/// The server's settings.
pub fn forwarding(proxies: &[TrustedProxy], fields: &[ForwardedField]) -> Forwarding {
    let networks = proxies.iter().filter_map(|proxy| match proxy {
        TrustedProxy::Network(network) => Some(*network),
        TrustedProxy::Unix => None,
    });
    let has = |field| fields.contains(&field);
    Forwarding {
        trusted: Trusted::new(networks.collect(), proxies.contains(&TrustedProxy::Unix)),
        believed: Believed {
            client: has(ForwardedField::For),
            scheme: has(ForwardedField::Proto),
            host: has(ForwardedField::Host),
            port: has(ForwardedField::Port),
            standard: has(ForwardedField::Standard),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    #[test]
    fn proxies_are_networks_or_unix() {
        let proxies = trusted(&texts("10.0.0.0/8, unix,::1")).expect("a list");
        assert_eq!(
            proxies.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.0.0.0/8", "unix", "::1"]
        );
        let forwarding = forwarding(&proxies, &[ForwardedField::For]);
        assert!(forwarding.trusted.trusts_unix() && forwarding.trusted.trusts_ip([10, 1, 2, 3].into()));
        assert!(forwarding.believed.client && !forwarding.believed.scheme);
        assert!(trusted(&texts("none")).expect("none").is_empty());
        assert!(trusted(&texts("nginx")).is_err());
    }

    #[test]
    fn the_standard_field_stands_alone() {
        assert_eq!(fields(&texts("X-Forwarded-For")).expect("a field"), [ForwardedField::For]);
        assert!(fields(&texts("forwarded")).is_ok());
        assert!(fields(&texts("forwarded,x-forwarded-for")).is_err());
        assert_eq!(
            fields(&texts("x-forwarded-prot")).expect_err("wrong").remedy,
            "did you mean 'x-forwarded-proto'?"
        );
    }
}
