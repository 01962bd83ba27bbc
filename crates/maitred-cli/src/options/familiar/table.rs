//! Options of other servers that are options here.

use super::Becomes::{Always, Chosen, Fixed, Option, Part, Translated};
use super::Of::{Granian, Gunicorn, Hypercorn, Uvicorn};
use super::{Becomes, Familiar, Of, Part as P, values};

const fn row(
    names: &'static [&'static str],
    of: &'static [Of],
    becomes: Becomes,
    note: &'static str,
) -> Familiar {
    Familiar { names, of, becomes, note }
}

/// In the order of the reference.
pub(super) const OPTIONS: &[Familiar] = &[
    // Where to listen.
    row(&["--host"], &[Uvicorn, Granian], Part(P::Host), "with --port one address; 127.0.0.1 without it"),
    row(&["--port"], &[Uvicorn, Granian], Part(P::Port), "with --host one address; 8000 without it"),
    row(
        &["--bind", "-b"],
        &[Gunicorn, Hypercorn],
        Translated("listen", values::bind),
        "the port is 8000 if there is none",
    ),
    row(
        &["--insecure-bind"],
        &[Hypercorn],
        Translated("listen", values::insecure_bind),
        "http:// before the address",
    ),
    row(&["--uds"], &[Uvicorn, Granian], Part(P::Socket), "unix:/PATH"),
    row(&["--uds-permissions"], &[Granian], Part(P::Mode), ",mode=660 behind the socket of --uds"),
    row(
        &["--backlog"],
        &[Uvicorn, Gunicorn, Granian, Hypercorn],
        Part(P::Backlog),
        ",backlog=N behind each address of the command line",
    ),
    // Development.
    row(
        &["--reload-dir", "--reload-paths", "--reload-extra-file"],
        &[Uvicorn, Granian, Gunicorn],
        Option("watch"),
        "the folders watched without it are not watched then",
    ),
    // TLS.
    row(
        &["--ssl-certfile", "--certfile", "--ssl-certificate"],
        &[Uvicorn, Gunicorn, Hypercorn, Granian],
        Option("tls-cert"),
        "",
    ),
    row(&["--ssl-keyfile", "--keyfile"], &[Uvicorn, Granian, Gunicorn, Hypercorn], Option("tls-key"), ""),
    row(
        &["--ssl-ca-certs", "--ca-certs", "--ssl-ca"],
        &[Uvicorn, Gunicorn, Hypercorn, Granian],
        Option("tls-client-ca"),
        "",
    ),
    row(
        &["--ssl-cert-reqs", "--cert-reqs", "--verify-mode"],
        &[Uvicorn, Gunicorn, Hypercorn],
        Translated("tls-client-auth", values::cert_reqs),
        "0, 1 and 2 are none, optional and required",
    ),
    row(&["--ssl-client-verify"], &[Granian], Fixed("tls-client-auth", "required"), ""),
    row(&["--no-ssl-client-verify"], &[Granian], Fixed("tls-client-auth", "none"), ""),
    row(&["--ssl-crl"], &[Granian], Option("tls-client-crl"), ""),
    row(
        &["--ssl-protocol-min"],
        &[Granian],
        Translated("tls-min-version", values::tls_version),
        "1.2 is the least without it, 1.3 with granian",
    ),
    // Workers and threads.
    row(&["-w"], &[Gunicorn, Hypercorn], Option("workers"), ""),
    row(
        &["--threads"],
        &[Gunicorn],
        Option("max-threads"),
        "10 without it, 1 with gunicorn: --threads 1 is what its sync worker has",
    ),
    row(&["--blocking-threads"], &[Granian], Option("max-threads"), "for WSGI"),
    row(&["--blocking-threads-idle-timeout"], &[Granian], Translated("thread-idle", values::duration), ""),
    row(
        &["--max-requests", "--limit-max-requests"],
        &[Gunicorn, Hypercorn, Uvicorn],
        Option("worker-requests"),
        "up to a tenth fewer, so that not all workers end together; with one worker it has no effect",
    ),
    row(
        &["--workers-lifetime"],
        &[Granian],
        Translated("worker-lifetime", values::duration),
        "up to a tenth earlier",
    ),
    row(
        &["--respawn-failed-workers"],
        &[Granian],
        Always,
        "a worker that ends is started again, with a growing pause",
    ),
    row(
        &["--worker-class", "-k"],
        &[Gunicorn, Hypercorn],
        Chosen("interface", values::worker_class),
        "gthread is --interface wsgi, a worker of uvicorn or asgi is --interface asgi; asyncio and uvloop of hypercorn are \
         values of --loop",
    ),
    // Times.
    row(&["--timeout-keep-alive"], &[Uvicorn], Option("keep-alive"), "75 s without it, 5 s with uvicorn"),
    row(
        &["--graceful-timeout", "--timeout-graceful-shutdown"],
        &[Gunicorn, Hypercorn, Uvicorn],
        Option("drain-timeout"),
        "30 s without it; uvicorn waits for ever then",
    ),
    row(
        &["--workers-kill-timeout"],
        &[Granian],
        Translated("drain-timeout", values::duration),
        "30 s without it; granian waits for ever then",
    ),
    row(
        &["--http1-header-read-timeout"],
        &[Granian],
        Translated("head-timeout", values::milliseconds),
        "from milliseconds",
    ),
    // Proxies.
    row(
        &["--forwarded-allow-ips"],
        &[Uvicorn, Gunicorn],
        Part(P::Proxies),
        "* is everybody (0.0.0.0/0, ::/0 and unix): each client is believed whatever it says of itself",
    ),
    row(
        &["--proxy-headers"],
        &[Uvicorn],
        Part(P::ProxyHeaders(true)),
        "127.0.0.1 and ::1 unless --forwarded-allow-ips says whom; without both nobody is trusted",
    ),
    row(&["--no-proxy-headers"], &[Uvicorn], Part(P::ProxyHeaders(false)), "none"),
    // The application.
    row(&["--url-path-prefix"], &[Granian], Option("root-path"), ""),
    row(&["--working-dir"], &[Granian], Option("chdir"), ""),
    row(&["--env-files"], &[Granian], Option("env-file"), "one file; what the environment has already stays"),
    row(&["--asgi-loop"], &[Gunicorn], Option("loop"), ""),
    row(&["--asgi-lifespan"], &[Gunicorn], Option("lifespan"), ""),
    row(
        &["--static-path-route"],
        &[Granian],
        Part(P::StaticRoute),
        "with --static-path-mount; /static without it",
    ),
    row(&["--static-path-mount"], &[Granian], Part(P::StaticFolder), "with --static-path-route"),
    // Protocols.
    row(
        &["--http"],
        &[Granian, Uvicorn],
        Chosen("http2", values::http),
        "auto is on, 1 is off, 2 is only; parsers of uvicorn (h11, httptools) are refused: the parser is maitred's own",
    ),
    row(&["--http2-max-concurrent-streams"], &[Gunicorn, Granian], Option("http2-streams"), ""),
    row(
        &["--ws-max-size", "--websocket-max-message-size"],
        &[Uvicorn, Gunicorn],
        Option("websocket-max-message"),
        "",
    ),
    row(
        &["--ws-ping-interval", "--websocket-ping-interval"],
        &[Uvicorn, Hypercorn],
        Option("websocket-ping"),
        "",
    ),
    row(&["--ws-ping-timeout"], &[Uvicorn], Option("websocket-timeout"), ""),
    row(&["--ws-per-message-deflate"], &[Uvicorn], Translated("websocket-deflate", values::boolean), ""),
    row(&["--no-ws"], &[Granian], Fixed("websockets", "off"), ""),
    // Logs and the process.
    row(
        &["--access-logfile"],
        &[Gunicorn, Hypercorn],
        Translated("access-log", values::access_file),
        "- is standard output",
    ),
    row(&["--no-access-log"], &[Uvicorn, Granian], Fixed("access-log", "off"), ""),
    row(
        &["--error-logfile", "--log-file"],
        &[Gunicorn, Hypercorn],
        Translated("error-log", values::error_file),
        "- is standard error",
    ),
    row(&["--pid"], &[Gunicorn, Hypercorn], Option("pid-file"), ""),
    row(&["-v"], &[Gunicorn], Option("version"), ""),
    row(&["--no-reload"], &[Granian], Always, "only 'maitred dev' watches files"),
    row(&["--date-header", "--server-header"], &[Uvicorn], Always, "responses have these fields"),
    row(&["--initgroups"], &[Gunicorn], Always, "--user takes the groups of the user along"),
];
