//! The JSON schema of maitred.toml (draft 2020-12), with which editors complete keys and mark errors: `maitred help schema`.
//!
//! Promises: the schema has every key of the file with its summary, and no other key. Leaves out: the form of texts.

use serde_json::{Map, Value, json};

use super::tables;
use crate::forms::Holds;
use crate::options::{self, Definition};
use crate::reference::default;

/// The schema, as text with a line end.
pub(super) fn text() -> String {
    let mut keys: Map<String, Value> = options::all()
        .filter(|option| option.is_in_file())
        .map(|option| (option.name.to_owned(), of(option)))
        .collect();
    for table in &tables::TABLES {
        let known = |key: &&'static str| options::find(key).map_or_else(|| json!({}), of);
        let own = table.keys().into_iter().map(|(key, what)| {
            let mut value = known(&key);
            value["description"] = json!(what);
            (key.to_owned(), value)
        });
        let object = json!({ "type": "object", "properties": own.collect::<Map<_, _>>(), "additionalProperties": false });
        let value = match table.names[0] {
            "filter" => json!({ "type": "array", "items": object }),
            _ => json!({ "type": "object", "additionalProperties": object }),
        };
        keys.insert(table.names[0].to_owned(), value);
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "maitred.toml",
        "type": "object",
        "properties": keys,
        "additionalProperties": false,
    });
    format!("{schema:#}\n")
}

fn of(option: &Definition) -> Value {
    let one = one(option);
    let mut value = if option.is_repeatable() {
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    } else {
        one
    };
    value["description"] = json!(option.summary);
    if let Some(default) = default(option) {
        value["description"] = json!(format!("{} Default: {default}.", option.summary));
    }
    value
}

/// The schema of one value of the option.
fn one(option: &Definition) -> Value {
    let Some(facts) = option.facts() else { return json!({ "type": "string" }) };
    match facts.holds {
        Holds::Text | Holds::File | Holds::Folder => json!({ "type": "string" }),
        Holds::Switch => json!({ "type": "boolean" }),
        Holds::Whole(min, max, auto) => {
            let whole = json!({ "type": "integer", "minimum": min, "maximum": max });
            if auto { json!({ "anyOf": [{ "const": "auto" }, whole] }) } else { whole }
        }
        Holds::Seconds(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Holds::NumberOrText => json!({ "type": ["number", "string"] }),
        Holds::Words => json!({ "enum": facts.words }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_file_is_there_with_its_type() {
        let schema: Value = serde_json::from_str(&text()).expect("JSON");
        let keys = &schema["properties"];
        for option in options::all().filter(|option| option.is_in_file()) {
            assert!(!keys[option.name].is_null(), "{}", option.name);
        }
        assert_eq!(keys["workers"]["anyOf"][1]["maximum"], 1024);
        assert_eq!(keys["log-level"]["enum"][0], "error");
        assert_eq!(keys["listen"]["anyOf"][1]["type"], "array");
        assert_eq!(
            keys["filter"]["items"]["properties"]["realm"]["description"],
            tables::of_filter_key("realm")
        );
        assert_eq!(keys["host"]["additionalProperties"]["additionalProperties"], false);
        assert!(keys["config"].is_null(), "it says which file");
    }
}
