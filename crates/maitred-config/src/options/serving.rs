//! Applications, files and listeners.

use super::definition::{Definition, Kind, Reach, Reload, server, site};
use crate::forms::{ADDRESSES, APPLICATION, ERROR_PAGES, MOUNTED, MOUNTS, SWITCH};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "application",
        placeholder: "APPLICATION",
        kind: Kind::Content(&site(APPLICATION, |site| &mut site.application)),
        reach: Reach::Argument,
        summary: "What to serve: module:attr, path/to/app.py (finds `app` or `application`) or a \
                  folder of static files.",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "listen",
        placeholder: "[https://|http://]ADDR[,redirect=https][,read-ahead=off][,writer=off]",
        kind: Kind::Server(&server(ADDRESSES, |config| &mut config.listen)),
        default: &["127.0.0.1:8000"],
        summary: "An address to accept connections on: host:port, :port (all IPv4 interfaces), [ipv6]:port ([::]: all \
                  interfaces of both families, unless an IPv4 address has that port too), port 0 for a free one; a name \
                  stands for its first IPv4 address, else its first IPv6 address. unix:/PATH or unix:@NAME is a Unix \
                  socket. systemd and systemd:NAME take sockets of a service manager, which are also taken if this option \
                  is not set (deploy.md). https:// speaks TLS, http:// does not; without either an address speaks TLS if \
                  there is a certificate, a Unix socket does not. Parameters: `redirect=https` or `redirect=https:8443` \
                  answers every request with 308 to https. `read-ahead=off` runs the application after the head of a \
                  request, and it reads the body as it comes; `on` runs it when the body is complete; without either, \
                  ASGI requests whose body is longer than body-memory, of unknown length, or announced with Expect: \
                  100-continue run as with off, others as with on. `writer=off` has application threads wait for slow \
                  readers, for comparison. `proxy-protocol=on`, `backlog=N`, `defer-accept=SECONDS`, `fast-open=N`, \
                  `no-delay=off`, `cork=off`, `keep-alive=IDLE:INTERVAL:COUNT`, and `mode=660`, `owner=UID`, `group=GID` \
                  of a Unix socket: proxies.md.",
        cost: "a descriptor each",
        worst: ":port and [::]:port accept everybody who can reach the machine. read-ahead=off: each slow upload \
                keeps a WSGI thread. writer=off: each slow reader does",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "static",
        placeholder: "/URL=FOLDER",
        kind: Kind::Content(&site(MOUNTS, |site| &mut site.mounts)),
        summary: "Serve the files of FOLDER below /URL, without the application. The longest matching URL wins. With \
                  `,fallback=index.html` a path without a file gets this one and 200, for programs that have paths of \
                  their own in the browser; a path with a dot in its last part, such as /app.js, only if a page is asked \
                  for (Accept: text/html).",
        cost: "none for requests elsewhere",
        worst: "everything in the folder that is not a dot-file is public",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "mount",
        placeholder: "/URL=APPLICATION",
        kind: Kind::Content(&site(MOUNTED, |site| &mut site.mounted)),
        summary: "Another application below /URL, which it gets as SCRIPT_NAME (WSGI) or root_path (ASGI). The longest \
                  URL wins, among static folders too. WSGI may stand beside ASGI: ASGI applications share one event loop, \
                  WSGI applications the threads of the pool `threads`. Parameters: `,interface=wsgi|asgi`, `,factory=on`, \
                  `,app-dir=DIR`, `,pool=NAME`.",
        cost: "the memory of the application",
        worst: "all applications share one process: one that crashes it or keeps the interpreter stops the others",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "error-page",
        placeholder: "STATUS=FILE",
        kind: Kind::Manner(&site(ERROR_PAGES, |site| &mut site.error_pages)),
        summary: "Send this file instead of the server's own text when the server answers with this status; 4xx and \
                  5xx stand for those without a file. Answers of the application stay as they are.",
        cost: "the files in memory, read at the start",
        worst: "a large page is sent to everybody who asks for something that is missing",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "sendfile",
        placeholder: "/URL=FOLDER",
        kind: Kind::Server(&server(MOUNTS, |config| &mut config.sendfile)),
        summary: "Let the application name a file of FOLDER as the body of its response: X-Sendfile has its path, \
                  X-Accel-Redirect its path below /URL. Clients do not see these fields; ranges and conditions work. \
                  Without this option the fields are passed on, for a proxy.",
        cost: "the open files of a static folder",
        worst: "an application that lets clients choose the value gives away every file of the folder but dot-files",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "listing",
        kind: Kind::Manner(&site(SWITCH, |site| &mut site.listing)),
        default: &["false"],
        summary: "List the files of static folders that have no index.html.",
        cost: "reading the folder for each such request",
        worst: "shows names that nobody was meant to guess",
        ..Definition::of(Reload::Restart)
    },
];
