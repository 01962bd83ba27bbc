//! Options of other servers that mean something else here, or nothing: each with what to do instead.

use super::Becomes::Nothing;
use super::Of::{Granian, Gunicorn, Hypercorn, Uvicorn};
use super::{Familiar, Of};

const fn row(names: &'static [&'static str], of: &'static [Of], note: &'static str) -> Familiar {
    Familiar { names, of, becomes: Nothing, note }
}

pub(super) const POINTERS: &[Familiar] = &[
    // What several servers have by the same name, with different meanings.
    row(
        &["-p"],
        &[Gunicorn, Hypercorn],
        "it is the PID file of gunicorn and hypercorn, and elsewhere the port; write --pid-file FILE or --port N",
    ),
    row(
        &["-c"],
        &[Gunicorn, Hypercorn],
        "files of other servers are not read; 'maitred migrate FILE' prints what they say as maitred.toml, and --config FILE reads that",
    ),
    row(
        &["-t", "--timeout"],
        &[Gunicorn],
        "it is the time after which gunicorn kills a worker that gives no sign of life, and so a slow request of a sync worker; \
         write --worker-timeout SECONDS for workers that stand still, --request-timeout SECONDS for slow requests, or leave it out",
    ),
    row(
        &["-u", "-g"],
        &[Gunicorn, Hypercorn],
        "with gunicorn it is whom the workers become, with hypercorn who owns a Unix socket; write --user and --group, or \
         ,owner=UID and ,group=GID behind the address of --listen",
    ),
    row(
        &["-m", "--umask"],
        &[Gunicorn, Hypercorn],
        "the mode of a Unix socket stands behind its address, ,mode=660; the umask of the process is that of who starts it",
    ),
    row(&["--ws"], &[Uvicorn, Granian], "WebSockets are maitred's own, and on unless --no-ws; leave it out"),
    row(
        &["--reuse-port"],
        &[Gunicorn],
        "--accept reuseport gives each worker a queue of its own; leave it out for one queue that all share",
    ),
    // Development.
    row(
        &[
            "--reload-include",
            "--reload-exclude",
            "--reload-delay",
            "--reload-engine",
            "--reload-ignore-dirs",
            "--reload-ignore-patterns",
            "--reload-ignore-paths",
            "--reload-tick",
            "--reload-ignore-worker-failure",
        ],
        &[Uvicorn, Gunicorn, Granian],
        "--reload watches code, templates and settings (docs/development.md); leave it out, or name folders with --watch",
    ),
    row(
        &["--debug", "--spew"],
        &[Hypercorn, Gunicorn],
        "write --log-level debug, or run 'maitred dev APPLICATION'",
    ),
    row(&["--check-config", "--print-config"], &[Gunicorn], "run 'maitred check' with the same options"),
    // Where to listen.
    row(&["--fd"], &[Uvicorn], "a service manager passes sockets: --listen systemd, or systemd:NAME"),
    row(&["--quic-bind"], &[Hypercorn], "there is no HTTP/3; leave it out"),
    row(&["--proxy-protocol"], &[Gunicorn], "write ,proxy-protocol=on behind the address of --listen"),
    row(&["--proxy-allow-from"], &[Gunicorn], "the proxies are --trusted-proxies NETWORK"),
    row(
        &["--server-name"],
        &[Hypercorn],
        "write a table [host.\"NAME\"] in maitred.toml (docs/operations/hosts.md)",
    ),
    row(&["--protocol", "--uwsgi-allow-from"], &[Gunicorn], "maitred speaks HTTP alone; leave it out"),
    // Workers and limits.
    row(
        &["--worker-connections"],
        &[Gunicorn],
        "a WSGI application has a thread for each request: write --max-threads N; all connections together are --max-connections N",
    ),
    row(
        &["--limit-concurrency"],
        &[Uvicorn],
        "further requests wait: --loop-requests N, with --queue 1 --overflow refuse for 503 (ASGI), --max-threads N (WSGI); \
         connections are limited by --max-connections N, and further ones wait",
    ),
    row(
        &["--backpressure"],
        &[Granian],
        "a WSGI application has --max-threads requests at once; connections are limited by --max-connections N",
    ),
    row(
        &["--max-requests-jitter", "--limit-max-requests-jitter"],
        &[Gunicorn, Hypercorn, Uvicorn],
        "--worker-requests takes up to a tenth off by itself; leave it out",
    ),
    row(&["--timeout-worker-healthcheck"], &[Uvicorn], "write --worker-timeout SECONDS"),
    row(
        &["--workers-max-rss", "--rss-samples", "--rss-sample-interval"],
        &[Granian],
        "write --worker-memory BYTES, which counts what is the worker's own alone, without what it shares with others",
    ),
    row(
        &["--runtime-threads", "--runtime-blocking-threads", "--runtime-mode", "--task-impl"],
        &[Granian],
        "threads of the engine follow the processors (--poll-groups); leave it out",
    ),
    row(
        &["--respawn-interval", "--no-respawn-failed-workers"],
        &[Granian],
        "workers that end are always started again, at once and then with a growing pause; leave it out",
    ),
    row(&["--worker-tmp-dir"], &[Gunicorn], "workers tell of themselves without files; leave it out"),
    row(
        &[
            "--limit-request-line",
            "--limit-request-fields",
            "--limit-request-field_size",
            "--h11-max-incomplete-event-size",
            "--http1-buffer-size",
        ],
        &[Gunicorn, Uvicorn, Granian],
        "the limits of a head are fixed; leave it out",
    ),
    row(
        &["--read-timeout"],
        &[Hypercorn],
        "write --head-timeout, --body-timeout or --keep-alive, each in seconds",
    ),
    row(
        &[
            "--http1-keep-alive",
            "--no-http1-keep-alive",
            "--http1-pipeline-flush",
            "--no-http1-pipeline-flush",
            "--ws-max-queue",
        ],
        &[Granian, Uvicorn],
        "there is no such switch; leave it out",
    ),
    row(
        &[
            "--http2-adaptive-window",
            "--no-http2-adaptive-window",
            "--http2-initial-connection-window-size",
            "--http2-initial-stream-window-size",
            "--http2-initial-window-size",
            "--http2-keep-alive-interval",
            "--http2-keep-alive-timeout",
            "--http2-max-frame-size",
            "--http2-max-headers-size",
            "--http2-max-header-list-size",
            "--http2-max-send-buffer-size",
        ],
        &[Granian, Gunicorn],
        "of HTTP/2 only --http2-streams can be set; leave it out",
    ),
    row(&["--http-protocols", "--http2-cleartext"], &[Gunicorn], "write --http2 on, off or only"),
    // TLS.
    row(
        &["--ssl-keyfile-password", "--keyfile-password"],
        &[Uvicorn, Granian, Hypercorn],
        "name a file that has the password, for its owner's eyes only, or a variable: --tls-key-password FILE, or env:NAME",
    ),
    row(&["--ssl-version"], &[Uvicorn, Gunicorn], "write --tls-min-version 1.2 or 1.3"),
    row(
        &["--ssl-ciphers", "--ciphers"],
        &[Uvicorn, Gunicorn, Hypercorn],
        "the cipher suites are those of rustls, all of them modern; leave it out",
    ),
    row(
        &["--suppress-ragged-eofs", "--do-handshake-on-connect"],
        &[Gunicorn],
        "it is of Python's ssl module, which is not used; leave it out",
    ),
    // Logs.
    row(
        &["--access-logformat", "--access-log-fmt"],
        &[Gunicorn, Hypercorn, Granian],
        "write --access-log-format combined, common, json, or text with fields such as $status (docs/operations/logs.md)",
    ),
    row(
        &["--log-config", "--log-config-json", "--logger-class"],
        &[Uvicorn, Gunicorn, Granian, Hypercorn],
        "write --error-log logging, and let the application configure Python's logging",
    ),
    row(&["--log"], &[Granian], "there is always an error log; leave it out"),
    row(&["--no-log"], &[Granian], "write --log-level error for an error log that says least"),
    row(&["--use-colors", "--no-use-colors"], &[Uvicorn], "there is no such switch; leave it out"),
    row(
        &[
            "--log-syslog",
            "--log-syslog-to",
            "--log-syslog-prefix",
            "--log-syslog-facility",
            "--disable-redirect-access-to-syslog",
        ],
        &[Gunicorn],
        "write --error-log syslog and --access-log syslog, or syslog:HOST:PORT",
    ),
    row(
        &["--capture-output", "-R", "--enable-stdio-inheritance"],
        &[Gunicorn],
        "what an application prints goes to the standard streams of the server; leave it out",
    ),
    row(
        &["--statsd-host", "--statsd-prefix", "--dogstatsd-tags", "--enable-backlog-metric"],
        &[Gunicorn, Hypercorn],
        "figures are Prometheus text: --metrics-path /URL, or /metrics of --admin ADDR",
    ),
    row(
        &["--metrics", "--no-metrics", "--metrics-address", "--metrics-port", "--metrics-scrape-interval"],
        &[Granian],
        "write --admin ADDR, which has them at /metrics, or --metrics-path /URL",
    ),
    // Responses.
    row(
        &["--no-server-header"],
        &[Uvicorn],
        "responses without a field Server get one; an application that sets it, or a [[filter]] with set-response, says what is in it",
    ),
    row(
        &["--no-date-header"],
        &[Uvicorn],
        "responses always have a field Date (RFC 9110 section 6.6.1); leave it out",
    ),
    row(
        &["--header"],
        &[Uvicorn],
        "write a [[filter]] with set-response in maitred.toml (docs/operations/filters.md)",
    ),
    row(
        &["--static-path-dir-to-file", "--static-path-expires"],
        &[Granian],
        "a folder's index is index.html; a [[filter]] with set-response sets Cache-Control",
    ),
    row(&["--no-sendfile"], &[Gunicorn], "how a file is sent follows its size; leave it out"),
    // The process and the application.
    row(
        &["-D", "--daemon"],
        &[Gunicorn, Hypercorn],
        "let a service manager run it, which starts it again when it ends (docs/operations/deploy.md)",
    ),
    row(
        &["-n", "--name", "--process-name"],
        &[Gunicorn, Granian],
        "processes keep the name of the command; 'maitred ctl status' tells servers apart",
    ),
    row(
        &["-e", "--env"],
        &[Gunicorn],
        "write --env-file FILE with lines NAME=value, or set the variable before the command",
    ),
    row(
        &["--pythonpath"],
        &[Gunicorn],
        "write --app-dir DIR for the folder of the application, or set PYTHONPATH",
    ),
    row(
        &["--paste", "--paster", "--paste-global"],
        &[Gunicorn],
        "name a function that returns the application, with --factory",
    ),
    row(&["--reset-contextvars"], &[Uvicorn], "there is no such switch; leave it out"),
    row(
        &["--asgi-disconnect-grace-period"],
        &[Gunicorn],
        "an application whose client is gone is told, and not ended; leave it out",
    ),
    row(
        &["--forwarder-headers", "--header-map"],
        &[Gunicorn],
        "write --forwarded-fields for the fields of your proxies",
    ),
    row(
        &[
            "--permit-obsolete-folding",
            "--strip-header-spaces",
            "--permit-unconventional-http-method",
            "--permit-unconventional-http-version",
            "--casefold-http-method",
            "--http-parser",
        ],
        &[Gunicorn],
        "the parser is maitred's own, and strict; leave it out",
    ),
    row(
        &["--control-socket", "--control-socket-mode"],
        &[Gunicorn],
        "write --control PATH; 'maitred ctl' asks and changes a running server",
    ),
    row(&["--no-control-socket"], &[Gunicorn], "write --control off"),
    row(
        &["--dirty-app", "--dirty-workers", "--dirty-timeout", "--dirty-threads", "--dirty-graceful-timeout"],
        &[Gunicorn],
        "there are no such workers; a pool of threads for slow requests is --pool",
    ),
];
