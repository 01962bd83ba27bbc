//! What several processes do that share a socket and block in accept(2), for comparison with those that wait for events: the kernel
//! wakes the one that has waited longest. One connection at a time each, one request a connection.
//!
//! `blocking PORT PROCESSES` serves until its standard input ends or a signal ends it; the answer says who gave it, and when the work
//! (`work` says which) began and ended.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitCode, Stdio};

use work::{HELLO, Work, Workload, monotonic_ns};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The argument of the processes that serve; their standard input is the socket.
const SERVES: &str = "--serve";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &words[..] {
        [SERVES] => serve(),
        [port, processes] => supervise(port, processes),
        _ => Err("PORT PROCESSES".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "blocking: {error}");
            ExitCode::FAILURE
        }
    }
}

fn supervise(port: &str, processes: &str) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?))?;
    // The standard library lets 128 wait.
    rustix::net::listen(&listener, 4096)?;
    let start = |_| -> Result<Child> {
        let socket = OwnedFd::from(listener.try_clone()?);
        let mut program = Command::new(std::env::current_exe()?);
        Ok(program.arg(SERVES).stdin(Stdio::from(socket)).stdout(Stdio::piped()).spawn()?)
    };
    let mut children = (0..processes.parse::<usize>()?).map(start).collect::<Result<Vec<_>>>()?;
    // They end with this process: none of them can write to it any more.
    for child in &mut children {
        child.wait()?;
    }
    Ok(())
}

fn serve() -> Result<()> {
    let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    let workload = Workload::from_environment();
    std::thread::spawn(|| {
        // Whoever has started this one is gone.
        let gone = wait_until_gone();
        std::process::exit(i32::from(gone.is_err()));
    });
    loop {
        let (stream, _) = listener.accept()?;
        // The peer may have gone meanwhile.
        let _ = answer(stream, &workload);
    }
}

/// Waits until nobody reads this process's standard output.
fn wait_until_gone() -> io::Result<()> {
    let output = io::stdout();
    let mut source = [rustix::event::PollFd::new(&output, rustix::event::PollFlags::empty())];
    rustix::event::poll(&mut source, None)?;
    Ok(())
}

fn answer(mut stream: TcpStream, workload: &Workload) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut some = [0; 1024];
        match stream.read(&mut some)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&some[..count]),
        }
    }
    let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let begin = monotonic_ns();
    workload.perform(Work::of(target).unwrap_or(Work::Nothing));
    let (own, end) = (std::process::id(), monotonic_ns());
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\
         X-Worker: {own}\r\nX-Begin: {begin}\r\nX-End: {end}\r\n\r\n{HELLO}",
        HELLO.len()
    );
    stream.write_all(answer.as_bytes())
}
