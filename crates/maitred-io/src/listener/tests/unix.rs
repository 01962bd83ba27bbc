use std::fs::{self, File};
use std::io::{BufRead, BufReader, IoSlice, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as StdAddress, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::super::*;
use super::accepted;
use crate::poller::{Events, Interest, Poller};
use crate::transport::{Moved, Transport};

fn bind(address: UnixAddress) -> Result<Listener, BindError> {
    Listener::bind(&Address::Unix(address), &SocketOptions::default())
}

fn listening(path: &Path) -> Listener {
    bind(UnixAddress::path(path)).expect("a listener")
}

fn refused(address: UnixAddress) -> BindError {
    bind(address).err().expect("refused")
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    (folder, path)
}

/// Names in the folder.
fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).expect("there");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("plain")).collect()
}

fn own() -> Credentials {
    Credentials {
        pid: i32::try_from(std::process::id()).expect("small"),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    }
}

/// Receives up to `count` bytes, or to the end.
fn received(socket: &Socket, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        match socket.receive_more(&mut bytes, count) {
            Moved::Bytes(_) => {}
            Moved::Blocked => std::thread::yield_now(),
            Moved::End => break,
            Moved::Failed(error) => panic!("{error}"),
        }
    }
    bytes
}

#[test]
fn the_file_has_its_permissions_and_nothing_else_is_left_in_the_folder() {
    let (folder, path) = folder();
    for (asked, mode) in [(None, 0o660), (Some(0o666), 0o666), (Some(0o600), 0o600), (Some(0o777), 0o777)] {
        let address = UnixAddress { mode: asked, ..UnixAddress::path(&path) };
        let listener = bind(address.clone()).expect("a listener");
        assert_eq!(*listener.address(), Address::Unix(address));
        let found = fs::symlink_metadata(&path).expect("a file");
        assert_eq!(found.permissions().mode() & 0o7777, mode);
        assert_eq!(found.uid(), own().uid);
        UnixStream::connect(&path).expect("it listens");
        assert_eq!(names(&folder), ["s"]);
        listener.remove_file().unwrap();
        assert!(names(&folder).is_empty());
    }
    let error = refused(UnixAddress { mode: Some(0o1777), ..UnixAddress::path(&path) });
    assert!(error.to_string().contains("0o1777 are no permissions"), "{error}");
}

#[test]
fn the_file_belongs_to_the_configured_owner() {
    let (folder, path) = folder();
    let address = UnixAddress { owner: Some(12345), group: Some(12346), ..UnixAddress::path(&path) };
    if own().uid == 0 {
        let _listener = bind(address).expect("a listener");
        let found = fs::symlink_metadata(&path).expect("a file");
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (12345, 12346, 0o660));
    } else {
        let error = refused(address);
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.what().starts_with("cannot give away the file of unix:"), "{error}");
        assert!(names(&folder).is_empty());
    }
    let error = refused(UnixAddress { owner: Some(u32::MAX), ..UnixAddress::path(&path) });
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_file_of_a_dead_server_is_replaced() {
    let (folder, path) = folder();
    drop(UnixListener::bind(&path).expect("bound"));
    let first = listening(&path);
    drop(first);
    let second = listening(&path);
    assert_eq!(names(&folder), ["s"]);
    let _client = UnixStream::connect(&path).expect("it listens");
    accepted(&second);
}

#[test]
fn of_servers_that_begin_at_once_one_gets_the_path() {
    const SERVERS: usize = 8;
    let (folder, path) = folder();
    drop(UnixListener::bind(&path).expect("bound"));
    for _round in 0..20 {
        let begin = Barrier::new(SERVERS);
        let bound: Vec<_> = std::thread::scope(|scope| {
            let servers = [(); SERVERS].map(|()| {
                scope.spawn(|| {
                    begin.wait();
                    bind(UnixAddress::path(&path))
                })
            });
            servers.into_iter().map(|server| server.join().expect("no panic")).collect()
        });
        let (listeners, refused): (Vec<_>, Vec<_>) = bound.into_iter().partition(Result::is_ok);
        assert_eq!(listeners.len(), 1);
        for error in refused.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        }
        let listener = listeners.into_iter().find_map(Result::ok).expect("one");
        assert_eq!(names(&folder), ["s"]);
        let _client = UnixStream::connect(&path).expect("it listens");
        accepted(&listener);
    }
}

#[test]
fn a_held_folder_is_used_after_a_while() {
    let (folder, path) = folder();
    let held = File::open(folder.path()).expect("there");
    held.lock().expect("free");
    let listener = listening(&path);
    UnixStream::connect(&path).expect("it listens");
    drop(listener);
}

/// The other process of [`a_live_server_is_named`]: it listens until its input ends.
#[test]
fn another_process() {
    let Some(path) = std::env::var_os("MAITRED_IO_TEST_SOCKET") else { return };
    let _listener = listening(Path::new(&path));
    std::io::stderr().write_all(b"listening\n").expect("a pipe");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_live_server_is_named() {
    let (_folder, path) = folder();
    let mut other = Command::new(std::env::current_exe().expect("a program"))
        .args(["--exact", "listener::tests::unix::another_process", "--nocapture"])
        .env("MAITRED_IO_TEST_SOCKET", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(other.stderr.take().expect("piped")).lines();
    assert!(lines.any(|line| line.expect("text") == "listening"));
    let error = refused(UnixAddress::path(&path));
    let command = fs::read_to_string(format!("/proc/{}/comm", other.id())).expect("it runs");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(
        error.to_string(),
        format!(
            "unix:{} is in use by process {} ({}): stop it, or take another path",
            path.display(),
            other.id(),
            command.trim_end()
        )
    );
    drop(other.stdin.take());
    assert!(other.wait().expect("it ends").success());
    let _successor = listening(&path);
}

#[test]
fn a_live_server_is_left_alone_also_when_its_queue_is_full() {
    let (folder, path) = folder();
    let options = SocketOptions { backlog: Some(1), ..SocketOptions::default() };
    let first = Listener::bind(&UnixAddress::path(&path).into(), &options).expect("a listener");
    assert_eq!(first.active(), ActiveOptions { backlog: 1, ..ActiveOptions::default() });
    assert_eq!(first.backlog(), None);
    let error = refused(UnixAddress::path(&path));
    assert!(error.what().ends_with(&format!("is in use by this process itself ({})", own().pid)), "{error}");
    let address = rustix::net::SocketAddrUnix::new(&path).expect("short");
    let waiting: Vec<_> = std::iter::from_fn(|| local::knock(&address).ok()).take(100).collect();
    assert!(waiting.len() < 100, "the queue is full");
    let error = refused(UnixAddress::path(&path));
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.what().ends_with("is in use by another process"), "{error}");
    assert_eq!(names(&folder), ["s"]);
    accepted(&first);
    // A socket that knows no connections.
    let (_folder, path) = self::folder();
    let _other = std::os::unix::net::UnixDatagram::bind(&path).expect("bound");
    assert_eq!(refused(UnixAddress::path(&path)).kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_file_that_is_no_socket_stays() {
    let (folder, path) = folder();
    let check = |what: &str| {
        let error = refused(UnixAddress::path(&path));
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.what().ends_with(&format!("there is {what}, and no socket")), "{error}");
        assert_eq!(names(&folder), ["s"]);
    };
    fs::write(&path, "precious").expect("written");
    check("a regular file");
    assert_eq!(fs::read(&path).expect("there"), b"precious");
    fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/nowhere", &path).expect("linked");
    check("a symbolic link");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    check("a folder");
}

#[test]
fn a_successors_file_is_not_removed() {
    let (folder, path) = folder();
    let first = listening(&path);
    fs::remove_file(&path).expect("removed");
    let second = listening(&path);
    first.remove_file().unwrap();
    assert_eq!(names(&folder), ["s"]);
    second.remove_file().unwrap();
    assert!(names(&folder).is_empty());
    second.remove_file().unwrap();
}

#[test]
fn a_path_has_at_most_107_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_length =
        |length: usize| folder.path().join("x".repeat(length - folder.path().as_os_str().len() - 1));
    let path = of_length(107);
    let listener = listening(&path);
    UnixStream::connect(&path).expect("it listens");
    listener.remove_file().unwrap();
    let error = refused(UnixAddress::path(of_length(108)));
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        error
            .to_string()
            .ends_with(": a path of 108 bytes; that of a Unix socket has 1 to 107: take a shorter path"),
        "{error}"
    );
    assert!(names(&folder).is_empty());
    // A long folder and a short name: the name before the move does not fit.
    let deep = of_length(105);
    fs::create_dir(&deep).expect("made");
    let path = deep.join("s");
    let listener = listening(&path);
    UnixStream::connect(&path).expect("it listens");
    listener.remove_file().unwrap();
    assert_eq!(fs::read_dir(&deep).expect("there").count(), 0);
}

#[test]
fn a_path_without_a_folder_or_a_name_is_told() {
    let (folder, _) = folder();
    let missing = folder.path().join("run");
    let error = refused(UnixAddress::path(missing.join("s")));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.remedy(), format!("make the folder {}", missing.display()));
    for path in ["/", "..", "run/"] {
        let error = refused(UnixAddress::path(path));
        assert_eq!(error.what(), format!("unix:{path} names no file"));
    }
    assert!(refused(UnixAddress::path("")).what().contains("a path of 0 bytes"));
    assert_eq!(refused(UnixAddress::path("/tmp/a\0b")).kind(), ErrorKind::InvalidInput);
}

#[test]
fn options_of_tcp_are_refused() {
    let (folder, path) = folder();
    let none = SocketOptions::default();
    for (options, name) in [
        (SocketOptions { defer_accept: Some(1), ..none }, "defer_accept"),
        (SocketOptions { fast_open: Some(1), ..none }, "fast_open"),
        (SocketOptions { no_delay: Some(true), ..none }, "no_delay"),
        (SocketOptions { cork: Some(true), ..none }, "cork"),
        (
            SocketOptions { keep_alive: Some(KeepAlive { idle_s: 1, interval_s: 1, count: 1 }), ..none },
            "keep_alive",
        ),
    ] {
        let error = Listener::bind(&UnixAddress::path(&path).into(), &options).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(
            error.what(),
            format!("unix:{} cannot have {name}, which is an option of TCP", path.display())
        );
    }
    assert!(names(&folder).is_empty());
}

#[test]
fn an_abstract_name_is_listened_on_and_named_when_it_is_in_use() {
    let (folder, _) = folder();
    // No other test has the folder's name.
    let name = folder.path().to_str().expect("plain").to_owned();
    let listener = bind(UnixAddress::abstract_name(name.as_bytes())).expect("a listener");
    let address = StdAddress::from_abstract_name(&name).expect("short");
    let _client = UnixStream::connect_addr(&address).expect("it listens");
    assert_eq!(accepted(&listener).1, Remote::Unix(Some(own())));
    let error = refused(UnixAddress::abstract_name(name.as_bytes()));
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(
        error.to_string(),
        format!(
            "unix:@{name} is in use by this process itself ({}): stop it, or take another name",
            own().pid
        )
    );
    listener.remove_file().unwrap();
    drop(listener);
    bind(UnixAddress::abstract_name(name.as_bytes())).expect("free again");
    let error = refused(UnixAddress { mode: Some(0o600), ..UnixAddress::abstract_name("x") });
    assert!(error.what().contains("has no file"), "{error}");
    assert!(refused(UnixAddress::abstract_name("x".repeat(108))).what().contains("a name of 108 bytes"));
    assert!(refused(UnixAddress::abstract_name("")).what().contains("a name of 0 bytes"));
    // 107 bytes fit.
    bind(UnixAddress::abstract_name(format!("{name:x<107}"))).expect("a listener");
}

#[test]
fn bytes_go_both_ways_and_the_peer_is_known() {
    let (_folder, path) = folder();
    let listener = listening(&path);
    listener.set_receipts(true);
    assert!(matches!(listener.accept(), Accepted::Empty));
    let mut client = UnixStream::connect(&path).expect("it listens");
    let (socket, remote) = accepted(&listener);
    assert_eq!(remote, Remote::Unix(Some(own())));
    client.write_all(b"one").expect("connected");
    client.write_all(b"two").expect("connected");
    assert_eq!(received(&socket, 6), b"onetwo");
    let mut buffer = [0; 16];
    assert!(matches!(socket.receive(&mut buffer), Moved::Blocked));
    assert!(matches!(socket.send(b"three", true), Moved::Bytes(5)));
    assert!(matches!(socket.send_all(&[IoSlice::new(b"fo"), IoSlice::new(b"ur")], false), Moved::Bytes(4)));
    socket.shutdown_write();
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an end");
    assert_eq!(answer, "threefour");
    client.write_all(b"!").expect("the other direction is open");
    drop(client);
    assert_eq!(received(&socket, 2), b"!");
    assert!(matches!(socket.receive(&mut buffer), Moved::End));
    assert!(matches!(socket.send(b"gone", false), Moved::Failed(_)));
}

#[test]
fn options_of_tcp_are_without_effect() {
    let (_folder, path) = folder();
    let listener = listening(&path);
    let mut client = UnixStream::connect(&path).expect("it listens");
    let (socket, _) = accepted(&listener);
    assert_eq!(socket.local_address(), None);
    assert_eq!(socket.unacknowledged(), 0);
    assert!(matches!(socket.send(&[b'x'; 1000], false), Moved::Bytes(1000)));
    assert!(socket.unacknowledged() >= 1000);
    client.read_exact(&mut [0; 1000]).expect("sent");
    assert_eq!(socket.unacknowledged(), 0);
    socket.set_send_ahead(false);
    socket.set_send_ahead(true);
    socket.set_receipts(true);
    client.write_all(b"bytes").expect("connected");
    let mut buffer = [0; 16];
    let (moved, stamp) = socket.receive_with_receipt(&mut buffer);
    assert!(matches!(moved, Moved::Bytes(5)));
    assert_eq!(stamp, None);
    assert!(matches!(socket.send(b"last", false), Moved::Bytes(4)));
    socket.reset_when_closed();
    drop(socket);
    let mut rest = String::new();
    client.read_to_string(&mut rest).expect("an end");
    assert_eq!(rest, "last");
}

#[test]
fn a_short_read_empties_it_and_an_edge_tells_of_more() {
    let (_folder, path) = folder();
    let listener = listening(&path);
    let poller = Poller::new().expect("a poller");
    let mut client = UnixStream::connect(&path).expect("it listens");
    let mut transport = Transport::Plain(accepted(&listener).0);
    assert!(transport.empties_by_a_short_read());
    transport.watch(&poller, 7, Interest::Read).expect("watched");
    let mut buffer = [0; 64];
    let mut events = Events::with_capacity(4);
    for round in 1..=3 {
        // Several pieces are read as one, as of TCP.
        for piece in [&b"first "[..], b"second ", b"third"] {
            client.write_all(piece).expect("connected");
        }
        poller.wait(&mut events, Some(super::PATIENCE)).expect("a queue");
        assert_eq!(events.iter().map(|(token, _)| token).collect::<Vec<_>>(), [7], "{round}");
        assert!(matches!(transport.receive(&mut buffer), Moved::Bytes(18)), "{round}");
        assert!(matches!(transport.receive(&mut buffer), Moved::Blocked), "{round}");
    }
}

#[test]
fn descriptors_that_a_peer_passes_are_not_taken() {
    let (_folder, path) = folder();
    let listener = listening(&path);
    let client = UnixStream::connect(&path).expect("it listens");
    let socket = Socket::from(accepted(&listener).0.as_fd().try_clone_to_owned().expect("descriptors"));
    socket.set_receipts(true);
    for with_receipt in [false, true] {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let passed = [writer.as_fd()];
        let mut room = [MaybeUninit::uninit(); 64];
        let mut control = SendAncillaryBuffer::new(&mut room);
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
        let parts = [IoSlice::new(b"take this")];
        rustix::net::sendmsg(&client, &parts, &mut control, SendFlags::empty()).expect("connected");
        drop(writer);
        let mut buffer = [0; 64];
        let moved = if with_receipt {
            socket.receive_with_receipt(&mut buffer).0
        } else {
            socket.receive(&mut buffer)
        };
        assert!(matches!(moved, Moved::Bytes(9)));
        // No descriptor of the other end is left.
        assert_eq!(reader.read(&mut buffer).expect("no error"), 0);
    }
}

#[test]
fn a_file_is_sent_whole_also_to_a_slow_reader() {
    const LENGTH: usize = 3 << 20;
    let (folder, path) = folder();
    let listener = listening(&path);
    let mut client = UnixStream::connect(&path).expect("it listens");
    let (socket, _) = accepted(&listener);
    let content: Vec<u8> = (0..LENGTH).map(|place| (place % 251) as u8).collect();
    let mut file = File::create_new(folder.path().join("file")).expect("made");
    file.write_all(&content).expect("written");
    file.rewind().expect("a file");
    let file = File::open(folder.path().join("file")).expect("there");
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        client.read_to_end(&mut all).expect("an end");
        all
    });
    let mut offset = 0;
    loop {
        match socket.send_file(&file, offset, 1 << 20) {
            Moved::Bytes(count) => offset += count as u64,
            Moved::Blocked => std::thread::yield_now(),
            Moved::End => break,
            Moved::Failed(error) => panic!("{error}"),
        }
    }
    assert_eq!(offset, LENGTH as u64);
    drop(socket);
    assert!(reader.join().expect("no panic") == content);
}
