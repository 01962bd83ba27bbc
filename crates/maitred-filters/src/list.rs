//! The filters as the control shows them: all of them, and those that one request meets.

use std::net::IpAddr;

use maitred_http::RequestHead;
use serde_json::{Value, json};

use crate::chain::{Chain, Entry, Kind};
use crate::native::Place;
use crate::rule::Asker;
use crate::{Authentication, Filters};

/// The effect of the filters on a request.
pub struct Explained {
    /// The rules that it meets, in order.
    pub met: Vec<Value>,
    /// Reasons, a sentence each.
    pub why: Vec<String>,
    /// The status that one of them answers with, and where it leads.
    pub answer: Option<(u16, Option<String>)>,
}

impl Filters {
    /// The chain in the order in which a request comes to it, with its counters.
    pub fn list(&self) -> Value {
        let chain = self.chain();
        let mut rows = Vec::new();
        for place in Place::ALL {
            for kind in Kind::ALL.into_iter().filter(|kind| kind.place() == place) {
                for entry in entries(&chain, kind) {
                    let [hits, answered] = entry.counts(kind);
                    let mut row = shown(rows.len() + 1, kind, entry);
                    row["hits"] = hits.into();
                    row["answered"] = answered.into();
                    rows.push(row);
                }
            }
            for filter in self.own.all.iter().filter(|filter| filter.places().contains(&place)) {
                let number = rows.len() + 1;
                let (name, does) = (filter.name(), "of the program's own");
                rows.push(json!({ "number": number, "place": place.name(), "filter": name, "does": does }));
            }
        }
        let mut list = json!({ "filters": rows });
        if let Some(hasher) = self.hasher() {
            let figures = hasher.figures();
            list["password_checks"] = json!({
                "threads": figures.threads,
                "waiting": figures.waiting,
                "made": figures.made,
                "refused": figures.refused,
            });
        }
        list
    }

    /// The names of the program's own filters that are shown exchanges which have ended.
    pub fn tracing(&self) -> impl Iterator<Item = &str> {
        self.own.trace.iter().map(|filter| filter.name())
    }

    /// The effect of the filters on a request, whose head is changed as they would. No password is checked, and no
    /// filter of the program's own is called.
    pub fn explain(&self, head: &mut RequestHead, client: IpAddr, secure: bool) -> Explained {
        let chain = self.chain();
        let client = client.to_canonical();
        let mut path = Vec::new();
        let mut explained = Explained { met: Vec::new(), why: Vec::new(), answer: None };
        let met = match chain.met(head, &mut path, Asker { client: Some(client), secure }) {
            Ok(met) => met,
            Err(ambiguity) => {
                explained.why.push(ambiguity.reason().to_owned());
                explained.answer = Some((400, None));
                return explained;
            }
        };
        for kind in Kind::ALL {
            let mut deciding: Vec<u32> = met.clone();
            deciding.retain(|position| chain.first(&[*position], kind).is_some());
            if kind.is_exclusive() {
                deciding.truncate(1);
            }
            for position in deciding.iter().rev() {
                let Some(entry) = chain.first(&[*position], kind) else { continue };
                let number = number(&chain, self, kind, entry);
                explained.met.push(shown(number, kind, entry));
                explained.go(number, kind, entry, (head, &path, client));
                if explained.answer.is_some() {
                    return explained;
                }
            }
        }
        explained
    }
}

impl Explained {
    fn go(
        &mut self,
        number: usize,
        kind: Kind,
        entry: &Entry,
        (head, path, client): (&mut RequestHead, &[u8], IpAddr),
    ) {
        let rule = &entry.rule;
        let mut say = |text: String| self.why.push(format!("filter {number} ({}) {text}", kind.name()));
        match kind {
            Kind::Access => {
                if rule.access.as_ref().is_some_and(|access| !access.allows(Some(client))) {
                    say(format!("does not allow {client}"));
                    self.answer = Some((403, None));
                }
            }
            Kind::Redirect => {
                let pattern = rule.when.path.as_ref();
                let Some(redirect) = &rule.redirect else { return };
                if let Some(location) = redirect.location(pattern, path, head.query()) {
                    let location = location.escape_ascii().to_string();
                    say(format!("leads to {location}"));
                    self.answer = Some((redirect.status().code(), Some(location)));
                }
            }
            Kind::Authentication => match &rule.authentication {
                Some(Authentication::Basic(_)) => {
                    say("asks who it is: 401, or as follows for who is let in".to_owned());
                }
                _ => say("asks nobody, whatever less specific ones say".to_owned()),
            },
            Kind::Rewrite => {
                let pattern = rule.when.path.as_ref();
                let Some(rewrite) = &rule.rewrite else { return };
                if let Some(target) = rewrite.target(pattern, path, head.query()) {
                    say(format!("makes it {}", target.escape_ascii()));
                    head.path_and_query = head.fields.adopt(&target).unwrap_or_default();
                }
            }
            Kind::Request => rule.request.apply(&mut head.fields),
            Kind::MaxBody | Kind::ReadAhead | Kind::Response => {}
        }
    }
}

fn entries(chain: &Chain, kind: Kind) -> impl Iterator<Item = &Entry> {
    chain.rules.iter().filter(move |entry| kind.of(&entry.rule).is_some())
}

fn number(chain: &Chain, filters: &Filters, wanted: Kind, entry: &Entry) -> usize {
    let mut number = 1;
    for place in Place::ALL {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.place() == place) {
            for other in entries(chain, kind) {
                if kind == wanted && std::ptr::eq(other, entry) {
                    return number;
                }
                number += 1;
            }
        }
        number += filters.own.all.iter().filter(|filter| filter.places().contains(&place)).count();
    }
    number
}

fn shown(number: usize, kind: Kind, entry: &Entry) -> Value {
    let when = &entry.rule.when;
    json!({
        "number": number,
        "place": kind.place().name(),
        "filter": kind.name(),
        "host": when.host.as_ref().map(ToString::to_string),
        "path": when.path.as_ref().map(ToString::to_string),
        "method": when.method.as_ref().map(ToString::to_string),
        "header": when.header.as_ref().map(ToString::to_string),
        "client": when.client.as_ref().map(ToString::to_string),
        "client_certificate": when.certificate.as_ref().map(ToString::to_string),
        "secure": when.secure,
        "does": kind.of(&entry.rule),
    })
}
