//! Changes of the running server.

use super::{Done, Given, QueryContext, Refusal, Wanted, nearest};
use maitred_log::Level;

pub(super) const LEVELS: &str = "error, warn, info or debug";

type Changed = Result<Done, Refusal>;

/// The level with this name.
///
/// # Errors
/// No level is called so; the message names the nearest one.
pub(super) fn level(text: &str) -> Result<Level, String> {
    Level::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
        let meant = nearest(text, Level::ALL.map(Level::name));
        let remedy = meant.map_or(String::new(), |meant| format!("; did you mean '{meant}'?"));
        format!("'{text}' is none of {LEVELS}{remedy}")
    })
}

pub(super) fn set(asking: &QueryContext<'_>, given: &Given) -> Changed {
    let (name, value) = (given.needed("name"), given.needed("value"));
    match Wanted::of(asking, given)?.name {
        Some(pool) => asking.owner.set(asking.server, &format!("pool.{pool}.{name}"), value),
        None => asking.owner.set(asking.server, name, value),
    }
}

pub(super) fn add_rule(asking: &QueryContext<'_>, given: &Given) -> Changed {
    asking.owner.add_rule(asking.server, given.needed("rule"))
}

pub(super) fn remove_rule(asking: &QueryContext<'_>, given: &Given) -> Changed {
    asking.owner.remove_rule(asking.server, given.needed("number"))
}

pub(super) fn log_level(asking: &QueryContext<'_>, given: &Given) -> Changed {
    let level = level(given.needed("level")).map_err(Refusal::wrong)?;
    let log = asking.server.log();
    let before = log.level();
    log.set_level(level);
    Ok(Done::line(format!("log-level {} -> {}", before.name(), level.name())))
}

pub(super) fn reopen(asking: &QueryContext<'_>, _: &Given) -> Changed {
    asking.server.log().reopen();
    Ok(Done::line("the log files were opened anew"))
}

pub(super) fn reload_tls(asking: &QueryContext<'_>, _: &Given) -> Changed {
    asking.owner.reload_tls(asking.server)
}

pub(super) fn drain(asking: &QueryContext<'_>, _: &Given) -> Changed {
    if asking.server.is_draining() {
        return Err(Refusal::conflict("the server drains already"));
    }
    asking.owner.drain(asking.server)
}
