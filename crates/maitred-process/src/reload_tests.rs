//! Options that SIGHUP applies, and options that wait for a restart.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A process that was started with these arguments beside this file.
struct Case {
    folder: TempDir,
    reload: Reload,
}

impl Case {
    fn new(arguments: &[&str], file: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("maitred.toml"), file).expect("a file");
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let folder_path = folder.path().to_owned();
        let inputs = Inputs {
            arguments,
            environment: Vec::new(),
            folder: folder_path,
            earlier: maitred_config::options::renamed::NAMES,
            files: None,
            workers: None,
            started_in: "/".into(),
        };
        let Loaded { config: running, origins, .. } = sources::load(&inputs).expect("a valid configuration");
        let configured = running.clone();
        let reload = Reload {
            inputs,
            configured,
            running,
            origins,
            single: false,
            looped: false,
            tls: None,
            certificates: Certificates::default(),
        };
        Self { folder, reload }
    }

    fn write(&self, file: &str) {
        fs::write(self.folder.path().join("maitred.toml"), file).expect("a file");
    }

    fn plan(&mut self, file: &str) -> Plan {
        self.write(file);
        let wanted = self.reload.read().expect("a valid configuration").config;
        let (plan, next) = self.reload.plan(&wanted);
        self.reload.running = next;
        plan
    }

    fn error(&self, file: &str) -> String {
        self.write(file);
        self.reload.read().expect_err("an error").to_string()
    }
}

const REPORTS: &str = "max-threads = 20\n[pool.reports]\nmax-threads = 2\nmatch = [\"/report/*\"]\n";

#[test]
fn limits_and_rules_are_applied_and_each_is_told() {
    let mut case = Case::new(&[], REPORTS);
    assert_eq!(case.plan(REPORTS), Plan::default());
    let file = "max-threads = 30\nrequest-timeout = 2.5\n[pool.reports]\nmax-threads = 4\noverflow = \"refuse\"\n\
                max-lost-threads = 1\nmatch = [\"/report/*\", \"POST /jobs/*\"]\n\
                [pool.default]\nmatch = \"/report/a\"\n";
    let plan = case.plan(file);
    assert_eq!(
        plan.lines,
        [
            "pool default: max-threads 20 -> 30",
            "pool default: request-timeout 0 -> 2.5",
            "pool reports: max-threads 2 -> 4",
            "pool reports: max-lost-threads not set -> 1",
            "pool reports: overflow wait -> refuse",
            "pool default: match [] -> [\"/report/a\"]",
            "pool reports: match [\"/report/*\"] -> [\"/report/*\", \"POST /jobs/*\"]",
        ]
    );
    let limits: Vec<_> = plan.limits.iter().map(|(name, limits)| (&**name, limits.max_threads)).collect();
    assert_eq!(limits, [("default", 30), ("reports", 4)]);
    assert_eq!(plan.rules.map(|rules| rules.len()), Some(3));
    assert!(plan.restart.is_empty());
    // This becomes the current configuration.
    assert_eq!(case.plan(file), Plan::default());
}

#[test]
fn the_command_line_still_comes_first() {
    let mut case = Case::new(&["--max-threads=5"], "queue = 10\n");
    assert_eq!(case.plan("queue = 20\nmax-threads = 7\n").lines, ["pool default: queue 10 -> 20"]);
}

#[test]
fn everything_else_needs_a_restart_and_is_named_until_then() {
    let mut case = Case::new(&[], REPORTS);
    let file = "listen = \":0\"\naccess-log = \"-\"\nkeep-alive = 5\npoll-groups = 1\nstrategy = \"pec\"\n[pool.reports]\n\
                max-threads = 3\nstrategy = \"pec\"\nmatch = \"/report/*\"\n";
    let mut plan = case.plan(file);
    let restart =
        ["listen", "poll-groups", "keep-alive", "access-log", "strategy", "strategy of pool reports"];
    assert_eq!(plan.restart, restart);
    assert_eq!(plan.lines, ["pool default: max-threads 20 -> 10", "pool reports: max-threads 2 -> 3"]);
    plan = case.plan(file);
    assert_eq!((plan.restart.len(), plan.lines.len()), (6, 0));
    assert_eq!(case.plan(REPORTS).restart, [] as [&str; 0]);
}

#[test]
fn other_pools_need_a_restart_and_so_do_rules_with_them() {
    let mut case = Case::new(&[], &format!("{REPORTS}[pool.old]\nmatch = \"/old\"\n"));
    let plan = case.plan(&format!("{REPORTS}queue = 5\n[pool.new]\nmatch = \"/new\"\n"));
    assert_eq!(plan.restart, ["pool old (removed)", "pool new (new)", "match"]);
    assert_eq!(plan.lines, ["pool reports: queue 1000 -> 5"]);
    assert_eq!(plan.rules, None);
}

#[test]
fn an_application_that_has_one_thread_keeps_one() {
    let mut case = Case::new(&[], "max-threads = 1\n");
    case.reload.single = true;
    let plan = case.plan("max-threads = 4\nmin-threads = 2\nqueue = 5\n");
    assert_eq!(plan.lines, ["pool default: queue 1000 -> 5"]);
    assert_eq!(plan.restart, ["min-threads", "max-threads"]);
    // A replacement of a lost thread would be a second thread.
    assert_eq!(case.plan("max-threads = 1\nqueue = 5\nrequest-timeout = 1\n").restart, ["request-timeout"]);
    let plan = case.plan("max-threads = 1\nqueue = 5\nrequest-timeout = 1\nmax-lost-threads = 0\n");
    assert_eq!((plan.lines.len(), plan.restart.len()), (2, 0));
}

#[test]
fn an_error_says_where() {
    let mut case = Case::new(&[], REPORTS);
    assert_eq!(
        case.error("[pool.reports]\nmax-threads = 0\n"),
        "maitred.toml:2: pool.reports.max-threads: '0' is not a whole number from 1 to 10000; give one, for example 1"
    );
    assert!(case.error("min-threads = 30\n").starts_with("maitred.toml:1: min-threads: "));
    assert!(case.error("app-dir = \"missing\"\n").starts_with("maitred.toml:1: app-dir: "));
    // Relative paths of another folder are not checked.
    assert!(case.plan("chdir = \"missing\"\napp-dir = \"missing\"\n").restart.contains(&"chdir".to_owned()));
    case.reload.looped = true;
    assert!(case.error(REPORTS).contains("an ASGI application runs on one event loop"));
}

#[test]
fn of_a_host_its_pool_and_its_limit_are_applied_and_the_rest_is_named() {
    let host = |name: &str, more: &str| format!("[host.{name}]\nstatic = \"/=.\"\n{more}");
    let file = |hosts: &[String]| format!("[pool.p]\n{}", hosts.concat());
    let mut case = Case::new(&[], &file(&[host("a", ""), host("b", "")]));
    let limited = host("a", "pool = \"p\"\nmax-body = 7\n");
    let plan = case.plan(&file(&[limited.clone(), host("b", "")]));
    assert_eq!(plan.restart, [""; 0]);
    assert!(plan.rules.is_some_and(|rules| rules.len() == 1));
    // Rules know hosts by their numbers.
    let plan = case.plan(&file(&[host("b", ""), limited.clone()]));
    assert_eq!(plan.restart, ["the order of the hosts", "match"]);
    assert!(plan.rules.is_none());
    let plan = case.plan(&file(&[limited, host("b", "names = \"c\"\n"), host("d", "")]));
    assert_eq!(plan.restart, ["host b", "host d (new)"]);
    let plan = case.plan(&file(&[host("b", "")]));
    assert_eq!(plan.restart, ["host a (removed)", "match"]);
}

#[test]
fn tls_is_planned_apart_and_its_first_certificate_needs_a_restart() {
    let mut case = Case::new(&[], "max-threads = 1\n");
    let plan = case
        .plan("max-threads = 1\ntls = true\nhsts = 300\ntls-handshake-timeout = 3\ntls-handshake-rate = 2\n");
    assert_eq!(plan.restart, ["tls-handshake-timeout"], "the rest is made of files, and of filters");
    assert_eq!(plan.lines, ["tls-handshake-rate 0 -> 2"]);
    assert!(plan.peers.is_some_and(|peers| peers.clients.handshakes == 2_000));
}

#[test]
fn certificates_of_hosts_need_no_restart() {
    let file = |cert: &str| format!("tls-cert = \"a\"\n[host.a]\nstatic = \"/=.\"\ntls-cert = \"{cert}\"\n");
    let mut case = Case::new(&[], &file("b"));
    assert_eq!(case.plan(&file("c")).restart, [""; 0]);
}

#[test]
fn acme_and_its_folder_need_a_restart_and_take_no_part_in_terms() {
    let file =
        |more: &str| format!("listen = \":0\"\ntls-cert = \"a\"\n{more}[host.\"a.org\"]\nstatic = \"/=.\"\n");
    let mut case = Case::new(&[], &file(""));
    assert_eq!(case.plan(&file("acme = \"on\"\n")).restart, ["acme"]);
    assert!(!acme::is_on(&case.reload.running));
    let folder = |path: &str| file(&format!("acme = \"on\"\nacme-folder = \"{path}\"\n"));
    let mut case = Case::new(&[], &folder("/one"));
    assert_eq!(case.plan(&folder("/two")).restart, ["acme-folder"]);
    let wanted = case.reload.read().expect("valid").config;
    case.reload.running.take_terms(&wanted);
    assert_eq!(acme::folder(&case.reload.running).path(), std::path::Path::new("/one"));
}
