//! The virtual hosts of a server, and the choice of the host of a request.
//!
//! ```text
//! authority ─► name ─► exact name ─► longest "*." name ─► default host, or 421
//! ```
//! Every server has the default host, whose number is 0. If the default host serves nothing and there are others,
//! requests for unknown hosts are refused. A host has its routes and error pages here; rules of pools and filters
//! name a host as a condition, and the access log knows a host by its number.

use std::fmt;
use std::sync::Arc;

use maitred_files::CacheStatistics;
use maitred_match::{HostPattern, HostTable};

use crate::pages::ErrorPages;
use crate::routes::{Application, Routes};

/// A virtual host.
pub struct HostSettings {
    /// Name of the host in logs and figures.
    pub name: Arc<str>,
    /// Names in requests for the host.
    pub names: Vec<HostPattern>,
    /// Routes of the host.
    pub routes: Routes,
    /// Error pages of the host.
    pub pages: ErrorPages,
}

/// Error: two hosts have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameName {
    /// The name.
    pub name: HostPattern,
    /// Names of the two hosts in logs and figures.
    pub hosts: [Arc<str>; 2],
}

impl fmt::Display for SameName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, hosts: [one, other] } = self;
        write!(f, "{name} is a name of two hosts, {one} and {other}")
    }
}

/// A virtual host with its routes.
pub struct Host {
    /// Empty for the default host.
    name: Arc<str>,
    /// The names as given.
    names: Vec<HostPattern>,
    routes: Routes,
    pages: ErrorPages,
}

impl Host {
    /// Name of the host in logs and figures; empty for the default host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names in requests for the host; none for the default host.
    pub fn names(&self) -> &[HostPattern] {
        &self.names
    }

    /// Routes of the host.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Error pages of the host.
    pub fn pages(&self) -> &ErrorPages {
        &self.pages
    }
}

/// All hosts of a server.
pub struct Hosts {
    /// The hosts, the default one first.
    all: Vec<Host>,
    names: HostTable,
}

impl Hosts {
    /// Makes the hosts: the default one with these routes and pages, and the others.
    ///
    /// # Errors
    /// Two hosts have the same name.
    pub fn new(routes: Routes, pages: ErrorPages, others: Vec<HostSettings>) -> Result<Self, SameName> {
        let default = Host { name: "".into(), names: Vec::new(), routes, pages };
        let mut hosts = Self { all: vec![default], names: HostTable::default() };
        for HostSettings { name, names, routes, pages } in others {
            let number = u16::try_from(hosts.all.len()).unwrap_or(u16::MAX);
            for pattern in &names {
                let before = hosts.names.insert(pattern, number);
                if let Some(other) = before.filter(|other| *other != number) {
                    let hosts = [Arc::clone(&hosts.of(other).name), name];
                    return Err(SameName { name: pattern.clone(), hosts });
                }
            }
            hosts.all.push(Host { name, names, routes, pages });
        }
        Ok(hosts)
    }

    /// The number of the host for this authority (`host:port`). The default host, number 0, takes all names that no other has; only where
    /// it serves nothing beside others there is none for them.
    pub fn find(&self, authority: &[u8]) -> Option<u16> {
        if self.all.len() == 1 {
            return Some(0);
        }
        self.names.find(authority).or_else(|| (!self.is_list()).then_some(0))
    }

    /// Whether only listed hosts are served: the default host has nothing.
    pub fn is_list(&self) -> bool {
        self.all.len() > 1 && self.all[0].routes.is_empty()
    }

    /// The host with this number.
    pub fn of(&self, number: u16) -> &Host {
        self.all.get(usize::from(number)).unwrap_or(&self.all[0])
    }

    /// All hosts, the default one first.
    pub fn all(&self) -> &[Host] {
        &self.all
    }

    /// Sums of what the caches of the static mounts have done and hold.
    pub fn cache_statistics(&self) -> CacheStatistics {
        let mut sum = CacheStatistics::default();
        let folders = self.all.iter().flat_map(|host| host.routes.folders());
        folders.for_each(|(_, files)| sum.add(&files.statistics()));
        sum
    }

    /// Whether any host has an application.
    pub fn has_application(&self) -> bool {
        self.all.iter().any(|host| host.routes.has_application())
    }

    /// The applications of all hosts.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        self.all.iter().flat_map(|host| host.routes.applications())
    }
}

#[cfg(test)]
mod tests {
    use maitred_runtime::Handler;

    use super::*;

    fn host(names: &[&str]) -> HostSettings {
        HostSettings {
            name: names[0].into(),
            names: names.iter().map(|name| name.parse().expect("a name")).collect(),
            routes: Routes::new(),
            pages: ErrorPages::default(),
        }
    }

    fn hosts(default: Routes) -> Hosts {
        let others = vec![
            host(&["shop.example", "www.shop.example"]),
            host(&["*.shop.example"]),
            host(&["*.b.shop.example", "[2001:db8::7]"]),
        ];
        Hosts::new(default, ErrorPages::default(), others).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_exact_name_comes_first_then_the_longest_wildcard() {
        let hosts = hosts(Routes::new());
        for (authority, number) in [
            ("shop.example", Some(1)),
            ("WWW.Shop.Example.:8443", Some(1)),
            ("a.shop.example", Some(2)),
            ("x.a.shop.example", Some(2)),
            ("b.shop.example", Some(2)),
            ("x.b.shop.example", Some(3)),
            ("[2001:db8::7]:80", Some(3)),
            ("example", None),
            ("ashop.example", None),
            (".shop.example", Some(2)),
            ("", None),
        ] {
            assert_eq!(hosts.find(authority.as_bytes()), number, "{authority}");
        }
    }

    #[test]
    fn unknown_hosts_are_the_default_host_s_if_it_serves_something() {
        let application: Arc<dyn Handler> = Arc::new(|_: maitred_runtime::Exchange| {});
        let hosts = hosts(Routes::new().with_application(application));
        assert_eq!(hosts.find(b"elsewhere.example"), Some(0));
        assert_eq!(hosts.find(b""), Some(0));
        assert_eq!(hosts.find(b"shop.example"), Some(1));
        let only = Hosts::new(Routes::new(), ErrorPages::default(), Vec::new())
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(only.find(b"elsewhere.example"), Some(0), "404, as there is no list");
    }

    #[test]
    fn two_hosts_cannot_have_one_name() {
        let others = vec![host(&["a.example", "b.example"]), host(&["c.example", "b.example"])];
        let error = Hosts::new(Routes::new(), ErrorPages::default(), others).err().expect("b twice");
        assert_eq!(error.to_string(), "b.example is a name of two hosts, a.example and c.example");
    }
}
