//! SIGHUP: the configuration is read again, and the running server applies the options that it can change.
//!
//! Limits of pools, rules, filters, certificates, limits on peers, measurements of requests and limits of responses that wait for slow readers
//! change at once. The other options are checked as well, so that errors are found and changes are named, but only a restart applies them.
//! Promises: an invalid configuration changes nothing.

use std::sync::Arc;

use maitred_config::config::NamedPool;
use maitred_config::options::{self, Kind, Reload as Needs};
use maitred_config::{
    Config, Definition, Inputs, Loaded, Origins, PoolConfig, Problem, acme, filters, pools, sources, tls,
    validation,
};
use maitred_filters::FilterRule;
use maitred_server::pool_map::UnknownPool;
use maitred_server::{DEFAULT_POOL, Insight, Limits, Log, PoolLimits, PoolRule, Server, WriterSettings};

use crate::certificates::Certificates;
use crate::settings;
use crate::tls_terms::Running;

/// The configuration of a running server, for comparison with a new one.
pub(crate) struct Reload {
    pub(crate) inputs: Inputs,
    /// The configuration as the sources had it at the last reading.
    pub(crate) configured: Config,
    /// The current configuration: `configured`, with the changes at run time since then.
    pub(crate) running: Config,
    /// The origins of the values.
    pub(crate) origins: Origins,
    /// The application was loaded for one thread.
    pub(crate) single: bool,
    /// The application runs on an event loop.
    pub(crate) looped: bool,
    /// The certificates and keys of TLS listeners, if there are any.
    pub(crate) tls: Option<Running>,
    /// The orderer, if this process is the only one.
    pub(crate) certificates: Certificates,
}

/// The changes that a configuration brings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Lines for the log about changes that are applied.
    lines: Vec<String>,
    limits: Vec<(String, PoolLimits)>,
    rules: Option<Vec<PoolRule>>,
    /// The new filters.
    filters: Option<Vec<FilterRule>>,
    /// The new measurements of requests, and whether the log says how requests got their threads.
    insight: Option<(Insight, bool)>,
    /// The new limits on peers.
    peers: Option<Limits>,
    /// The new limits of responses that wait for slow readers.
    writer: Option<WriterSettings>,
    /// Names of changes that need a restart.
    restart: Vec<String>,
}

impl Reload {
    /// Reads the configuration again, applies it, and logs the changes.
    pub(crate) fn again(&mut self, server: &Server, log: &Arc<Log>, orders: bool) {
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
        // The files of users may have changed, even if the filters have not.
        server.settings().filters().look_at_users();
        if let Err(error) = plan.apply(server) {
            log.error(format_args!("internal error, please report it: {error}"));
        }
        // Options that need a restart keep their old values in both.
        self.configured = next.clone();
        self.running = next;
        self.origins = loaded.origins;
        if orders {
            self.certificates.read_again(&self.running, &self.origins, log);
        }
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

    /// Changes the running server to `wanted`, if no change needs a restart. Returns the changes in lines.
    ///
    /// # Errors
    /// A change needs a restart; nothing has changed.
    pub(crate) fn change(&mut self, wanted: &Config, server: &Server) -> Result<Vec<String>, String> {
        let (plan, next) = self.plan(wanted);
        if !plan.restart.is_empty() {
            return Err(format!("only a restart changes {}; nothing has changed", plan.restart.join(", ")));
        }
        plan.apply(server).map_err(|error| error.to_string())?;
        self.running = next;
        Ok(plan.lines)
    }

    fn read(&self) -> Result<Loaded, Problem> {
        let loaded = sources::load(&self.inputs)?;
        let Loaded { config, origins, .. } = &loaded;
        pools::check(config, origins)?;
        if self.looped {
            pools::refuse_with_event_loop(config, origins)?;
        }
        // Relative paths begin at chdir, which the process enters only at its start: with another chdir they cannot be checked.
        if config.chdir == self.running.chdir {
            validation::check(config, origins)?;
        }
        Ok(loaded)
    }

    /// Plans changes of filters. Files of users are read.
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
            host.take(Needs::Filters, wanted);
        }
        plan.filters = Some(filters::rules(&loaded.config, &loaded.origins)?);
        next.site.hsts = loaded.config.site.hsts;
        plan.lines.push(format!("filters: {} in the place of {}", wanted.len(), self.running.filters.len()));
        next.filters.clone_from(wanted);
        Ok(())
    }

    /// Plans changes of TLS. The files are read and used at once.
    fn plan_terms(
        &mut self,
        loaded: &Loaded,
        plan: &mut Plan,
        next: &mut Config,
        server: &Server,
    ) -> Result<(), Problem> {
        let wanted = &loaded.config;
        let changed = options::all().filter(|option| {
            option.reload == Needs::Terms && option.show(&self.running) != option.show(wanted)
        });
        let changed: Vec<&Definition> = changed.collect();
        // Without the options that need a restart: certificates of another folder would not be renewed.
        let mut taken = next.clone();
        taken.take_terms(wanted);
        let Some(running) =
            self.tls.as_mut().filter(|_| tls::is_on(&taken) && same_hosts(wanted, &self.running))
        else {
            // Listeners would change between plain text and TLS, or hosts would change their numbers.
            plan.restart.extend(changed.iter().map(|option| option.name.to_owned()));
            return Ok(());
        };
        let lines = running.load(&taken, &loaded.origins, server)?;
        for option in changed {
            let [before, after] =
                [&self.running, wanted].map(|config| option.show(config).unwrap_or_default());
            plan.lines.push(format!("{} {before} -> {after}", option.name));
        }
        plan.lines.extend(lines);
        *next = taken;
        Ok(())
    }

    /// Loads the files of TLS again. Returns the changes in lines.
    ///
    /// # Errors
    /// There is no TLS, or a file is not valid; nothing has changed.
    pub(crate) fn load_tls(&mut self, server: &Server) -> Result<Vec<String>, String> {
        let Some(running) = &mut self.tls else {
            return Err("no listener speaks TLS: there is no certificate (tls-cert)".to_owned());
        };
        let lines = running.load(&self.running, &self.origins, server);
        // The operator may have mended what an order has failed by.
        if acme::is_on(&self.running) {
            acme::folder(&self.running).hurry();
        }
        let mut lines = lines.map_err(|problem| format!("TLS goes on as before: {problem}"))?;
        if lines.is_empty() {
            lines.push("TLS: the files are as they were".to_owned());
        }
        Ok(lines)
    }

    /// Compares `wanted` with the current configuration. Returns the changes, and the configuration after them.
    fn plan(&self, wanted: &Config) -> (Plan, Config) {
        let mut plan = Plan::default();
        let mut next = self.running.clone();
        for option in options::all().filter(|option| !matches!(option.kind, Kind::Pool(_))) {
            let [before, after] = [&self.running, wanted].map(|config| option.show(config));
            if before == after || matches!(option.reload, Needs::Terms | Needs::Filters) {
                continue;
            }
            if !option.is_live() {
                plan.restart.push(option.name.to_owned());
                continue;
            }
            let [before, after] =
                [before, after].map(|text| text.unwrap_or_default().trim_matches('"').to_owned());
            plan.lines.push(format!("{} {before} -> {after}", option.name));
            option.take(&mut next, &mut wanted.clone());
            match option.reload {
                Needs::Peers => plan.peers = Some(next.limits.clone()),
                Needs::Responses => plan.writer = Some(next.writer),
                _ => plan.insight = Some((settings::insight(&next), next.dispatch_trace)),
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
            // Rules for unknown pools would leave requests to the default pool, and rules know hosts by numbers, which belong to
            // the old hosts.
            let same_pools = same_hosts(wanted, &self.running)
                && wanted.pools.len() == self.running.pools.len()
                && wanted.pools.iter().all(|pool| find(&self.running, &pool.name).is_some());
            if same_pools {
                plan.change_rules(&self.running, wanted);
                next.rules.clone_from(&wanted.rules);
                for (host, wanted) in next.hosts.iter_mut().zip(&wanted.hosts) {
                    host.take(Needs::Rules, wanted);
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
            server.pools().set_limits(pool, limits);
        }
        if let Some((insight, traces)) = self.insight {
            server.settings().set_insight(insight);
            server.log().set_trace(traces);
        }
        if let Some(peers) = &self.peers {
            server.settings().guard().set(peers);
        }
        if let Some(filters) = &self.filters
            && let Err(error) = server.settings().filters().set_rules(filters.clone())
        {
            server.log().error(format_args!("the filters have not changed: {error}"));
        }
        if let Some(writer) = self.writer {
            server.settings().set_writer(writer);
        }
        self.rules.as_ref().map_or(Ok(()), |rules| server.pools().set_rules(rules))
    }

    /// Plans changes of a pool's limits. Returns the pool after those changes that are possible.
    fn change(&mut self, name: &str, present: &PoolConfig, wanted: &PoolConfig, single: bool) -> PoolConfig {
        let mut next = PoolConfig { strategy: present.strategy, ..wanted.clone() };
        if single && next.most_threads() > 1 {
            // The application may not be safe with a second thread, and has been told that there is none.
            next.limits.max_threads = present.limits.max_threads;
            next.limits.min_threads = next.limits.min_threads.min(next.limits.max_threads);
            next.max_lost_threads = present.max_lost_threads;
            next.limits.request_timeout = present.limits.request_timeout;
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
            self.limits.push((name.to_owned(), next.effective_limits()));
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

/// The name of a pool's key in the line about the restart.
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
