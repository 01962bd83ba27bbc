//! Notes of the callbacks of rustls beside their result: the chosen certificate, the reason for none, the subject of a
//! refused certificate; at a client whether the server has asked for a certificate, and the server's refused one.
//!
//! rustls calls the resolver and the verifier within `process_new_packets`, on the same thread, and hands neither of them anything
//! by which they could tell the session. So the session lays its own notes out for that call, and takes them back behind it.

use std::cell::Cell;
use std::net::IpAddr;

use crate::certificate::CertificateInfo;

#[derive(Debug, Default)]
pub(crate) struct SessionNotes {
    pub(crate) identity: Option<usize>,
    pub(crate) refused: Option<RefusedName>,
    pub(crate) client: Option<Box<str>>,
    pub(crate) is_client_asked: bool,
    pub(crate) server: Option<Box<CertificateInfo>>,
    /// The address of the server, which the resolver reads.
    pub(crate) address: Option<IpAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefusedName {
    Unknown(Box<str>),
    Missing,
}

thread_local! {
    static NOTED: Cell<SessionNotes> = const {
        Cell::new(SessionNotes {
            identity: None,
            refused: None,
            client: None,
            is_client_asked: false,
            server: None,
            address: None,
        })
    };
}

/// Runs `call` with these notes laid out.
pub(crate) fn during<T>(noted: &mut SessionNotes, call: impl FnOnce() -> T) -> T {
    NOTED.set(std::mem::take(noted));
    let result = call();
    *noted = NOTED.take();
    result
}

pub(crate) fn note<T>(change: impl FnOnce(&mut SessionNotes) -> T) -> T {
    let mut noted = NOTED.take();
    let result = change(&mut noted);
    NOTED.set(noted);
    result
}
