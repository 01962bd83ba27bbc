//! The environ dictionary (PEP 3333, "environ Variables"; RFC 3875 for the CGI names).
//!
//! The constant entries stand in a dictionary that is copied, one for each address the server is reached at; keys are
//! interned. Nothing of the process's environment is in it.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::OnceLock;

use maitred_http::{BodyLength, Method, Peer, RequestHead, Version, target};
use maitred_runtime::{Body, Endpoint, Local, Request};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{ffi, intern};

use super::errors::ErrorStream;
use super::field_names::{FieldNames, Key, LastValues, Meaning};
use super::file::FileWrapper;
use super::input::Input;
use super::tls::set_session;
use crate::values::from_latin1;
use crate::{codings, values};

/// Addresses of the server with a dictionary of their own; a server rarely has more than one. Further
/// ones cost the making of two strings a request.
const ORIGINS: usize = 8;

/// Keys for which a dictionary of 32 places has room (two thirds, in CPython 3.10 to 3.14). There are more of them in every
/// environ, so that a copy of those has 64 places: room for 20 fields before it has to grow, which costs as much as five
/// insertions.
const SMALL_ROOM: usize = 21;

/// The key of the callable that sends hints before the response.
pub(super) const EARLY_HINTS: &str = "wsgi.early_hints";

/// Makes environ dictionaries.
pub(super) struct EnvironBuilder {
    base: Py<PyDict>,
    names: FieldNames,
    host: Key,
    origins: [OnceLock<Origin>; ORIGINS],
}

/// The dictionary for one of our own addresses.
struct Origin {
    local: Local,
    secure: bool,
    environ: Py<PyDict>,
}

impl EnvironBuilder {
    pub(super) fn new(py: Python<'_>, errors: Py<ErrorStream>, multithread: bool) -> PyResult<Self> {
        let base = PyDict::new(py);
        // The order is that of the PEP. Values that differ from request to request hold the place.
        base.set_item(intern!(py, "REQUEST_METHOD"), intern!(py, "GET"))?;
        base.set_item(intern!(py, "SCRIPT_NAME"), intern!(py, ""))?;
        base.set_item(intern!(py, "PATH_INFO"), intern!(py, ""))?;
        base.set_item(intern!(py, "QUERY_STRING"), intern!(py, ""))?;
        base.set_item(intern!(py, "REQUEST_URI"), intern!(py, ""))?;
        base.set_item(intern!(py, "RAW_URI"), intern!(py, ""))?;
        base.set_item(intern!(py, "SERVER_NAME"), intern!(py, ""))?;
        base.set_item(intern!(py, "SERVER_PORT"), intern!(py, ""))?;
        base.set_item(intern!(py, "SERVER_PROTOCOL"), intern!(py, "HTTP/1.1"))?;
        base.set_item(intern!(py, "REMOTE_ADDR"), intern!(py, ""))?;
        base.set_item(intern!(py, "REMOTE_PORT"), intern!(py, ""))?;
        base.set_item(intern!(py, "wsgi.version"), (1, 0))?;
        base.set_item(intern!(py, "wsgi.url_scheme"), intern!(py, "http"))?;
        // Without a body there is nothing to read and nothing to remember: one for all requests.
        base.set_item(intern!(py, "wsgi.input"), Input::new(Body::default()))?;
        base.set_item(intern!(py, "wsgi.errors"), errors)?;
        base.set_item(intern!(py, "wsgi.multithread"), multithread)?;
        base.set_item(intern!(py, "wsgi.multiprocess"), false)?;
        base.set_item(intern!(py, "wsgi.run_once"), false)?;
        base.set_item(intern!(py, "wsgi.file_wrapper"), py.get_type::<FileWrapper>())?;
        // Not of the PEP: tells frameworks that reading to the end of wsgi.input is safe without a length.
        base.set_item(intern!(py, "wsgi.input_terminated"), true)?;
        // As gunicorn has it.
        base.set_item(intern!(py, EARLY_HINTS), py.None())?;
        base.set_item(intern!(py, codings::KEY), py.None())?;
        debug_assert!(base.len() > SMALL_ROOM);
        let names = FieldNames::new(py);
        let host = Key::new(intern!(py, "HTTP_HOST").clone(), true);
        Ok(Self { base: base.unbind(), names, host, origins: Default::default() })
    }

    /// The environ of `request` (PEP 3333); takes the body out. `Transfer-Encoding`, `Proxy` and names with an underscore do not reach
    /// the application.
    pub(super) fn build<'py>(&self, py: Python<'py>, request: &mut Request) -> PyResult<Bound<'py, PyDict>> {
        let environ = self.start(py, &request.endpoint)?;
        set_request_line(&environ, &request.head)?;
        SEEN.with_borrow_mut(|seen| {
            set_peer(&environ, request.endpoint.peer, seen)?;
            self.set_fields(&environ, &request.head, &mut seen.values)
        })?;
        if let Local::Unix(_) = request.endpoint.local {
            set_unix_names(&environ, request)?;
        }
        if let Some(process) = values::process(py, &request.endpoint) {
            environ.set_item(intern!(py, values::PROCESS), process?)?;
        }
        if let Some(said) = &request.head.proxied {
            environ.set_item(intern!(py, values::PROXY), values::proxied(py, said)?)?;
        }
        set_user(&environ, &request.head)?;
        if let Some(session) = &request.head.tls {
            set_session(&environ, session)?;
        }
        environ.set_item(intern!(py, codings::KEY), codings::accepted(py, &request.head.fields)?)?;
        let body = &request.body;
        if let Some(length) = body.length()
            && (!body.is_empty() || request.head.body != BodyLength::Empty)
        {
            environ.set_item(intern!(py, "CONTENT_LENGTH"), values::decimal(py, length)?)?;
        }
        if !body.is_empty() {
            let input = Input::new(std::mem::take(&mut request.body));
            environ.set_item(intern!(py, "wsgi.input"), input)?;
        }
        Ok(environ)
    }

    /// A dictionary with the entries that are the same for all requests of this origin.
    fn start<'py>(&self, py: Python<'py>, end: &Endpoint) -> PyResult<Bound<'py, PyDict>> {
        for place in &self.origins {
            let origin = match place.get() {
                Some(origin) => origin,
                None => {
                    let origin = Origin::new(self.base.bind(py), end)?;
                    place.get_or_init(|| origin)
                }
            };
            if origin.local == end.local && origin.secure == end.secure {
                return origin.environ.bind(py).copy();
            }
        }
        let environ = self.base.bind(py).copy()?;
        set_origin(&environ, end)?;
        Ok(environ)
    }

    fn set_fields(
        &self,
        environ: &Bound<'_, PyDict>,
        head: &RequestHead,
        last: &mut LastValues,
    ) -> PyResult<()> {
        let py = environ.py();
        for (name, value) in head.fields.iter() {
            self.names.with(py, name, |meaning| match meaning {
                Meaning::Apart => Ok(()),
                Meaning::List(key) => {
                    let value = last.text(py, key, value)?;
                    match set_missing(environ, key.name.bind(py), &value)? {
                        None => Ok(()),
                        Some(earlier) => extend(environ, key.name.bind(py), &earlier, &value),
                    }
                }
                Meaning::Single(key) => {
                    set_missing(environ, key.name.bind(py), &last.text(py, key, value)?).map(drop)
                }
            })?;
        }
        // RFC 9112 §3.2.2: the authority of an absolute-form target replaces Host.
        match head.authority() {
            [] if !head.fields.contains("host") => Ok(()),
            authority => environ.set_item(self.host.name.bind(py), last.text(py, &self.host, authority)?),
        }
    }
}

/// Peers a thread remembers: those of the connections whose requests it runs in turn.
const PEERS: usize = 64;

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::default();
}

/// Texts that one thread has made, and may need again.
#[derive(Default)]
struct Seen {
    values: LastValues,
    /// The peers by the low bits of their port.
    peers: Vec<Option<KnownPeer>>,
}

/// A peer, and the texts of its address and its port.
type KnownPeer = (Peer, Py<PyString>, Py<PyString>);

/// The address and the port the request came from; empty by a Unix socket, and the port where a proxy has not told it.
fn set_peer(environ: &Bound<'_, PyDict>, peer: Peer, seen: &mut Seen) -> PyResult<()> {
    let py = environ.py();
    let Some(ip) = peer.ip() else { return Ok(()) };
    let number = peer.port();
    if seen.peers.is_empty() {
        seen.peers.resize_with(PEERS, || None);
    }
    let place = &mut seen.peers[usize::from(number.unwrap_or(0)) % PEERS];
    let (_, address, port) = match place {
        Some(known) if known.0 == peer => known,
        other => {
            let address = values::address(py, ip)?.unbind();
            let port = match number {
                Some(number) => values::decimal(py, number.into())?,
                None => intern!(py, "").clone(),
            };
            let port = port.unbind();
            other.insert((peer, address, port))
        }
    };
    environ.set_item(intern!(py, "REMOTE_ADDR"), address.bind(py))?;
    environ.set_item(intern!(py, "REMOTE_PORT"), port.bind(py))
}

impl Origin {
    fn new(base: &Bound<'_, PyDict>, end: &Endpoint) -> PyResult<Self> {
        let environ = base.copy()?;
        set_origin(&environ, end)?;
        Ok(Self { local: end.local.clone(), secure: end.secure, environ: environ.unbind() })
    }
}

/// Our own address and not the peer's Host, so that it can be trusted; in brackets for IPv6, so that it can stand in a
/// URL (RFC 3875 §4.1.14).
fn set_origin(environ: &Bound<'_, PyDict>, end: &Endpoint) -> PyResult<()> {
    let py = environ.py();
    if let Local::Ip(local) = end.local {
        let name = match local.ip().to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        environ.set_item(intern!(py, "SERVER_NAME"), name)?;
        environ.set_item(intern!(py, "SERVER_PORT"), local.port().to_string())?;
    }
    if !end.secure {
        return environ.set_item(intern!(py, "wsgi.url_scheme"), intern!(py, "http"));
    }
    environ.set_item(intern!(py, "wsgi.url_scheme"), intern!(py, "https"))?;
    // As Apache and CGI have it.
    environ.set_item(intern!(py, "HTTPS"), intern!(py, "on"))
}

/// A Unix socket has neither name nor port: they are those that the client has asked for (the PEP wants them not empty).
fn set_unix_names(environ: &Bound<'_, PyDict>, request: &Request) -> PyResult<()> {
    let py = environ.py();
    let host = String::from_utf8_lossy(request.head.fields.first("host").unwrap_or_default());
    let end = &request.endpoint;
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && !port.ends_with(']') => (name, port),
        _ => (host.strip_suffix(':').unwrap_or(&host), if end.secure { "443" } else { "80" }),
    };
    environ.set_item(intern!(py, "SERVER_NAME"), if name.is_empty() { "localhost" } else { name })?;
    environ.set_item(intern!(py, "SERVER_PORT"), port)
}

/// The user that the engine has authenticated (RFC 3875 §4.1.1, §4.1.11); these keys have no other source.
fn set_user(environ: &Bound<'_, PyDict>, head: &RequestHead) -> PyResult<()> {
    let py = environ.py();
    if head.user().is_empty() {
        return Ok(());
    }
    environ.set_item(intern!(py, "REMOTE_USER"), from_latin1(py, head.user())?)?;
    environ.set_item(intern!(py, "AUTH_TYPE"), intern!(py, "Basic"))
}

fn set_request_line(environ: &Bound<'_, PyDict>, head: &RequestHead) -> PyResult<()> {
    let py = environ.py();
    let method = match &head.method {
        Method::Get => None,
        Method::Post => Some(intern!(py, "POST").clone()),
        Method::Head => Some(intern!(py, "HEAD").clone()),
        other => Some(PyString::new(py, other.as_str())),
    };
    if let Some(method) = method {
        environ.set_item(intern!(py, "REQUEST_METHOD"), method)?;
    }
    if head.version != Version::Http11 {
        environ.set_item(intern!(py, "SERVER_PROTOCOL"), head.version.as_str())?;
    }
    let target = from_latin1(py, head.target())?;
    environ.set_item(intern!(py, "RAW_URI"), &target)?;
    environ.set_item(intern!(py, "REQUEST_URI"), &target)?;
    if let Some(query) = head.query().filter(|query| !query.is_empty()) {
        environ.set_item(intern!(py, "QUERY_STRING"), from_latin1(py, query)?)?;
    }
    environ.set_item(intern!(py, "PATH_INFO"), path_info(&target, head)?)
}

/// The decoded path. A target that is no path (`*`, the authority of a CONNECT) has none: PEP 3333
/// demands that it is empty or starts with a slash.
fn path_info<'py>(target: &Bound<'py, PyString>, head: &RequestHead) -> PyResult<Bound<'py, PyString>> {
    let py = target.py();
    let path = head.path();
    if !path.starts_with(b"/") {
        return Ok(intern!(py, "").clone());
    }
    if path.contains(&b'%') {
        let mut decoded = Vec::with_capacity(path.len());
        target::percent_decode(path, &mut decoded);
        return from_latin1(py, &decoded);
    }
    // One object serves both where the target is nothing but the path, and no filter has given it another one.
    if std::ptr::eq(path, head.target()) { Ok(target.clone()) } else { from_latin1(py, path) }
}

/// Sets a key that is not there; otherwise changes nothing and returns the value that is.
fn set_missing<'py>(
    environ: &Bound<'py, PyDict>,
    key: &Bound<'py, PyString>,
    value: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let before = environ.len();
    // SAFETY: all three are valid objects of this interpreter, and the first is a dict. The result is
    // borrowed from the dictionary, or null with an exception set; a reference of our own is taken
    // before anything could change the dictionary.
    let there = unsafe {
        let there = ffi::PyDict_SetDefault(environ.as_ptr(), key.as_ptr(), value.as_ptr());
        Bound::from_borrowed_ptr_or_err(environ.py(), there)?
    };
    // The number tells, not the identity: a text of one character is one object everywhere.
    Ok((environ.len() == before).then_some(there))
}

/// Continues a field, cookies with a semicolon (RFC 9110 §5.3, RFC 9113 §8.2.3).
fn extend(
    environ: &Bound<'_, PyDict>,
    key: &Bound<'_, PyString>,
    earlier: &Bound<'_, PyAny>,
    value: &Bound<'_, PyString>,
) -> PyResult<()> {
    let separator = if key.to_str()? == "HTTP_COOKIE" { "; " } else { ", " };
    environ.set_item(key, earlier.add(separator)?.add(value)?)
}
