use super::*;

fn sample() -> FieldSet {
    let mut fields = FieldSet::new();
    for (name, value) in [("Host", "a"), ("Set-Cookie", "x=1"), ("Accept", "*/*"), ("set-cookie", "y=2")] {
        assert!(fields.push(name, value));
    }
    fields
}

fn listed(fields: &FieldSet) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    fields.iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn fields_keep_their_order_their_spelling_and_their_duplicates() {
    let fields = sample();
    let expected = [("Host", "a"), ("Set-Cookie", "x=1"), ("Accept", "*/*"), ("set-cookie", "y=2")];
    assert_eq!(listed(&fields), pairs(&expected));
    assert_eq!(fields.iter().len(), 4);
}

#[test]
fn look_up_takes_no_notice_of_ascii_case() {
    let fields = sample();
    assert_eq!(fields.first("SET-COOKIE"), Some(&b"x=1"[..]));
    assert_eq!(fields.all("sEt-cOOkie").collect::<Vec<_>>(), [b"x=1", b"y=2"]);
    assert!(fields.contains("host"));
    assert!(!fields.contains("hos") && !fields.contains("hosts") && !fields.contains(""));
    // Only ASCII letters have two cases: the Kelvin sign is no k.
    let mut fields = FieldSet::new();
    fields.push("k", "");
    assert!(!fields.contains("\u{212a}"));
    // `[` and `{` differ by the same bit as `A` and `a`.
    fields.push("[", "");
    assert!(!fields.contains("{"));
}

#[test]
fn set_gives_the_first_field_the_value_and_removes_the_others() {
    let mut fields = sample();
    assert!(fields.set("SET-cookie", "z=3"));
    assert_eq!(listed(&fields), pairs(&[("Host", "a"), ("Set-Cookie", "z=3"), ("Accept", "*/*")]));
    assert!(fields.set("Vary", "Accept"));
    assert_eq!(fields.first("vary"), Some(&b"Accept"[..]));
    assert_eq!(fields.len(), 4);
}

#[test]
fn set_leaves_other_spans_of_the_same_bytes_alone() {
    let mut fields = FieldSet::new();
    let head = fields.adopt(b"Host: example.org").unwrap_or_default();
    let authority = head.part(6, 11);
    fields.push_spans(head.part(0, 4), authority);
    fields.set("host", "x");
    assert_eq!(fields.first("Host"), Some(&b"x"[..]));
    assert_eq!(fields.bytes(authority), b"example.org");
}

#[test]
fn spaces_around_a_value_are_no_part_of_it() {
    let mut fields = FieldSet::new();
    assert!(fields.push("a", " \tb c\t "));
    assert!(fields.push_checked(b"set-cookie", b" csrftoken=x").is_ok());
    assert!(fields.push("empty", " \t"));
    let values = ["a", "set-cookie", "empty"].map(|name| fields.first(name));
    assert_eq!(values, [Some(&b"b c"[..]), Some(b"csrftoken=x"), Some(b"")]);
}

#[test]
fn push_missing_appends_only_missing_fields() {
    let mut fields = sample();
    assert!(!fields.push_missing("HOST", "b"));
    assert!(fields.push_missing("Date", "now"));
    assert_eq!(fields.len(), 5);
    assert_eq!(fields.first("host"), Some(&b"a"[..]));
}

#[test]
fn remove_takes_every_field_of_the_name() {
    let mut fields = sample();
    assert_eq!(fields.remove("Set-cookie"), 2);
    assert_eq!(fields.remove("Set-cookie"), 0);
    assert_eq!(listed(&fields), pairs(&[("Host", "a"), ("Accept", "*/*")]));
}

#[test]
fn truncate_keeps_the_first_fields() {
    let mut fields = sample();
    fields.truncate(9);
    assert_eq!(fields.len(), 4);
    fields.truncate(1);
    assert_eq!(listed(&fields), pairs(&[("Host", "a")]));
    fields.push("Accept", "b");
    assert_eq!(listed(&fields), pairs(&[("Host", "a"), ("Accept", "b")]));
}

#[test]
fn empty_names_and_values_and_any_bytes_are_kept() {
    let mut fields = FieldSet::new();
    fields.push("", "");
    fields.push([0xff, 0], [b'\n', 0x80]);
    assert_eq!(
        fields.iter().collect::<Vec<_>>(),
        [(&b""[..], &b""[..]), (&[0xff, 0][..], &[b'\n', 0x80][..])]
    );
}

#[test]
fn a_cleared_set_is_filled_again_in_the_same_memory() {
    let mut fields = FieldSet::new();
    let fill = |fields: &mut FieldSet| {
        for number in 0..100 {
            fields.push(format!("name-{number}"), format!("value of field {number}"));
        }
    };
    fill(&mut fields);
    let (buffer, entries) = (fields.buffer.as_ptr(), fields.entries.as_ptr());
    let memory = fields.memory();
    for _ in 0..10 {
        fields.clear();
        assert!(fields.is_empty() && fields.used() == 0);
        fill(&mut fields);
        assert_eq!((fields.buffer.as_ptr(), fields.entries.as_ptr()), (buffer, entries));
    }
    assert_eq!(fields.memory(), memory);
}

#[test]
fn reserved_room_is_not_moved() {
    let mut fields = FieldSet::with_capacity(20, 400);
    let (buffer, entries, memory) = (fields.buffer.as_ptr(), fields.entries.as_ptr(), fields.memory());
    assert!(memory >= 400 + 20 * 16);
    for _ in 0..20 {
        fields.push("0123456789", "0123456789");
    }
    assert_eq!((fields.buffer.as_ptr(), fields.entries.as_ptr()), (buffer, entries));
    assert_eq!((fields.memory(), fields.used()), (memory, 400));
    fields.reserve(10, 200);
    assert!(fields.memory() >= 600 + 30 * 16);
}

#[test]
fn a_small_head_needs_two_allocations() {
    let mut fields = FieldSet::new();
    assert_eq!(fields.memory(), 0);
    fields.push("Host", "a");
    let memory = fields.memory();
    for _ in 1..FIRST_FIELDS {
        fields.push("Accept-Language", "en;q=0.5");
    }
    assert_eq!(fields.memory(), memory);
}

#[test]
fn an_entry_is_sixteen_bytes() {
    assert_eq!(size_of::<Entry>(), 16);
}

#[test]
fn positions_up_to_32_bits_fit_and_no_more() {
    let most = u32::MAX as usize;
    assert_eq!(most, crate::limits::MAX_FIELD_SET);
    assert!(Span::at(most, 0).is_some() && Span::at(0, most).is_some() && Span::at(most - 1, 1).is_some());
    assert_eq!(Span::at(most, 1), None);
    assert_eq!(Span::at(1, most), None);
    assert_eq!(Span::at(most + 1, 0), None);
    assert_eq!(Span::at(0, most + 1), None);
    assert!(Span::pair(most - 3, 1, 2).is_some());
    assert_eq!(Span::pair(most - 3, 2, 2), None);
    assert_eq!(Span::pair(usize::MAX, 1, 1), None);
    assert_eq!(Span::pair(0, usize::MAX, usize::MAX), None);
}

#[test]
fn a_part_stays_inside_its_span() {
    let span = Span { start: 10, length: 5 };
    assert_eq!(span.part(1, 4), Span { start: 11, length: 4 });
    assert_eq!(span.part(5, 0).len(), 0);
    assert!(span.part(1, 5).is_empty());
    assert!(span.part(usize::MAX, 2).is_empty());
}

#[test]
fn a_span_of_another_set_reads_as_empty() {
    let mut one = FieldSet::new();
    let span = one.adopt(b"Host: example.org").unwrap_or_default();
    let mut other = FieldSet::new();
    other.push_spans(span, span);
    assert_eq!(other.iter().collect::<Vec<_>>(), [(&b""[..], &b""[..])]);
    let furthest = Span { start: u32::MAX, length: u32::MAX };
    assert_eq!(other.bytes(furthest), b"");
}

#[test]
fn tokens_and_values() {
    for good in ["A", "Content-Type", "x_y", "a.b", "0", "!#$%&'*+-.^_`|~"] {
        assert!(is_token(good.as_bytes()), "{good}");
    }
    for bad in ["", "a b", "a:", "a\r", "\n", "ä", "a\0", "(a)", "a/b", "@", "[", "{"] {
        assert!(!is_token(bad.as_bytes()), "{bad}");
    }
    for byte in 0..=255u8 {
        let is_bad = byte != b'\t' && byte.is_ascii_control();
        assert_eq!(is_value(&[b'a', byte, b'b']), !is_bad, "{byte}");
    }
}

#[test]
fn a_set_knows_whether_all_its_fields_were_checked() {
    let mut set = FieldSet::new();
    assert_eq!(set.push_checked(b"A", b"b\tc \xe9"), Ok(()));
    for (name, value, error) in [
        (&b"a b"[..], &b"c"[..], InvalidField::Name),
        (b"", b"c", InvalidField::Name),
        (b"a", b"c\r\nd: e", InvalidField::Value),
        (b"a", b"\0", InvalidField::Value),
        (b"a", b"\x7f", InvalidField::Value),
    ] {
        assert_eq!(set.push_checked(name, value), Err(error));
    }
    assert!(set.is_checked() && set.len() == 1);
    let kept = set.clone();
    let ways: [fn(&mut FieldSet); 4] = [
        |set| assert!(set.push("b", "c")),
        |set| assert!(set.set("A", "\r\n")),
        |set| assert!(set.push_missing("b", "c")),
        |set| {
            let span = set.adopt(b"a: b").unwrap_or_default();
            set.push_spans(span.part(0, 1), span.part(3, 1));
        },
    ];
    for add in ways {
        let mut set = kept.clone();
        add(&mut set);
        assert!(!set.is_checked());
        set.clear();
        assert!(set.is_checked());
    }
}
