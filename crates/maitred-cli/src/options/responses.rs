//! What waits for slow readers, and where.

use super::{Definition, Kind, Reach};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "response-memory",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.response_memory),
        default: &["256k"],
        reach: Reach::Everywhere,
        summary: "How much of a response that is made block by block waits in memory for its reader; what is beyond goes to a \
                  file in the spool folder, so that the thread of the application goes on; an ASGI application awaits the \
                  reader. Each block leaves at once if the reader takes it.",
        cost: "this much memory for every response whose reader is slower than the application",
        worst: "too much: slow readers fill the memory; 0: every block that is not taken at once goes to the disk",
    },
    Definition {
        name: "response-file",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.response_file),
        default: &["1g"],
        reach: Reach::Everywhere,
        summary: "How much of one response waits in files for its reader; beyond it the application waits, for as long as the \
                  reader takes a byte within body-timeout. 0 for none: an application that streams waits for its reader.",
        cost: "this much disk for every such response, and a descriptor for each 64 MiB",
        worst: "a full disk: such responses wait for their readers, as with 0, and the error log says so",
    },
    Definition {
        name: "response-budget",
        placeholder: "BYTES",
        kind: Kind::Bytes(|config| &mut config.response_budget),
        default: &["32m"],
        reach: Reach::Everywhere,
        summary: "How much memory all bodies together may take that were given in one piece and wait for their readers; those \
                  that come on top go to files, up to response-file each. An object that several responses share counts once; \
                  bodies up to 16 KiB and files do not count.",
        cost: "this much memory, and what the threads of the application make at the same time; an event loop that makes bodies \
               faster than they are written may have half as much again, and then writes them itself",
        worst: "too little: bodies are written to the disk that would have left in a moment",
    },
];
