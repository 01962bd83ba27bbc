//! From the name of a request field to its key in the environ.
//!
//! Keys are interned strings, made once for each spelling of a name. The table is read without a lock and only ever
//! grows, up to its size: names that find no place (a peer can send any) cost the same as without a table.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::values::{MAX_KEPT_NAME, NAME_PLACES, from_latin1, latin1_of, name_places};

/// Longer values are not kept: of each name there is at most one.
const MAX_KEPT_VALUE: usize = 512;

/// Fields that browsers, proxies and command-line clients send: no peer can take their places.
const COMMON: &str = "\
    Accept Accept-Charset Accept-Encoding Accept-Language Access-Control-Request-Headers \
    Access-Control-Request-Method Authorization Cache-Control Connection Content-Encoding \
    Content-Length Content-Type Cookie DNT Expect Forwarded From Host If-Match If-Modified-Since \
    If-None-Match If-Range If-Unmodified-Since Keep-Alive Max-Forwards Origin Pragma Priority Proxy \
    Range Referer Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform Sec-Fetch-Dest Sec-Fetch-Mode \
    Sec-Fetch-Site Sec-Fetch-User Sec-GPC TE Traceparent Tracestate Transfer-Encoding Upgrade \
    Upgrade-Insecure-Requests User-Agent Via X-Forwarded-For X-Forwarded-Host X-Forwarded-Port \
    X-Forwarded-Proto X-Real-IP X-Request-ID X-Requested-With";

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

pub(super) struct FieldNames {
    places: Box<[OnceLock<Known>]>,
}

impl FieldNames {
    pub(super) fn new(py: Python<'_>) -> Self {
        let names = Self { places: (0..NAME_PLACES).map(|_| OnceLock::new()).collect() };
        for name in COMMON.split(' ') {
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
        for place in name_places(name).map(|place| &self.places[place]) {
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
