//! SIGHUP: the configuration is read again, and the running server takes over what it can of it.
//!
//! Limits of pools, rules, filters, certificates and limits on peers hold at once, and so do what is measured of requests and what waits for slow
//! readers. Everything else is looked at as well, so that an error is found and a
//! change is named, but holds after a restart. Promises: what is not valid changes nothing.

use maitred_filters::FilterRule;
use maitred_server::pool_map::UnknownPool;
use maitred_server::{DEFAULT_POOL, Insight, Limits, Log, PoolLimits, PoolRule, Server, WriterSettings};

use crate::config::{Config, NamedPool, PoolConfig};
use crate::filters;
use crate::options::{self, Definition, Kind};
use crate::origins::Origins;
use crate::pools;
use crate::problem::Problem;
use crate::settings;
use crate::sources::{self, Inputs, Loaded};
use crate::tls;
use crate::validation;

/// What a running server was made of, to be compared with what is written now.
pub(crate) struct Reload {
    pub(crate) inputs: Inputs,
    /// What the sources said when they were read last.
    pub(crate) configured: Config,
    /// What holds now: the same, with what was changed at run time since then.
    pub(crate) running: Config,
    /// Where that came from.
    pub(crate) origins: Origins,
    /// The application has been told that it runs on one thread.
    pub(crate) single: bool,
    /// It runs on an event loop.
    pub(crate) looped: bool,
    /// What TLS listeners go by, if there are any.
    pub(crate) tls: Option<tls::Running>,
}

/// What becomes of a configuration that was read again.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// What is applied, in lines for the log.
    lines: Vec<String>,
    limits: Vec<(String, PoolLimits)>,
    rules: Option<Vec<PoolRule>>,
    /// How many there are, and what they do.
    filters: Option<Vec<FilterRule>>,
    /// What is measured of requests, and whether the log says how they got their threads.
    insight: Option<(Insight, bool)>,
    /// What limits peers.
    peers: Option<Limits>,
    /// What waits for slow readers.
    writer: Option<WriterSettings>,
    /// What has changed and needs a restart.
    restart: Vec<String>,
}

impl Reload {
    /// Reads the configuration, and tells what has changed in the log.
    pub(crate) fn again(&mut self, server: &Server, log: &Log) {
        let loaded = match self.read() {
            Ok(loaded) => loaded,
            Err(problem) => {
                log.error(format_args!(
                    "SIGHUP: the configuration is not valid, nothing has changed: {problem}"
                ));
                return;
            }
        };
        log.info(format_args!("SIGHUP: the configuration has been read again"));
        for warning in &loaded.warnings {
            log.warn(format_args!("{warning}"));
        }
        let (mut plan, mut next) = self.plan(&loaded.config);
        if let Err(problem) = self.plan_filters(&loaded, &mut plan, &mut next) {
            log.error(format_args!("SIGHUP: the filters are not valid, they have not changed: {problem}"));
        }
        if let Err(problem) = self.plan_terms(&loaded, &mut plan, &mut next, server) {
            log.error(format_args!("SIGHUP: TLS goes on as before, its files are not valid: {problem}"));
        }
        // Files of users hold at once, also where the filters are as they were.
        server.reread_users();
        if let Err(error) = plan.apply(server) {
            log.error(format_args!("internal error, please report it: {error}"));
        }
        // What only a restart applies is not what holds, and is not changed at run time either.
        self.configured = next.clone();
        self.running = next;
        self.origins = loaded.origins;
        for line in &plan.lines {
            log.info(format_args!("{line}"));
        }
        if !plan.restart.is_empty() {
            let names = plan.restart.join(", ");
            log.warn(format_args!("changed, but only a restart applies it: {names}"));
        } else if plan.lines.is_empty() {
            log.info(format_args!("nothing has changed"));
        }
    }

    /// Changes the running server to `wanted`, if nothing in it needs a restart: what has changed, in lines.
    ///
    /// # Errors
    /// It needs one; nothing has changed.
    pub(crate) fn change(&mut self, wanted: &Config, server: &Server) -> Result<Vec<String>, String> {
        let (plan, next) = self.plan(wanted);
        if !plan.restart.is_empty() {
            return Err(format!("only a restart changes {}; nothing has changed", plan.restart.join(", ")));
        }
        plan.apply(server).map_err(|error| error.to_string())?;
        self.running = next;
        Ok(plan.lines)
    }

    /// Whether a change of this option is planned with filters, or with what TLS goes by.
    fn is_elsewhere(option: &Definition) -> bool {
        option.name == options::tls::HSTS || options::of_terms().any(|of_terms| of_terms.name == option.name)
    }

    fn read(&self) -> Result<Loaded, Problem> {
        let loaded = sources::load(&self.inputs)?;
        let Loaded { config, origins, .. } = &loaded;
        pools::check(config, origins)?;
        if self.looped {
            pools::refuse_with_event_loop(config, origins)?;
        }
        // Relative paths are meant from the folder that has been entered: those of another one cannot be looked at.
        if config.chdir == self.running.chdir {
            validation::check(config, origins)?;
        }
        Ok(loaded)
    }

    /// The same for filters, whose files are read.
    fn plan_filters(&self, loaded: &Loaded, plan: &mut Plan, next: &mut Config) -> Result<(), Problem> {
        let wanted = &loaded.config.filters;
        let of_hosts = |config: &Config| config.host_filters().collect::<Vec<_>>();
        if *wanted == self.running.filters && of_hosts(&loaded.config) == of_hosts(&self.running) {
            return Ok(());
        }
        if !same_hosts(&loaded.config, &self.running) {
            plan.restart.push("filter".to_owned());
            return Ok(());
        }
        for (host, wanted) in next.hosts.iter_mut().zip(&loaded.config.hosts) {
            host.take_limits(wanted);
        }
        plan.filters = Some(filters::rules(&loaded.config, &loaded.origins)?);
        next.site.hsts = loaded.config.site.hsts;
        plan.lines.push(format!("filters: {} in the place of {}", wanted.len(), self.running.filters.len()));
        next.filters.clone_from(wanted);
        Ok(())
    }

    /// The same for what TLS goes by: its files are read, and used at once.
    fn plan_terms(
        &mut self,
        loaded: &Loaded,
        plan: &mut Plan,
        next: &mut Config,
        server: &Server,
    ) -> Result<(), Problem> {
        let wanted = &loaded.config;
        let changed = options::of_terms().filter(|option| option.show(&self.running) != option.show(wanted));
        let changed: Vec<&Definition> = changed.collect();
        let Some(running) =
            self.tls.as_mut().filter(|_| tls::is_on(wanted) && same_hosts(wanted, &self.running))
        else {
            // Listeners would speak something else.
            plan.restart.extend(changed.iter().map(|option| option.name.to_owned()));
            return Ok(());
        };
        let lines = running.load(wanted, &loaded.origins, server)?;
        for option in changed {
            let [before, after] =
                [&self.running, wanted].map(|config| option.show(config).unwrap_or_default());
            plan.lines.push(format!("{} {before} -> {after}", option.name));
        }
        plan.lines.extend(lines);
        next.take_terms(wanted);
        Ok(())
    }

    /// Loads the files of TLS as they are now: what has changed, in lines.
    ///
    /// # Errors
    /// There is no TLS, or a file is not valid; nothing has changed.
    pub(crate) fn load_tls(&mut self, server: &Server) -> Result<Vec<String>, String> {
        let Some(running) = &mut self.tls else {
            return Err("no listener speaks TLS: there is no certificate (tls-cert)".to_owned());
        };
        let lines = running.load(&self.running, &self.origins, server);
        let mut lines = lines.map_err(|problem| format!("TLS goes on as before: {problem}"))?;
        if lines.is_empty() {
            lines.push("TLS: the files are as they were".to_owned());
        }
        Ok(lines)
    }

    /// Compares `wanted` with what holds: what is to be done, and what holds then.
    fn plan(&self, wanted: &Config) -> (Plan, Config) {
        let mut plan = Plan::default();
        let of_server =
            options::all().filter(|option| !options::of_pools().any(|key| key.name == option.name));
        let mut next = self.running.clone();
        for option in of_server.filter(|option| !matches!(option.kind, Kind::Pools)) {
            let [before, after] = [&self.running, wanted].map(|config| option.show(config));
            if before == after || Self::is_elsewhere(option) {
                continue;
            }
            if !options::live().any(|live| live.name == option.name) {
                plan.restart.push(option.name.to_owned());
                continue;
            }
            let [before, after] =
                [before, after].map(|text| text.unwrap_or_default().trim_matches('"').to_owned());
            plan.lines.push(format!("{} {before} -> {after}", option.name));
            // What was shown is read.
            let read = option.set(&mut next, &option.texts(wanted));
            debug_assert!(read.is_ok(), "{}", option.name);
            if options::of_peers().any(|of_peers| of_peers.name == option.name) {
                plan.peers = Some(next.limits.settings());
            } else if options::is_of_responses(option) {
                plan.writer = Some(settings::writer(&next));
            } else {
                plan.insight = Some((settings::insight(&next), next.dispatch_trace));
            }
        }
        next.pool = plan.change(DEFAULT_POOL, &self.running.pool, &wanted.pool, self.single);
        for pool in &mut next.pools {
            match find(wanted, &pool.name) {
                Some(found) => pool.threads = plan.change(&pool.name, &pool.threads, &found.threads, false),
                None => plan.restart.push(format!("pool {} (removed)", pool.name)),
            }
        }
        let new = wanted.pools.iter().filter(|pool| find(&self.running, &pool.name).is_none());
        plan.restart.extend(new.map(|pool| format!("pool {} (new)", pool.name)));
        plan.change_hosts(&self.running, wanted);
        if wanted.all_rules() != self.running.all_rules() {
            // Rules for other pools than there are would leave requests to the default pool, and hosts that are not there have
            // the numbers of others.
            let same_pools = same_hosts(wanted, &self.running)
                && wanted.pools.len() == self.running.pools.len()
                && wanted.pools.iter().all(|pool| find(&self.running, &pool.name).is_some());
            if same_pools {
                plan.change_rules(&self.running, wanted);
                next.rules.clone_from(&wanted.rules);
                for (host, wanted) in next.hosts.iter_mut().zip(&wanted.hosts) {
                    host.take_pool(wanted);
                }
            } else {
                plan.restart.push("match".to_owned());
            }
        }
        (plan, next)
    }
}

impl Plan {
    fn apply(&self, server: &Server) -> Result<(), UnknownPool> {
        for (pool, limits) in &self.limits {
            server.set_limits(pool, limits);
        }
        if let Some((insight, traces)) = self.insight {
            server.set_insight(insight);
            server.log().set_trace(traces);
        }
        if let Some(peers) = &self.peers {
            server.set_peer_limits(peers);
        }
        if let Some(filters) = &self.filters
            && let Err(error) = server.set_filters(filters.clone())
        {
            server.log().error(format_args!("the filters have not changed: {error}"));
        }
        if let Some(writer) = self.writer {
            server.set_writer(writer);
        }
        self.rules.as_ref().map_or(Ok(()), |rules| server.set_rules(rules))
    }

    /// From the limits of a pool to those that are wanted, as far as they can be changed: what holds then.
    fn change(&mut self, name: &str, present: &PoolConfig, wanted: &PoolConfig, single: bool) -> PoolConfig {
        let mut next = PoolConfig { strategy: present.strategy, ..wanted.clone() };
        if single && next.most_threads() > 1 {
            // The application may not be safe with a second thread, and has been told that there is none.
            next.max_threads = present.max_threads;
            next.min_threads = next.min_threads.min(next.max_threads);
            next.max_lost_threads = present.max_lost_threads;
            next.request_timeout = present.request_timeout;
        }
        for key in options::of_pools() {
            let [before, after, asked] = [present, &next, wanted]
                .map(|pool| pools::show(key, pool).unwrap_or_else(|| "not set".to_owned()));
            if before != after {
                let [before, after] = [&before, &after].map(|text| text.trim_matches('"'));
                self.lines.push(format!("pool {name}: {} {before} -> {after}", key.name));
            }
            if after != asked {
                self.restart.push(of_pool(name, key));
            }
        }
        if *present != next {
            self.limits.push((name.to_owned(), next.limits()));
        }
        next
    }

    /// Names the hosts that only a restart changes.
    fn change_hosts(&mut self, present: &Config, wanted: &Config) {
        for host in &wanted.hosts {
            match present.hosts.iter().find(|own| own.name == host.name) {
                None => self.restart.push(format!("host {} (new)", host.name)),
                Some(own) if !own.differs_only_live(host) => self.restart.push(format!("host {}", host.name)),
                Some(_) => {}
            }
        }
        let gone = present.hosts.iter().filter(|own| wanted.hosts.iter().all(|host| host.name != own.name));
        let told = self.restart.len();
        self.restart.extend(gone.map(|host| format!("host {} (removed)", host.name)));
        let same_count = present.hosts.len() == wanted.hosts.len() && self.restart.len() == told;
        if same_count && !same_hosts(present, wanted) {
            self.restart.push("the order of the hosts".to_owned());
        }
    }

    fn change_rules(&mut self, present: &Config, wanted: &Config) {
        let lines = self.lines.len();
        for name in std::iter::once(DEFAULT_POOL).chain(present.pools.iter().map(|pool| &*pool.name)) {
            let [before, after] = [present, wanted].map(|config| matches_of(config, name));
            if before != after {
                self.lines.push(format!("pool {name}: match {before} -> {after}"));
            }
        }
        if self.lines.len() == lines {
            self.lines.push("the rules of the pools have another order".to_owned());
        }
        self.rules = Some(wanted.all_rules());
    }
}

/// Whether the hosts have the same numbers.
fn same_hosts(one: &Config, other: &Config) -> bool {
    one.hosts.iter().map(|host| &host.name).eq(other.hosts.iter().map(|host| &host.name))
}

fn find<'a>(config: &'a Config, name: &str) -> Option<&'a NamedPool> {
    config.pools.iter().find(|pool| pool.name == name)
}

/// How the line about the restart names a key of a pool.
fn of_pool(name: &str, key: &Definition) -> String {
    if name == DEFAULT_POOL { key.name.to_owned() } else { format!("{} of pool {name}", key.name) }
}

/// The rules of a pool as a file would have them.
pub(crate) fn matches_of(config: &Config, name: &str) -> String {
    let rules = config.rules.iter().filter(|rule| rule.pool == name);
    format!("[{}]", rules.map(pools::show_rule).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
