use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn trusted() -> Trusted {
    let networks = ["10.0.0.0/8", "192.0.2.7", "fd00::/8"];
    Trusted::new(networks.iter().map(|text| text.parse().expect("a network")).collect(), false)
}

fn all_of(standard: bool) -> Believed {
    Believed { client: true, scheme: true, host: true, port: true, standard }
}

/// One field for each line.
fn fields(lines: &str) -> FieldSet {
    let mut fields = FieldSet::new();
    for line in lines.lines() {
        let (name, value) = line.split_once(':').expect("a field");
        fields.push(name, value.trim());
    }
    fields
}

/// Such as `192.0.2.1 80 https host=a:80 port=81`; missing values are left out.
fn shown(said: &Said) -> String {
    let mut text = String::new();
    if let Some((address, port)) = said.client {
        write!(text, " {address}").expect("memory");
        if let Some(port) = port {
            write!(text, " {port}").expect("memory");
        }
    }
    match said.secure {
        Some(true) => text.push_str(" https"),
        Some(false) => text.push_str(" http"),
        None => {}
    }
    if let Some(host) = &said.host {
        write!(text, " host={}", String::from_utf8_lossy(host)).expect("memory");
    }
    if let Some(port) = said.port {
        write!(text, " port={port}").expect("memory");
    }
    text.trim_start().to_owned()
}

fn check(standard: bool, cases: &[(&str, &str)]) {
    for (lines, expected) in cases {
        let said = read(&fields(lines), &trusted(), all_of(standard));
        assert_eq!(shown(&said), *expected, "{lines}");
    }
}

#[test]
fn the_client_is_the_first_from_the_right_that_is_not_trusted() {
    check(
        false,
        &[
            ("", ""),
            ("Forwarded: for=198.51.100.1", ""),
            ("X-Forwarded-For: 198.51.100.1", "198.51.100.1"),
            ("X-Forwarded-For: 203.0.113.9, 198.51.100.1", "198.51.100.1"),
            ("X-Forwarded-For: 203.0.113.9, 198.51.100.1, 10.0.0.1, 192.0.2.7", "198.51.100.1"),
            ("x-forwarded-for: 198.51.100.1\nX-FORWARDED-FOR: 10.0.0.1", "198.51.100.1"),
            ("X-Forwarded-For: 203.0.113.9\nX-Forwarded-For: 198.51.100.1", "198.51.100.1"),
            ("X-Forwarded-For: 1.1.1.1, 10.0.0.2\nX-A: b\nX-Forwarded-For: 10.0.0.1,10.0.0.3", "1.1.1.1"),
            // All are trusted: the left-most.
            ("X-Forwarded-For: 10.0.0.3, 10.0.0.2, 10.0.0.1", "10.0.0.3"),
            ("X-Forwarded-For: 10.0.0.1", "10.0.0.1"),
            // An entry that is no address ends the walk.
            ("X-Forwarded-For: unknown", ""),
            ("X-Forwarded-For: 198.51.100.1, unknown", ""),
            ("X-Forwarded-For: 198.51.100.1, unknown, 10.0.0.1", "10.0.0.1"),
            ("X-Forwarded-For: 198.51.100.1, _hidden, 10.0.0.2, 10.0.0.1", "10.0.0.2"),
            // Empty elements are none.
            ("X-Forwarded-For: 198.51.100.1, , 10.0.0.1", "198.51.100.1"),
            ("X-Forwarded-For: 198.51.100.1,", "198.51.100.1"),
            ("X-Forwarded-For: 203.0.113.9, 198.51.100.1 ,\t, ,", "198.51.100.1"),
            ("X-Forwarded-For:", ""),
            ("X-Forwarded-For: ,,", ""),
            ("X-Forwarded-For: 198.51.100.1\nX-Forwarded-For:", "198.51.100.1"),
            ("X-Forwarded-For: , 198.51.100.1", "198.51.100.1"),
            ("X-Forwarded-For: 198.51.100.1 10.0.0.1", ""),
            ("X-Forwarded-For: \"198.51.100.1\"", ""),
            ("X-Forwarded-For: 198.51.100.1, 10.0.0.01", ""),
            ("X-Forwarded-For: 198.51.100.1, 10.1", ""),
            ("X-Forwarded-For: 198.51.100.1, 999.0.0.1, 10.0.0.1", "10.0.0.1"),
            // Forms.
            ("X-Forwarded-For: 198.51.100.1:4711, 10.0.0.1:1", "198.51.100.1 4711"),
            ("X-Forwarded-For: 2001:db8::1", "2001:db8::1"),
            ("X-Forwarded-For: 2001:db8::1,[fd00::1]:80, fd00::2 ", "2001:db8::1"),
            ("X-Forwarded-For: [2001:db8::1]", "2001:db8::1"),
            ("X-Forwarded-For: [2001:db8::1]:65535", "2001:db8::1 65535"),
            ("X-Forwarded-For: [2001:db8::1]:65536", ""),
            ("X-Forwarded-For: \t198.51.100.1\t", "198.51.100.1"),
            ("X-Forwarded-For: 198.51.100.1, ::ffff:10.0.0.1", "198.51.100.1"),
            ("X-Forwarded-For: 203.0.113.9, [::ffff:198.51.100.1]:80", "198.51.100.1 80"),
            ("X-Forwarded-For: 198.51.100.1, fe80::1%eth0", ""),
        ],
    );
}

#[test]
fn the_other_fields_count_by_their_right_most_entry() {
    check(
        false,
        &[
            ("X-Forwarded-Proto: https", "https"),
            ("X-Forwarded-Proto: HTTP", "http"),
            ("X-Forwarded-Proto: wss", "https"),
            ("X-Forwarded-Proto: Ws", "http"),
            ("X-Forwarded-Proto: https, http", "http"),
            ("X-Forwarded-Proto: http\nX-Forwarded-Proto: http , https ", "https"),
            ("X-Forwarded-Proto: https,", "https"),
            ("X-Forwarded-Proto: ftp", ""),
            ("X-Forwarded-Proto: \"https\"", ""),
            ("X-Forwarded-Host: example.org", "host=example.org"),
            ("X-Forwarded-Host: evil, example.org:8443", "host=example.org:8443"),
            ("X-Forwarded-Host: [2001:db8::1]:80", "host=[2001:db8::1]:80"),
            ("X-Forwarded-Host: a\nX-Forwarded-Host: b", "host=b"),
            ("X-Forwarded-Host: user@example.org", ""),
            ("X-Forwarded-Host: example.org/path", ""),
            ("X-Forwarded-Host: a b", ""),
            ("X-Forwarded-Host: a, :80", ""),
            ("X-Forwarded-Host:", ""),
            ("X-Forwarded-Port: 443", "port=443"),
            ("X-Forwarded-Port: 80, 65535", "port=65535"),
            ("X-Forwarded-Port: 0", ""),
            ("X-Forwarded-Port: 65536", ""),
            ("X-Forwarded-Port: +80", ""),
            ("X-Forwarded-Port: 80a", ""),
            (
                "X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: https\nX-Forwarded-Host: a:1\nX-Forwarded-Port: 2",
                "198.51.100.1 https host=a:1 port=2",
            ),
            // No address, and yet a scheme.
            ("X-Forwarded-For: unknown\nX-Forwarded-Proto: https", "https"),
        ],
    );
}

#[test]
fn the_standard_field_is_walked_in_the_same_way() {
    check(
        true,
        &[
            ("", ""),
            ("X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: https\nX-Forwarded-Port: 2", ""),
            ("Forwarded: for=198.51.100.1", "198.51.100.1"),
            (
                "Forwarded: for=198.51.100.1;proto=https;by=10.0.0.9;host=example.org",
                "198.51.100.1 https host=example.org",
            ),
            (
                "Forwarded: FOR=\"198.51.100.1:4711\"; Proto=HTTPS ;hOST=\"example.org:8443\"",
                "198.51.100.1 4711 https host=example.org:8443",
            ),
            ("Forwarded: for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17 4711"),
            ("Forwarded: for=\"[2001:db8::1]\"", "2001:db8::1"),
            ("Forwarded: for=\"[2001:db8::1]:_http\"", "2001:db8::1"),
            ("Forwarded: for=\"198.51.100.1:_x\"", "198.51.100.1"),
            ("Forwarded: for=\"[::ffff:198.51.100.1]\", for=\"[::ffff:10.0.0.1]\"", "198.51.100.1"),
            (
                "Forwarded: for=\"\\198.51.100\\.1\";proto=\"h\\ttps\";host=\"exa\\mple.org\"",
                "198.51.100.1 https host=example.org",
            ),
            // Chains. Scheme and host are of the element with the client.
            (
                "Forwarded: for=203.0.113.9;proto=http, for=198.51.100.1;proto=https;host=a, for=10.0.0.1;proto=http;host=b",
                "198.51.100.1 https host=a",
            ),
            (
                "Forwarded: for=203.0.113.9\nForwarded: for=198.51.100.1;proto=http\nForwarded: for=10.0.0.1;proto=https",
                "198.51.100.1 http",
            ),
            ("Forwarded: for=198.51.100.1, for=10.0.0.1;proto=https", "198.51.100.1"),
            ("Forwarded: for=10.0.0.2;host=a,for=10.0.0.1;host=b", "10.0.0.2 host=a"),
            // No address: the last element before it, or the right-most.
            ("Forwarded: for=unknown;proto=https", "https"),
            ("Forwarded: for=198.51.100.1, for=_hidden;host=a", "host=a"),
            (
                "Forwarded: for=198.51.100.1;host=a, for=unknown;host=b, for=10.0.0.1;host=c",
                "10.0.0.1 host=c",
            ),
            ("Forwarded: for=198.51.100.1;proto=http, proto=https", "https"),
            ("Forwarded: for=198.51.100.1, by=10.0.0.1;proto=https, for=10.0.0.2", "10.0.0.2"),
            ("Forwarded: for=198.51.100.1,", "198.51.100.1"),
            ("Forwarded: for=198.51.100.1, , for=10.0.0.1", "198.51.100.1"),
            ("Forwarded:", ""),
            ("Forwarded: for=2001:db8::1", ""),
            ("Forwarded: for=\"2001:db8::1\"", ""),
            ("Forwarded: for=\" 198.51.100.1\"", ""),
            ("Forwarded: for=\"\"", ""),
            // Separators in quotes separate nothing.
            ("Forwarded: for=198.51.100.1;x=\", for=203.0.113.9;\";proto=https", "198.51.100.1 https"),
            ("Forwarded: for=198.51.100.1;x=\"\\\", for=203.0.113.9, \\\"\"", "198.51.100.1"),
            ("Forwarded: for=198.51.100.1, for=10.0.0.1;x=\",;\\\\\"", "198.51.100.1"),
            ("Forwarded: for=198.51.100.1;host=\"a,b\"", "198.51.100.1 host=a,b"),
            // Malformed elements end the walk, and their proto and host do not count.
            ("Forwarded: for=198.51.100.1;For=203.0.113.9;proto=https", ""),
            ("Forwarded: for=198.51.100.1;x=1;X=2", ""),
            ("Forwarded: for=198.51.100.1, for=10.0.0.1;proto=http;proto=https", ""),
            ("Forwarded: for=198.51.100.1, for=10.0.0.2;a;b, for=10.0.0.1;proto=https", "10.0.0.1 https"),
            ("Forwarded: for=198.51.100.1, for=\"10.0.0.1", ""),
            ("Forwarded: for=198.51.100.1, for=\"10.0.0.1\\\"", ""),
            ("Forwarded: for=198.51.100.1:80", ""),
            ("Forwarded: for=198.51.100.1 proto=https", ""),
            ("Forwarded: for = 198.51.100.1", ""),
            // To the left of the client nothing matters, not even an open quote.
            ("Forwarded: for=\", for=198.51.100.1", "198.51.100.1"),
            ("Forwarded: x=\"\\, for=198.51.100.1", "198.51.100.1"),
            ("Forwarded: for=\", for=\"[2001:db8::1]\"", "2001:db8::1"),
            ("Forwarded: for=\"\nForwarded: for=198.51.100.1\nForwarded: for=10.0.0.1", "198.51.100.1"),
            (
                "Forwarded: for=x;for=y, a\"b\", for=198.51.100.1;host=\"[::1]:80\"",
                "198.51.100.1 host=[::1]:80",
            ),
            // An invalid scheme and an invalid host are left out.
            ("Forwarded: for=198.51.100.1;proto=ftp;host=\"user@a\"", "198.51.100.1"),
            ("Forwarded: for=198.51.100.1;host=\"\"", "198.51.100.1"),
        ],
    );
}

#[test]
fn only_believed_fields_are_read() {
    let lines = "X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: https\nX-Forwarded-Host: a\nX-Forwarded-Port: 2\n\
                 Forwarded: for=203.0.113.9;proto=http;host=b";
    let none = Believed { client: false, scheme: false, host: false, port: false, standard: false };
    for (believed, expected) in [
        (Believed::default(), "198.51.100.1 https"),
        (all_of(false), "198.51.100.1 https host=a port=2"),
        (none, ""),
        (Believed { host: true, ..none }, "host=a"),
        (Believed { port: true, ..none }, "port=2"),
        (Believed { standard: true, ..none }, "203.0.113.9 http host=b"),
    ] {
        assert_eq!(shown(&read(&fields(lines), &trusted(), believed)), expected, "{believed:?}");
    }
}

#[test]
fn the_walk_ends_after_64_hops() {
    let chain = |hops: u8, form: fn(u8) -> String| {
        let entries = (0..hops).map(form).collect::<Vec<_>>();
        (entries.join(", "), entries)
    };
    for hops in [1_u8, 63, 64, 65, 100] {
        let last = hops.saturating_sub(64);
        let (list, entries) = chain(hops, |number| format!("10.0.0.{number}"));
        let one = fields(&format!("X-Forwarded-For: 198.51.100.1, {list}"));
        let many = fields(&format!(
            "X-Forwarded-For: 198.51.100.1\nX-Forwarded-For: {}",
            entries.join("\nX-Forwarded-For: ")
        ));
        let expected = if hops < 64 { "198.51.100.1".to_owned() } else { format!("10.0.0.{last}") };
        for fields in [one, many] {
            assert_eq!(shown(&read(&fields, &trusted(), all_of(false))), expected, "{hops}");
        }
        let (list, entries) = chain(hops, |number| format!("for=\"10.0.0.{number}:1\";x=\",\""));
        let one = fields(&format!("Forwarded: for=\"198.51.100.1:1\", {list}"));
        let many = fields(&format!(
            "Forwarded: for=\"198.51.100.1:1\"\nForwarded: {}",
            entries.join("\nForwarded: ")
        ));
        for fields in [one, many] {
            assert_eq!(shown(&read(&fields, &trusted(), all_of(true))), format!("{expected} 1"), "{hops}");
        }
    }
}

#[test]
fn trusted_networks_and_unix_sockets() {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    for (text, expected) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("192.0.2.7", true),
        ("192.0.2.8", false),
        ("fdab::1", true),
        ("fe80::1", false),
    ] {
        assert_eq!(trusted().trusts_ip(address(text)), expected, "{text}");
    }
    assert!(!trusted().trusts_unix() && !trusted().is_empty());
    assert!(Trusted::default().is_empty() && !Trusted::default().trusts_ip(address("127.0.0.1")));
    let unix = Trusted::new(Vec::new(), true);
    assert!(unix.trusts_unix() && !unix.is_empty());
}

#[test]
fn forwarding_fields() {
    for name in [
        "forwarded",
        "Forwarded",
        "X-Forwarded-For",
        "x-forwarded-proto",
        "X_FORWARDED_HOST",
        "x-forwarded_ssl",
        "X-Forwarded-Anything",
        "X-Real-IP",
        "x_real_ip",
        "X-Request-Start",
        "Proxy",
        "PROXY",
    ] {
        assert!(is_forwarding_field(name.as_bytes()), "{name}");
    }
    for name in [
        "",
        "x",
        "f",
        "p",
        "X-Forwarded",
        "XX-Forwarded-For",
        "x-forwardedfor",
        "Forwarded-For",
        "X-Real-IPs",
        "X-Request-ID",
        "Proxy-Authorization",
        "prox",
        "Host",
        "x-original-forwarded-for",
        "from",
        "Pragma",
    ] {
        assert!(!is_forwarding_field(name.as_bytes()), "{name}");
    }
}

/// An entry of a chain, and the address in it.
fn entries() -> impl Strategy<Value = (String, Option<IpAddr>)> {
    let four = |one: u8, two: u8| IpAddr::from([one, 0, 0, two]);
    let six = |one: u16, two: u16| IpAddr::from([one, 0, 0, 0, 0, 0, 0, two]);
    let network = prop_oneof![3 => Just(10_u8), 2 => Just(198)];
    let wide = prop_oneof![Just(0xfd00_u16), Just(0x2001)];
    prop_oneof![
        4 => (network.clone(), any::<u8>()).prop_map(move |(one, two)| (four(one, two).to_string(), Some(four(one, two)))),
        2 => (network.clone(), any::<u8>(), any::<u16>())
            .prop_map(move |(one, two, port)| (format!("{}:{port}", four(one, two)), Some(four(one, two)))),
        1 => (network, any::<u8>())
            .prop_map(move |(one, two)| (format!("[::ffff:{}]", four(one, two)), Some(four(one, two)))),
        2 => (wide, any::<u16>()).prop_map(move |(one, two)| (format!("[{}]", six(one, two)), Some(six(one, two)))),
        1 => prop_oneof![Just("unknown"), Just("_x"), Just("10.0.0.256")]
            .prop_map(|text| (text.to_owned(), None)),
    ]
}

proptest! {
    #[test]
    fn the_client_is_never_left_of_one_that_is_not_trusted(
        chain in prop::collection::vec((entries(), any::<bool>()), 0..80),
    ) {
        let mut expected = None;
        for ((_, address), _) in chain.iter().rev().take(MAX_HOPS) {
            if address.is_none() {
                break;
            }
            expected = *address;
            if expected.is_some_and(|address| !trusted().trusts_ip(address)) {
                break;
            }
        }
        // The flag says whether a field ends behind the entry.
        let (mut list, mut elements) = ("X-Forwarded-For: ".to_owned(), "Forwarded: ".to_owned());
        for (number, ((entry, _), ends)) in chain.iter().enumerate() {
            let separates = |name: &str| match (number, ends) {
                (0, _) => String::new(),
                (_, true) => format!("\n{name}: "),
                // Now and then with an empty element.
                (_, false) => if number % 3 == 0 { " , ,\t," } else { ", " }.to_owned(),
            };
            list.push_str(&format!("{}{entry}", separates("X-Forwarded-For")));
            elements.push_str(&format!("{}for=\"{entry}\"", separates("Forwarded")));
        }
        for (lines, standard) in [(list, false), (elements, true)] {
            let said = read(&fields(&lines), &trusted(), all_of(standard));
            prop_assert_eq!(said.client.map(|(address, _)| address), expected, "{}", lines);
        }
    }

    #[test]
    fn no_value_makes_it_panic_and_results_are_well_formed(
        values in prop::collection::vec((0..5_usize, prop::collection::vec(any::<u8>(), 0..60)), 0..6),
        text in "(for|FOR|proto|host|x|[=;,\" \\\\]|192\\.0\\.2\\.7|198\\.51\\.100\\.1|\\[fd00::1\\]|https|a:80){0,40}",
    ) {
        const NAMES: [&str; 5] = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"];
        let mut fields = FieldSet::new();
        for (name, value) in &values {
            fields.push(NAMES[*name], value);
        }
        NAMES.iter().for_each(|name| { fields.push(name, &text); });
        for standard in [false, true] {
            let said = read(&fields, &trusted(), all_of(standard));
            prop_assert!(said.host.is_none_or(|host| is_authority_with_host(&host)));
            prop_assert!(said.port != Some(0));
            prop_assert!(said.client.is_none_or(|(address, _)| address == address.to_canonical()));
        }
    }

    #[test]
    fn entries_of_a_client_do_not_change_those_of_its_proxy(
        made_up in "(for=|[=;,\" \\\\]|192\\.0\\.2\\.7|x|10\\.0\\.0\\.9|_h){0,40}",
        own in any::<bool>(),
    ) {
        // The proxy appends to the field, or writes one of its own.
        let separator = if own { "\nForwarded: " } else { ", " };
        for said in ["for=198.51.100.1;proto=https;x=\",\"", "x=\";,\";for=\"[2001:db8::1]:8\";proto=http"] {
            let alone = read(&fields(&format!("Forwarded: {said}")), &trusted(), all_of(true));
            let behind = fields(&format!("Forwarded: {made_up}{separator}{said}"));
            let behind = read(&behind, &trusted(), all_of(true));
            // Where quotes no longer stand as the proxy has set them, nothing is believed.
            let believed = Said { malformed: None, ..behind.clone() };
            prop_assert!(behind == alone || believed == Said::default(), "{behind:?}");
            if own {
                prop_assert_eq!(behind, alone);
            }
        }
    }
}

#[test]
fn malformed_fields_are_named() {
    let named = |standard, lines: &str| read(&fields(lines), &trusted(), all_of(standard)).malformed;
    for bad in [
        "for=192.0.2.1:80",
        "for=\"a",
        "garbage",
        "for=me",
        "proto=gopher",
        "host=\"a/b\"",
        "for=10.0.0.1;for=10.0.0.2",
    ] {
        assert_eq!(named(true, &format!("Forwarded: {bad}")), Some("forwarded"), "{bad}");
    }
    for good in [
        "",
        "for=198.51.100.1",
        "for=unknown",
        "for=\"_hidden:_port\"",
        "by=_x;proto=http",
        "garbage, for=198.51.100.1",
    ] {
        assert_eq!(named(true, &format!("Forwarded: {good}")), None, "{good}");
    }
    for (bad, name) in [
        ("X-Forwarded-For: me", "x-forwarded-for"),
        ("X-Forwarded-Proto: h2", "x-forwarded-proto"),
        ("X-Forwarded-Host: a/b", "x-forwarded-host"),
        ("X-Forwarded-Port: 0", "x-forwarded-port"),
    ] {
        assert_eq!(named(false, bad), Some(name));
        assert_eq!(named(true, bad), None, "nobody looks at it");
    }
    for good in [
        "X-Forwarded-For: unknown, 10.0.0.1",
        "X-Forwarded-For: me, 198.51.100.1",
        "X-Forwarded-Proto: , ",
        "X-A: b",
    ] {
        assert_eq!(named(false, good), None, "{good}");
    }
}
