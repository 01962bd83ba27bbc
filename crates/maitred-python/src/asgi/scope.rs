//! The scope of a request (ASGI HTTP specification, "HTTP Connection Scope").
//!
//! The constant entries stand in a dictionary that is copied, one for each address the server is reached at; keys are
//! interned.
//!
//! Header fields are passed on as they came, in their order, with three exceptions. `Transfer-Encoding` is
//! left out and `content-length` added: the coding has been removed from the body, whose length is known
//! (RFC 9112 §7.1.3). The authority of an absolute-form target replaces `Host` (RFC 9112 §3.2.2).

use std::sync::{Mutex, OnceLock, PoisonError};

use maitred_http::{BodyLength, Method, RequestHead, Version, target};
use maitred_runtime::{Endpoint, Local, Request};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use pyo3::{ffi, intern};

use super::names::{Meaning, Names};
use super::tls::{self, TLS};
use crate::codings;
use crate::values;

/// Addresses of the server with a dictionary of their own; a server rarely has more than one. Further
/// ones cost the making of two objects a request.
const ORIGINS: usize = 8;

/// The server sends a file by its path (ASGI extensions, "Path Send").
pub(super) const PATHSEND: &str = "http.response.pathsend";

/// The application names the resources that the page will need (ASGI extensions, "Early Hints").
pub(super) const EARLY_HINT: &str = "http.response.early_hint";

/// The application sends fields behind the body (ASGI extensions, "HTTP Trailers").
pub(super) const TRAILERS: &str = "http.response.trailers";

/// The application answers a request for a WebSocket otherwise (ASGI extensions, "WebSocket Denial Response").
const DENIAL: &str = "websocket.http.response";

/// Ours: the application's label of a response, for the list of deliveries.
pub(super) const LABEL: &str = "maitred.label";

pub(super) struct ScopeBuilder {
    /// The URL path of the application, without a slash at its end.
    root: String,
    base: Py<PyDict>,
    extensions: Py<PyDict>,
    websocket_extensions: Py<PyDict>,
    /// None while a scope is being made: that makes objects, and a collection that comes of it runs application code.
    names: Mutex<Option<Names>>,
    origins: [OnceLock<Origin>; ORIGINS],
    /// The state that the application filled in its lifespan.
    state: OnceLock<Py<PyDict>>,
}

/// The dictionary for one of our own addresses.
struct Origin {
    local: Local,
    secure: bool,
    scope: Py<PyDict>,
}

pub(super) struct Scope<'py> {
    pub(super) dict: Bound<'py, PyDict>,
    pub(super) method: Bound<'py, PyString>,
    pub(super) raw_path: Bound<'py, PyBytes>,
    pub(super) takes_trailers: bool,
}

impl ScopeBuilder {
    pub(super) fn new(py: Python<'_>, root_path: &str, pathsend: bool) -> PyResult<Self> {
        let asgi = PyDict::new(py);
        asgi.set_item(intern!(py, "version"), "3.0")?;
        asgi.set_item(intern!(py, "spec_version"), "2.4")?;
        let base = PyDict::new(py);
        // Values that differ from request to request hold the place.
        base.set_item(intern!(py, "type"), intern!(py, "http"))?;
        base.set_item(intern!(py, "asgi"), asgi)?;
        base.set_item(intern!(py, "http_version"), intern!(py, "1.1"))?;
        base.set_item(intern!(py, "server"), py.None())?;
        base.set_item(intern!(py, "client"), py.None())?;
        base.set_item(intern!(py, "scheme"), intern!(py, "http"))?;
        let root = root_path.trim_end_matches('/');
        base.set_item(intern!(py, "root_path"), root)?;
        base.set_item(intern!(py, "method"), intern!(py, "GET"))?;
        base.set_item(intern!(py, "path"), intern!(py, "/"))?;
        base.set_item(intern!(py, "raw_path"), PyBytes::new(py, b"/"))?;
        base.set_item(intern!(py, "query_string"), PyBytes::new(py, b""))?;
        base.set_item(intern!(py, "headers"), py.None())?;
        base.set_item(intern!(py, "extensions"), py.None())?;
        let extensions = PyDict::new(py);
        for name in pathsend.then_some(PATHSEND).into_iter().chain([EARLY_HINT, LABEL]) {
            extensions.set_item(name, PyDict::new(py))?;
        }
        let websocket_extensions = PyDict::new(py);
        websocket_extensions.set_item(DENIAL, PyDict::new(py))?;
        Ok(Self {
            root: root.to_owned(),
            base: base.unbind(),
            extensions: extensions.unbind(),
            websocket_extensions: websocket_extensions.unbind(),
            names: Mutex::default(),
            origins: Default::default(),
            state: OnceLock::new(),
        })
    }

    /// Has every scope bring a copy of `state`. Before the first request.
    pub(super) fn use_state(&self, state: Py<PyDict>) {
        // Called once; a second state would be ignored.
        let _ = self.state.set(state);
    }

    /// Makes the scope of `request`; the request stays as it is. Fields pass as they came, but for `Transfer-Encoding`, and `Host` where
    /// the target has an authority.
    pub(super) fn build<'py>(&self, py: Python<'py>, request: &Request) -> PyResult<Scope<'py>> {
        let head = &request.head;
        let dict = self.start(py, &request.endpoint)?;
        let method = method(py, &head.method);
        if head.method != Method::Get {
            dict.set_item(intern!(py, "method"), &method)?;
        }
        if head.version != Version::Http11 {
            dict.set_item(intern!(py, "http_version"), http_version(py, head.version))?;
        }
        let (path, query) = split(head.path_and_query());
        let raw_path = PyBytes::new(py, path);
        let plain = decoded(py, path)?;
        if self.lacks_root(path, &plain) {
            dict.set_item(intern!(py, "path"), PyString::new(py, &self.root).add(&plain)?)?;
            dict.set_item(intern!(py, "raw_path"), PyBytes::new(py, &[self.root.as_bytes(), path].concat()))?;
        } else {
            dict.set_item(intern!(py, "path"), plain)?;
            dict.set_item(intern!(py, "raw_path"), &raw_path)?;
        }
        if !query.is_empty() {
            dict.set_item(intern!(py, "query_string"), PyBytes::new(py, query))?;
        }
        let peer = request.endpoint.peer;
        if let Some(address) = peer.ip() {
            dict.set_item(intern!(py, "client"), (values::address(py, address)?, peer.port().unwrap_or(0)))?;
        }
        dict.set_item(intern!(py, "headers"), self.headers(py, request)?)?;
        let extensions = if request.websocket {
            set_websocket(&dict, request)?;
            self.websocket_extensions.bind(py).copy()?
        } else {
            self.extensions.bind(py).copy()?
        };
        set_user(&extensions, head)?;
        extensions.set_item(intern!(py, codings::KEY), codings::accepted(py, &head.fields)?)?;
        if let Some(session) = &head.tls {
            extensions.set_item(intern!(py, TLS), tls::extension(py, session)?)?;
        }
        if let Some(said) = &head.proxied {
            extensions.set_item(intern!(py, values::PROXY), values::proxied(py, said)?)?;
        }
        let takes_trailers = request.takes_trailers() && !request.websocket;
        if takes_trailers {
            extensions.set_item(intern!(py, TRAILERS), PyDict::new(py))?;
        }
        if let Some(process) = values::process(py, &request.endpoint) {
            extensions.set_item(intern!(py, values::PROCESS), process?)?;
        }
        dict.set_item(intern!(py, "extensions"), extensions)?;
        if let Some(state) = self.state.get() {
            dict.set_item(intern!(py, "state"), state.bind(py).copy()?)?;
        }
        Ok(Scope { dict, method, raw_path, takes_trailers })
    }

    /// Whether a proxy has taken off the application's own prefix.
    fn lacks_root(&self, path: &[u8], plain: &Bound<'_, PyString>) -> bool {
        if self.root.is_empty() || !path.starts_with(b"/") {
            return false;
        }
        let plain = plain.to_string_lossy();
        !plain.strip_prefix(self.root.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn start<'py>(&self, py: Python<'py>, end: &Endpoint) -> PyResult<Bound<'py, PyDict>> {
        for place in &self.origins {
            let origin = match place.get() {
                Some(origin) => origin,
                None => {
                    let scope = self.base.bind(py).copy()?;
                    set_origin(&scope, end)?;
                    let origin =
                        Origin { local: end.local.clone(), secure: end.secure, scope: scope.unbind() };
                    place.get_or_init(|| origin)
                }
            };
            if origin.local == end.local && origin.secure == end.secure {
                return origin.scope.bind(py).copy();
            }
        }
        let scope = self.base.bind(py).copy()?;
        set_origin(&scope, end)?;
        Ok(scope)
    }

    fn headers<'py>(&self, py: Python<'py>, request: &Request) -> PyResult<Bound<'py, PyList>> {
        let lock = || self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lock().take();
        // Only the loop's thread makes scopes, one at a time.
        let mut names = kept.unwrap_or_else(Names::new);
        let made = headers(py, request, &mut names);
        let before = lock().replace(names);
        drop(before);
        made
    }
}

fn headers<'py>(py: Python<'py>, request: &Request, names: &mut Names) -> PyResult<Bound<'py, PyList>> {
    let head = &request.head;
    let authority = head.authority();
    let mut has_host = authority.is_empty();
    let list = Pairs::new(py, head.fields.len() + 2)?;
    for (name, value) in head.fields.iter() {
        let (meaning, pair) = names.pair(py, name, value, |meaning, value| match meaning {
            Meaning::Host if !authority.is_empty() => authority,
            _ => value,
        })?;
        match meaning {
            Meaning::Plain | Meaning::Private => {}
            Meaning::Host => has_host = true,
            // The length is known instead.
            Meaning::TransferEncoding if !request.body.is_live() => continue,
            Meaning::TransferEncoding => {}
        }
        list.push(pair);
    }
    if !has_host {
        list.push(names.pair(py, b"host", authority, |_, value| value)?.1);
    }
    if head.body == BodyLength::Chunked && !request.body.is_live() {
        let length = request.body.len().to_string();
        list.push(names.pair(py, b"content-length", length.as_bytes(), |_, value| value)?.1);
    }
    Ok(list.finish())
}

/// The user that the engine has authenticated.
fn set_user(extensions: &Bound<'_, PyDict>, head: &RequestHead) -> PyResult<()> {
    if head.user().is_empty() {
        return Ok(());
    }
    let py = extensions.py();
    let user = PyDict::new(py);
    user.set_item(intern!(py, "name"), utf8(py, head.user())?)?;
    user.set_item(intern!(py, "auth_type"), intern!(py, "Basic"))?;
    extensions.set_item(intern!(py, "maitred.user"), user)
}

/// The entries in which the scope of a WebSocket differs (ASGI WebSocket specification, "WebSocket Connection Scope").
fn set_websocket(scope: &Bound<'_, PyDict>, request: &Request) -> PyResult<()> {
    let py = scope.py();
    scope.set_item(intern!(py, "type"), intern!(py, "websocket"))?;
    let scheme = if request.endpoint.secure { intern!(py, "wss") } else { intern!(py, "ws") };
    scope.set_item(intern!(py, "scheme"), scheme)?;
    scope.del_item(intern!(py, "method"))?;
    let subprotocols = PyList::empty(py);
    let fields = request.head.fields.all("sec-websocket-protocol");
    for name in fields.flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii) {
        if !name.is_empty() {
            subprotocols.append(utf8(py, name)?)?;
        }
    }
    scope.set_item(intern!(py, "subprotocols"), subprotocols)
}

/// A list that is filled in one piece.
struct Pairs<'py> {
    list: Bound<'py, PyList>,
    room: usize,
    length: std::cell::Cell<usize>,
}

impl<'py> Pairs<'py> {
    /// An empty list for at most `room` pairs.
    fn new(py: Python<'py>, room: usize) -> PyResult<Self> {
        // SAFETY: a new list whose places are empty, or null with an exception set. No other code sees it before
        // `finish`, except for the garbage collector, which knows empty places.
        let list = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyList_New(room as ffi::Py_ssize_t))?.cast_into_unchecked()
        };
        Ok(Self { list, room, length: std::cell::Cell::new(0) })
    }

    fn push(&self, pair: Bound<'py, PyTuple>) {
        let at = self.length.get();
        assert!(at < self.room);
        // SAFETY: an empty place within the list, which takes over the reference.
        unsafe { ffi::PyList_SET_ITEM(self.list.as_ptr(), at as ffi::Py_ssize_t, pair.into_ptr()) };
        self.length.set(at + 1);
    }

    fn finish(self) -> Bound<'py, PyList> {
        // SAFETY: a list of ours with that many places filled, and room for more.
        unsafe { (*self.list.as_ptr().cast::<ffi::PyVarObject>()).ob_size = self.length.get() as _ };
        self.list
    }
}

/// Our own address and not the peer's Host, so that it can be trusted.
fn set_origin(scope: &Bound<'_, PyDict>, end: &Endpoint) -> PyResult<()> {
    let py = scope.py();
    let scheme = if end.secure { intern!(py, "https") } else { intern!(py, "http") };
    match &end.local {
        Local::Ip(local) => {
            scope.set_item(intern!(py, "server"), (local.ip().to_canonical().to_string(), local.port()))?;
        }
        Local::Unix(path) => scope.set_item(intern!(py, "server"), (&**path, py.None()))?,
    }
    scope.set_item(intern!(py, "scheme"), scheme)
}

/// The path as sent, and the query without its question mark.
fn split(path_and_query: &[u8]) -> (&[u8], &[u8]) {
    match path_and_query.iter().position(|byte| *byte == b'?') {
        Some(mark) => (&path_and_query[..mark], &path_and_query[mark + 1..]),
        None => (path_and_query, b""),
    }
}

fn method<'py>(py: Python<'py>, method: &Method) -> Bound<'py, PyString> {
    match method {
        Method::Get => intern!(py, "GET").clone(),
        Method::Head => intern!(py, "HEAD").clone(),
        Method::Post => intern!(py, "POST").clone(),
        Method::Put => intern!(py, "PUT").clone(),
        Method::Delete => intern!(py, "DELETE").clone(),
        Method::Options => intern!(py, "OPTIONS").clone(),
        Method::Patch => intern!(py, "PATCH").clone(),
        // The specification wants it in upper case.
        other => PyString::new(py, &other.as_str().to_ascii_uppercase()),
    }
}

fn http_version<'py>(py: Python<'py>, version: Version) -> Bound<'py, PyString> {
    match version {
        Version::Http10 => intern!(py, "1.0").clone(),
        Version::Http11 => intern!(py, "1.1").clone(),
        Version::Http2 => intern!(py, "2").clone(),
        Version::Http3 => intern!(py, "3").clone(),
    }
}

/// The path without percent-encoding, as UTF-8; other bytes become U+FFFD.
fn decoded<'py>(py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyString>> {
    if path.contains(&b'%') {
        let mut plain = Vec::with_capacity(path.len());
        target::percent_decode(path, &mut plain);
        return utf8(py, &plain);
    }
    utf8(py, path)
}

pub(super) fn utf8<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: the pointer is valid for the length given, a slice is never longer than isize::MAX, and the
    // name of the error handling is a C string. The result is a new reference to a str, or null with an
    // exception set.
    unsafe {
        let text =
            ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), bytes.len() as isize, c"replace".as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}
