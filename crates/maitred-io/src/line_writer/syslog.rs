//! Lines as messages of syslog (RFC 5424), one datagram each: to the local socket or over UDP (RFC 5426).

use super::Severity;
use crate::clock;
use rustix::io::Errno;
use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// The longest message; a longer line is cut. Every receiver in use takes it, and on the way over a network it is in six
/// parts at most (RFC 5426, section 3.2, asks for 2 KiB).
const MAX_MESSAGE: usize = 8192;

/// The facility of system daemons (RFC 5424, section 6.2.1).
const DAEMON: u8 = 3;

pub(super) struct Syslog {
    address: Address,
    socket: Option<OwnedFd>,
    host: String,
    header: String,
    message: Vec<u8>,
}

enum Address {
    Local(PathBuf),
    Udp(SocketAddr),
}

impl Syslog {
    pub(super) fn local(path: PathBuf) -> io::Result<Self> {
        Self::new(Address::Local(path))
    }

    pub(super) fn udp(address: SocketAddr) -> io::Result<Self> {
        Self::new(Address::Udp(address))
    }

    fn new(address: Address) -> io::Result<Self> {
        let name = rustix::system::uname();
        let host = name.nodename().to_string_lossy();
        let host: String = host.chars().filter(char::is_ascii_graphic).take(255).collect();
        let host = if host.is_empty() { "-".to_owned() } else { host };
        let mut syslog = Self { address, socket: None, host, header: String::new(), message: Vec::new() };
        syslog.connect()?;
        Ok(syslog)
    }

    pub(super) fn connect(&mut self) -> io::Result<()> {
        self.socket = None;
        self.socket = Some(match &self.address {
            Address::Local(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                socket.into()
            }
            Address::Udp(address) => {
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
                    SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                socket.into()
            }
        });
        Ok(())
    }

    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    /// Sends one line. A syslog that has been started again is connected to again.
    pub(super) fn send(&mut self, severity: Severity, line: &[u8]) -> Result<(), Errno> {
        if self.socket.is_none() {
            self.connect().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        self.compose(severity, line);
        match self.try_send(self.message.len()) {
            // One line would stop all others; no receiver refuses the length that all have to take (RFC 5424, 6.1).
            Err(Errno::MSGSIZE) => self.try_send(480),
            // Over UDP it tells of an earlier line, which is gone.
            Err(Errno::CONNREFUSED) if matches!(self.address, Address::Udp(_)) => {
                self.try_send(self.message.len())
            }
            Err(error @ (Errno::CONNREFUSED | Errno::NOTCONN | Errno::CONNRESET | Errno::PIPE)) => {
                self.socket = None;
                // EPIPE would lose the batch.
                Err(if error == Errno::PIPE { Errno::NOTCONN } else { error })
            }
            other => other,
        }
    }

    fn try_send(&self, length: usize) -> Result<(), Errno> {
        let socket = self.socket.as_ref().ok_or(Errno::NOTCONN)?;
        let message = &self.message[..length.min(self.message.len())];
        let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
        match rustix::net::send(socket, message, flags) {
            // As long as a full queue of the receiver (unix(7)).
            Err(Errno::NOBUFS) => Err(Errno::AGAIN),
            other => other.map(drop),
        }
    }

    /// `<PRI>1 TIMESTAMP HOST maitred PID - - line`
    fn compose(&mut self, severity: Severity, line: &[u8]) {
        self.header.clear();
        // Writing to a String does not fail.
        let _ = write!(self.header, "<{}>1 ", DAEMON * 8 + severity as u8);
        write_utc(&mut self.header, clock::unix_micros());
        let _ = write!(self.header, " {} maitred {} - - ", self.host, std::process::id());
        self.message.clear();
        self.message.extend_from_slice(self.header.as_bytes());
        self.message.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        self.message.truncate(MAX_MESSAGE);
    }
}

/// RFC 3339 with microseconds.
fn write_utc(out: &mut String, unix_micros: u64) {
    let micros = i64::try_from(unix_micros).unwrap_or(i64::MAX);
    let _ = write!(out, "{:.6}", jiff::Timestamp::from_microsecond(micros).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000007Z"),
            (951_782_400, "2000-02-29T00:00:00.000007Z"),
            (1_000_000_000, "2001-09-09T01:46:40.000007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000007Z"),
        ] {
            let mut out = String::new();
            write_utc(&mut out, seconds * 1_000_000 + 7);
            assert_eq!(out, text);
        }
    }
}
