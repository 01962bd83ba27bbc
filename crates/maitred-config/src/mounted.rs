//! Applications at prefixes as they are written: `/api=api.main:app,interface=asgi`.

use std::fmt;
use std::path::PathBuf;

use crate::value::{Interface, switch, url_path};
use crate::{BadValue, did_you_mean};

/// An application at a prefix of the URL path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedApplication {
    /// Starts with `/` and does not end with one.
    pub prefix: String,
    /// The application, as the option `application` takes it, but no folder.
    pub application: String,
    /// The calling convention of the application.
    pub interface: Interface,
    /// Whether the attribute makes the application instead of being it.
    pub factory: bool,
    /// The folder of its modules, instead of `app-dir`.
    pub app_dir: Option<PathBuf>,
    /// The pool whose threads run its requests, unless a rule says otherwise.
    pub pool: Option<String>,
}

/// The names of the parameters, each with the form of its value.
const PARAMETERS: [(&str, &str); 4] = [
    ("interface", "auto, wsgi or asgi"),
    ("factory", "on or off"),
    ("app-dir", "a folder"),
    ("pool", "the name of a pool"),
];

impl fmt::Display for MountedApplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.prefix, self.application)?;
        match self.interface {
            Interface::Auto => {}
            other => write!(f, ",interface={}", other.word())?,
        }
        if self.factory {
            f.write_str(",factory=on")?;
        }
        if let Some(folder) = &self.app_dir {
            write!(f, ",app-dir={}", folder.display())?;
        }
        self.pool.as_ref().map_or(Ok(()), |pool| write!(f, ",pool={pool}"))
    }
}

/// A prefix and an application with its parameters.
pub(crate) fn mounted(text: &str) -> Result<MountedApplication, BadValue> {
    let remedy = "write /url=application, for example /api=api.main:app";
    let bad = |why: &str| BadValue::new(format!("'{text}' {why}"), remedy);
    let mut parts = text.split(',');
    let (url, application) =
        parts.next().unwrap_or_default().split_once('=').ok_or_else(|| bad("has no '='"))?;
    let prefix = url_path(url.trim())?;
    if prefix == "/" {
        return Err(BadValue::new(
            format!("'{text}' is mounted at the root"),
            "name it as the application: that is the one of the root",
        ));
    }
    let application = application.trim();
    if application.is_empty() {
        return Err(bad("names no application"));
    }
    let mut mounted = MountedApplication {
        prefix,
        application: application.to_owned(),
        interface: Interface::Auto,
        factory: false,
        app_dir: None,
        pool: None,
    };
    for part in parts {
        let Some((name, value)) = part.trim().split_once('=') else {
            return Err(BadValue::new(
                format!("'{}' is no parameter of a mounted application", part.trim()),
                "write NAME=VALUE behind the comma, such as interface=asgi",
            ));
        };
        mounted.set(name.trim(), value.trim())?;
    }
    Ok(mounted)
}

impl MountedApplication {
    fn set(&mut self, name: &str, value: &str) -> Result<(), BadValue> {
        match (name, value) {
            ("interface", "auto") => self.interface = Interface::Auto,
            ("interface", "wsgi") => self.interface = Interface::Wsgi,
            ("interface", "asgi") => self.interface = Interface::Asgi,
            ("factory", value) if switch(value).is_ok() => self.factory = switch(value).unwrap_or_default(),
            ("app-dir", folder) if !folder.is_empty() => self.app_dir = Some(PathBuf::from(folder)),
            ("pool", name) if !name.is_empty() => self.pool = Some(name.to_owned()),
            _ => return Err(wrong(name, value)),
        }
        Ok(())
    }
}

/// The error about an unknown parameter, or a wrong value of a known one.
fn wrong(name: &str, value: &str) -> BadValue {
    if let Some((_, form)) = PARAMETERS.iter().find(|(known, _)| *known == name) {
        return BadValue::new(
            format!("'{value}' is no value of '{name}'"),
            format!("write {name}= and {form}"),
        );
    }
    let remedy = did_you_mean(
        name,
        PARAMETERS.iter().map(|(name, _)| *name),
        format!("there are {}", PARAMETERS.map(|(name, _)| name).join(", ")),
    );
    BadValue::new(format!("'{name}' is no parameter of a mounted application"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_shown_as_they_are_written() {
        for (text, shown) in [
            ("/api=api:app", "/api=api:app"),
            ("/api/ = api.main:app , interface=asgi", "/api=api.main:app,interface=asgi"),
            ("/b=b.py,factory=true,pool=slow,app-dir=../b", "/b=b.py,factory=on,app-dir=../b,pool=slow"),
            ("/b=b,interface=auto,factory=off", "/b=b"),
        ] {
            assert_eq!(mounted(text).map(|it| it.to_string()), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn wrong_mounts_are_named_with_the_remedy() {
        for (text, wrong) in [
            ("api=api:app", "does not start with '/'"),
            ("/api", "has no '='"),
            ("/api=", "names no application"),
            ("/=api:app", "at the root"),
            ("/api=api:app,interfac=asgi", "did you mean 'interface'?"),
            ("/api=api:app,interface=asg", "write interface= and auto, wsgi or asgi"),
            ("/api=api:app,asgi", "write NAME=VALUE"),
            ("/a//b=api:app", "plain"),
        ] {
            let BadValue { what, remedy } = mounted(text).expect_err(text);
            assert!(format!("{what}; {remedy}").contains(wrong), "{text}: {what}; {remedy}");
        }
    }
}
