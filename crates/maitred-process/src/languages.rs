//! The languages of the loaded applications: the hosts of their threads, and the pools of each.
//!
//! The default pool has threads of the language with an event loop, else of the first application. A pool that an application or a virtual
//! host names has threads of that application's language; other pools have those of the default pool. A language without a pool gets one
//! with its name and the limits of the default pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use maitred_config::Problem;
use maitred_runtime::ThreadHost;
use maitred_server::{DEFAULT_POOL, PoolSettings, Settings};

use crate::host::Application;

/// The hosts, and the number of the host of each application.
#[derive(Default)]
pub(crate) struct Languages {
    hosts: Vec<Arc<dyn ThreadHost>>,
    of_applications: Vec<usize>,
}

/// An application, and the pool that it or its virtual host names.
pub(crate) struct Named<'a> {
    pub(crate) application: &'a str,
    pub(crate) pool: Option<&'a str>,
}

impl Languages {
    pub(crate) fn of(applications: &[Application]) -> Self {
        let threads = || applications.iter().map(|application| &application.threads);
        let looped = threads().find(|threads| threads.event_loop().is_some());
        let mut hosts: Vec<Arc<dyn ThreadHost>> = looped.cloned().into_iter().collect();
        let number = |threads: &Arc<dyn ThreadHost>| {
            let known = hosts.iter().position(|host| host.language() == threads.language());
            known.unwrap_or_else(|| {
                hosts.push(Arc::clone(threads));
                hosts.len() - 1
            })
        };
        let of_applications = threads().map(number).collect();
        Self { hosts, of_applications }
    }

    /// Hands the hosts to a server, and says which pools have threads of which. `named` has the applications in the order in which they were
    /// loaded.
    ///
    /// # Errors
    /// Applications of two languages name one pool.
    pub(crate) fn apply<'a>(
        self,
        named: impl Iterator<Item = Named<'a>>,
        settings: &mut Settings,
    ) -> Result<(), Problem> {
        let Self { hosts, of_applications } = self;
        if hosts.is_empty() {
            return Ok(());
        }
        let mut claims: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for (Named { application, pool }, number) in named.zip(of_applications) {
            let Some(pool) = pool else { continue };
            let first = if pool == DEFAULT_POOL { 0 } else { number };
            let (other, owner) = *claims.entry(pool).or_insert((first, application));
            if other != number {
                return Err(taken(pool, (application, &*hosts[number]), (owner, &*hosts[other])));
            }
        }
        for pool in &mut settings.pools {
            pool.thread_host = claims.get(&*pool.name).map_or(0, |(number, _)| *number);
        }
        for (number, host) in hosts.iter().enumerate().skip(1) {
            if settings.pools.iter().any(|pool| pool.thread_host == number) {
                continue;
            }
            let name = host.language().to_lowercase();
            match settings.pools.iter_mut().find(|pool| pool.name == name) {
                Some(pool) => pool.thread_host = number,
                None => {
                    settings.pools.push(PoolSettings { name, thread_host: number, ..settings.pool.clone() })
                }
            }
        }
        settings.threads = hosts;
        Ok(())
    }
}

fn taken(
    pool: &str,
    (application, host): (&str, &dyn ThreadHost),
    (owner, other): (&str, &dyn ThreadHost),
) -> Problem {
    let (language, has) = (host.language(), other.language());
    let for_owner = if owner == application { String::new() } else { format!(", for {owner}") };
    let what = format!("it is written in {language}, and the pool '{pool}' has threads of {has}{for_owner}");
    Problem::new(
        application,
        what,
        format!("name a pool of its own, or none: then there is one for {language}"),
    )
}

#[cfg(test)]
mod tests {
    use std::io;

    use maitred_runtime::{EventLoop, Exchange, ThreadBody, Turns};
    use maitred_server::{Level, Log, LogTarget, Routes};

    use super::*;

    struct Toy(&'static str, bool);

    impl ThreadHost for Toy {
        fn spawn(&self, _: String, _: ThreadBody) -> io::Result<()> {
            Ok(())
        }

        fn language(&self) -> &'static str {
            self.0
        }

        fn event_loop(&self) -> Option<Arc<dyn EventLoop>> {
            self.1.then(|| Arc::new(Still) as Arc<dyn EventLoop>)
        }
    }

    struct Still;

    impl EventLoop for Still {
        fn attach(&self, _: Box<dyn Turns>) {}

        fn stands_still(&self, _: bool) {}
    }

    fn application(language: &'static str, looped: bool) -> Application {
        Application {
            handler: Arc::new(|_: Exchange| ()),
            threads: Arc::new(Toy(language, looped)),
            description: String::new(),
            runs_on: None,
        }
    }

    /// The languages of the hosts, and the pools with the numbers of their hosts.
    type Applied = (Vec<&'static str>, Vec<(String, usize)>);

    fn applied(
        applications: &[(&'static str, bool, Option<&str>)],
        pools: &[&str],
    ) -> Result<Applied, String> {
        let log = Log::open(Level::Error, LogTarget::Path("/dev/null".into()), None).unwrap();
        let mut settings = Settings::new(Routes::new(), Arc::new(log));
        settings.pools = pools.iter().map(|name| PoolSettings::named(*name)).collect();
        let loaded: Vec<_> =
            applications.iter().map(|(language, looped, _)| application(language, *looped)).collect();
        let named = applications.iter().map(|(application, _, pool)| Named { application, pool: *pool });
        Languages::of(&loaded).apply(named, &mut settings).map_err(|problem| problem.to_string())?;
        let hosts = settings.threads.iter().map(|host| host.language()).collect();
        Ok((hosts, settings.pools.into_iter().map(|pool| (pool.name, pool.thread_host)).collect()))
    }

    fn pools(pools: &[(&str, usize)]) -> Vec<(String, usize)> {
        pools.iter().map(|(name, host)| ((*name).to_owned(), *host)).collect()
    }

    #[test]
    fn a_language_has_the_pools_that_its_applications_name_or_one_of_its_own() {
        let one = [("Python", false, None), ("Python", false, Some("a"))];
        assert_eq!(applied(&one, &["a", "b"]), Ok((vec!["Python"], pools(&[("a", 0), ("b", 0)]))));
        let two = [("Python", false, Some("default")), ("Tcl", false, Some("a"))];
        assert_eq!(applied(&two, &["a", "b"]), Ok((vec!["Python", "Tcl"], pools(&[("a", 1), ("b", 0)]))));
        let without = [("Python", false, None), ("Tcl", false, None)];
        assert_eq!(applied(&without, &["a"]), Ok((vec!["Python", "Tcl"], pools(&[("a", 0), ("tcl", 1)]))));
        assert_eq!(applied(&without, &["tcl"]), Ok((vec!["Python", "Tcl"], pools(&[("tcl", 1)]))));
    }

    #[test]
    fn the_default_pool_is_that_of_the_event_loop() {
        let looped = [("Tcl", false, None), ("Python", true, None), ("Python", false, None)];
        assert_eq!(applied(&looped, &[]), Ok((vec!["Python", "Tcl"], pools(&[("tcl", 1)]))));
    }

    #[test]
    fn two_languages_in_one_pool_are_refused() {
        let both = [("Python", false, Some("a")), ("Tcl", false, Some("a"))];
        assert_eq!(
            applied(&both, &["a"]).unwrap_err(),
            "Tcl: it is written in Tcl, and the pool 'a' has threads of Python, for Python; name a pool of its own, or \
             none: then there is one for Tcl"
        );
        let default = [("Python", false, None), ("Tcl", false, Some("default"))];
        assert!(applied(&default, &[]).unwrap_err().contains("the pool 'default' has threads of Python;"));
    }
}
