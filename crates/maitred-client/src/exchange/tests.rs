use super::*;

#[test]
fn a_large_body_takes_little_memory_however_little_a_socket_takes() {
    let (method, fields, now) = (Method::Post, FieldSet::new(), Instant::now());
    let body = vec![b'x'; 10_000_000];
    let request = OutgoingRequest {
        method: &method,
        target: b"/",
        authority: b"a",
        fields: &fields,
        length: Some(body.len() as u64),
        upgrade: false,
    };
    let mut exchange = Exchange::begin(&request, Circumstances::default(), now).expect("a good head");
    let mut given = 0;
    while given < body.len() {
        given += exchange.send_body(&body[given..]).expect("within its length");
        // Never all of it.
        exchange.transmitted(exchange.to_transmit().len() - 1, now);
    }
    assert!(exchange.out.capacity() <= 4 * ROOM, "{}", exchange.out.capacity());
    assert_eq!((exchange.body_left(), exchange.to_transmit()), (Some(0), &b"x"[..]));
}
