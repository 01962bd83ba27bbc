//! The workbench and the echo answer over real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Ended when the test is over, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(stream: &mut TcpStream, path: &str) {
    // In one piece: the echo takes whatever one read brings for a request.
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).expect("it reads");
}

/// The answer's status and body; its body must have this length.
fn answer(stream: &mut TcpStream, length: usize) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut status = String::new();
    reader.read_line(&mut status).expect("a status line");
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("a field");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (status, String::from_utf8(body).expect("text"))
}

#[test]
fn the_workbench_works_by_path() {
    let mut workbench = Command::new(env!("CARGO_BIN_EXE_workbench"))
        .args(["native", "--listen", "127.0.0.1:0"])
        .env("BENCH_TURNS", "1000")
        .stderr(Stdio::piped())
        .spawn()
        .map(Running)
        .expect("the workbench starts");
    let errors = workbench.0.stderr.take().expect("piped");
    let address = BufReader::new(errors)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("http://")?.1.split([' ', '/']).next()?.to_owned()))
        .expect("a start-up line");
    let mut stream = TcpStream::connect(&address).expect("it listens");
    for path in ["/", "/cpu/20", "/sleep/1"] {
        ask(&mut stream, path);
        let (status, body) = answer(&mut stream, work::HELLO.len());
        assert_eq!((status.trim_end(), body.as_str()), ("HTTP/1.1 200 OK", work::HELLO), "{path}");
    }
    ask(&mut stream, "/large/2");
    let (status, body) = answer(&mut stream, 2 << 20);
    assert_eq!((status.trim_end(), body.trim_end_matches('x')), ("HTTP/1.1 200 OK", ""));
    let before = work::monotonic_ns();
    ask(&mut stream, "/clock");
    let (_, body) = answer(&mut stream, work::clock_text(before).len());
    assert!((before..=work::monotonic_ns()).contains(&body.parse().expect("a number")));
    ask(&mut stream, "/nothing");
    assert_eq!(answer(&mut stream, 23).0.trim_end(), "HTTP/1.1 404 Not Found");
}

#[test]
fn the_echo_answers_with_its_time() {
    let mut echo = Command::new(env!("CARGO_BIN_EXE_echo"))
        .arg("0")
        .stdout(Stdio::piped())
        .spawn()
        .map(Running)
        .expect("the echo starts");
    let mut line = String::new();
    BufReader::new(echo.0.stdout.take().expect("piped")).read_line(&mut line).expect("its port");
    let port: u16 = line.trim().parse().expect("a port");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let before = work::monotonic_ns();
    ask(&mut stream, "/clock");
    let (status, body) = answer(&mut stream, work::clock_text(before).len());
    assert_eq!(status.trim_end(), "HTTP/1.1 200 OK");
    assert!((before..=work::monotonic_ns()).contains(&body.parse().expect("a number")));
    drop(echo);
}
