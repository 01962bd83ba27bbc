//! The system's resolver: getaddrinfo, which knows `/etc/hosts`, nsswitch.conf and the order of addresses (RFC 6724).
//!
//! Leaves out: a cache, and a limit of time: a call takes as long as the resolver takes (maitred-client has helper threads).

use std::ffi::{CStr, CString};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

/// `EAI_NODATA` of glibc: the name exists, and has no address.
const NO_DATA: libc::c_int = -5;

/// The list of the system, which is freed with this value.
struct Found(*mut libc::addrinfo);

/// The addresses of `host` in their order, with port 0. Families of which this machine has no address are left out
/// (`AI_ADDRCONFIG`).
///
/// # Errors
/// `NotFound`: there is no such name, or it has no address. Any other kind: the resolver fails.
pub fn look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    let name = CString::new(host).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    // SAFETY: `addrinfo` is a structure of C, for which zeros are valid: no flags, null pointers.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_family = libc::AF_UNSPEC;
    hints.ai_socktype = libc::SOCK_STREAM;
    hints.ai_flags = libc::AI_ADDRCONFIG;
    let mut found = Found(ptr::null_mut());
    // SAFETY: the name is a string of C, there is no service, and both structures live until the call has returned.
    let code = unsafe { libc::getaddrinfo(name.as_ptr(), ptr::null(), &hints, &mut found.0) };
    if code != 0 {
        return Err(failure(code));
    }
    Ok(found.addresses())
}

fn failure(code: libc::c_int) -> io::Error {
    if code == libc::EAI_SYSTEM {
        return io::Error::last_os_error();
    }
    // SAFETY: the function returns a string of C that is never freed, for every number.
    let text = unsafe { CStr::from_ptr(libc::gai_strerror(code)) }.to_string_lossy().into_owned();
    let kind = match code {
        libc::EAI_NONAME | NO_DATA => ErrorKind::NotFound,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, text)
}

impl Found {
    fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = Vec::new();
        let mut next = self.0;
        // SAFETY: the pointer is null or one of the list, which lives as long as `self` and is not changed.
        while let Some(entry) = unsafe { next.as_ref() } {
            next = entry.ai_next;
            // SAFETY: the list is the system's: an address of this family is a structure of this type.
            addresses.extend(unsafe { address(entry) });
        }
        addresses
    }
}

/// # Safety
/// `ai_addr` of `entry` points to an address of its family.
unsafe fn address(entry: &libc::addrinfo) -> Option<SocketAddr> {
    match entry.ai_family {
        libc::AF_INET => {
            // SAFETY: as the caller promises; the read needs no alignment.
            let found = unsafe { ptr::read_unaligned(entry.ai_addr.cast::<libc::sockaddr_in>()) };
            let address = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
            Some(SocketAddrV4::new(address, 0).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as the caller promises; the read needs no alignment.
            let found = unsafe { ptr::read_unaligned(entry.ai_addr.cast::<libc::sockaddr_in6>()) };
            let address = Ipv6Addr::from(found.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(address, 0, 0, found.sin6_scope_id).into())
        }
        _ => None,
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the list came from getaddrinfo and is freed once.
            unsafe { libc::freeaddrinfo(self.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_text_need_no_network() {
        let looked_up = |host| look_up(host).map_err(|error| error.kind());
        assert_eq!(looked_up("127.0.0.1"), Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))]));
        assert_eq!(looked_up("a\0b"), Err(ErrorKind::InvalidInput));
    }
}
