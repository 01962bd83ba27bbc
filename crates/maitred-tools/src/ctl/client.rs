//! One request to a running server, and its answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use maitred_client::blocking::{Body, CallError, Client, Request, Settings, Times};
use maitred_client::exchange::Timeouts;
use maitred_client::key::{Key, Place as Server};
use maitred_client::{Error, Malformed};
use maitred_config::{EXIT_FAILURE, EXIT_USAGE, say};
use maitred_control::{Command, Given, read_token};
use maitred_http::{FieldSet, Method};
use serde_json::Value;

/// Longest wait for an answer. A server answers at once; stacks of a process that is stuck take some seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Most bytes of an answer.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// The reason why there is no answer to show.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The server refuses, or does not answer.
    Refused(String),
    /// The user has made a mistake.
    Mistaken(String),
}

impl Failed {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Refused(text) | Self::Mistaken(text) => text,
        }
    }

    /// Tells the user the reason, and returns the exit code.
    pub(crate) fn told(self) -> u8 {
        let code = if matches!(self, Self::Refused(_)) { EXIT_FAILURE } else { EXIT_USAGE };
        say(&self.text());
        code
    }
}

/// The place of the server's control.
pub(crate) enum Place {
    Socket(PathBuf),
    /// Host and port, and the token.
    Address {
        authority: String,
        token: Option<String>,
    },
}

impl Place {
    /// `http://HOST:PORT`, or without the scheme.
    pub(crate) fn of_url(url: &str, token_file: Option<&Path>) -> Result<Self, Failed> {
        let rest = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        if rest.is_empty() || rest.contains(['/', ' ', '\r', '\n']) || Key::of_authority(rest).is_err() {
            let text = format!("'{url}' is no address of a server; write one such as http://127.0.0.1:9000");
            return Err(Failed::Mistaken(text));
        }
        let token = token_file.map(read_token).transpose().map_err(Failed::Mistaken)?;
        Ok(Self::Address { authority: rest.to_owned(), token })
    }

    fn name(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Address { authority, .. } => authority.clone(),
        }
    }
}

/// Asks, and returns the server's answer.
pub(crate) fn ask(place: &Place, command: &Command, given: &Given) -> Result<Value, Failed> {
    let is_no_server = || Failed::Refused(format!("what answers at {} is no maitred server", place.name()));
    let (status, body) = send(place, command, given).map_err(|error| match error {
        CallError::Exchange(Error::Response(Malformed::StatusLine)) => is_no_server(),
        error => Failed::Refused(format!("the server at {} does not answer: {error}", place.name())),
    })?;
    let value: Value = serde_json::from_slice(&body).map_err(|_| is_no_server())?;
    match status {
        200 => Ok(value),
        400 | 404 => Err(Failed::Refused(text_of(&value))),
        401 => Err(Failed::Mistaken(format!("{} wants a token: give --token-file", place.name()))),
        _ => Err(Failed::Refused(text_of(&value))),
    }
}

fn text_of(value: &Value) -> String {
    value["error"].as_str().unwrap_or("the server refuses").to_owned()
}

fn target(command: &Command, given: &Given) -> String {
    let mut target = format!("/{}", command.name.replace(' ', "/"));
    let mut separator = '?';
    for (name, value) in &given.0 {
        target.push(separator);
        target.push_str(&format!("{}={}", escape(name), escape(value)));
        separator = '&';
    }
    target
}

/// Escapes every byte that could have a meaning in a query.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// The status and the body of the answer.
fn send(place: &Place, command: &Command, given: &Given) -> Result<(u16, Vec<u8>), CallError> {
    let mut fields = FieldSet::new();
    let (key, authority) = match place {
        Place::Socket(path) => {
            (Key { place: Server::Socket(path.clone()), ..Key::plain("", 0) }, "localhost")
        }
        Place::Address { authority, token } => {
            if let Some(token) = token {
                fields.push("Authorization", format!("Bearer {token}"));
            }
            (Key::of_authority(authority).map_err(CallError::Resolve)?, &**authority)
        }
    };
    let timeouts = Timeouts { first_byte: Some(LIMIT), progress: Some(LIMIT), ..Timeouts::default() };
    let times = Times { connect: Some(LIMIT), exchange: timeouts, ..Times::default() };
    let client = Client::new(Settings { times, ..Settings::default() });
    let request = Request {
        method: if command.change { Method::Post } else { Method::Get },
        target: &target(command, given),
        authority,
        fields,
        body: Body::Bytes(b""),
        repeatable: None,
    };
    let mut response = client.send(&Arc::new(key), request)?;
    let body = response.read_all(MAX_ANSWER)?;
    Ok((response.head().status.code(), body))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn arguments_arrive_whatever_is_in_them() {
        let given = Given(vec![("url".to_owned(), "/a b?c=ä&d".to_owned())]);
        let command = maitred_control::find("explain").expect("it exists");
        Place::of_url("http://127.0.0.1:9/", None).expect("an address");
        assert_eq!(target(command, &given), "/explain?url=%2Fa%20b%3Fc%3D%C3%A4%26d");
        for wrong in ["ftp://x/y", "a:99999", "http://a:b", "a", ""] {
            assert!(matches!(Place::of_url(wrong, None), Err(Failed::Mistaken(_))), "{wrong}");
        }
    }

    #[test]
    fn an_answer_that_is_none_is_not_taken_for_one() {
        let command = maitred_control::find("status").expect("it exists");
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n{\"a\":1}\n", Ok(1)),
            ("HTTP/1.1 200 OK\r\n\r\n<html>", Err("is no maitred server")),
            ("SSH-2.0-x\r\n", Err("is no maitred server")),
            ("", Err("the server closed the connection without a response")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", Err("before the end of the body's length")),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let authority = listener.local_addr().expect("bound").to_string();
            let server = thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                assert!(stream.read(&mut [0; 1000]).expect("a request") > 0);
                stream.write_all(answer.as_bytes()).expect("a reader");
            });
            let asked = ask(&Place::Address { authority, token: None }, command, &Given::default());
            match (asked, expected) {
                (Ok(value), Ok(a)) => assert_eq!(value["a"], a),
                (Err(failed), Err(text)) => assert!(failed.text().ends_with(text)),
                (asked, _) => panic!("{answer:?}: {asked:?}"),
            }
            server.join().expect("no panic");
        }
    }
}
