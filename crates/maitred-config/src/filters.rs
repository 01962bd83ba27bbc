//! Filters: from the tables `[[filter]]` of the files to the server's settings.

use std::path::PathBuf;
use std::sync::Arc;

use maitred_filters::{
    Access, Authentication, BadUsers, BasicAuth, Condition, FieldChanges, FilterRule, Redirect, Rewrite,
    Side, Statuses, Users,
};
use maitred_match::BadPattern;
use maitred_server::HostCondition;

use crate::config::{BasicAuthConfig, FilterConfig};
use crate::forms::{
    At, BYTES, CERTIFICATE, Choice, Facts, Form, HEADER, HOST, Holds, METHOD, Made, Maybe, NETWORK, Value,
    list, quoted,
};
use crate::pools::NOBODY_IS_ASKED;
use crate::schema::{Own, Part, Shown, Table};
use crate::{BadValue, Config, Origins, Problem, tls, value};

const FILTER: &str = "filter";

pub(crate) const TABLE: Table = Table {
    names: [FILTER, "filters"],
    head: "[[filter]]",
    summary: "A table in maitred.toml for each filter: who may ask, redirects, passwords, limits of bodies, other paths and fields. Conditions come \
              first; without any it is for every request.",
    document: "filters.md",
    keys: || KEYS.iter().map(Own::key).collect(),
    merge: |part, config, origins| merge(&part, None, config, origins),
    show: show_tables,
    check: |config, origins| rules(config, origins).map(drop),
    warnings,
};

/// The keys of a filter: first the conditions, then the actions in the order in which requests meet them. A value that depends on another
/// one stands behind it.
const KEYS: [Own<FilterConfig>; 22] = [
    Own::new(
        "host",
        &at(Maybe(HOST), |own| &mut own.rule.when.host),
        "Condition: the name of a virtual host.",
    ),
    Own::new("path", &PATH, "Condition: a pattern such as /staff/*, or a list of them."),
    Own::new(
        "method",
        &at(Maybe(METHOD), |own| &mut own.rule.when.method),
        "Condition: a method, in capitals.",
    ),
    Own::new(
        "header",
        &at(Maybe(HEADER), |own| &mut own.rule.when.header),
        "Condition: 'Name: value'; each * stands for anything.",
    ),
    Own::new(
        "client",
        &at(Maybe(NETWORK), |own| &mut own.rule.when.client),
        "Condition: an address or a network.",
    ),
    Own::new(
        "client-certificate",
        &at(Maybe(CERTIFICATE), |own| &mut own.rule.when.certificate),
        "Condition: a name in a verified certificate.",
    ),
    Own::new(
        "scheme",
        &at(Maybe(Choice(&[("http", false), ("https", true)])), |own| &mut own.rule.when.secure),
        "Condition: 'http' or 'https'.",
    ),
    Own::new(
        "access",
        &ACCESS,
        "Who may ask: a list of 'allow' and 'deny', each with an address, a network or 'all'. Others get 403.",
    ),
    Own::new("redirect", &REDIRECT, "To a path or a URL; each * is what * in path stands for."),
    Own::new("status", &STATUS, "Of the redirect: 301, 302, 303, 307 or 308, which is the default."),
    Own::new(
        "max-body",
        &at(Maybe(BYTES), |own| &mut own.rule.max_body),
        "The longest body, in the place of the option max-body.",
    ),
    Own::new(
        "read-ahead",
        &at(Maybe(Choice(&[("on", true), ("off", false)])), |own| &mut own.rule.read_ahead),
        "'on': the application runs when the body is there; 'off': with the head.",
    ),
    Own::new(
        "basic-auth",
        &BASIC_AUTH,
        "A file of users (maitred passwd), or 'off'. Without a right password: 401.",
    ),
    Own::new("realm", &REALM, "What clients show when they ask for the password."),
    Own::new("rewrite", &REWRITE, "Another path for the application and files."),
    Own::new(
        "remove-request",
        &Change::Remove(Side::Request),
        "Names of fields that are taken from the request.",
    ),
    Own::new(
        "set-request",
        &Change::Set(Side::Request),
        "'Name: value': such a field of the request is replaced.",
    ),
    Own::new("add-request", &Change::Add(Side::Request), "'Name: value': one more field of the request."),
    Own::new(
        "remove-response",
        &Change::Remove(Side::Response),
        "Names of fields that are taken from every response.",
    ),
    Own::new(
        "set-response",
        &Change::Set(Side::Response),
        "'Name: value': such a field of every response is replaced.",
    ),
    Own::new(
        "add-response",
        &Change::Add(Side::Response),
        "'Name: value': one more field of every response.",
    ),
    Own::new(
        "response-status",
        &RESPONSE_STATUS,
        "Fields of responses are changed for these statuses only, such as \"200, 301-308, 4xx\".",
    ),
];

/// The last condition in [`KEYS`]; actions are behind it.
const LAST_CONDITION: &str = "scheme";

const fn at<F: Form>(form: F, field: fn(&mut FilterConfig) -> &mut F::Value) -> At<FilterConfig, F> {
    At { form, field }
}

/// The text of a value that is one text.
fn one(texts: &[String]) -> &str {
    texts.last().map_or("", String::as_str)
}

const TEXT: Made<FilterConfig> =
    Made { read: |_, _| Ok(()), show: |_| None, holds: Holds::Text, is_list: false };

/// A list makes a filter for each path.
const PATH: Made<FilterConfig> = Made {
    read: |filter, texts| {
        filter.rule.when.path = Some(value::pattern(one(texts))?);
        Ok(())
    },
    show: |filter| Some(quoted(&filter.rule.when.path.as_ref()?.to_string())),
    is_list: true,
    ..TEXT
};

const ACCESS: Made<FilterConfig> = Made {
    read: |filter, texts| {
        filter.rule.access = Some(Access::parse(texts)?);
        Ok(())
    },
    show: |filter| Some(list(filter.rule.access.as_ref()?.texts())),
    is_list: true,
    ..TEXT
};

const REDIRECT: Made<FilterConfig> = Made {
    read: |filter, texts| {
        let path = filter.rule.when.path.as_ref();
        filter.rule.redirect = Some(Redirect::new(one(texts), path, Redirect::STATUS.code())?);
        Ok(())
    },
    show: |filter| Some(quoted(filter.rule.redirect.as_ref()?.to())),
    ..TEXT
};

const STATUS: Made<FilterConfig> = Made {
    read: |filter, texts| {
        let Some(redirect) = &filter.rule.redirect else { return Err(alone("redirect")) };
        let status = one(texts).parse().map_err(|_| {
            let what = format!("'{}' is no status of a redirect", one(texts));
            BadValue::new(what, "write one of 301, 302, 303, 307, 308")
        })?;
        filter.rule.redirect = Some(Redirect::new(redirect.to(), filter.rule.when.path.as_ref(), status)?);
        Ok(())
    },
    show: |filter| Some(filter.rule.redirect.as_ref()?.status().code().to_string()),
    holds: Holds::NumberOrText,
    ..TEXT
};

const BASIC_AUTH: Made<FilterConfig> = Made {
    read: |filter, texts| {
        filter.basic_auth = Some(match one(texts) {
            "off" => BasicAuthConfig::Off,
            "" => {
                let remedy = "write the path of a file that 'maitred passwd' has made, or off";
                return Err(BadValue::new("the path is empty", remedy));
            }
            // Browsers show the realm.
            file => BasicAuthConfig::Users { file: file.into(), realm: "Restricted".to_owned() },
        });
        Ok(())
    },
    show: |filter| match filter.basic_auth.as_ref()? {
        BasicAuthConfig::Off => Some(quoted("off")),
        BasicAuthConfig::Users { file, .. } => Some(quoted(&file.display().to_string())),
    },
    ..TEXT
};

const REALM: Made<FilterConfig> = Made {
    read: |filter, texts| match &mut filter.basic_auth {
        None => Err(alone("basic-auth")),
        Some(BasicAuthConfig::Off) => Err(alone("a file in basic-auth")),
        Some(BasicAuthConfig::Users { realm, .. }) => {
            one(texts).clone_into(realm);
            Ok(())
        }
    },
    show: |filter| match filter.basic_auth.as_ref()? {
        BasicAuthConfig::Off => None,
        BasicAuthConfig::Users { realm, .. } => Some(quoted(realm)),
    },
    ..TEXT
};

const REWRITE: Made<FilterConfig> = Made {
    read: |filter, texts| {
        filter.rule.rewrite = Some(Rewrite::new(one(texts), filter.rule.when.path.as_ref())?);
        Ok(())
    },
    show: |filter| Some(quoted(filter.rule.rewrite.as_ref()?.to())),
    ..TEXT
};

const RESPONSE_STATUS: Made<FilterConfig> = Made {
    read: |filter, texts| {
        if filter.rule.response.is_empty() {
            return Err(alone("set-response, add-response or remove-response"));
        }
        filter.rule.response_status = Some(Statuses::parse(one(texts))?);
        Ok(())
    },
    show: |filter| Some(quoted(&filter.rule.response_status.as_ref()?.to_string())),
    ..TEXT
};

fn alone(missing: &str) -> BadValue {
    BadValue::new(format!("it says nothing without {missing}"), "leave it out, or give that too")
}

enum Change {
    Remove(Side),
    Set(Side),
    Add(Side),
}

impl Value<FilterConfig> for Change {
    fn facts(&self) -> Facts {
        ACCESS.facts()
    }

    fn set(&self, to: &mut FilterConfig, texts: &[String]) -> Result<(), BadValue> {
        for text in texts {
            match self {
                Self::Remove(side) => changes(to, *side).remove(*side, text),
                Self::Set(side) => changes(to, *side).set(*side, text),
                Self::Add(side) => changes(to, *side).add(*side, text),
            }?;
        }
        Ok(())
    }

    fn show(&self, of: &FilterConfig) -> Option<String> {
        let mut of = of.clone();
        let texts: Vec<String> = match self {
            Self::Remove(side) => changes(&mut of, *side).removed().map(ToOwned::to_owned).collect(),
            Self::Set(side) => changes(&mut of, *side).set_fields().collect(),
            Self::Add(side) => changes(&mut of, *side).added().collect(),
        };
        (!texts.is_empty()).then(|| list(texts))
    }
}

fn changes(filter: &mut FilterConfig, side: Side) -> &mut FieldChanges {
    match side {
        Side::Request => &mut filter.rule.request,
        Side::Response => &mut filter.rule.response,
    }
}

/// Merges a table of filters, one for each of its paths; in the table of a host it is for that host.
///
/// # Errors
/// A value is not valid, or the filter as a whole.
pub(crate) fn merge(
    part: &Part,
    host: Option<&str>,
    config: &mut Config,
    origins: &mut Origins,
) -> Result<(), Problem> {
    let paths = part.given.iter().find(|given| given.key == "path");
    // An empty list of paths becomes an empty path, which the filter refuses.
    for position in 0..paths.map_or(1, |paths| paths.items.len().max(1)) {
        let mut filter = read(part, position)?;
        if let Some(host) = host {
            if filter.rule.when.host.is_some() {
                let place = part.source.place_in(FILTER, "", Some("host"));
                return Err(Problem::new(place, "the filter stands in the table of a host", "leave it out"));
            }
            filter.rule.when.host = Some(HostCondition { number: u16::MAX, name: host.into() });
        }
        config.filters.push(filter);
        origins.filters.push(part.source.clone());
    }
    Ok(())
}

/// Reads the filter for the path at this position of the list.
fn read(part: &Part, path: usize) -> Result<FilterConfig, Problem> {
    let mut filter = FilterConfig::default();
    for own in &KEYS {
        let Some(mut given) = part.given.iter().find(|given| given.key == own.name).cloned() else {
            continue;
        };
        if own.name == "path" {
            given.items = given.items.drain(..).skip(path).take(1).collect();
        }
        given
            .set(own.value, &mut filter)
            .map_err(|(bad, source)| bad.at(source.place_in(FILTER, "", Some(own.name))))?;
    }
    check(&filter).map_err(|(key, bad)| {
        let given = part.given.iter().find(|given| Some(given.key) == key);
        bad.at(given.map_or(&part.source, |given| &given.source).place_in(FILTER, "", key))
    })?;
    Ok(filter)
}

/// Checks the keys of the filter together. An error has the key that is wrong, if it is one.
fn check(filter: &FilterConfig) -> Result<(), (Option<&'static str>, BadValue)> {
    let unconditional = FilterConfig {
        rule: FilterRule { when: Condition::default(), ..filter.rule.clone() },
        ..filter.clone()
    };
    if unconditional == FilterConfig::default() {
        let names = KEYS.iter().map(|own| own.name).skip_while(|name| *name != LAST_CONDITION).skip(1);
        let remedy = format!("give it one of {}", names.collect::<Vec<_>>().join(", "));
        return Err((None, BadValue::new("the filter does nothing", remedy)));
    }
    if filter.rule.redirect.is_some() {
        let later = [("basic-auth", filter.basic_auth.is_some()), ("rewrite", filter.rule.rewrite.is_some())];
        if let Some((key, _)) = later.into_iter().find(|(_, given)| *given) {
            return Err((
                Some(key),
                BadValue::new("the redirect answers before that", "leave one of them out"),
            ));
        }
    }
    Ok(())
}

/// The filters for a server; reads the files of users.
///
/// # Errors
/// A file cannot be read, or is not one of users.
pub fn rules(config: &Config, origins: &Origins) -> Result<Vec<FilterRule>, Problem> {
    let mut files: Vec<(PathBuf, Arc<Users>)> = Vec::new();
    let mut rules: Vec<FilterRule> = config.host_filters().collect();
    for (position, filter) in config.filters.iter().enumerate() {
        let mut rule = filter.rule.clone();
        rule.authentication = match &filter.basic_auth {
            None => None,
            Some(BasicAuthConfig::Off) => Some(Authentication::Off),
            Some(BasicAuthConfig::Users { file, realm }) => {
                let place = |key: &str| origins.of_filter(position).place_in(FILTER, "", Some(key));
                let users = match files.iter().find(|(path, _)| path == file) {
                    Some((_, users)) => Arc::clone(users),
                    None => {
                        let users =
                            Users::open(file).map_err(|error| not_read(place("basic-auth"), file, &error))?;
                        files.push((file.clone(), Arc::clone(&users)));
                        users
                    }
                };
                let basic = BasicAuth::new(users, realm)
                    .map_err(|BadPattern { what, remedy }| Problem::new(place("realm"), what, remedy))?;
                Some(Authentication::Basic(basic))
            }
        };
        rules.push(rule);
    }
    Ok(rules)
}

fn not_read(place: String, file: &std::path::Path, error: &BadUsers) -> Problem {
    let shown = file.display();
    let remedy = match error.line {
        Some(_) => format!("correct the line, or write it with 'maitred passwd {shown} USER'"),
        None => format!("'maitred passwd {shown} USER' makes it"),
    };
    Problem::new(place, format!("{shown}: {error}"), remedy)
}

fn show_tables(config: &Config, origins: &Origins) -> Vec<Shown> {
    let shown = |(position, filter): (usize, &FilterConfig)| Shown {
        head: TABLE.head.to_owned(),
        prefix: format!("{FILTER} {}: ", position + 1),
        source: origins.of_filter(position).clone(),
        lines: KEYS.iter().filter_map(|own| own.line(filter, None)).collect(),
    };
    config.filters.iter().enumerate().map(shown).collect()
}

/// Actions of which that of the most specific filter counts, and of equal filters that of the last one.
const REPLACED: [&str; 6] = ["access", "redirect", "max-body", "read-ahead", "basic-auth", "rewrite"];

/// Warns of filters that have no effect: their client certificate is never asked for, or a later filter decides.
fn warnings(config: &Config, origins: &Origins) -> Vec<String> {
    let mut warnings = Vec::new();
    for (position, filter) in config.filters.iter().enumerate() {
        let place = |key| origins.of_filter(position).place_in(FILTER, "", Some(key));
        if filter.rule.when.certificate.is_some() && !tls::asks_clients(config) {
            warnings.push(format!("{}: {NOBODY_IS_ASKED}", place("client-certificate")));
        }
        let same = |later: &&FilterConfig| later.rule.when == filter.rule.when;
        for later in config.filters[position + 1..].iter().filter(same) {
            for own in KEYS.iter().filter(|own| REPLACED.contains(&own.name)) {
                if own.value.show(filter).is_some() && own.value.show(later).is_some() {
                    let place = place(own.name);
                    warnings.push(format!(
                        "{place}: a later filter for the same requests decides; leave one out"
                    ));
                }
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origins::Source;
    use crate::schema::{Given, Item};

    fn filter(values: &[(&'static str, &[&str])]) -> Result<FilterConfig, Problem> {
        let source = Source::Control;
        let item = |text: &&str| Item::Text((*text).to_owned(), source.clone());
        let given = |(key, texts): &(&'static str, &[&str])| Given {
            key,
            renamed: None,
            items: texts.iter().map(item).collect(),
            source: source.clone(),
        };
        let given = values.iter().map(given).collect();
        read(&Part { name: String::new(), source: source.clone(), given }, 0)
    }

    fn show(filter: &FilterConfig) -> Vec<String> {
        let shown = |own: &Own<FilterConfig>| Some(format!("{} = {}", own.name, own.value.show(filter)?));
        KEYS.iter().filter_map(shown).collect()
    }

    #[test]
    fn filters_are_shown_as_they_are_written() {
        let filter = filter(&[
            ("path", &["/old/*"]),
            ("method", &["POST"]),
            ("header", &["X-Kind: a*"]),
            ("client", &["10.0.0.0/8"]),
            ("client-certificate", &["*.shop.example"]),
            ("access", &["allow 10.1.0.0/16", "deny all"]),
            ("max-body", &["1m"]),
            ("read-ahead", &["off"]),
            ("basic-auth", &["users.txt"]),
            ("realm", &["Staff \"only\""]),
            ("rewrite", &["/new/*"]),
            ("remove-request", &["X-A"]),
            ("set-response", &["X-B: 1", "X-C: 2"]),
            ("add-response", &["X-D: 3"]),
            ("scheme", &["http"]),
            ("response-status", &["200, 301-308"]),
        ]);
        assert_eq!(
            show(&filter.expect("valid")),
            [
                "path = \"/old/*\"",
                "method = \"POST\"",
                "header = \"X-Kind: a*\"",
                "client = \"10.0.0.0/8\"",
                "client-certificate = \"*.shop.example\"",
                "scheme = \"http\"",
                "access = [\"allow 10.1.0.0/16\", \"deny all\"]",
                "max-body = \"1m\"",
                "read-ahead = \"off\"",
                "basic-auth = \"users.txt\"",
                r#"realm = "Staff \"only\"""#,
                "rewrite = \"/new/*\"",
                "remove-request = [\"X-A\"]",
                "set-response = [\"X-B: 1\", \"X-C: 2\"]",
                "add-response = [\"X-D: 3\"]",
                "response-status = \"200, 301-308\"",
            ]
        );
        let redirect = self::filter(&[("redirect", &["/new"]), ("status", &["303"])]).expect("valid");
        assert_eq!(show(&redirect), ["redirect = \"/new\"", "status = 303"]);
        assert_eq!(redirect.rule.redirect.expect("one").status().code(), 303);
    }

    #[test]
    fn errors_name_the_key() {
        for (values, key, part) in [
            (
                &[("path", &["/a"][..])][..],
                None,
                "does nothing; give it one of access, redirect, status, max-body",
            ),
            (&[("status", &["301"])], Some("status"), "says nothing without redirect"),
            (&[("realm", &["a"])], Some("realm"), "says nothing without basic-auth"),
            (&[("basic-auth", &["off"]), ("realm", &["a"])], Some("realm"), "without a file in basic-auth"),
            (&[("basic-auth", &[""])], Some("basic-auth"), "the path is empty"),
            (
                &[("redirect", &["/a"]), ("status", &["200"])],
                Some("status"),
                "200 is no status of a redirect",
            ),
            (&[("redirect", &["/a"]), ("status", &["x"])], Some("status"), "'x' is no status of a redirect"),
            (
                &[("redirect", &["/a"]), ("rewrite", &["/b"])],
                Some("rewrite"),
                "the redirect answers before that",
            ),
            (&[("redirect", &["/*"])], Some("redirect"), "'/*' has 1 '*', and the path 0"),
            (&[("path", &["a"]), ("rewrite", &["/b"])], Some("path"), "did you mean '/a'?"),
            (&[("access", &["deny"])], Some("access"), "the client '' is no address"),
            (&[("max-body", &["many"])], Some("max-body"), "many"),
            (&[("read-ahead", &["yes"])], Some("read-ahead"), "'yes' is none of on, off"),
            (&[("scheme", &["ftp"])], Some("scheme"), "'ftp' is none of http, https"),
            (&[("scheme", &["http"])], None, "does nothing; give it one of access, redirect"),
            (&[("response-status", &["200"])], Some("response-status"), "says nothing without set-response"),
            (
                &[("set-response", &["X-A: 1"]), ("response-status", &["ok"])],
                Some("response-status"),
                "'ok' is no list of statuses",
            ),
            (&[("set-response", &["Connection: close"])], Some("set-response"), "is the engine's own"),
        ] {
            let text = filter(values).expect_err("wrong").to_string();
            let place = key.map_or("filter: ".to_owned(), |key| format!("filter.{key}: "));
            assert!(text.starts_with(&place) && text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_page_has_every_key() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/filters.md");
        let page = std::fs::read_to_string(page).expect("docs/operations/filters.md");
        for Own { name, .. } in &KEYS {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
