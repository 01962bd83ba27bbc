//! The WSGI adapter on the language seam: applications in Python, a written-down peer.

#![expect(unreachable_pub, reason = "the support module is shared by test programs")]

mod support;

use std::sync::{Arc, Mutex};
use std::thread;

use maitred_http::BodyLength;
use support::{Fixture, Peer, Sent, get, request};

#[test]
fn environ_follows_cgi_and_the_pep() {
    let app = Fixture::new(
        "import json\n\
         def app(environ, start_response):\n\
         \x20   global seen\n\
         \x20   seen = environ\n\
         \x20   start_response('200 OK', [])\n\
         \x20   return []\n",
    );
    let mut asked = request(
        "POST",
        "/caf%C3%A9%2Fx/%zz?q=%41&r",
        &[
            ("Host", "example.org:8080"),
            ("Content-Type", "text/plain"),
            ("Accept", "a"),
            ("X-Own", "caf\u{e9}"),
            ("accept", "b"),
            ("Cookie", "a=1"),
            ("Cookie", "b=2"),
            ("X_Own", "spoofed"),
            ("Proxy", "http://evil"),
            ("Transfer-Encoding", "chunked"),
        ],
        b"hello",
    );
    asked.head.body = BodyLength::Chunked;
    assert_eq!(app.send(asked).status(), 200, "{}", app.log());
    let value = |key: &str| app.evaluate(&format!("repr(seen.get({key:?}))"));
    assert_eq!(app.evaluate("type(seen) is dict"), "True");
    for (key, expected) in [
        ("REQUEST_METHOD", "'POST'"),
        ("SCRIPT_NAME", "''"),
        ("PATH_INFO", "'/caf\u{c3}\u{a9}/x/%zz'"),
        ("QUERY_STRING", "'q=%41&r'"),
        ("REQUEST_URI", "'/caf%C3%A9%2Fx/%zz?q=%41&r'"),
        ("RAW_URI", "'/caf%C3%A9%2Fx/%zz?q=%41&r'"),
        ("SERVER_NAME", "'127.0.0.1'"),
        ("SERVER_PORT", "'8000'"),
        ("SERVER_PROTOCOL", "'HTTP/1.1'"),
        ("REMOTE_ADDR", "'2001:db8::7'"),
        ("REMOTE_PORT", "'50123'"),
        ("CONTENT_TYPE", "'text/plain'"),
        ("CONTENT_LENGTH", "'5'"),
        ("HTTP_HOST", "'example.org:8080'"),
        ("HTTP_ACCEPT", "'a, b'"),
        ("HTTP_COOKIE", "'a=1; b=2'"),
        ("HTTP_X_OWN", "'caf\u{e9}'"),
        ("HTTP_PROXY", "None"),
        ("HTTP_TRANSFER_ENCODING", "None"),
        ("HTTP_CONTENT_TYPE", "None"),
        ("wsgi.version", "(1, 0)"),
        ("wsgi.url_scheme", "'http'"),
        ("wsgi.multithread", "True"),
        ("wsgi.multiprocess", "False"),
        ("wsgi.run_once", "False"),
    ] {
        // repr() of Python escapes some Latin-1 characters; compare the texts themselves.
        let expected = app.evaluate(&format!("repr({expected})"));
        assert_eq!(value(key), expected, "{key}");
    }
    assert_eq!(app.evaluate("seen['wsgi.input'].read()"), "b'hello'");
}

#[test]
fn a_get_has_no_content_fields_and_an_empty_input() {
    let app = Fixture::new(
        "def app(environ, start_response):\n\
         \x20   start_response('200 OK', [])\n\
         \x20   text = f\"{environ.get('CONTENT_LENGTH')} {environ.get('CONTENT_TYPE')} \"\n\
         \x20   return [(text + repr(environ['wsgi.input'].read())).encode()]\n",
    );
    assert_eq!(app.send(get("/")).body(), "None None b''");
    assert_eq!(app.send(request("OPTIONS", "*", &[], b"")).status(), 200);
}

fn plain(body: &str) -> Fixture {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    Fixture::new(&format!(
        "import sys, threading\nclosed = []\nclass Closing:\n    def __init__(self, blocks): self.blocks = blocks\n    \
         def __iter__(self): return iter(self.blocks)\n    def close(self): closed.append(1)\n\
         def app(environ, start_response):\n{body}"
    ))
}

fn answer(body: &str) -> (Sent, String) {
    let app = plain(body);
    let sent = app.send(get("/path"));
    (sent, app.log())
}

#[test]
fn a_list_leaves_as_one_block_with_its_length() {
    let (sent, log) =
        answer("start_response('404 Nothing Here', [('X-A', '\u{e9}')])\nreturn [b'ab', b'', b'c']");
    assert_eq!(log, "");
    let fields = vec![("X-A".to_owned(), "\u{e9}".to_owned())];
    assert_eq!(sent.heads, [(404, "Nothing Here".to_owned(), fields, Some(3))]);
    assert_eq!(sent.blocks, [b"abc"]);
    assert_eq!(sent.end.as_deref(), Some("finished"));
}

#[test]
fn a_generator_leaves_block_by_block_without_length_and_empty_blocks_are_skipped() {
    let (sent, _) = answer("start_response('200 OK', [])\nreturn iter([b'', b'a', b'', b'b'])");
    assert_eq!(sent.heads[0].3, None);
    assert_eq!(sent.blocks, [b"a", b"b"]);
    assert_eq!(sent.end.as_deref(), Some("finished"));
}

#[test]
fn an_iterable_of_length_one_has_a_known_length() {
    let (sent, _) = answer(
        "class One:\n    def __iter__(self): return iter([b'abc'])\n    def __len__(self): return 1\n\
         start_response('200 OK', [])\nreturn One()",
    );
    assert_eq!(sent.heads[0].3, Some(3));
}

#[test]
fn a_declared_length_becomes_the_length_and_is_no_field() {
    let (sent, _) = answer("start_response('200 OK', [('content-length', '2')])\nreturn iter([b'a', b'b'])");
    assert_eq!(sent.heads[0].2, []);
    assert_eq!(sent.heads[0].3, Some(2));
}

#[test]
fn a_body_longer_than_declared_is_cut_and_reported() {
    for result in ["[b'abc', b'd']", "iter([b'ab', b'c', b'd'])"] {
        let body = format!("start_response('200 OK', [('Content-Length', '2')])\nreturn {result}");
        let (sent, log) = answer(&body);
        assert_eq!(sent.body(), "ab", "{result}");
        assert_eq!(sent.end.as_deref(), Some("finished"));
        assert!(log.starts_with("GET /path: the response was cut\n"), "{log}");
        assert!(log.contains("declared length of 2 bytes"), "{log}");
    }
}

#[test]
fn a_body_shorter_than_declared_keeps_the_declared_length() {
    let (sent, _) = answer("start_response('200 OK', [('Content-Length', '9')])\nreturn [b'abc']");
    assert_eq!((sent.heads[0].3, sent.body().as_str()), (Some(9), "abc"));
}

#[test]
fn write_sends_before_the_iterable() {
    let (sent, log) = answer(
        "write = start_response('200 OK', [])\nwrite(b'a')\nwrite(b'')\nwrite(b'b')\nreturn [b'c', b'd']",
    );
    assert_eq!(sent.blocks, [&b"a"[..], b"b", b"cd"], "{log}");
    assert_eq!(sent.end.as_deref(), Some("finished"));
}

#[test]
fn no_block_is_an_empty_body_and_says_nothing_where_a_body_is_forbidden() {
    let source = "start_response(environ['QUERY_STRING'].replace('+', ' '), [])\nreturn []";
    let app = plain(source);
    assert_eq!(app.send(get("/?200+OK")).heads[0].3, Some(0));
    assert_eq!(app.send(get("/?304+Not+Modified")).heads[0].3, None);
    assert_eq!(app.send(get("/?204+No+Content")).heads[0].3, None);
    assert_eq!(app.send(request("HEAD", "/?200+OK", &[], b"")).heads[0].3, None);
}

#[test]
fn a_replaced_head_wins_until_the_first_block() {
    let (sent, log) = answer(
        "start_response('200 OK', [('X-A', '1')])\n\
         try:\n    raise ValueError('x')\n\
         except ValueError:\n    start_response('500 Oops', [('X-B', '2')], sys.exc_info())\n\
         return [b'sorry']",
    );
    assert_eq!(log, "");
    assert_eq!(sent.heads.len(), 1);
    assert_eq!((sent.status(), sent.heads[0].2[0].0.as_str()), (500, "X-B"));
}

#[test]
fn exc_info_after_the_first_block_raises_it_again_and_cuts_the_response() {
    let (sent, log) = answer(
        "write = start_response('200 OK', [])\nwrite(b'a')\n\
         try:\n    raise ValueError('original')\n\
         except ValueError:\n    start_response('500 Oops', [], sys.exc_info())\n\
         return [b'never']",
    );
    assert_eq!(sent.body(), "a");
    assert_eq!(sent.end.as_deref(), Some("aborted: the application raised ValueError: original"));
    assert!(log.contains("Traceback") && log.contains("ValueError: original"), "{log}");
}

#[test]
fn misuse_is_a_500_with_a_clear_entry() {
    for (body, expected) in [
        ("return []", "start_response() must be called before"),
        ("return [b'a']", "start_response() must be called before"),
        ("return iter([b'a'])", "start_response() must be called before"),
        ("start_response('200 OK', [])\nstart_response('200 OK', [])", "a second time without exc_info"),
        ("start_response(200, [])", "the status must be a str like '200 OK', not int"),
        ("start_response('20 OK', [])", "the status must be like '200 OK', not \"20 OK\""),
        ("start_response('200 O\\nK', [])", "the status must be like '200 OK'"),
        ("start_response('100 Continue', [])", "interim status"),
        ("start_response('200 OK', ())", "the headers must be a list of tuples, not tuple"),
        (
            "start_response('200 OK', [['a', 'b']])",
            "a header must be a tuple (name, value), not list of length 2",
        ),
        (
            "start_response('200 OK', [('a',)])",
            "a header must be a tuple (name, value), not tuple of length 1",
        ),
        ("environ['wsgi.early_hints']([('Link', 1)])", "a header's value must be a str, not int"),
        ("environ['wsgi.early_hints']([('Link', 'a\\r\\nb: c')])", "has a CR, LF, NUL or another control"),
        ("start_response('200 OK', [('a', 1)])", "a header's value must be a str, not int"),
        ("start_response('200 OK', [('a', '\u{20ac}')])", "outside Latin-1"),
        ("start_response('200 OK', [('a b', 'c')])", "invalid header name \"a b\""),
        ("start_response('200 OK', [('', 'c')])", "invalid header name \"\""),
        (
            "start_response('200 OK', [('X-A', 'b\\r\\nSet-Cookie: c')])",
            "has a CR, LF, NUL or another control character in it",
        ),
        ("start_response('200 OK', [('Content-Length', '+1')])", "invalid Content-Length \"+1\""),
        (
            "start_response('200 OK', [('Content-Length', '1'), ('content-length', '2')])",
            "two different Content-Length",
        ),
        ("start_response('200 OK', [])\nreturn b'ab'", "the application returned bytes"),
        ("start_response('200 OK', [])\nreturn ['ab']", "yielded str, not bytes"),
        ("start_response('200 OK', [])\nreturn iter(['ab'])", "yielded str, not bytes"),
        ("start_response('200 OK', [])\nreturn None", "the application returned NoneType"),
        (
            "start_response('200 OK', [])('text')",
            "write() takes bytes, and wsgi.early_hints a list of tuples, not str",
        ),
        (
            "start_response('200 OK', [])(b'a')\nstart_response('200 OK', [], 'x')",
            "exc_info must be a tuple of three, not str",
        ),
    ] {
        let (sent, log) = answer(body);
        if sent.blocks != [b"a"] {
            assert_eq!((sent.heads.len(), sent.status()), (1, 500), "{body}");
        }
        assert!(sent.end.is_some(), "{body}");
        assert!(log.contains(expected), "{body}: {log}");
        assert!(log.starts_with("GET /path: "), "{body}: {log}");
    }
}

#[test]
fn exceptions_of_every_kind_are_a_500_or_a_cut_response() {
    for exception in ["ValueError('x')", "SystemExit(3)", "KeyboardInterrupt()", "GeneratorExit()"] {
        let (sent, log) = answer(&format!("raise {exception}"));
        assert_eq!((sent.status(), sent.end.as_deref()), (500, Some("finished")), "{exception}");
        assert!(log.contains("Traceback"), "{log}");
        let (sent, _) = answer(&format!(
            "def blocks():\n    yield b'a'\n    raise {exception}\nstart_response('200 OK', [])\nreturn blocks()"
        ));
        assert_eq!(sent.body(), "a");
        assert!(sent.end.unwrap().starts_with("aborted: the application raised"), "{exception}");
    }
}

#[test]
fn close_is_called_once_whatever_happens() {
    for (blocks, calls) in [
        ("[b'a']", 1),
        ("['not bytes']", 1),
        ("[b'a', 'not bytes']", 1),
        ("[]", 1),
        ("(1/0 for _ in 'x')", 1),
    ] {
        let app = plain(&format!("start_response('200 OK', [])\nreturn Closing({blocks})"));
        app.send(get("/"));
        assert_eq!(app.evaluate("len(closed)"), calls.to_string(), "{blocks}: {}", app.log());
    }
    let app = plain("start_response('200 OK', [])\nreturn Closing([b'a', b'b'])");
    let peer = Arc::new(Peer { gone_after: Some(1), ..Peer::default() });
    let sent = app.send_to(&peer, get("/"));
    assert_eq!(app.evaluate("len(closed)"), "1");
    assert_eq!(sent.end.as_deref(), Some("aborted: the peer closed the connection"));
    assert_eq!(app.log(), "", "a peer that goes is no error");
}

#[test]
fn a_failing_close_is_reported_and_harms_nothing() {
    let app = plain(
        "class Bad(Closing):\n    def close(self): raise ValueError('in close')\n\
         start_response('200 OK', [])\nreturn Bad([b'a'])",
    );
    let sent = app.send(get("/"));
    assert_eq!((sent.body().as_str(), sent.end.as_deref()), ("a", Some("finished")));
    assert!(app.log().contains("close() of the response failed"), "{}", app.log());
}

#[test]
fn write_to_a_lost_peer_raises_and_is_not_reported() {
    let app = plain(
        "write = start_response('200 OK', [])\nwrite(b'a')\n\
         try:\n    write(b'b')\n\
         except BrokenPipeError:\n    closed.append('told')\n    raise",
    );
    let peer = Arc::new(Peer { gone_after: Some(1), ..Peer::default() });
    app.send_to(&peer, get("/"));
    assert_eq!(app.evaluate("closed"), "['told']");
    assert_eq!(app.log(), "");
}

#[test]
fn the_interpreter_is_released_while_a_slow_reader_is_waited_for() {
    let app = plain("start_response('200 OK', [])\nreturn iter([b'a', b'b'])");
    let peer = Arc::new(Peer { full: Mutex::new(true), ..Peer::default() });
    let sent = thread::scope(|scope| {
        let waiting = scope.spawn(|| app.send_to(&peer, get("/")));
        let sent = peer.sent.lock().unwrap();
        let sent = peer.changed.wait_while(sent, |sent| sent.blocks.is_empty()).unwrap();
        assert_eq!(sent.blocks, [b"a"], "the second block waits for room");
        drop(sent);
        // This line needs the interpreter: it would never end if the waiting thread kept it.
        assert_eq!(app.evaluate("1 + 1"), "2");
        peer.room();
        waiting.join().unwrap()
    });
    assert_eq!(sent.blocks, [b"a", b"b"]);
}

#[test]
fn no_thread_waits_for_the_reader_of_a_complete_body() {
    let big = "[b'a' * 100_000, b'b' * 100_000, b'c' * 100_000]";
    for (result, blocks) in [(big, 3), ("iter([b'only'])", 1), ("[b'whole']", 1)] {
        let app = plain(&format!("start_response('200 OK', [])\nreturn {result}"));
        // No reader makes room: a thread that waits for it waits for ever.
        let peer = Arc::new(Peer { full: Mutex::new(true), ..Peer::default() });
        let sent = app.send_to(&peer, get("/"));
        assert_eq!((sent.blocks.len(), sent.end.as_deref()), (blocks, Some("finished")), "{result}");
    }
}

#[test]
fn wsgi_errors_are_logged_line_by_line() {
    let app = plain(
        "errors = environ['wsgi.errors']\nerrors.write('one\\ntwo\\nthr')\nerrors.writelines(['ee\\n', 'rest'])\n\
         start_response('200 OK', [])\nreturn []",
    );
    app.send(get("/"));
    assert_eq!(*app.log.lock().unwrap(), ["one", "two", "three", "rest"]);
}

#[test]
fn wsgi_errors_keep_at_most_a_limited_part_of_a_line() {
    let app = plain(
        "errors = environ['wsgi.errors']\nerrors.write('x' * int(environ['QUERY_STRING']))\n\
         errors.write('y')\nstart_response('200 OK', [])\nreturn []",
    );
    let lengths = |target| {
        app.send(get(target));
        app.log.lock().unwrap().drain(..).map(|entry| entry.len()).collect::<Vec<_>>()
    };
    assert_eq!(lengths("/?16383"), [16384], "up to the limit the line waits for its end");
    assert_eq!(lengths("/?16385"), [16385, 1], "above it the part that is there is written");
}

#[test]
fn start_response_after_the_end_is_refused() {
    let app = plain(
        "for earlier in closed:\n    earlier('200 OK', [])\n\
         closed.append(start_response)\nstart_response('200 OK', [])\nreturn []",
    );
    assert_eq!(app.send(get("/")).status(), 200);
    assert_eq!(app.send(get("/")).status(), 500);
    assert!(app.log().contains("start_response() after the end of the response"), "{}", app.log());
}
