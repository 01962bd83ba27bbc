//! The loopback's own delay: a thread for each connection, which blocks until something comes and answers it with the
//! time at which it came (see `work::monotonic_ns`), and in `Server-Timing` with how long the kernel had it by then.
//! `echo PORT`; 127.0.0.1 only. The port is said on standard output: with 0 the system chooses it.
//!
//! It parses nothing: whatever one read brings is one request. A yardstick for one client that waits for each answer.

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use maitred_io::clock;
use maitred_io::transport::{Moved, Socket};

fn main() -> io::Result<()> {
    let wrong = || io::Error::new(ErrorKind::InvalidInput, "usage: echo PORT");
    let port: u16 = std::env::args().nth(1).and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    for stream in listener.incoming() {
        let stream = stream?;
        // The thread ends with its connection.
        std::thread::Builder::new().spawn(move || serve(stream))?;
    }
    Ok(())
}

fn serve(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = Socket::from(OwnedFd::from(stream));
    socket.set_receipts(true);
    let mut buffer = [0; 4096];
    while let (Moved::Bytes(_), receipt) = socket.receive_with_receipt(&mut buffer) {
        let now = work::monotonic_ns();
        let text = work::clock_text(now);
        let micros = receipt.map_or(0, |stamp| (now + clock::real_ahead()).saturating_sub(stamp) / 1000);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nServer-Timing: queue;dur={}.{:03}, gate;dur=0\r\n\
             Content-Length: {}\r\n\r\n{text}",
            micros / 1000,
            micros % 1000,
            text.len()
        );
        // Some 150 bytes into an empty buffer: all of them, or the peer is gone.
        if !matches!(socket.send(answer.as_bytes(), false), Moved::Bytes(_)) {
            break;
        }
    }
    Ok(())
}
