//! Compression of responses.

use maitred_compress::{CODINGS, TYPES};

use super::definition::{Definition, Kind, Reload, server};
use crate::forms::{BYTES, CODING_LEVELS, PATHS, SWITCH, TYPE_PATTERNS};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "compress",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.compress)),
        default: &["false"],
        summary: "Compress responses of the application, and static files up to 1 MiB without compressed siblings, for \
                  clients that accept it. Each block of a stream leaves at once. `Content-Encoding: identity` or \
                  `Cache-Control: no-transform` keeps a response as it is.",
        cost: "processor time: for 100 KiB about 0.7 ms with zstd, 2 ms with gzip",
        worst: "a page that repeats input beside a secret can give the secret away (BREACH): see compression.md",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "compress-encodings",
        placeholder: "gzip|br|zstd[:LEVEL]",
        kind: Kind::Server(&server(CODING_LEVELS, |config| &mut config.compression.codings)),
        default: CODINGS,
        summary: "A coding, and how hard to try. The first one that a client accepts is taken, unless the client \
                  prefers another. Levels are 1 to 9, of br 1 to 6.",
        cost: "from gzip:2 to gzip:9 four to seven times the time for 7 % fewer bytes",
        worst: "high levels: responses wait for the processor",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "compress-types",
        placeholder: "TYPE",
        kind: Kind::Server(&server(TYPE_PATTERNS, |config| &mut config.compression.types)),
        default: TYPES,
        summary: "A type of content to compress: text/html, text/* or *+json. Those named replace the default.",
        cost: "none for other types",
        worst: "images, videos and archives are compressed already: time for nothing",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "compress-min",
        kind: Kind::Server(&server(BYTES, |config| &mut config.compression.min_length)),
        default: &["1k"],
        summary: "The shortest response that is compressed. One whose length is not known is always compressed.",
        cost: "a hundred microseconds or less for each response between the two values",
        worst: "below some hundred bytes nothing is gained: it fits a packet anyway",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "compress-except",
        placeholder: "/PATH",
        kind: Kind::Server(&server(PATHS, |config| &mut config.compression.except)),
        summary: "A path whose responses are not compressed, as in the rules of pools: /login, /stream/*, *.bin.",
        cost: "some ten nanoseconds each for responses that could be compressed",
        worst: "none",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "compress-memory",
        kind: Kind::Server(&server(BYTES, |config| &mut config.compression.memory)),
        default: &["64m"],
        summary: "Memory for the compressors of all unfinished streams together; a stream that begins beyond it is \
                  not compressed. One takes 0.4 MiB with gzip, 1.8 MiB with zstd, 1.5 to 3 MiB with br.",
        cost: "this much memory at most",
        worst: "too little: of many event streams only the first are compressed",
        ..Definition::of(Reload::Restart)
    },
];
