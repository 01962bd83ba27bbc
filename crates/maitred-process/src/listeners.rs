//! Listeners of the configuration: their settings for the server, and sockets that listen before there is a server.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use maitred_config::{Checked, CheckedListener, Origins, Problem};
use maitred_server::listening::{Address, BindError, UnixAddress, UnixName};
use maitred_server::{BoundListeners, ListenerSettings};

use crate::holder;

/// The settings of the listeners, in the order of the configuration.
pub(crate) fn settings(checked: &Checked) -> Vec<ListenerSettings> {
    let has_certificates = checked.tls.is_some();
    let settings = checked.listeners.iter().filter_map(|CheckedListener { listen, address, .. }| {
        let address = address.clone()?;
        Some(ListenerSettings {
            tls: listen.is_tls(has_certificates, &address),
            redirect: listen.redirect,
            address,
            options: listen.options,
            proxy_protocol: listen.proxy_protocol,
            read_ahead: listen.read_ahead,
            writer: listen.writer,
        })
    });
    settings.collect()
}

/// Binds the listeners that have no socket in `sockets`, which has the same order. Files of Unix sockets belong to the user that the
/// process becomes, unless the configuration names another owner.
pub(crate) fn bind(
    checked: &Checked,
    origins: &Origins,
    sockets: Vec<Option<OwnedFd>>,
) -> Result<BoundListeners, Problem> {
    BoundListeners::bind_or_adopt(&owned_settings(checked), sockets)
        .map_err(|(address, error)| not_bound(&address, &error, origins))
}

/// The settings of the listeners, with the owners of the files of Unix sockets.
pub(crate) fn owned_settings(checked: &Checked) -> Vec<ListenerSettings> {
    let mut settings = settings(checked);
    if let Some(wanted) = &checked.wanted {
        for listener in &mut settings {
            if let Address::Unix(UnixAddress { name: UnixName::Path(_), owner, group, .. }) =
                &mut listener.address
            {
                owner.get_or_insert(wanted.identity.uid);
                group.get_or_insert(wanted.identity.gid);
            }
        }
    }
    settings
}

/// The line about an address that could not be bound (bind(2)).
pub(crate) fn not_bound(address: &Address, error: &BindError, origins: &Origins) -> Problem {
    let place = origins.describe("listen");
    let Address::Tcp(address) = *address else { return Problem::new(place, error.what(), error.remedy()) };
    let (what, remedy) = match error.kind() {
        ErrorKind::AddrInUse => {
            let holder =
                holder::find(address).map_or("another process".to_owned(), |holder| holder.to_string());
            let elsewhere = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or(8000));
            (
                format!("{address} is in use by {holder}"),
                format!("stop it or listen elsewhere, for example --listen {elsewhere}"),
            )
        }
        ErrorKind::PermissionDenied => (
            format!("{address} must not be used by this user"),
            "take a port from 1024 on, start it as root with --user NAME, or give it CAP_NET_BIND_SERVICE"
                .to_owned(),
        ),
        ErrorKind::AddrNotAvailable => (
            format!("{address} is not an address of this machine"),
            "take one that 'ip address' lists, 127.0.0.1, or :port for all".to_owned(),
        ),
        _ => (error.what().to_owned(), error.remedy().to_owned()),
    };
    Problem::new(place, what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(address: &str, kind: ErrorKind) -> String {
        let error = BindError::new(kind, "it cannot be had", "take another");
        let address = Address::Tcp(address.parse().expect("an address"));
        not_bound(&address, &error, &Origins::default()).to_string()
    }

    #[test]
    fn an_address_that_cannot_be_bound_comes_with_its_remedy() {
        assert_eq!(
            line("127.0.0.1:80", ErrorKind::PermissionDenied),
            "--listen: 127.0.0.1:80 must not be used by this user; take a port from 1024 on, start it as root with \
             --user NAME, or give it CAP_NET_BIND_SERVICE"
        );
        assert!(
            line("10.9.8.7:80", ErrorKind::AddrNotAvailable).contains("is not an address of this machine")
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_holder_of_a_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let line = line(&address.to_string(), ErrorKind::AddrInUse);
        assert!(line.contains(&format!("{address} is in use by this process itself; ")), "{line}");
        assert!(line.contains("--listen 127.0.0.1:"), "{line}");
    }
}
