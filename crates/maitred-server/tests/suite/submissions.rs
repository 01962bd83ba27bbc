//! Files that an application submits: what of them leaves, and what does not.

use std::path::Path;
use std::sync::Arc;

use crate::harness::{Running, connect, exchange, get_last, read_response, settings, start};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;
use maitred_server::{Routes, Submissions};

const FILE: &str = "0123456789";

/// A folder `files` with a file, beside a folder that must not be served.
fn folders() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let files = folder.path().join("files");
    std::fs::create_dir_all(files.join("sub dir")).unwrap();
    std::fs::write(files.join("page.txt"), FILE).unwrap();
    std::fs::write(files.join("sub dir/other"), "other").unwrap();
    std::fs::write(files.join(".hidden"), "hidden").unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    std::fs::create_dir(folder.path().join("files-too")).unwrap();
    std::fs::write(folder.path().join("files-too/page.txt"), "secret").unwrap();
    std::os::unix::fs::symlink("../../secret", files.join("sub dir/out")).unwrap();
    std::os::unix::fs::symlink(&files, folder.path().join("by another name")).unwrap();
    folder
}

/// A server whose application does what the query says: `STATUS&FIELD&VALUE`.
fn serve(folder: &Path, allowed: bool) -> Running {
    let folder = folder.to_owned();
    let at = folder.clone();
    let handler = move |exchange: Exchange| {
        let target = String::from_utf8_lossy(exchange.request().head.target()).into_owned();
        let mut parts = target.split_once('?').map_or("", |(_, query)| query).split('&');
        let mut next =
            || parts.next().unwrap_or_default().replace("%20", " ").replace("@", &at.to_string_lossy());
        let status = Status::from_code(next().parse().unwrap_or(200)).expect("a status");
        let head = ResponseHead::new(status)
            .with("Content-Type", "application/x-mine")
            .with("ETag", "\"of the application\"")
            .with("X-Accel-Buffering", "no")
            .with("Set-Cookie", "a=b")
            .with(&next(), next());
        // A refused head has been answered.
        let _ = exchange.respond(head, "the application's own body");
    };
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    if allowed {
        let files = StaticSettings { precompressed: false, ..StaticSettings::default() };
        let files = StaticFiles::open(&folder.join("files"), files).expect("the folder");
        settings.submissions = Submissions::default().with_root("/protected", files);
    }
    start(settings)
}

/// The answer to a submission, in small letters, and its body.
fn submit(running: &Running, query: &str, fields: &str) -> (String, String) {
    let request = format!("GET /?{query} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{fields}\r\n");
    let answer = exchange(running.address, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn a_file_is_sent_in_the_place_of_the_body_and_the_field_is_not() {
    let folder = folders();
    let running = serve(folder.path(), true);
    for named in [
        "200&X-Sendfile&@/files/page.txt",
        "200&x-sendfile&@/by%20another%20name/page.txt",
        "200&X-Accel-Redirect&/protected/page.txt",
        "200&X-Accel-Redirect&/protected/%70age.txt?x=1",
        "200&X-Accel-Redirect&/protected/sub/../page.txt",
    ] {
        let (head, body) = submit(&running, named, "");
        assert_eq!(body, FILE, "{named}: {head}");
        assert!(head.starts_with("http/1.1 200 ok\r\n") && head.contains("content-length: 10"), "{head}");
        assert!(
            head.contains("content-type: application/x-mine") && head.contains("set-cookie: a=b"),
            "{head}"
        );
        assert!(!head.contains("sendfile") && !head.contains("x-accel"), "{head}");
        assert!(!head.contains("of the application") && head.contains("\netag: "), "{head}");
    }
    let (head, body) = submit(&running, "403&X-Sendfile&@/files/sub%20dir/other", "Range: bytes=1-2\r\n");
    assert!(head.starts_with("http/1.1 403 forbidden\r\n"), "{head}");
    assert_eq!(body, "other", "an answer that is no 200 has no parts");
}

#[test]
fn ranges_and_conditions_count() {
    let folder = folders();
    let running = serve(folder.path(), true);
    let named = "200&X-Sendfile&@/files/page.txt";
    let (head, body) = submit(&running, named, "Range: bytes=2-4\r\n");
    assert!(head.starts_with("http/1.1 206 ") && head.contains("content-range: bytes 2-4/10"), "{head}");
    assert!(head.contains("content-type: application/x-mine"), "{head}");
    assert_eq!(body, "234");
    let (head, body) = submit(&running, named, "Range: bytes=0-1,4-5\r\n");
    assert!(head.contains("content-type: multipart/byteranges"), "{head}");
    assert!(
        !head.contains("x-mine") && body.contains("\r\n\r\n01\r\n") && body.contains("\r\n\r\n45\r\n"),
        "{body}"
    );
    let (head, _) = submit(&running, named, "Range: bytes=50-\r\n");
    assert!(head.starts_with("http/1.1 416 "), "{head}");
    let answer = exchange(running.address, &get_last(&format!("/?{named}")));
    let etag = answer.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("a tag");
    let (head, body) = submit(&running, named, &format!("If-None-Match: {etag}\r\n"));
    assert!(head.starts_with("http/1.1 304 ") && body.is_empty(), "{head}");
    let mut stream = connect(running.address);
    std::io::Write::write_all(&mut stream, format!("HEAD /?{named} HTTP/1.1\r\nHost: t\r\n\r\n").as_bytes())
        .unwrap();
    let mut head = [0; 4096];
    let length = std::io::Read::read(&mut stream, &mut head).expect("a head");
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    assert!(head.contains("Content-Length: 10\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    std::io::Write::write_all(&mut stream, format!("GET /?{named} HTTP/1.1\r\nHost: t\r\n\r\n").as_bytes())
        .unwrap();
    assert_eq!(read_response(&mut stream).1, FILE.as_bytes(), "and nothing stood between");
}

#[test]
fn nothing_outside_the_folders_leaves() {
    let folder = folders();
    let running = serve(folder.path(), true);
    for named in [
        "X-Sendfile&@/secret",
        "X-Sendfile&@/files/../secret",
        "X-Sendfile&@/files-too/page.txt",
        "X-Sendfile&@/files/sub%20dir/out",
        "X-Sendfile&@/files/.hidden",
        "X-Sendfile&@/files",
        "X-Sendfile&@/files/",
        "X-Sendfile&@/files/sub%20dir",
        "X-Sendfile&files/page.txt",
        "X-Sendfile&page.txt",
        "X-Sendfile&@/files/missing",
        "X-Sendfile&",
        "X-Accel-Redirect&/protected/../secret",
        "X-Accel-Redirect&/protected-too/page.txt",
        "X-Accel-Redirect&/protected/%2e%2e/secret",
        "X-Accel-Redirect&/protected/sub%20dir/out",
        "X-Accel-Redirect&/protected",
        "X-Accel-Redirect&/other/page.txt",
        "X-Accel-Redirect&page.txt",
    ] {
        let (head, body) = submit(&running, &format!("200&{named}"), "");
        assert!(head.starts_with("http/1.1 404 ") || head.starts_with("http/1.1 500 "), "{named}: {head}");
        assert!(
            !body.contains("secret") && !body.contains("hidden") && !body.contains("own body"),
            "{named}: {body}"
        );
        assert!(!head.contains("sendfile") && !head.contains("x-accel-redirect"), "{named}: {head}");
    }
    assert!(exchange(running.address, &get_last("/?200&X-Other&x")).ends_with("the application's own body"));
}

#[test]
fn without_folders_the_fields_are_passed_on() {
    let folder = folders();
    let running = serve(folder.path(), false);
    let (head, body) = submit(&running, "200&X-Sendfile&@/files/page.txt", "");
    assert!(head.contains("x-sendfile: ") && head.contains("x-accel-buffering: no"), "{head}");
    assert_eq!(body, "the application's own body");
}
