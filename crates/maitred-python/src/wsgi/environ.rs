//! The environ dictionary (PEP 3333, "environ Variables"; RFC 3875 for the CGI names).
//!
//! The constant entries stand in a dictionary that is copied, one for each address the server is reached at; keys are
//! interned. Nothing of the process's environment is in it.
//!
//! Sections below: its keys; wsgi.input.

use std::cell::RefCell;
use std::io::BufRead;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use maitred_http::{BodyLength, Method, Peer, RequestHead, Version, target};
use maitred_runtime::{Body, Endpoint, Local, Request};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use pyo3::{ffi, intern};

use super::errors::ErrorStream;
use super::file::FileWrapper;
use super::tls::set_session;
use crate::child::refuse_in_child;
use crate::values::{from_latin1, latin1_of};
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

    /// The environ of `request`; takes the body out.
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

// ---- Its keys ----
//
// From the name of a request field to its key in the environ.
//
// Keys are interned strings, made once for each spelling of a name. The table is read without a lock and only ever
// grows, up to its size: names that find no place (a peer can send any) cost the same as without a table.

/// Places of the table: four times as many as the names on a site with many kinds of clients, so that probes stay
/// short. Costs about 25 KiB a process.
const PLACES: usize = 512;
const _: () = assert!(PLACES.is_power_of_two());

/// Places that are looked at for one name, so that names made to collide cost little.
const PROBES: usize = 8;

/// Longer values are not kept: of each name there is at most one.
const MAX_KEPT_VALUE: usize = 512;

/// Longer names are not kept. The longest registered one has 32 bytes.
const MAX_KEPT_NAME: usize = 48;

/// Fields that browsers, proxies and command-line clients send: no peer can take their places.
const COMMON: &[&str] = &[
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Access-Control-Request-Headers",
    "Access-Control-Request-Method",
    "Authorization",
    "Cache-Control",
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Cookie",
    "DNT",
    "Expect",
    "Forwarded",
    "From",
    "Host",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Keep-Alive",
    "Max-Forwards",
    "Origin",
    "Pragma",
    "Priority",
    "Proxy",
    "Range",
    "Referer",
    "Sec-CH-UA",
    "Sec-CH-UA-Mobile",
    "Sec-CH-UA-Platform",
    "Sec-Fetch-Dest",
    "Sec-Fetch-Mode",
    "Sec-Fetch-Site",
    "Sec-Fetch-User",
    "Sec-GPC",
    "TE",
    "Traceparent",
    "Tracestate",
    "Transfer-Encoding",
    "Upgrade",
    "Upgrade-Insecure-Requests",
    "User-Agent",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "X-Request-ID",
    "X-Requested-With",
];

/// The treatment of a field.
pub(super) enum Meaning {
    /// A repeated field continues the value (RFC 9110 §5.3).
    List(Key),
    /// The first field counts.
    Single(Key),
    /// The field does not reach the application under its own name, or not at all.
    Apart,
}

/// A key of the environ.
pub(super) struct Key {
    pub(super) name: Py<PyString>,
    /// Where a thread keeps the text of the last value: the same client sends the same again, and comparing costs a
    /// quarter of making a text. Not of fields that hold secrets, and not of names that peers have chosen.
    place: Option<usize>,
}

impl Key {
    pub(super) fn new(name: Bound<'_, PyString>, keeps: bool) -> Self {
        static PLACES_GIVEN: AtomicUsize = AtomicUsize::new(0);
        let place = keeps.then(|| PLACES_GIVEN.fetch_add(1, Ordering::Relaxed));
        Self { name: name.unbind(), place }
    }
}

/// The texts of the last values that came under the keys, as one thread has seen them.
#[derive(Default)]
pub(super) struct LastValues(Vec<Option<Py<PyString>>>);

impl LastValues {
    /// A value as text.
    pub(super) fn text<'py>(
        &mut self,
        py: Python<'py>,
        key: &Key,
        value: &[u8],
    ) -> PyResult<Bound<'py, PyString>> {
        let Some(place) = key.place.filter(|_| value.len() <= MAX_KEPT_VALUE) else {
            return from_latin1(py, value);
        };
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        let last = &mut self.0[place];
        if let Some(last) = last
            && latin1_of(last.bind(py))? == Some(value)
        {
            return Ok(last.bind(py).clone());
        }
        let text = from_latin1(py, value)?;
        *last = Some(text.clone().unbind());
        Ok(text)
    }
}

struct Known {
    name: Box<[u8]>,
    meaning: Meaning,
}

/// The table.
pub(super) struct FieldNames {
    places: Box<[OnceLock<Known>]>,
}

impl FieldNames {
    pub(super) fn new(py: Python<'_>) -> Self {
        let names = Self { places: (0..PLACES).map(|_| OnceLock::new()).collect() };
        for name in COMMON {
            names.find(py, name.as_bytes(), true, |_| ());
            names.find(py, name.to_ascii_lowercase().as_bytes(), true, |_| ());
        }
        names
    }

    /// Calls `act` with the meaning of this name.
    pub(super) fn with<T>(&self, py: Python<'_>, name: &[u8], act: impl FnOnce(&Meaning) -> T) -> T {
        self.find(py, name, false, act)
    }

    /// `keeps`: threads keep the last value of a field of this name, if it gets a place in the table.
    fn find<T>(&self, py: Python<'_>, name: &[u8], keeps: bool, act: impl FnOnce(&Meaning) -> T) -> T {
        let first = hash(name);
        for place in (first..first + PROBES).map(|place| &self.places[place % PLACES]) {
            match place.get() {
                Some(known) if *known.name == *name => return act(&known.meaning),
                Some(_) => {}
                None => {
                    if name.len() > MAX_KEPT_NAME {
                        break;
                    }
                    let known = Known {
                        name: name.into(),
                        meaning: meaning_of(name, keeps, |key| PyString::intern(py, key)),
                    };
                    // The thread that comes second has made it in vain.
                    return match place.set(known) {
                        Ok(()) => self.find(py, name, keeps, act),
                        Err(known) => act(&known.meaning),
                    };
                }
            }
        }
        // Not interned: in Python 3.12 an interned string stays for ever, and peers choose names.
        act(&meaning_of(name, false, |key| PyString::new(py, key)))
    }
}

/// The length and up to 16 bytes of the two ends: two loads where a hash of all bytes takes a loop.
fn hash(name: &[u8]) -> usize {
    let ends = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29),
        _ => name.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    };
    // The multiplier is 2^64 divided by the golden ratio; its high bits depend on all others.
    ((ends ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

/// The maker of the environ writes Content-Length and Host. The transfer coding has been removed from the body, so
/// naming it would be wrong (RFC 9112 §7.1.3). An underscore could not be told from a hyphen afterwards, and `Proxy`
/// would be taken for the environment variable HTTP_PROXY (CVE-2016-5385).
fn meaning_of<'py>(name: &[u8], keeps: bool, text: impl FnOnce(&str) -> Bound<'py, PyString>) -> Meaning {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let apart = ["content-length", "host", "transfer-encoding", "proxy"];
    if apart.into_iter().any(is) || name.contains(&b'_') {
        return Meaning::Apart;
    }
    if is("content-type") {
        return Meaning::Single(Key::new(text("CONTENT_TYPE"), keeps));
    }
    let mut key = String::with_capacity("HTTP_".len() + name.len());
    key.push_str("HTTP_");
    // A name is a token and so of ASCII; anything else would still be one character a byte.
    key.extend(name.iter().map(|byte| match byte {
        b'-' => '_',
        other => char::from(other.to_ascii_uppercase()),
    }));
    let is_secret = ["authorization", "cookie", "proxy-authorization"].into_iter().any(is);
    Meaning::List(Key::new(text(&key), keeps && !is_secret))
}

// ---- wsgi.input ----
//
// A body as the file that PEP 3333 describes, with the answers of `io.BytesIO`.
//
// Promises: the interpreter is released while a file is read and while a live body is awaited. Bytes in memory are
// copied once, into the object that the application gets. Any number of threads may read; each byte goes to one of
// them. Of a live body (a listener that does not read ahead) a call waits until it has the bytes that `io.BytesIO`
// would return.
//
// While the reader is locked no Python code runs and no object is made that the garbage collector tracks.

/// Bytes read at once from a file or a live body for lines and for small reads. Reads of at least this size go
/// past it. As large as the pieces in which frameworks read forms.
const BUFFER: usize = 64 * 1024;

/// The input stream of one request.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct Input {
    reader: Mutex<Reader>,
}

struct Reader {
    body: Body,
    /// Where the application is.
    position: u64,
    /// Bytes of a file or a live body from `start` on.
    buffer: Vec<u8>,
    start: u64,
}

impl Input {
    pub(super) fn new(body: Body) -> Self {
        Self { reader: Mutex::new(Reader { body, position: 0, buffer: Vec::new(), start: 0 }) }
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Reader> {
        // Waits without the interpreter: the thread with the lock may be waiting for it.
        self.reader.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Input {
    /// Reads at most `size` bytes; all that are left when it is negative or None.
    #[pyo3(signature = (size = None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.lock(py).read(py, size)
    }

    /// The bytes up to the end of the line, at most `size` of them.
    #[pyo3(signature = (size = None, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.lock(py).line(py, size)
    }

    /// The lines that are left; no further ones once they have `hint` bytes.
    #[pyo3(signature = (hint = None, /))]
    fn readlines<'py>(&self, py: Python<'py>, hint: Option<isize>) -> PyResult<Bound<'py, PyList>> {
        let hint = hint.and_then(|hint| usize::try_from(hint).ok()).filter(|hint| *hint > 0);
        let (mut lines, mut total) = (Vec::new(), 0);
        let mut reader = self.lock(py);
        while hint.is_none_or(|hint| total < hint) {
            let line = reader.line(py, None)?;
            let length = line.as_bytes().len();
            if length == 0 {
                break;
            }
            total += length;
            lines.push(line);
        }
        // Before the list: to make one may run application code.
        drop(reader);
        PyList::new(py, lines)
    }

    fn readable(&self) -> bool {
        true
    }

    /// A complete body can be read again, a live one cannot.
    fn seekable(&self, py: Python<'_>) -> bool {
        !self.lock(py).body.is_live()
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        let position = self.lock(py).tell();
        position.ok_or_else(|| unsupported(py))
    }

    #[pyo3(signature = (offset, whence = 0, /))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<u64> {
        let position = self.lock(py).seek(offset, whence)?;
        position.ok_or_else(|| unsupported(py))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let line = self.lock(py).line(py, None)?;
        Ok((!line.as_bytes().is_empty()).then_some(line))
    }
}

/// The exception of Python's files that cannot be read again.
fn unsupported(py: Python<'_>) -> PyErr {
    match py.import("io").and_then(|io| io.getattr("UnsupportedOperation")) {
        Ok(kind) => PyErr::from_type(
            kind.cast_into().unwrap_or_else(|_| py.get_type::<PyOSError>()),
            "a body that is read as it comes cannot be read again",
        ),
        Err(error) => error,
    }
}

/// `size` as applications mean it: negative and None stand for everything.
fn limit(size: Option<isize>) -> usize {
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX)
}

impl Reader {
    fn left(&self) -> usize {
        usize::try_from(self.body.len().saturating_sub(self.position)).unwrap_or(usize::MAX)
    }

    /// The position; none of a live body.
    fn tell(&self) -> Option<u64> {
        (!self.body.is_live()).then_some(self.position)
    }

    /// Moves the position; none of a live body.
    fn seek(&mut self, offset: i64, whence: i32) -> PyResult<Option<u64>> {
        if self.body.is_live() {
            return Ok(None);
        }
        let position = match whence {
            0 => u64::try_from(offset)
                .map_err(|_| PyValueError::new_err(format!("negative seek value {offset}")))?,
            1 => self.position.saturating_add_signed(offset),
            2 => self.body.len().saturating_add_signed(offset),
            _ => {
                return Err(PyValueError::new_err(format!("invalid whence ({whence}, should be 0, 1 or 2)")));
            }
        };
        self.position = position;
        if position < self.start {
            self.buffer.clear();
        }
        Ok(Some(position))
    }

    fn read<'py>(&mut self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        if self.body.is_live() {
            refuse_in_child()?;
            return self.read_live(py, limit(size));
        }
        let count = limit(size).min(self.left());
        if count < BUFFER || self.body.as_bytes().is_some() {
            let window = self.window(py)?;
            if window.len() >= count {
                let bytes = PyBytes::new(py, &window[..count]);
                self.position += count as u64;
                return Ok(bytes);
            }
        }
        let bytes = PyBytes::new_with(py, count, |bytes| self.fill(py, bytes))?;
        self.position += count as u64;
        Ok(bytes)
    }

    /// Memory grows with the bytes that arrive, not with the length that the peer has declared.
    fn read_live<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let wanted = count - bytes.len();
            let window = self.window(py)?;
            let part = &window[..window.len().min(wanted)];
            let length = part.len();
            if bytes.is_empty() && length == wanted {
                let bytes = PyBytes::new(py, part);
                self.position += length as u64;
                return Ok(bytes);
            }
            bytes.extend_from_slice(part);
            self.position += length as u64;
            if length == 0 {
                break;
            }
        }
        Ok(PyBytes::new(py, &bytes))
    }

    fn line<'py>(&mut self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let mut wanted = limit(size);
        if wanted == 0 {
            return Ok(PyBytes::new(py, b""));
        }
        let mut begun: Vec<u8> = Vec::new();
        loop {
            let window = self.window(py)?;
            let window = &window[..window.len().min(wanted)];
            let mut rest = window;
            // Cannot fail: it is memory.
            let count = rest.skip_until(b'\n')?;
            let (part, rest) = window.split_at(count);
            let ended = part.last().is_none_or(|byte| *byte == b'\n') || count == wanted;
            debug_assert!(ended || rest.is_empty());
            let line = match (ended, begun.is_empty()) {
                (true, true) => Some(PyBytes::new(py, part)),
                (ended, _) => {
                    begun.extend_from_slice(part);
                    ended.then(|| PyBytes::new(py, &begun))
                }
            };
            self.position += count as u64;
            wanted -= count;
            if let Some(line) = line {
                return Ok(line);
            }
        }
    }

    /// The bytes that can be had at once: of a body in memory the whole rest, of a file a part, of a live one the bytes
    /// that have arrived, and at least one; none only at the end.
    fn window(&mut self, py: Python<'_>) -> PyResult<&[u8]> {
        if self.body.as_bytes().is_none() && self.buffered().is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(if self.body.is_live() { BUFFER } else { self.left().min(BUFFER) }, 0);
            self.start = self.position;
            let Self { body, start, .. } = self;
            let count = py.detach(|| match body.live_mut() {
                Some(live) => live.read(&mut buffer),
                None => body.read_at(&mut buffer, *start),
            })?;
            buffer.truncate(count);
            self.buffer = buffer;
        }
        Ok(match self.body.as_bytes() {
            // Not longer than usize: it is in memory.
            Some(bytes) => bytes.get(self.position as usize..).unwrap_or_default(),
            None => self.buffered(),
        })
    }

    /// The part of the buffer that the application has not read.
    fn buffered(&self) -> &[u8] {
        let passed = usize::try_from(self.position.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.buffer.get(passed..).unwrap_or_default()
    }

    /// Fills `bytes` from the position on, without moving it. There are as many.
    fn fill(&self, py: Python<'_>, bytes: &mut [u8]) -> PyResult<()> {
        let buffered = self.buffered();
        let (first, rest) = bytes.split_at_mut(buffered.len().min(bytes.len()));
        first.copy_from_slice(&buffered[..first.len()]);
        let offset = self.position + first.len() as u64;
        let (body, wanted) = (&self.body, rest.len());
        if py.detach(|| body.read_at(rest, offset))? != wanted {
            return Err(PyOSError::new_err("the request body has lost its end"));
        }
        Ok(())
    }
}
