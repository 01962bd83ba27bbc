//! Limits of responses that wait for slow readers, in memory and in files.

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::BYTES;

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "response-memory",
        kind: Kind::Server(&server(BYTES, |config| &mut config.writer.memory)),
        default: &["256k"],
        summary: "So much of a response that is made block by block waits in memory for its reader. The rest goes to a \
                  file in the spool folder, and the application's thread goes on; an ASGI application awaits the reader.",
        cost: "this much memory for every response whose reader is slower than the application",
        worst: "much: slow readers fill the memory. 0: every block that is not taken at once goes to the disk",
        ..Definition::of(Reload::Responses)
    },
    Definition {
        name: "response-file",
        kind: Kind::Server(&server(BYTES, |config| &mut config.writer.file)),
        default: &["1g"],
        summary: "So much of one response waits in files for its reader. Beyond it the application waits, as long as \
                  the reader takes a byte within body-timeout. 0: an application that streams waits for its reader.",
        cost: "this much disk for every such response, and a descriptor for each 64 MiB",
        worst: "a full disk: as with 0, and the error log says so",
        ..Definition::of(Reload::Responses)
    },
    Definition {
        name: "response-budget",
        kind: Kind::Server(&server(BYTES, |config| &mut config.writer.budget)),
        default: &["32m"],
        summary: "Memory for all complete bodies together that wait for their readers. Further ones go to files, up \
                  to response-file each. An object that several responses share counts once; bodies up to 16 KiB and \
                  files do not count.",
        cost: "this much memory. An event loop that makes bodies faster than they are written may take half as much \
               again",
        worst: "little: bodies go to the disk that would have left in a moment",
        ..Definition::of(Reload::Responses)
    },
];
