//! Options of other servers.

use super::*;

/// Returns an option's value, as `maitred check` shows it, and its origin.
fn became(arguments: &[&str], option: &str) -> (String, String) {
    let loaded = Case::new(&[]).loaded(arguments);
    let shown = options::find(option).expect("an option").show(&loaded.config).unwrap_or_default();
    (shown, loaded.origins.of(option).to_string())
}

fn shown(arguments: &[&str], option: &str) -> String {
    became(arguments, option).0
}

#[test]
fn host_and_port_make_one_listener_that_names_both() {
    for (arguments, listen, origin) in [
        (&["--host", "0.0.0.0", "--port", "80"][..], "0.0.0.0:80", "command line, --host and --port"),
        (&["--port=81"], "127.0.0.1:81", "command line, --port"),
        (&["--host", "::1"], "[::1]:8000", "command line, --host"),
        (&["--port", "1", "--port", "2"], "127.0.0.1:2", "command line, --port"),
        (&["-b", "0.0.0.0"], "0.0.0.0:8000", "command line, -b"),
        (&["--uds", "/a.sock", "--uds-permissions", "660"], "unix:/a.sock,mode=660", "command line, --uds"),
        (&["--backlog", "9"], "127.0.0.1:8000,backlog=9", "command line, --backlog"),
        (&["--backlog=9", "-b:80"], ":80,backlog=9", "command line, -b and --backlog"),
    ] {
        assert_eq!(
            became(arguments, "listen"),
            (format!("[\"{listen}\"]"), origin.to_owned()),
            "{arguments:?}"
        );
    }
    let both = shown(&["--listen", ":1,backlog=5", "--bind", ":2", "--backlog", "9"], "listen");
    assert_eq!(both, "[\":1,backlog=5\", \":2,backlog=9\"]");
}

#[test]
fn values_are_translated() {
    for (arguments, option, value) in [
        (&["-w4"][..], "workers", "4"),
        (&["--threads", "2"], "max-threads", "2"),
        (&["-k", "uvicorn.workers.UvicornWorker"], "interface", "\"asgi\""),
        (&["-k", "uvloop"], "loop", "\"uvloop\""),
        (&["--forwarded-allow-ips", "*"], "trusted-proxies", "[\"0.0.0.0/0\", \"::/0\", \"unix\"]"),
        (&["--forwarded-allow-ips=10.0.0.1,::1"], "trusted-proxies", "[\"10.0.0.1\", \"::1\"]"),
        (&["--proxy-headers"], "trusted-proxies", "[\"127.0.0.1\", \"::1\"]"),
        (&["--proxy-headers", "--forwarded-allow-ips", "10.0.0.1"], "trusted-proxies", "[\"10.0.0.1\"]"),
        (&["--no-proxy-headers", "--forwarded-allow-ips", "10.0.0.1"], "trusted-proxies", "[]"),
        (&["--access-logfile", "-"], "access-log", "\"-\""),
        (&["--access-logfile", "off"], "access-log", "\"./off\""),
        (&["--error-logfile", "-"], "error-log", "\"stderr\""),
        (&["--no-access-log"], "access-log", "\"off\""),
        (&["--log-level", "warning"], "log-level", "\"warn\""),
        (&["--interface=asgi3"], "interface", "\"asgi\""),
        (&["--http", "1"], "http2", "\"off\""),
        (&["--no-ws"], "websockets", "false"),
        (&["--http1-header-read-timeout", "1500"], "head-timeout", "1.5"),
        (&["--workers-lifetime", "2h", "-w", "2"], "worker-lifetime", "7200"),
        (&["--ssl-cert-reqs", "2"], "tls-client-auth", "\"required\""),
        (&["--static-path-mount", "pub"], "static", "[\"/static=pub\"]"),
        (&["--static-path-route", "/a", "--static-path-mount", "pub"], "static", "[\"/a=pub\"]"),
    ] {
        assert_eq!(shown(arguments, option), value, "{arguments:?}");
    }
}

#[test]
fn a_wrong_value_is_told_with_the_name_that_was_written() {
    for (arguments, said) in [
        (&["--threads", "many"][..], "--threads: 'many' is not a whole number"),
        (&["--port", "http"], "--port: '127.0.0.1:http' is not an address"),
        (&["--port"], "--port: needs a value"),
        (&["--no-access-log=1"], "--no-access-log: takes no value"),
        (&["-k", "gevent"], "-k: there are no workers of the class 'gevent'; leave it out"),
        (&["--interface", "rsgi"], "--interface: 'rsgi' is granian's own"),
        (&["--host", "a", "--uds", "/b"], "--uds: --host names another place to listen"),
        (&["--uds-permissions", "660"], "--uds-permissions: there is no socket"),
        (&["--env-files", "a", "--env-files", "b"], "--env-files: there can be one file"),
        (&["--static-path-route", "/a"], "--static-path-route: there are 1 routes and 0 folders"),
        (&["-workers", "4"], "-workers: unknown option; did you mean '--workers'?"),
        (&["--prot", "80"], "--prot: unknown option; did you mean '--port'?"),
    ] {
        let error = Case::new(&[]).error(arguments);
        assert!(error.starts_with(said), "{arguments:?}: {error}");
    }
}

#[test]
fn options_with_another_meaning_name_the_right_one() {
    for (arguments, whose, instead) in [
        (&["-p", "80"][..], "gunicorn, hypercorn", "--pid-file FILE or --port N"),
        (&["--timeout", "120"], "gunicorn", "--request-timeout"),
        (&["-t=120"], "gunicorn", "--worker-timeout"),
        (&["--limit-concurrency", "10"], "uvicorn", "--overflow refuse"),
        (&["--reload-delay", "1"], "uvicorn", "--reload watches"),
        (&["-c", "gunicorn.conf.py"], "gunicorn", "maitred migrate"),
    ] {
        let error = Case::new(&[]).error(arguments);
        assert!(error.contains(whose) && error.contains(instead), "{arguments:?}: {error}");
    }
    let error = Case::new(&[]).error(&["--config", "gunicorn.conf.py"]);
    assert!(error.contains("'maitred migrate gunicorn.conf.py'"), "{error}");
}

#[test]
fn an_option_of_several_workers_is_told_of_where_there_is_one() {
    let warnings = |arguments: &[&str]| Case::new(&[]).loaded(arguments).warnings;
    let said = warnings(&["--max-requests", "1000"]);
    assert!(said.len() == 1 && said[0].starts_with("--max-requests: no effect with one worker"), "{said:?}");
    assert_eq!(warnings(&["--max-requests", "1000", "-w", "2"]), [""; 0]);
    assert_eq!(warnings(&["--worker-requests", "0"]), [""; 0]);
}
