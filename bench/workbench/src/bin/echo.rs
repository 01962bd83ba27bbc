//! The loopback's own delay: a thread for each connection, which blocks until something comes and answers it with the
//! time at which it came (see `work::monotonic_ns`). `echo PORT`; 127.0.0.1 only.
//!
//! It parses nothing: whatever one read brings is one request. A yardstick for one client that waits for each answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

fn main() -> io::Result<()> {
    let wrong = || io::Error::new(ErrorKind::InvalidInput, "usage: echo PORT");
    let port: u16 = std::env::args().nth(1).and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    for stream in listener.incoming() {
        let stream = stream?;
        // The thread ends with its connection.
        std::thread::Builder::new().spawn(move || serve(stream))?;
    }
    Ok(())
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer)? > 0 {
        let text = work::clock_text(work::monotonic_ns());
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(answer.as_bytes())?;
    }
    Ok(())
}
