//! A response that is read by the thread that has asked.

use maitred_http::{FieldSet, ResponseHead};

use super::driven::{BLOCK, Driven};
use crate::call::Step;
use crate::exchange::Reuse;
use crate::failure::CallError;
use crate::report::Report;

/// The response to a call. Its connection goes back to the pool with the last byte of the body; a response that is dropped
/// before closes it.
#[derive(Debug)]
pub struct Response<'a>(Driven<'a>);

impl<'a> Response<'a> {
    pub(super) fn new(driven: Driven<'a>) -> Self {
        Self(driven)
    }

    /// The head.
    pub fn head(&self) -> &ResponseHead {
        self.0.call.head()
    }

    /// The trailers, behind the last byte of the body.
    pub fn trailers(&self) -> Option<&FieldSet> {
        self.0.call.trailers()
    }

    /// Whether the connection is used again, and the reason if not. It is known behind the last byte of the body.
    pub fn reuse(&self) -> Reuse {
        self.0.call.reuse()
    }

    /// The account of the call, which is whole behind the last byte of the body.
    pub fn report(&self) -> &Report {
        self.0.call.report()
    }

    /// Reads a part of the body, as `Content-Encoding` has it; 0 at its end.
    ///
    /// # Errors
    /// The response is not complete, and this is so at each further read.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, CallError> {
        if self.0.call.data().is_empty() {
            while !matches!(self.0.next(None)?, Step::Data(_) | Step::End) {}
        }
        let data = self.0.call.data();
        let length = data.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), data.get(..length)) {
            to.copy_from_slice(from);
        }
        self.0.call.consume(length);
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
}
