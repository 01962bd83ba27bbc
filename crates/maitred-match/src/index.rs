//! The rules that a request can meet: an index by host and first segment of the path, built once.
//!
//! Promises: every rule that a request meets is among its candidates, which come in the order of the rules. Leaves out:
//! whether the request meets them.

use std::collections::HashMap;

/// Up to this number all rules are candidates: to look at them costs less than to look them up.
const FEW: usize = 8;

/// See the module text.
#[derive(Clone, Debug, Default)]
pub struct RuleIndex {
    /// Rules for any host.
    any: OfHost,
    /// Rules for a host, by its number.
    hosts: HashMap<u16, OfHost>,
}

#[derive(Clone, Debug, Default)]
struct OfHost {
    /// Rules for paths with any first segment.
    open: Vec<u32>,
    /// Rules for paths with one.
    by_segment: HashMap<Box<[u8]>, Vec<u32>>,
}

impl RuleIndex {
    /// The index of rules, of each the number of its host and the [first segment](crate::PathPattern::first_segment) of its paths; none for any.
    pub fn new<'a>(rules: impl ExactSizeIterator<Item = (Option<u16>, Option<&'a [u8]>)>) -> Self {
        let is_worth_it = rules.len() > FEW;
        let mut index = Self::default();
        for (position, (host, segment)) in (0..).zip(rules) {
            let of_host = match host.filter(|_| is_worth_it) {
                Some(host) => index.hosts.entry(host).or_default(),
                None => &mut index.any,
            };
            match segment.filter(|_| is_worth_it) {
                Some(segment) => of_host.by_segment.entry(segment.into()).or_default().push(position),
                None => of_host.open.push(position),
            }
        }
        index
    }

    /// The positions of the rules that a request for this host and path can meet, in their order.
    pub fn candidates(&self, host: u16, path: &[u8]) -> Candidates<'_> {
        let [mut open, mut closed] = [[&[][..]; 2]; 2];
        let own = if self.hosts.is_empty() { None } else { self.hosts.get(&host) };
        let segment = first_segment(path);
        for ((open, closed), of_host) in open.iter_mut().zip(&mut closed).zip([Some(&self.any), own]) {
            let Some(of_host) = of_host else { continue };
            *open = &of_host.open;
            if let Some(segment) = segment.filter(|_| !of_host.by_segment.is_empty()) {
                *closed = of_host.by_segment.get(segment).map_or(&[][..], Vec::as_slice);
            }
        }
        let ([one, two], [three, four]) = (open, closed);
        Candidates { lists: [one, two, three, four] }
    }
}

/// The bytes between the first slash, with which a path begins, and the next one or the end.
pub fn first_segment(path: &[u8]) -> Option<&[u8]> {
    path.strip_prefix(b"/")?.split(|byte| *byte == b'/').next()
}

/// The positions of rules, rising.
#[derive(Clone, Debug)]
pub struct Candidates<'a> {
    /// Each rises, and none has a position of another one.
    lists: [&'a [u32]; 4],
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let lists = self.lists.iter_mut().filter(|list| !list.is_empty());
        let list = lists.min_by_key(|list| list.first().copied())?;
        let (first, rest) = list.split_first()?;
        *list = rest;
        Some(*first as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathPattern;

    /// Host and path; `None` is any.
    type Rule = (Option<u16>, Option<PathPattern>);

    /// Rules as text, `HOST PATH`, where `-` is any.
    fn index(rules: &[String]) -> (RuleIndex, Vec<Rule>) {
        let rules: Vec<_> = rules
            .iter()
            .map(|rule| {
                let (host, path) = rule.split_once(' ').expect("two words");
                (host.parse().ok(), (path != "-").then(|| path.parse().expect("a pattern")))
            })
            .collect();
        let parts = rules.iter().map(|(host, path): &(_, Option<PathPattern>)| {
            (*host, path.as_ref().and_then(PathPattern::first_segment))
        });
        (RuleIndex::new(parts), rules)
    }

    #[test]
    fn matching_patterns_are_among_the_candidates_and_few_others() {
        let own = [
            "- -", "- /a", "- /a/*", "- /a*", "- *.a", "- ~/A/*", "- /b/*/c", "1 -", "1 /a/b", "2 /a/*",
            "- /", "- /*", "1 *", "- /a/b/*", "65535 /a",
        ];
        let further =
            (0..1000).map(|number| format!("{} /x{number}/*", if number % 2 == 0 { "-" } else { "1" }));
        let texts: Vec<String> = own.iter().map(ToString::to_string).chain(further).collect();
        for count in [texts.len(), FEW, 0] {
            let (index, rules) = index(&texts[..count]);
            for path in [
                "", "/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/x.a", "/A/x", "/b/x/c", "/x7", "/x8/y", "a",
                "//a", "*",
            ] {
                for host in [0, 1, 2, 65_535] {
                    let found: Vec<usize> = index.candidates(host, path.as_bytes()).collect();
                    assert!(found.is_sorted_by(|one, other| one < other), "{found:?}");
                    let meets = |(own, pattern): &Rule| {
                        own.is_none_or(|own| own == host)
                            && pattern.as_ref().is_none_or(|pattern| pattern.matches(path.as_bytes()))
                    };
                    let missing: Vec<_> =
                        (0..count).filter(|place| meets(&rules[*place]) && !found.contains(place)).collect();
                    assert!(missing.is_empty(), "{host} {path}: {missing:?}");
                    assert!(found.len() <= own.len() + 1, "{host} {path}: {found:?}");
                }
            }
        }
    }
}
