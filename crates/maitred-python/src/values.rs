//! Values that the engine and Python exchange, whatever the interface: text of the wire, the head of a response, blocks of a
//! body.
//!
//! Text is one character a byte (for WSGI: PEP 3333, "Unicode Issues").
//!
//! Sections below: the head of a response; blocks of a body.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use maitred_http::fields::InvalidField;
use maitred_http::{FieldSet, Proxied, ResponseHead, Status};
use maitred_runtime::{Content, Endpoint, Lend, Owner, Process};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::string::PyStringData;
use pyo3::types::{PyBytes, PyDict, PyString};
use pyo3::{ffi, intern};

use crate::held::Held;
use crate::releaser;

/// Places of a table of field names: four times as many as the names on a site with many kinds of clients.
pub(crate) const NAME_PLACES: usize = 512;

/// Longer names are not kept. The longest registered one has 32 bytes.
pub(crate) const MAX_KEPT_NAME: usize = 48;

/// The places at which a name may be: few, so that names made to collide cost little. Of a name the length and up to 16
/// bytes of the two ends count: two loads where a hash of all bytes takes a loop.
pub(crate) fn name_places(name: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let ends = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29),
        _ => name.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    };
    // The multiplier is 2^64 divided by the golden ratio; its high bits depend on all others.
    let first = ((ends ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (first..first + 8).map(|place| place % NAME_PLACES)
}

/// Waits for a lock. A panic elsewhere cannot leave what the locks of this crate protect half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes as the text that PEP 3333 calls native.
pub(crate) fn from_latin1<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: the pointer is valid for the length given, a slice is never longer than isize::MAX,
    // and a null pointer for the error handling means "strict". The result is a new reference to a
    // str, or null with an exception set.
    unsafe {
        let text = ffi::PyUnicode_DecodeLatin1(bytes.as_ptr().cast(), bytes.len() as isize, std::ptr::null());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}

/// The bytes that such text stands for; `None` when it has a character that is no byte.
pub(crate) fn latin1_of<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Option<&'a [u8]>> {
    // SAFETY: the layout that is read is CPython's own for the version this is built for. A str
    // never changes, so the slice lives as long as the reference. Its kind is the narrowest that
    // holds all its characters, so that UCS-1 and "one character a byte" are the same.
    Ok(match unsafe { text.data()? } {
        PyStringData::Ucs1(bytes) => Some(bytes),
        PyStringData::Ucs2(_) | PyStringData::Ucs4(_) => None,
    })
}

pub(crate) fn decimal(py: Python<'_>, number: u64) -> PyResult<Bound<'_, PyString>> {
    from_latin1(py, itoa::Buffer::new().format(number).as_bytes())
}

thread_local! {
    // Behind a proxy every peer has the same address; elsewhere a miss costs a comparison.
    static LAST_ADDRESS: Cell<Option<(IpAddr, Py<PyString>)>> = const { Cell::new(None) };
}

/// The text of an address. The last one of each thread is kept.
pub(crate) fn address(py: Python<'_>, address: IpAddr) -> PyResult<Bound<'_, PyString>> {
    let (kept, text) = match LAST_ADDRESS.take() {
        Some((kept, text)) if kept == address => (kept, text.into_bound(py)),
        _ => (address, PyString::new(py, &address.to_canonical().to_string())),
    };
    LAST_ADDRESS.set(Some((kept, text.clone().unbind())));
    Ok(text)
}

/// The key of the process at the other end of a Unix socket.
pub(crate) const PROCESS: &str = "maitred.process";

/// The peer's process, `{"pid": ..., "uid": ..., "gid": ...}`; none by TCP.
pub(crate) fn process<'py>(py: Python<'py>, end: &Endpoint) -> Option<PyResult<Bound<'py, PyDict>>> {
    let Process { pid, uid, gid } = end.process?;
    let dict = PyDict::new(py);
    let set = || {
        dict.set_item(intern!(py, "pid"), pid)?;
        dict.set_item(intern!(py, "uid"), uid)?;
        dict.set_item(intern!(py, "gid"), gid)
    };
    Some(set().map(|()| dict))
}

/// The key of the proxy's account of its client's connection.
pub(crate) const PROXY: &str = "maitred.proxy";

/// The proxy's account as `{"sni": ..., "alpn": ..., "version": ..., "cipher": ..., "certificate_name": ...,
/// "unique_id": ...}`, without the parts that it leaves out.
pub(crate) fn proxied<'py>(py: Python<'py>, said: &Proxied) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let texts = [
        (intern!(py, "sni"), &said.sni),
        (intern!(py, "alpn"), &said.alpn),
        (intern!(py, "version"), &said.version),
        (intern!(py, "cipher"), &said.cipher),
        (intern!(py, "certificate_name"), &said.certificate_name),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            dict.set_item(key, String::from_utf8_lossy(value))?;
        }
    }
    if let Some(id) = &said.unique_id {
        dict.set_item(intern!(py, "unique_id"), PyBytes::new(py, id))?;
    }
    Ok(dict)
}

// ---- The head of a response ----
//
// As an application declares it, checked.

/// A head with the length that the application declared for its body. The length is kept apart
/// because framing is the protocol's: it writes `Content-Length` itself.
pub(crate) struct Declared {
    pub(crate) head: ResponseHead,
    pub(crate) length: Option<u64>,
}

/// A set whose memory is kept for the next response of the thread holds at most this much.
const MAX_KEPT: usize = 16 * 1024;

thread_local! {
    static SPARE: Cell<FieldSet> = const { Cell::new(FieldSet::new()) };
}

impl Declared {
    /// A head without fields. `reason` is one other than the standard one.
    pub(crate) fn new(status: Status, reason: Option<Box<[u8]>>) -> Self {
        Self { head: ResponseHead { status, reason, fields: SPARE.take() }, length: None }
    }

    /// Keeps the memory for the next response.
    pub(crate) fn recycle(mut head: ResponseHead) {
        if head.fields.memory() <= MAX_KEPT {
            head.fields.clear();
            SPARE.set(head.fields);
        }
    }

    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> PyResult<()> {
        if name.len() == CONTENT_LENGTH.len() && name.eq_ignore_ascii_case(CONTENT_LENGTH) {
            let declared = parse_length(value)?;
            if self.length.is_some_and(|earlier| earlier != declared) {
                return Err(PyValueError::new_err("two different Content-Length headers"));
            }
            self.length = Some(declared);
            return Ok(());
        }
        push(&mut self.head.fields, name, value)
    }
}

pub(crate) fn push(fields: &mut FieldSet, name: &[u8], value: &[u8]) -> PyResult<()> {
    fields.push_checked(name, value).map_err(|invalid| {
        let name = String::from_utf8_lossy(name);
        PyValueError::new_err(match invalid {
            InvalidField::Name => format!("invalid header name {name:?}"),
            InvalidField::Value => {
                format!("the value of header {name:?} has a CR, LF, NUL or another control character in it")
            }
            InvalidField::Size => "the headers are longer than 4 GiB".to_owned(),
        })
    })
}

const CONTENT_LENGTH: &[u8] = b"content-length";

/// RFC 9110 §8.6: digits only.
fn parse_length(value: &[u8]) -> PyResult<u64> {
    let text = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        PyValueError::new_err(format!("invalid Content-Length {:?}", String::from_utf8_lossy(value)))
    })
}

// ---- Blocks of a body ----

/// Blocks from this size on are not copied: the engine holds the object until it has left. Below, a
/// copy costs less than keeping the object and taking the interpreter's word for its end.
const SHARED_FROM: usize = 2048;

/// The content of a block. An object of a subclass is copied: its end may run application code, and the engine drops
/// sent blocks under the lock of their connection.
pub(crate) fn content(block: &Bound<'_, PyBytes>) -> Content {
    let bytes = block.as_bytes();
    if bytes.len() < SHARED_FROM || !block.is_exact_instance_of::<PyBytes>() {
        return Content::Bytes(bytes.to_vec());
    }
    let (start, length) = (bytes.as_ptr(), bytes.len());
    Content::Owned(Owner::new(Shared { start, length, _object: block.clone().into() }))
}

/// A block that is there while it is being sent.
pub(crate) struct Lent<'a, 'py>(pub(crate) &'a Bound<'py, PyBytes>);

impl Lend for Lent<'_, '_> {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn keep(&self) -> Content {
        content(self.0)
    }
}

/// A bytes object, exactly that, which the engine holds.
struct Shared {
    start: *const u8,
    length: usize,
    _object: Held<PyBytes>,
}

// SAFETY: a bytes object never changes and never moves, so that any thread may read it while the
// reference is held, with the interpreter or without.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        releaser::expect(self.length);
    }
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: pointer and length are those of the object referred to, which never changes.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}
