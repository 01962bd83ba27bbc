//! The example answers over a real socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

#[test]
fn the_example_answers_every_path() {
    let mut example = Command::new(env!("CARGO_BIN_EXE_hello"))
        .arg("127.0.0.1:0")
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let mut line = String::new();
    let errors = example.stderr.take().expect("piped");
    BufReader::new(errors).read_line(&mut line).expect("a start-up line");
    let address = line.trim().strip_prefix("http://").expect("an address");
    for path in ["/", "/any/path?query"] {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers and closes");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nHello from Rust\n"), "{answer}");
    }
    example.kill().expect("it runs until it is ended");
    example.wait().expect("it ends");
}
