use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;

use rustix::net::sockopt;

use super::super::*;
use super::accepted;
use crate::transport::tcp::get_number;
use crate::transport::{Moved, SEND_AHEAD};

fn listening(options: &SocketOptions) -> (Listener, SocketAddr) {
    let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into()), options).expect("a listener");
    let Address::Tcp(address) = *listener.address() else { panic!("no port") };
    (listener, address)
}

/// A listener, its client and the accepted socket.
fn connected(options: &SocketOptions) -> (Listener, TcpStream, Socket) {
    let (listener, address) = listening(options);
    let client = TcpStream::connect(address).expect("connects");
    let (socket, remote) = accepted(&listener);
    assert_eq!(remote, Remote::Ip(client.local_addr().expect("bound")));
    assert_eq!(socket.local_address(), Some(address));
    (listener, client, socket)
}

fn refused(address: Address, options: &SocketOptions) -> BindError {
    Listener::bind(&address, options).err().expect("refused")
}

#[test]
fn an_accepted_socket_keeps_little_in_the_kernel_for_a_peer_that_does_not_read() {
    let (_listener, _peer, socket) = connected(&SocketOptions::default());
    let limit = || get_number(&socket, libc::TCP_NOTSENT_LOWAT).expect("Linux");
    assert_eq!(limit(), SEND_AHEAD);
    socket.set_send_ahead(false);
    assert_eq!(limit(), 0);
    socket.set_send_ahead(true);
    assert_eq!(limit(), SEND_AHEAD);
}

#[test]
fn defaults_are_those_of_the_system() {
    let (listener, _client, socket) = connected(&SocketOptions::default());
    let ActiveOptions { backlog, defer_accept, fast_open, no_delay, cork, keep_alive } = listener.active();
    assert_eq!(backlog, options::cut(4096));
    assert_eq!((defer_accept, fast_open, keep_alive), (None, None, None));
    assert_eq!((no_delay, cork), (Some(true), Some(true)));
    assert_eq!(sockopt::tcp_nodelay(&socket), Ok(true));
    assert_eq!(sockopt::socket_keepalive(&socket), Ok(false));
}

#[test]
fn no_delay_is_the_listeners_and_the_connections() {
    for no_delay in [true, false] {
        let options = SocketOptions { no_delay: Some(no_delay), ..SocketOptions::default() };
        let (listener, _client, socket) = connected(&options);
        assert_eq!(sockopt::tcp_nodelay(&listener), Ok(no_delay));
        assert_eq!(listener.active().no_delay, Some(no_delay));
        assert_eq!(sockopt::tcp_nodelay(&socket), Ok(no_delay));
    }
}

#[test]
fn keep_alive_is_the_listeners_and_the_connections() {
    let keep_alive = KeepAlive { idle_s: 33, interval_s: 11, count: 4 };
    let options = SocketOptions { keep_alive: Some(keep_alive), ..SocketOptions::default() };
    let (listener, _client, socket) = connected(&options);
    assert_eq!(listener.active().keep_alive, Some(keep_alive));
    assert_eq!(sockopt::socket_keepalive(&socket), Ok(true));
    assert_eq!(sockopt::tcp_keepidle(&socket), Ok(std::time::Duration::from_secs(33)));
    assert_eq!(sockopt::tcp_keepintvl(&socket), Ok(std::time::Duration::from_secs(11)));
    assert_eq!(sockopt::tcp_keepcnt(&socket), Ok(4));
}

#[test]
fn keep_alive_out_of_range_is_named() {
    let keep_alive = KeepAlive { idle_s: 33, interval_s: 11, count: 4 };
    for (wrong, name) in [
        (KeepAlive { idle_s: 0, ..keep_alive }, "idle_s cannot be 0: take one from 1 to 32767"),
        (
            KeepAlive { interval_s: 32768, ..keep_alive },
            "interval_s cannot be 32768: take one from 1 to 32767",
        ),
        (KeepAlive { count: 128, ..keep_alive }, "count cannot be 128: take one from 1 to 127"),
    ] {
        let options = SocketOptions { keep_alive: Some(wrong), ..SocketOptions::default() };
        let error = refused(Address::Tcp(([127, 0, 0, 1], 0).into()), &options);
        assert_eq!(error.to_string(), format!("keep_alive: {name}"));
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    // The kernel takes the limits that are said.
    let most = KeepAlive { idle_s: 32767, interval_s: 32767, count: 127 };
    let options = SocketOptions { keep_alive: Some(most), ..SocketOptions::default() };
    assert_eq!(listening(&options).0.active().keep_alive, Some(most));
}

#[test]
fn a_connection_without_bytes_is_held_back_where_that_is_asked_for() {
    let options = SocketOptions { defer_accept: Some(40), ..SocketOptions::default() };
    let (listener, address) = listening(&options);
    let told = listener.active().defer_accept.expect("it is on");
    assert!(told >= 40, "{told}");
    let mut client = TcpStream::connect(address).expect("connects");
    assert!(matches!(listener.accept(), Accepted::Empty));
    client.write_all(b"GET").expect("connected");
    accepted(&listener);
    let off = SocketOptions { defer_accept: Some(0), ..SocketOptions::default() };
    assert_eq!(connected(&off).0.active().defer_accept, None);
}

#[test]
fn fast_open_is_shown_with_the_systems_permission() {
    let options = SocketOptions { fast_open: Some(7), ..SocketOptions::default() };
    let (listener, _client, _socket) = connected(&options);
    let bits = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").ok();
    let enabled = bits.map(|bits| bits.trim().parse::<u32>().expect("a number") & 2 != 0);
    assert_eq!(listener.active().fast_open, Some(FastOpen { queue: 7, enabled }));
    let off = SocketOptions { fast_open: Some(0), ..SocketOptions::default() };
    assert_eq!(listening(&off).0.active().fast_open, None);
}

#[test]
fn the_backlog_is_as_configured_up_to_the_systems_limit() {
    for asked in [5, 1 << 20, u32::MAX] {
        let options = SocketOptions { backlog: Some(asked), ..SocketOptions::default() };
        let (listener, _) = listening(&options);
        assert_eq!(listener.active().backlog, options::cut(options.queue()), "{asked}");
        assert_eq!(listener.backlog().expect("Linux").max, listener.active().backlog);
    }
}

#[test]
fn an_address_in_use_is_an_error_with_its_remedy() {
    let (_listener, address) = listening(&SocketOptions::default());
    let error = refused(address.into(), &SocketOptions::default());
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(
        error.to_string(),
        format!("{address} is in use: stop who listens there, or take another port")
    );
    // RFC 5737: no machine has it.
    let error = refused(Address::Tcp(([192, 0, 2, 1], 0).into()), &SocketOptions::default());
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    assert_eq!(error.what(), "192.0.2.1:0 is not an address of this machine");
    assert!(!error.remedy().is_empty());
}

/// How many bytes the client has before the second of two sends, if the first one announces more. The kernel keeps them
/// for a fifth of a second at most, which a busy machine may let pass.
fn has_before_the_rest(socket: &Socket, client: &mut TcpStream, all: bool) -> usize {
    let sent = if all {
        socket.send_all(&[IoSlice::new(b"he"), IoSlice::new(b"ad")], true)
    } else {
        socket.send(b"head", true)
    };
    assert!(matches!(sent, Moved::Bytes(4)), "{sent:?}");
    client.set_nonblocking(true).expect("a socket");
    let before = client.peek(&mut [0; 16]).unwrap_or(0);
    client.set_nonblocking(false).expect("a socket");
    assert!(matches!(socket.send(b"body", false), Moved::Bytes(4)));
    client.read_exact(&mut [0; 8]).expect("all of it");
    before
}

#[test]
fn a_head_is_kept_for_the_next_bytes_unless_the_listener_forbids_it() {
    let off = SocketOptions { cork: Some(false), ..SocketOptions::default() };
    let on = SocketOptions { cork: Some(true), ..SocketOptions::default() };
    for (options, kept) in [(SocketOptions::default(), true), (on, true), (off, false)] {
        let (listener, mut client, socket) = connected(&options);
        assert_eq!(listener.active().cork, Some(kept));
        for all in [false, true] {
            let mut has = (0..20).map(|_| has_before_the_rest(&socket, &mut client, all));
            if kept {
                assert!(has.any(|before| before == 0), "{options:?}");
            } else {
                assert!(has.all(|before| before == 4), "{options:?}");
            }
        }
    }
}
