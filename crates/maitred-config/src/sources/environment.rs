//! The environment: `MAITRED_NAME` for each option, and the variables that platforms set for every server: `PORT`, `WEB_CONCURRENCY`. Commas
//! separate the items of a list, and also the parameters of a listener and the keys of a pool, which are told apart by their form; an empty
//! variable counts as not set.
//!
//! An unknown `MAITRED_*` variable is a warning, not an error: Kubernetes sets MAITRED_PORT and
//! MAITRED_SERVICE_HOST by itself in every container beside a service named `maitred`.

use crate::options::renamed::{Names, Used};
use crate::options::{self, Kind};
use crate::{Definition, Source};

use crate::origins::{Assignment, PORT};

/// Prefix of maitred's variables.
const PREFIX: &str = "MAITRED_";

/// Variable of platforms: the number of processes.
const WEB_CONCURRENCY: &str = "WEB_CONCURRENCY";

/// Whether a variable means something here.
pub fn is_read(name: &str) -> bool {
    name.starts_with(PREFIX) || name == PORT || name == WEB_CONCURRENCY
}

/// Prefix of the benches' own variables (bench/README.md), which get no warning.
const BENCH_PREFIX: &str = "MAITRED_BENCH_";

/// The options from the environment.
pub(crate) struct Environment {
    pub(crate) config_file: Option<String>,
    pub(crate) assignments: Vec<Assignment>,
    /// Options from variables of platforms: every other source counts more.
    pub(crate) suggested: Vec<Assignment>,
    /// Earlier names of options in the variables.
    pub(crate) renamed: Used,
}

/// Takes the variables that are options; the others give a warning.
pub(crate) fn parse(
    variables: &[(String, String)],
    earlier: Names,
    warnings: &mut Vec<String>,
) -> Environment {
    let mut environment = Environment {
        config_file: None,
        assignments: Vec::new(),
        suggested: Vec::new(),
        renamed: Used::default(),
    };
    for (name, value) in variables {
        if let Some((option, text)) = suggestion(name, value) {
            let source = Source::Environment(name.clone());
            let definition = options::find(option);
            let assignment =
                definition.map(|definition| Assignment { definition, texts: vec![text], source });
            environment.suggested.extend(assignment.filter(|_| !value.is_empty()));
            continue;
        }
        let renamed = earlier.of_variable(name);
        let is_meant = |definition: &&Definition| match renamed {
            Some(renamed) => definition.name == renamed.new,
            None => definition.variable() == *name,
        };
        let definition = options::all().filter(|definition| definition.is_in_environment()).find(is_meant);
        let Some(definition) = definition else {
            if name.starts_with(BENCH_PREFIX) {
                continue;
            }
            let remedy = options::suggest(name, |known| known.is_in_environment().then(|| known.variable()));
            warnings.push(format!("{name}: unknown variable, ignored; {remedy}"));
            continue;
        };
        if value.is_empty() {
            continue;
        }
        environment.renamed.add(name, renamed);
        if matches!(definition.kind, Kind::File) {
            environment.config_file = Some(value.clone());
            continue;
        }
        let texts = if definition.is_repeatable() { items(value) } else { vec![value.clone()] };
        let source = Source::Environment(name.clone());
        environment.assignments.push(Assignment { definition, texts, source });
    }
    environment
}

/// The option that a variable of a platform sets, and its value.
fn suggestion(name: &str, value: &str) -> Option<(&'static str, String)> {
    match name {
        // On all addresses, as in gunicorn: the platform's proxy is on another machine.
        PORT => Some(("listen", format!(":{value}"))),
        WEB_CONCURRENCY => Some(("workers", value.to_owned())),
        _ => None,
    }
}

/// The items of a list. `name=value` belongs to the item before it: `:80,read-ahead=off,:81` are two. A URL,
/// which may have such a sign too, starts with a slash.
fn items(list: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for text in list.split(',').map(str::trim) {
        let is_parameter = text.contains('=') && text.starts_with(|first: char| first.is_ascii_lowercase());
        match items.last_mut() {
            Some(last) if is_parameter => {
                last.push(',');
                last.push_str(text);
            }
            _ => items.push(text.to_owned()),
        }
    }
    items
}
