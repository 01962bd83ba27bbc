//! A response that is read by the thread that has asked.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use maitred_h1::Limits;
use maitred_http::{FieldSet, ResponseHead, Version};

use super::call::{Body, CallError};
use super::connection::Connection;
use crate::error::Error;
use crate::exchange::{Event, Exchange, NotReusable, Reuse};
use crate::pool::Slot;

/// One read of a body that is a stream.
const BLOCK: usize = 16 * 1024;

/// The response to a call. Its connection goes back to the pool with the last byte of the body; a response that is dropped
/// before closes it.
#[derive(Debug)]
pub struct Response<'a> {
    slot: Option<Slot<Connection>>,
    exchange: Exchange,
    body: Body<'a>,
    given: Given,
    limits: Limits,
    data: usize,
    trailers: Option<Box<FieldSet>>,
    reuse: Reuse,
    failed: Option<Error>,
}

/// The part of the request's body that was given to the exchange.
#[derive(Debug, Default)]
pub(super) struct Given {
    bytes: usize,
    /// A part of a stream for which there was no room yet.
    held: Vec<u8>,
    all: bool,
}

/// An event whose data stands in the connection.
enum Found {
    Head,
    Data(usize),
    Trailers(Box<FieldSet>),
    End,
}

/// Sends the request until the final head has come. The part of the body that is given.
pub(super) fn until_head(
    connection: &mut Connection,
    exchange: &mut Exchange,
    body: &mut Body<'_>,
    limits: &Limits,
) -> Result<Given, CallError> {
    let mut given = Given::default();
    loop {
        match next(connection, exchange, body, &mut given, limits)? {
            Found::Head => return Ok(given),
            Found::Data(_) | Found::Trailers(_) | Found::End => {}
        }
    }
}

/// The next event, waited for. A part of the request is sent meanwhile.
fn next(
    connection: &mut Connection,
    exchange: &mut Exchange,
    body: &mut Body<'_>,
    given: &mut Given,
    limits: &Limits,
) -> Result<Found, CallError> {
    exchange.resume(Instant::now());
    loop {
        send(connection, exchange, body, given)?;
        let step = exchange.poll_event(connection.received(), limits, Instant::now())?;
        let found = match step.event {
            Event::NeedMore => None,
            Event::Interim => {
                connection.consume(step.consumed);
                continue;
            }
            Event::Head(_) => Some(Found::Head),
            Event::Data(bytes) => Some(Found::Data(bytes.len())),
            Event::Trailers(fields) => Some(Found::Trailers(fields)),
            Event::End => Some(Found::End),
        };
        let data = if let Some(Found::Data(length)) = found { length } else { 0 };
        connection.consume(step.consumed - data);
        match found {
            Some(found) => return Ok(found),
            None => wait(connection, exchange)?,
        }
    }
}

/// Gives a part of the body and writes once: between two writes the response and the time limits have their turn.
fn send(
    connection: &Connection,
    exchange: &mut Exchange,
    body: &mut Body<'_>,
    given: &mut Given,
) -> Result<(), CallError> {
    given.give(exchange, body)?;
    if exchange.to_transmit().is_empty() {
        return Ok(());
    }
    match connection.send(exchange.to_transmit()) {
        Ok(bytes) => exchange.transmitted(bytes, Instant::now()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        Err(error) => exchange.write_failed(error.kind() != ErrorKind::BrokenPipe),
    }
    Ok(())
}

impl Given {
    /// A stream, which may take its time, is read when nothing waits: the head and each part of the body go out before the next
    /// part is made.
    fn give(&mut self, exchange: &mut Exchange, body: &mut Body<'_>) -> Result<(), CallError> {
        if exchange.room() == 0 || self.all {
            return Ok(());
        }
        match body {
            Body::Stream(_) if !exchange.to_transmit().is_empty() => {}
            Body::Bytes(bytes) => {
                self.bytes += exchange.send_body(bytes.get(self.bytes..).unwrap_or_default())?;
                self.all = self.bytes >= bytes.len();
            }
            Body::Stream(stream) => {
                if self.held.is_empty() {
                    self.read(exchange.body_left(), *stream)?;
                }
                let taken = exchange.send_body(&self.held)?;
                self.held.drain(..taken);
                self.all |= self.held.is_empty() && exchange.body_left() == Some(0);
            }
        }
        if self.all { Ok(exchange.end_body(None)?) } else { Ok(()) }
    }

    /// Reads a part of a stream, of which at most `left` bytes are sent.
    fn read(&mut self, left: Option<u64>, stream: &mut dyn Read) -> Result<(), CallError> {
        let length = left.and_then(|left| usize::try_from(left).ok()).map_or(BLOCK, |left| left.min(BLOCK));
        self.held.resize(length, 0);
        let read = loop {
            match stream.read(&mut self.held) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(CallError::Body)?,
            }
        };
        self.held.truncate(read);
        self.all = read == 0;
        Ok(())
    }
}

/// Waits for the socket, and receives.
fn wait(connection: &mut Connection, exchange: &mut Exchange) -> Result<(), CallError> {
    let now = Instant::now();
    exchange.handle_deadline(now)?;
    let writing = !exchange.to_transmit().is_empty();
    // Between two parts of the body this only looks: the time limit of a write begins when bytes wait.
    let limit = match exchange.room() {
        1.. if !writing => Some(Duration::ZERO),
        _ => exchange.deadline().map(|at| at.saturating_duration_since(now)),
    };
    match connection.wait(writing, limit) {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(_) => return Ok(exchange.read_failed()?),
    }
    match connection.receive() {
        Ok(0) => Ok(exchange.end_of_stream(true)?),
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
        Err(_) => Ok(exchange.read_failed()?),
    }
}

impl<'a> Response<'a> {
    pub(super) fn new(
        slot: Slot<Connection>,
        exchange: Exchange,
        body: Body<'a>,
        given: Given,
        limits: Limits,
    ) -> Self {
        let reuse = Reuse::No(NotReusable::Unread);
        let mut response = Self {
            slot: Some(slot),
            exchange,
            body,
            given,
            limits,
            data: 0,
            trailers: None,
            reuse,
            failed: None,
        };
        if response.exchange.is_done() {
            response.end();
        }
        response
    }

    /// The version of the server.
    pub fn version(&self) -> Version {
        self.exchange.version()
    }

    /// The head.
    pub fn head(&self) -> &ResponseHead {
        self.exchange.head()
    }

    /// The trailers, behind the last byte of the body.
    pub fn trailers(&self) -> Option<&FieldSet> {
        self.trailers.as_deref()
    }

    /// Whether the connection is used again, and the reason if not. It is known behind the last byte of the body.
    pub fn reuse(&self) -> Reuse {
        self.reuse
    }

    /// Reads a part of the body, as `Content-Encoding` has it; 0 at its end.
    ///
    /// # Errors
    /// The response is not complete, and this is so at each further read.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, CallError> {
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        while self.data == 0 {
            let Some(connection) = self.slot.as_mut().and_then(Slot::connection) else { return Ok(0) };
            let found = next(connection, &mut self.exchange, &mut self.body, &mut self.given, &self.limits);
            match found {
                Ok(Found::Data(length)) => self.data = length,
                Ok(Found::Trailers(fields)) => self.trailers = Some(fields),
                Ok(Found::End) => self.end(),
                Ok(Found::Head) => {}
                Err(error) => {
                    self.failed = Some(match &error {
                        CallError::Exchange(error) => error.clone(),
                        _ => Error::Broken,
                    });
                    self.end();
                    return Err(error);
                }
            }
        }
        let Some(connection) = self.slot.as_mut().and_then(Slot::connection) else { return Ok(0) };
        let length = self.data.min(buffer.len());
        let (to, from) = (buffer.get_mut(..length), connection.received().get(..length));
        if let (Some(to), Some(from)) = (to, from) {
            to.copy_from_slice(from);
        }
        connection.consume(length);
        self.data -= length;
        Ok(length)
    }

    /// Reads the rest of the body, which may have `most` bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read), or the body is longer.
    pub fn read_all(&mut self, most: usize) -> Result<Vec<u8>, CallError> {
        let mut all = Vec::new();
        let mut block = vec![0; BLOCK];
        loop {
            let read = self.read(&mut block)?;
            if read == 0 {
                return Ok(all);
            }
            if read > most - all.len() {
                return Err(CallError::TooLong(most));
            }
            all.extend_from_slice(block.get(..read).unwrap_or_default());
        }
    }

    fn end(&mut self) {
        let Some(mut slot) = self.slot.take() else { return };
        let surplus = slot.connection().is_none_or(|connection| !connection.received().is_empty());
        self.reuse = self.exchange.reuse(surplus);
        if let Reuse::Yes(kept) = self.reuse {
            slot.connection().into_iter().for_each(Connection::rest);
            slot.give_back(kept, Instant::now());
        }
    }
}
