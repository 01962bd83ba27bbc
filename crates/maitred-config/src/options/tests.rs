use super::*;

#[test]
fn every_default_is_a_value_of_its_option() {
    for definition in all() {
        let texts: Vec<String> = definition.default.iter().map(ToString::to_string).collect();
        if !texts.is_empty() {
            definition.set(&mut Config::with_defaults(), &texts).expect(definition.name);
        }
    }
}

#[test]
fn every_option_says_what_it_does_and_settings_say_what_they_cost() {
    for definition in all() {
        assert!(definition.summary.len() > 10, "{}", definition.name);
        let is_setting = definition.is_in_file() && !definition.is_positional();
        assert_eq!(
            is_setting,
            !definition.cost.is_empty() && !definition.worst.is_empty(),
            "{}",
            definition.name
        );
    }
}

#[test]
fn a_misspelt_choice_suggests_the_nearest() {
    let bad = find("log-level")
        .expect("exists")
        .set(&mut Config::with_defaults(), &["wran".to_owned()])
        .expect_err("bad");
    assert_eq!(bad.what, "'wran' is none of error, warn, info, debug");
    assert_eq!(bad.remedy, "did you mean 'warn'?");
}

#[test]
fn a_shown_value_is_toml_with_the_same_meaning() {
    for (name, text) in
        [("max-body", "17k"), ("head-timeout", "0.25"), ("static", "/a=b\"c"), ("access-log", "x\\y")]
    {
        let definition = find(name).expect(name);
        let mut config = Config::with_defaults();
        definition.set(&mut config, &[text.to_owned()]).expect(text);
        let line = format!("{name} = {}", definition.show(&config).expect(name));
        let table: toml::Table = line.parse().expect(&line);
        let value = match &table[name] {
            toml::Value::Array(values) => values[0].as_str().expect("text").to_owned(),
            toml::Value::String(text) => text.clone(),
            other => other.as_float().expect("a number").to_string(),
        };
        assert_eq!(value, text);
    }
}

#[test]
fn compressed_types_are_shown_as_lists() {
    let mut config = Config::with_defaults();
    let mut set = |name: &str, texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        find(name)
            .expect(name)
            .set(&mut config, &texts)
            .map_err(|bad| format!("{}; {}", bad.what, bad.remedy))
    };
    assert_eq!(set("compress-encodings", &["br", "gzip:9"]), Ok(()));
    assert_eq!(set("compress-except", &["/stream/*", "*.bin"]), Ok(()));
    for (name, text, part) in [
        (
            "compress-encodings",
            "lz4",
            "'lz4' is no coding that responses are compressed with; write gzip, br or zstd",
        ),
        ("compress-types", "html", "'html' is no type of content; write a type such as text/html"),
        ("compress-except", "stream", "did you mean '/stream'?"),
        ("compress-memory", "much", "is not a number of bytes"),
    ] {
        let error = set(name, &[text]).expect_err(text);
        assert!(error.contains(part), "{error}");
    }
    let shown = |name: &str| find(name).expect(name).show(&config);
    assert_eq!(shown("compress-encodings").as_deref(), Some("[\"br:5\", \"gzip:9\"]"));
    assert_eq!(shown("compress-except").as_deref(), Some("[\"/stream/*\", \"*.bin\"]"));
    assert_eq!(shown("compress"), Some("false".to_owned()));
}
