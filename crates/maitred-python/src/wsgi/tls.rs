//! The TLS session of a request, for the application, by the names of Apache's mod_ssl, which frameworks know.
//!
//! Promises: these keys come from the session alone; fields that a client sends have `HTTP_` in front.

use maitred_http::{TlsClient, TlsSession};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::values::from_latin1;

pub(super) fn set_session(environ: &Bound<'_, PyDict>, session: &TlsSession) -> PyResult<()> {
    let py = environ.py();
    let protocol = match session.version_number {
        0x0304 => intern!(py, "TLSv1.3").clone(),
        _ => from_latin1(py, session.version.as_bytes())?,
    };
    environ.set_item(intern!(py, "SSL_PROTOCOL"), protocol)?;
    environ.set_item(intern!(py, "SSL_CIPHER"), from_latin1(py, session.suite.as_bytes())?)?;
    let resumed = if session.resumed { intern!(py, "Resumed") } else { intern!(py, "Initial") };
    environ.set_item(intern!(py, "SSL_SESSION_RESUMED"), resumed)?;
    if let Some(name) = &session.sni {
        environ.set_item(intern!(py, "SSL_TLS_SNI"), from_latin1(py, name.as_bytes())?)?;
    }
    match &session.client {
        None => environ.set_item(intern!(py, "SSL_CLIENT_VERIFY"), intern!(py, "NONE")),
        Some(client) => set_client(environ, client),
    }
}

fn set_client(environ: &Bound<'_, PyDict>, client: &TlsClient) -> PyResult<()> {
    let py = environ.py();
    environ.set_item(intern!(py, "SSL_CLIENT_VERIFY"), intern!(py, "SUCCESS"))?;
    let serial = client.serial.to_ascii_uppercase();
    let own = client.chain.first().map(|pem| &**pem).unwrap_or_default();
    // Names are UTF-8, in latin-1 like all texts of an environ.
    let texts = [
        (intern!(py, "SSL_CLIENT_S_DN"), &*client.subject),
        (intern!(py, "SSL_CLIENT_I_DN"), &*client.issuer),
        (intern!(py, "SSL_CLIENT_M_SERIAL"), &*serial),
        (intern!(py, "SSL_CLIENT_V_END"), &*client.valid_until),
        (intern!(py, "SSL_CLIENT_CERT"), own),
    ];
    texts.into_iter().try_for_each(|(key, text)| environ.set_item(key, from_latin1(py, text.as_bytes())?))
}
