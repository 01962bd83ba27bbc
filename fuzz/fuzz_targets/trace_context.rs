//! The context of a trace and the variables of OpenTelemetry. Input: lines `p` (traceparent), `s` (tracestate), `r`
//! (OTEL_RESOURCE_ATTRIBUTES), `a` (an answer of a collector), each with its value behind.
//!
//! A slow reader of traceparent agrees; a state that is passed on is printable, short, and read again as it is; an answer adds
//! up; what is encoded is UTF-8 in JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_trace::exporter::{Settings, retry_after};
use maitred_trace::span::{Kind, ServerRequest, Span};
use maitred_trace::{Context, Environment, Exporter, Flags, Format, Limits, Signal, Step, TraceState};

fuzz_target!(|input: &[u8]| {
    let lines = |kind: u8| {
        input.split(|byte| *byte == b'\n').filter_map(move |line| match line.split_first() {
            Some((first, rest)) if *first == kind => Some(rest),
            _ => None,
        })
    };
    let parents: Vec<&[u8]> = lines(b'p').collect();
    let read = Context::received(parents.iter().copied(), lines(b's'));
    let expected = if let [only] = parents[..] { slow(only) } else { None };
    assert_eq!(read.as_ref().map(|(context, _)| written(context)), expected);
    let state = TraceState::joined(lines(b's'));
    assert!(state.as_str().len() <= 512 && state.as_str().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    assert_eq!(TraceState::joined([state.as_str().as_bytes()]), state);
    if let Some((context, _)) = read {
        encoded(context, state.as_str(), input);
    }
    for line in lines(b'r') {
        let text = String::from_utf8_lossy(line).into_owned();
        let variable = |name: &str| (name == "OTEL_RESOURCE_ATTRIBUTES").then(|| text.clone());
        if let Ok(Some(environment)) = Environment::read(variable, None, &[Signal::Traces]) {
            assert!(environment.resource.iter().any(|(key, _)| key == "service.name"));
        }
    }
    lines(b'a').for_each(answered);
});

fn written(context: &Context) -> Vec<u8> {
    format!("00-{}-{}-{:02x}", context.trace, context.span, context.flags.bits()).into_bytes()
}

/// The context as it is written, by its places.
fn slow(field: &[u8]) -> Option<Vec<u8>> {
    let dashes = [2, 35, 52];
    let digit = |byte: u8| b"0123456789abcdef".iter().position(|known| *known == byte);
    let mut written: [u8; 55] = field.get(..55)?.try_into().ok()?;
    for (at, byte) in written.iter().enumerate() {
        if dashes.contains(&at) != (*byte == b'-') || !dashes.contains(&at) && digit(*byte).is_none() {
            return None;
        }
    }
    let version = &field[..2];
    let zeros = |part: &[u8]| part.iter().all(|byte| *byte == b'0');
    let longer = field.len() > 55;
    if version == b"ff" || longer && (version == b"00" || field[55] != b'-') {
        return None;
    }
    if zeros(&field[3..35]) || zeros(&field[36..52]) {
        return None;
    }
    written[..2].copy_from_slice(b"00");
    written[53] = b'0';
    written[54] = b'0' + (digit(field[54])? as u8 & 3);
    Some(written.to_vec())
}

fn encoded(context: Context, state: &str, input: &[u8]) {
    let request = ServerRequest { method: input, path: input, user_agent: input, ..ServerRequest::default() };
    let mut attributes = Vec::new();
    request.attributes(&mut attributes);
    let Context { trace, span: id, flags } = context;
    assert!(flags.bits() <= 3 && Flags::of(flags.bits()) == flags);
    let text = input.first().map_or(0, |byte| usize::from(*byte));
    let span = Span {
        trace,
        id,
        parent: None,
        flags,
        state,
        name: "name",
        kind: Kind::Server,
        start: 0,
        end: 0,
        attributes: &attributes,
        events: &[],
        links: &[],
        status: request.span_status(),
    };
    let (mut json, mut protobuf) = (Vec::new(), Vec::new());
    span.encode(Format::Json, &Limits { text, ..Limits::default() }, &mut json);
    let json = String::from_utf8(json).expect("UTF-8");
    assert!(!json.bytes().any(|byte| byte < b' ') && json.matches('{').count() > 3);
    span.encode(Format::Protobuf, &Limits { text, ..Limits::default() }, &mut protobuf);
    assert!(protobuf.len() < 1200 + 3 * 4 * text);
}

fn answered(line: &[u8]) {
    let _ = retry_after(line, 0);
    for status in [200, 400] {
        let mut exporter = Exporter::new(Signal::Traces, Settings::default(), [1, 2]);
        for _ in 0..3 {
            let _ = exporter.push(b"item", 0);
        }
        exporter.flush();
        let Step::Post(_) = exporter.next(0) else { unreachable!("it is due") };
        exporter.answered(status, None, line, 0);
        let counts = exporter.counts();
        assert_eq!(counts.sent + counts.refused, 3);
        while let Some(news) = exporter.news() {
            let told = news.to_string();
            assert!(told.len() < 1000 && !told.chars().any(char::is_control), "{told:?}");
        }
    }
}
