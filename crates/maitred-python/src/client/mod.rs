//! The client for applications, below `maitred.http`: origins, pools, calls, responses.
//!
//! ```text
//! thread:      HttpPool.send       --> Driven --(thread)-- polls and reads on this thread, without the interpreter
//! event loop:  HttpPool.send_async --> LoopCall --(event_loop)-- one epoll per loop, which the loop watches
//! ```
//! Promises: a call by a thread is made on that thread, with the interpreter released from the request to the head and the bytes
//! that came with the head; a call in an event loop needs no thread, and ends at once when its task is cancelled. Fields are made
//! into Python objects when they are asked for. All of it works without a running server, and in a child process.
//!
//! Leaves out: URLs, redirects, cookies, the decoding of bodies (`python/maitred/http/`).

mod awaiting;
mod driven;
mod event_loop;
mod failure;
mod lent;
mod loop_call;
mod origin;
mod pool;
mod request;
mod response;
mod source;
mod thread;

pub(crate) use failure::HttpFailure;
pub(crate) use loop_call::HttpBody;
pub(crate) use origin::{HttpOrigin, http_proxy_for};
pub(crate) use pool::HttpPool;
pub(crate) use response::HttpResponse;
