//! Text of the wire as Python sees it: one character a byte (for WSGI: PEP 3333, "Unicode Issues").

use std::cell::Cell;
use std::net::IpAddr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::types::string::PyStringData;

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

/// A number in decimal.
pub(crate) fn decimal(py: Python<'_>, mut number: u64) -> PyResult<Bound<'_, PyString>> {
    // 2^64 has 20 decimal digits.
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return from_latin1(py, &digits[start..]);
        }
    }
}

thread_local! {
    // Behind a proxy every peer has the same address; elsewhere a miss costs what it would have cost.
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
