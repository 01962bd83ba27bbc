//! The JSON schema of maitred.toml (draft 2020-12), with which editors complete keys and mark errors: `maitred help schema`.
//!
//! Promises: the schema has every key of the file with its summary, and no other key. Leaves out: the form of texts.

use serde_json::{Map, Value, json};

use crate::forms::{Facts, Holds};
use crate::reference::default;
use crate::schema::{Key, Table, Takes};
use crate::{Definition, options, tables};

/// The schema, as text with a line end.
pub(super) fn text() -> String {
    let mut keys: Map<String, Value> = options::all()
        .filter(|option| option.is_in_file())
        .map(|option| (option.name.to_owned(), of(option)))
        .collect();
    keys.extend(tables::ALL.into_iter().map(|table| (table.names[0].to_owned(), of_table(table))));
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
    let mut value = option.facts().map_or_else(|| json!({ "type": "string" }), |facts| of_value(&facts));
    value["description"] = json!(option.summary);
    if let Some(default) = default(option) {
        value["description"] = json!(format!("{} Default: {default}.", option.summary));
    }
    value
}

fn of_table(table: &Table) -> Value {
    let object = of_keys((table.keys)());
    if table.is_list() {
        json!({ "type": "array", "items": object })
    } else {
        json!({ "type": "object", "additionalProperties": object })
    }
}

fn of_keys(keys: Vec<Key>) -> Value {
    let of_key = |key: Key| {
        let mut value = match key.takes {
            Takes::Value(facts) => of_value(&facts),
            Takes::Tables(table) => of_table(table),
            Takes::Rules { keys, .. } => {
                let one = json!({ "anyOf": [{ "type": "string" }, of_keys(keys())] });
                json!({ "anyOf": [one, { "type": "array", "items": one }] })
            }
        };
        value["description"] = json!(key.help);
        (key.name.to_owned(), value)
    };
    let keys: Map<_, _> = keys.into_iter().map(of_key).collect();
    json!({ "type": "object", "properties": keys, "additionalProperties": false })
}

fn of_value(facts: &Facts) -> Value {
    let one = match facts.holds {
        Holds::Text | Holds::File | Holds::Folder => json!({ "type": "string" }),
        Holds::Switch => json!({ "type": "boolean" }),
        Holds::Whole(min, max, auto) => {
            let whole = json!({ "type": "integer", "minimum": min, "maximum": max });
            if auto { json!({ "anyOf": [{ "const": "auto" }, whole] }) } else { whole }
        }
        Holds::Seconds(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Holds::NumberOrText | Holds::Bytes => json!({ "type": ["number", "string"] }),
        Holds::Words => json!({ "enum": facts.words }),
    };
    if facts.is_list { json!({ "anyOf": [one, { "type": "array", "items": one }] }) } else { one }
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
            "What clients show when they ask for the password."
        );
        assert_eq!(keys["host"]["additionalProperties"]["additionalProperties"], false);
        assert_eq!(keys["filter"]["items"]["properties"]["scheme"]["enum"][1], "https");
        let pool = &keys["pool"]["additionalProperties"]["properties"];
        assert_eq!(pool["min-threads"]["minimum"], 0, "1 in the default pool only");
        assert_eq!(pool["match"]["anyOf"][0]["anyOf"][1]["properties"]["path"]["type"], "string");
        assert!(keys["config"].is_null(), "it says which file");
    }
}
