//! The TLS session of a request, for the application (ASGI TLS extension 0.2).

use maitred_http::TlsSession;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The name of the extension.
pub(super) const TLS: &str = "tls";

pub(super) fn extension<'py>(py: Python<'py>, session: &TlsSession) -> PyResult<Bound<'py, PyDict>> {
    let client = session.client.as_ref();
    let chain = client.map(|client| &*client.chain).unwrap_or_default();
    let tls = PyDict::new(py);
    tls.set_item(intern!(py, "server_cert"), session.server_certificate.as_deref())?;
    tls.set_item(intern!(py, "client_cert_chain"), PyList::new(py, chain.iter().map(|pem| &**pem))?)?;
    tls.set_item(intern!(py, "client_cert_name"), client.map(|client| &*client.subject))?;
    // A client with an invalid certificate gets no session.
    tls.set_item(intern!(py, "client_cert_error"), py.None())?;
    tls.set_item(intern!(py, "tls_version"), session.version_number)?;
    tls.set_item(intern!(py, "cipher_suite"), session.suite_number)?;
    Ok(tls)
}
