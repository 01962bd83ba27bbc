//! The wishes of an operator: names, authority, challenges.

use std::path::PathBuf;

use maitred_acme::{ChallengeKind, ExternalAccount};
use maitred_match::HostPattern;

use crate::Folder;

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// The folder of accounts and certificates.
    pub folder: Folder,
    /// The URL of the authority's directory.
    pub directory: String,
    /// The authorities that sign the directory's certificate, if the system's do not.
    pub authorities: Option<PathBuf>,
    /// The address for the authority's mail.
    pub contact: Option<String>,
    /// The account elsewhere.
    pub external_account: Option<ExternalAccount>,
    /// The profile of the certificates.
    pub profile: Option<String>,
    /// The name of the root of the chain.
    pub chain: Option<String>,
    /// The challenges, the best first.
    pub challenges: Vec<ChallengeKind>,
    /// The command that makes and removes entries of the DNS.
    pub hook: Option<String>,
    /// The names that have certificates from the start on.
    pub names: Vec<String>,
    /// Names that get certificates when a client asks for them.
    pub on_demand: Vec<HostPattern>,
    /// The URL that says whether such a name is served.
    pub ask: Option<String>,
}

impl Wishes {
    /// Whether a certificate of this name is ordered when a client asks for it.
    pub fn is_on_demand(&self, name: &str) -> bool {
        is_on_demand(&self.on_demand, name)
    }
}

/// Whether one of the patterns is for this name.
pub fn is_on_demand(patterns: &[HostPattern], name: &str) -> bool {
    let fits = |pattern: &HostPattern| match pattern {
        HostPattern::Exact(own) => **own == *name,
        // A star of a certificate is one label.
        HostPattern::Below(end) => name.split_once('.').is_some_and(|(_, rest)| *rest == **end),
    };
    !name.starts_with("*.") && patterns.iter().any(fits)
}
