//! Options of other servers.

use super::*;

/// Returns an option's value, as `maitred check` shows it, and its origin.
fn became(arguments: &[&str], option: &str) -> (String, String) {
    let loaded = Case::new(&[]).loaded(arguments);
    let shown = options::find(option).expect("an option").show(&loaded.config).unwrap_or_default();
    (shown, loaded.origins.of(option).to_string())
}

#[test]
fn a_name_that_means_the_same_takes_the_value_as_it_is() {
    for (arguments, option, value, name) in [
        (&["--host", "0.0.0.0", "--port", "80"][..], "listen", "[\"0.0.0.0:80\"]", "--host and --port"),
        (&["--port=81"], "listen", "[\"127.0.0.1:81\"]", "--port"),
        (&["--host", "::1"], "listen", "[\"[::1]:8000\"]", "--host"),
        (&["--port", "1", "--port", "2"], "listen", "[\"127.0.0.1:2\"]", "--port"),
        (&["-b:80"], "listen", "[\":80\"]", "-b"),
        (&["--listen", ":1", "--bind", ":2"], "listen", "[\":1\", \":2\"]", "--bind"),
        (&["-w4"], "workers", "4", "-w"),
        (&["--threads", "2"], "max-threads", "2", "--threads"),
        (
            &["--forwarded-allow-ips=10.0.0.1,::1"],
            "trusted-proxies",
            "[\"10.0.0.1\", \"::1\"]",
            "--forwarded-allow-ips",
        ),
        (&["--access-logfile", "-"], "access-log", "\"-\"", "--access-logfile"),
        (&["--no-access-log"], "access-log", "\"off\"", "--no-access-log"),
    ] {
        assert_eq!(
            became(arguments, option),
            (value.to_owned(), format!("command line, {name}")),
            "{arguments:?}"
        );
    }
}

#[test]
fn what_is_refused_names_the_option_to_write() {
    for (arguments, said) in [
        (&["--threads", "many"][..], "--threads: 'many' is not a whole number"),
        (&["--port", "http"], "--port: '127.0.0.1:http' is not an address"),
        (&["--port"], "--port: needs a value; for example --listen"),
        (&["--no-access-log=1"], "--no-access-log: takes no value"),
        (&["-b", "0.0.0.0"], "-b: '0.0.0.0' is not an address to listen on"),
        (&["-workers", "4"], "-workers: unknown option; did you mean '--workers'?"),
        (&["--prot", "80"], "--prot: unknown option; did you mean '--port'?"),
        (&["--log-level", "warning"], "--log-level: 'warning' is none of error, warn, info, debug"),
        (&["-k", "gevent"], "-k: an option of another server; write --interface wsgi or asgi"),
        (&["--timeout", "120"], "--timeout: an option of another server; write --worker-timeout SECONDS"),
        (&["-t=120"], "-t: an option of another server; write --worker-timeout SECONDS"),
        (&["--uds", "/a"], "--uds: an option of another server; write --listen unix:/PATH"),
        (&["-c", "gunicorn.conf.py"], "-c: an option of another server; run 'maitred migrate FILE'"),
        (&["--config", "gunicorn.conf.py"], "--config: gunicorn.conf.py is Python"),
    ] {
        let error = Case::new(&[]).error(arguments);
        assert!(error.starts_with(said), "{arguments:?}: {error}");
    }
}

#[test]
fn an_option_of_several_workers_is_told_of_where_there_is_one() {
    let warnings = |arguments: &[&str]| Case::new(&[]).loaded(arguments).warnings;
    let said = warnings(&["--max-requests", "1000"]);
    assert!(said.len() == 1 && said[0].starts_with("--max-requests: no effect with one worker"), "{said:?}");
    assert_eq!(warnings(&["--max-requests", "1000", "-w", "2"]), [""; 0]);
    assert_eq!(warnings(&["--worker-requests", "0"]), [""; 0]);
}
