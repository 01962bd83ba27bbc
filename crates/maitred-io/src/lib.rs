//! The platform edge: poller, sockets, timers, clock, buffers.
