//! Filters: from the tables `[[filter]]` of the files to the server's settings.

use std::path::PathBuf;
use std::sync::Arc;

use maitred_filters::{
    Access, Authentication, BadUsers, BasicAuth, Condition, FieldChanges, FilterRule, Redirect, Rewrite,
    Side, Statuses, Users,
};
use maitred_match::BadPattern;
use maitred_server::PoolRule;

use crate::config::{BasicAuthConfig, Config, FilterConfig};
use crate::forms::quoted;
use crate::origins::{Origins, Source};
use crate::pools::{CONDITIONS, NOBODY_IS_ASKED, set_condition};
use crate::problem::Problem;
use crate::tls;
use crate::value::{self, BadValue};

/// The type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Texts,
}

/// The keys of a filter: first the conditions, then the actions in the order in which requests meet them.
pub(crate) const KEYS: [(&str, Takes); 22] = [
    ("host", Takes::Text),
    ("path", Takes::Texts),
    ("method", Takes::Text),
    ("header", Takes::Text),
    ("client", Takes::Text),
    ("client-certificate", Takes::Text),
    ("scheme", Takes::Text),
    ("access", Takes::Texts),
    ("redirect", Takes::Text),
    ("status", Takes::Text),
    ("max-body", Takes::Text),
    ("read-ahead", Takes::Text),
    ("basic-auth", Takes::Text),
    ("realm", Takes::Text),
    ("rewrite", Takes::Text),
    ("remove-request", Takes::Texts),
    ("set-request", Takes::Texts),
    ("add-request", Takes::Texts),
    ("remove-response", Takes::Texts),
    ("set-response", Takes::Texts),
    ("add-response", Takes::Texts),
    ("response-status", Takes::Text),
];

/// Number of conditions in [`KEYS`]: those of pools, and the scheme.
const CONDITION_COUNT: usize = CONDITIONS.len() + 1;

/// The realm if none is given. Browsers show it.
const REALM: &str = "Restricted";

/// Values of a filter as they are written.
pub(crate) struct Given(pub(crate) Vec<(&'static str, Vec<String>)>);

/// The key of the error, if the error belongs to one, and the error.
pub(crate) type Wrong = (Option<&'static str>, BadValue);

impl Given {
    fn texts(&self, key: &str) -> Option<&[String]> {
        self.0.iter().find(|(given, _)| *given == key).map(|(_, texts)| texts.as_slice())
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.texts(key)?.first().map(String::as_str)
    }

    /// Splits the values into one set for each path. An empty list of paths becomes an empty path, which the filter refuses.
    pub(crate) fn each_path(self) -> impl Iterator<Item = Self> {
        let count = self.texts("path").map_or(1, |paths| paths.len().max(1));
        (0..count).map(move |position| {
            let of_one = |(key, texts): &(&'static str, Vec<String>)| match *key {
                "path" => (*key, vec![texts.get(position).cloned().unwrap_or_default()]),
                _ => (*key, texts.clone()),
            };
            Self(self.0.iter().map(of_one).collect())
        })
    }

    /// Makes the filter, for the first path.
    pub(crate) fn filter(&self) -> Result<FilterConfig, Wrong> {
        let mut rule = FilterRule { when: self.condition()?, ..FilterRule::default() };
        let path = rule.when.path.clone();
        let path = path.as_ref();
        rule.access =
            self.texts("access").map(Access::parse).transpose().map_err(|error| bad("access", error))?;
        rule.redirect = self.redirect(path)?;
        rule.max_body =
            self.text("max-body").map(value::bytes).transpose().map_err(|error| (Some("max-body"), error))?;
        rule.read_ahead = self.read_ahead()?;
        rule.rewrite = match self.text("rewrite") {
            Some(to) => Some(Rewrite::new(to, path).map_err(|error| bad("rewrite", error))?),
            None => None,
        };
        rule.request = self.changes(Side::Request, ["remove-request", "set-request", "add-request"])?;
        rule.response = self.changes(Side::Response, ["remove-response", "set-response", "add-response"])?;
        rule.response_status = self.response_status(&rule.response)?;
        let filter = FilterConfig { rule, basic_auth: self.basic_auth()? };
        self.check(&filter)?;
        Ok(filter)
    }

    fn condition(&self) -> Result<Condition, Wrong> {
        // Conditions have the same form as those of pools.
        let mut rule = PoolRule::default();
        for key in CONDITIONS {
            if let Some(text) = self.text(key) {
                set_condition(&mut rule, key, text).map_err(|error| (Some(key), error))?;
            }
        }
        let PoolRule { host, method, path, header, client, certificate, .. } = rule;
        let secure = self.secure()?;
        Ok(Condition { host, path, method, header, client, certificate, secure })
    }

    fn secure(&self) -> Result<Option<bool>, Wrong> {
        match self.text("scheme") {
            None => Ok(None),
            Some("https") => Ok(Some(true)),
            Some("http") => Ok(Some(false)),
            Some(other) => {
                let what = format!("'{other}' is neither 'http' nor 'https'");
                Err((Some("scheme"), BadValue::new(what, "write http or https")))
            }
        }
    }

    fn response_status(&self, response: &FieldChanges) -> Result<Option<Statuses>, Wrong> {
        match self.text("response-status") {
            None => Ok(None),
            Some(_) if response.is_empty() => {
                Err(alone("response-status", "set-response, add-response or remove-response"))
            }
            Some(text) => Statuses::parse(text).map(Some).map_err(|error| bad("response-status", error)),
        }
    }

    fn read_ahead(&self) -> Result<Option<bool>, Wrong> {
        match self.text("read-ahead") {
            None => Ok(None),
            Some("on") => Ok(Some(true)),
            Some("off") => Ok(Some(false)),
            Some(other) => {
                let what = format!("'{other}' is neither 'on' nor 'off'");
                Err((Some("read-ahead"), BadValue::new(what, "write on or off")))
            }
        }
    }

    fn redirect(&self, path: Option<&maitred_match::PathPattern>) -> Result<Option<Redirect>, Wrong> {
        let Some(to) = self.text("redirect") else {
            return match self.text("status") {
                None => Ok(None),
                Some(_) => Err(alone("status", "redirect")),
            };
        };
        let status = match self.text("status") {
            None => Redirect::STATUS.code(),
            Some(text) => text.parse().map_err(|_| {
                let what = format!("'{text}' is no status of a redirect");
                (Some("status"), BadValue::new(what, "write one of 301, 302, 303, 307, 308"))
            })?,
        };
        // The status is checked first: otherwise an error about it would name the key "redirect".
        Redirect::new("/", None, status).map_err(|error| bad("status", error))?;
        Redirect::new(to, path, status).map(Some).map_err(|error| bad("redirect", error))
    }

    fn basic_auth(&self) -> Result<Option<BasicAuthConfig>, Wrong> {
        let realm = self.text("realm");
        match self.text("basic-auth") {
            None if realm.is_some() => Err(alone("realm", "basic-auth")),
            None => Ok(None),
            Some("off") if realm.is_some() => Err(alone("realm", "a file in basic-auth")),
            Some("off") => Ok(Some(BasicAuthConfig::Off)),
            Some("") => {
                let remedy = "write the path of a file that 'maitred passwd' has made, or off";
                Err((Some("basic-auth"), BadValue::new("the path is empty", remedy)))
            }
            Some(file) => Ok(Some(BasicAuthConfig::Users {
                file: file.into(),
                realm: realm.unwrap_or(REALM).to_owned(),
            })),
        }
    }

    fn changes(&self, side: Side, [remove, set, add]: [&'static str; 3]) -> Result<FieldChanges, Wrong> {
        let mut changes = FieldChanges::default();
        for name in self.texts(remove).unwrap_or_default() {
            changes.remove(side, name).map_err(|error| bad(remove, error))?;
        }
        for field in self.texts(set).unwrap_or_default() {
            changes.set(side, field).map_err(|error| bad(set, error))?;
        }
        for field in self.texts(add).unwrap_or_default() {
            changes.add(side, field).map_err(|error| bad(add, error))?;
        }
        Ok(changes)
    }

    /// Checks the keys of the filter together.
    fn check(&self, filter: &FilterConfig) -> Result<(), Wrong> {
        let unconditional = FilterConfig {
            rule: FilterRule { when: Condition::default(), ..filter.rule.clone() },
            ..filter.clone()
        };
        if unconditional == FilterConfig::default() {
            let actions: Vec<&str> = KEYS[CONDITION_COUNT..].iter().map(|(key, _)| *key).collect();
            let remedy = format!("give it one of {}", actions.join(", "));
            return Err((None, BadValue::new("the filter does nothing", remedy)));
        }
        if filter.rule.redirect.is_some() {
            let never = ["basic-auth", "rewrite"].into_iter().find(|key| self.text(key).is_some());
            if let Some(key) = never {
                let what = "the redirect answers before that".to_owned();
                return Err((Some(key), BadValue::new(what, "leave one of them out")));
            }
        }
        Ok(())
    }
}

fn bad(key: &'static str, BadPattern { what, remedy }: BadPattern) -> Wrong {
    (Some(key), BadValue { what, remedy })
}

fn alone(key: &'static str, missing: &str) -> Wrong {
    (Some(key), BadValue::new(format!("it says nothing without {missing}"), "leave it out, or give that too"))
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
                let place = |key: &str| origins.of_filter(position).place_in_filter(Some(key));
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

/// A filter as a file would have it, line by line, behind `[[filter]]`.
pub fn show(filter: &FilterConfig) -> Vec<String> {
    let FilterRule {
        when,
        access,
        redirect,
        max_body,
        read_ahead,
        authentication: _,
        rewrite,
        request,
        response,
        response_status,
    } = &filter.rule;
    let mut lines = Vec::new();
    let mut line = |key: &str, value: String| lines.push(format!("{key:<16} = {value}"));
    let conditions = [
        ("host", when.host.as_ref().map(ToString::to_string)),
        ("path", when.path.as_ref().map(ToString::to_string)),
        ("method", when.method.as_ref().map(ToString::to_string)),
        ("header", when.header.as_ref().map(ToString::to_string)),
        ("client", when.client.as_ref().map(ToString::to_string)),
        ("client-certificate", when.certificate.as_ref().map(ToString::to_string)),
        ("scheme", when.secure.map(|secure| if secure { "https" } else { "http" }.to_owned())),
    ];
    for (key, text) in conditions {
        if let Some(text) = text {
            line(key, quoted(&text));
        }
    }
    let list = |texts: Vec<String>| {
        format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
    };
    if let Some(access) = access {
        line("access", list(access.texts().collect()));
    }
    if let Some(redirect) = redirect {
        line("redirect", quoted(redirect.to()));
        line("status", redirect.status().code().to_string());
    }
    if let Some(bytes) = max_body {
        line("max-body", value::show_bytes(*bytes));
    }
    if let Some(on) = read_ahead {
        line("read-ahead", quoted(if *on { "on" } else { "off" }));
    }
    match &filter.basic_auth {
        None => {}
        Some(BasicAuthConfig::Off) => line("basic-auth", quoted("off")),
        Some(BasicAuthConfig::Users { file, realm }) => {
            line("basic-auth", quoted(&file.display().to_string()));
            line("realm", quoted(realm));
        }
    }
    if let Some(rewrite) = rewrite {
        line("rewrite", quoted(rewrite.to()));
    }
    for (side, changes) in [("request", request), ("response", response)] {
        let removed: Vec<String> = changes.removed().map(ToOwned::to_owned).collect();
        let parts = [
            ("remove", removed),
            ("set", changes.set_fields().collect()),
            ("add", changes.added().collect()),
        ];
        for (what, texts) in parts.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            line(&format!("{what}-{side}"), list(texts));
        }
    }
    if let Some(statuses) = response_status {
        line("response-status", quoted(&statuses.to_string()));
    }
    lines
}

/// Warns of filters that have no effect: their client certificate is never asked for, or a later filter decides.
pub fn warnings(config: &Config, origins: &Origins) -> Vec<String> {
    let mut warnings = Vec::new();
    for (position, filter) in config.filters.iter().enumerate() {
        let rule = &filter.rule;
        if rule.when.certificate.is_some() && !tls::asks_clients(config) {
            let place = origins.of_filter(position).place_in_filter(Some("client-certificate"));
            warnings.push(format!("{place}: {NOBODY_IS_ASKED}"));
        }
        for later in &config.filters[position + 1..] {
            let same = later.rule.when == rule.when;
            let replaced = [
                ("access", rule.access.is_some() && later.rule.access.is_some()),
                ("redirect", rule.redirect.is_some() && later.rule.redirect.is_some()),
                ("max-body", rule.max_body.is_some() && later.rule.max_body.is_some()),
                ("read-ahead", rule.read_ahead.is_some() && later.rule.read_ahead.is_some()),
                ("basic-auth", filter.basic_auth.is_some() && later.basic_auth.is_some()),
                ("rewrite", rule.rewrite.is_some() && later.rule.rewrite.is_some()),
            ];
            for (key, _) in replaced.into_iter().filter(|(_, replaced)| same && *replaced) {
                let place = origins.of_filter(position).place_in_filter(Some(key));
                warnings
                    .push(format!("{place}: a later filter for the same requests decides; leave one out"));
            }
        }
    }
    warnings
}

impl Source {
    /// The name of a filter, or of one of its keys, for errors.
    pub(crate) fn place_in_filter(&self, key: Option<&str>) -> String {
        let place = match self {
            Self::File { path, line } | Self::DropIn { path, line } => format!("{path}:{line}: "),
            _ => String::new(),
        };
        match key {
            Some(key) => format!("{place}filter.{key}"),
            None => format!("{place}filter"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(values: &[(&'static str, &[&str])]) -> Given {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Given(values.iter().map(|(key, texts)| (*key, owned(texts))).collect())
    }

    #[test]
    fn filters_are_shown_as_they_are_written() {
        let filter = given(&[
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
            show(&filter.filter().expect("valid")),
            [
                "path             = \"/old/*\"",
                "method           = \"POST\"",
                "header           = \"X-Kind: a*\"",
                "client           = \"10.0.0.0/8\"",
                "client-certificate = \"*.shop.example\"",
                "scheme           = \"http\"",
                "access           = [\"allow 10.1.0.0/16\", \"deny all\"]",
                "max-body         = \"1m\"",
                "read-ahead       = \"off\"",
                "basic-auth       = \"users.txt\"",
                r#"realm            = "Staff \"only\"""#,
                "rewrite          = \"/new/*\"",
                "remove-request   = [\"X-A\"]",
                "set-response     = [\"X-B: 1\", \"X-C: 2\"]",
                "add-response     = [\"X-D: 3\"]",
                "response-status  = \"200, 301-308\"",
            ]
        );
        let redirect = given(&[("redirect", &["/new"]), ("status", &["303"])]).filter().expect("valid");
        assert_eq!(show(&redirect), ["redirect         = \"/new\"", "status           = 303"]);
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
            (&[("read-ahead", &["yes"])], Some("read-ahead"), "'yes' is neither 'on' nor 'off'"),
            (&[("scheme", &["ftp"])], Some("scheme"), "'ftp' is neither 'http' nor 'https'"),
            (&[("scheme", &["http"])], None, "does nothing; give it one of access, redirect"),
            (&[("response-status", &["200"])], Some("response-status"), "says nothing without set-response"),
            (
                &[("set-response", &["X-A: 1"]), ("response-status", &["ok"])],
                Some("response-status"),
                "'ok' is no list of statuses",
            ),
            (&[("set-response", &["Connection: close"])], Some("set-response"), "is the engine's own"),
        ] {
            let (found, BadValue { what, remedy }) = given(values).filter().expect_err("wrong");
            assert_eq!(found, key);
            let text = format!("{what}; {remedy}");
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_page_has_every_key() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/filters.md");
        let page = std::fs::read_to_string(page).expect("docs/operations/filters.md");
        for (key, _) in KEYS {
            assert!(page.contains(&format!("`{key}`")), "{key}");
        }
    }
}
