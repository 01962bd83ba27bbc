//! The client for applications, below `maitred.http`: origins, pools, calls, responses.
//!
//! Promises: a call by a thread is made on that thread, with the interpreter released from the request to the head; a
//! response's fields are made into Python objects when they are asked for. It works without a running server.
//!
//! Leaves out: URLs, redirects, cookies, the decoding of bodies (`python/maitred/http/`).

mod body;
mod failure;
mod origin;
mod pool;
mod response;

pub(crate) use failure::HttpFailure;
pub(crate) use origin::HttpOrigin;
pub(crate) use pool::HttpPool;
pub(crate) use response::HttpResponse;
