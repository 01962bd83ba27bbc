//! The server of the crate `h2`, over a pipe in memory and without a runtime: it is polled until it has nothing to do.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use h2::server::{Connection, Handshake, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::seen::{CONNECTION_WINDOW, Head, MAX_HEAD, MAX_STREAMS, STREAM_WINDOW, Seen, Server, is_answered};

type Bytes = io::Cursor<&'static [u8]>;

pub struct RustH2 {
    pipe: Pipe,
    state: State,
    streams: BTreeMap<u32, Open>,
    written: Vec<u8>,
}

/// A stream whose handles are kept: dropped they would reset it.
struct Open {
    body: RecvStream,
    answer: SendResponse<Bytes>,
    complete: bool,
}

enum State {
    Begins(Handshake<Pipe, Bytes>),
    Open(Connection<Pipe, Bytes>),
    Over,
}

impl RustH2 {
    pub fn new() -> Self {
        let pipe = Pipe::default();
        let handshake = h2::server::Builder::new()
            .max_concurrent_streams(MAX_STREAMS)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEAD)
            .max_concurrent_reset_streams(1000)
            .max_pending_accept_reset_streams(1000)
            .max_local_error_reset_streams(None)
            .enable_connect_protocol()
            .handshake(pipe.clone());
        Self { pipe, state: State::Begins(handshake), streams: BTreeMap::new(), written: Vec::new() }
    }

    /// Does the actions that are possible; whether there was one.
    fn advance(&mut self, context: &mut Context<'_>, seen: &mut Seen) -> bool {
        match &mut self.state {
            State::Over => return false,
            State::Begins(handshake) => match Pin::new(handshake).poll(context) {
                Poll::Pending => return false,
                Poll::Ready(Ok(connection)) => self.state = State::Open(connection),
                Poll::Ready(Err(error)) => self.end(seen, Some(error)),
            },
            State::Open(connection) => match connection.poll_accept(context) {
                Poll::Pending => return self.poll_streams(context, seen),
                Poll::Ready(None) => self.end(seen, None),
                Poll::Ready(Some(Err(error))) => self.end(seen, Some(error)),
                Poll::Ready(Some(Ok((request, answer)))) => {
                    let stream = answer.stream_id().as_u32();
                    let (parts, body) = request.into_parts();
                    seen.heads.push(head(stream, &Request::from_parts(parts, ())));
                    self.streams.insert(stream, Open { body, answer, complete: false });
                }
            },
        }
        true
    }

    /// The connection is over. A handshake that fails says so only by its error (RFC 9113 §3.4: GOAWAY may be left out).
    fn end(&mut self, seen: &mut Seen, error: Option<h2::Error>) {
        self.state = State::Over;
        let code = error.and_then(|error| error.reason()).unwrap_or(Reason::NO_ERROR);
        seen.goaway = Some(code.into());
    }

    fn poll_streams(&mut self, context: &mut Context<'_>, seen: &mut Seen) -> bool {
        let mut more = false;
        self.streams.retain(|stream, open| {
            if open.complete {
                return true;
            }
            loop {
                match open.body.poll_data(context) {
                    Poll::Ready(Some(Ok(bytes))) => {
                        more = true;
                        seen.data.entry(*stream).or_default().extend_from_slice(&bytes);
                    }
                    Poll::Ready(Some(Err(_))) => return false,
                    Poll::Ready(None) => break,
                    Poll::Pending => return true,
                }
            }
            match open.body.poll_trailers(context) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return false,
                Poll::Pending => return true,
            }
            more = true;
            seen.ends.push(*stream);
            if is_answered(*stream) {
                // A stream that is over meanwhile has no answer.
                let _ = open.answer.send_response(Response::new(()), true);
                return false;
            }
            open.complete = true;
            true
        });
        more
    }
}

impl Server for RustH2 {
    fn name(&self) -> &'static str {
        "h2"
    }

    fn feed(&mut self, bytes: &[u8], seen: &mut Seen) {
        self.pipe.both().input.extend_from_slice(bytes);
        let mut context = Context::from_waker(Waker::noop());
        while self.advance(&mut context, seen) {}
        self.written.append(&mut self.pipe.both().output);
        seen.note_written(&mut self.written);
    }
}

fn head(stream: u32, request: &Request<()>) -> Head {
    let uri = request.uri();
    let protocol = request.extensions().get::<h2::ext::Protocol>();
    let is_tunnel = request.method() == "CONNECT" && protocol.is_none();
    let path = uri.path_and_query().filter(|_| !is_tunnel).map_or("", |path| path.as_str());
    let fields = request.headers().iter();
    let head = Head {
        stream,
        method: request.method().as_str().into(),
        path: path.into(),
        authority: uri.authority().map_or("", |authority| authority.as_str()).into(),
        protocol: protocol.map_or("", |protocol| protocol.as_str()).into(),
        fields: fields.map(|(name, value)| (name.as_str().into(), value.as_bytes().to_vec())).collect(),
        ..Head::default()
    };
    head.normal()
}

/// Both directions of a connection; the other side is the test.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Both>>);

#[derive(Default)]
struct Both {
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Pipe {
    fn both(&self) -> std::sync::MutexGuard<'_, Both> {
        self.0.lock().expect("no panic under the lock")
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let input = &mut self.both().input;
        if input.is_empty() {
            return Poll::Pending;
        }
        let length = input.len().min(into.remaining());
        into.put_slice(&input[..length]);
        input.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.both().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
