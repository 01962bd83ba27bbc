//! Servers that do odd things: each call ends with a named result, and the next call on the pool is right.
//!
//! Leaves out: servers that are odd in reaching them, in TLS and in the coding of bodies, which need a driver.

use super::simulated::Do::{Cut, End, Refuse, Reset, Stall, Wait};
use super::simulated::{Ask, Client, Do, send};
use Ask::{Expect, Get, GetAgain, Head, Post, PostAgain, Upgrade};

/// The name of a row, the request, the server, the result.
type Row = (&'static str, Ask, Vec<Do>, &'static str);

const OK: &str = "HTTP/1.1 200 OK\r\n";
const LARGE: usize = 10_000_000;

/// Sends a good status line, these fields and this body.
fn with(fields: &str, body: &str) -> Vec<Do> {
    vec![send(format!("{OK}{fields}\r\n\r\n{body}"))]
}

fn line(line: &str) -> Vec<Do> {
    vec![send(format!("{line}\r\nContent-Length: 2\r\n\r\nok"))]
}

fn chunked(body: &str) -> Vec<Do> {
    with("Transfer-Encoding: chunked", body)
}

fn text(text: &str) -> Vec<Do> {
    vec![send(text)]
}

/// The same, with something behind it.
fn and(mut script: Vec<Do>, behind: impl IntoIterator<Item = Do>) -> Vec<Do> {
    script.extend(behind);
    script
}

/// The result does not depend on how the bytes are cut. Surplus bytes in a piece of their own are found by the look
/// before the next use.
fn holds(rows: Vec<Row>) {
    for (name, ask, script, expected) in rows {
        for piece in [usize::MAX, 7, 1] {
            let mut client = Client::new(piece);
            let result = client.call(ask, &script);
            let is_cut = piece < usize::MAX && result == expected.replace("Surplus", "kept");
            assert!(is_cut || result == expected, "{name}, in pieces of {piece}: {result}, not {expected}");
            assert_eq!(client.next(), "200 next, kept", "behind {name}, in pieces of {piece}");
        }
    }
}

#[test]
fn reach() {
    holds(vec![
        ("accepts and resets", Get, vec![Reset], "Broken, Failed"),
        ("accepts and closes", Get, vec![End], "Response(NoResponse), Failed"),
        ("accepts and is silent", Get, vec![], "Timeout(FirstByte), Failed"),
    ]);
}

#[test]
fn heads() {
    let head = |fields: &str| with(&format!("{fields}\r\nContent-Length: 2"), "ok");
    holds(vec![
        ("HTTP/1.0", Get, line("HTTP/1.0 200 OK"), "200 ok, ServerCloses"),
        (
            "HTTP/1.0 that keeps",
            Get,
            text("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"),
            "200 ok, kept",
        ),
        ("no reason", Get, line("HTTP/1.1 200"), "200 ok, kept"),
        ("an empty reason", Get, line("HTTP/1.1 200 "), "200 ok, kept"),
        ("a tab in the reason", Get, line("HTTP/1.1 200 O\tK"), "200 ok, kept"),
        ("an eight-bit reason", Get, line("HTTP/1.1 200 \u{fc}"), "200 ok, kept"),
        ("a NUL in the reason", Get, line("HTTP/1.1 200 O\0K"), "Response(Reason), Failed"),
        ("status 99", Get, line("HTTP/1.1 99 OK"), "Response(StatusCode), Failed"),
        ("status 600", Get, line("HTTP/1.1 600 OK"), "600 ok, kept"),
        ("status 2000", Get, line("HTTP/1.1 2000 OK"), "Response(StatusCode), Failed"),
        ("HTTP/2.0", Get, line("HTTP/2.0 200"), "Response(Version), Failed"),
        ("HTTP/1.2", Get, line("HTTP/1.2 200 OK"), "200 ok, kept"),
        ("http/1.1", Get, line("http/1.1 200 OK"), "Response(StatusLine), Failed"),
        ("ICY", Get, line("ICY 200 OK"), "Response(StatusLine), Failed"),
        ("bare LF", Get, text("HTTP/1.1 200 OK\nContent-Length: 2\n\nok"), "Response(BareLf), Failed"),
        ("bare LF in the fields", Get, head("A: b\nC: d"), "Response(BareLf), Failed"),
        ("an empty line first", Get, line("\r\nHTTP/1.1 200 OK"), "Response(StatusLine), Failed"),
        ("space before the colon", Get, head("A : b"), "Response(FieldName), Failed"),
        ("a folded field", Get, head("A: b\r\n c"), "Response(FieldName), Failed"),
        ("NUL in a value", Get, head("A: b\0"), "Response(FieldValue), Failed"),
        ("CR alone in a value", Get, head("A: b\rC: d"), "Response(FieldValue), Failed"),
        ("eight bits in a value", Get, head("A: \u{fc}"), "200 ok, kept"),
        ("no colon", Get, head("A"), "Response(FieldName), Failed"),
        ("end in the head", Get, and(text("HTTP/1.1 200 OK\r\nA"), [End]), "Response(CutInHead), Failed"),
        ("reset in the head", Get, and(text("HTTP/1.1 200 OK\r\nA"), [Reset]), "Broken, Failed"),
        ("garbage first", Get, line("\u{16}\u{3}garbage"), "Response(StatusLine), Failed"),
        (
            "a greeting of another protocol",
            Get,
            text("SSH-2.0-OpenSSH_9.2\r\n"),
            "Response(StatusLine), Failed",
        ),
        ("an alert of TLS", Get, text("\u{15}\u{3}\u{3}\0\u{2}\u{2}F"), "Response(StatusLine), Failed"),
    ]);
}

#[test]
fn large_heads() {
    for (name, script, expected) in [
        ("201 fields", with(&"A: b\r\n".repeat(201), ""), "Response(TooManyFields), Failed"),
        ("200 fields", with(&("A: b\r\n".repeat(199) + "Content-Length: 2"), "ok"), "200 ok, kept"),
        ("64 KiB", with(&format!("A: {}", "b".repeat(65_536)), ""), "Response(HeadTooLarge), Failed"),
        (
            "1 MiB without line end",
            text(&(OK.to_owned() + &"A".repeat(1 << 20))),
            "Response(HeadTooLarge), Failed",
        ),
        (
            "1 MiB of status line",
            text(&("HTTP/1.1 200 ".to_owned() + &"A".repeat(1 << 20))),
            "Response(HeadTooLarge), Failed",
        ),
    ] {
        let mut client = Client::new(4096);
        assert_eq!(client.call(Get, &script), expected, "{name}");
        assert_eq!(client.next(), "200 next, kept", "behind {name}");
    }
}

#[test]
fn lengths() {
    let length = |length: &str| with(&format!("Content-Length: {length}"), "hello");
    let coding = |coding: &str| with(&format!("Transfer-Encoding: {coding}"), "5\r\nhello\r\n0\r\n\r\n");
    holds(vec![
        ("+5", Get, length("+5"), "Response(ContentLength), Failed"),
        ("-1", Get, length("-1"), "Response(ContentLength), Failed"),
        ("5,5", Get, length("5,5"), "Response(ContentLength), Failed"),
        ("5,6", Get, length("5,6"), "Response(ContentLength), Failed"),
        ("05", Get, length("05"), "200 hello, kept"),
        ("2^64", Get, length("18446744073709551616"), "Response(ContentLength), Failed"),
        ("an empty length", Get, length(""), "Response(ContentLength), Failed"),
        ("twice equal", Get, length("5\r\nContent-Length: 5"), "Response(RepeatedLength), Failed"),
        ("twice unequal", Get, length("5\r\nContent-Length: 4"), "Response(RepeatedLength), Failed"),
        ("length and coding", Get, coding("chunked\r\nContent-Length: 5"), "Response(TwoLengths), Failed"),
        ("gzip, chunked", Get, coding("gzip, chunked"), "Response(UnknownCoding), Failed"),
        ("chunked, chunked", Get, coding("chunked, chunked"), "Response(ChunkedTwice), Failed"),
        ("chunked, gzip", Get, coding("chunked, gzip"), "Response(ChunkedNotLast), Failed"),
        ("identity", Get, coding("identity"), "Response(UnknownCoding), Failed"),
        ("xchunked", Get, coding("xchunked"), "Response(UnknownCoding), Failed"),
        ("chunked", Get, coding("chunked"), "200 hello, kept"),
        (
            "chunked in HTTP/1.0",
            Get,
            text("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            "Response(EncodingInHttp10), Failed",
        ),
        (
            "short body",
            Get,
            and(with("Content-Length: 5", "he"), [End]),
            "200 he Response(ShortBody), Failed",
        ),
        ("reset in the body", Get, and(with("Content-Length: 5", "he"), [Reset]), "200 he Broken, Failed"),
        ("surplus bytes", Get, with("Content-Length: 2", "ok!"), "200 ok, Surplus"),
        ("bytes behind HEAD", Head, with("Content-Length: 2", "ok"), "200, Surplus"),
        ("HEAD with a length", Head, with("Content-Length: 2", ""), "200, kept"),
        ("HEAD with a coding", Head, with("Transfer-Encoding: chunked", ""), "200, kept"),
        ("bytes behind 204", Get, text("HTTP/1.1 204 None\r\nContent-Length: 2\r\n\r\nok"), "204, Surplus"),
        ("bytes behind 304", Get, text("HTTP/1.1 304 Same\r\n\r\nok"), "304, Surplus"),
        ("304 with a length", Get, text("HTTP/1.1 304 Same\r\nContent-Length: 2\r\n\r\n"), "304, kept"),
        ("no length, end by close", Get, and(with("A: b", "hello"), [End]), "200 hello, UntilClose"),
        ("no length, cut within TLS", Get, and(with("A: b", "hello"), [Cut]), "200 hello NotClosed, Failed"),
        ("length, cut within TLS", Get, and(with("Content-Length: 2", "ok"), [Cut]), "200 ok, kept"),
        ("no length, reset", Get, and(with("A: b", "hello"), [Reset]), "200 hello Broken, Failed"),
    ]);
}

#[test]
fn chunks() {
    let end = "0\r\n\r\n";
    holds(vec![
        ("0x5", Get, chunked("0x5\r\nhello\r\n"), "200 Response(ChunkSize), Failed"),
        ("+5", Get, chunked("+5\r\nhello\r\n"), "200 Response(ChunkSize), Failed"),
        ("a space before 5", Get, chunked(" 5\r\nhello\r\n"), "200 Response(ChunkSize), Failed"),
        ("17 digits", Get, chunked("00000000000000005\r\n"), "200 Response(ChunkDigits), Failed"),
        ("an empty size", Get, chunked("\r\nhello\r\n"), "200 Response(ChunkSize), Failed"),
        ("an extension", Get, chunked(&format!("5;a=\"b\"\r\nhello\r\n{end}")), "200 hello, kept"),
        (
            "20 KiB of extension",
            Get,
            chunked(&format!("5;{}\r\n", "a".repeat(20_480))),
            "200 Response(ChunkLineTooLong), Failed",
        ),
        ("no CRLF behind a chunk", Get, chunked("5\r\nhello0\r\n"), "200 hello Response(ChunkEnd), Failed"),
        ("cut in a chunk", Get, and(chunked("5\r\nhe"), [End]), "200 he Response(CutInChunks), Failed"),
        (
            "no last chunk",
            Get,
            and(chunked("5\r\nhello\r\n"), [End]),
            "200 hello Response(CutInChunks), Failed",
        ),
        (
            "no line behind the last chunk",
            Get,
            and(chunked("5\r\nhello\r\n0\r\n"), [End]),
            "200 hello Response(CutInChunks), Failed",
        ),
        ("a trailer", Get, chunked("0\r\nX-Sum: 1\r\n\r\n"), "200 {\"X-Sum\": \"1\"}, kept"),
        ("a bad trailer", Get, chunked("0\r\nX Sum: 1\r\n\r\n"), "200 Response(Trailer), Failed"),
        ("a forbidden trailer", Get, chunked("0\r\nContent-Length: 1\r\n\r\n"), "200 {}, kept"),
        (
            "64 KiB of trailers",
            Get,
            chunked(&format!("0\r\nA: {}", "b".repeat(65_536))),
            "200 Response(TrailersTooLarge), Failed",
        ),
        ("surplus bytes", Get, chunked("0\r\n\r\nok"), "200, Surplus"),
    ]);
}

#[test]
fn interim_responses() {
    let interim =
        |interim: &str, times: usize| and(text(&interim.repeat(times)), with("Content-Length: 2", "ok"));
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let go = || vec![send("HTTP/1.1 100 Continue\r\n\r\n")];
    let no = |fields: &str| vec![send(format!("HTTP/1.1 417 No\r\nContent-Length: 2\r\n{fields}\r\nno"))];
    holds(vec![
        ("100 unasked", Get, interim("HTTP/1.1 100 Continue\r\n\r\n", 1), "100 200 ok, kept"),
        ("103 twice", Get, interim(hint, 2), "103 103 200 ok, kept"),
        ("103 ten times", Get, interim(hint, 10), "103 103 103 103 103 103 103 103 103 103 200 ok, kept"),
        (
            "103 eleven times",
            Get,
            interim(hint, 11),
            "103 103 103 103 103 103 103 103 103 103  TooManyInterim, Failed",
        ),
        (
            "100 with a length",
            Get,
            interim("HTTP/1.1 100 Go\r\nContent-Length: 9\r\n\r\n", 1),
            "100 200 ok, kept",
        ),
        ("end behind a 103", Get, and(text(hint), [End]), "103  Response(CutInHead), Failed"),
        (
            "101 unasked",
            Get,
            text("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n"),
            "Response(UnaskedSwitch), Failed",
        ),
        (
            "101 asked",
            Upgrade,
            text("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n\u{1}"),
            "101, Switched",
        ),
        ("an offer that is not taken", Upgrade, with("Content-Length: 2", "ok"), "200 ok, kept"),
        (
            "100 as asked",
            Expect,
            and(go(), [Wait(0), send(format!("{OK}Content-Length: 0\r\n\r\n"))]),
            "100 200, kept",
        ),
        ("417", Expect, no(""), "417 no, NoContinue"),
        ("417 with close", Expect, no("Connection: close\r\n"), "417 no, NoContinue"),
        ("200 in place of 100", Expect, with("Content-Length: 2", "ok"), "200 ok, NoContinue"),
        ("no 100 for a second", Expect, and(vec![Wait(1)], with("Content-Length: 2", "ok")), "200 ok, kept"),
    ]);
}

#[test]
fn times() {
    let slowly = |text: &str, seconds: u64| -> Vec<Do> {
        text.bytes().flat_map(|byte| [Wait(seconds), send([byte])]).collect()
    };
    let ok = format!("{OK}Content-Length: 2\r\n\r\nok");
    let late = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    holds(vec![
        ("the first byte late", Get, and(vec![Wait(6)], text(&ok)), "Timeout(FirstByte), Failed"),
        ("the first byte just in time", Get, and(vec![Wait(4)], text(&ok)), "200 ok, kept"),
        ("a byte each second", Get, slowly(&ok, 1), "200 ok, kept"),
        ("a byte each two seconds", Get, slowly(&ok, 2), "Timeout(Total), Failed"),
        ("stops in the head", Get, text("HTTP/1.1 200 OK\r\n"), "Timeout(Read), Failed"),
        ("stops in the body", Get, with("Content-Length: 5", "he"), "200 he Timeout(Read), Failed"),
        ("never reads", Post(LARGE), vec![Stall], "Timeout(Write), Failed"),
        (
            "closes just as a GET is written",
            GetAgain,
            vec![End],
            "Response(NoResponse), again: 200 next, kept",
        ),
        ("resets just as a GET is written", GetAgain, vec![Reset], "Broken, again: 200 next, kept"),
        ("closes just as a POST is written", PostAgain(2), vec![End], "Response(NoResponse), Failed"),
        (
            "resets before a byte of a POST is taken",
            PostAgain(2),
            vec![Refuse, Reset],
            "Broken, again: 200 next, kept",
        ),
        (
            "closes a reused connection in the head",
            GetAgain,
            and(text("HTTP/1.1 2"), [End]),
            "Response(CutInHead), Failed",
        ),
        ("408 to the idle connection", GetAgain, text(late), "IdleTimeout, again: 200 next, kept"),
        ("408 to the idle connection, for a POST", PostAgain(2), text(late), "408, ServerCloses"),
        ("408 to a new connection", Get, text(late), "408, ServerCloses"),
        (
            "says when it closes",
            Get,
            with("Keep-Alive: timeout=5, max=9\r\nContent-Length: 2", "ok"),
            "200 ok, kept",
        ),
        (
            "closes at once",
            Get,
            with("Keep-Alive: timeout=1, max=2\r\nContent-Length: 2", "ok"),
            "200 ok, KeepAlive",
        ),
        (
            "takes no further request",
            Get,
            with("Keep-Alive: max=0\r\nContent-Length: 2", "ok"),
            "200 ok, KeepAlive",
        ),
        (
            "says close and stays open",
            Get,
            with("Connection: close\r\nContent-Length: 2", "ok"),
            "200 ok, ServerCloses",
        ),
        ("two answers in one packet", Get, text(&ok.repeat(2)), "200 ok, Surplus"),
        ("closes when idle", Get, and(text(&ok), [End]), "200 ok, kept"),
    ]);
}

/// Unasked bytes stay in the script until the client looks at the idle connection.
#[test]
fn unasked_bytes_on_an_idle_connection() {
    let late = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 3\r\n\r\nbad";
    let mut client = Client::new(usize::MAX);
    let script = and(with("Content-Length: 2", "ok"), [send(late), End]);
    assert_eq!(client.call(Get, &script), "200 ok, kept");
    assert_eq!(client.next(), "200 next, kept", "not 408 bad");
}

#[test]
fn answers_before_the_request_has_ended() {
    let large = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";
    for (name, script, expected) in [
        ("stays open", text(large), "413 no, Early"),
        ("closes", and(text(large), [End]), "413 no, Early"),
        ("resets", and(text(large), [Reset]), "413 no, Early"),
        ("refuses bytes first", and(vec![Refuse], text(large)), "413 no, BrokenPipe"),
        ("resets without an answer", vec![Wait(0), Reset], "Broken, Failed"),
        ("answers 200 and reads on", with("Content-Length: 2", "ok"), "200 ok, Early"),
    ] {
        let mut client = Client::new(65_536);
        assert_eq!(client.call(Post(LARGE), &script), expected, "{name}");
        assert_eq!(client.next(), "200 next, kept", "behind {name}");
    }
}
