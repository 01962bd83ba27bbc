//! The environ dictionary (PEP 3333, "environ Variables"; RFC 3875 for the CGI names).
//!
//! What is the same for all requests stands in one dictionary that is copied; names of fields that
//! are common are made once. Text is Latin-1 of the bytes received ("bytes-as-unicode").

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use maitred_http::{BodyLength, RequestHead, target};
use maitred_runtime::{Endpoint, Request};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use pyo3::{ffi, intern};

use super::errors::ErrorStream;

/// Bodies above this size are given back to the system once the application has its copy; smaller
/// buffers stay with the connection for its next request. Costs at most this much per busy thread.
const KEPT_BODY_BUFFER: usize = 64 * 1024;

/// Request fields browsers, proxies and command-line clients send: their keys are made once.
const COMMON_FIELDS: &[&str] = &[
    "ACCEPT",
    "ACCEPT_CHARSET",
    "ACCEPT_ENCODING",
    "ACCEPT_LANGUAGE",
    "ACCESS_CONTROL_REQUEST_HEADERS",
    "ACCESS_CONTROL_REQUEST_METHOD",
    "AUTHORIZATION",
    "CACHE_CONTROL",
    "CONNECTION",
    "COOKIE",
    "DNT",
    "EXPECT",
    "FORWARDED",
    "FROM",
    "HOST",
    "IF_MATCH",
    "IF_MODIFIED_SINCE",
    "IF_NONE_MATCH",
    "IF_RANGE",
    "IF_UNMODIFIED_SINCE",
    "KEEP_ALIVE",
    "MAX_FORWARDS",
    "ORIGIN",
    "PRAGMA",
    "PRIORITY",
    "RANGE",
    "REFERER",
    "SEC_CH_UA",
    "SEC_CH_UA_MOBILE",
    "SEC_CH_UA_PLATFORM",
    "SEC_FETCH_DEST",
    "SEC_FETCH_MODE",
    "SEC_FETCH_SITE",
    "SEC_FETCH_USER",
    "SEC_GPC",
    "TE",
    "TRACEPARENT",
    "TRACESTATE",
    "UPGRADE",
    "UPGRADE_INSECURE_REQUESTS",
    "USER_AGENT",
    "VIA",
    "X_FORWARDED_FOR",
    "X_FORWARDED_HOST",
    "X_FORWARDED_PORT",
    "X_FORWARDED_PROTO",
    "X_REAL_IP",
    "X_REQUEST_ID",
    "X_REQUESTED_WITH",
];

/// Makes environ dictionaries.
pub(super) struct EnvironBuilder {
    base: Py<PyDict>,
    keys: HashMap<Box<[u8]>, Py<PyString>>,
    bytes_io: Py<PyAny>,
}

impl EnvironBuilder {
    pub(super) fn new(py: Python<'_>, errors: Py<ErrorStream>, multithread: bool) -> PyResult<Self> {
        let base = PyDict::new(py);
        base.set_item(intern!(py, "SCRIPT_NAME"), "")?;
        base.set_item(intern!(py, "wsgi.version"), (1, 0))?;
        base.set_item(intern!(py, "wsgi.errors"), errors)?;
        base.set_item(intern!(py, "wsgi.multithread"), multithread)?;
        base.set_item(intern!(py, "wsgi.multiprocess"), false)?;
        base.set_item(intern!(py, "wsgi.run_once"), false)?;
        // Not of the PEP: tells frameworks that reading to the end of wsgi.input is safe without a length.
        base.set_item(intern!(py, "wsgi.input_terminated"), true)?;
        let keys = COMMON_FIELDS
            .iter()
            .map(|name| {
                let key = format!("HTTP_{name}");
                let text = PyString::intern(py, &key).unbind();
                (key.into_bytes().into_boxed_slice(), text)
            })
            .collect();
        let bytes_io = py.import("io")?.getattr("BytesIO")?.unbind();
        Ok(Self { base: base.unbind(), keys, bytes_io })
    }

    /// The environ of `request`; takes the body out when it is large.
    pub(super) fn build<'py>(&self, py: Python<'py>, request: &mut Request) -> PyResult<Bound<'py, PyDict>> {
        let environ = self.base.bind(py).copy()?;
        set_request_line(&environ, &request.head)?;
        set_endpoint(&environ, &request.endpoint)?;
        self.set_fields(&environ, &request.head)?;
        let body = &request.body;
        if !body.is_empty() || request.head.body != BodyLength::Empty {
            environ.set_item(intern!(py, "CONTENT_LENGTH"), body.len().to_string())?;
        }
        let input = self.bytes_io.bind(py).call1((PyBytes::new(py, body),))?;
        environ.set_item(intern!(py, "wsgi.input"), input)?;
        if body.capacity() > KEPT_BODY_BUFFER {
            request.body = Vec::new();
        }
        Ok(environ)
    }

    fn set_fields(&self, environ: &Bound<'_, PyDict>, head: &RequestHead) -> PyResult<()> {
        let py = environ.py();
        let mut key = Vec::with_capacity(32);
        for (name, value) in head.fields.iter() {
            if is_handled_apart(name) || !write_key(name, &mut key) {
                continue;
            }
            let key = match self.keys.get(&*key) {
                Some(known) => known.bind(py).clone(),
                None => latin1(py, &key)?,
            };
            add(environ, &key, latin1(py, value)?)?;
        }
        if let Some(value) = head.fields.first("content-type") {
            environ.set_item(intern!(py, "CONTENT_TYPE"), latin1(py, value)?)?;
        }
        // RFC 9112 §3.2.2: the authority of an absolute-form target replaces Host.
        match (head.authority(), head.fields.first("host")) {
            ([], None) => {}
            ([], Some(host)) => environ.set_item(intern!(py, "HTTP_HOST"), latin1(py, host)?)?,
            (authority, _) => environ.set_item(intern!(py, "HTTP_HOST"), latin1(py, authority)?)?,
        }
        Ok(())
    }
}

fn set_request_line(environ: &Bound<'_, PyDict>, head: &RequestHead) -> PyResult<()> {
    let py = environ.py();
    let method = match head.method.as_str() {
        "GET" => intern!(py, "GET").clone(),
        "POST" => intern!(py, "POST").clone(),
        other => PyString::new(py, other),
    };
    environ.set_item(intern!(py, "REQUEST_METHOD"), method)?;
    let target = latin1(py, head.target())?;
    environ.set_item(intern!(py, "RAW_URI"), &target)?;
    environ.set_item(intern!(py, "REQUEST_URI"), target)?;
    environ.set_item(intern!(py, "QUERY_STRING"), latin1(py, head.query().unwrap_or_default())?)?;
    environ.set_item(intern!(py, "PATH_INFO"), path_info(py, head.path())?)?;
    let version = match head.version.as_str() {
        "HTTP/1.1" => intern!(py, "HTTP/1.1").clone(),
        other => PyString::new(py, other),
    };
    environ.set_item(intern!(py, "SERVER_PROTOCOL"), version)
}

/// The decoded path. A target that is no path (`*`, the authority of a CONNECT) has none: PEP 3333
/// demands that it is empty or starts with a slash.
fn path_info<'py>(py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyString>> {
    if !path.starts_with(b"/") {
        return Ok(intern!(py, "").clone());
    }
    if !path.contains(&b'%') {
        return latin1(py, path);
    }
    let mut decoded = Vec::with_capacity(path.len());
    target::percent_decode(path, &mut decoded);
    latin1(py, &decoded)
}

fn set_endpoint(environ: &Bound<'_, PyDict>, endpoint: &Endpoint) -> PyResult<()> {
    let py = environ.py();
    let scheme = if endpoint.secure { intern!(py, "https") } else { intern!(py, "http") };
    environ.set_item(intern!(py, "wsgi.url_scheme"), scheme)?;
    environ.set_item(intern!(py, "SERVER_NAME"), server_name(endpoint.local))?;
    environ.set_item(intern!(py, "SERVER_PORT"), endpoint.local.port().to_string())?;
    environ.set_item(intern!(py, "REMOTE_ADDR"), endpoint.peer.ip().to_canonical().to_string())?;
    environ.set_item(intern!(py, "REMOTE_PORT"), endpoint.peer.port().to_string())
}

/// Our own address and not what the peer wrote into Host, so that it can be trusted; in brackets for
/// IPv6, so that it can stand in a URL (RFC 3875 §4.1.14).
fn server_name(local: SocketAddr) -> String {
    match local.ip().to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Content-Type and Content-Length have names of their own. Host comes from the authority. The
/// transfer coding has been removed from the body, so naming it would be wrong (RFC 9112 §7.1.3).
fn is_handled_apart(name: &[u8]) -> bool {
    [&b"content-type"[..], b"content-length", b"host", b"transfer-encoding"]
        .iter()
        .any(|apart| name.eq_ignore_ascii_case(apart))
}

/// Writes the CGI name of a field. False for names that must not reach an application: an underscore
/// cannot be told from a hyphen afterwards, and `Proxy` would be taken for the environment variable
/// HTTP_PROXY (CVE-2016-5385).
fn write_key(name: &[u8], key: &mut Vec<u8>) -> bool {
    if name.contains(&b'_') || name.eq_ignore_ascii_case(b"proxy") {
        return false;
    }
    key.clear();
    key.extend_from_slice(b"HTTP_");
    key.extend(name.iter().map(|byte| match byte {
        b'-' => b'_',
        other => other.to_ascii_uppercase(),
    }));
    true
}

/// Sets a field; one that is there already is continued, cookies with a semicolon (RFC 9110 §5.3,
/// RFC 9113 §8.2.3).
fn add(environ: &Bound<'_, PyDict>, key: &Bound<'_, PyString>, value: Bound<'_, PyString>) -> PyResult<()> {
    let Some(earlier) = environ.get_item(key)? else {
        return environ.set_item(key, value);
    };
    let separator = if key.to_str()? == "HTTP_COOKIE" { "; " } else { ", " };
    environ.set_item(key, earlier.add(separator)?.add(value)?)
}

/// Bytes as the text that PEP 3333 calls native: one character a byte.
fn latin1<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: the pointer is valid for the length given, a slice is never longer than isize::MAX,
    // and a null pointer for the error handling means "strict". The result is a new reference to a
    // str, or null with an exception set.
    unsafe {
        let text = ffi::PyUnicode_DecodeLatin1(bytes.as_ptr().cast(), bytes.len() as isize, std::ptr::null());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}
