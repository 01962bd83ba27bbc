//! The parts of a path that match the `*` of its pattern.

use super::{Case, Form, PathPattern};

/// The part that a `*` matches. None for that of `/report/*` in `/report`: there is nothing behind the slash, and no
/// slash.
type Capture<'a> = Option<&'a [u8]>;

impl PathPattern {
    /// The number of `*` in it.
    pub fn stars(&self) -> usize {
        self.text.matches('*').count()
    }

    /// The parts of this path that match the `*`, in their order; none if the pattern does not [match](Self::matches)
    /// it. The path is decoded. A `*` matches as little as it can, the last one the rest.
    pub fn captures<'a>(&self, path: &'a [u8]) -> Option<Vec<Capture<'a>>> {
        let text = self.text.as_bytes();
        match self.form {
            Form::Literal => self.case.same(path, text).then(Vec::new),
            Form::Anywhere => {
                let mut found = Vec::new();
                of_text(text, path, self.case, &mut found)?;
                Some(found)
            }
            Form::Segments => of_segments(text, path, self.case),
        }
    }
}

fn of_segments<'a>(pattern: &[u8], path: &'a [u8], case: Case) -> Option<Vec<Capture<'a>>> {
    let is_open = pattern.ends_with(b"*");
    let mut found = Vec::new();
    let mut wanted = pattern.split(|byte| *byte == b'/').peekable();
    let mut rest = Some(path);
    while let Some(pattern) = wanted.next() {
        let is_last = wanted.peek().is_none();
        let Some(left) = rest else {
            found.push(None);
            return (is_last && pattern == b"*").then_some(found);
        };
        let end = left.iter().position(|byte| *byte == b'/');
        let segment = &left[..end.unwrap_or(left.len())];
        of_text(pattern, segment, case, &mut found)?;
        if is_last && is_open {
            // The last one matches all further segments, too.
            let start = segment.len() - found.pop()??.len();
            found.push(Some(&left[start..]));
            return Some(found);
        }
        rest = end.map(|end| &left[end + 1..]);
    }
    rest.is_none().then_some(found)
}

/// Matches as `matches_text` does, and collects the parts between the fixed ones.
fn of_text<'a>(pattern: &[u8], text: &'a [u8], case: Case, found: &mut Vec<Capture<'a>>) -> Option<()> {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let mut rest = case.strip_prefix(text, parts.next()?)?;
    let Some(last) = parts.next_back() else { return rest.is_empty().then_some(()) };
    for part in parts.filter(|part| !part.is_empty()) {
        let at = case.position(rest, part)?;
        found.push(Some(&rest[..at]));
        rest = &rest[at + part.len()..];
    }
    found.push(Some(case.strip_suffix(rest, last)?));
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captures<'a>(pattern: &str, path: &'a str) -> Option<Vec<Option<&'a str>>> {
        let pattern: PathPattern = pattern.parse().expect(pattern);
        let found = pattern.captures(path.as_bytes())?;
        Some(found.into_iter().map(|part| part.map(|part| std::str::from_utf8(part).expect(path))).collect())
    }

    #[test]
    fn captures_are_the_parts_in_the_place_of_the_stars() {
        for (pattern, path, expected) in [
            ("/a", "/a", Some(&[][..])),
            ("/a", "/b", None),
            ("/old/*", "/old/x/y", Some(&[Some("x/y")])),
            ("/old/*", "/old/", Some(&[Some("")])),
            ("/old/*", "/old", Some(&[None])),
            ("/old/*", "/older", None),
            ("/old*", "/older/x", Some(&[Some("er/x")])),
            ("*.pdf", "/a/b.pdf", Some(&[Some("/a/b")])),
            ("/*", "/", Some(&[Some("")])),
            ("/*", "/a/b", Some(&[Some("a/b")])),
            ("/user/*/export", "/user/7/export", Some(&[Some("7")])),
            ("/user/*/export", "/user/7/8/export", None),
            ("/user/*/files/*", "/user/7/files/a/b", Some(&[Some("7"), Some("a/b")])),
            ("/a*b*", "/axbyb/c", Some(&[Some("x"), Some("yb/c")])),
            ("*/up/*.php", "/a/up/b/c.php", Some(&[Some("/a"), Some("b/c")])),
            ("~/OLD/*", "/old/X", Some(&[Some("X")])),
        ] {
            assert_eq!(captures(pattern, path).as_deref(), expected, "{pattern} {path}");
        }
    }

    proptest! {
        /// Captures put in the place of the stars give the path again; and a path that matches has captures.
        #[test]
        fn captures_put_in_their_place_are_the_path(
            pattern in "(/[ab*]{1,3}){1,3}|\\*[ab.*/]{0,4}",
            path in "(/[ab.]{0,4}){0,5}",
        ) {
            let Ok(pattern) = pattern.parse::<PathPattern>() else { return Ok(()) };
            let found = pattern.captures(path.as_bytes());
            prop_assert_eq!(found.is_some(), pattern.matches(path.as_bytes()), "{} {}", pattern, path);
            let Some(found) = found else { return Ok(()) };
            prop_assert_eq!(found.len(), pattern.stars());
            let mut found = found.into_iter();
            let mut again = String::new();
            for (position, part) in pattern.to_string().split('*').enumerate() {
                if position > 0 {
                    match found.next().expect("one for each") {
                        Some(part) => again += std::str::from_utf8(part).expect("ASCII"),
                        None => drop(again.pop()),
                    }
                }
                again += part;
            }
            prop_assert_eq!(again, path);
        }
    }
}
