//! The holder of an address that could not be bound, as far as /proc tells (Linux, proc(5)): the
//! sockets of all processes are visible, their owners only for processes whose descriptors this user may read.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    process: u32,
    name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.process == std::process::id() {
            f.write_str("this process itself")
        } else {
            write!(f, "process {} ({})", self.process, self.name)
        }
    }
}

/// The process that listens on `address`, or on a wildcard that covers it.
pub(crate) fn find(address: SocketAddr) -> Option<Holder> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| listeners(&table, address))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        has_descriptor(&entry.path(), &inodes).then(|| Holder {
            process,
            name: std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default().trim().to_owned(),
        })
    })
}

fn has_descriptor(process: &Path, inodes: &[String]) -> bool {
    let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        std::fs::read_link(descriptor.path())
            .is_ok_and(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str()))
    })
}

/// The inodes of the listening sockets in `table` (the text of /proc/net/tcp or tcp6) that
/// conflict with `address`.
fn listeners(table: &str, address: SocketAddr) -> Vec<String> {
    const LISTEN: &str = "0A";
    let conflicting = |line: &str| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let (local, _remote, state) = (columns.next()?, columns.next()?, columns.next()?);
        let inode = columns.nth(5)?;
        (state == LISTEN && conflict(parse(local)?, address)).then(|| inode.to_owned())
    };
    table.lines().skip(1).filter_map(conflicting).collect()
}

/// Sockets of maitred are IPv6-only; an IPv6 wildcard of another program may cover IPv4 as well.
fn conflict(held: SocketAddr, wanted: SocketAddr) -> bool {
    let covers =
        |one: IpAddr, other: IpAddr| one == other || one.is_unspecified() && one.is_ipv4() == other.is_ipv4();
    held.port() == wanted.port()
        && (covers(held.ip(), wanted.ip())
            || covers(wanted.ip(), held.ip())
            || held.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED))
}

/// `0100007F:1F40`: the address as 32-bit words of this machine's byte order, the port as a number.
fn parse(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = [0; 16];
    let words = address.as_bytes().chunks(8);
    let count = words.len();
    for (word, place) in words.zip(bytes.chunks_exact_mut(4)) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let address = match count {
        1 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        4 => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn only_listening_sockets_that_conflict_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0
   1: 0100007F:1F40 0100007F:8888 01 00000000:00000000 00:00000000 00000000  1000        0 222 1 0 20 0 0 10 -1
   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0
   3: 00000000000000000000000000000000:1F41 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 444 1 0 100 0 0 10 0
";
        let found = |text: &str| listeners(table, text.parse().expect(text));
        assert_eq!(found("127.0.0.1:8000"), ["111"]);
        assert_eq!(found("0.0.0.0:8000"), ["111"]);
        assert_eq!(found("127.0.0.2:8000"), Vec::<String>::new());
        assert_eq!(found("10.0.0.1:80"), ["333"]);
        assert_eq!(found("127.0.0.1:8001"), ["444"]);
        assert_eq!(found("[::1]:8001"), ["444"]);
        assert_eq!(found("[::]:8000"), Vec::<String>::new());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_listener_of_this_process_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let holder = find(address).expect("this process listens");
        assert_eq!(holder.process, std::process::id());
    }
}
