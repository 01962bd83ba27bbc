//! The values of the options about TLS.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use maitred_server::tls::{UnknownName, Version};

use crate::{BadValue, did_you_mean};

/// TLS of all hosts. The meaning of the fields is that of the options with the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// A certificate for development.
    pub development: bool,
    /// The answer to a handshake for a name without a certificate.
    pub unknown_name: UnknownName,
    /// The earliest version.
    pub min_version: Version,
    /// Files with passwords of encrypted keys, or `env:` and the name of a variable.
    pub key_passwords: Vec<PathBuf>,
    /// The file from which the keys of tickets are made.
    pub ticket_key: Option<PathBuf>,
    /// Whether clients can resume sessions.
    pub tickets: bool,
    /// Longest time from the accept to the end of a handshake; more than zero.
    pub handshake_timeout: Duration,
    /// Time between two looks at the files; zero for never.
    pub watch: Duration,
}

/// Whether clients are asked for a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// Clients are not asked.
    #[default]
    None,
    /// Clients are asked, and let in without a certificate.
    Optional,
    /// Clients are not let in without a certificate.
    Required,
}

/// The value of `Strict-Transport-Security`, by which browsers use only https (RFC 6797).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hsts {
    /// Seconds for which browsers remember this; 0 makes them forget it.
    pub seconds: u64,
    /// Whether names below this one are included.
    pub include_subdomains: bool,
    /// Makers of browsers may list the name.
    pub preload: bool,
}

/// Most seconds: ten years.
const MAX_SECONDS: u64 = 315_360_000;

/// Least seconds of a name in the lists of browsers: a year (hstspreload.org).
const MIN_LISTED: u64 = 31_536_000;

const OFF: &str = "off";
const SUBDOMAINS: &str = "include-subdomains";
const PRELOAD: &str = "preload";

/// Options of hosts for certificates of clients.
pub(crate) const CLIENTS: [&str; 3] = ["tls-client-auth", "tls-client-ca", "tls-client-crl"];

/// The values of the option, in words.
pub const HSTS: &str =
    "off, or seconds from 0 to 315360000, with ,include-subdomains and ,preload behind them";

/// `off`, or `31536000,include-subdomains,preload`.
pub(crate) fn hsts(text: &str) -> Result<Option<Hsts>, BadValue> {
    if text == OFF {
        return Ok(None);
    }
    let mut parts = text.split(',').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let seconds = first.parse::<u64>().ok().filter(|seconds| *seconds <= MAX_SECONDS).ok_or_else(|| {
        BadValue::new(
            format!("'{first}' is not a number of seconds from 0 to {MAX_SECONDS}"),
            "write off, or for example 31536000 for a year",
        )
    })?;
    let mut value = Hsts { seconds, include_subdomains: false, preload: false };
    for part in parts {
        match part {
            SUBDOMAINS => value.include_subdomains = true,
            PRELOAD => value.preload = true,
            _ => {
                let both = format!("write {SUBDOMAINS}, {PRELOAD} or both");
                let remedy = did_you_mean(part, [SUBDOMAINS, PRELOAD], both);
                return Err(BadValue::new(format!("'{part}' is no part of hsts"), remedy));
            }
        }
    }
    if value.preload && (!value.include_subdomains || seconds < MIN_LISTED) {
        let what = "browsers list only names with include-subdomains, for a year at least";
        return Err(BadValue::new(
            what,
            format!("write {MIN_LISTED},{SUBDOMAINS},{PRELOAD}, or leave {PRELOAD} out"),
        ));
    }
    Ok(Some(value))
}

pub(crate) fn show_hsts(value: Option<Hsts>) -> String {
    let Some(Hsts { seconds, include_subdomains, preload }) = value else { return OFF.to_owned() };
    let subdomains = if include_subdomains { format!(",{SUBDOMAINS}") } else { String::new() };
    let preload = if preload { format!(",{PRELOAD}") } else { String::new() };
    format!("{seconds}{subdomains}{preload}")
}

impl fmt::Display for Hsts {
    /// Writes the value of the header field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max-age={}", self.seconds)?;
        if self.include_subdomains {
            f.write_str("; includeSubDomains")?;
        }
        if self.preload {
            f.write_str("; preload")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hsts_is_shown_as_it_is_written_and_sent_as_the_rfc_has_it() {
        for (text, field) in [
            ("0", "max-age=0"),
            ("86400", "max-age=86400"),
            ("300,include-subdomains", "max-age=300; includeSubDomains"),
            ("31536000,include-subdomains,preload", "max-age=31536000; includeSubDomains; preload"),
        ] {
            let value = hsts(text).expect(text);
            assert_eq!(value.map(|value| value.to_string()).as_deref(), Some(field));
            assert_eq!(show_hsts(value), text);
        }
        assert_eq!(hsts("off"), Ok(None));
        assert_eq!(show_hsts(None), "off");
    }

    #[test]
    fn wrong_values_of_hsts_are_told_with_the_remedy() {
        let error =
            |text: &str| hsts(text).map_err(|bad| format!("{}; {}", bad.what, bad.remedy)).expect_err(text);
        assert_eq!(
            error("a year"),
            "'a year' is not a number of seconds from 0 to 315360000; write off, or for example 31536000 for a year"
        );
        assert_eq!(error("7,preloaded"), "'preloaded' is no part of hsts; did you mean 'preload'?");
        for text in ["31536000,preload", "7,include-subdomains,preload"] {
            assert!(
                error(text).contains("for a year at least; write 31536000,include-subdomains,preload"),
                "{text}"
            );
        }
        assert!(hsts("").is_err() && hsts("315360001").is_err() && hsts("-1").is_err());
    }
}
