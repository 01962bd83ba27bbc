//! What is served, and where.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "application",
        placeholder: "APPLICATION",
        kind: Kind::Application(|config| &mut config.site.application),
        default: &[],
        reach: Reach::Everywhere,
        summary: "What to serve: module:attr, path/to/app.py (finds `app` or `application`) or a \
                  folder of static files.",
        cost: "",
        worst: "",
    },
    Definition {
        name: "listen",
        placeholder: "[https://|http://]ADDR[,redirect=https][,read-ahead=off][,writer=off]",
        kind: Kind::Addresses(|config| &mut config.listen),
        default: &["127.0.0.1:8000"],
        reach: Reach::Everywhere,
        summary: "An address to accept connections on: host:port, :port (all IPv4 interfaces) or \
                  [ipv6]:port. Port 0 takes a free one. A name stands for its first IPv4 address, else \
                  its first IPv6 address. https:// before it has it speak TLS, http:// not; without either it \
                  does if there is a certificate (tls-cert, tls), Unix sockets excepted. With `,redirect=https` or \
                  `,redirect=https:8443` behind it every request is answered with 308 to the same host and path by \
                  https. With `,read-ahead=off` behind it an application gets a request \
                  after its head, and wsgi.input, or receive of ASGI, brings the body as it comes, for \
                  applications that work on uploads while they arrive; with `,read-ahead=on` when it is \
                  complete. If nothing is said, so do all but ASGI requests whose Content-Length is beyond \
                  body-memory: their bodies come as they are received. With \
                  `,writer=off` a thread of the application waits until the kernel has taken its response, for \
                  comparison; without it, the server sends on what a slow reader has not taken. Likewise \
                  `,proxy-protocol=on`, and of the socket `,backlog=N`, `,defer-accept=SECONDS`, `,fast-open=N`, \
                  `,no-delay=off`, `,cork=off` and `,keep-alive=IDLE:INTERVAL:COUNT` (docs/operations/proxies.md). \
                  unix:/PATH or unix:@NAME is a Unix socket, with `,mode=660`, `,owner=UID` and `,group=GID` of its file. \
                  systemd takes all sockets that a service manager has passed, systemd:NAME those that are called so; without this \
                  option they are taken if there are any (docs/operations/deploy.md).",
        cost: "a descriptor each",
        worst: ":port and [::]:port accept everyone who can reach the machine; read-ahead=off: each slow \
                upload keeps a thread of a WSGI application; writer=off: each slow reader does",
    },
    Definition {
        name: "static",
        placeholder: "/URL=FOLDER",
        kind: Kind::Mounts(|config| &mut config.site.mounts),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Serve the files of FOLDER below /URL, without the application. The longest matching \
                  URL wins.",
        cost: "none for requests elsewhere",
        worst: "everything in the folder that is not a dot-file is public",
    },
    Definition {
        name: "mount",
        placeholder: "/URL=APPLICATION",
        kind: Kind::Mounted(|config| &mut config.site.mounted),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Another application, for everything below /URL: SCRIPT_NAME of WSGI and root_path of ASGI are /URL. The \
                  longest URL wins, among static folders too. WSGI and ASGI may stand beside each other: ASGI applications \
                  share one event loop, and WSGI applications run on the threads of the pool `threads` then. Behind \
                  it may stand `,interface=wsgi|asgi`, `,factory=on`, `,app-dir=DIR` and `,pool=NAME`, the pool of its requests.",
        cost: "the memory of the application",
        worst: "all applications are in one process: one that crashes it or keeps the interpreter stops the others",
    },
    Definition {
        name: "error-page",
        placeholder: "STATUS=FILE",
        kind: Kind::ErrorPages(|config| &mut config.site.error_pages),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Send this file in the place of the server's own text when it answers with this status, or with 4xx or 5xx \
                  one that has no file. What an application answers itself is sent as it is.",
        cost: "the files in memory, read at the start",
        worst: "a large page is sent to everyone who asks for nothing that is there",
    },
    Definition {
        name: "sendfile",
        placeholder: "/URL=FOLDER",
        kind: Kind::Mounts(|config| &mut config.sendfile),
        default: &[],
        reach: Reach::Everywhere,
        summary: "Let the application have the files of FOLDER sent in the place of its response's body: by the field \
                  X-Sendfile with the path of a file, or X-Accel-Redirect with a path below /URL. The fields do not reach \
                  the client; ranges and conditions count. Without this option both are passed on, for a proxy.",
        cost: "the open files of a static folder",
        worst: "an application that lets clients choose the value gives them every file of the folder that is not a dot-file",
    },
    Definition {
        name: "listing",
        placeholder: "",
        kind: Kind::Switch(|config| &mut config.site.listing),
        default: &["false"],
        reach: Reach::Everywhere,
        summary: "List the files of static folders that have no index.html.",
        cost: "reading the folder for each such request",
        worst: "shows names that nobody was meant to guess",
    },
];
