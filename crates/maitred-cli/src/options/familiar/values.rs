//! Values as other servers write them.

use std::net::Ipv6Addr;

use crate::value::BadValue;

/// Host and port of other servers when none is given, and ours.
pub(crate) const ADDRESS: (&str, &str) = ("127.0.0.1", "8000");

/// `HOST:PORT`, `HOST` or `unix:PATH`.
pub(super) fn bind(text: &str) -> Result<String, BadValue> {
    if text.starts_with("fd://") {
        return Err(BadValue::new(
            format!("'{text}' is a descriptor of who starts the server"),
            "let a service manager pass the socket: --listen systemd",
        ));
    }
    let is_host = text.parse::<Ipv6Addr>().is_ok() || !text.contains(':') || text.ends_with(']');
    if !is_host || text.is_empty() {
        return Ok(text.to_owned());
    }
    Ok(address(text, ADDRESS.1))
}

pub(super) fn insecure_bind(text: &str) -> Result<String, BadValue> {
    bind(text).map(|text| format!("http://{text}"))
}

/// One address; an IPv6 address gets its brackets.
pub(crate) fn address(host: &str, port: &str) -> String {
    let host =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    format!("{host}:{port}")
}

/// A value of Python's `ssl` module.
pub(super) fn cert_reqs(text: &str) -> Result<String, BadValue> {
    Ok(match text {
        "0" | "CERT_NONE" => "none",
        "1" | "CERT_OPTIONAL" => "optional",
        "2" | "CERT_REQUIRED" => "required",
        _ => {
            let what = format!("'{text}' is none of 0, 1 and 2");
            return Err(BadValue::new(what, "write --tls-client-auth none, optional or required"));
        }
    }
    .to_owned())
}

pub(super) fn tls_version(text: &str) -> Result<String, BadValue> {
    Ok(text.strip_prefix("tls").unwrap_or(text).to_owned())
}

/// Seconds, or a number with s, m, h or d.
pub(super) fn duration(text: &str) -> Result<String, BadValue> {
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let Some((unit, factor)) = units.into_iter().find(|(unit, _)| text.ends_with(*unit)) else {
        return Ok(text.to_owned());
    };
    let number = text.trim_end_matches(unit).parse::<u64>().ok();
    number.and_then(|number| number.checked_mul(factor)).map(|seconds| seconds.to_string()).ok_or_else(|| {
        BadValue::new(format!("'{text}' is no time"), "write seconds, or a number with s, m, h or d")
    })
}

pub(super) fn milliseconds(text: &str) -> Result<String, BadValue> {
    let number = text.parse::<u32>().map(|number| (f64::from(number) / 1000.0).to_string());
    number.map_err(|_| {
        BadValue::new(format!("'{text}' is no number of milliseconds"), "write --head-timeout SECONDS")
    })
}

/// What Python's tools take for a switch with a value.
pub(super) fn boolean(text: &str) -> Result<String, BadValue> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => "true".to_owned(),
        "false" | "f" | "no" | "n" | "off" | "0" => "false".to_owned(),
        _ => text.to_owned(),
    })
}

/// A file that has the name of a place of ours is one all the same.
fn file(text: &str) -> String {
    let is_place = ["off", "auto", "stdout", "stderr", "syslog", "logging"].contains(&text)
        || text.starts_with("syslog:");
    if is_place { format!("./{text}") } else { text.to_owned() }
}

pub(super) fn access_file(text: &str) -> Result<String, BadValue> {
    Ok(file(text))
}

pub(super) fn error_file(text: &str) -> Result<String, BadValue> {
    Ok(if text == "-" { "stderr".to_owned() } else { file(text) })
}

/// Versions of granian, and parsers of uvicorn.
pub(super) fn http(text: &str) -> Result<(&'static str, String), BadValue> {
    match text {
        "auto" => Ok("on"),
        "1" => Ok("off"),
        "2" => Ok("only"),
        "h11" | "httptools" | "zttp" => {
            Err(BadValue::new(format!("'{text}' is a parser, and maitred has its own"), "leave it out"))
        }
        _ => {
            Err(BadValue::new(format!("'{text}' is none of auto, 1 and 2"), "write --http2 on, off or only"))
        }
    }
    .map(|value| ("http2", value.to_owned()))
}

/// Classes of gunicorn and hypercorn.
pub(super) fn worker_class(text: &str) -> Result<(&'static str, String), BadValue> {
    let threads = "leave it out: a WSGI application has threads here, --threads N at most, and an ASGI application an event loop";
    match text {
        "gthread" => Ok(("interface", "wsgi")),
        "asgi" | "uvicorn.workers.UvicornWorker" | "uvicorn_worker.UvicornWorker" => {
            Ok(("interface", "asgi"))
        }
        "asyncio" => Ok(("loop", "asyncio")),
        "uvloop" => Ok(("loop", "uvloop")),
        "sync" => Err(BadValue::new(
            "'sync' is a worker with one request at a time",
            "write --threads 1 for that, or leave it out for threads",
        )),
        "trio" => Err(BadValue::new("'trio' is no event loop of asyncio", "use an application for asyncio")),
        _ => Err(BadValue::new(format!("there are no workers of the class '{text}'"), threads)),
    }
    .map(|(option, value)| (option, value.to_owned()))
}

/// Values of options that have the same name there and here: what they are called here.
pub(crate) fn own_value(option: &str, text: &str) -> Result<Option<&'static str>, BadValue> {
    Ok(Some(match (option, text) {
        ("log-level", "critical") => "error",
        ("log-level", "warning") => "warn",
        ("log-level", "trace" | "notset") => "debug",
        ("interface", "asgi3") => "asgi",
        ("interface", "asgi2") => {
            return Err(BadValue::new("'asgi2' is an application that is called twice", "use one of ASGI 3"));
        }
        ("interface", "asginl") => {
            return Err(BadValue::new(
                "'asginl' is ASGI without lifespan",
                "write --interface asgi --lifespan off",
            ));
        }
        ("interface", "rsgi") => {
            return Err(BadValue::new("'rsgi' is granian's own", "use the application as ASGI or WSGI"));
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_what_is_missing() {
        for (text, address) in [
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("0.0.0.0", "0.0.0.0:8000"),
            ("localhost", "localhost:8000"),
            (":80", ":80"),
            ("[::1]:80", "[::1]:80"),
            ("[::1]", "[::1]:8000"),
            ("::1", "[::1]:8000"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
        ] {
            assert_eq!(bind(text).as_deref(), Ok(address), "{text}");
        }
        assert!(bind("fd://3").is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("30").as_deref(), Ok("30"));
        assert_eq!(duration("2m").as_deref(), Ok("120"));
        assert!(duration("soonm").is_err());
        assert_eq!(milliseconds("1500").as_deref(), Ok("1.5"));
    }

    #[test]
    fn a_file_is_never_taken_for_a_place() {
        assert_eq!(access_file("off").as_deref(), Ok("./off"));
        assert_eq!(access_file("-").as_deref(), Ok("-"));
        assert_eq!(error_file("-").as_deref(), Ok("stderr"));
        assert_eq!(error_file("syslog:x").as_deref(), Ok("./syslog:x"));
    }
}
