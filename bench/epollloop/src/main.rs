//! The bound of `bench/static`: what an answer costs when nothing is looked at.
//!
//! One thread and one edge-triggered epoll descriptor. It counts blank lines in what arrives and writes one
//! prebuilt answer for each. It does not parse, route, log, time out, open files or check anything; a request
//! with a body would be miscounted. It is a yardstick, never a server.
//!
//! With `--work` it is the bound of `bench/strategies`: so many of these loops, each with a thread, an epoll descriptor
//! and a listener of its own (`SO_REUSEPORT`), which do the `work` that the path of a request names before they
//! answer. Of the request it sees only the path, and one read must bring one whole request.
//!
//! Usage: `epollloop PORT [BODY_BYTES]`, `epollloop PORT --work LOOPS` (127.0.0.1 only; the body is 1,024 bytes unless
//! told).

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use work::{Work, Workload};

/// Answers that leave in one write when requests are pipelined.
const MAX_BATCH: usize = 64;
/// One read; the same size as the request buffers of the servers it is compared with, or larger.
const READ_BYTES: usize = 16 * 1024;
/// Epoll data of the listener; connections count from zero.
const LISTENER: u64 = u64::MAX;
/// What a burst of new connections needs; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 4096;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port = number(arguments.next().as_deref(), None)?;
    let port = u16::try_from(port).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
    let next = arguments.next();
    if next.as_deref() != Some("--work") {
        let body = number(next.as_deref(), Some(1024))?;
        return Loop::new(port, Answers::of_a_file(body), None)?.run();
    }
    let loops = number(arguments.next().as_deref(), None)?;
    let workload = Workload::from_environment();
    // All of them listen before one serves.
    let loops = (0..loops).map(|_| Loop::new(port, Answers::of_work(), Some(workload)));
    let loops = loops.collect::<io::Result<Vec<_>>>()?;
    // The first that fails ends the program: a loop less would be another bound.
    let (sender, ended) = mpsc::channel();
    for mut one in loops {
        let sender = sender.clone();
        std::thread::spawn(move || sender.send(one.run()));
    }
    ended.recv().unwrap_or(Ok(()))
}

fn number(argument: Option<&str>, default: Option<usize>) -> io::Result<usize> {
    let usage = "usage: epollloop PORT [BODY_BYTES] | PORT --work LOOPS";
    argument
        .map_or(Ok(default), |text| text.parse().map(Some))
        .ok()
        .flatten()
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, usage))
}

struct Loop {
    epoll: OwnedFd,
    listener: OwnedFd,
    /// A closed connection's place is taken by the next one; a stale event then costs one empty read.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    answers: Answers,
    workload: Option<Workload>,
    buffer: Vec<u8>,
}

impl Loop {
    fn new(port: u16, answers: Answers, workload: Option<Workload>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let listener = listen(port, workload.is_some())?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let (connections, free) = (Vec::new(), Vec::new());
        Ok(Self { epoll, listener, connections, free, answers, workload, buffer: vec![0; READ_BYTES] })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(512);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    key => self.serve(usize::try_from(key).unwrap_or_default(), event.flags),
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        use rustix::net::SocketFlags;
        match rustix::net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => {
                let stream = TcpStream::from(socket);
                stream.set_nodelay(true)?;
                let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                let key = self.free.pop().unwrap_or(self.connections.len());
                epoll::add(&self.epoll, &stream, EventData::new_u64(key as u64), interest)?;
                if key == self.connections.len() {
                    self.connections.push(None);
                }
                if let Some(place) = self.connections.get_mut(key) {
                    *place = Some(Connection::new(stream));
                }
                Ok(())
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::CONNABORTED) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn serve(&mut self, key: usize, flags: EventFlags) {
        let Some(place) = self.connections.get_mut(key) else { return };
        let Some(connection) = place else { return };
        let ends = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let turn = connection.turn(&mut self.buffer, &self.answers, self.workload.as_ref(), ends);
        if !turn.unwrap_or(false) {
            *place = None;
            self.free.push(key);
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// How far a blank line has been seen: 0 to 3 bytes of CR LF CR LF.
    seen: u8,
    /// Bytes of answers owed to the peer.
    owed: usize,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, seen: 0, owed: 0 }
    }

    /// One edge: everything there is read and answered. `ends`: the peer has shut down. False when it has gone.
    fn turn(
        &mut self,
        buffer: &mut [u8],
        answers: &Answers,
        workload: Option<&Workload>,
        ends: bool,
    ) -> io::Result<bool> {
        loop {
            if !self.pay(answers)? {
                return Ok(true);
            }
            match self.stream.read(buffer) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    let bytes = buffer.get(..length).unwrap_or_default();
                    if let Some(workload) = workload
                        && let Some(work) = target(bytes).and_then(Work::of)
                    {
                        workload.perform(work);
                    }
                    self.owed += self.count(bytes) * answers.one;
                    // A short read has drained the socket (unless its end is there too); what comes later is a
                    // new edge.
                    if length < buffer.len() && !ends {
                        self.pay(answers)?;
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what is owed; true when nothing is left.
    fn pay(&mut self, answers: &Answers) -> io::Result<bool> {
        while self.owed > 0 {
            match self.stream.write(answers.owed(self.owed)) {
                Ok(length) => self.owed -= length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Blank lines that end in `bytes`; one may have begun in an earlier read.
    fn count(&mut self, bytes: &[u8]) -> usize {
        // Nearly always one read is one whole request.
        if self.seen == 0 && bytes.ends_with(b"\r\n\r\n") && bytes.len() < 512 {
            return bytes.windows(4).filter(|window| window == b"\r\n\r\n").count();
        }
        let mut lines = 0;
        for &byte in bytes {
            self.seen = match (self.seen, byte) {
                (0 | 2, b'\r') | (1 | 3, b'\n') => self.seen + 1,
                (1 | 3, b'\r') => 1,
                _ => 0,
            };
            if self.seen == 4 {
                lines += 1;
                self.seen = 0;
            }
        }
        lines
    }
}

/// The target of the request that begins there: what stands between the first two spaces.
fn target(bytes: &[u8]) -> Option<&[u8]> {
    bytes.split(|&byte| byte == b' ').nth(1)
}

/// The same answer many times over, so that a pipelined batch is one write.
struct Answers {
    bytes: Vec<u8>,
    one: usize,
}

impl Answers {
    /// As many fields as a static file server sends, so that the bytes on the wire are comparable.
    fn of_a_file(body: usize) -> Self {
        let fields = "Content-Type: application/octet-stream\r\n\
                      Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n\
                      ETag: \"00000000-400\"\r\nAccept-Ranges: bytes\r\n";
        Self::new(fields, &vec![b'x'; body])
    }

    /// What the handlers of `bench/strategies` answer.
    fn of_work() -> Self {
        Self::new("Content-Type: text/plain\r\n", work::HELLO.as_bytes())
    }

    fn new(fields: &str, body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: epollloop\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Content-Length: {}\r\n{fields}\r\n",
            body.len()
        );
        let answer = [head.as_bytes(), body].concat();
        Self { one: answer.len(), bytes: answer.repeat(MAX_BATCH) }
    }

    /// The next bytes of a debt: it may begin in the middle of an answer.
    fn owed(&self, owed: usize) -> &[u8] {
        let start = (self.one - owed % self.one) % self.one;
        let end = self.bytes.len().min(start + owed);
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// `shared`: others of this program listen there too.
fn listen(port: u16, shared: bool) -> io::Result<OwnedFd> {
    use rustix::net::{
        AddressFamily, SocketAddrV4, SocketFlags, SocketType, bind, listen, socket_with, sockopt,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        Connection::new(TcpStream::connect(address).expect("a connection"))
    }

    #[test]
    fn blank_lines_are_counted_across_reads() {
        let mut connection = connection();
        assert_eq!(connection.count(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n"), 2);
        assert_eq!(connection.count(b"GET / HTTP/1.1\r\n\r"), 0);
        assert_eq!(connection.count(b"\nGET"), 1);
        assert_eq!(connection.count(b" / HTTP/1.1\r\r\n\r\n"), 1);
    }

    #[test]
    fn the_target_is_what_stands_between_the_first_two_spaces() {
        assert_eq!(target(b"GET /cpu/20 HTTP/1.1\r\n\r\n"), Some(&b"/cpu/20"[..]));
        assert_eq!(target(b"\r\n"), None);
    }

    #[test]
    fn a_debt_that_begins_inside_an_answer_ends_at_an_answer() {
        let answers = Answers::of_a_file(10);
        assert_eq!(answers.owed(answers.one).len(), answers.one);
        assert_eq!(answers.owed(3), answers.bytes.get(answers.one - 3..answers.one).expect("the tail"));
        assert_eq!(answers.owed(answers.one * 1000).len(), answers.one * MAX_BATCH);
        assert_eq!(answers.owed(answers.one * 1000 + 5).len() % answers.one, 5);
    }
}
