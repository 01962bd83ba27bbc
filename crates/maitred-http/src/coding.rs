//! Content codings, and which of them a peer accepts (RFC 9110 §8.4.1 and §12.5.3).
//!
//! Promises: no allocation while a field is read; a coding the peer refused is never chosen. Leaves out: compressing.

/// A content coding that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// No coding.
    Identity = 0,
    /// RFC 1952
    Gzip = 1,
    /// RFC 8878, with a window of at most 8 MiB (RFC 9659)
    Zstd = 2,
    /// RFC 7932
    Brotli = 3,
}

impl Coding {
    /// The codings that compress, the one that usually saves most first.
    pub const COMPRESSED: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// The value of `Content-Encoding`; none for [`Identity`](Self::Identity), which is not to stand there.
    pub fn token(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
            Self::Brotli => Some("br"),
        }
    }

    /// The name in `Accept-Encoding`.
    pub fn name(self) -> &'static str {
        self.token().unwrap_or("identity")
    }

    /// The coding of this name, compared without case. `x-gzip` is `gzip` (RFC 9110 §8.4.1.3).
    pub fn named(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        let all = [Self::Identity, Self::Gzip, Self::Zstd, Self::Brotli];
        all.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// A weight in thousandths, 0 to 1000 (RFC 9110 §12.4.2).
pub type Weight = u16;

/// The content of the `Accept-Encoding` fields of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The weights by coding, where it is named.
    named: [Option<Weight>; 4],
    /// The weight of `*`.
    others: Option<Weight>,
}

impl Accepted {
    /// Reads the values of all `Accept-Encoding` lines, which are one list. Of a coding that is named twice the last
    /// one counts. An invalid weight counts as 0: an unreadable one is no acceptance.
    pub fn of<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut accepted = Self::default();
        for element in values.flat_map(|value| value.split(|byte| *byte == b',')) {
            let mut parts = element.split(|byte| *byte == b';');
            let token = parts.next().unwrap_or_default().trim_ascii();
            let weight = weight(parts);
            if token == b"*" {
                accepted.others = Some(weight);
            } else if let Some(coding) = Coding::named(token)
                && let Some(place) = accepted.named.get_mut(coding as usize)
            {
                *place = Some(weight);
            }
        }
        accepted
    }

    /// The weight of a coding that compresses: 0 where it is not acceptable. Where nothing is said none is accepted; RFC
    /// 9110 §12.5.3 allows any of them then, but a client that says nothing often cannot decode.
    fn weight(&self, coding: Coding) -> Weight {
        self.named.get(coding as usize).copied().flatten().or(self.others).unwrap_or(0)
    }

    /// The coding to answer with: of those in `order` that are `available` the one with the highest weight, the earlier
    /// one on a tie. Where the peer accepts none of them it is [`Coding::Identity`], even if that is refused, which RFC
    /// 9110 §12.5.3 allows.
    pub fn choose(
        &self,
        order: impl IntoIterator<Item = Coding>,
        available: impl Fn(Coding) -> bool,
    ) -> Coding {
        let mut best = (Coding::Identity, 0);
        for coding in order {
            let weight = self.weight(coding);
            if weight > best.1 && available(coding) {
                best = (coding, weight);
            }
        }
        // Identity that is not named is acceptable, but anything named comes first.
        if self.weight(Coding::Identity) > best.1 { Coding::Identity } else { best.0 }
    }

    /// All accepted codings, as the peer prefers them; on a tie in the order of [`Coding::COMPRESSED`], and
    /// [`Coding::Identity`] behind them. Identity is missing only where it is refused.
    pub fn in_order(&self) -> Vec<Coding> {
        let is_refused = self.weight(Coding::Identity) == 0
            && (self.others.is_some() || self.named.first().copied().flatten().is_some());
        let mut accepted: Vec<Coding> =
            Coding::COMPRESSED.into_iter().filter(|coding| self.weight(*coding) > 0).collect();
        accepted.extend((!is_refused).then_some(Coding::Identity));
        // The sort is stable.
        accepted.sort_by_key(|coding| std::cmp::Reverse(self.weight(*coding)));
        accepted
    }
}

/// The weight among the parameters of an element, 1000 when there is none.
fn weight<'a>(parameters: impl Iterator<Item = &'a [u8]>) -> Weight {
    for parameter in parameters {
        let parameter = parameter.trim_ascii();
        if let Some(value) = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")) {
            return thousandths(value).unwrap_or(0);
        }
    }
    1000
}

/// `qvalue` of RFC 9110 §12.4.2: 0 or 1 with up to three decimals, at most 1.
fn thousandths(value: &[u8]) -> Option<Weight> {
    let (whole, decimals) = match value {
        [whole] | [whole, b'.'] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut result: Weight = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    for (digit, unit) in decimals.iter().zip([100, 10, 1]) {
        result += Weight::from(char::from(*digit).to_digit(10)? as u8) * unit;
    }
    (result <= 1000).then_some(result)
}
