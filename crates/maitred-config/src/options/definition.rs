//! Definitions of options. Command line, file and environment read an option by its definition.

use crate::forms::{At, Facts, Field, Form, Holds};
use crate::{BadValue, Config, PoolConfig, SiteConfig};

/// The definition of an option: name, kind of value, default and help texts.
#[derive(Clone, Copy)]
pub struct Definition {
    /// The name on the command line (`--name`) and in the file; the variable is made of it.
    pub name: &'static str,
    /// The placeholder of the value in help texts, if not that of the form.
    pub(crate) placeholder: &'static str,
    /// What the value is and where it goes.
    pub kind: Kind,
    /// As it would be written on the command line.
    pub default: &'static [&'static str],
    /// Where it can be set.
    pub(crate) reach: Reach,
    /// What it does, one sentence.
    pub(crate) summary: &'static str,
    /// What more of it costs.
    pub cost: &'static str,
    /// What a bad choice leads to.
    pub(crate) worst: &'static str,
    /// The need of a change while the server runs.
    pub reload: Reload,
}

/// Where an option can be set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Command line, environment and file.
    Everywhere,
    /// Everywhere; on the command line it is the argument without a name.
    Argument,
    /// Not in the file: it says which file.
    NotInFile,
    /// Only on the command line.
    CommandLine,
}

/// The need of a change while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Only a restart applies it.
    Restart,
    /// It is a limit of a pool, which changes at once.
    Pool,
    /// The rules that lead requests to pools are made anew.
    Rules,
    /// It changes with the measurements of requests.
    Insight,
    /// It changes with the limits on peers.
    Peers,
    /// It changes with the limits of responses that wait for slow readers.
    Responses,
    /// The terms of TLS are made anew.
    Terms,
    /// The filters are made anew.
    Filters,
}

/// The value of an option, and its owner.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A value of the server.
    Server(&'static dyn Field<Config>),
    /// A value of each host, which says what it serves: hosts do not take it from the default host.
    Content(&'static dyn Field<SiteConfig>),
    /// A value of each host, which says how it serves: hosts take it from the default host unless they have their own.
    Manner(&'static dyn Field<SiteConfig>),
    /// A value of each pool.
    Pool(&'static dyn Field<PoolConfig>),
    /// A table, with keys of its own.
    Table,
    /// The configuration file.
    File,
    /// Prints something instead of serving.
    Action,
}

/// A value of the server.
pub(super) const fn server<F: Form>(form: F, field: fn(&mut Config) -> &mut F::Value) -> At<Config, F> {
    At { form, field }
}

/// A value of each host.
pub(super) const fn site<F: Form>(form: F, field: fn(&mut SiteConfig) -> &mut F::Value) -> At<SiteConfig, F> {
    At { form, field }
}

/// A value of each pool.
pub(crate) const fn pool<F: Form>(form: F, field: fn(&mut PoolConfig) -> &mut F::Value) -> At<PoolConfig, F> {
    At { form, field }
}

/// The environment variable of the option with this name.
pub(super) fn variable(name: &str) -> String {
    format!("MAITRED_{}", name.to_uppercase().replace('-', "_"))
}

impl Definition {
    /// The part that most options have in common.
    pub(super) const fn of(reload: Reload) -> Self {
        Self {
            name: "",
            placeholder: "",
            kind: Kind::Action,
            default: &[],
            reach: Reach::Everywhere,
            summary: "",
            cost: "",
            worst: "",
            reload,
        }
    }

    /// The environment variable.
    pub fn variable(&self) -> String {
        variable(self.name)
    }

    /// How it is written on the command line, without its value.
    pub fn flag(&self) -> String {
        if self.is_positional() { self.shown_placeholder() } else { format!("--{}", self.name) }
    }

    /// The placeholder of the value in help texts; empty for switches.
    pub(crate) fn shown_placeholder(&self) -> String {
        match self.placeholder {
            "" => self.facts().map(|facts| facts.placeholder()).unwrap_or_default(),
            own => own.to_owned(),
        }
    }

    pub(crate) fn is_positional(&self) -> bool {
        self.reach == Reach::Argument
    }

    /// The form of its value; none of those that have no value in the configuration.
    pub(crate) fn facts(&self) -> Option<Facts> {
        match self.kind {
            Kind::Server(value) => Some(value.facts()),
            Kind::Content(value) | Kind::Manner(value) => Some(value.facts()),
            Kind::Pool(value) => Some(value.facts()),
            Kind::Table | Kind::File | Kind::Action => None,
        }
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        matches!(self.kind, Kind::Table) || self.facts().is_some_and(|facts| facts.is_list)
    }

    /// Whether it can be switched off on the command line, `--no-name`.
    pub(crate) fn can_be_off(&self) -> bool {
        self.facts().is_some_and(|facts| facts.holds == Holds::Switch)
    }

    /// How it is written in help texts, without its value: `--[no-]compress`.
    pub(crate) fn flags(&self) -> String {
        if self.can_be_off() { format!("--[no-]{}", self.name) } else { self.flag() }
    }

    /// Whether it can stand on the command line without a value.
    pub(crate) fn is_switch(&self) -> bool {
        self.can_be_off() || matches!(self.kind, Kind::Action)
    }

    pub(crate) fn is_in_file(&self) -> bool {
        matches!(self.reach, Reach::Everywhere | Reach::Argument)
    }

    pub(crate) fn is_in_environment(&self) -> bool {
        self.reach != Reach::CommandLine
    }

    /// Whether a running server applies a change of the option at once, beside changes of pools.
    pub fn is_live(&self) -> bool {
        matches!(self.reload, Reload::Insight | Reload::Peers | Reload::Responses)
    }

    /// Parses `texts` into the option's field of `config`. All but repeatable options have one.
    ///
    /// # Errors
    /// The texts are no value of the option.
    pub fn set(&self, config: &mut Config, texts: &[String]) -> Result<(), BadValue> {
        match self.kind {
            Kind::Server(value) => value.set(config, texts),
            Kind::Content(value) | Kind::Manner(value) => value.set(&mut config.site, texts),
            Kind::Pool(value) => value.set(&mut config.pool, texts),
            Kind::Table | Kind::File | Kind::Action => Ok(()),
        }
    }

    /// The value in `config` as `maitred.toml` would have it; `None` where there is none.
    pub fn show(&self, config: &Config) -> Option<String> {
        match self.kind {
            Kind::Server(value) => value.show(config),
            Kind::Content(value) | Kind::Manner(value) => value.show(&config.site),
            Kind::Pool(value) => value.show(&config.pool),
            Kind::Table | Kind::File | Kind::Action => None,
        }
    }

    /// Takes over the value in `from`, which stays as it is.
    pub fn take(&self, to: &mut Config, from: &mut Config) {
        match self.kind {
            Kind::Server(value) => value.take(to, from),
            Kind::Content(value) | Kind::Manner(value) => value.take(&mut to.site, &mut from.site),
            Kind::Pool(value) => value.take(&mut to.pool, &mut from.pool),
            Kind::Table | Kind::File | Kind::Action => {}
        }
    }

    /// The values it takes, in words.
    pub fn takes(&self) -> String {
        match self.kind {
            Kind::Table => "a name, and keys with their values behind commas".to_owned(),
            Kind::File => "text".to_owned(),
            _ => self.facts().map(|facts| facts.takes).unwrap_or_default(),
        }
    }
}
