//! Static files without compressed siblings: compressed once, when a client asks.

use std::fs;
use std::io::Read;
use std::sync::Arc;
use std::time::SystemTime;

use maitred_files::{Answer, Body, Now, StaticFiles, StaticSettings};
use maitred_http::{Method, RequestHead, target};
use maitred_runtime::Content;
use maitred_server::CompressionSettings;
use tempfile::TempDir;

/// A folder with compression, a minute after its files were written.
struct Site {
    folder: TempDir,
    files: StaticFiles,
    now: Now,
}

impl Site {
    fn new(compression: CompressionSettings) -> Self {
        let settings =
            StaticSettings { compression: Some(Arc::new(compression)), ..StaticSettings::default() };
        let folder = TempDir::new().expect("a folder");
        let files = StaticFiles::open(folder.path(), settings).expect("the folder");
        let unix_seconds = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() + 60;
        Self { folder, files, now: Now { monotonic_ns: 1 << 40, unix_seconds } }
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.folder.path().join(name), content).expect("written");
    }

    fn ask(&self, name: &str, fields: &[(&str, &str)]) -> Answer {
        let mut head = RequestHead { method: Method::Get, ..RequestHead::default() };
        head.path_and_query = head.fields.adopt(name.as_bytes()).expect("short");
        for (name, value) in fields {
            head.fields.push(name, value);
        }
        let mut path = Vec::new();
        target::normalise(head.path(), &mut path).expect("a path");
        self.files.answer(&head, &path, self.now)
    }
}

fn page() -> String {
    "<p>a paragraph of the page</p>\n".repeat(2000)
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.head.fields.first(name).map(|value| str::from_utf8(value).expect("ASCII"))
}

/// The bytes of a body in memory.
fn bytes(answer: &Answer) -> Arc<[u8]> {
    match &answer.body {
        Body::One(Content::Shared(bytes)) => Arc::clone(bytes),
        other => panic!("{other:?}"),
    }
}

const GZIP: (&str, &str) = ("Accept-Encoding", "gzip");

#[test]
fn a_file_is_compressed_once_and_kept() {
    let site = Site::new(CompressionSettings::default());
    site.write("a.html", &page());
    let first = site.ask("/a.html", &[GZIP]);
    assert_eq!(field(&first, "content-encoding"), Some("gzip"));
    assert_eq!((field(&first, "vary"), field(&first, "accept-ranges")), (Some("Accept-Encoding"), None));
    let tag = field(&first, "etag").expect("a tag").to_owned();
    assert!(tag.starts_with("W/\"") && tag.ends_with("-gzip\""), "{tag}");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes(&first)[..]).read_to_string(&mut text).expect("gzip");
    assert!(text == page() && first.length == bytes(&first).len() as u64);
    let second = site.ask("/a.html", &[GZIP]);
    assert!(Arc::ptr_eq(&bytes(&first), &bytes(&second)), "from the cache");
    assert_eq!(site.files.statistics().misses, 1);
    assert_eq!(site.files.statistics().bytes, first.length);
    // Another coding is another form beside it.
    assert_eq!(field(&site.ask("/a.html", &[("Accept-Encoding", "br")]), "content-encoding"), Some("br"));
    assert!(Arc::ptr_eq(&bytes(&first), &bytes(&site.ask("/a.html", &[GZIP]))));
}

#[test]
fn a_client_without_accepted_codings_gets_the_file_and_vary() {
    let site = Site::new(CompressionSettings::default());
    site.write("a.html", &page());
    for accept in ["", "identity", "gzip;q=0"] {
        let answer = site.ask("/a.html", &[("Accept-Encoding", accept)]);
        assert_eq!(
            (field(&answer, "content-encoding"), answer.length),
            (None, page().len() as u64),
            "{accept}"
        );
        assert_eq!(field(&answer, "vary"), Some("Accept-Encoding"), "{accept}");
        assert_eq!(field(&answer, "accept-ranges"), Some("bytes"), "{accept}");
    }
}

#[test]
fn the_compressed_form_has_conditions_and_no_parts() {
    let site = Site::new(CompressionSettings::default());
    site.write("a.html", &page());
    let first = site.ask("/a.html", &[GZIP]);
    let tag = field(&first, "etag").expect("a tag").to_owned();
    let again = site.ask("/a.html", &[GZIP, ("If-None-Match", &tag)]);
    assert_eq!((again.head.status.code(), field(&again, "etag")), (304, Some(&*tag)));
    let part = site.ask("/a.html", &[GZIP, ("Range", "bytes=0-4")]);
    assert_eq!((part.head.status.code(), part.length), (200, first.length));
    let part = site.ask("/a.html", &[("Range", "bytes=0-4")]);
    assert_eq!((part.head.status.code(), part.length), (206, 5));
}

#[test]
fn a_changed_file_is_compressed_anew() {
    let mut site = Site::new(CompressionSettings::default());
    site.write("a.html", &page());
    let first = site.ask("/a.html", &[GZIP]).length;
    site.write("a.html", &page().repeat(2));
    site.now.monotonic_ns += 2_000_000_000;
    let answer = site.ask("/a.html", &[GZIP]);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes(&answer)[..]).read_to_string(&mut text).expect("gzip");
    assert!(text == page().repeat(2) && answer.length > first);
}

#[test]
fn other_files_are_left_alone() {
    let except = vec!["/apart/*".parse().expect("a pattern")];
    let site = Site::new(CompressionSettings { except, ..CompressionSettings::default() });
    fs::create_dir(site.folder.path().join("apart")).expect("made");
    site.write("small.html", "short");
    site.write("a.png", &page());
    site.write("large.html", &page().repeat(20));
    site.write("apart/a.html", &page());
    site.write("stored.html", &page());
    site.write("stored.html.br", "a sibling");
    for name in ["/small.html", "/a.png", "/large.html", "/apart/a.html", "/stored.html"] {
        let answer = site.ask(name, &[GZIP]);
        assert_eq!(field(&answer, "content-encoding"), None, "{name}");
        assert_eq!(field(&answer, "vary").is_some(), name == "/stored.html", "{name}");
    }
    assert_eq!(
        field(&site.ask("/stored.html", &[("Accept-Encoding", "br, gzip")]), "content-encoding"),
        Some("br")
    );
}

#[test]
fn a_file_that_becomes_no_smaller_is_not_tried_again() {
    let site = Site::new(CompressionSettings { min_length: 1, ..CompressionSettings::default() });
    site.write("a.txt", "x");
    for _ in 0..2 {
        let answer = site.ask("/a.txt", &[GZIP]);
        assert_eq!((field(&answer, "content-encoding"), &bytes(&answer)[..]), (None, &b"x"[..]));
    }
}

#[test]
fn a_file_that_may_still_change_is_not_compressed() {
    let mut site = Site::new(CompressionSettings::default());
    site.now.unix_seconds -= 60;
    site.write("a.html", &page());
    assert_eq!(field(&site.ask("/a.html", &[GZIP]), "content-encoding"), None);
}
