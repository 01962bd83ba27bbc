//! Loading the application, and what it is told.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "interface",
        placeholder: "auto|wsgi|asgi",
        kind: Kind::Interface(|config| &mut config.site.interface),
        default: &["auto"],
        reach: Reach::Everywhere,
        summary: "The calling convention of the application; auto looks at it.",
        cost: "none",
        worst: "the wrong one makes every request fail",
    },
    Definition {
        name: "loop",
        placeholder: "auto|asyncio|uvloop|module:factory",
        kind: Kind::EventLoop(|config| &mut config.event_loop),
        default: &["auto"],
        reach: Reach::Everywhere,
        summary: "The event loop of an ASGI application; auto takes uvloop if it is installed, else asyncio. A \
                  factory is called without arguments.",
        cost: "none",
        worst: "asyncio's own loop takes more CPU than uvloop, mostly for what the application does itself",
    },
    Definition {
        name: "lifespan",
        placeholder: "auto|on|off",
        kind: Kind::Lifespan(|config| &mut config.lifespan),
        default: &["auto"],
        reach: Reach::Everywhere,
        summary: "Whether ASGI applications are told of the start and the end of the server (lifespan). auto: those that take \
                  part; one that raises instead has none, and is served. on: one that raises is not served. off: none.",
        cost: "none",
        worst: "off: what an application opens at its start is not there",
    },
    Definition {
        name: "factory",
        placeholder: "",
        kind: Kind::Switch(|config| &mut config.site.factory),
        default: &["false"],
        reach: Reach::Everywhere,
        summary: "The attribute is called without arguments, once, and returns the application. Without a name \
                  `create_app` or `make_app` is looked for.",
        cost: "none",
        worst: "an application that can be called without arguments is taken for a factory",
    },
    Definition {
        name: "app-dir",
        placeholder: "DIR",
        kind: Kind::Path(|config| &mut config.site.app_dir),
        default: &[],
        reach: Reach::Everywhere,
        summary: "The folder in which the application's module is looked for, instead of the current one; it is \
                  put first on Python's sys.path.",
        cost: "none",
        worst: "files of that folder hide modules with the same name",
    },
    Definition {
        name: "chdir",
        placeholder: "DIR",
        kind: Kind::Path(|config| &mut config.chdir),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Change to this folder after the configuration is read and before anything else: all other \
                  relative paths, those of the application too, are relative to it.",
        cost: "none",
        worst: "paths that were meant from where the command was started lead elsewhere",
    },
    Definition {
        name: "env-file",
        placeholder: "FILE",
        kind: Kind::Path(|config| &mut config.env_file),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Environment variables for the application, set before it is imported: lines NAME=value, with \
                  quotes, comments and `export` as a shell has them, and without expansion. What the \
                  environment has already stays. Options of maitred itself are not read from it.",
        cost: "none",
        worst: "it usually holds secrets: never leave it in a folder that is served",
    },
    Definition {
        name: "hooks",
        placeholder: "MODULE|FILE.py",
        kind: Kind::Path(|config| &mut config.hooks),
        default: &[],
        reach: Reach::Everywhere,
        summary: "A Python module with any of the functions before_start(), worker_ready(worker, pid) and \
                  worker_exit(worker, pid, code). They run in the supervisor, which loads no application, or in the \
                  only process.",
        cost: "a thread",
        worst: "what it imports is in the supervisor for as long as that runs",
    },
    Definition {
        name: "root-path",
        placeholder: "/URL",
        kind: Kind::UrlPath(|config| &mut config.site.root_path),
        default: &["/"],
        reach: Reach::Everywhere,
        summary: "The URL below which the application stands: SCRIPT_NAME for WSGI, and PATH_INFO is the path \
                  without it; root_path for ASGI, whose path stays whole. A request that is not below it \
                  reaches the application as if the option were not set. Static folders are named by their \
                  full URL.",
        cost: "a fraction of a microsecond for each request",
        worst: "behind a proxy that takes the prefix off it has no effect: let the proxy leave it",
    },
    Definition {
        name: "health-path",
        placeholder: "/URL",
        kind: Kind::UrlPathOrNone(|config| &mut config.health_path),
        default: &[],
        reach: Reach::Everywhere,
        summary: "The engine itself answers GET and HEAD of this URL path with 200 and `ok`, and with 503 and \
                  `stopping` during drain-delay or `draining` after it. It needs no application thread: it says that the process \
                  serves, and nothing of the application.",
        cost: "a comparison for each request",
        worst: "it hides an application's page of that name, and everyone may ask",
    },
    Definition {
        name: "metrics-path",
        placeholder: "/URL",
        kind: Kind::UrlPathOrNone(|config| &mut config.metrics_path),
        default: &[],
        reach: Reach::Everywhere,
        summary: "The engine itself answers GET and HEAD of this URL path with its figures as Prometheus text, or as \
                  OpenMetrics for readers that ask for it: connections, requests and their times by route, pools, \
                  locks, and what the process takes. All of them are in statistics.md.",
        cost: "a comparison for each request",
        worst: "it hides an application's page of that name, and everyone may ask: how busy a server is helps \
                whoever attacks it",
    },
    Definition {
        name: "stuck-after",
        placeholder: "SECONDS",
        kind: Kind::SecondsOrOff(|config| &mut config.stuck_after),
        default: &["10"],
        reach: Reach::Everywhere,
        summary: "A request that has been in the application this long gets one entry in the error log, with \
                  its thread, its age and the Python stack of the thread; 0 switches it off. The request goes \
                  on. For ASGI the time is not used: unless it is 0, an event loop that stands still while \
                  something waits is told after a tenth of a second, with its stack.",
        cost: "some nanoseconds for each request and a thread that sleeps",
        worst: "too short fills the log; a response that is streamed for longer is reported too, once",
    },
];
