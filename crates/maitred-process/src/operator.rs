//! The command's part of the control of its server: names, the settings that SIGHUP changes too, the end.

use std::sync::{Arc, Mutex};

use maitred_certificates::Status;
use maitred_config::pools::{self, Mapped};
use maitred_config::{
    Config, Definition, LogPlace, Problem, Source, acme, configuration, did_you_mean, hosts, options,
};
use maitred_control::{Configured, Done, Owner, Refusal, Setting, lock};
use maitred_server::{DEFAULT_POOL, Level, Log, Server};

use crate::reload::Reload;

const LOG_LEVEL: &str = "log-level";
const ACCESS_LOG: &str = "access-log";

const ON_OFF: &str = "on, off";

pub(crate) struct Operator {
    pub(crate) reload: Arc<Mutex<Reload>>,
    pub(crate) log: Arc<Log>,
    pub(crate) about: Vec<(&'static str, String)>,
}

impl Operator {
    fn set_log_level(&self, text: &str) -> Result<Done, Refusal> {
        let mut config = Config::with_defaults();
        let definition = options::find(LOG_LEVEL).ok_or_else(|| Refusal::unknown(LOG_LEVEL))?;
        definition
            .set(&mut config, &[text.to_owned()])
            .map_err(|bad| Refusal::wrong(format!("{LOG_LEVEL}: {}; {}", bad.what, bad.remedy)))?;
        let before = self.log.level();
        // The words of both are the same.
        let level = Level::ALL.into_iter().find(|level| level.name() == text).unwrap_or(before);
        self.log.set_level(level);
        Ok(Done::line(format!("{LOG_LEVEL} {} -> {}", before.name(), level.name())))
    }
}

impl Operator {
    /// Pauses the access log, or goes on with it.
    fn set_access_log(&self, text: &str) -> Result<Done, Refusal> {
        let on = match text {
            "on" => true,
            "off" => false,
            _ => return Err(Refusal::wrong(format!("{ACCESS_LOG}: '{text}' is none of {ON_OFF}"))),
        };
        if lock(&self.reload).running.site.access_log == LogPlace::Off {
            return Err(Refusal::conflict("there is no access log; only a restart with one adds it"));
        }
        let word = |on| if on { "on" } else { "off" };
        let before = self.log.writes_access();
        self.log.set_access(on);
        Ok(Done::line(format!("{ACCESS_LOG} {} -> {text}", word(before))))
    }
}

impl Owner for Operator {
    fn about(&self) -> Vec<(&'static str, String)> {
        self.about.clone()
    }

    fn configuration(&self) -> Vec<Configured> {
        let reload = lock(&self.reload);
        configuration::of(&reload.running, &reload.origins)
    }

    fn settings(&self) -> Vec<Setting> {
        let reload = lock(&self.reload);
        let mut settings = Vec::new();
        for pool in names(&reload.running) {
            for key in settable() {
                let shown = |config| show(config, &pool, key);
                settings.push(Setting {
                    name: format!("pool.{pool}.{}", key.name),
                    value: shown(&reload.running),
                    configured: shown(&reload.configured),
                    takes: pools::takes(key, &pool),
                });
            }
            let rules = |config| crate::reload::matches_of(config, &pool);
            let (value, configured) = (rules(&reload.running), rules(&reload.configured));
            if value != configured {
                let takes = "map add, map remove".to_owned();
                settings.push(Setting { name: format!("pool.{pool}.match"), value, configured, takes });
            }
        }
        for option in options::live() {
            let [value, configured] = [&reload.running, &reload.configured]
                .map(|config| option.show(config).unwrap_or_default().trim_matches('"').to_owned());
            settings.push(Setting { name: option.name.to_owned(), value, configured, takes: option.takes() });
        }
        if reload.running.site.access_log != LogPlace::Off {
            let value = if self.log.writes_access() { "on" } else { "off" };
            let (name, configured) = (ACCESS_LOG.to_owned(), "on".to_owned());
            settings.push(Setting { name, value: value.to_owned(), configured, takes: ON_OFF.to_owned() });
        }
        let configured = options::find(LOG_LEVEL).and_then(|definition| definition.show(&reload.configured));
        settings.push(Setting {
            name: LOG_LEVEL.to_owned(),
            value: self.log.level().name().to_owned(),
            configured: configured.unwrap_or_default().trim_matches('"').to_owned(),
            takes: options::find(LOG_LEVEL).map(Definition::takes).unwrap_or_default(),
        });
        settings
    }

    fn set(&self, server: &Server, name: &str, value: &str) -> Result<Done, Refusal> {
        if name == LOG_LEVEL {
            return self.set_log_level(value);
        }
        if name == ACCESS_LOG {
            return self.set_access_log(value);
        }
        let mut reload = lock(&self.reload);
        let mut wanted = reload.running.clone();
        if let Some(option) = options::live().find(|option| option.name == name) {
            option
                .set(&mut wanted, &[value.to_owned()])
                .map_err(|bad| Refusal::wrong(format!("{name}: {}; {}", bad.what, bad.remedy)))?;
            let lines = reload.change(&wanted, server).map_err(Refusal::conflict)?;
            return Ok(Done { lines, value: None });
        }
        let (pool, key) = find(&reload.running, name)?;
        let mut origins = reload.origins.clone();
        pools::set_key(&mut wanted, &pool, key, value)
            .map_err(|bad| Refusal::wrong(format!("{name}: {}; {}", bad.what, bad.remedy)))?;
        origins.change(&pool, key.name);
        pools::check(&wanted, &origins).map_err(refused)?;
        let lines = reload.change(&wanted, server).map_err(Refusal::conflict)?;
        reload.origins = origins;
        Ok(Done { lines, value: None })
    }

    fn certificate_files(&self) -> Vec<String> {
        lock(&self.reload).tls.as_ref().map_or_else(Vec::new, |tls| tls.material().places.clone())
    }

    fn orders(&self) -> Vec<Status> {
        let (mut names, folder) = {
            let reload = lock(&self.reload);
            let config = &reload.running;
            let identities = reload.tls.iter().flat_map(|tls| tls.material().terms.identities());
            let loaded = identities.flat_map(|info| info.names.iter().cloned());
            let on_demand = loaded.filter(|name| acme::is_on_demand(config, name));
            (acme::ordered(config).into_iter().chain(on_demand).collect::<Vec<_>>(), acme::folder(config))
        };
        names.dedup();
        names.iter().map(|name| folder.status(name)).collect()
    }

    fn reload_tls(&self, server: &Server) -> Result<Done, Refusal> {
        let lines = lock(&self.reload).load_tls(server).map_err(Refusal::conflict)?;
        Ok(Done { lines, value: None })
    }

    fn add_rule(&self, server: &Server, text: &str) -> Result<Done, Refusal> {
        let mut reload = lock(&self.reload);
        let source = Source::Control;
        let Mapped { pool, key, rule } = pools::mapped(text).map_err(Refusal::wrong)?;
        let known = names(&reload.running);
        if !known.contains(&pool) {
            return Err(unknown_pool(&pool, &known));
        }
        if let Some(key) = key {
            return Err(Refusal::wrong(format!("{key} is no condition; 'set pool.{pool}.{key}' changes it")));
        }
        let Some(rule) = rule else {
            let conditions = pools::conditions();
            return Err(Refusal::wrong(format!(
                "a rule has conditions: {conditions}; write {text},path=/x/*"
            )));
        };
        let mut wanted = reload.running.clone();
        wanted.rules.push(rule);
        hosts::resolve(&mut wanted, &reload.origins)
            .map_err(|problem| Refusal::wrong(problem.to_string()))?;
        let lines = reload.change(&wanted, server).map_err(Refusal::conflict)?;
        reload.origins.rules.resize(wanted.rules.len(), source);
        Ok(Done { lines, value: None })
    }

    fn remove_rule(&self, server: &Server, text: &str) -> Result<Done, Refusal> {
        let mut reload = lock(&self.reload);
        let map = server.pools().map();
        let number: Option<usize> = text.parse().ok();
        let Some(rule) = number.and_then(|number| map.rules().nth(number.checked_sub(1)?)) else {
            let there = match map.rules().len() {
                0 => "there are none".to_owned(),
                count => format!("write 1 to {count}"),
            };
            return Err(Refusal::wrong(format!("'{text}' is no number of a rule; {there}")));
        };
        let mut wanted = reload.running.clone();
        // Of equal rules the later one decides, so that one is removed.
        let Some(position) = wanted.rules.iter().rposition(|known| known == rule) else {
            return Err(Refusal::conflict(if wanted.all_rules().contains(rule) {
                format!("rule {text} is the pool of a host or a mounted application: change it in the file")
            } else {
                "the rules have changed meanwhile; 'map' shows them".to_owned()
            }));
        };
        wanted.rules.remove(position);
        let lines = reload.change(&wanted, server).map_err(Refusal::conflict)?;
        if position < reload.origins.rules.len() {
            reload.origins.rules.remove(position);
        }
        Ok(Done { lines, value: None })
    }

    fn drain(&self, _: &Server) -> Result<Done, Refusal> {
        let raised = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
        raised.map_err(|error| Refusal::conflict(format!("the process cannot be told: {error}")))?;
        Ok(Done::line("drain: as by SIGTERM"))
    }
}

/// All pools, the default one first.
fn names(config: &Config) -> Vec<String> {
    let named = config.pools.iter().map(|pool| pool.name.clone());
    std::iter::once(DEFAULT_POOL.to_owned()).chain(named).collect()
}

/// The keys of a pool that can be changed while the server runs.
fn settable() -> impl Iterator<Item = &'static Definition> {
    options::of_pools().filter(|key| key.name != "strategy")
}

/// `pool.NAME.KEY`, or `KEY` for the default pool.
fn find(config: &Config, name: &str) -> Result<(String, &'static Definition), Refusal> {
    let (pool, key) = match name.strip_prefix("pool.").map(|rest| rest.split_once('.')) {
        Some(Some((pool, key))) => (pool, key),
        Some(None) => return Err(Refusal::wrong(format!("'{name}' has no key; write pool.NAME.KEY"))),
        None => (DEFAULT_POOL, name),
    };
    let known = names(config);
    if !known.iter().any(|known| known == pool) {
        return Err(unknown_pool(pool, &known));
    }
    match settable().find(|known| known.name == key) {
        Some(definition) => Ok((pool.to_owned(), definition)),
        None => {
            let live = options::live().map(|option| option.name);
            let keys: Vec<&str> =
                settable().map(|key| key.name).chain(live).chain([LOG_LEVEL, ACCESS_LOG]).collect();
            let remedy = did_you_mean(key, keys.iter().copied(), format!("there are {}", keys.join(", ")));
            let restart = if options::find(key).is_some() { " at run time" } else { "" };
            Err(Refusal::unknown(format!("'{name}' cannot be set{restart}; {remedy}")))
        }
    }
}

fn unknown_pool(pool: &str, known: &[String]) -> Refusal {
    let remedy =
        did_you_mean(pool, known.iter().map(String::as_str), format!("there are {}", known.join(", ")));
    Refusal::unknown(format!("there is no pool '{pool}'; {remedy}"))
}

fn show(config: &Config, pool: &str, key: &Definition) -> String {
    let named = config.pools.iter().find(|named| named.name == pool);
    let threads = named.map_or(&config.pool, |named| &named.threads);
    pools::show(key, threads).unwrap_or_else(|| "not set".to_owned()).trim_matches('"').to_owned()
}

fn refused(problem: Problem) -> Refusal {
    Refusal::wrong(problem.to_string())
}
