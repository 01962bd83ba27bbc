//! `send` of a WebSocket: a message goes to the engine at once.

use std::ffi::CStr;

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Content, Last, MessageKind};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3::{ffi, intern};

use super::channel::Channel;
use super::departure::Onward;
use super::receive::{Pending, What};
use super::send::{Message, Sends, copied, is_true, parse_start, push_all, vectorcall};
use super::websocket::WebSocket;
use crate::native::{Native, Object};
use crate::report::type_name;
use crate::values::{self, Lent, latin1_of};

impl Native for WebSocket {
    const NAME: &'static CStr = c"maitred._engine.SendWebSocket";
    const DOC: &'static CStr = c"await send(message), for one WebSocket";
    const CALL: Option<ffi::vectorcallfunc> = Some(vectorcall::<Self>);
}

impl Sends for WebSocket {
    fn send(py: Python<'_>, socket: &Object<WebSocket>, message: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let message = Message::new(message)?;
        let onward = match kind(&message)? {
            Kind::Send => {
                let text = present(&message, intern!(py, "text"))?;
                let bytes = present(&message, intern!(py, "bytes"))?;
                match (text, bytes) {
                    (Some(text), None) => send_text(py, socket, &text)?,
                    (None, Some(bytes)) => send_bytes(py, socket, &bytes)?,
                    (Some(_), Some(_)) => {
                        return Err(PyValueError::new_err(
                            "websocket.send has both 'text' and 'bytes'; it takes one of them",
                        ));
                    }
                    (None, None) => {
                        return Err(PyValueError::new_err("websocket.send has neither 'text' nor 'bytes'"));
                    }
                }
            }
            Kind::Accept => socket.accept(py, accepted(py, &message)?)?,
            Kind::Close => {
                let code = match present(&message, intern!(py, "code"))? {
                    None => 1000,
                    Some(code) => close_code(&code)?,
                };
                let reason = match present(&message, intern!(py, "reason"))? {
                    None => String::new(),
                    // Frameworks pass other objects, too, such as FastAPI its list of errors in a request.
                    Some(reason) => reason.str()?.to_string_lossy().into_owned(),
                };
                socket.close(py, code, &reason)?;
                Onward::Ready
            }
            Kind::DenialStart => {
                let (declared, _) = parse_start(&message)?;
                socket.deny(py, declared)?
            }
            Kind::DenialBody => {
                let more = is_true(&message, intern!(py, "more_body"))?;
                let body = message.get(intern!(py, "body"))?;
                let last = match &body {
                    Some(body) => Last::Given(copied(body)?),
                    None => Last::NOTHING,
                };
                socket.send_denial(py, last, more)?
            }
        };
        let adapter = socket.adapter();
        let what = match onward {
            Onward::Ready => return Ok(adapter.done.clone_ref(py).into_object()),
            Onward::Full => What::Room,
            Onward::Left => What::Turn,
        };
        let pending = Pending::new(Channel::WebSocket(socket.clone_ref(py)), what);
        Ok(adapter.classes.pending.make(py, pending)?.into_object())
    }
}

enum Kind {
    Accept,
    Send,
    Close,
    DenialStart,
    DenialBody,
}

fn kind(message: &Message<'_, '_>) -> PyResult<Kind> {
    const REMEDY: &str = "it is websocket.accept, websocket.send or websocket.close";
    let Some(kind) = message.get(intern!(message.py(), "type"))? else {
        return Err(PyValueError::new_err(format!("the message has no 'type'; {REMEDY}")));
    };
    let text = text_of(&kind, "the type of a message")?;
    match latin1_of(text)? {
        Some(b"websocket.send") => Ok(Kind::Send),
        Some(b"websocket.accept") => Ok(Kind::Accept),
        Some(b"websocket.close") => Ok(Kind::Close),
        Some(b"websocket.http.response.start") => Ok(Kind::DenialStart),
        Some(b"websocket.http.response.body") => Ok(Kind::DenialBody),
        _ => Err(PyRuntimeError::new_err(format!(
            "a message of type {:?} cannot be sent for a WebSocket; {REMEDY}",
            text.to_string_lossy()
        ))),
    }
}

/// The value of a key that is there and not None.
fn present<'py>(
    message: &Message<'_, 'py>,
    key: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(message.get(key)?.filter(|value| !value.is_none()))
}

fn text_of<'a, 'py>(value: &'a Bound<'py, PyAny>, what: &str) -> PyResult<&'a Bound<'py, PyString>> {
    value
        .cast::<PyString>()
        .map_err(|_| PyTypeError::new_err(format!("{what} must be a str, not {}", type_name(value))))
}

fn send_text(py: Python<'_>, socket: &Object<WebSocket>, text: &Bound<'_, PyAny>) -> PyResult<Onward> {
    let text = text_of(text, "the 'text' of websocket.send")?;
    if let Some(ascii) = latin1_of(text)?.filter(|bytes| bytes.is_ascii()) {
        let lent = LentText(ascii);
        return socket.send(py, MessageKind::Text, Last::Lent(&lent));
    }
    // Raises for a lone surrogate, which has no UTF-8.
    let encoded = text.to_str()?.as_bytes();
    let lent = LentText(encoded);
    socket.send(py, MessageKind::Text, Last::Lent(&lent))
}

/// Text for the duration of the call.
struct LentText<'a>(&'a [u8]);

impl maitred_runtime::Lend for LentText<'_> {
    fn bytes(&self) -> &[u8] {
        self.0
    }

    fn keep(&self) -> Content {
        Content::Bytes(self.0.to_vec())
    }
}

fn send_bytes(py: Python<'_>, socket: &Object<WebSocket>, bytes: &Bound<'_, PyAny>) -> PyResult<Onward> {
    if let Ok(bytes) = bytes.cast::<PyBytes>() {
        let lent = Lent(bytes);
        return socket.send(py, MessageKind::Binary, Last::Lent(&lent));
    }
    if bytes.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "the 'bytes' of websocket.send must be bytes, not str; send it as 'text'",
        ));
    }
    socket.send(py, MessageKind::Binary, Last::Given(copied(bytes)?))
}

/// The fields of the answer that `websocket.accept` asks for.
fn accepted(py: Python<'_>, message: &Message<'_, '_>) -> PyResult<ResponseHead> {
    let mut accepted = ResponseHead::new(Status::SWITCHING_PROTOCOLS);
    if let Some(chosen) = present(message, intern!(py, "subprotocol"))? {
        let chosen = text_of(&chosen, "the 'subprotocol' of websocket.accept")?;
        values::push(&mut accepted.fields, b"Sec-WebSocket-Protocol", chosen.to_str()?.as_bytes())?;
    }
    if let Some(headers) = present(message, intern!(py, "headers"))? {
        push_all(&headers, |name, value| {
            if name.eq_ignore_ascii_case(b"sec-websocket-protocol") {
                return Err(PyValueError::new_err(
                    "the headers of websocket.accept name Sec-WebSocket-Protocol; its key 'subprotocol' has it",
                ));
            }
            values::push(&mut accepted.fields, name, value)
        })?;
    }
    Ok(accepted)
}

fn close_code(code: &Bound<'_, PyAny>) -> PyResult<u16> {
    let wrong = || {
        PyValueError::new_err(format!(
            "the code of websocket.close must be 1000 to 1003, 1007 to 1014 or 3000 to 4999, not {}",
            code.repr().map_or_else(|_| type_name(code).to_string(), |text| text.to_string())
        ))
    };
    let code: u16 = code.extract().map_err(|_| wrong())?;
    if maitred_runtime::is_close_code(code) { Ok(code) } else { Err(wrong()) }
}
