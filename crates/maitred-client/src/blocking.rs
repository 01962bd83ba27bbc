//! The driver for a thread that may wait: the thread polls and reads by itself, without another one.
//!
//! Promises: a call ends within its time limits in every state of the server, and an unread response closes its connection.
//!
//! Leaves out: all that [`call`](crate::call) decides.

mod driven;
mod request;
mod response;

use std::sync::Arc;
use std::time::Instant;

use maitred_h1::OutgoingRequest;

use crate::call::{Call, Options};
use crate::key::Key;
use driven::Driven;

pub use crate::client::{Client, Settings, Times};
pub use crate::failure::CallError;
pub use driven::{wait, with_waker};
pub use request::{Body, Request};
pub use response::Response;

impl Client {
    /// Sends `request` to the server of `key` and waits for the head of its response.
    ///
    /// # Errors
    /// There is no response. Nothing of the call is left in the pool.
    pub fn send<'a>(&self, key: &Arc<Key>, request: Request<'a>) -> Result<Response<'a>, CallError> {
        let (length, body_again) = match request.body {
            Body::Bytes(bytes) => (Some(bytes.len() as u64), true),
            Body::Stream(_) => (None, false),
        };
        let outgoing = OutgoingRequest {
            method: &request.method,
            target: request.target.as_bytes(),
            authority: request.authority.as_bytes(),
            fields: &request.fields,
            length,
            upgrade: false,
        };
        let times = self.settings().times;
        let options = Options { times, repeatable: request.repeatable, body_again, ..Options::default() };
        let now = Instant::now();
        let mut driven = Driven {
            call: Call::begin(self, key, &outgoing, &options, now)?,
            body: request.body,
            held: Vec::new(),
        };
        if matches!(driven.body, Body::Bytes(_)) {
            driven.give()?;
        }
        driven.next(Some(now))?;
        Ok(Response::new(driven))
    }
}
