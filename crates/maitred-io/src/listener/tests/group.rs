use std::net::TcpStream;

use super::super::*;
use super::PATIENCE;

fn loopback() -> Address {
    Address::Tcp(([127, 0, 0, 1], 0).into())
}

fn group(count: usize) -> (ReusePortGroup, SocketAddr) {
    let group = ReusePortGroup::bind(&loopback(), &SocketOptions::default(), count).expect("a group");
    let address = group.address().and_then(Address::tcp).expect("a port");
    (group, address)
}

/// How many connections wait at each socket, once there are `count` in all.
fn waiting(group: &ReusePortGroup, count: u32) -> Vec<u32> {
    let begun = std::time::Instant::now();
    loop {
        let all: Vec<u32> =
            group.sockets().iter().map(|socket| socket.backlog().expect("Linux").waiting).collect();
        if all.iter().sum::<u32>() == count {
            return all;
        }
        assert!(begun.elapsed() < PATIENCE, "{all:?}");
    }
}

fn connect(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(address).expect("it listens")).collect()
}

#[test]
fn connections_go_to_the_sockets_that_are_named_and_only_there() {
    let (group, address) = group(4);
    assert!(group.sockets().iter().all(|socket| socket.address().tcp() == Some(address)));
    let mut clients = connect(address, 200);
    let all = waiting(&group, 200);
    // Each one is left out by chance once in 10^25 runs.
    assert!(all.iter().all(|waiting| *waiting > 0), "{all:?}");
    group.steer(&[1, 3]).expect("there are such");
    clients.extend(connect(address, 100));
    let two = waiting(&group, 300);
    assert_eq!((two[0], two[2]), (all[0], all[2]));
    assert!(two[1] > all[1] && two[3] > all[3], "{all:?} {two:?}");
    group.steer(&[2]).expect("there is one");
    clients.extend(connect(address, 50));
    let one = waiting(&group, 350);
    assert_eq!(one, [two[0], two[1], two[2] + 50, two[3]]);
    // Connections of the other sockets can still be accepted there.
    let held = |socket: &Listener| {
        std::iter::from_fn(|| match socket.accept() {
            Accepted::Connection(socket, _) => Some(socket),
            _ => None,
        })
        .count()
    };
    assert_eq!(group.sockets().iter().map(held).sum::<usize>(), 350);
}

#[test]
fn no_socket_is_led_to_that_is_not_there() {
    let (group, address) = group(2);
    group.steer(&[1]).expect("there is one");
    for wrong in [&[][..], &[2], &[0, 7]] {
        assert_eq!(group.steer(wrong).err().map(|error| error.kind()), Some(ErrorKind::InvalidInput));
    }
    let _clients = connect(address, 20);
    assert_eq!(waiting(&group, 20), [0, 20]);
}

#[test]
fn an_address_in_use_gets_no_group() {
    // Also where the other one would share it.
    let (group, address) = group(2);
    let refused = |address: &Address, count| {
        let options = SocketOptions::default();
        ReusePortGroup::bind(address, &options, count).err().expect("refused")
    };
    assert_eq!(refused(&Address::Tcp(address), 2).kind(), ErrorKind::AddrInUse);
    assert_eq!(group.sockets().len(), 2);
    assert_eq!(refused(&loopback(), 0).what(), "127.0.0.1:0 cannot have 0 sockets");
    assert_eq!(refused(&loopback(), MAX_GROUP + 1).remedy(), "take a number from 1 to 256");
    let unix = Address::from(UnixAddress::abstract_name("group"));
    assert_eq!(refused(&unix, 2).what(), "unix:@group cannot have several sockets, as TCP addresses can");
}

#[test]
fn the_largest_group_is_led_to() {
    let (group, address) = group(MAX_GROUP);
    group.steer(&[MAX_GROUP - 1]).expect("there is one");
    let _clients = connect(address, 5);
    let all = waiting(&group, 5);
    assert_eq!(all[MAX_GROUP - 1], 5);
}
