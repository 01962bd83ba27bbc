//! The variables of OpenTelemetry (`OTEL_*`) as settings.
//!
//! Promises: an empty variable is as none; a wrong one is an error that names it. The variables are shared with the application, whose
//! SDK may know more of them: those of other exporters only turn a signal off.
//!
//! Leaves out: reading the process's environment and files.

use std::time::Duration;

use maitred_http::target::percent_decode;

use crate::encoding::{Format, Limits, Signal};
use crate::sampler::Sampler;

/// The endpoint without any variable or option.
pub const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

/// The settings of all signals.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`; `service.name` is always there.
    pub resource: Vec<(String, String)>,
    /// `OTEL_TRACES_SAMPLER`.
    pub sampler: Sampler,
    /// `OTEL_ATTRIBUTE_*_LIMIT`, `OTEL_SPAN_*_LIMIT`.
    pub limits: Limits,
    /// The way of spans; none if `OTEL_TRACES_EXPORTER` says so.
    pub traces: Option<Endpoint>,
    /// The way of metrics.
    pub metrics: Option<Endpoint>,
    /// The way of log records.
    pub logs: Option<Endpoint>,
    /// `OTEL_METRIC_EXPORT_INTERVAL`.
    pub metric_interval: Duration,
    /// `OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION` is `base2_exponential_bucket_histogram`.
    pub exponential: bool,
}

/// The way of one signal's items.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// The whole URL of posts.
    pub url: String,
    /// `http/protobuf` or `http/json`.
    pub format: Format,
    /// Fields of each post, such as those with credentials.
    pub headers: Vec<(String, String)>,
    /// The time limit of a post.
    pub timeout: Duration,
    /// Posts are compressed.
    pub gzip: bool,
    /// A file with the authorities that the collector's certificate may come from.
    pub certificate: Option<String>,
    /// A file with the certificate for the collector, and one with its key.
    pub client: Option<(String, String)>,
    /// An item waits so long for others.
    pub delay: Duration,
    /// Items of a batch.
    pub batch: usize,
    /// Items that wait.
    pub queue: usize,
}

impl Environment {
    /// Reads the variables by `variable`; none where `OTEL_SDK_DISABLED` says so. `base` is the URL of an option, which is stronger than
    /// the endpoints of variables. Variables of other signals than the `wanted` ones may be wrong.
    ///
    /// # Errors
    /// A sentence that names the first wrong variable.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
        base: Option<&str>,
        wanted: &[Signal],
    ) -> Result<Option<Self>, String> {
        let of = Variables(&|name| {
            variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        });
        if of.text("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let endpoint = |signal: Signal| match wanted.contains(&signal) {
            true => of.endpoint(signal, base),
            false => Ok(None),
        };
        let (traces, metrics) = (endpoint(Signal::Traces)?, endpoint(Signal::Metrics)?);
        let sampler = match of.text("OTEL_TRACES_SAMPLER").filter(|_| traces.is_some()) {
            Some(name) => Sampler::parse(&name, of.text("OTEL_TRACES_SAMPLER_ARG").as_deref())?,
            None => Sampler::default(),
        };
        let (metric_interval, exponential) = match metrics {
            Some(_) => (of.millis("OTEL_METRIC_EXPORT_INTERVAL", 60_000)?, of.is_exponential()?),
            None => (Duration::from_secs(60), false),
        };
        Ok(Some(Self {
            resource: of.resource()?,
            sampler,
            limits: of.limits()?,
            traces,
            metrics,
            logs: endpoint(Signal::Logs)?,
            metric_interval,
            exponential,
        }))
    }
}

struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }

    /// `OTEL_EXPORTER_OTLP_TRACES_NAME`, else `OTEL_EXPORTER_OTLP_NAME`: its name and value.
    fn otlp(&self, signal: Signal, name: &str) -> Option<(String, String)> {
        let upper = signal.name().to_uppercase();
        let names = [format!("OTEL_EXPORTER_OTLP_{upper}_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
        names.into_iter().find_map(|name| self.text(&name).map(|value| (name, value)))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse::<u64>().map_err(|_| format!("{name}: {text:?} is no whole number"))?;
        Ok(Some(number))
    }

    fn millis(&self, name: &str, default: u64) -> Result<Duration, String> {
        match self.number(name)? {
            Some(0) => Err(format!("{name}: 0 is too short; say milliseconds")),
            millis => Ok(Duration::from_millis(millis.unwrap_or(default))),
        }
    }

    fn count(&self, name: &str, default: usize) -> Result<usize, String> {
        match self.number(name)? {
            Some(0) => Err(format!("{name}: 0 is too few")),
            count => Ok(count.map_or(default, |count| usize::try_from(count).unwrap_or(usize::MAX))),
        }
    }

    fn limits(&self) -> Result<Limits, String> {
        let limit = |names: [&str; 2], default| {
            let own = self.number(names[0])?;
            let number = if own.is_some() { own } else { self.number(names[1])? };
            Ok::<_, String>(number.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX)))
        };
        let default = Limits::default();
        Ok(Limits {
            attributes: limit(
                ["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"],
                default.attributes,
            )?,
            text: limit(
                ["OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"],
                default.text,
            )?,
            events: limit(["OTEL_SPAN_EVENT_COUNT_LIMIT", ""], default.events)?,
            links: limit(["OTEL_SPAN_LINK_COUNT_LIMIT", ""], default.links)?,
        })
    }

    /// `OTEL_SERVICE_NAME` is stronger than `service.name` of the attributes.
    fn resource(&self) -> Result<Vec<(String, String)>, String> {
        const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
        let text = self.text(NAME).unwrap_or_default();
        let mut resource = pairs(NAME, &text)?;
        if let Some(name) = self.text("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.insert(0, ("service.name".to_owned(), name));
        }
        if resource.iter().all(|(key, _)| key != "service.name") {
            resource.insert(0, ("service.name".to_owned(), "unknown_service:maitred".to_owned()));
        }
        Ok(resource)
    }

    fn is_exponential(&self) -> Result<bool, String> {
        const NAME: &str = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION";
        match self.text(NAME).as_deref() {
            None | Some("explicit_bucket_histogram") => Ok(false),
            Some("base2_exponential_bucket_histogram") => Ok(true),
            Some(other) => Err(format!(
                "{NAME}: {other:?} is unknown; say explicit_bucket_histogram or base2_exponential_bucket_histogram"
            )),
        }
    }

    fn endpoint(&self, signal: Signal, base: Option<&str>) -> Result<Option<Endpoint>, String> {
        let exporter = format!("OTEL_{}_EXPORTER", signal.name().to_uppercase());
        let exporter = self.text(&exporter).unwrap_or_else(|| "otlp".to_owned());
        if exporter.split(',').all(|name| name.trim() != "otlp") {
            return Ok(None);
        }
        // Log records have names and a default of their own. A reading of metrics is sent at once, and wants room for all of it.
        let (delay, batch, queue) = match signal {
            Signal::Traces => self.waiting("BSP", 5000)?,
            Signal::Metrics => (Duration::from_secs(5), 512, 2048),
            Signal::Logs => self.waiting("BLRP", 1000)?,
        };
        Ok(Some(Endpoint {
            url: self.url(signal, base)?,
            format: self.format(signal, base.is_some())?,
            headers: self.headers(signal, base.is_some())?,
            timeout: match self.otlp(signal, "TIMEOUT") {
                Some((name, _)) => self.millis(&name, 0)?,
                None => Duration::from_secs(10),
            },
            gzip: match self.otlp(signal, "COMPRESSION").as_ref().map(|(name, text)| (name, text.as_str())) {
                None | Some((_, "none")) => false,
                Some((_, "gzip")) => true,
                Some((name, other)) => return Err(format!("{name}: {other:?} is unknown; say gzip or none")),
            },
            certificate: self.otlp(signal, "CERTIFICATE").map(|(_, file)| file),
            client: self.client(signal)?,
            delay,
            batch,
            queue,
        }))
    }

    /// The longest wait for others, the items of a batch, and those that wait.
    fn waiting(&self, processor: &str, delay: u64) -> Result<(Duration, usize, usize), String> {
        let queue = self.count(&format!("OTEL_{processor}_MAX_QUEUE_SIZE"), 2048)?;
        let batch = self.count(&format!("OTEL_{processor}_MAX_EXPORT_BATCH_SIZE"), 512)?.min(queue);
        Ok((self.millis(&format!("OTEL_{processor}_SCHEDULE_DELAY"), delay)?, batch, queue))
    }

    /// The fields of a signal. Those of all signals may be the key of the endpoint in the variables, so they go to no other one.
    fn headers(&self, signal: Signal, is_ours: bool) -> Result<Vec<(String, String)>, String> {
        let is_elsewhere = is_ours && self.otlp(signal, "ENDPOINT").is_some();
        let found = self.otlp(signal, "HEADERS");
        match found.filter(|(name, _)| !is_elsewhere || name != "OTEL_EXPORTER_OTLP_HEADERS") {
            Some((name, text)) => headers(&name, &text),
            None => Ok(Vec::new()),
        }
    }

    /// The URL of a signal's variable is used as it is; to the others its path is appended.
    fn url(&self, signal: Signal, base: Option<&str>) -> Result<String, String> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.name().to_uppercase());
        let (name, url) = match (base, self.otlp(signal, "ENDPOINT")) {
            (Some(base), _) => ("otlp".to_owned(), base.to_owned()),
            (None, Some(found)) => found,
            (None, None) => return Ok(format!("{DEFAULT_ENDPOINT}/v1/{}", signal.name())),
        };
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        if authority.is_empty() || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("{name}: {url:?} is no URL; say http://HOST:4318 or https://HOST:4318"));
        }
        Ok(if name == own { url } else { format!("{}/v1/{}", url.trim_end_matches('/'), signal.name()) })
    }

    fn format(&self, signal: Signal, is_ours: bool) -> Result<Format, String> {
        match self.otlp(signal, "PROTOCOL").as_ref().map(|(name, text)| (name, text.as_str())) {
            None | Some((_, "http/protobuf")) => Ok(Format::Protobuf),
            Some((_, "http/json")) => Ok(Format::Json),
            // The variable is that of the application, which has another endpoint.
            Some((_, "grpc")) if is_ours => Ok(Format::Protobuf),
            Some((name, "grpc")) => Err(format!(
                "{name}: maitred does not speak grpc; say http/protobuf with the port for that (mostly 4318 instead of 4317), or \
                    give maitred a URL of its own by --otlp=URL if the application needs grpc"
            )),
            Some((name, other)) => {
                Err(format!("{name}: {other:?} is unknown; say http/protobuf or http/json"))
            }
        }
    }

    fn client(&self, signal: Signal) -> Result<Option<(String, String)>, String> {
        match (self.otlp(signal, "CLIENT_CERTIFICATE"), self.otlp(signal, "CLIENT_KEY")) {
            (None, None) => Ok(None),
            (Some((_, certificate)), Some((_, key))) => Ok(Some((certificate, key))),
            (Some((name, _)), None) => {
                Err(format!("{name}: its key is missing; say it by OTEL_EXPORTER_OTLP_CLIENT_KEY"))
            }
            (None, Some((name, _))) => Err(format!(
                "{name}: the certificate is missing; say it by OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"
            )),
        }
    }
}

/// `key=value,key=value`, percent-encoded.
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| format!("{name}: {pair:?} is not KEY=VALUE"))?;
        pairs.push((decoded(name, key)?, decoded(name, value)?));
    }
    Ok(pairs)
}

fn decoded(name: &str, text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    percent_decode(text.as_bytes(), &mut bytes);
    String::from_utf8(bytes).map_err(|_| format!("{name}: {text:?} is not UTF-8 behind its percent signs"))
}

fn headers(name: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let headers = pairs(name, text)?;
    for (key, value) in &headers {
        let is_token =
            key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        if !is_token || !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(format!("{name}: {key:?} and its value are no field of HTTP"));
        }
    }
    Ok(headers)
}
