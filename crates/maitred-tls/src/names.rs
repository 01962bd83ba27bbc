//! The choice of certificates by server name (SNI, RFC 6066 §3).
//!
//! ```text
//!   1. a name that was told         shop.example
//!   2. a pattern that was told      *.shop.example      one label in the place of the star
//!   3. a name in a certificate
//!   4. a pattern in a certificate
//! ```
//! The first of these that fits decides. A told name comes from the operator, so it goes before the names in
//! certificates.

use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Names {
    told: Level,
    certified: Level,
}

/// Numbers of certificates, the one to be tried first in front.
type Candidates = Vec<usize>;

#[derive(Debug, Default)]
struct Level {
    exact: HashMap<Box<str>, Candidates>,
    /// By the part behind `*.`.
    wildcards: HashMap<Box<str>, Candidates>,
}

impl Names {
    /// Notes that this certificate is for this name, as the operator has told. Candidates for a name stand in the order
    /// in which they are added.
    pub(crate) fn tell(&mut self, name: &str, identity: usize) {
        self.told.add(name, identity);
    }

    pub(crate) fn certify(&mut self, name: &str, identity: usize) {
        self.certified.add(name, identity);
    }

    /// The certificates for a server name in any case, with or without a dot at its end.
    pub(crate) fn find(&self, name: &str) -> Option<&[usize]> {
        let name = normal(name);
        self.told.find(&name).or_else(|| self.certified.find(&name))
    }
}

impl Level {
    fn add(&mut self, name: &str, identity: usize) {
        let name = normal(name);
        let (table, name) = match name.strip_prefix("*.") {
            Some(behind) => (&mut self.wildcards, behind),
            None => (&mut self.exact, &*name),
        };
        // A star elsewhere (RFC 9525 §6.3: not in the presented identifiers of today) is no pattern here.
        if name.is_empty() || name.contains('*') {
            return;
        }
        let candidates = table.entry(name.into()).or_default();
        if !candidates.contains(&identity) {
            candidates.push(identity);
        }
    }

    fn find(&self, name: &str) -> Option<&[usize]> {
        let wildcard = || {
            let (label, behind) = name.split_once('.')?;
            if label.is_empty() { None } else { self.wildcards.get(behind) }
        };
        self.exact.get(name).or_else(wildcard).map(Vec::as_slice)
    }
}

fn normal(name: &str) -> Cow<'_, str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(told: &[&str], certified: &[&str]) -> Names {
        let mut names = Names::default();
        for (number, name) in told.iter().enumerate() {
            names.tell(name, number);
        }
        for (number, name) in certified.iter().enumerate() {
            names.certify(name, 100 + number);
        }
        names
    }

    #[test]
    fn an_exact_name_comes_before_a_wildcard() {
        let names = table(&[], &["*.shop.example", "a.shop.example"]);
        assert_eq!(names.find("a.shop.example"), Some(&[101][..]));
        assert_eq!(names.find("b.shop.example"), Some(&[100][..]));
    }

    #[test]
    fn a_wildcard_is_one_label() {
        let names = table(&[], &["*.shop.example"]);
        for name in ["shop.example", "a.b.shop.example", ".shop.example", "example", "", "*", "ashop.example"]
        {
            assert_eq!(names.find(name), None, "{name}");
        }
    }

    #[test]
    fn case_and_a_last_dot_say_nothing() {
        let names = table(&["Shop.Example."], &["*.EXAMPLE"]);
        assert_eq!(names.find("SHOP.example"), Some(&[0][..]));
        assert_eq!(names.find("shop.example."), Some(&[0][..]));
        assert_eq!(names.find("Other.example."), Some(&[100][..]));
        assert_eq!(names.find("shop.example.."), None);
    }

    #[test]
    fn told_names_come_before_names_in_certificates() {
        let names = table(&["*.shop.example"], &["a.shop.example"]);
        assert_eq!(names.find("a.shop.example"), Some(&[0][..]));
    }

    #[test]
    fn stars_elsewhere_are_no_patterns() {
        let names = table(&["*", "a*.example", "b.*.example", "*.*.example", "*."], &[]);
        for name in ["ab.example", "b.c.example", "x.y.example", "*", "a*.example"] {
            assert_eq!(names.find(name), None, "{name}");
        }
    }

    /// The rules again, slowly: every entry is compared.
    fn slow(entries: &[String], name: &str) -> Option<Vec<usize>> {
        let fits = |wildcard: bool| {
            let found: Vec<usize> = entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| match entry.split_once("*.") {
                    Some((_, behind)) if wildcard => {
                        let labels: Vec<&str> = name.split('.').collect();
                        !labels[0].is_empty() && labels[1..].join(".").eq_ignore_ascii_case(behind)
                    }
                    None if !wildcard => entry.eq_ignore_ascii_case(name),
                    _ => false,
                })
                .map(|(number, _)| number)
                .collect();
            if found.is_empty() { None } else { Some(found) }
        };
        fits(false).or_else(|| fits(true))
    }

    proptest! {
        #[test]
        fn a_table_of_thirty_names_agrees_with_a_slow_search(
            entries in prop::collection::vec("(\\*\\.)?[aB]{1,2}(\\.[ab]){0,2}", 30),
            name in "[ab]{0,2}(\\.[aB]){0,3}",
        ) {
            let mut names = Names::default();
            for (number, entry) in entries.iter().enumerate() {
                names.certify(entry, number);
            }
            let expected = slow(&entries, &name);
            prop_assert_eq!(names.find(&name).map(<[usize]>::to_vec), expected.clone());
            let dotted = format!("{}.", name.to_uppercase());
            if !name.is_empty() {
                prop_assert_eq!(names.find(&dotted).map(<[usize]>::to_vec), expected);
            }
        }
    }
}
