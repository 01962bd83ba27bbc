//! Loading the application, and its environment.

use super::definition::{Definition, Kind, Reload, server, site};
use super::threads::MAX_QUEUE;
use crate::forms::{
    Count, DIR, EVENT_LOOP, FILE, INTERFACE, LIFESPAN, Maybe, SECONDS_OR_OFF, SWITCH, URL_PATH,
};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "interface",
        kind: Kind::Content(&site(INTERFACE, |site| &mut site.interface)),
        default: &["auto"],
        summary: "The calling convention of the application; auto looks at it.",
        cost: "none",
        worst: "the wrong one makes every request fail",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "loop",
        placeholder: "auto|asyncio|uvloop|module:factory",
        kind: Kind::Server(&server(EVENT_LOOP, |config| &mut config.event_loop)),
        default: &["auto"],
        summary: "The event loop of an ASGI application; auto takes uvloop if it is installed, else asyncio. A \
                  factory is called without arguments.",
        cost: "none",
        worst: "asyncio's own loop takes more CPU than uvloop, mostly for what the application does itself",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "loop-requests",
        kind: Kind::Server(&server(Count(0, MAX_QUEUE), |config| &mut config.loop_requests)),
        default: &["0"],
        summary: "The most requests that the event loop of ASGI applications runs at the same time. Further ones wait in \
                  the queue (queue, overflow, request-timeout). Each counts until its response has ended; WebSockets do \
                  not count. 0: any number.",
        cost: "none",
        worst: "low: requests that wait for others, such as long polls and event streams, keep all places. 0: a burst \
                begins more than its database connections and memory suffice for",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "lifespan",
        kind: Kind::Server(&server(LIFESPAN, |config| &mut config.lifespan)),
        default: &["auto"],
        summary: "Whether ASGI applications hear of the start and the end of the server (lifespan). auto: an \
                  application that raises instead is served without lifespan. on: it is not served. off: no \
                  application has one.",
        cost: "none",
        worst: "off: what the application opens at its start is missing",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "pathsend",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.pathsend)),
        default: &["false"],
        summary: "Offer `http.response.pathsend` to ASGI applications: the engine sends a file by its path, such as each \
                  FileResponse and StaticFiles of Starlette. Off by default, since a middleware in between may drop the \
                  message; then the error log names this option.",
        cost: "none; without it such files pass through the event loop, in parts",
        worst: "a middleware that does not know this message drops it, and the response is 500; brotli-asgi and \
                Gradio are such",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "factory",
        kind: Kind::Content(&site(SWITCH, |site| &mut site.factory)),
        default: &["false"],
        summary: "Call the attribute once, without arguments: it returns the application. Without a name maitred \
                  looks for `create_app` or `make_app`.",
        cost: "none",
        worst: "an application that can be called without arguments is taken for a factory",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "app-dir",
        placeholder: "DIR",
        kind: Kind::Content(&site(Maybe(DIR), |site| &mut site.app_dir)),
        summary: "Look for the application's module in this folder, not in the current one. It comes first on \
                  Python's sys.path.",
        cost: "none",
        worst: "files of that folder hide modules with the same name",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "chdir",
        placeholder: "DIR",
        kind: Kind::Server(&server(Maybe(DIR), |config| &mut config.chdir)),
        summary: "Change to this folder once the configuration is read. All other relative paths start there, those \
                  of the application too.",
        cost: "none",
        worst: "paths that were meant from where the command was started lead elsewhere",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "env-file",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.env_file)),
        summary: "Set environment variables before the application is imported. Lines are NAME=value, with quotes, \
                  comments and `export` as in a shell, without expansion. A variable that is set already keeps its \
                  value. Options of maitred are not read from this file.",
        cost: "none",
        worst: "it usually holds secrets: never leave it in a folder that is served",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "hooks",
        placeholder: "MODULE|FILE.py",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.hooks)),
        summary: "A Python module with any of the functions before_start(), worker_ready(worker, pid) and \
                  worker_exit(worker, pid, code). With workers they run in the supervisor, which loads no \
                  application; else in the only process.",
        cost: "a thread",
        worst: "what the module imports stays in the supervisor",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "root-path",
        placeholder: "/URL",
        kind: Kind::Content(&site(URL_PATH, |site| &mut site.root_path)),
        default: &["/"],
        summary: "The URL below which the application stands. WSGI gets it as SCRIPT_NAME, and PATH_INFO without it; ASGI \
                  gets it as root_path, and the whole path. Where a proxy has taken it off a path, it is put back. Static \
                  folders keep their full URL.",
        cost: "a fraction of a microsecond for each request",
        worst: "behind a proxy that takes it off, a page of the application whose own path begins with it again is \
                not found: let the proxy leave it",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "health-path",
        placeholder: "/URL",
        kind: Kind::Server(&server(Maybe(URL_PATH), |config| &mut config.health_path)),
        summary: "The engine answers GET and HEAD of this path with 200 and `ok`; after SIGTERM with 503 and `stopping` \
                  (drain-delay) or `draining`. No application thread is needed: the answer says nothing about the \
                  application.",
        cost: "a comparison for each request",
        worst: "it hides a page of the application with that path, and everybody may ask",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "metrics-path",
        placeholder: "/URL",
        kind: Kind::Server(&server(Maybe(URL_PATH), |config| &mut config.metrics_path)),
        summary: "The engine answers GET and HEAD of this path with its figures as Prometheus text, or as \
                  OpenMetrics if asked for: connections, requests and their times by route, pools, locks, the \
                  process. The list is in statistics.md.",
        cost: "a comparison for each request",
        worst: "it hides a page of the application with that path. Everybody may ask: how busy a server is helps \
                whoever attacks it",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "stuck-after",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.stuck_after)),
        default: &["10"],
        summary: "A request that stays in a WSGI application this long gets one entry in the error log, with thread, age \
                  and Python stack; it goes on. An ASGI event loop that stands still while something waits is logged \
                  after 0.1 s, whatever the value. 0 switches both off.",
        cost: "some nanoseconds for each request and a thread that sleeps",
        worst: "short: the log fills; long streamed responses are logged once, too",
        ..Definition::of(Reload::Restart)
    },
];
