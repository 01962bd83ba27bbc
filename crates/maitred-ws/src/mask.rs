//! Masking (RFC 6455 §5.3): the bytes of a client are combined with four bytes by exclusive or, so that the client
//! cannot choose the bytes that a proxy in between sees.

/// The mask of a frame, turned so that its first byte is that of the next byte of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mask([u8; 4]);

impl Mask {
    pub(crate) const fn new(key: [u8; 4]) -> Self {
        Self(key)
    }

    /// Unmasks the next bytes of the payload.
    pub(crate) fn apply(&mut self, payload: &mut [u8]) {
        let [a, b, c, d] = self.0;
        let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        // Words of 8 bytes; the compiler makes vectors of them.
        let (words, rest) = payload.as_chunks_mut::<8>();
        for word in words {
            *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
        }
        for (byte, key) in rest.iter_mut().zip([a, b, c, d, a, b, c]) {
            *byte ^= key;
        }
        self.0.rotate_left(payload.len() % 4);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let mut payload = [0x7f, 0x9f, 0x4d, 0x51, 0x58];
        Mask::new([0x37, 0xfa, 0x21, 0x3d]).apply(&mut payload);
        assert_eq!(&payload, b"Hello");
    }

    proptest! {
        #[test]
        fn in_any_pieces_it_is_the_loop_of_the_rfc(
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            key: [u8; 4],
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let expected: Vec<u8> =
                payload.iter().enumerate().map(|(at, byte)| byte ^ key[at % 4]).collect();
            let mut got = payload.clone();
            let mut mask = Mask::new(key);
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(payload.len())).collect();
            ends.extend([0, payload.len()]);
            ends.sort_unstable();
            for two in ends.windows(2) {
                mask.apply(&mut got[two[0]..two[1]]);
            }
            prop_assert_eq!(got, expected);
        }
    }
}
