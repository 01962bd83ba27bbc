//! HTTP/2: the counters of its connections.

use serde_json::{Map, Value};

use super::{Given, QueryContext, Refusal};

pub(super) fn http2(asking: &QueryContext<'_>, _: &Given) -> Result<Value, Refusal> {
    let plain = |series: &str| series.replacen("maitred_http2_", "", 1).replacen("_total", "", 1);
    // Those of several workers are added up by these names.
    let counts = asking.server.figures().http2();
    let counts: Map<String, Value> =
        counts.iter().map(|(series, count)| (plain(series), (*count).into())).collect();
    Ok(counts.into())
}
