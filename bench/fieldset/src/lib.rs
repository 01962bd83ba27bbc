//! What is measured: 1,000 sets of 20 header fields are built, kept, searched and given back.
//!
//! Two programs share it because counting allocations costs time: `time` runs on the plain system
//! allocator, `count` on one that counts.

use std::hint::black_box;

use maitred_http::FieldSet;

/// Sets in a round; all of a round's sets exist at the same time.
pub const SETS: usize = 1_000;

/// The fields of one set: what a browser sends behind two proxies.
pub const FIELDS: [(&str, &str); 20] = [
    ("Host", "shop.example.org"),
    ("Connection", "keep-alive"),
    ("sec-ch-ua", "\"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("Upgrade-Insecure-Requests", "1"),
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-User", "?1"),
    ("Sec-Fetch-Dest", "document"),
    ("Referer", "https://shop.example.org/catalogue/chairs?page=3"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Accept-Language", "en-GB,en;q=0.9,de;q=0.8"),
    ("Cookie", "session=5f0c1e7e9b1d4a0f8f3f; theme=dark; basket=3"),
    ("If-None-Match", "W/\"64f1c3a2-1f4b\""),
    ("X-Forwarded-For", "203.0.113.7, 198.51.100.2"),
    ("X-Forwarded-Proto", "https"),
    ("X-Request-Id", "0b6f0a4e-2f6d-4a55-9a7d-6f3f3b0c6d11"),
];

/// What each set is asked for: the first field, one in the middle in another case, one that is missing.
const ASKED: [&str; 3] = ["host", "ACCEPT-ENCODING", "authorization"];

/// A way to hold the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A `FieldSet` made new, field by field.
    Fresh,
    /// A `FieldSet` made new, of one copied head with the fields as positions: the HTTP/1 parser's way.
    Adopted,
    /// A `FieldSet` that is cleared and filled again.
    Reused,
    /// `Vec<(String, String)>` with room for the fields.
    Strings,
    /// `Vec<(Box<str>, Box<str>)>` with room for the fields.
    Boxes,
}

impl Kind {
    /// All of them; the last two are what the others are compared with.
    pub const ALL: [Kind; 5] = [Self::Fresh, Self::Adopted, Self::Reused, Self::Strings, Self::Boxes];

    /// As the tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fresh => "field set, new",
            Self::Adopted => "field set, new, one copy",
            Self::Reused => "field set, used again",
            Self::Strings => "`Vec<(String, String)>`",
            Self::Boxes => "`Vec<(Box<str>, Box<str>)>`",
        }
    }
}

/// The sets of a round.
pub enum Held {
    /// Ours.
    Sets(Vec<FieldSet>),
    /// One allocation per string.
    Strings(Vec<Vec<(String, String)>>),
    /// One allocation per string, without spare room.
    Boxes(Vec<Vec<(Box<str>, Box<str>)>>),
}

/// The head that `Kind::Adopted` copies, with the place of each name and value.
pub struct Source {
    head: Vec<u8>,
    places: Vec<[usize; 4]>,
}

impl Source {
    /// The head of [`FIELDS`].
    #[expect(clippy::new_without_default, reason = "a source is made in two places, with a purpose")]
    pub fn new() -> Self {
        let mut head = Vec::new();
        let mut places = Vec::new();
        for (name, value) in FIELDS {
            places.push([head.len(), name.len(), head.len() + name.len() + 2, value.len()]);
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        Self { head, places }
    }
}

/// Nothing held, where a round of this kind starts the first time.
pub fn nothing(kind: Kind) -> Held {
    match kind {
        Kind::Fresh | Kind::Adopted => Held::Sets(Vec::with_capacity(SETS)),
        Kind::Reused => Held::Sets((0..SETS).map(|_| FieldSet::new()).collect()),
        Kind::Strings => Held::Strings(Vec::with_capacity(SETS)),
        Kind::Boxes => Held::Boxes(Vec::with_capacity(SETS)),
    }
}

/// Builds `SETS` sets in place of those that are held.
pub fn build(kind: Kind, source: &Source, held: &mut Held) {
    match held {
        Held::Sets(sets) if kind == Kind::Reused => {
            for set in sets {
                set.clear();
                fill(set);
            }
        }
        Held::Sets(sets) => {
            sets.clear();
            for _ in 0..SETS {
                let mut set = FieldSet::new();
                if kind == Kind::Adopted {
                    adopt(&mut set, source)
                } else {
                    fill(&mut set)
                }
                sets.push(set);
            }
        }
        Held::Strings(sets) => {
            sets.clear();
            sets.extend((0..SETS).map(|_| {
                let mut set = Vec::with_capacity(FIELDS.len());
                set.extend(
                    black_box(&FIELDS).iter().map(|(name, value)| (name.to_string(), value.to_string())),
                );
                set
            }));
        }
        Held::Boxes(sets) => {
            sets.clear();
            sets.extend((0..SETS).map(|_| {
                let mut set = Vec::with_capacity(FIELDS.len());
                set.extend(black_box(&FIELDS).iter().map(|(name, value)| ((*name).into(), (*value).into())));
                set
            }));
        }
    }
}

fn fill(set: &mut FieldSet) {
    for (name, value) in black_box(&FIELDS) {
        set.push(name, value);
    }
}

fn adopt(set: &mut FieldSet, source: &Source) {
    let head = set.adopt(black_box(&source.head)).unwrap_or_default();
    for [name, name_length, value, value_length] in &source.places {
        set.push_spans(head.part(*name, *name_length), head.part(*value, *value_length));
    }
}

/// The bytes found for what every set is asked: the same number whatever the kind.
pub fn search(held: &Held) -> usize {
    let asked = black_box(ASKED);
    match held {
        Held::Sets(sets) => sets
            .iter()
            .flat_map(|set| asked.iter().filter_map(|name| set.first(name)))
            .map(|value| value.len())
            .sum(),
        Held::Strings(sets) => {
            sets.iter().map(|set| find(set.iter().map(|(name, value)| (&**name, &**value)), &asked)).sum()
        }
        Held::Boxes(sets) => {
            sets.iter().map(|set| find(set.iter().map(|(name, value)| (&**name, &**value)), &asked)).sum()
        }
    }
}

fn find<'a>(set: impl Iterator<Item = (&'a str, &'a str)> + Clone, asked: &[&str]) -> usize {
    asked
        .iter()
        .filter_map(|name| set.clone().find(|(known, _)| known.eq_ignore_ascii_case(name)))
        .map(|(_, value)| value.len())
        .sum()
}

/// What [`search`] finds in a round.
pub fn expected() -> usize {
    let found =
        ASKED.iter().filter_map(|name| FIELDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)));
    SETS * found.map(|(_, value)| value.len()).sum::<usize>()
}
