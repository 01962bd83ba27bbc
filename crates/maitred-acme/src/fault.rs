//! Faults of orders: each has the CA's own words and advice.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// The longest text of a CA that is kept, in characters.
const MAX_TEXT: usize = 500;

/// The fault of an order that has given no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: Kind,
    /// The words of the CA, or of this machine. One line.
    pub said: String,
    /// The last word of the problem's type (RFC 8555 §6.7), such as `dns`.
    pub problem: Option<String>,
    /// The name or address that the CA complains of.
    pub identifier: Option<String>,
    /// How long the CA wants no further order.
    pub retry_after: Option<Duration>,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The CA has not answered.
    Unreachable,
    /// The CA has answered with a fault of its own.
    Broken,
    /// The CA's answer breaks the rules or a limit.
    Unreadable,
    /// The CA wants fewer orders.
    RateLimited,
    /// The CA refuses the account.
    Account,
    /// The CA refuses the order: its names, its profile, its request.
    Order,
    /// The CA could not verify that the name leads here.
    Challenge,
    /// The challenge could not be published.
    Publishing,
    /// The CA has not finished in time.
    Slow,
    /// The new certificate is not the one that was ordered.
    Chain,
    /// The clock of this machine and the dates of the new certificate do not fit.
    Clock,
}

impl Fault {
    /// A fault that this machine found.
    pub fn new(kind: Kind, said: &str) -> Self {
        Self { kind, said: one_line(said), problem: None, identifier: None, retry_after: None }
    }

    pub(crate) fn unreadable(what: &str) -> Self {
        Self::new(Kind::Unreadable, &format!("the answer of the CA cannot be read: {what}"))
    }

    /// By a problem document, or its absence. `status` is 0 for one inside another document.
    pub(crate) fn by(problem: &Problem, status: u16, retry_after: Option<Duration>) -> Self {
        let first = problem.subproblems.first();
        let word = match (problem.word(), first) {
            // The first part says more than the whole.
            ("compound" | "", Some(part)) => part.word(),
            (word, _) => word,
        };
        let kind = match word {
            "rateLimited" => Kind::RateLimited,
            // In an answer to a request, not in the verdict on a challenge.
            "unauthorized" if status != 0 => Kind::Account,
            "caa" | "connection" | "dns" | "incorrectResponse" | "tls" | "unauthorized" => Kind::Challenge,
            "accountDoesNotExist"
            | "externalAccountRequired"
            | "invalidContact"
            | "unsupportedContact"
            | "userActionRequired"
            | "badPublicKey"
            | "badSignatureAlgorithm" => Kind::Account,
            "serverInternal" => Kind::Broken,
            _ if status == 429 => Kind::RateLimited,
            _ if status >= 500 => Kind::Broken,
            _ => Kind::Order,
        };
        let part = first.and_then(|part| part.detail.as_deref());
        // A page, of an action that the CA wants (RFC 8555 §7.3.3).
        let details = [problem.detail.as_deref(), part, problem.instance.as_deref()];
        let details: Vec<&str> = details.into_iter().flatten().filter(|text| !text.is_empty()).collect();
        let said = if details.is_empty() { format!("status {status}") } else { details.join("; ") };
        let identifier = first.and_then(|part| part.identifier.as_ref()).or(problem.identifier.as_ref());
        Self {
            kind,
            said: one_line(&said),
            problem: (!word.is_empty()).then(|| one_line(word)),
            identifier: identifier.map(|identifier| one_line(&identifier.value)),
            retry_after,
        }
    }

    /// The same fault, of this name unless the CA has named one.
    pub(crate) fn of(mut self, identifier: &impl ToString) -> Self {
        self.identifier.get_or_insert_with(|| identifier.to_string());
        self
    }

    /// Advice for the operator, without a full stop.
    pub fn advice(&self) -> &'static str {
        match self.problem.as_deref().unwrap_or_default() {
            "caa" => {
                "a CAA record in DNS forbids this CA: allow it there, or choose another one with acme-directory"
            }
            "dns" => "the A and AAAA records of the name have to lead to this server",
            "connection" => {
                "the CA has to reach this server on port 80 (http) or 443 (tls-alpn) at every address of the name; `maitred check --acme` tries it"
            }
            "tls" => {
                "the connection on port 443 has to reach this server undecrypted, or acme-challenge = http"
            }
            "unauthorized" | "incorrectResponse" if self.kind == Kind::Challenge => {
                "another server has answered: every address of the name has to lead to this one; `maitred check --acme` tells what answers on port 80"
            }
            "externalAccountRequired" => "acme-eab names the account that the CA has given you",
            "invalidContact" | "unsupportedContact" => "acme takes an e-mail address that exists",
            "userActionRequired" => "open the page that the CA names, as the holder of the account",
            "rejectedIdentifier" | "unsupportedIdentifier" => {
                "this CA gives no certificate to the name: leave it out with acme = off, or choose another CA with acme-directory"
            }
            "invalidProfile" => "acme-profile has to name a profile of this CA",
            _ => match self.kind {
                Kind::Unreachable => {
                    "see that acme-directory is right and can be reached from here, and that its own certificate is trusted (acme-ca); maitred goes on trying"
                }
                Kind::Broken => {
                    "the CA of acme-directory has a fault of its own, and its status page may say more; maitred goes on trying"
                }
                Kind::RateLimited => "maitred waits as long as the CA wants; other names are not held up",
                Kind::Account => "give an acme-eab and an e-mail address (acme) that fit this CA",
                Kind::Publishing => "see to the folder of acme-folder, or the command of acme-hook",
                Kind::Clock => "set the clock of this machine",
                Kind::Slow => "maitred tries it again",
                _ => "maitred tries it again; if it stays so, report it with these words",
            },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(identifier) = &self.identifier {
            write!(f, "{identifier}: ")?;
        }
        match &self.problem {
            Some(problem) => write!(f, "the CA says: {} ({problem})", self.said)?,
            None => f.write_str(&self.said)?,
        }
        write!(f, "; {}", self.advice())
    }
}

impl std::error::Error for Fault {}

/// A problem document (RFC 7807, RFC 8555 §6.7).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: String,
    detail: Option<String>,
    instance: Option<String>,
    pub(crate) identifier: Option<Named>,
    pub(crate) subproblems: Vec<Problem>,
}

impl Problem {
    /// The last word of its type if ACME defines that.
    pub(crate) fn word(&self) -> &str {
        self.kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or_default()
    }
}

/// A name or an address.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Named {
    pub(crate) value: String,
}

/// The text without control characters, cut at its limit.
fn one_line(text: &str) -> String {
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    text.trim().chars().map(plain).take(MAX_TEXT).collect()
}
