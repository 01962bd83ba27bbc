//! The clients that may ask: a list of networks, of which the first that has the client's address decides.

use std::fmt;
use std::net::IpAddr;

use maitred_match::{BadPattern, Network};

/// A list of `allow` and `deny` with an address, a network or `all`. The first one that is true of a client decides; a
/// client without an entry is allowed, as with nginx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access(Box<[Entry]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    allows: bool,
    /// The network; none is all.
    network: Option<Network>,
}

impl Access {
    /// The list that these texts are: `allow 10.0.0.0/8`, `deny all`.
    ///
    /// # Errors
    /// One of them is none, or stands behind `all`, where it is never asked.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, BadPattern> {
        let mut entries: Vec<Entry> = Vec::new();
        for text in texts.iter().map(AsRef::as_ref) {
            if entries.last().is_some_and(|before| before.network.is_none()) {
                let what = format!("'{text}' stands behind 'all', which has decided already");
                return Err(BadPattern::new(what, "put it before, or leave it out"));
            }
            entries.push(entry(text)?);
        }
        if entries.is_empty() {
            return Err(BadPattern::new("the list is empty", "write \"allow ADDRESS\" or \"deny ADDRESS\""));
        }
        Ok(Self(entries.into()))
    }

    /// Whether a client may ask; the address is canonical. One without an address, by a Unix socket, is in no network.
    pub fn allows(&self, client: Option<IpAddr>) -> bool {
        let first = self.0.iter().find(|entry| {
            entry.network.is_none_or(|network| client.is_some_and(|client| network.contains(client)))
        });
        first.is_none_or(|entry| entry.allows)
    }

    /// The entries as they are written.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Entry { allows, network }| {
            let word = if *allows { "allow" } else { "deny" };
            network.map_or_else(|| format!("{word} all"), |network| format!("{word} {network}"))
        })
    }
}

fn entry(text: &str) -> Result<Entry, BadPattern> {
    let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let allows = match word {
        "allow" => true,
        "deny" => false,
        _ => {
            let remedy = match text.trim().parse::<Network>() {
                Ok(_) => format!("write 'allow {0}' or 'deny {0}'", text.trim()),
                Err(_) => "write 'allow' or 'deny' and an address, a network or 'all'".to_owned(),
            };
            return Err(BadPattern::new(
                format!("'{text}' begins neither with 'allow' nor with 'deny'"),
                remedy,
            ));
        }
    };
    let network = match rest.trim() {
        "all" => None,
        network => Some(network.parse()?),
    };
    Ok(Entry { allows, network })
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(texts: &[&str], client: &str) -> bool {
        Access::parse(texts)
            .expect("a list")
            .allows(Some(client.parse::<IpAddr>().expect(client).to_canonical()))
    }

    #[test]
    fn the_first_one_that_has_the_client_decides() {
        let list = ["deny 10.0.0.7", "allow 10.0.0.0/8", "allow ::1", "deny all"];
        for (client, expected) in [
            ("10.0.0.7", false),
            ("10.0.0.8", true),
            ("::ffff:10.0.0.8", true),
            ("::ffff:10.0.0.7", false),
            ("::1", true),
            ("::2", false),
            ("11.0.0.1", false),
        ] {
            assert_eq!(allows(&list, client), expected, "{client}");
        }
        assert!(allows(&["deny 10.0.0.0/8"], "192.0.2.1"), "in none of them");
        assert!(!allows(&["deny 10.0.0.0/8"], "10.0.0.1"));
        assert!(!allows(&["  deny   all "], "::1"));
        assert_eq!(Access::parse(&list).expect("a list").to_string(), list.join(", "));
    }

    #[test]
    fn a_broken_list_is_an_error_with_its_remedy() {
        for (texts, part) in [
            (&[][..], "the list is empty; write \"allow"),
            (&["10.0.0.0/8"], "neither with 'allow' nor with 'deny'; write 'allow 10.0.0.0/8' or 'deny 10"),
            (&["permit all"], "write 'allow' or 'deny' and an address"),
            (&["deny"], "the client '' is no address"),
            (&["deny 10.1.2.3/8"], "did you mean '10.0.0.0/8'?"),
            (&["deny all", "allow ::1"], "'allow ::1' stands behind 'all', which has decided already; "),
        ] {
            let error = Access::parse(texts).expect_err("no list").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
