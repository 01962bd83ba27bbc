//! `maitred ctl` against the built binary while it serves.

#[path = "suite/harness/mod.rs"]
mod harness;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use harness::{Serving, maitred, site};

const FILE: &str = "\
control = \"ctl.sock\"
max-threads = 20
min-threads = 2

[pool.reports]
max-threads = 2
match = \"/report/*\"
";

fn serving(arguments: &[&str]) -> (TempDir, Serving) {
    let folder = site();
    fs::write(folder.path().join("maitred.toml"), FILE).expect("a file");
    let serving = Serving::start(&folder, &[&["site/"], arguments].concat());
    (folder, serving)
}

/// Exit code, standard output and standard error.
fn run(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = maitred(folder, arguments).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}

fn ctl(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    run(folder, &[&["ctl", "--socket", "ctl.sock"], arguments].concat())
}

fn json(folder: &TempDir, arguments: &[&str]) -> serde_json::Value {
    let (code, out, error) = ctl(folder, &[&["--json"], arguments].concat());
    assert_eq!((code, error.as_str()), (0, ""), "{arguments:?}");
    out.parse().expect("JSON")
}

#[test]
fn every_query_is_answered_in_both_forms() {
    let (folder, _serving) = serving(&[]);
    let queries = [
        "status",
        "stats",
        "active",
        "queued",
        "all",
        "traces",
        "connections",
        "threads",
        "pools",
        "map",
        "handlers",
    ];
    for query in queries.into_iter().chain(["locks", "caches", "deliveries", "settings"]) {
        let (code, out, error) = ctl(&folder, &[query]);
        assert_eq!((code, error.as_str()), (0, ""), "{query}");
        assert!(!out.is_empty() && !out.contains('{'), "{query}: {out}");
        assert!(json(&folder, &[query]).is_object(), "{query}");
    }
    assert_eq!(json(&folder, &["explain", "GET", "/"])["leads_to"], "static files");
    let status = json(&folder, &["status"]);
    assert_eq!((&status["language"], &status["changed"]), (&"native".into(), &serde_json::json!([])));
    assert_eq!(run(&folder, &["ctl"]).0, 0);
}

#[test]
fn health_is_an_exit_code() {
    let (folder, serving) = serving(&["--health-path", "/healthz"]);
    let page = format!("http://{}/healthz", serving.address);
    let ready = format!("ready: process {}\n", serving.process.id());
    assert_eq!(run(&folder, &["health", "--socket", "ctl.sock"]), (0, ready, String::new()));
    assert_eq!(
        run(&folder, &["health", "--url", &page]),
        (0, format!("ready: {page} answers 200\n"), String::new())
    );
    let (code, _, error) = run(&folder, &["health", "--url", &page.replace("healthz", "none")]);
    assert_eq!(
        (code, error),
        (1, format!("maitred: health: {} answers 404\n", page.replace("healthz", "none")))
    );
    drop(serving);
    let (code, out, error) = run(&folder, &["health", "--socket", "ctl.sock"]);
    assert_eq!((code, out.as_str(), error.lines().count()), (1, "", 1), "{error}");
}

#[test]
fn one_of_several_servers_is_named_by_its_process_or_its_port() {
    let folder = site();
    let start = || Serving::start(&folder, &["site/"]);
    let servers = [start(), start()];
    let ask = |arguments: &[&str]| run(&folder, &[&["ctl", "--json"], arguments].concat());
    for server in &servers {
        for which in [server.address.port().to_string(), server.process.id().to_string()] {
            let (code, out, error) = ask(&["--server", &which, "status"]);
            assert_eq!((code, error.as_str()), (0, ""));
            let status: serde_json::Value = out.parse().expect("JSON");
            assert_eq!(status["pid"], server.process.id(), "{which}");
        }
        let (pid, port) = (server.process.id().to_string(), server.address.port().to_string());
        for named in [["--pid", pid.as_str()], ["--port", port.as_str()]] {
            let (code, out, error) = ask(&[named[0], named[1], "status"]);
            assert_eq!((code, error.as_str()), (0, ""), "{named:?}");
            let status: serde_json::Value = out.parse().expect("JSON");
            assert_eq!(status["pid"], server.process.id(), "{named:?}");
        }
    }
    let own = std::process::id().to_string();
    let (code, _, error) = ask(&["--pid", &own, "status"]);
    assert_eq!(code, 2);
    assert!(
        error.starts_with(&format!("maitred: no server of this user has the process {own}; ")),
        "{error}"
    );
    let (code, _, error) = ask(&["--port", "http", "status"]);
    assert_eq!(code, 2);
    assert!(error.starts_with("maitred: --port: 'http' is no port"), "{error}");
    let (code, _, error) = ask(&["status"]);
    assert_eq!(code, 2);
    assert!(error.starts_with("maitred: 2 servers run; choose one with --pid or --port: "), "{error}");
    assert!(error.contains(&format!("{} ({})", servers[1].process.id(), servers[1].address)), "{error}");
    assert_eq!(ask(&["--server", "1", "status"]).0, 2);
}

#[test]
fn a_setting_is_changed_shown_as_changed_and_changed_back() {
    let (folder, mut serving) = serving(&[]);
    let (code, out, _) = ctl(&folder, &["set", "max-threads", "5", "--pool", "reports"]);
    assert_eq!(code, 0);
    assert!(out.contains("pool reports: max-threads 2 -> 5"), "{out}");
    let line = serving.wait_for("info control: pool reports: max-threads 2 -> 5 (user ");
    assert!(line.contains(", process "), "{line}");
    let pools = json(&folder, &["pools"]);
    assert_eq!(pools["pools"][1]["max_threads"], 5);
    let of_pool = json(&folder, &["settings", "--pool", "reports"])["settings"].clone();
    let names: Vec<&str> =
        of_pool.as_array().expect("a list").iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(names.contains(&"pool.reports.max-threads"), "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("pool.reports.")), "{names:?}");
    let changed = &json(&folder, &["status"])["changed"][0];
    assert_eq!(
        (&changed["name"], &changed["value"], &changed["configured"]),
        (&"pool.reports.max-threads".into(), &"5".into(), &"2".into())
    );
    ctl(&folder, &["set", "max-threads", "30"]);
    assert_eq!(json(&folder, &["pools"])["pools"][0]["max_threads"], 30);
    ctl(&folder, &["log-level", "debug"]);
    assert_eq!(json(&folder, &["status"])["changed"].as_array().expect("a list").len(), 3);
    serving.signal("HUP");
    serving.wait_for("info pool default: max-threads 30 -> 20");
    serving.wait_for("info pool reports: max-threads 5 -> 2");
    let changed = json(&folder, &["status"])["changed"].clone();
    assert_eq!(changed.as_array().expect("a list").len(), 1, "the log level needs no file: {changed}");
    ctl(&folder, &["set", "log-level", "info"]);
    assert_eq!(json(&folder, &["status"])["changed"], serde_json::json!([]));
}

/// Waits until the condition is true; the limit is reached only by a defect.
fn wait_until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never is");
    }
}

fn get(serving: &Serving, path: &str) {
    assert_eq!(serving.fetch(path), "hello");
}

#[test]
fn measurements_are_changed_while_the_server_runs() {
    let (folder, mut serving) = serving(&[]);
    let counted = || json(&folder, &["stats"])["spans"][0]["count"].as_u64();
    // An exchange is counted after its last byte has left, which may be after the client has read that byte.
    let wait_for = |count| wait_until(|| counted() == Some(count));
    get(&serving, "/");
    wait_for(1);
    let (code, out, _) = ctl(&folder, &["set", "statistics", "off"]);
    assert!(code == 0 && out.contains("statistics true -> false"), "{out}");
    ctl(&folder, &["set", "spans", "read"]);
    let changed = json(&folder, &["status"])["changed"].clone();
    let names: Vec<_> = changed.as_array().expect("a list").iter().map(|each| each["name"].clone()).collect();
    assert_eq!(names, ["spans", "statistics"]);
    // This request is not counted, and it has ended when the next answer comes on the only connection.
    let mut client = serving.connect();
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    client.write_all(&[*request, *request].concat()).expect("sent");
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answers = String::new();
    client.read_to_string(&mut answers).expect("answers");
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 3);
    serving.signal("HUP");
    serving.wait_for("info statistics false -> true");
    assert_eq!(json(&folder, &["status"])["changed"], serde_json::json!([]));
    get(&serving, "/");
    wait_for(2);
}

#[test]
fn the_access_log_pauses_and_goes_on() {
    let (folder, mut serving) = serving(&["--access-log", "access.log"]);
    let lines = || fs::read_to_string(folder.path().join("access.log")).expect("a log");
    ctl(&folder, &["set", "access-log", "off"]);
    get(&serving, "/?before");
    ctl(&folder, &["set", "access-log", "on"]);
    get(&serving, "/?between");
    wait_until(|| lines().contains("/?between"));
    ctl(&folder, &["set", "access-log", "off"]);
    get(&serving, "/?after");
    assert_eq!(json(&folder, &["status"])["changed"][0]["name"], "access-log");
    ctl(&folder, &["drain"]);
    serving.end();
    let lines = lines();
    assert!(!lines.contains("/?after"), "{lines}");
}

#[test]
fn every_setting_refuses_what_it_does_not_take_and_nothing_has_changed() {
    let (folder, _serving) = serving(&[]);
    let before = json(&folder, &["settings"]);
    for setting in before["settings"].as_array().expect("a list") {
        let name = setting["name"].as_str().expect("a name");
        for wrong in ["nonsense", "-1", ""] {
            let (code, out, error) = ctl(&folder, &["set", name, wrong]);
            assert_eq!((code, out.as_str()), (1, ""), "{name} {wrong}");
            assert!(error.contains(name) && error.lines().count() == 1, "{error}");
        }
    }
    let refused = |arguments: &[&str], says: &str| {
        let (code, _, error) = ctl(&folder, arguments);
        assert_eq!(code, 1, "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    };
    refused(&["set", "pool.reports.max-threads", "0"], "is not a whole number from 1 to 10000");
    refused(&["set", "pool.report.max-threads", "1"], "did you mean 'reports'?");
    refused(&["set", "pool.reports.max-thread", "1"], "did you mean 'max-threads'?");
    refused(
        &["set", "max-threads", "1"],
        "min-threads 2 is greater than max-threads 1 (changed at run time)",
    );
    refused(&["set", "strategy", "pec"], "cannot be set at run time");
    refused(&["set", "listen", ":80"], "cannot be set at run time");
    refused(&["log-level", "wran"], "did you mean 'warn'?");
    refused(&["map", "add", "report,path=/x"], "did you mean 'reports'?");
    refused(&["map", "add", "reports"], "a rule has conditions: host, method, path, header, client");
    refused(&["map", "add", "reports,max-threads=3"], "is no condition");
    refused(&["map", "remove", "2"], "write 1 to 1");
    refused(&["deliveries", "end", "0.0.0"], "there is no delivery 0.0.0");
    refused(&["stacks"], "has no stacks to show");
    assert_eq!(json(&folder, &["settings"]), before);
    assert_eq!(json(&folder, &["status"])["changed"], serde_json::json!([]));
}

#[test]
fn limits_on_peers_are_changed_and_hold_at_once() {
    let (folder, mut serving) = serving(&[]);
    let set = |name, value| {
        let (code, _, error) = ctl(&folder, &["set", name, value]);
        assert_eq!(code, 0, "{error}");
    };
    set("route-bandwidth", "/a/*=1m,*.iso=10k");
    serving.wait_for("info control: route-bandwidth [] -> [\"/a/*=1m\", \"*.iso=10k\"]");
    set("route-bandwidth", "none");
    set("client-exempt", "10.0.0.0/8");
    set("client-exempt", "none");
    set("client-burst", "1");
    set("client-rate", "0.01");
    assert_eq!(json(&folder, &["status"])["changed"][0]["name"], "client-rate");
    get(&serving, "/");
    let mut client = serving.connect();
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.contains("\r\nRetry-After: "), "{answer}");
    assert_eq!(json(&folder, &["stats"])["rules"]["client-rate"], 1);
    serving.signal("HUP");
    serving.wait_for("info client-rate 0.01 -> 0");
    assert_eq!(json(&folder, &["status"])["changed"], serde_json::json!([]));
}

#[test]
fn rules_are_added_and_removed() {
    let (folder, mut serving) = serving(&[]);
    ctl(&folder, &["map", "add", "reports,method=POST,path=/jobs/*"]);
    serving
        .wait_for("info control: pool reports: match [\"/report/*\"] -> [\"/report/*\", \"POST /jobs/*\"]");
    let rules = json(&folder, &["map"])["rules"].clone();
    let paths: Vec<_> = rules.as_array().expect("a list").iter().map(|rule| rule["path"].clone()).collect();
    assert_eq!(paths, ["/report/*", "/jobs/*"]);
    assert_eq!(json(&folder, &["status"])["changed"][0]["name"], "pool.reports.match");
    ctl(&folder, &["map", "remove", "1"]);
    assert_eq!(json(&folder, &["map"])["rules"][0]["path"], "/jobs/*");
    assert_eq!(json(&folder, &["map"])["rules"].as_array().expect("a list").len(), 1);
}

#[test]
fn a_drain_ends_the_process_as_a_signal_does() {
    let (folder, mut serving) = serving(&[]);
    let (code, out, _) = ctl(&folder, &["drain"]);
    assert_eq!(code, 0, "{out}");
    serving.wait_for("SIGTERM: draining");
    assert_eq!(serving.end().code(), Some(0));
    assert!(!folder.path().join("ctl.sock").exists());
    let (code, _, error) = ctl(&folder, &["status"]);
    assert_eq!(code, 1);
    assert!(error.contains("does not answer"), "{error}");
}

#[test]
fn mistakes_on_the_command_line_are_told_without_a_server() {
    let folder = site();
    for wrong in [&["statsu"][..], &["set", "x"], &["status", "now"], &["explain", "GET", "/", "--form", "x"]]
    {
        let (code, out, error) = ctl(&folder, wrong);
        assert_eq!((code, out.as_str(), error.lines().count()), (2, "", 1), "{wrong:?}");
    }
}

#[test]
fn the_only_server_of_a_user_is_found() {
    let folder = site();
    let find = || run(&folder, &["ctl", "status"]);
    if let Some(Output { status, stderr, .. }) = alone(&maitred(&folder, &["ctl", "status"])) {
        let error = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(2), "{error}");
        assert!(error.contains("no running server of this user"), "{error}");
    }
    let first = Serving::start(&folder, &["site/"]);
    assert_eq!(find().0, 0);
    let second = Serving::start(&folder, &["site/"]);
    let (code, _, error) = find();
    assert_eq!(code, 2);
    assert!(error.contains("2 servers run; choose one with --pid or --port"), "{error}");
    // The socket of a killed server stays, and does not count as a server.
    drop(second);
    assert_eq!(find().0, 0);
    drop(first);
}

/// Runs the command where only the test's server is visible: root is shown the servers of all users. None if root may not hide them.
fn alone(command: &Command) -> Option<Output> {
    const HIDE: &str = "for folder in /tmp/maitred-* /run/user; do
        [ ! -d $folder ] || mount -t tmpfs tmpfs $folder || exit 99
    done
    exec \"$@\"";
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let words: &[&str] = if is_root { &["unshare", "--mount", "sh", "-c", HIDE, "sh"] } else { &["env"] };
    let mut inside = Command::new(words[0]);
    inside.args(&words[1..]).arg(command.get_program()).args(command.get_args());
    inside.current_dir(command.get_current_dir()?);
    inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = inside.output().ok()?;
    let hidden = output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare: ");
    hidden.then_some(output)
}

/// Only root can act as another user; elsewhere there is nothing to test.
#[test]
fn another_user_is_not_answered_even_if_the_file_lets_him() {
    let (folder, _serving) = serving(&[]);
    let socket = folder.path().join("ctl.sock");
    let status = maitred(&folder, &["ctl", "--socket", "ctl.sock", "status"]);
    let mut as_nobody = Command::new("setpriv");
    as_nobody.args(["--reuid", "65534", "--clear-groups"]).arg(status.get_program()).args(status.get_args());
    as_nobody.current_dir(&folder);
    let open = |path: &std::path::Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
    open(folder.path(), 0o755).expect("changed");
    open(&socket, 0o666).expect("changed");
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let Some(Output { status, stderr, .. }) = as_nobody.output().ok().filter(|_| is_root) else { return };
    let error = String::from_utf8_lossy(&stderr);
    if error.contains("setpriv: ") {
        return;
    }
    assert_eq!(status.code(), Some(1), "{error}");
    assert!(error.contains("belongs to another user"), "{error}");
}

#[test]
fn a_socket_that_is_in_use_is_an_error_with_its_remedy() {
    let (folder, _serving) = serving(&[]);
    let (code, _, error) = run(&folder, &["site/", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 2);
    assert!(error.contains(" is in use by process "), "{error}");
    assert!(error.contains("; stop the server there, or name another path"), "{error}");
    let (code, _, error) = run(&folder, &["site/", "--control", "off", "--admin", "0.0.0.0:0"]);
    assert_eq!(code, 2);
    assert!(error.contains("give one with --admin-token-file"), "{error}");
}

#[test]
fn the_listener_for_http_wants_its_token() {
    let token = TempDir::new().expect("a folder");
    let path = token.path().join("token");
    fs::write(&path, "0123456789abcdef\n").expect("a file");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("changed");
    let path = path.to_str().expect("UTF-8");
    let (folder, _serving) = serving(&["--admin", "127.0.0.1:0", "--admin-token-file", path]);
    let places = json(&folder, &["status"])["control"].clone();
    let url = places[1].as_str().expect("an address");
    let (code, _, error) = run(&folder, &["ctl", "--url", url, "status"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("--token-file"), "{error}");
    let (code, out, _) = run(&folder, &["ctl", "--url", url, "--token-file", path, "set", "queue", "7"]);
    assert_eq!(code, 0);
    assert!(out.contains("pool default: queue 1000 -> 7"), "{out}");
}
