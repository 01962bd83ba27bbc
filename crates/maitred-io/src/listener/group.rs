//! Several sockets at one address, each with a queue of its own (SO_REUSEPORT, socket(7)), and the choice among them
//! for new connections.
//!
//! Promises: while there is a program at the group ([`steer`](ReusePortGroup::steer)), a connection goes only to
//! sockets that it names, whatever others there are. No other process has the address when the group is made.
//!
//! Leaves out: connections of a socket whose process has gone: another process that has the socket accepts them. Unix
//! sockets have no such groups.

use std::io::{self, ErrorKind};
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use super::{Address, BindError, Listener, SocketOptions, bind_tcp};

/// The most sockets of a group. The program looks at them one after the other for each connection that begins.
pub const MAX_GROUP: usize = 256;

/// The sockets of a group, in the order in which they began to listen, which is that of their numbers.
pub struct ReusePortGroup {
    sockets: Vec<Listener>,
}

impl ReusePortGroup {
    /// `count` sockets that listen at `address`; connections go to all of them by chance.
    ///
    /// # Errors
    /// As of [`Listener::bind`]; it is no TCP address; `count` is not from 1 to [`MAX_GROUP`]; the system has no such groups.
    pub fn bind(address: &Address, options: &SocketOptions, count: usize) -> Result<Self, BindError> {
        let group = Self { sockets: Listener::bind_group(address, options, count)? };
        let all: Vec<usize> = (0..count).collect();
        group.steer(&all).map_err(|error| {
            let what = format!("cannot lead connections to one of several sockets at {address} ({error})");
            BindError::new(error.kind(), what, "let the workers share one socket")
        })?;
        Ok(group)
    }

    /// The sockets of a group that another process has bound, in their order, at `address`; they are led to as before.
    pub fn adopt(
        sockets: Vec<OwnedFd>,
        address: &Address,
        options: &SocketOptions,
    ) -> Result<Self, BindError> {
        let adopted = sockets.into_iter().map(|socket| Listener::adopt(socket, address, options));
        Ok(Self { sockets: adopted.collect::<Result<_, _>>()? })
    }

    /// The sockets; that of number i is that of worker i and its successors.
    pub fn sockets(&self) -> &[Listener] {
        &self.sockets
    }

    /// Leads connections that begin from now on to the sockets with these numbers only, each by chance. Others keep the
    /// connections that have begun: the caller has to see that they are accepted.
    ///
    /// # Errors
    /// There is no such socket, or none is named; nothing has changed. The system refuses.
    pub fn steer(&self, present: &[usize]) -> io::Result<()> {
        let known = present.iter().all(|number| *number < self.sockets.len());
        let Some(socket) = self.sockets.first().filter(|_| known && !present.is_empty()) else {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "a socket is named that is not in the group",
            ));
        };
        attach(socket.socket.as_raw_fd(), &program(present))
    }

    /// The address of all, with the port that the system chose.
    pub fn address(&self) -> Option<&Address> {
        self.sockets.first().map(Listener::address)
    }

    /// The descriptor of one, to be handed to a worker.
    pub fn descriptor(&self, number: usize) -> Option<BorrowedFd<'_>> {
        self.sockets.get(number).map(AsFd::as_fd)
    }
}

impl Listener {
    /// `count` sockets that listen at one TCP address, each with a queue of its own; the kernel spreads connections over them by
    /// their addresses, until a program does. Another process of the same user may add sockets later: it gets none of the
    /// connections while [a program](ReusePortGroup::steer) is there.
    pub fn bind_group(
        address: &Address,
        options: &SocketOptions,
        count: usize,
    ) -> Result<Vec<Self>, BindError> {
        let Address::Tcp(asked) = *address else {
            return Err(BindError::invalid(
                format!("{address} cannot have several sockets, as TCP addresses can"),
                "let the workers share one socket",
            ));
        };
        if !(1..=MAX_GROUP).contains(&count) {
            return Err(BindError::invalid(
                format!("{address} cannot have {count} sockets"),
                format!("take a number from 1 to {MAX_GROUP}"),
            ));
        }
        // If the address is bound without the option, no other socket has it. With the option, another socket of the
        // same user could have it.
        drop(bind_tcp(asked, options, false)?);
        let mut sockets: Vec<Self> = Vec::with_capacity(count);
        for _ in 0..count {
            // The first one has the port that the system chose.
            let at: SocketAddr = sockets.first().and_then(|first| first.address.tcp()).unwrap_or(asked);
            let (socket, own) = bind_tcp(at, options, true)?;
            let (queue, corks) = (options.queue(), options.cork.unwrap_or(true));
            sockets.push(Self::new(socket, Address::Tcp(own), None, (queue, corks)));
        }
        Ok(sockets)
    }
}

/// A program that answers the number of a socket: one of those that are `present`, by chance. It is asked for each connection that
/// begins. Classic BPF knows neither how busy a process is nor whose turn it is.
fn program(present: &[usize]) -> Vec<libc::sock_filter> {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let number = |value: usize| u32::try_from(value).unwrap_or(0);
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM).cast_unsigned();
    let mut steps = vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, random),
        step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, 0, 0, number(present.len())),
    ];
    for (place, socket) in present.iter().enumerate() {
        steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number(place)));
        steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, number(*socket)));
    }
    // Never reached: a remainder is one of the places.
    steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, number(present[0])));
    steps
}

/// Attaches a program to the group of a socket, in the place of the one that is there (SO_ATTACH_REUSEPORT_CBPF, socket(7)); it needs
/// no privilege.
fn attach(socket: libc::c_int, steps: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(steps.len()).map_err(|_| ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: steps.as_ptr().cast_mut() };
    // SAFETY: the descriptor is that of a socket that is borrowed by the caller; the pointer is to a value of the size said, whose own
    // pointer is to so many steps. The call only reads both, and keeps neither.
    let failed = unsafe {
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            ptr::from_ref(&program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if failed != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
