//! Which crate of the workspace may depend on which.
//!
//! ```text
//! python → cli → tools → process → config → control  →  server  →  exchange  →  { h1  match  forward  log  compress  files  filters  dispatch  io  tls  stats  runtime }  →  http
//!                              dispatch → io, stats, runtime, pool, turns; turns → io; acme → tls; client → h1, io, tls, match; certificates → acme, client; trace → compress, stats; log, compress, files, filters → io, stats, match; io → stats, tls;
//!                              forward → match; nothing else sideways, nothing back
//! ```

use std::path::PathBuf;

use serde_json::Value;

/// The crates of ours that each crate may use. A crate that is not here may not exist: its place has to be decided first.
const MAY_USE: &[(&str, &[&str])] = &[
    ("maitred-http", &[]),
    ("maitred-stats", &[]),
    ("maitred-history", &["maitred-stats"]),
    ("maitred-h1", &["maitred-http"]),
    ("maitred-client", &["maitred-http", "maitred-h1", "maitred-io", "maitred-match", "maitred-tls"]),
    (
        "maitred-certificates",
        &[
            "maitred-acme",
            "maitred-client",
            "maitred-h1",
            "maitred-http",
            "maitred-log",
            "maitred-match",
            "maitred-tls",
        ],
    ),
    ("maitred-h2", &["maitred-http"]),
    ("maitred-ws", &[]),
    ("maitred-tls", &[]),
    ("maitred-acme", &["maitred-http", "maitred-tls"]),
    ("maitred-io", &["maitred-stats", "maitred-tls"]),
    ("maitred-supervise", &[]),
    ("maitred-finding", &[]),
    ("maitred-runtime", &["maitred-http"]),
    ("maitred-match", &["maitred-http"]),
    ("maitred-forward", &["maitred-http", "maitred-match"]),
    ("maitred-trace", &["maitred-compress", "maitred-http", "maitred-stats"]),
    ("maitred-log", &["maitred-http", "maitred-stats", "maitred-io", "maitred-match"]),
    ("maitred-pool", &[]),
    ("maitred-turns", &["maitred-io"]),
    (
        "maitred-dispatch",
        &["maitred-stats", "maitred-io", "maitred-runtime", "maitred-pool", "maitred-turns"],
    ),
    ("maitred-compress", &["maitred-http", "maitred-io", "maitred-match", "maitred-stats"]),
    (
        "maitred-files",
        &["maitred-http", "maitred-io", "maitred-stats", "maitred-runtime", "maitred-compress"],
    ),
    (
        "maitred-filters",
        &["maitred-http", "maitred-io", "maitred-stats", "maitred-runtime", "maitred-match", "maitred-log"],
    ),
    ("maitred-spool", &["maitred-io", "maitred-runtime"]),
    ("maitred-limits", &["maitred-http", "maitred-io", "maitred-log", "maitred-match", "maitred-stats"]),
    (
        "maitred-exchange",
        &[
            "maitred-trace",
            "maitred-client",
            "maitred-limits",
            "maitred-spool",
            "maitred-tls",
            "maitred-forward",
            "maitred-filters",
            "maitred-files",
            "maitred-compress",
            "maitred-http",
            "maitred-h1",
            "maitred-h2",
            "maitred-ws",
            "maitred-stats",
            "maitred-io",
            "maitred-runtime",
            "maitred-match",
            "maitred-log",
            "maitred-dispatch",
            "maitred-turns",
        ],
    ),
    (
        "maitred-server",
        &[
            "maitred-client",
            "maitred-trace",
            "maitred-exchange",
            "maitred-limits",
            "maitred-spool",
            "maitred-tls",
            "maitred-forward",
            "maitred-filters",
            "maitred-files",
            "maitred-compress",
            "maitred-http",
            "maitred-h1",
            "maitred-h2",
            "maitred-ws",
            "maitred-stats",
            "maitred-io",
            "maitred-runtime",
            "maitred-match",
            "maitred-log",
            "maitred-dispatch",
            "maitred-pool",
            "maitred-turns",
        ],
    ),
    (
        "maitred-control",
        &[
            "maitred-certificates",
            "maitred-http",
            "maitred-h1",
            "maitred-history",
            "maitred-stats",
            "maitred-io",
            "maitred-log",
            "maitred-match",
            "maitred-files",
            "maitred-runtime",
            "maitred-server",
            "maitred-dashboard",
            "maitred-finding",
        ],
    ),
    ("maitred-dashboard", &["maitred-compress", "maitred-http"]),
    (
        "maitred-config",
        &[
            "maitred-trace",
            "maitred-http",
            "maitred-match",
            "maitred-log",
            "maitred-compress",
            "maitred-filters",
            "maitred-server",
            "maitred-control",
            "maitred-io",
            "maitred-certificates",
        ],
    ),
    (
        "maitred-process",
        &[
            "maitred-trace",
            "maitred-certificates",
            "maitred-client",
            "maitred-config",
            "maitred-http",
            "maitred-runtime",
            "maitred-log",
            "maitred-files",
            "maitred-filters",
            "maitred-server",
            "maitred-control",
            "maitred-finding",
            "maitred-supervise",
            "maitred-io",
        ],
    ),
    (
        "maitred-tools",
        &[
            "maitred-certificates",
            "maitred-client",
            "maitred-http",
            "maitred-config",
            "maitred-process",
            "maitred-filters",
            "maitred-server",
            "maitred-control",
        ],
    ),
    (
        "maitred-cli",
        &[
            "maitred-http",
            "maitred-config",
            "maitred-process",
            "maitred-tools",
            "maitred-report",
            "maitred-runtime",
        ],
    ),
    ("maitred-report", &["maitred-config"]),
    (
        "maitred-python",
        &[
            "maitred-client",
            "maitred-http",
            "maitred-io",
            "maitred-runtime",
            "maitred-server",
            "maitred-config",
            "maitred-process",
            "maitred-cli",
            "maitred-client",
            "maitred-h1",
        ],
    ),
    (TESTKIT, &["maitred-http", "maitred-runtime", "maitred-h1", "maitred-io"]),
];

/// Tests of a crate that look at it through one above it.
const TESTED_THROUGH: (&str, &str) = ("maitred-server", "maitred-control");

/// Test tools: usable by the tests of every crate, by the product of none.
const TESTKIT: &str = "maitred-testkit";

/// Crates from elsewhere that open sockets or files: not for protocol crates, whatever the section of the manifest.
const EDGE_CRATES: &[&str] =
    &["libc", "rustix", "nix", "socket2", "mio", "tokio", "polling", "async-std", "smol"];

/// A workspace member and what its manifest names.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a manifest's dependency tables.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// From `[dev-dependencies]`: used by tests, examples and benches only.
    pub(crate) dev: bool,
}

/// The members in the answer of `cargo metadata --no-deps`.
///
/// # Errors
/// When the answer lacks a field that format version 1 promises.
pub(crate) fn packages(metadata: &Value) -> Result<Vec<Package>, String> {
    let missing = |field: &str| format!("cargo metadata: no \"{field}\"");
    let text =
        |value: &Value, field: &str| value[field].as_str().map(str::to_owned).ok_or_else(|| missing(field));
    let mut packages = Vec::new();
    for package in metadata["packages"].as_array().ok_or_else(|| missing("packages"))? {
        let manifest = PathBuf::from(text(package, "manifest_path")?);
        let mut dependencies = Vec::new();
        for dependency in package["dependencies"].as_array().ok_or_else(|| missing("dependencies"))? {
            dependencies
                .push(Dependency { name: text(dependency, "name")?, dev: dependency["kind"] == "dev" });
        }
        let folder = manifest.parent().ok_or_else(|| missing("manifest_path"))?.to_owned();
        packages.push(Package { name: text(package, "name")?, folder, dependencies });
    }
    Ok(packages)
}

/// One line for every edge that must not be. Members that are not `maitred-*` (examples, tools) may use every crate, and no
/// crate may use them.
pub(crate) fn faults(packages: &[Package]) -> Vec<String> {
    let member = |name: &str| packages.iter().any(|package| package.name == name);
    let mut faults = Vec::new();
    for package in packages.iter().filter(|package| package.name.starts_with("maitred-")) {
        let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == package.name) else {
            faults.push(format!("{} has no place in the table of directions", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let ours = member(name) || name.starts_with("maitred-");
            let of_tests = name == TESTKIT || TESTED_THROUGH == (package.name.as_str(), name);
            let allowed = may_use.contains(&name) || dependency.dev && of_tests;
            if ours && !allowed {
                faults.push(format!("{} must not depend on {name}", package.name));
            }
            if crate::purity::PURE_CRATES.contains(&package.name.as_str()) && EDGE_CRATES.contains(&name) {
                faults.push(format!("{} is free of I/O and must not depend on {name}", package.name));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependencies =
            dependencies.iter().map(|&(name, dev)| Dependency { name: name.to_owned(), dev }).collect();
        Package { name: name.to_owned(), folder: PathBuf::new(), dependencies }
    }

    #[test]
    fn the_designed_edges_are_allowed() {
        let all: Vec<Package> = MAY_USE
            .iter()
            .map(|(name, uses)| {
                let mut edges: Vec<(&str, bool)> = uses.iter().map(|used| (*used, false)).collect();
                edges.extend([(TESTKIT, true), ("memchr", false)]);
                package(name, &edges)
            })
            .collect();
        assert_eq!(faults(&all), Vec::<String>::new());
    }

    #[test]
    fn tests_of_the_server_may_ask_its_control() {
        assert_eq!(faults(&[package("maitred-server", &[("maitred-control", true)])]), Vec::<String>::new());
        let found = faults(&[package("maitred-server", &[("maitred-control", false)])]);
        assert_eq!(found, ["maitred-server must not depend on maitred-control"]);
    }

    #[test]
    fn an_edge_back_is_found() {
        let found = faults(&[package("maitred-http", &[("maitred-server", false)])]);
        assert_eq!(found, ["maitred-http must not depend on maitred-server"]);
    }

    #[test]
    fn an_edge_sideways_is_found_in_every_section() {
        for dev in [false, true] {
            let found = faults(&[package("maitred-h1", &[("maitred-io", dev)])]);
            assert_eq!(found, ["maitred-h1 must not depend on maitred-io"]);
        }
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        let found = faults(&[package("maitred-server", &[(TESTKIT, false)])]);
        assert_eq!(found, ["maitred-server must not depend on maitred-testkit"]);
        assert_eq!(faults(&[package("maitred-server", &[(TESTKIT, true)])]), Vec::<String>::new());
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(
            faults(&[package("maitred-new", &[])]),
            ["maitred-new has no place in the table of directions"]
        );
    }

    #[test]
    fn a_tool_may_use_all_and_is_used_by_none() {
        let found = faults(&[
            package("hello", &[("maitred-io", false)]),
            package("maitred-cli", &[("hello", false)]),
        ]);
        assert_eq!(found, ["maitred-cli must not depend on hello"]);
    }

    #[test]
    fn a_socket_crate_in_a_protocol_crate_is_found() {
        let found = faults(&[package("maitred-h1", &[("socket2", false)])]);
        assert_eq!(found, ["maitred-h1 is free of I/O and must not depend on socket2"]);
    }

    #[test]
    fn the_answer_of_cargo_is_read() {
        let metadata = serde_json::json!({ "packages": [{
            "name": "maitred-h1",
            "manifest_path": "/w/crates/maitred-h1/Cargo.toml",
            "dependencies": [
                { "name": "maitred-http", "kind": null },
                { "name": "maitred-server", "kind": "build" },
                { "name": "maitred-testkit", "kind": "dev" },
            ],
        }]});
        let packages = packages(&metadata).expect("complete");
        assert_eq!(packages[0].folder, PathBuf::from("/w/crates/maitred-h1"));
        assert_eq!(faults(&packages), ["maitred-h1 must not depend on maitred-server"]);
        assert!(super::packages(&serde_json::json!({})).is_err());
    }
}
