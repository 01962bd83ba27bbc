//! The events are the same for all cuts of the bytes, and no bytes cause a panic.

use super::*;
use proptest::prelude::*;

/// A frame that a client may send, or nearly.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![Just(0u32), Just(1), Just(3), Just(5), Just(7), Just(2)];
    let text = proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        stream.clone().prop_map(get),
        stream.clone().prop_map(post),
        (stream.clone(), 0u8..9).prop_map(|(stream, length)| post_of(stream, &length.to_string())),
        (stream.clone(), text.clone()).prop_map(|(stream, text)| data(stream, &text)),
        (stream.clone(), text.clone()).prop_map(|(stream, text)| last_data(stream, &text)),
        (stream.clone(), text.clone(), any::<u8>())
            .prop_map(|(stream, text, padding)| padded(stream, 0, &text, padding)),
        stream.clone().prop_map(reset),
        (stream.clone(), any::<u32>()).prop_map(|(stream, bytes)| credit(stream, bytes)),
        (stream.clone(), stream.clone()).prop_map(|(stream, on)| depends(stream, on)),
        stream.clone().prop_map(|stream| priority_update(stream, "u=1, i")),
        (1u16..10, any::<u32>()).prop_map(|setting| settings_frame(&[setting])),
        stream.clone().prop_map(|stream| headers(stream, END_STREAM, &[("x", "y")])),
        stream.clone().prop_map(|stream| frame(HEADERS, END_STREAM, stream, &block(&GET))),
        stream.clone().prop_map(|stream| frame(CONTINUATION, END_HEADERS, stream, b"")),
        (any::<u8>(), any::<u8>(), stream, text)
            .prop_map(|(kind, flags, stream, text)| frame(kind, flags, stream, &text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn cut_in_any_way(frames in proptest::collection::vec(any_frame(), 0..12), piece in 1usize..60) {
        let (mut whole, mut cut) = (Server::new(), Server::new());
        let bytes = frames.concat();
        let seen = whole.feed(&bytes, usize::MAX);
        prop_assert_eq!(cut.feed(&bytes, piece), seen.clone());
        prop_assert_eq!(Server::new().feed(&bytes, 1), seen);
        prop_assert_eq!(cut.connection.counted(), whole.connection.counted());
    }
}
