//! A server with a control, and requests to the control.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use maitred_control::{Control, DoorSettings, Doors, NoOwner};
use maitred_server::{Server, Settings};
use serde_json::Value;
use tempfile::TempDir;

use super::PATIENCE;

/// The order of the fields matters: the control lets go of the server before the server ends.
pub(crate) struct Controlled {
    pub(crate) control: Control,
    pub(crate) server: Arc<Server>,
    pub(crate) socket: PathBuf,
    _folder: TempDir,
}

impl Controlled {
    pub(crate) fn start(settings: Settings) -> Self {
        Self::with(settings, |_| {})
    }

    /// Starts a server whose control has other doors than the socket.
    pub(crate) fn with(settings: Settings, change: impl FnOnce(&mut DoorSettings)) -> Self {
        let folder = TempDir::new().expect("a folder");
        let socket = folder.path().join("control.sock");
        let mut doors = DoorSettings { socket: Some(socket.clone()), ..DoorSettings::default() };
        change(&mut doors);
        let doors = Doors::open(&doors).expect("the doors open");
        let server = Arc::new(super::start_server(settings).expect("the server starts"));
        let control = Control::start(&server, doors, Arc::new(NoOwner), None).expect("the control starts");
        Self { control, server, socket, _folder: folder }
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.server.addresses()[0].tcp().expect("a port")
    }

    /// The answer to a query.
    pub(crate) fn query(&self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path);
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// The answer to a change.
    pub(crate) fn change(&self, path: &str) -> Value {
        let (status, value) = self.ask("POST", path);
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// Status and answer of a request over the socket.
    pub(crate) fn ask(&self, method: &str, path: &str) -> (u16, Value) {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        answer(&mut stream, &format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"))
    }

    /// Status and answer of a request over the HTTP listener, with further fields.
    pub(crate) fn ask_admin(&self, method: &str, path: &str, fields: &str) -> (u16, Value) {
        let mut stream =
            TcpStream::connect(self.control.doors().admin().expect("a listener")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        answer(&mut stream, &format!("{method} {path} HTTP/1.1\r\n{fields}\r\n"))
    }
}

/// Sends a request and reads the answer to the end of the connection.
pub(crate) fn answer(stream: &mut (impl Read + Write), request: &str) -> (u16, Value) {
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer and the end");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, if body.is_empty() { Value::Null } else { body.parse().expect("JSON") })
}

/// The texts at `key` of the objects of a list.
pub(crate) fn texts(list: &Value, key: &str) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter().map(|item| item[key].as_str().unwrap_or_default().to_owned()).collect()
}
