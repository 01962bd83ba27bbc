//! Limits of requests: sizes and times.

use super::definition::{Definition, Kind, Reload, server, site};
use crate::forms::{BYTES, Count, FOLDER, SECONDS};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "head-timeout",
        kind: Kind::Server(&server(SECONDS, |config| &mut config.head_timeout)),
        default: &["10"],
        summary: "Time for a request head: from its first byte, or for the first request from the start of the \
                  connection, to its last byte. Then 408 and close.",
        cost: "slow peers hold a connection and a buffer this long",
        worst: "short: peers on bad networks are cut off",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "body-timeout",
        kind: Kind::Server(&server(SECONDS, |config| &mut config.body_timeout)),
        default: &["30"],
        summary: "Time without a byte of a request body; then 408 and close. An ASGI application whose response has \
                  begun waits for the rest as long as it likes. Also the time in which a peer takes no \
                  byte of a response; then close.",
        cost: "slow peers hold what is buffered for them this long",
        worst: "short: peers on bad networks are cut off. One byte in time keeps a body alive",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "keep-alive",
        kind: Kind::Server(&server(SECONDS, |config| &mut config.keep_alive)),
        default: &["75"],
        summary: "A connection may be idle this long between two requests; then it is closed.",
        cost: "a descriptor and a small record per idle connection",
        worst: "shorter than the proxy's in front: the proxy meets closed connections (502)",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "max-head",
        kind: Kind::Server(&server(BYTES, |config| &mut config.max_head)),
        default: &["64k"],
        summary: "The largest head of a request: its line and fields together; a larger one gets 431. 16k to 256k.",
        cost: "this much memory for each request, within head-budget",
        worst: "much: peers that send large heads use up head-budget sooner",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "max-field",
        kind: Kind::Server(&server(BYTES, |config| &mut config.max_field)),
        default: &["16k"],
        summary: "The largest field of a request's head, its name included, such as Cookie; a larger one gets 431. 1k to \
                  max-head. nginx, Apache and gunicorn take 8 KiB by default, Node.js and IIS 16, uvicorn and granian a \
                  whole head.",
        cost: "none beyond that of max-head, as a head is kept as a whole",
        worst: "little: users with many cookies or a long ticket are refused",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "max-body",
        kind: Kind::Manner(&site(BYTES, |site| &mut site.max_body)),
        default: &["1g"],
        summary: "The largest request body; a larger one gets 413. A whole number, or with k, m or g (units of \
                  1024). The default, that of Apache httpd and waitress, leaves it to the application to take less.",
        cost: "what memory does not keep (body-memory, body-budget) is in the spool folder until the request is answered",
        worst: "this much disk for every connection that uploads at the same time, and this much memory \
                if the application reads it in one piece",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "body-memory",
        kind: Kind::Server(&server(BYTES, |config| &mut config.body_memory)),
        default: &["256k"],
        summary: "So much of every request body is kept in memory. A longer body stays in memory while body-budget \
                  lasts, else it goes to a file in the spool folder. The default holds forms and documents.",
        cost: "this much memory for each such request until it is answered",
        worst: "much: slow uploads fill the memory. Little: small forms go to the disk",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "body-budget",
        kind: Kind::Server(&server(BYTES, |config| &mut config.body_budget)),
        default: &["64m"],
        summary: "Memory for all request bodies longer than body-memory together; one of them has at most a quarter. When \
                  seven eighths are taken, the largest unfinished one goes to a file in the spool folder. 0: all of them \
                  do. What WebSockets have received beyond 64k each counts too, and may take as much again.",
        cost: "up to this much memory while such bodies are received and answered, 32m of it some seconds longer for \
               the next ones, and as much again in an application that reads one in one piece",
        worst: "little: large uploads are written to a file and read again, which about doubles their time",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "spool",
        kind: Kind::Server(&server(FOLDER, |config| &mut config.spool)),
        default: &["/var/tmp"],
        summary: "The folder for request bodies that do not stay in memory, and for what slow readers have not \
                  taken. Its files have no names and are gone with the request or the process. A folder in memory \
                  (tmpfs, often /tmp) causes a warning.",
        cost: "a descriptor and the body's size for each such request",
        worst: "a full disk: such uploads get 507, others are served. A slow disk delays such uploads only",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "spool-threads",
        placeholder: "NUMBER",
        kind: Kind::Server(&server(Count(1, 64), |config| &mut config.spool_threads)),
        default: &["1"],
        summary: "Threads that write to the spool folder: request bodies, and complete ASGI responses for slow \
                  readers. One thread fills most disks; more help where a disk answers late and takes much at once \
                  (network storage).",
        cost: "a thread each, which leaves the processor to those that serve (nice 10)",
        worst: "many on one slow disk: each upload waits longer",
        ..Definition::of(Reload::Restart)
    },
];
