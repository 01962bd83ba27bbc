//! Servers with TLS and proxies over real sockets: each call ends with a named result, and the next call on the pool is
//! right.

mod kit;
mod proxies;
mod servers;
