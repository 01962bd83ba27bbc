//! The other end of calls, made once and kept by its callers.

use std::path::PathBuf;
use std::sync::Arc;

use maitred_client::allow::Allow;
use maitred_client::environment;
use maitred_client::key::{Authorities, ClientCertificate, Key, Pem, Place, Proxy, TlsIdentity};
use maitred_client::tls::has_system_authorities;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A server and the way there.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct HttpOrigin {
    pub(super) key: Arc<Key>,
    /// The value of `Host`.
    pub(super) authority: Box<str>,
    pub(super) text: Box<str>,
}

/// Files: the certificate, its key, the key's password.
type Certificate = (PathBuf, Option<PathBuf>, Option<String>);

#[pymethods]
impl HttpOrigin {
    #[new]
    #[pyo3(signature = (scheme, host, port, *, socket = None, proxy = None, proxy_headers = vec![], verify = true,
                        authorities = None, certificate = None, server_name = None, allow = None))]
    #[expect(clippy::too_many_arguments, reason = "named arguments in Python")]
    fn new(
        py: Python<'_>,
        scheme: &str,
        host: &str,
        port: u16,
        socket: Option<PathBuf>,
        proxy: Option<&str>,
        proxy_headers: Vec<(Vec<u8>, Vec<u8>)>,
        verify: bool,
        authorities: Option<PathBuf>,
        certificate: Option<Certificate>,
        server_name: Option<&str>,
        allow: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let secure = match scheme {
            "http" => false,
            "https" => true,
            _ => {
                return Err(PyValueError::new_err(format!("the scheme is {scheme:?}, not http or https")));
            }
        };
        if port == 0 {
            return Err(PyValueError::new_err("the port is 0, and has to be 1 to 65535"));
        }
        let host = checked(host)?;
        let identity = TlsIdentity {
            verify,
            authorities: match authorities {
                Some(given) => authorities_of(given),
                None if verify => usual_authorities(py),
                None => Authorities::System,
            },
            certificate: certificate.map(|(certificate, key, password)| ClientCertificate {
                certificate,
                key,
                password: password.map(Into::into),
            }),
            // A Unix socket has no name of its own.
            server_name: server_name.or(socket.is_some().then_some(&host)).map(Into::into),
            ..TlsIdentity::default()
        };
        let proxy = proxy.map(|url| by_proxy(url, proxy_headers, &identity)).transpose()?;
        let place = match socket {
            Some(path) => Place::Socket(path),
            None => Place::Host(host.as_str().into(), port),
        };
        let allow = allow.map_or(Ok(Allow::All), allowed)?;
        let key = Key { place, proxy, tls: secure.then_some(identity), allow };
        let text = key.to_string().into();
        let shown = if host.contains(':') { format!("[{host}]") } else { host };
        let usual = if secure { 443 } else { 80 };
        let authority = if port == usual { shown } else { format!("{shown}:{port}") };
        Ok(Self { key: Arc::new(key), authority: authority.into(), text })
    }

    fn __repr__(&self) -> String {
        format!("<HttpOrigin {}>", self.text)
    }
}

/// The URL of the proxy that the environment names for a server; None if calls go there directly.
#[pyfunction]
#[pyo3(signature = (scheme, host, port, /))]
pub(crate) fn http_proxy_for(scheme: &str, host: &str, port: u16) -> Option<String> {
    environment::proxy_for(scheme == "https", host, port, |name| std::env::var(name).ok())
}

/// Those of the system, or, where it has none, those that certifi brings if that is installed.
fn usual_authorities(py: Python<'_>) -> Authorities {
    if has_system_authorities() {
        return Authorities::System;
    }
    let file = py.import("certifi").and_then(|certifi| certifi.call_method0("where")?.extract::<PathBuf>());
    file.map_or(Authorities::System, Authorities::At)
}

fn by_proxy(url: &str, headers: Vec<(Vec<u8>, Vec<u8>)>, identity: &TlsIdentity) -> PyResult<Proxy> {
    // The certificate and the name are for the server.
    let own = TlsIdentity { certificate: None, server_name: None, ..identity.clone() };
    let mut proxy = Proxy::of_url(url, own).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let field = |(name, value): (Vec<u8>, Vec<u8>)| {
        let name =
            String::from_utf8(name).map_err(|_| PyValueError::new_err("a header name is not ASCII"))?;
        Ok((name.into(), value.into()))
    };
    proxy.fields = headers.into_iter().map(field).collect::<PyResult<_>>()?;
    Ok(proxy)
}

/// Of a file or folder, or of certificates in PEM themselves: an `ssl.SSLContext` has no file.
fn authorities_of(given: PathBuf) -> Authorities {
    let bytes = given.as_os_str().as_encoded_bytes();
    if bytes.starts_with(b"-----BEGIN") {
        Authorities::Pem(Pem(bytes.into()))
    } else {
        Authorities::At(given)
    }
}

/// `"public"`, one network, or a list of networks.
fn allowed(allow: &Bound<'_, PyAny>) -> PyResult<Allow> {
    let networks = match allow.extract::<String>() {
        Ok(word) if word == "public" => return Ok(Allow::Public),
        Ok(network) => vec![network],
        Err(_) => allow.extract::<Vec<String>>()?,
    };
    let parsed: Result<Vec<_>, _> = networks.iter().map(|network| network.parse()).collect();
    let networks = parsed.map_err(|error| {
        PyValueError::new_err(format!(
            "allow is \"public\", an address, a network or a list of these: {error}"
        ))
    })?;
    Ok(Allow::Networks(networks.into()))
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
