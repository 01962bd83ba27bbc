//! The built binary while it serves.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

use maitred_testkit::client::{Client, by_tls, certificate, learn};
use tempfile::TempDir;

/// The binary in `folder`, with its control socket there and without the environment of the test run.
pub(crate) fn maitred(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maitred"));
    command.args(arguments).current_dir(folder).env("XDG_RUNTIME_DIR", folder.path());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MAITRED_")) {
        command.env_remove(name);
    }
    command
}

/// A binary that serves; dropping this ends it.
pub(crate) struct Serving {
    pub(crate) process: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) address: SocketAddr,
    pub(crate) start_up: Vec<String>,
    _certificate: Option<TempDir>,
}

/// Has the binary speak TLS. Returns the folder of the files.
fn with_certificate(command: &mut Command) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let (own, key) = certificate();
    for (variable, name, text) in [("MAITRED_TLS_CERT", "own.pem", own), ("MAITRED_TLS_KEY", "own.key", key)]
    {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("a file");
        command.env(variable, file);
    }
    folder
}

impl Serving {
    /// Starts the binary in `folder` on a free port and waits for its start-up line.
    pub(crate) fn start(folder: &TempDir, arguments: &[&str]) -> Self {
        Self::start_as(maitred(folder, arguments))
    }

    /// Starts the binary with this limit of open files.
    pub(crate) fn start_with_descriptors(folder: &TempDir, descriptors: u32, arguments: &[&str]) -> Self {
        let program = maitred(folder, arguments);
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -n $0 && exec \"$@\"", &descriptors.to_string()])
            .arg(program.get_program());
        command.args(program.get_args()).current_dir(folder);
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self::start_as(command)
    }

    pub(crate) fn start_as(mut command: Command) -> Self {
        command.args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        // Files of a certificate are read at the start.
        let certificate = by_tls().then(|| with_certificate(&mut command));
        let mut process = command.spawn().expect("the binary runs");
        let mut stderr = BufReader::new(process.stderr.take().expect("a pipe"));
        let mut start_up = Vec::new();
        let address = loop {
            let line = next_line(&mut stderr);
            assert!(!line.is_empty(), "ended before it served: {start_up:?}");
            let address = ["http://", "https://"].iter().find_map(|scheme| line.strip_prefix(scheme));
            let address = address.and_then(|rest| rest.split(' ').next()?.parse().ok());
            let tls = line.starts_with("https://");
            start_up.push(line);
            if let Some(address) = address {
                learn(address, tls);
                break address;
            }
        };
        Self { process, stderr, address, start_up, _certificate: certificate }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = Client::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream
    }

    /// The body of the answer to GET, on a connection of its own.
    pub(crate) fn fetch(&self, path: &str) -> String {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.process.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// The next line on standard error that contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let line = next_line(&mut self.stderr);
            assert!(!line.is_empty(), "ended before it said '{text}'");
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn end(&mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn next_line(stderr: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    stderr.read_line(&mut line).expect("UTF-8");
    line.trim_end().to_owned()
}

pub(crate) fn site() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    // The server makes a control socket only in a folder that is closed to other users.
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).expect("changed");
    fs::create_dir(folder.path().join("site")).expect("a folder");
    fs::write(folder.path().join("site/index.html"), "hello").expect("a file");
    folder
}
