//! The names that options have in other servers (gunicorn, uvicorn, granian, hypercorn, waitress, nginx): `--bind`, `--ssl-keyfile`.
//!
//! Promises: a name that means the same there and here works on the command line and in `maitred.run`, with its value as it is. One that means
//! something else is an error with the option to write. Leaves out: whole configurations, which `maitred migrate` translates.

use super::{Definition, find as option};

/// Options, and their names elsewhere. With `=` the name takes no value and stands for this one.
const SAME: &[(&str, &str)] = &[
    ("listen", "--host --port"),
    ("listen", "--bind -b"),
    ("workers", "-w --worker-processes"),
    ("max-threads", "--threads --blocking-threads"),
    ("worker-requests", "--max-requests --limit-max-requests"),
    ("tls-cert", "--ssl-certfile --certfile --ssl-certificate"),
    ("tls-key", "--ssl-keyfile --keyfile --ssl-certificate-key"),
    ("tls-client-ca", "--ssl-ca-certs --ca-certs"),
    ("keep-alive", "--timeout-keep-alive --keepalive-timeout"),
    ("drain-timeout", "--graceful-timeout --timeout-graceful-shutdown"),
    ("trusted-proxies", "--forwarded-allow-ips"),
    ("max-body", "--client-max-body-size --max-request-body-size"),
    ("root-path", "--url-path-prefix --url-prefix"),
    ("chdir", "--working-dir"),
    ("watch", "--reload-dir --reload-paths"),
    ("pid-file", "--pid"),
    ("access-log", "--access-logfile"),
    ("access-log=off", "--no-access-log"),
    ("error-log", "--error-logfile --log-file"),
    ("websocket-max-message", "--ws-max-size"),
    ("websocket-ping", "--ws-ping-interval"),
    ("websocket-timeout", "--ws-ping-timeout"),
];

/// Options of other servers without an equal option here, each with the advice for its error.
const OTHER: &[(&str, &str)] = &[
    ("--uds --unix-socket", "write --listen unix:/PATH"),
    ("--uds-permissions --umask -m", "write ,mode=660 behind unix:/PATH of --listen"),
    ("--backlog", "write ,backlog=N behind the address of --listen"),
    ("--insecure-bind", "write --listen http://ADDR"),
    ("--fd", "let a service manager pass the socket: --listen systemd"),
    ("--proxy-protocol", "write ,proxy-protocol=on behind the address of --listen"),
    ("--reuse-port", "write --accept reuseport"),
    ("--server-name", "write a table [host.\"NAME\"] in maitred.toml"),
    (
        "--proxy-headers --proxy-allow-from --trusted-proxy",
        "write --trusted-proxies with their addresses, such as 127.0.0.1",
    ),
    (
        "--no-proxy-headers",
        "write --trusted-proxies none, or leave it out: no proxy is trusted unless it is named",
    ),
    ("--forwarder-headers --header-map", "write --forwarded-fields with the fields of your proxies"),
    ("--ssl-ca", "write --tls-client-ca FILE"),
    ("--ssl-crl", "write --tls-client-crl FILE"),
    (
        "--ssl-cert-reqs --cert-reqs --verify-mode --ssl-client-verify --no-ssl-client-verify",
        "write --tls-client-auth none, optional or required",
    ),
    ("--ssl-protocol-min --ssl-version", "write --tls-min-version 1.2 or 1.3"),
    (
        "--ssl-ciphers --ciphers",
        "write --tls-min-version 1.3, or leave it out: all cipher suites of rustls are modern",
    ),
    ("--ssl-keyfile-password --keyfile-password", "write --tls-key-password FILE, or env:NAME"),
    (
        "--timeout -t",
        "write --worker-timeout SECONDS for workers that stand still, --request-timeout SECONDS for slow requests",
    ),
    ("--timeout-worker-healthcheck", "write --worker-timeout SECONDS"),
    ("--read-timeout --http1-header-read-timeout", "write --head-timeout SECONDS and --body-timeout SECONDS"),
    ("--workers-kill-timeout", "write --drain-timeout SECONDS"),
    ("--workers-lifetime", "write --worker-lifetime SECONDS"),
    ("--workers-max-rss", "write --worker-memory BYTES"),
    ("--blocking-threads-idle-timeout", "write --thread-idle SECONDS"),
    (
        "--max-requests-jitter --limit-max-requests-jitter",
        "leave it out: --worker-requests takes up to a tenth off by itself",
    ),
    (
        "--worker-class -k",
        "write --interface wsgi or asgi, or --loop uvloop, or leave it out: WSGI has threads, ASGI an event loop",
    ),
    (
        "--worker-connections --limit-concurrency --backpressure --connection-limit",
        "write --max-threads N (WSGI) or --loop-requests N (ASGI) for requests at once, --max-connections N for connections",
    ),
    ("--limit-request-line --h11-max-incomplete-event-size --http1-buffer-size", "write --max-head BYTES"),
    ("--limit-request-field_size --limit-request-fields", "write --max-field BYTES and --max-head BYTES"),
    ("--http --http-protocols --http2-cleartext", "write --http2 on, off or only"),
    ("--http2-max-concurrent-streams", "write --http2-streams N"),
    ("--ws --no-ws", "write --no-websockets to switch them off, or leave it out"),
    ("--websocket-max-message-size", "write --websocket-max-message BYTES"),
    ("--websocket-ping-interval", "write --websocket-ping SECONDS"),
    ("--ws-per-message-deflate", "write --websocket-deflate or --no-websocket-deflate"),
    ("--static-path-route --static-path-mount", "write --static /URL=FOLDER"),
    ("--asgi-loop", "write --loop NAME"),
    ("--asgi-lifespan", "write --lifespan auto, on or off"),
    ("--env-files --env -e", "write --env-file FILE with lines NAME=value"),
    ("--pythonpath", "write --app-dir DIR"),
    ("-u -g", "write --user NAME and --group NAME"),
    ("-p", "write --pid-file FILE or --port N"),
    (
        "-c",
        "run 'maitred migrate FILE': it prints the file of another server as maitred.toml, which --config FILE reads",
    ),
    ("--check-config --print-config", "run 'maitred check' with the same options"),
    ("--daemon -D", "let a service manager run it: 'maitred install-service' writes a unit of systemd"),
    ("-v", "write --version"),
    ("--debug --spew", "write --log-level debug, or run 'maitred dev APPLICATION'"),
    ("--reload-extra-file --reload-include --reload-exclude", "write --watch FOLDER"),
    (
        "--access-logformat --access-log-fmt",
        "write --access-log-format with a name such as combined, or text with fields such as $status",
    ),
    (
        "--log-config --log-config-json --logger-class",
        "write --error-log logging, and let the application configure Python's logging",
    ),
    ("--log-syslog --log-syslog-to", "write --error-log syslog and --access-log syslog, or syslog:HOST:PORT"),
    (
        "--statsd-host --metrics --metrics-port --metrics-address",
        "write --metrics-path /URL, or --admin ADDR with /metrics",
    ),
    ("--header --no-server-header", "write a [[filter]] with set-response in maitred.toml"),
    ("--control-socket --no-control-socket", "write --control PATH or --control off"),
    (
        "--respawn-failed-workers --no-reload --date-header --server-header --initgroups",
        "leave it out: maitred always does so",
    ),
];

/// A name of another server.
#[derive(Clone, Copy)]
pub(crate) struct Familiar {
    /// With its dashes.
    pub(crate) name: &'static str,
    pub(crate) is: Is,
}

/// What it is here.
#[derive(Clone, Copy)]
pub(crate) enum Is {
    /// This option, with this value if there is one.
    Option(&'static Definition, Option<&'static str>),
    /// None; what to do instead.
    Other(&'static str),
}

impl Familiar {
    /// `` `--listen` ``, or what to do instead, in words of the reference.
    pub(crate) fn meaning(&self) -> String {
        match self.is {
            Is::Option(option, None) => format!("`{}`", option.flag()),
            Is::Option(option, Some(value)) => format!("`{} {value}`", option.flag()),
            Is::Other(instead) => format!("refused: {instead}"),
        }
    }
}

/// The names that are one line of the tables, first those that are options here.
pub(crate) fn lines() -> impl Iterator<Item = Vec<Familiar>> {
    let line = |names: &'static str, is: Is| -> Vec<Familiar> {
        names.split(' ').map(|name| Familiar { name, is }).collect()
    };
    let same = SAME.iter().filter_map(move |(is, names)| {
        let (name, value) = is.split_once('=').map_or((*is, None), |(name, value)| (name, Some(value)));
        Some(line(names, Is::Option(option(name)?, value)))
    });
    same.chain(OTHER.iter().map(move |(names, instead)| line(names, Is::Other(instead))))
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = Familiar> {
    lines().flatten()
}

/// Those that are options here.
pub(crate) fn taken() -> impl Iterator<Item = Familiar> {
    all().filter(|familiar| matches!(familiar.is, Is::Option(..)))
}

/// The one that is called so, and the value that is attached to a letter: `-w4`.
pub(crate) fn find(flag: &str) -> Option<(Familiar, Option<&str>)> {
    let named = |wanted: &str| all().find(|familiar| familiar.name == wanted);
    let letter = || {
        let (letter, value) = flag.split_at_checked(2)?;
        // `-workers` is no letter with a value.
        let is_word = value.is_empty() || value.starts_with(|first: char| first.is_ascii_alphabetic());
        Some((named(letter).filter(|_| !is_word)?, Some(value)))
    };
    named(flag).map(|familiar| (familiar, None)).or_else(letter)
}

/// The names that lead to an option of ours.
pub(crate) fn of_option(option: &str) -> Vec<&'static str> {
    let leads = |familiar: &Familiar| matches!(familiar.is, Is::Option(own, _) if own.name == option);
    taken().filter(leads).map(|familiar| familiar.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_once_and_is_none_of_ours() {
        let mut seen = std::collections::BTreeSet::new();
        for Familiar { name, .. } in all() {
            assert!(seen.insert(name), "{name} stands twice");
            assert!(name.strip_prefix("--").and_then(option).is_none(), "{name} is an option of maitred");
            assert!(name.starts_with('-') && name != "-h" && name != "-V", "{name}");
        }
    }

    #[test]
    fn every_option_that_a_line_names_exists() {
        assert_eq!(lines().count(), SAME.len() + OTHER.len());
        for (names, instead) in OTHER {
            for word in instead.split([' ', ',', ';', ':', '(', ')', '\'']) {
                let Some(name) = word.strip_prefix("--") else { continue };
                let name = name.strip_prefix("no-").unwrap_or(name);
                assert!(option(name).is_some() || find(word).is_some(), "{names}: {word}");
            }
        }
    }

    #[test]
    fn letters_have_their_value_behind_them_and_words_do_not() {
        let attached = |flag| find(flag).map(|(familiar, attached)| (familiar.name, attached));
        assert_eq!(attached("-w"), Some(("-w", None)));
        assert_eq!(attached("-w4"), Some(("-w", Some("4"))));
        assert_eq!(attached("-b127.0.0.1:80"), Some(("-b", Some("127.0.0.1:80"))));
        for flag in ["-workers", "-bind", "--workers", "--", "-", "-ä", "-h", "-V", "--bind4"] {
            assert!(find(flag).is_none(), "{flag}");
        }
    }
}
