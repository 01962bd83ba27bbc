//! The conditions on paths and header fields: parsed once, compared for each request.

mod captures;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use maitred_http::FieldSet;
use maitred_http::fields::{is_token, is_value};

/// Why a text is no condition of a rule. Both texts are of one line and without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl BadPattern {
    /// An error with its fault (`what`) and its `remedy`.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for BadPattern {}

/// A condition on the path of a request, without its query:
///
/// | text | paths |
/// |---|---|
/// | `/report` | this one only |
/// | `/report/*` | `/report`, `/report/` and everything below |
/// | `/report*` | everything that starts so, also `/reports/1` |
/// | `*.pdf` | everything that ends so, in all folders |
/// | `*/.git*`, `*/upload/*.php` | behind a `*` at the start each further one stands for any bytes, too |
/// | `/user/*/export` | else a `*` that is not the last stands for bytes of one segment |
/// | `~*.pdf`, `~/report/*` | with `~` in front the case of ASCII letters does not matter |
///
/// Compared byte by byte with the decoded path; `%23`, `%3F` and `%25` stand for `#`, `?` and `%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// The text without the `~`.
    text: Box<str>,
    form: Form,
    case: Case,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// No `*`.
    Literal,
    /// `*` first.
    Anywhere,
    /// A slash first, and `*` somewhere.
    Segments,
}

/// Whether upper and lower case of ASCII letters differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Matters,
    Ignored,
}

impl Case {
    fn same(self, one: &[u8], other: &[u8]) -> bool {
        match self {
            Self::Matters => one == other,
            Self::Ignored => one.eq_ignore_ascii_case(other),
        }
    }

    fn strip_prefix<'a>(self, text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
        let (start, rest) = text.split_at_checked(prefix.len())?;
        self.same(start, prefix).then_some(rest)
    }

    fn strip_suffix<'a>(self, text: &'a [u8], suffix: &[u8]) -> Option<&'a [u8]> {
        let (rest, end) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
        self.same(end, suffix).then_some(rest)
    }

    /// Where `part`, which is not empty, stands first.
    fn position(self, text: &[u8], part: &[u8]) -> Option<usize> {
        text.windows(part.len()).position(|window| self.same(window, part))
    }
}

impl FromStr for PathPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str = "write a path such as /report, /report/*, /report*, /user/*/export or *.pdf";
        let bad = |why: &str, remedy: &str| Err(BadPattern::new(format!("the path '{text}' {why}"), remedy));
        let (case, text) = match text.strip_prefix('~') {
            Some(rest) => (Case::Ignored, rest),
            None => (Case::Matters, text),
        };
        if !text.starts_with(['/', '*']) {
            return match text {
                "" => Err(BadPattern::new("the path is empty", FORMS)),
                _ => {
                    let mark = if case == Case::Ignored { "~" } else { "" };
                    let meant = format!("did you mean '{mark}/{text}'?");
                    bad("starts neither with '/' nor with '*'", &meant)
                }
            };
        }
        if text.contains(['?', '#']) {
            return bad(
                "has a query or a fragment",
                "leave it out: only the path before it is compared; %23 and %3F stand for # and ? in a path",
            );
        }
        let Some(text) = decoded(text) else {
            return bad(
                "has an escape",
                "write the character itself: the path is decoded when it is compared; only %23, %25 and %3F stand for #, % and ?",
            );
        };
        let text = text.as_str();
        if text.contains(|c: char| c.is_ascii_control() || c == '\\') {
            return bad("has a character that no path has", FORMS);
        }
        if text.contains("**") {
            return bad("has two '*' in a row", "write one: at the end it stands for everything below");
        }
        let form = match text.strip_prefix('*') {
            Some(_) => Form::Anywhere,
            None if text.contains('*') => Form::Segments,
            None => Form::Literal,
        };
        let mut segments: Vec<&str> = text.split('/').skip(1).collect();
        // A slash at the end is kept by the normal form.
        segments.pop_if(|last| last.is_empty());
        if segments.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
            return bad("has a segment that is empty, '.' or '..'", "write the path as it is without them");
        }
        Ok(Self { text: text.into(), form, case })
    }
}

/// Characters that a pattern cannot have as themselves, and their escapes.
const ESCAPES: [(char, &str); 3] = [('#', "%23"), ('?', "%3F"), ('%', "%25")];

/// The text without escapes; none if it has another one than these.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        let (letter, _) = ESCAPES.iter().find(|(_, escape)| {
            escape.strip_prefix('%').is_some_and(|known| known.eq_ignore_ascii_case(code))
        })?;
        made.push(*letter);
        made.push_str(rest);
    }
    Some(made)
}

impl PathPattern {
    /// Whether the pattern stands for this path, which has no query.
    pub fn matches(&self, path: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match self.form {
            Form::Literal => self.case.same(path, text),
            Form::Anywhere => matches_text(text, path, self.case),
            Form::Segments => matches_segments(text, path, self.case),
        }
    }

    /// The first segment of all paths that it stands for; none where they differ in that.
    pub fn first_segment(&self) -> Option<&[u8]> {
        let segment = crate::first_segment(self.text.as_bytes()).filter(|_| self.case == Case::Matters)?;
        (!segment.contains(&b'*')).then_some(segment)
    }

    /// Greater for the more specific one of two patterns that stand for the same path.
    pub fn specificity(&self) -> impl Ord + use<> {
        let before = self.text.find('*').unwrap_or(self.text.len());
        let stars = self.text.matches('*').count();
        (self.form == Form::Literal, before, self.text.len() - stars, self.case == Case::Matters)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.case == Case::Ignored {
            f.write_str("~")?;
        }
        self.text.chars().try_for_each(|letter| match ESCAPES.iter().find(|(known, _)| *known == letter) {
            Some((_, escape)) => f.write_str(escape),
            None => f.write_char(letter),
        })
    }
}

/// Segment by segment; the last one of a pattern that ends with `*` stands for all further ones, too.
fn matches_segments(pattern: &[u8], path: &[u8], case: Case) -> bool {
    let is_slash = |byte: &u8| *byte == b'/';
    let is_open = pattern.ends_with(b"*");
    let mut wanted = pattern.split(is_slash).peekable();
    let mut segments = path.split(is_slash);
    while let Some(pattern) = wanted.next() {
        let is_last = wanted.peek().is_none();
        match segments.next() {
            Some(segment) if !matches_text(pattern, segment, case) => return false,
            Some(_) if is_last => return is_open || segments.next().is_none(),
            Some(_) => {}
            // `/report/*` is also `/report`.
            None => return is_last && pattern == b"*",
        }
    }
    false
}

/// A condition on a header field: `Name: value`. The name is compared without regard to case, the value with it; each
/// `*` in the value stands for any bytes, also none. Where a field comes several times, one that fits is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderPattern {
    name: Box<str>,
    value: Box<str>,
}

impl FromStr for HeaderPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad =
            |why: &str, remedy: &str| Err(BadPattern::new(format!("the header '{text}' {why}"), remedy));
        let Some((name, value)) = text.split_once(':') else {
            return bad("has no ':'", "write Name: value, or Name: * for every value");
        };
        let (name, value) = (name.trim(), value.trim());
        if !is_token(name.as_bytes()) {
            return bad("has no name of a field before its ':'", "write Name: value, such as X-Kind: batch");
        }
        if !is_value(value.as_bytes()) {
            return bad("has a value with a control character", "leave it out");
        }
        Ok(Self { name: name.into(), value: value.into() })
    }
}

impl HeaderPattern {
    /// Whether one of the fields is of this name and has such a value.
    pub fn matches(&self, fields: &FieldSet) -> bool {
        fields.all(&self.name).any(|value| matches_text(self.value.as_bytes(), value, Case::Matters))
    }

    /// Whether it has no `*`.
    pub fn is_literal(&self) -> bool {
        !self.value.contains('*')
    }
}

impl fmt::Display for HeaderPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

/// Whether `text` matches `pattern`, in which each `*` stands for any bytes, also none. For a part between two stars
/// the first place that fits is as good as any later one, so that nothing is tried twice.
pub(crate) fn matches_text(pattern: &[u8], text: &[u8], case: Case) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = parts.next().and_then(|first| case.strip_prefix(text, first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts.filter(|part| !part.is_empty()) {
        let Some(at) = case.position(rest, part) else { return false };
        rest = &rest[at + part.len()..];
    }
    case.strip_suffix(rest, last).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PathPattern {
        text.parse().expect(text)
    }

    #[test]
    fn each_form_of_a_path_stands_for_its_paths_only() {
        for (pattern, yes, no) in [
            ("/report", &["/report"][..], &["/report/", "/reports", "/repor", "/Report", "/a/report"][..]),
            ("/report/", &["/report/"], &["/report", "/report/a"]),
            ("/report/*", &["/report", "/report/", "/report/a", "/report/a/b"], &["/reports", "/a/report/b"]),
            ("/report*", &["/report", "/reports", "/report/a", "/reports/a/b"], &["/repor", "/a/report"]),
            ("/*", &["/", "/a", "/a/b/", ""], &["*", "a"]),
            ("*", &["/", "/a/b", "*", ""], &[]),
            ("*.pdf", &["/a.pdf", "/a/b.pdf", "/.pdf"], &["/a.pdf/", "/a.PDF", "/apdf"]),
            ("*/export", &["/export", "/a/b/export"], &["/exports", "/a/export/"]),
            ("*/.git*", &["/.git", "/a/.git/config", "/.gitignore"], &["/a.git", "/git"]),
            ("*/up/*.php", &["/up/a.php", "/a/up/b/c.php"], &["/up.php", "/up/a.php/"]),
            ("~*.pdf", &["/a.PDF", "/a/b.Pdf", "/a.pdf"], &["/a.pdfs"]),
            ("~*/.Git*", &["/a/.gIT/config"], &["/a/git"]),
            ("~/a/*/b*", &["/A/x/B", "/a/x/bc/d"], &["/a/x/y/b"]),
            ("~/a", &["/A", "/a"], &["/A/"]),
            (
                "/user/*/export",
                &["/user/7/export", "/user/a b/export"],
                &["/user/7/8/export", "/user/7/export/", "/user/export", "/user/7/exports"],
            ),
            ("/user/*/files/*", &["/user/7/files", "/user/7/files/a/b"], &["/user/7/8/files/a", "/user/7"]),
            ("/a*b*c", &["/abc", "/axbxc", "/abbcc"], &["/ac", "/ab/c", "/abcd", "/abc/"]),
            ("/a*b*", &["/ab", "/axbx", "/ab/c"], &["/a/b", "/ac"]),
            ("/*/b", &["/a/b"], &["/b", "/a/a/b"]),
            ("*%23*%23", &["/#a#", "/a/#b#"], &["/%23a%23", "/a#"]),
            ("/a%3Fb", &["/a?b"], &["/a", "/a%3Fb"]),
            ("/100%25*", &["/100%", "/100%25"], &["/100"]),
        ] {
            for text in yes {
                assert!(path(pattern).matches(text.as_bytes()), "{pattern} and {text}");
            }
            for text in no {
                assert!(!path(pattern).matches(text.as_bytes()), "{pattern} and {text}");
            }
            assert_eq!(path(pattern).to_string(), pattern);
        }
    }

    #[test]
    fn a_path_that_nothing_could_match_is_an_error_with_its_remedy() {
        for (text, part) in [
            ("", "the path is empty; write a path such as "),
            ("report", "starts neither with '/' nor with '*'; did you mean '/report'?"),
            ("/a?b=1", "has a query or a fragment; leave it out"),
            ("/a%20b", "has an escape; write the character itself"),
            ("/a%2", "has an escape; "),
            ("/a%2a", "has an escape; "),
            ("/a#b", "has a query or a fragment; leave it out: only the path before it is compared; %23"),
            ("/a\nb", "has a character that no path has; "),
            ("/a/**", "has two '*' in a row; write one"),
            ("~", "the path is empty; write a path such as "),
            ("~a", "starts neither with '/' nor with '*'; did you mean '~/a'?"),
            ("~~/a", "starts neither with '/' nor with '*'"),
            ("*a**", "has two '*' in a row; write one"),
            ("/a//b", "has a segment that is empty, '.' or '..'; "),
            ("/a/../b", "has a segment that is empty, '.' or '..'; "),
            ("//", "has a segment that is empty, '.' or '..'; "),
        ] {
            let error = text.parse::<PathPattern>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
        for text in ["/", "/a b", "/été/*", "/a..b", "/user/*/", "*a*b", "*a*", "~/~a"] {
            path(text);
        }
    }

    #[test]
    fn a_field_is_found_by_name_and_by_a_value_with_stars() {
        let mut fields = FieldSet::new();
        fields.push("X-Kind", "slow batch");
        fields.push("x-kind", "");
        fields.push("Accept", "text/html, image/png");
        for (text, expected) in [
            ("X-KIND: slow batch", true),
            ("x-kind:slow*", true),
            ("x-kind: Slow*", false),
            ("x-kind:", true),
            ("x-kind: *", true),
            ("x-kind: *o*b*h", true),
            ("x-kind: *h*b*", false),
            ("accept: **image/png**", true),
            ("accept:", false),
            ("host: *", false),
        ] {
            let pattern: HeaderPattern = text.parse().expect(text);
            assert_eq!(pattern.matches(&fields), expected, "{text}");
        }
    }

    #[test]
    fn a_header_without_a_name_or_a_colon_is_an_error() {
        for (text, part) in [
            ("X-Kind", "has no ':'; write Name: value, or Name: * for every value"),
            ("X Kind: a", "has no name of a field before its ':'; "),
            (": a", "has no name of a field before its ':'; "),
            ("X-Kind: a\u{1}", "has a value with a control character; "),
        ] {
            let error = text.parse::<HeaderPattern>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
