//! One request to a running server, and its answer.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use maitred_config::{EXIT_FAILURE, EXIT_USAGE, say};
use maitred_control::{Command, Given, read_token};
use serde_json::Value;

/// Longest wait for an answer. A server answers at once; stacks of a process that is stuck take some seconds.
const LIMIT: Duration = Duration::from_secs(60);

const MAX_ANSWER: u64 = 64 * 1024 * 1024;

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
        if rest.is_empty() || rest.contains(['/', ' ', '\r', '\n']) || !rest.contains(':') {
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
    let request = request(place, command, given);
    let answer = send(place, request.as_bytes()).map_err(|error| {
        Failed::Refused(format!("the server at {} does not answer: {error}", place.name()))
    })?;
    let (status, value) = parse(&answer)
        .ok_or_else(|| Failed::Refused(format!("what answers at {} is no maitred server", place.name())))?;
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

fn request(place: &Place, command: &Command, given: &Given) -> String {
    let method = if command.change { "POST" } else { "GET" };
    let mut target = format!("/{}", command.name.replace(' ', "/"));
    let mut separator = '?';
    for (name, value) in &given.0 {
        target.push(separator);
        target.push_str(&format!("{}={}", escape(name), escape(value)));
        separator = '&';
    }
    let (host, token) = match place {
        Place::Socket(_) => ("localhost", None),
        Place::Address { authority, token } => (&**authority, token.as_deref()),
    };
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{token}Content-Length: 0\r\n\r\n")
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

fn send(place: &Place, request: &[u8]) -> io::Result<Vec<u8>> {
    match place {
        Place::Socket(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.set_write_timeout(Some(LIMIT))?;
            exchange(stream, request)
        }
        Place::Address { authority, .. } => {
            let address = authority.to_socket_addrs()?.next();
            let address = address.ok_or_else(|| io::Error::other("the name has no address"))?;
            let stream = TcpStream::connect_timeout(&address, LIMIT)?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.set_write_timeout(Some(LIMIT))?;
            exchange(stream, request)
        }
    }
}

fn exchange(mut stream: impl Read + Write, request: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
    Ok(answer)
}

/// Status and value of an answer that ends with its connection.
fn parse(answer: &[u8]) -> Option<(u16, Value)> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_arrive_whatever_is_in_them() {
        let given = Given(vec![("url".to_owned(), "/a b?c=ä&d".to_owned())]);
        let command = maitred_control::find("explain").expect("it exists");
        let place = Place::of_url("http://127.0.0.1:9/", None).expect("an address");
        assert_eq!(
            request(&place, command, &given),
            "GET /explain?url=%2Fa%20b%3Fc%3D%C3%A4%26d HTTP/1.1\r\nHost: 127.0.0.1:9\r\nContent-Length: 0\r\n\r\n"
        );
        assert!(matches!(Place::of_url("ftp://x/y", None), Err(Failed::Mistaken(_))));
    }

    #[test]
    fn an_answer_that_is_none_is_not_taken_for_one() {
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n{\"a\":1}\n").is_some_and(|(status, _)| status == 200));
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n<html>").is_none());
        assert!(parse(b"SSH-2.0").is_none());
    }
}
