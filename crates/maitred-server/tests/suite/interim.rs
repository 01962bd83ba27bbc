//! Interim responses (RFC 9110 §15.2) that a handler sends before its own.

use std::io::Write;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::harness::{connect, exchange, get, get_last, read_response, serve, settings, start, text};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, SendError};
use maitred_server::Routes;

fn hints(number: usize) -> ResponseHead {
    ResponseHead::new(Status::EARLY_HINTS).with("Link", format!("</{number}.css>; rel=preload"))
}

#[test]
fn hints_are_there_before_the_handler_has_answered() {
    let (go, went) = mpsc::channel::<()>();
    let went = Mutex::new(went);
    let running = serve(move |mut exchange: Exchange| {
        for number in 1..3 {
            assert_eq!(exchange.send_interim(&hints(number)), Ok(()));
        }
        went.lock().unwrap().recv().expect("the test has read the hints");
        text(exchange, "page");
    });
    let mut stream = connect(running.address);
    for _ in 0..2 {
        stream.write_all(&get("/")).unwrap();
        for number in 1..3 {
            let expected = format!("HTTP/1.1 103 Early Hints\r\nLink: </{number}.css>; rel=preload\r\n\r\n");
            assert_eq!(read_response(&mut stream).0, expected);
        }
        go.send(()).unwrap();
        let (head, body) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("Link"), "{head}");
        assert_eq!(body, b"page");
    }
}

#[test]
fn http_10_gets_none_and_what_is_no_interim_response_is_refused() {
    let running = serve(|mut exchange: Exchange| {
        assert_eq!(exchange.send_interim(&hints(1)), Ok(()));
        for status in [Status::CONTINUE, Status::SWITCHING_PROTOCOLS, Status::OK] {
            let refused = exchange.send_interim(&ResponseHead::new(status));
            assert!(matches!(refused, Err(SendError::InvalidField(_))), "{refused:?}");
        }
        text(exchange, "page");
    });
    let answer = exchange(running.address, b"GET / HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\npage"), "{answer}");
    let answer = exchange(running.address, &get_last("/"));
    assert!(
        answer.starts_with("HTTP/1.1 103 Early Hints\r\n") && answer.ends_with("\r\n\r\npage"),
        "{answer}"
    );
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
}

/// A hint is no response: the time limit goes on, and the engine's answer stands behind the hint.
#[test]
fn a_handler_that_has_sent_a_hint_still_has_to_answer_in_time() {
    let (end, ended) = mpsc::channel::<()>();
    let ended = Mutex::new(ended);
    let handler = move |mut exchange: Exchange| {
        assert_eq!(exchange.send_interim(&hints(1)), Ok(()));
        let _ = ended.lock().unwrap().recv();
        assert_eq!(exchange.send_interim(&hints(2)), Err(SendError::Closed));
        text(exchange, "too late");
    };
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.pool.limits.request_timeout = Some(Duration::from_millis(300));
    let running = start(settings);
    let answer = exchange(running.address, &get("/"));
    assert!(answer.starts_with("HTTP/1.1 103 Early Hints\r\n"), "{answer}");
    assert!(answer.contains("\r\n\r\nHTTP/1.1 504 Gateway Timeout\r\n"), "{answer}");
    drop(end);
}
