//! Development: `maitred dev`.

use super::definition::{Definition, Kind, Reach, Reload, server};
use crate::forms::{FILES, SWITCH};

/// The switch that `maitred dev` sets.
pub(crate) const RELOAD: &str = "reload";

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: RELOAD,
        kind: Kind::Server(&server(SWITCH, |config| &mut config.development.on)),
        default: &["false"],
        reach: Reach::CommandLine,
        summary: "Load the application again when its files change, for development; `maitred dev` is the same. Requests wait for the new code. The browser \
                  shows tracebacks to whoever opens the link that the terminal shows. The terminal gets a short line for each request, \
                  and Ctrl-C ends at once.",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "watch",
        placeholder: "PATH",
        kind: Kind::Server(&server(FILES, |config| &mut config.development.watch)),
        summary: "With reload: watch this folder, or file, instead of the current folder and the application's. Code, templates and settings count (.py, \
                  .html, .toml, .env and the like), but not those of hidden folders, virtual environments and static folders.",
        cost: "a watch of the kernel for each folder",
        worst: "an application that writes into such a folder starts again and again",
        ..Definition::of(Reload::Restart)
    },
];
