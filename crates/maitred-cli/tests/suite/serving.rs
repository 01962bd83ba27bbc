//! The built binary while it serves: start-up lines, signals, exit codes, a port in use.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};

use maitred_testkit::client::Client;
use rustix::net::{self, AddressFamily, SocketType, sockopt};
use tempfile::TempDir;

use crate::harness::{Serving, maitred, site};

/// Sends a request whose answer does not fit in the socket buffers, so that it runs until the client reads it.
fn unread_download(folder: &TempDir, serving: &Serving) -> Client {
    let large = fs::File::create(folder.path().join("site/large")).expect("a file");
    large.set_len(1 << 30).expect("a sparse file");
    let mut stream = serving.connect();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("the status line");
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[test]
fn a_folder_is_served_until_a_signal_drains_it() {
    let folder = site();
    let mut serving = Serving::start(&folder, &["site/"]);
    assert_eq!(
        serving.start_up,
        [
            format!("maitred {} serving the folder site/", env!("CARGO_PKG_VERSION")),
            format!("http://{}  HTTP/1.1, HTTP/2", serving.address),
        ]
    );
    let mut stream = serving.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    serving.signal("TERM");
    serving.wait_for("SIGTERM: draining");
    serving.wait_for("drained");
    assert_eq!(serving.end().code(), Some(0));
}

#[test]
fn a_folder_without_index_says_at_its_start_what_would_show_it() {
    let folder = site();
    fs::create_dir(folder.path().join("plain")).expect("a folder");
    fs::write(folder.path().join("plain/a.txt"), "a").expect("a file");
    let told = |arguments: &[&str]| {
        let serving = Serving::start(&folder, arguments);
        serving
            .start_up
            .iter()
            .any(|line| line.contains("plain/ has no index.html, so / is answered with 404; --listing"))
    };
    assert!(told(&["plain/"]));
    assert!(!told(&["plain/", "--listing"]) && !told(&["site/", "--static", "/plain=plain/"]));
    assert!(Serving::start(&folder, &["plain/", "--listing"]).fetch("/").contains("a.txt"));
}

#[test]
fn the_limit_of_open_files_counts_the_connections_of_all_poll_groups() {
    let folder = site();
    let arguments = ["site/", "--poll-groups=2", "--metrics-path=/metrics", "--max-threads=2"];
    let mut serving = Serving::start_with_descriptors(&folder, 100, &arguments);
    let mut asking = serving.connect();
    let mut clients: Vec<_> = (0..119).map(|_| serving.connect()).collect();
    // An eighth of the limit, and at least 32 files, is kept for other uses.
    let line = serving.wait_for("cannot accept");
    assert!(line.contains("the limit of open files is near; 68 connections are open"), "{line}");
    let figures = figures(&mut asking);
    let gauge = |name: &str| figures.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    assert_eq!((gauge("maitred_connections "), gauge("maitred_poll_groups ")), (Some("68"), Some("2")));
    // Waiting connections are accepted when others have closed.
    let mut last = clients.pop().expect("one of them");
    drop(clients);
    last.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    last.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
}

/// Fetches the page of figures on this connection and keeps the connection open.
fn figures(stream: &mut Client) -> String {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let mut answer = String::new();
    let mut bytes = BufReader::new(stream);
    while !answer.ends_with("\r\n\r\n") {
        assert!(bytes.read_line(&mut answer).expect("a head") > 0, "{answer}");
    }
    let length = answer.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    let mut body = vec![0; length.parse().expect("a number")];
    bytes.read_exact(&mut body).expect("a body");
    String::from_utf8(body).expect("text")
}

#[test]
fn a_static_mount_needs_no_application() {
    let folder = site();
    let mut serving = Serving::start(&folder, &["--static", "/files=site"]);
    assert_eq!(serving.start_up[1], "/files  files of site");
    let mut stream = serving.connect();
    stream.write_all(b"GET /files/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    serving.signal("INT");
    assert_eq!(serving.end().code(), Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = site();
    let mut serving = Serving::start(&folder, &["site/"]);
    let stream = unread_download(&folder, &serving);
    serving.signal("TERM");
    serving.wait_for("SIGTERM: draining");
    serving.signal("INT");
    serving.wait_for("SIGINT: ending at once");
    assert_eq!(serving.end().code(), Some(130));
    drop(stream);
}

#[test]
fn a_drain_that_takes_too_long_is_cut_off() {
    let folder = site();
    let mut serving = Serving::start(&folder, &["site/", "--drain-timeout", "0.05"]);
    let stream = unread_download(&folder, &serving);
    serving.signal("TERM");
    serving.wait_for("drain-timeout is over");
    assert_eq!(serving.end().code(), Some(1));
    drop(stream);
}

/// Returns the binary's error about an address that is in use.
fn refusal(address: SocketAddr) -> String {
    let folder = site();
    let output =
        maitred(&folder, &["site/", "--listen", &address.to_string()]).output().expect("the binary runs");
    let line = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn a_port_in_use_names_its_holder() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = holder.local_addr().expect("bound");
    let line = refusal(address);
    assert!(line.starts_with(&format!("maitred: --listen: {address} is in use by ")), "{line}");
    if cfg!(target_os = "linux") {
        assert!(line.contains(&format!("process {} (", std::process::id())), "{line}");
    }
}

#[test]
fn a_port_is_not_shared_with_a_holder_that_would_share_it() {
    let holder = net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    sockopt::set_socket_reuseport(&holder, true).expect("SO_REUSEPORT");
    sockopt::set_socket_reuseaddr(&holder, true).expect("SO_REUSEADDR");
    net::bind(&holder, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    net::listen(&holder, 1).expect("listening");
    let address = net::getsockname(&holder).expect("bound").try_into().expect("IPv4");
    assert!(refusal(address).contains(" is in use by "));
}
