//! The way of a request: listener, connection, dispatch, handler, writer, outcome.
