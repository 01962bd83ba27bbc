//! `memory`: the memory and other resources of each process, as the system counts them, and the engine's own buffers and caches.

use maitred_io::machine;
use maitred_io::process::Usage;
use serde_json::{Value, json};

use super::{Given, QueryContext, Refusal};

/// The query.
pub const MEMORY: &str = "memory";

pub(super) fn memory(asking: &QueryContext<'_>, _: &Given) -> Result<Value, Refusal> {
    let server = asking.server;
    let (buffers, buffers_most) = server.settings().guard().budget.figures();
    let bodies = server.figures().body_memory();
    let (mut responses, mut files) = (0, 0);
    server.connections().each(|_, shown| {
        for (_, delivery) in &shown.deliveries {
            responses += delivery.marks.memory;
            files += delivery.marks.file;
        }
    });
    let folders = server.routing().hosts().all().iter().flat_map(|host| host.routes().folders());
    let cached: u64 = folders.map(|(_, files)| files.statistics().bytes).sum();
    let figures = server.figures().statistics();
    Ok(json!({
        "limit_bytes": machine::memory_limit(),
        "processes": [process_row("server")],
        "engine": [{
            "buffers_bytes": buffers,
            "buffers_most_bytes": buffers_most,
            "bodies_bytes": bodies.held,
            "bodies_most_bytes": bodies.most,
            "responses_bytes": responses,
            "responses_in_files_bytes": files,
            "file_cache_bytes": cached,
            "figures_bytes": figures.bytes,
            "figures_most_bytes": figures.max_bytes,
        }],
    }))
}

/// A row for the calling process, with this name.
pub fn process_row(name: &str) -> Value {
    let Usage { resident, peak, anonymous, swapped, threads, descriptors, processor, switches } =
        Usage::read();
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    json!({
        "process": name,
        "pid": std::process::id(),
        "resident_bytes": resident,
        "peak_bytes": peak,
        "anonymous_bytes": anonymous,
        "swapped_bytes": swapped,
        "threads": threads,
        "descriptors": descriptors,
        "most_descriptors": machine::descriptor_limit(),
        "user_seconds": seconds(processor.0),
        "system_seconds": seconds(processor.1),
        "gave_processor": switches.0,
        "lost_processor": switches.1,
    })
}
