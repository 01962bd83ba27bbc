//! An exchange without a server: the handler's response is written down.

use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use _engine::{ErrorSink, WsgiHandler};
use maitred_http::{BodyLength, Method, ResponseHead};
use maitred_runtime::{Content, Exchange, Flow, Handler, Observe, Request, Respond, SendError};
use pyo3::prelude::*;
use pyo3::types::PyModule;

/// Status, reason, fields, length of the body.
pub type SentHead = (u16, String, Vec<(String, String)>, Option<u64>);

/// Everything that was sent for one request.
#[derive(Default, Debug)]
pub struct Sent {
    pub heads: Vec<SentHead>,
    pub blocks: Vec<Vec<u8>>,
    pub end: Option<String>,
}

impl Sent {
    pub fn body(&self) -> String {
        String::from_utf8(self.blocks.concat()).unwrap()
    }

    pub fn status(&self) -> u16 {
        self.heads.last().expect("a head was sent").0
    }
}

/// How the peer behaves.
#[derive(Default)]
pub struct Peer {
    pub sent: Mutex<Sent>,
    /// From this block on the peer is gone.
    pub gone_after: Option<usize>,
    /// The stream is full after each block until `room` is called.
    pub full: Mutex<bool>,
    pub changed: Condvar,
}

impl Peer {
    pub fn room(&self) {
        *self.full.lock().unwrap() = false;
        self.changed.notify_all();
    }
}

struct Responder {
    peer: Arc<Peer>,
    left: Option<u64>,
}

impl Respond for Responder {
    fn send_head(&mut self, _: &Request, head: &ResponseHead, length: Option<u64>) -> Result<(), SendError> {
        let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
        let fields = head.fields.iter().map(|(name, value)| (text(name), text(value))).collect();
        let reason = text(head.reason.as_deref().unwrap_or(head.status.reason().as_bytes()));
        self.left = length;
        self.peer.sent.lock().unwrap().heads.push((head.status.code(), reason, fields, length));
        Ok(())
    }

    fn send_data(&mut self, _: &Request, content: Content) -> Result<Flow, SendError> {
        let mut bytes = match content {
            Content::Bytes(bytes) => bytes,
            Content::Owned(owner) => owner.bytes().to_vec(),
            Content::Static(bytes) => {
                self.peer.sent.lock().unwrap().blocks.push(bytes.to_vec());
                return Ok(Flow::Ready);
            }
            Content::Shared(_) | Content::File(_) => panic!("unexpected content"),
        };
        let mut sent = self.peer.sent.lock().unwrap();
        if self.peer.gone_after.is_some_and(|count| sent.blocks.len() >= count) {
            return Err(SendError::Closed);
        }
        let declared = sent.heads.last().unwrap().3;
        let left = self.left.unwrap_or(u64::MAX);
        let surplus = bytes.len() as u64 > left;
        bytes.truncate(left.min(bytes.len() as u64) as usize);
        self.left = self.left.map(|left| left - bytes.len() as u64);
        sent.blocks.push(bytes);
        self.peer.changed.notify_all();
        if surplus {
            return Err(SendError::TooLong { declared: declared.unwrap() });
        }
        Ok(if *self.peer.full.lock().unwrap() { Flow::Full } else { Flow::Ready })
    }

    fn finish(self: Box<Self>, _request: Box<Request>) {
        self.peer.sent.lock().unwrap().end = Some("finished".into());
    }

    fn abort(self: Box<Self>, _request: Box<Request>, reason: &str) {
        self.peer.sent.lock().unwrap().end = Some(format!("aborted: {reason}"));
    }

    fn wait(&mut self, limit: Duration) -> Result<Flow, SendError> {
        let full = self.peer.full.lock().unwrap();
        let (full, _) = self.peer.changed.wait_timeout_while(full, limit, |full| *full).unwrap();
        Ok(if *full { Flow::Full } else { Flow::Ready })
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn observe(&mut self, _observer: Arc<dyn Observe>) {}

    fn has_peer_ended(&self) -> bool {
        false
    }

    fn is_full(&self) -> bool {
        *self.peer.full.lock().unwrap()
    }
}

/// A handler for `app` of a module made of `source`, and its log entries.
pub struct Fixture {
    pub module: Py<PyModule>,
    pub handler: Arc<WsgiHandler>,
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    pub fn new(source: &str) -> Self {
        Python::initialize();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let copy = log.clone();
        let sink: ErrorSink = Arc::new(move |entry: &str| copy.lock().unwrap().push(entry.to_owned()));
        Python::attach(|py| {
            let source = CString::new(source).unwrap();
            // A name of its own: Python runs the code of a second module of the same name in the first one.
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let name = CString::new(format!("app_{}", NUMBER.fetch_add(1, Ordering::Relaxed))).unwrap();
            let module = PyModule::from_code(py, &source, c"app.py", &name).unwrap();
            let app = module.getattr("app").unwrap().unbind();
            let handler = Arc::new(WsgiHandler::new(py, app, 10, sink.clone(), sink).unwrap());
            Self { module: module.unbind(), handler, log }
        })
    }

    pub fn send(&self, request: Request) -> Sent {
        self.send_to(&Arc::new(Peer::default()), request)
    }

    pub fn send_to(&self, peer: &Arc<Peer>, request: Request) -> Sent {
        let responder = Box::new(Responder { peer: peer.clone(), left: None });
        self.handler.handle(Exchange::new(request, responder));
        std::mem::take(&mut *peer.sent.lock().unwrap())
    }

    /// The log as one text.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// An expression in the application's module, as text.
    pub fn evaluate(&self, expression: &str) -> String {
        Python::attach(|py| {
            let expression = CString::new(expression).unwrap();
            let value = py.eval(&expression, Some(&self.module.bind(py).dict()), None).unwrap();
            value.to_string()
        })
    }
}

/// A request as the server hands it over.
pub fn request(method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> Request {
    let mut request = Request::default();
    let head = &mut request.head;
    head.method = Method::from_token(method);
    head.target = head.fields.adopt(target.as_bytes()).unwrap();
    head.path_and_query = head.target;
    for (name, value) in fields {
        if name.eq_ignore_ascii_case("host") {
            head.authority = head.fields.adopt(value.as_bytes()).unwrap();
        }
        let value: Vec<u8> = value.chars().map(|character| u8::try_from(character).unwrap()).collect();
        head.fields.push(name, value);
    }
    head.body = if body.is_empty() { BodyLength::Empty } else { BodyLength::Fixed(body.len() as u64) };
    request.body = body.to_vec().into();
    request.endpoint.local = maitred_runtime::Local::Ip("127.0.0.1:8000".parse().unwrap());
    request.endpoint.peer = maitred_http::Peer::Ip("[2001:db8::7]:50123".parse().unwrap());
    request
}

pub fn get(target: &str) -> Request {
    request("GET", target, &[("Host", "example.org")], b"")
}
