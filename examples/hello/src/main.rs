//! A Rust program with its own handler. `cargo run -p hello -- 127.0.0.1:8000`
use std::sync::Arc;

use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;
use maitred_server::{Level, Log, LogTarget, Routes, Server, Settings};

fn hello(exchange: Exchange) {
    let head = ResponseHead::new(Status::OK).with("Content-Type", "text/plain");
    // The peer may have gone meanwhile: nothing is left to do then.
    let _ = exchange.respond(head, "Hello from Rust\n");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log = Arc::new(Log::open(Level::Info, LogTarget::Stderr, None)?);
    let mut settings = Settings::new(Routes::new().with_application(Arc::new(hello)), log);
    settings.listeners.push(std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:8000").parse()?);
    let server = Server::start(settings)?;
    server.log().plain(&format!("http://{}", server.addresses()[0]));
    loop {
        std::thread::park();
    }
}
