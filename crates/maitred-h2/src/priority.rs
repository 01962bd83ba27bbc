//! How urgent a response is: the `Priority` field (RFC 9218 §4), which a PRIORITY_UPDATE carries, too.

/// The priority of a response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 to 7, where 0 is the most urgent.
    pub urgency: u8,
    /// Parts of it are of use, so that it may take turns with others of its urgency.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// The priority of a peer that has sent `before`, and now sends this value, in a further field of the same name.
    /// None: it has sent no dictionary.
    pub(crate) fn said(before: Option<Self>, value: &[u8]) -> Option<Self> {
        before.unwrap_or_default().read(value).or(before)
    }

    /// Reads the value of a `Priority` field, such as `u=1, i` (a dictionary of RFC 9651 §3.2). Missing and wrong
    /// members are as in `self`, and all of them where the value is no dictionary.
    pub fn updated(self, value: &[u8]) -> Self {
        self.read(value).unwrap_or(self)
    }

    fn read(mut self, value: &[u8]) -> Option<Self> {
        let mut rest = value.trim_ascii();
        while !rest.is_empty() {
            let (key, behind) = key(rest)?;
            let (item, behind) = match behind.split_first() {
                Some((b'=', behind)) => item(behind)?,
                _ => (Item::Boolean(true), behind),
            };
            match (key, item) {
                (b"u", Item::Integer(urgency @ 0..=7)) => self.urgency = urgency,
                (b"i", Item::Boolean(incremental)) => self.incremental = incremental,
                _ => {}
            }
            rest = parameters(behind)?.trim_ascii_start();
            if let Some((comma, behind)) = rest.split_first() {
                rest = behind.trim_ascii_start();
                if *comma != b',' || rest.is_empty() {
                    return None;
                }
            }
        }
        Some(self)
    }
}

/// The parts of a value that matter here.
#[derive(Clone, Copy)]
enum Item {
    /// 0 to 255.
    Integer(u8),
    Boolean(bool),
    Other,
}

/// The first `length` bytes, and the rest.
fn split(text: &[u8], is: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let length = text.iter().position(|byte| !is(*byte)).unwrap_or(text.len());
    text.split_at_checked(length).unwrap_or_default()
}

fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = *text.first()?;
    let is_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte);
    (first.is_ascii_lowercase() || first == b'*').then(|| split(text, is_key))
}

fn item(text: &[u8]) -> Option<(Item, &[u8])> {
    let Some((b'(', mut rest)) = text.split_first() else { return bare_item(text) };
    loop {
        rest = split(rest, |byte| byte == b' ').1;
        if let Some((b')', behind)) = rest.split_first() {
            return Some((Item::Other, behind));
        }
        rest = parameters(bare_item(rest)?.1)?;
        if !matches!(rest.first(), Some(b' ' | b')')) {
            return None;
        }
    }
}

fn bare_item(text: &[u8]) -> Option<(Item, &[u8])> {
    let (first, behind) = text.split_first()?;
    match first {
        b'?' => match behind.split_first()? {
            (b'0', behind) => Some((Item::Boolean(false), behind)),
            (b'1', behind) => Some((Item::Boolean(true), behind)),
            _ => None,
        },
        b'0'..=b'9' | b'-' => {
            let (digits, behind) = split(text, |byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-');
            let number = std::str::from_utf8(digits).ok()?;
            number.parse::<f64>().ok()?;
            Some((number.parse().map_or(Item::Other, Item::Integer), behind))
        }
        b'"' => string(behind),
        b':' => {
            let (_, behind) = split(behind, |byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
            behind.split_first().filter(|(end, _)| **end == b':').map(|(_, behind)| (Item::Other, behind))
        }
        b'a'..=b'z' | b'A'..=b'Z' | b'*' => {
            let is_token = |byte| maitred_http::fields::is_token(&[byte]) || b":/".contains(&byte);
            Some((Item::Other, split(text, is_token).1))
        }
        _ => None,
    }
}

/// The rest of a string behind its first quotation mark.
fn string(mut text: &[u8]) -> Option<(Item, &[u8])> {
    loop {
        text = match text {
            [b'"', behind @ ..] => return Some((Item::Other, behind)),
            [b'\\', b'"' | b'\\', behind @ ..] => behind,
            [b'\\', ..] => return None,
            [b' '..=b'~', behind @ ..] => behind,
            _ => return None,
        };
    }
}

fn parameters(mut text: &[u8]) -> Option<&[u8]> {
    while let Some((b';', behind)) = text.split_first() {
        let (_, behind) = key(split(behind, |byte| byte == b' ').1)?;
        text = match behind.split_first() {
            Some((b'=', behind)) => bare_item(behind)?.1,
            _ => behind,
        };
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_and_incremental() {
        let of = |value: &str| {
            let priority = Priority::default().updated(value.as_bytes());
            (priority.urgency, priority.incremental)
        };
        for (value, expected) in [
            ("", (3, false)),
            ("u=0", (0, false)),
            ("u=7,i", (7, true)),
            ("i", (3, true)),
            ("  u=5 ,\ti=?1 ", (5, true)),
            ("i=?0", (3, false)),
            ("i, i=?0", (3, false)),
            ("u=1, u=2", (2, false)),
            ("u=2;x=1;y, i;a=\"b,c\"", (2, true)),
            ("a=(1 \"x\" y;z), b=:aGk=:, c=\"u=9,\\\"\", d=tok/en, e=1.5, f=-3, *g, u=1", (1, false)),
            ("a=(), u=1", (1, false)),
            // Values of another kind or out of range say nothing.
            ("u=8, i", (3, true)),
            ("u=-1", (3, false)),
            ("u=1.0", (3, false)),
            ("u=256", (3, false)),
            ("u, i=1", (3, false)),
            ("u=?1", (3, false)),
            // No dictionaries.
            ("u=1,", (3, false)),
            ("u=1 i", (3, false)),
            ("u=1;", (3, false)),
            ("u=", (3, false)),
            ("U=1", (3, false)),
            ("u=1, =2", (3, false)),
            ("u=1, a=\"x", (3, false)),
            ("u=1, a=(1", (3, false)),
            ("u=1, a=(1\"x\")", (3, false)),
            ("u=1, a=?2", (3, false)),
            ("u=1, a=:x", (3, false)),
            ("u=1, a=1-1", (3, false)),
            ("u=1, a=\"\\x\"", (3, false)),
            ("u=1, a=\u{e4}", (3, false)),
        ] {
            assert_eq!(of(value), expected, "{value}");
        }
    }

    #[test]
    fn missing_members_stay() {
        let before = Priority { urgency: 1, incremental: true };
        assert_eq!(before.updated(b"u=4"), Priority { urgency: 4, incremental: true });
        assert_eq!(before.updated(b"u=4 i"), before);
    }

    #[test]
    fn an_explicit_default_is_a_word_and_a_broken_dictionary_is_none() {
        assert_eq!(Priority::said(None, b"u=3"), Some(Priority::default()));
        assert_eq!(Priority::said(None, b"u=1,"), None);
        let first = Some(Priority { urgency: 1, incremental: false });
        assert_eq!(Priority::said(first, b"i"), Some(Priority { urgency: 1, incremental: true }));
        assert_eq!(Priority::said(first, b"%"), first);
    }
}
