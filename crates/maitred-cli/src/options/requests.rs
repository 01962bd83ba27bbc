//! What a peer may send, and how long anything may take.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "head-timeout",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.head_timeout),
        default: &["10"],
        reach: Reach::Everywhere,
        summary: "Time from the first byte of a request head, or from the start of the connection for the \
                  first one, to its last byte; then 408 and close.",
        cost: "slow peers hold a connection and a buffer this long",
        worst: "too short cuts off peers on bad networks",
    },
    Definition {
        name: "body-timeout",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.body_timeout),
        default: &["30"],
        reach: Reach::Everywhere,
        summary: "Time without a byte of a request body, then 408 and close; and time without the peer \
                  taking a byte of a response, then close.",
        cost: "slow peers hold what is buffered for them this long",
        worst: "too short cuts off peers on bad networks; one byte in time keeps a body alive",
    },
    Definition {
        name: "keep-alive",
        placeholder: "SECONDS",
        kind: Kind::Seconds(|config| &mut config.keep_alive),
        default: &["75"],
        reach: Reach::Everywhere,
        summary: "Time a connection may be idle between two requests; then it is closed.",
        cost: "a descriptor and a small record per idle connection",
        worst: "shorter than a proxy's in front of it: the proxy meets closed connections (502)",
    },
    Definition {
        name: "max-body",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.site.max_body),
        default: &["1g"],
        reach: Reach::Everywhere,
        summary: "The largest request body; a larger one gets 413. Whole number, or with k, m or g \
                  (units of 1024). The default, that of Apache httpd and waitress, lets uploads pass \
                  and leaves it to the application to take less.",
        cost: "what memory does not keep (body-memory, body-budget) is in the spool folder until the request is answered",
        worst: "this much disk for every connection that uploads at the same time, and this much memory \
                if the application reads it in one piece",
    },
    Definition {
        name: "body-memory",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.body_memory),
        default: &["256k"],
        reach: Reach::Everywhere,
        summary: "How much of a request body is kept in memory in any case. A longer one is kept in memory \
                  while body-budget lasts, and goes to a file in the spool folder else. The default holds \
                  forms and documents.",
        cost: "this much memory for every request with such a body, while it is received and answered",
        worst: "too much: slow uploads fill the memory; too little: the disk is used for small forms",
    },
    Definition {
        name: "body-budget",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.body_budget),
        default: &["64m"],
        reach: Reach::Everywhere,
        summary: "How much memory all request bodies longer than body-memory may take together; one of them \
                  has at most a quarter of it. When seven eighths are taken, the largest that is being \
                  received goes to a file in the spool folder first. With 0 all of them do.",
        cost: "up to this much memory while such bodies are received and answered, and as much again in an \
               application that reads one in one piece",
        worst: "too little: large uploads cost the writing and reading of a file, about as much time again as \
                receiving them",
    },
    Definition {
        name: "spool",
        placeholder: "FOLDER",
        kind: Kind::Folder(|config| &mut config.spool),
        default: &["/var/tmp"],
        reach: Reach::Everywhere,
        summary: "The folder for request bodies that memory does not keep (body-memory, body-budget). The files have no names and are gone \
                  with the request or the process. A folder in memory (tmpfs, often /tmp) is warned of.",
        cost: "a descriptor and the body's size for each such request",
        worst: "a full disk: such uploads get 507, other requests are served; a slow one delays them only",
    },
    Definition {
        name: "spool-threads",
        placeholder: "NUMBER",
        kind: Kind::Count(1, 64, |config| &mut config.spool_threads),
        default: &["1"],
        reach: Reach::Everywhere,
        summary: "Threads that write to the spool folder: request bodies, and complete responses of ASGI applications for \
                  slow readers (those of WSGI applications are written one at a time). One thread fills most disks; \
                  more help where a disk answers late and takes much at once (network storage).",
        cost: "a thread each, which leaves the processor to those that serve (nice 10)",
        worst: "many on one slow disk: each upload waits longer",
    },
];
