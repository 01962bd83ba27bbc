//! `maitred dev`: the values of options while a developer changes the application.
//!
//! Leaves out: the watch of the files, and the page with tracebacks.

use std::io::IsTerminal;
use std::time::Duration;

use maitred_log::Format;

use crate::origins::PORT;
use crate::problem::correct;
use crate::{Config, LogPlace, Origins, Problem, Source, options};

/// Time for requests that run when the code changes, and at Ctrl-C, unless `drain-timeout` is given.
const DRAIN: Duration = Duration::from_secs(2);

/// Time for which a connection without a request is kept when the code changes: a request on its way on this machine arrives sooner, and no
/// browser that reloads the page meets the old code.
const DRAIN_IDLE: Duration = Duration::from_millis(50);

/// Sets the values of development, except for options that the command line or the environment has: a configuration file is also used in
/// production.
pub fn settle(config: &mut Config, origins: &mut Origins) {
    if !config.development.on {
        return;
    }
    // In development no proxy of a platform stands in front: the server listens on loopback only.
    if *origins.of("listen") == Source::Environment(PORT.to_owned()) {
        let local = config.listen.iter().map(|address| format!("127.0.0.1{address}")).collect::<Vec<_>>();
        let set = options::find("listen").map(|option| option.set(config, &local));
        debug_assert!(matches!(set, Some(Ok(()))), "a port of all addresses is one of each");
    }
    // A file is also used in production, so its values do not count here.
    let is_of_production =
        |source: &Source| matches!(source, Source::Default | Source::File { .. } | Source::DropIn { .. });
    let mut takes = |name: &'static str| {
        let takes = is_of_production(origins.of(name));
        if takes {
            origins.set(name, Source::Development);
        }
        takes
    };
    if takes("access-log") {
        config.site.access_log = LogPlace::Stdout;
    }
    if takes("access-log-format") {
        let name = if is_colored() { "short-color" } else { "short" };
        config.site.access_log_format = Format::parse(name).unwrap_or_default();
    }
    if takes("drain-timeout") {
        config.drain_timeout = DRAIN;
    }
    let is_asked_for = matches!(origins.of("workers"), Source::CommandLine | Source::Familiar(_));
    if !is_asked_for && config.workers.count != Some(1) {
        config.workers.count = Some(1);
        origins.set("workers", Source::Development);
    }
    config.workers.preload = false;
}

/// Checks the options of development together.
pub fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let wrong =
        |name: &str, what: String, remedy: &str| Err(Problem::new(origins.describe(name), what, remedy));
    for path in &config.development.watch {
        if !path.exists() {
            let what = format!("there is no file or folder {}", path.display());
            return wrong("watch", what, &correct(path));
        }
    }
    if config.development.on && config.workers.count != Some(1) {
        let what = "with reload there is one worker, which each change replaces".to_owned();
        return wrong("workers", what, "leave it out, or leave reload out");
    }
    Ok(())
}

/// See [`DRAIN_IDLE`]; none outside of development.
pub fn drain_idle(config: &Config) -> Option<Duration> {
    config.development.on.then_some(DRAIN_IDLE)
}

fn is_colored() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
