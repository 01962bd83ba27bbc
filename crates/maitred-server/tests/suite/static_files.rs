//! Static files as the server uses them: a request head and a path in, an answer out.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use maitred_files::{Answer, Body, Now, StaticFiles, StaticSettings};
use maitred_http::{FieldSet, Method, RequestHead, date, target};
use maitred_runtime::Content;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

const SECOND: u64 = 1_000_000_000;

/// A root, its files, and a clock that only the test moves. It starts a minute ahead of the real
/// one, so that files just written count as settled.
struct Site {
    folder: TempDir,
    files: StaticFiles,
    now: Now,
}

impl Site {
    fn new() -> Self {
        Self::with(StaticSettings::default())
    }

    fn with(settings: StaticSettings) -> Self {
        let folder = TempDir::new().unwrap();
        let files = StaticFiles::open(folder.path(), settings).unwrap();
        let unix_seconds = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() + 60;
        Self { folder, files, now: Now { monotonic_ns: 1000 * SECOND, unix_seconds } }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn make_fifo(&self, name: &str) {
        mknodat(CWD, self.path(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    fn pass(&mut self, seconds: u64) {
        self.now.monotonic_ns += seconds * SECOND;
        self.now.unix_seconds += seconds;
    }

    fn get(&self, raw_target: &str) -> Answer {
        self.send(Method::Get, raw_target, &[])
    }

    fn get_with(&self, raw_target: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(Method::Get, raw_target, fields)
    }

    fn send(&self, method: Method, raw_target: &str, fields: &[(&str, &str)]) -> Answer {
        let head = request(method, raw_target, fields);
        let mut path = Vec::new();
        target::normalise(head.path(), &mut path).unwrap();
        self.files.answer(&head, &path, self.now)
    }
}

fn request(method: Method, raw_target: &str, fields: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead { method, ..RequestHead::default() };
    head.path_and_query = head.fields.adopt(raw_target.as_bytes()).unwrap();
    for (name, value) in fields {
        head.fields.push(name, value);
    }
    head
}

fn code(answer: &Answer) -> u16 {
    answer.head.status.code()
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.head.fields.first(name).map(|value| std::str::from_utf8(value).unwrap())
}

fn bytes(content: &Content) -> Vec<u8> {
    match content {
        Content::Static(bytes) => bytes.to_vec(),
        Content::Bytes(bytes) => bytes.clone(),
        Content::Shared(bytes) => bytes.to_vec(),
        Content::Owned(owner) => owner.bytes().to_vec(),
        Content::File(range) => {
            let mut bytes = vec![0; range.length as usize];
            range.file.read_exact_at(&mut bytes, range.offset).unwrap();
            bytes
        }
    }
}

/// The body, whose length must be the declared one.
fn body(answer: &Answer) -> String {
    let body = match &answer.body {
        Body::Empty => Vec::new(),
        Body::One(content) => bytes(content),
        Body::Many(contents) => contents.iter().flat_map(bytes).collect(),
    };
    assert_eq!(body.len() as u64, answer.length);
    String::from_utf8_lossy(&body).into_owned()
}

fn listed(fields: &FieldSet) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    fields.iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn set_modified(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn a_file_has_type_validators_and_content() {
    let site = Site::new();
    site.write("a b/page.html", "<p>hello");
    let answer = site.get("/a%20b/page.html?query=ignored");
    assert_eq!(code(&answer), 200);
    assert_eq!(field(&answer, "content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(field(&answer, "accept-ranges"), Some("bytes"));
    assert!(field(&answer, "etag").unwrap().starts_with('"'));
    assert!(date::parse(field(&answer, "last-modified").unwrap().as_bytes()).is_some());
    assert_eq!(field(&answer, "vary"), None);
    assert_eq!(field(&answer, "content-length"), None, "framing is the protocol's");
    assert_eq!(body(&answer), "<p>hello");

    site.write("unknown", "");
    let answer = site.get("/unknown");
    assert_eq!(field(&answer, "content-type"), Some("application/octet-stream"));
    assert_eq!((answer.length, body(&answer).as_str()), (0, ""));
}

#[test]
fn cache_control_stands_on_200_206_and_304() {
    let cache_control = Some("max-age=60".to_owned());
    let site = Site::with(StaticSettings { cache_control, ..Default::default() });
    site.write("file", "content");
    for (fields, expected) in
        [(&[][..], 200), (&[("Range", "bytes=0-1")], 206), (&[("If-None-Match", "*")], 304)]
    {
        let answer = site.get_with("/file", fields);
        assert_eq!((code(&answer), field(&answer, "cache-control")), (expected, Some("max-age=60")));
    }
}

#[test]
fn head_has_the_head_and_length_of_get_and_no_body() {
    let site = Site::with(StaticSettings { listing: true, max_cached_file: 100, ..Default::default() });
    site.write("small.txt", "small");
    site.write("large.bin", vec![7; 1000]);
    site.write("folder/file", "");
    for name in ["/small.txt", "/large.bin", "/", "/folder", "/folder/", "/nothing"] {
        let (get, head) = (site.get(name), site.send(Method::Head, name, &[]));
        assert_eq!(get.head.status, head.head.status, "{name}");
        assert_eq!(listed(&get.head.fields), listed(&head.head.fields), "{name}");
        assert_eq!(get.length, head.length, "{name}");
        assert!(get.length > 0);
        assert!(matches!(head.body, Body::Empty), "{name}");
    }
    let ranged = site.send(Method::Head, "/small.txt", &[("Range", "bytes=0-1")]);
    assert_eq!((code(&ranged), ranged.length), (200, 5), "RFC 9110 §14.2: Range is for GET");
}

#[test]
fn other_methods_are_refused_with_what_is_allowed() {
    let site = Site::new();
    site.write("file", "x");
    for method in [Method::Post, Method::Put, Method::Delete, Method::Options, Method::Trace] {
        let answer = site.send(method, "/file", &[]);
        assert_eq!((code(&answer), field(&answer, "allow")), (405, Some("GET, HEAD")));
    }
}

#[test]
fn a_folder_is_redirected_to_itself_with_a_slash_and_serves_its_index() {
    let index = vec!["index.html".to_owned(), "index.htm".to_owned()];
    let mut site = Site::with(StaticSettings { index, ..Default::default() });
    site.write("dir with space/index.htm", "second");
    let answer = site.get("/dir%20with%20space?a=1&b=%2F");
    assert_eq!(code(&answer), 301);
    assert_eq!(field(&answer, "location"), Some("/dir%20with%20space/?a=1&b=%2F"));
    assert_eq!(body(&site.get("/dir%20with%20space/")), "second");

    site.write("dir with space/index.html", "first");
    site.pass(1);
    assert_eq!(body(&site.get("/dir%20with%20space/")), "first", "the better index file has come");
    assert_eq!(site.files.statistics().invalidations, 1);

    site.write("evil.example/index.html", "");
    assert_eq!(field(&site.get("//evil.example"), "location"), Some("/evil.example/"));
}

#[test]
fn the_root_of_a_mount_without_its_slash_is_redirected_too() {
    let site = Site::new();
    site.write("index.html", "home");
    let head = request(Method::Get, "/static?x", &[]);
    for path in [&b"/"[..], b""] {
        let answer = site.files.answer(&head, path, site.now);
        assert_eq!((code(&answer), field(&answer, "location")), (301, Some("/static/?x")));
    }
    assert_eq!(body(&site.get("/")), "home");
}

#[test]
fn a_folder_without_index_is_listed_only_when_asked() {
    let site = Site::new();
    site.write("folder/file", "x");
    assert_eq!(code(&site.get("/folder/")), 404);
    assert_eq!(code(&site.get("/none/")), 404);

    let site = Site::with(StaticSettings { listing: true, ..Default::default() });
    site.write("folder/b.txt", "12345");
    site.write("folder/<a>&'\".txt", "1");
    site.write("folder/sub/x", "");
    site.write("folder/.hidden", "");
    site.make_fifo("folder/fifo");
    symlink("../../outside", site.path("folder/link-out")).unwrap();
    symlink("b.txt", site.path("folder/c:link")).unwrap();
    let answer = site.get("/folder/");
    assert_eq!((code(&answer), field(&answer, "content-type")), (200, Some("text/html; charset=utf-8")));
    let page = body(&answer);
    let places = [
        "<a href=\"./sub/\">sub/</a></td><td></td>",
        "<a href=\"./%3Ca%3E%26%27%22.txt\">&lt;a&gt;&amp;&#39;&quot;.txt</a></td><td>1</td>",
        "<a href=\"./b.txt\">b.txt</a></td><td>5</td>",
        "<a href=\"./c%3Alink\">c:link</a></td><td>5</td>",
    ]
    .map(|row| page.find(row).unwrap_or_else(|| panic!("{row}\n{page}")));
    assert!(places.is_sorted(), "{page}");
    for name in ["hidden", "fifo", "link-out"] {
        assert!(!page.contains(name), "{page}");
    }
}

#[test]
fn only_regular_files_inside_the_root_that_are_not_hidden_exist() {
    let outer = TempDir::new().unwrap();
    fs::write(outer.path().join("secret"), "outside").unwrap();
    let site = Site::new();
    site.write("file", "inside");
    site.write(".env", "hidden");
    site.write(".git/config", "hidden");
    site.write(".well-known/security.txt", "public");
    site.make_fifo("fifo");
    let _listener = UnixListener::bind(site.path("socket")).unwrap();
    for (to, link) in [("/dev/zero", "device"), ("fifo", "to-fifo"), ("loop", "loop"), ("file", "in")] {
        symlink(to, site.path(link)).unwrap();
    }
    symlink(outer.path().join("secret"), site.path("out")).unwrap();
    let long = format!("/{}", "n".repeat(300));
    let hidden = ["/.env", "/.git/config", "/.git/", "/.git", "/x/../.env", "/%2eenv"];
    let irregular = ["/fifo", "/socket", "/device", "/out", "/to-fifo", "/loop"];
    let absent = ["/file/", "/file/x", "/nothing", &long];
    for name in hidden.iter().chain(&irregular).chain(&absent) {
        let answer = site.get(name);
        assert_eq!(code(&answer), 404, "{name}");
        assert_eq!(answer.note, None, "{name}: what peers ask for is no matter for the error log");
    }
    assert_eq!(body(&site.get("/.well-known/security.txt")), "public");
    assert_eq!(body(&site.get("/in")), "inside");
}

#[test]
fn no_raw_path_reads_what_is_outside() {
    let site = Site::new();
    site.write("root/a/file", "inside");
    site.write("secret", "outside");
    symlink("../..", site.path("root/a/up")).unwrap();
    symlink("../secret", site.path("root/out")).unwrap();
    symlink("a", site.path("root/in")).unwrap();
    let files = StaticFiles::open(&site.path("root"), StaticSettings::default()).unwrap();
    let segments =
        ["a", "in", "up", "out", "file", "secret", "root", "..", "%2e%2e", ".%2E", ".", "", "%252e"];
    let count = segments.len();
    let (mut path, mut served) = (Vec::new(), 0);
    for number in 0..count.pow(4) {
        let segment = |place: u32| segments[number / count.pow(place) % count];
        let raw = format!("/{}/{}/{}/{}", segment(0), segment(1), segment(2), segment(3));
        let head = request(Method::Get, &raw, &[]);
        target::normalise(head.path(), &mut path).unwrap();
        let answer = files.answer(&head, &path, site.now);
        if code(&answer) == 200 {
            assert_eq!(body(&answer), "inside", "{raw}");
            served += 1;
        }
    }
    assert!(served > 50, "{served}: the property would hold for a server that serves nothing");
}

#[test]
fn a_file_without_permission_is_forbidden_and_noted() {
    let site = Site::new();
    site.write("locked", "x");
    fs::set_permissions(site.path("locked"), fs::Permissions::from_mode(0o0)).unwrap();
    let answer = site.get("/locked");
    if rustix::process::geteuid().is_root() {
        assert_eq!(code(&answer), 200, "the superuser may read anything");
    } else {
        assert_eq!(code(&answer), 403);
        assert!(answer.note.unwrap().contains("/locked"));
    }
}

#[test]
fn conditions_are_evaluated_against_the_file() {
    let site = Site::new();
    site.write("file.txt", "content");
    let first = site.get("/file.txt");
    let (tag, modified) = (field(&first, "etag").unwrap(), field(&first, "last-modified").unwrap());
    let other = "\"other\"";
    let range = ("Range", "bytes=0-0");
    for (fields, expected) in [
        (vec![("If-None-Match", tag)], 304),
        (vec![("if-none-match", "*")], 304),
        (vec![("If-None-Match", other)], 200),
        (vec![("If-Modified-Since", modified)], 304),
        (vec![("If-Modified-Since", modified), ("If-None-Match", other)], 200),
        (vec![("If-Match", tag)], 200),
        (vec![("If-Match", other)], 412),
        (vec![("If-Unmodified-Since", modified)], 200),
        (vec![("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:01 GMT")], 412),
        (vec![range, ("If-Range", tag)], 206),
        (vec![range, ("If-Range", modified)], 206),
        (vec![range, ("If-Range", other)], 200),
        (vec![range, ("If-None-Match", tag)], 304),
    ] {
        let answer = site.get_with("/file.txt", &fields);
        assert_eq!(code(&answer), expected, "{fields:?}");
        if expected == 304 {
            assert_eq!(field(&answer, "etag"), Some(tag));
            assert_eq!(body(&answer), "");
        }
    }
}

#[test]
fn one_range_is_sent_as_it_is_and_none_in_the_file_is_416() {
    for max_cached_file in [0, 1000] {
        let site = Site::with(StaticSettings { max_cached_file, ..Default::default() });
        site.write("file.txt", "0123456789");
        for (range, expected, content) in [
            ("bytes=2-4", "bytes 2-4/10", "234"),
            ("bytes=7-", "bytes 7-9/10", "789"),
            ("bytes=-2", "bytes 8-9/10", "89"),
            ("bytes=8-1000", "bytes 8-9/10", "89"),
            ("bytes=0-4,5-9", "bytes 0-9/10", "0123456789"),
        ] {
            let answer = site.get_with("/file.txt", &[("Range", range)]);
            assert_eq!((code(&answer), field(&answer, "content-range")), (206, Some(expected)));
            assert_eq!(field(&answer, "content-type"), Some("text/plain; charset=utf-8"));
            assert!(field(&answer, "etag").is_some());
            assert_eq!(body(&answer), content, "{range}");
        }
        let answer = site.get_with("/file.txt", &[("Range", "bytes=10-")]);
        assert_eq!((code(&answer), field(&answer, "content-range")), (416, Some("bytes */10")));
        assert!(!body(&answer).is_empty());
        for ignored in ["lines=1-2", "bytes=4-2", "bytes=x"] {
            assert_eq!(code(&site.get_with("/file.txt", &[("Range", ignored)])), 200, "{ignored}");
        }
    }
}

#[test]
fn several_ranges_are_parts_between_an_unpredictable_boundary() {
    for max_cached_file in [0, 1000] {
        let site = Site::with(StaticSettings { max_cached_file, ..Default::default() });
        site.write("file.txt", "0123456789");
        let ask = || site.get_with("/file.txt", &[("Range", "bytes=0-1,4-4,-1")]);
        let answer = ask();
        assert_eq!((code(&answer), field(&answer, "content-range")), (206, None));
        let content_type = field(&answer, "content-type").unwrap();
        let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
        assert_eq!(answer.head.fields.all("content-type").count(), 1);
        let part = |range: &str, bytes: &str| {
            let fields = "Content-Type: text/plain; charset=utf-8\r\nContent-Range: bytes";
            format!("--{boundary}\r\n{fields} {range}/10\r\n\r\n{bytes}\r\n")
        };
        let end = format!("--{boundary}--\r\n");
        assert_eq!(body(&answer), part("0-1", "01") + &part("4-4", "4") + &part("9-9", "9") + &end);
        assert_ne!(field(&ask(), "content-type"), Some(content_type));
    }
}

#[test]
fn ranges_past_4_gib_of_a_sparse_file() {
    const GIB: u64 = 1 << 30;
    let site = Site::new();
    File::create(site.path("sparse")).unwrap().set_len(5 * GIB).unwrap();
    let whole = site.get("/sparse");
    assert_eq!((code(&whole), whole.length), (200, 5 * GIB));
    let answer = site.get_with("/sparse", &[("Range", "bytes=4831838208-4831838307")]);
    assert_eq!(field(&answer, "content-range"), Some("bytes 4831838208-4831838307/5368709120"));
    let Body::One(Content::File(range)) = &answer.body else { panic!("{:?}", answer.body) };
    assert_eq!((range.offset, range.length), (4_831_838_208, 100));
    let answer = site.get_with("/sparse", &[("Range", "bytes=0-0,4294967296-")]);
    assert_eq!(code(&answer), 206);
    assert!(answer.length > GIB && answer.length < GIB + 1000);
    let answer = site.get_with("/sparse", &[("Range", "bytes=5368709120-")]);
    assert_eq!((code(&answer), field(&answer, "content-range")), (416, Some("bytes */5368709120")));
}

#[test]
fn siblings_are_chosen_by_what_the_peer_accepts() {
    let site = Site::new();
    for (name, content) in
        [("app.js", "plain"), ("app.js.gz", "GZ"), ("app.js.zst", "ZS"), ("app.js.br", "BR")]
    {
        site.write(name, content);
    }
    let mut tags = Vec::new();
    for (accept, encoding, content) in [
        ("gzip, br, zstd", Some("br"), "BR"),
        ("gzip, zstd", Some("zstd"), "ZS"),
        ("br;q=0.5, gzip", Some("gzip"), "GZ"),
        ("deflate", None, "plain"),
    ] {
        let answer = site.get_with("/app.js", &[("Accept-Encoding", accept)]);
        assert_eq!((code(&answer), field(&answer, "content-encoding")), (200, encoding), "{accept}");
        assert_eq!(field(&answer, "vary"), Some("Accept-Encoding"));
        assert!(field(&answer, "content-type").unwrap().starts_with("text/javascript"));
        assert_eq!(body(&answer), content);
        let tag = field(&answer, "etag").unwrap().to_owned();
        assert!(!tags.contains(&tag), "{tag}: each form has its own");
        tags.push(tag);
    }

    let plain = site.get("/app.js");
    assert_eq!((field(&plain, "content-encoding"), field(&plain, "vary")), (None, Some("Accept-Encoding")));
    let brotli = ("Accept-Encoding", "br");
    let ranged = site.get_with("/app.js", &[brotli, ("Range", "bytes=1-")]);
    assert_eq!(field(&ranged, "content-range"), Some("bytes 1-1/2"), "ranges are of the chosen form");
    assert_eq!((field(&ranged, "content-encoding"), body(&ranged).as_str()), (Some("br"), "R"));
    let other = site.get_with("/app.js", &[brotli, ("If-None-Match", field(&plain, "etag").unwrap())]);
    assert_eq!(code(&other), 200, "the tag of another form does not match");
    let same = site.get_with("/app.js", &[brotli, ("If-None-Match", field(&ranged, "etag").unwrap())]);
    assert_eq!((code(&same), field(&same, "vary")), (304, Some("Accept-Encoding")));
}

#[test]
fn of_siblings_that_are_accepted_alike_the_smallest_is_sent() {
    let site = Site::new();
    for (name, content) in
        [("a.js", "a plain text"), ("a.js.gz", "GZ2"), ("a.js.zst", "Z"), ("a.js.br", "BR")]
    {
        site.write(name, content);
    }
    for (accept, content) in
        [("gzip, deflate, br, zstd", "Z"), ("gzip, br", "BR"), ("br;q=1, zstd;q=0.9", "BR"), ("*", "Z")]
    {
        let answer = site.get_with("/a.js", &[("Accept-Encoding", accept)]);
        assert_eq!(body(&answer), content, "{accept}");
    }
}

#[test]
fn siblings_that_are_older_or_not_regular_are_ignored() {
    let site = Site::new();
    for name in ["page.html", "page.html.gz", "page.html.zst"] {
        site.write(name, name);
    }
    let now = SystemTime::now();
    set_modified(&site.path("page.html"), now - Duration::from_secs(100));
    set_modified(&site.path("page.html.gz"), now - Duration::from_secs(100));
    set_modified(&site.path("page.html.zst"), now - Duration::from_secs(101));
    site.make_fifo("page.html.br");
    let answer = site.get_with("/page.html", &[("Accept-Encoding", "br, zstd, gzip;q=0.1")]);
    assert_eq!(body(&answer), "page.html.gz");

    let site = Site::with(StaticSettings { precompressed: false, ..Default::default() });
    site.write("page.html", "plain");
    site.write("page.html.gz", "GZ");
    let answer = site.get_with("/page.html", &[("Accept-Encoding", "gzip")]);
    assert_eq!((body(&answer).as_str(), field(&answer, "vary")), ("plain", None));
}

#[test]
fn a_hit_shares_the_prepared_answer_and_is_checked_once_a_second() {
    let mut site = Site::new();
    site.write("file.txt", "first");
    let (one, two) = (site.get("/file.txt"), site.get("/file.txt"));
    assert!(Arc::ptr_eq(&one.head, &two.head));
    let (Body::One(Content::Shared(one)), Body::One(Content::Shared(two))) = (one.body, two.body) else {
        panic!("a small file is in memory");
    };
    assert!(Arc::ptr_eq(&one, &two));

    site.write("file.txt", "second, longer");
    assert_eq!(body(&site.get("/file.txt")), "first", "believed within the second");
    site.pass(1);
    assert_eq!(body(&site.get("/file.txt")), "second, longer");
    site.pass(1);
    assert_eq!(body(&site.get("/file.txt")), "second, longer");
    fs::remove_file(site.path("file.txt")).unwrap();
    assert_eq!(code(&site.get("/file.txt")), 200);
    site.pass(1);
    assert_eq!(code(&site.get("/file.txt")), 404);

    let statistics = site.files.statistics();
    assert_eq!((statistics.entries, statistics.bytes), (0, 0));
    assert_eq!((statistics.hits, statistics.misses), (4, 2));
    assert_eq!((statistics.revalidations, statistics.invalidations), (1, 2));
    assert!((statistics.hit_rate() - 4.0 / 6.0).abs() < 1e-9);
    assert!(statistics.saved_time > Duration::ZERO && statistics.load_time > Duration::ZERO);
}

#[test]
fn what_hits_have_saved_is_what_their_own_files_took_to_load() {
    let mut site = Site::new();
    site.write("asked.txt", "asked for");
    site.write("large.bin", "x".repeat(1 << 16));
    for number in 0..40 {
        site.write(&format!("other-{number}.txt"), "small");
    }
    let saved = |site: &Site| site.files.statistics().saved_time;
    site.get("/asked.txt");
    let loading = site.files.statistics().load_time;
    assert_eq!(saved(&site), Duration::ZERO);
    for hits in 1..=3 {
        site.get("/asked.txt");
        assert_eq!(saved(&site), loading * hits);
    }
    // Other files may take shorter or longer to load: what has been saved stays.
    for number in 0..40 {
        site.get(&format!("/other-{number}.txt"));
    }
    site.get("/large.bin");
    assert_eq!((saved(&site), site.files.statistics().misses), (loading * 3, 42));
    site.pass(1);
    site.get("/asked.txt");
    assert_eq!((saved(&site), site.files.statistics().revalidations), (loading * 3, 1), "it was looked at");
    site.get("/asked.txt");
    assert_eq!(saved(&site), loading * 4);
}

#[test]
fn a_replacement_of_equal_size_and_time_is_seen() {
    let mut site = Site::new();
    let time = SystemTime::now() - Duration::from_secs(1000);
    site.write("file", "one");
    set_modified(&site.path("file"), time);
    assert_eq!(body(&site.get("/file")), "one");
    site.write("new", "two");
    set_modified(&site.path("new"), time);
    fs::rename(site.path("new"), site.path("file")).unwrap();
    site.pass(1);
    assert_eq!(body(&site.get("/file")), "two");
}

#[test]
fn a_sibling_that_comes_later_is_used_after_the_next_check() {
    let mut site = Site::new();
    site.write("page.html", "plain");
    let ask = |site: &Site| body(&site.get_with("/page.html", &[("Accept-Encoding", "gzip")]));
    assert_eq!(ask(&site), "plain");
    site.write("page.html.gz", "GZ");
    // However coarse the times of the file system are.
    File::open(site.folder.path()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(ask(&site), "plain");
    site.pass(1);
    assert_eq!(ask(&site), "GZ");
}

#[test]
fn a_file_that_just_changed_is_not_cached_and_has_a_weak_tag_of_its_own() {
    let mut site = Site::new();
    site.write("file", "one");
    let changed = fs::metadata(site.path("file")).unwrap().modified().unwrap();
    site.now.unix_seconds = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 1;
    let young = site.get("/file");
    let weak = field(&young, "etag").unwrap();
    assert!(weak.starts_with("W/\""));
    assert_eq!(field(&young, "last-modified"), None);
    site.write("file", "two");
    assert_eq!(body(&site.get("/file")), "two", "without waiting for a check");
    assert_eq!((site.files.statistics().entries, site.files.statistics().misses), (0, 2));

    site.now.unix_seconds += 60;
    let settled = site.get_with("/file", &[("If-None-Match", weak)]);
    assert_eq!(code(&settled), 200, "what was stored under the weak tag may not be this");
    assert!(field(&settled, "etag").unwrap().starts_with('"'));
    assert_eq!(site.files.statistics().entries, 1);
}

#[test]
fn large_files_stay_open_bounded_in_number_and_in_idle_time() {
    let mut site =
        Site::with(StaticSettings { max_cached_file: 10, max_descriptors: 4, ..Default::default() });
    for number in 0..20 {
        site.write(&format!("large{number}"), vec![b'x'; 100]);
    }
    let (one, two) = (site.get("/large0"), site.get("/large0"));
    let (Body::One(Content::File(one)), Body::One(Content::File(two))) = (one.body, two.body) else {
        panic!("a large file is sent from its descriptor");
    };
    assert!(Arc::ptr_eq(&one.file, &two.file));
    for number in 0..20 {
        assert_eq!(site.get(&format!("/large{number}")).length, 100);
        let held = site.files.statistics().descriptors;
        assert!((1..=4).contains(&held), "{held}");
    }
    assert!(site.files.statistics().evictions >= 16);

    site.pass(59);
    site.files.sweep(site.now);
    assert!(site.files.statistics().descriptors > 0);
    site.pass(11);
    site.files.sweep(site.now);
    assert_eq!(site.files.statistics().descriptors, 0, "nobody asked for a minute");
}

#[test]
fn the_budget_bounds_bytes_and_entries() {
    let settings = StaticSettings { max_cache_bytes: 100_000, max_cache_entries: 50, ..Default::default() };
    let site = Site::with(settings);
    for number in 0..200 {
        site.write(&format!("file{number}"), vec![b'x'; 10 + number * 40]);
        assert_eq!(code(&site.get(&format!("/file{number}"))), 200);
        let statistics = site.files.statistics();
        assert!(statistics.bytes <= 100_000 && statistics.entries <= 50, "{statistics:?}");
    }
    let statistics = site.files.statistics();
    assert!(statistics.entries > 5, "{statistics:?}");
    assert!(statistics.evictions >= 150, "{statistics:?}");

    let off = Site::with(StaticSettings { max_cache_bytes: 0, ..Default::default() });
    off.write("file", "x");
    for _ in 0..2 {
        assert_eq!(body(&off.get("/file")), "x");
    }
    let statistics = off.files.statistics();
    assert_eq!((statistics.entries, statistics.hits, statistics.misses), (0, 0, 2));
}

#[test]
fn threads_get_whole_contents_while_the_file_is_replaced() {
    let site = Site::with(StaticSettings { validate_after: Duration::ZERO, ..Default::default() });
    site.write("file", "a");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Lengths differ, because this clock calls files settled that change within one tick.
            for (length, letter) in (1000..1200).zip(["b", "c", "d", "e"].iter().cycle()) {
                site.write("new", letter.repeat(length));
                fs::rename(site.path("new"), site.path("file")).unwrap();
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let text = body(&site.get("/file"));
                    assert_eq!(text, text[..1].repeat(text.len()));
                }
            });
        }
    });
    let statistics = site.files.statistics();
    assert_eq!(statistics.hits + statistics.misses, 1500);
    assert_eq!(body(&site.get("/file")), "e".repeat(1199));
}
