//! The command line of a command with a few options of its own: `--name VALUE`, `--name=VALUE`, `--switch`, and arguments after `--`.
//!
//! Promises: an unknown option is an error that names the nearest one. Leaves out: the meaning of values, and `ctl`, whose options are those of
//! the server's table.

use maitred_config::{Problem, nearest};

/// The options of a command.
pub(crate) struct Known {
    /// The command's name, for errors.
    pub(crate) command: &'static str,
    /// Options with a value.
    pub(crate) values: &'static [&'static str],
    /// Options without a value. Each command also has `--help`.
    pub(crate) switches: &'static [&'static str],
    /// Whether arguments for another command may follow `--`.
    pub(crate) takes_rest: bool,
}

/// The options and arguments on a command line.
#[derive(Debug, Default)]
pub(crate) struct Given {
    values: Vec<(&'static str, String)>,
    switches: Vec<&'static str>,
    /// Arguments after `--`.
    pub(crate) rest: Vec<String>,
    /// Whether `--help` or `-h` was given; then the rest is not parsed.
    pub(crate) wants_help: bool,
}

impl Given {
    /// The value of this option; the last one, if it was given several times.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// The values of an option that may be repeated.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, switch: &str) -> bool {
        self.switches.contains(&switch)
    }
}

impl Known {
    /// # Errors
    /// An argument is not understood.
    pub(crate) fn parse(&self, arguments: &[String]) -> Result<Given, Problem> {
        let mut given = Given::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" && self.takes_rest {
                given.rest = rest.cloned().collect();
                break;
            }
            if argument == "-h" || argument == "--help" {
                return Ok(Given { wants_help: true, ..Given::default() });
            }
            let Some(written) = argument.strip_prefix("--") else { return Err(self.too_much(argument)) };
            let (name, attached) = match written.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (written, None),
            };
            let find = |names: &[&'static str]| names.iter().find(|own| **own == name).copied();
            if let Some(switch) = find(self.switches) {
                if attached.is_some() {
                    let remedy = format!("write --{switch}");
                    return Err(Problem::new(self.command, format!("--{switch} takes no value"), remedy));
                }
                given.switches.push(switch);
            } else if let Some(option) = find(self.values) {
                let value = attached.or_else(|| rest.next().cloned()).filter(|value| !value.is_empty());
                let value = value.ok_or_else(|| {
                    let remedy = format!("write --{option} VALUE");
                    Problem::new(self.command, format!("--{option} needs a value"), remedy)
                })?;
                given.values.push((option, value));
            } else {
                return Err(self.unknown(name));
            }
        }
        Ok(given)
    }

    fn unknown(&self, name: &str) -> Problem {
        let names = self.values.iter().chain(self.switches).copied().chain(["help"]);
        let remedy = match nearest(name, names) {
            Some(meant) => format!("did you mean '--{meant}'?"),
            None => format!("'maitred {} --help' lists the options", self.command),
        };
        Problem::new(self.command, format!("--{name} is no option of it"), remedy)
    }

    fn too_much(&self, word: &str) -> Problem {
        let remedy = match self.takes_rest {
            true => "write the application and the options of the server behind --".to_owned(),
            false => format!("'maitred {} --help' lists the options", self.command),
        };
        Problem::new(self.command, format!("'{word}' is too much"), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Known =
        Known { command: "health", values: &["url", "timeout"], switches: &["quiet"], takes_rest: false };

    fn parse(known: &Known, line: &str) -> Result<Given, String> {
        let words: Vec<String> = line.split_whitespace().map(ToOwned::to_owned).collect();
        known.parse(&words).map_err(|problem| problem.to_string())
    }

    #[test]
    fn values_and_switches_in_any_order() {
        let given = parse(&KNOWN, "--url=a=b --quiet --timeout 3 --timeout 4").expect("right");
        assert_eq!((given.value("url"), given.value("timeout")), (Some("a=b"), Some("4")));
        assert_eq!(given.all("timeout").count(), 2);
        assert!(given.has("quiet") && !given.wants_help);
        assert!(parse(&KNOWN, "--url x --help --nonsense").expect("help").wants_help);
    }

    #[test]
    fn arguments_after_two_hyphens_are_left_alone() {
        let known = Known { command: "install-service", takes_rest: true, ..KNOWN };
        let given = parse(&known, "--quiet -- app:app --help").expect("right");
        assert_eq!(given.rest, ["app:app", "--help"]);
        assert!(!given.wants_help);
        assert!(parse(&known, "app:app").expect_err("no --").contains("behind --"));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            parse(&KNOWN, "--tmeout 3").expect_err("wrong"),
            "health: --tmeout is no option of it; did you mean '--timeout'?"
        );
        assert_eq!(
            parse(&KNOWN, "--url").expect_err("none"),
            "health: --url needs a value; write --url VALUE"
        );
        assert!(parse(&KNOWN, "--quiet=1").expect_err("a value").contains("takes no value"));
        assert!(parse(&KNOWN, "now").expect_err("a word").contains("'now' is too much"));
        assert!(parse(&KNOWN, "--").expect_err("nothing").contains("is no option"));
    }
}
