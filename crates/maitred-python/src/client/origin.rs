//! The other end of calls, made once and kept by its callers.

use std::path::PathBuf;
use std::sync::Arc;

use maitred_client::key::{Key, Place, TlsIdentity};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

/// A server and the way there.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct HttpOrigin {
    pub(super) key: Arc<Key>,
    /// The value of `Host`.
    pub(super) authority: Box<str>,
    pub(super) text: Box<str>,
}

type Certificate = (String, Option<String>, Option<String>);

#[pymethods]
impl HttpOrigin {
    #[new]
    #[pyo3(signature = (scheme, host, port, *, socket = None, proxy = None, proxy_headers = vec![], verify = true,
                        authorities = None, certificate = None, server_name = None, allow = None))]
    #[expect(clippy::too_many_arguments, reason = "named arguments in Python")]
    fn new(
        scheme: &str,
        host: &str,
        port: u16,
        socket: Option<PathBuf>,
        proxy: Option<&str>,
        proxy_headers: Vec<(Vec<u8>, Vec<u8>)>,
        verify: bool,
        authorities: Option<&str>,
        certificate: Option<Certificate>,
        server_name: Option<&str>,
        allow: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let is_tls = match scheme {
            "http" => false,
            "https" => true,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "the scheme is {scheme:?}, and has to be http or https"
                )));
            }
        };
        if proxy.is_some() || !proxy_headers.is_empty() || allow.is_some() {
            return Err(PyNotImplementedError::new_err("proxy, proxy_headers and allow are not there yet"));
        }
        if port == 0 {
            return Err(PyValueError::new_err("the port is 0, and has to be 1 to 65535"));
        }
        let host = checked(host)?;
        let tls = is_tls.then(|| TlsIdentity {
            verify,
            authorities: authorities.map(Into::into),
            certificate: certificate.map(|(file, ..)| file.into()),
            server_name: server_name.map(Into::into),
            protocols: Box::default(),
        });
        let place = match socket {
            Some(path) => Place::Socket(path),
            None => Place::Host(host.as_str().into(), port),
        };
        let key = Key { place, proxy: None, tls };
        let text = key.to_string().into();
        let shown = if host.contains(':') { format!("[{host}]") } else { host };
        let default = if is_tls { 443 } else { 80 };
        let authority = if port == default { shown } else { format!("{shown}:{port}") };
        Ok(Self { key: Arc::new(key), authority: authority.into(), text })
    }

    fn __repr__(&self) -> String {
        format!("<HttpOrigin {}>", self.text)
    }
}

/// The host in lower case, without the brackets of an IPv6 address.
fn checked(host: &str) -> PyResult<String> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:%".contains(&byte);
    if bare.is_empty() || !bare.bytes().all(is_good) {
        return Err(PyValueError::new_err(format!(
            "the host is {host:?}, and has to be a name in ASCII (xn--... for others) or an address"
        )));
    }
    Ok(bare.to_ascii_lowercase())
}
