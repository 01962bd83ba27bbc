//! Conversations as they stand on the wire. Each is played in one piece, and cut into small ones.

use crate::support::Server;
use maitred_testkit::Script;

fn play(text: &str) {
    let script = Script::parse(text);
    for piece in [usize::MAX, 1, 2, 3, 7, 16] {
        script.play(&mut Server::default(), piece);
    }
}

#[test]
fn the_connection_is_kept_in_http_11() {
    play(
        "> GET /hello HTTP/1.1
         > Host: a
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 5
         <
         << hello
         = open
         > GET /nothing HTTP/1.1
         > Host: a
         > Connection: close
         >
         < HTTP/1.1 404 Not Found
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 0
         < Connection: close
         <
         = closed",
    );
}

#[test]
fn http_10_closes_unless_asked_to_keep() {
    play(
        "> GET /hello HTTP/1.0
         > Connection: keep-alive
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 5
         < Connection: keep-alive
         <
         << hello
         = open
         > GET /hello HTTP/1.0
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 5
         < Connection: close
         <
         << hello
         = closed",
    );
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    play(
        "> POST /echo HTTP/1.1
         > Host: a
         > Content-Length: 3
         >
         >> one
         > POST /echo HTTP/1.1
         > Host: a
         > Transfer-Encoding: chunked
         >
         > 2;x=y
         > tw
         > 1
         > o
         > 0
         >
         > HEAD /hello HTTP/1.1
         > Host: a
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 3
         <
         << one
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 3
         <
         << two
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 5
         <
         = open",
    );
}

#[test]
fn an_unknown_length_is_chunked_in_11_and_ends_with_the_connection_in_10() {
    play(
        "> GET /stream HTTP/1.1
         > Host: a
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Transfer-Encoding: chunked
         <
         < 3
         < one
         < 7
         < and two
         < 0
         <
         = open
         > GET /stream HTTP/1.0
         > Connection: keep-alive
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Connection: close
         <
         << oneand two
         = closed",
    );
}

#[test]
fn a_client_that_expects_100_gets_it_before_its_body() {
    play(
        "> POST /echo HTTP/1.1
         > Host: a
         > Expect: 100-Continue
         > Content-Length: 2
         >
         < HTTP/1.1 100 Continue
         <
         >> hi
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 2
         <
         << hi
         = open",
    );
}

#[test]
fn no_100_in_http_10_or_without_a_body() {
    play(
        "> POST /hello HTTP/1.1
         > Host: a
         > Expect: 100-continue
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 5
         <
         << hello
         > POST /echo HTTP/1.0
         > Expect: 100-continue
         > Content-Length: 1
         >
         = open
         >> x
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 1
         < Connection: close
         <
         << x
         = closed",
    );
}

#[test]
fn trailers_arrive_without_those_that_are_forbidden() {
    play(
        "> POST /echo HTTP/1.1
         > Host: a
         > Transfer-Encoding: chunked
         > Trailer: X-Sum
         >
         > 2
         > hi
         > 0
         > X-Sum: 7
         > Content-Length: 99
         > Host: evil
         > X-Forwarded-For: evil
         >
         < HTTP/1.1 200 OK
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 11
         <
         << hi[X-Sum=7]
         = open",
    );
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    play(
        r">
         > OPTIONS * HTTP/1.1
         > Host: a
         >
         < HTTP/1.1 200 OK
         < Allow: GET, HEAD
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 0
         <
         = open
         >> \r\n\r\nGET /nothing HTTP/1.1\r\nHost: a\r\n\r\n
         < HTTP/1.1 404 Not Found
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 0
         <
         = open",
    );
}

#[test]
fn bytes_behind_a_refused_request_are_never_looked_at() {
    play(
        "> POST /echo HTTP/1.1
         > Host: a
         > Content-Length: 4
         > Transfer-Encoding: chunked
         >
         > 0
         >
         > GET /hello HTTP/1.1
         > Host: a
         >
         < HTTP/1.1 400 Bad Request
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 64
         < Connection: close
         <
         << both Content-Length and Transfer-Encoding (RFC 9112 section 6.3)
         = closed",
    );
}

#[test]
fn the_preface_of_http_2_is_another_version() {
    play(
        "> PRI * HTTP/2.0
         >
         > SM
         >
         < HTTP/1.1 505 HTTP Version Not Supported
         < Date: Sun, 06 Nov 1994 08:49:37 GMT
         < Server: maitred
         < Content-Length: 30
         < Connection: close
         <
         << protocol version not supported
         = closed",
    );
}
