//! Options of a listening socket and of the connections it accepts.
//!
//! Promises: configured options are set before the socket listens, or nothing listens; the kernel's values of them can
//! be read. Accepted sockets have TCP_NODELAY, TCP_NOTSENT_LOWAT and keep-alive from their listener on Linux, which
//! saves system calls for each connection.
//!
//! Leaves out: buffer sizes, and options that change while it listens.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;

use super::BindError;
use crate::transport::SEND_AHEAD;
use crate::transport::tcp::{get_number, set_number};

/// The longest queue of connections that wait to be accepted, where nothing else is asked for; the kernel cuts it to
/// net.core.somaxconn (4,096 by default since Linux 5.4).
pub const BACKLOG: u32 = 4096;

/// Options of a listening socket and of the connections it accepts. None: as the system has it, or we.
///
/// All but the first are TCP's: a Unix socket with one of them is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Connections that may wait to be accepted (listen(2)); none: [`BACKLOG`].
    pub backlog: Option<u32>,
    /// Seconds that a connection without bytes is held back, so that no thread is woken for it (TCP_DEFER_ACCEPT,
    /// tcp(7)). The kernel rounds up to the times of its repeated answers: 1, 3, 7, 15 and so on. 0 is off, as none.
    pub defer_accept: Option<u32>,
    /// Connections whose first packet brings bytes and that are not complete yet: how many there may be (TCP_FASTOPEN, tcp(7)).
    /// 0 is off, as none. net.ipv4.tcp_fastopen has to let servers do it.
    pub fast_open: Option<u32>,
    /// Whether small segments are sent at once (TCP_NODELAY, tcp(7)); none: they are.
    pub no_delay: Option<bool>,
    /// Whether the head of a file's response is kept for the first segment of the file, which is sent at once behind it (MSG_MORE,
    /// send(2)); none: it is.
    pub cork: Option<bool>,
    /// Whether the kernel asks silent peers if they are there (SO_KEEPALIVE, socket(7)); none: it does not.
    pub keep_alive: Option<KeepAlive>,
}

/// When a silent peer is asked whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Seconds of silence before the first question (TCP_KEEPIDLE), from 1 to 32767.
    pub idle_s: u32,
    /// Seconds between questions (TCP_KEEPINTVL), from 1 to 32767.
    pub interval_s: u32,
    /// Questions without an answer that end the connection (TCP_KEEPCNT), from 1 to 127.
    pub count: u32,
}

/// The options of a listening socket, as the kernel reports them. None: off, or not an option of this socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveOptions {
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// Seconds that a connection without bytes is held back.
    pub defer_accept: Option<u32>,
    /// First packets that bring bytes.
    pub fast_open: Option<FastOpen>,
    /// Whether small segments are sent at once; none on a Unix socket.
    pub no_delay: Option<bool>,
    /// Whether heads are kept for the first segment of a file; none on a Unix socket.
    pub cork: Option<bool>,
    /// When silent peers are asked.
    pub keep_alive: Option<KeepAlive>,
}

/// The state of TCP_FASTOPEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpen {
    /// Connections that are not complete yet.
    pub queue: u32,
    /// Whether the system lets servers do it (bit 2 of net.ipv4.tcp_fastopen): otherwise the option has no effect. None where
    /// the system does not say.
    pub enabled: Option<bool>,
}

impl FastOpen {
    /// Why it has no effect, and the remedy; none if it has one, as far as is known.
    pub fn trouble(&self) -> Option<&'static str> {
        (self.enabled == Some(false))
            .then_some("net.ipv4.tcp_fastopen lets no server do it: sysctl -w net.ipv4.tcp_fastopen=3")
    }
}

impl SocketOptions {
    pub(super) fn queue(&self) -> i32 {
        i32::try_from(self.backlog.unwrap_or(BACKLOG)).unwrap_or(i32::MAX)
    }

    pub(super) fn of_tcp(&self) -> Option<&'static str> {
        [
            (self.defer_accept.is_some(), "defer_accept"),
            (self.fast_open.is_some(), "fast_open"),
            (self.no_delay.is_some(), "no_delay"),
            (self.cork.is_some(), "cork"),
            (self.keep_alive.is_some(), "keep_alive"),
        ]
        .into_iter()
        .find_map(|(asked, name)| asked.then_some(name))
    }

    pub(super) fn set(&self, socket: impl AsFd) -> Result<(), BindError> {
        let socket = socket.as_fd();
        let no_delay = self.no_delay.unwrap_or(true);
        sockopt::set_tcp_nodelay(socket, no_delay).map_err(|error| refused("no_delay", no_delay, error))?;
        // Where the kernel does not know it, it holds more.
        let _ = set_number(socket, libc::TCP_NOTSENT_LOWAT, SEND_AHEAD);
        if let Some(seconds) = self.defer_accept {
            set_number(socket, libc::TCP_DEFER_ACCEPT, seconds)
                .map_err(|error| refused("defer_accept", seconds, error))?;
        }
        if let Some(queue) = self.fast_open {
            set_number(socket, libc::TCP_FASTOPEN, queue)
                .map_err(|error| refused("fast_open", queue, error))?;
        }
        if let Some(KeepAlive { idle_s, interval_s, count }) = self.keep_alive {
            let seconds = |seconds: u32| Duration::from_secs(seconds.into());
            within("keep_alive: idle_s", idle_s, 32767)?;
            within("keep_alive: interval_s", interval_s, 32767)?;
            within("keep_alive: count", count, 127)?;
            sockopt::set_tcp_keepidle(socket, seconds(idle_s))
                .and_then(|()| sockopt::set_tcp_keepintvl(socket, seconds(interval_s)))
                .and_then(|()| sockopt::set_tcp_keepcnt(socket, count))
                .and_then(|()| sockopt::set_socket_keepalive(socket, true))
                .map_err(|error| {
                    refused("keep_alive", format_args!("{idle_s}, {interval_s}, {count}"), error)
                })?;
        }
        Ok(())
    }
}

fn within(name: &str, value: u32, most: u32) -> Result<(), BindError> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(BindError::invalid(format!("{name} cannot be {value}"), format!("take one from 1 to {most}")))
}

fn refused(name: &str, value: impl std::fmt::Display, error: impl Into<io::Error>) -> BindError {
    let error = error.into();
    BindError::new(
        error.kind(),
        format!("the system refuses {name} {value} ({error})"),
        "leave the option out, or take another value",
    )
}

/// The options of a TCP socket that listens, as the kernel reports them, without its queue and options that are given
/// with each call.
pub(super) fn active(socket: impl AsFd) -> ActiveOptions {
    let socket = socket.as_fd();
    let number = |option| get_number(socket, option).filter(|value| *value > 0);
    let seconds =
        |told: rustix::io::Result<Duration>| Some(u32::try_from(told.ok()?.as_secs()).unwrap_or(u32::MAX));
    let keep_alive = || {
        Some(KeepAlive {
            idle_s: seconds(sockopt::tcp_keepidle(socket))?,
            interval_s: seconds(sockopt::tcp_keepintvl(socket))?,
            count: sockopt::tcp_keepcnt(socket).ok()?,
        })
    };
    ActiveOptions {
        backlog: 0,
        defer_accept: number(libc::TCP_DEFER_ACCEPT),
        fast_open: number(libc::TCP_FASTOPEN)
            .map(|queue| FastOpen { queue, enabled: setting("ipv4/tcp_fastopen").map(|bits| bits & 2 != 0) }),
        no_delay: sockopt::tcp_nodelay(socket).ok(),
        cork: None,
        keep_alive: sockopt::socket_keepalive(socket).unwrap_or(false).then(keep_alive).flatten(),
    }
}

/// The queue that listen(2) makes of `wanted`.
pub(super) fn cut(wanted: i32) -> u32 {
    let wanted = u32::try_from(wanted).unwrap_or(0);
    setting("core/somaxconn").map_or(wanted, |most| wanted.min(most))
}

/// A number below /proc/sys/net.
fn setting(name: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/sys/net/{name}")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}
