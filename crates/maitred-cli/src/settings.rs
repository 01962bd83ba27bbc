//! From the configuration to what the server is told.

use std::sync::Arc;

use maitred_files::{Now, StaticFiles, StaticSettings};
use maitred_server::{Insight, Log, Routes, Settings, Submissions, Timeouts, WriterSettings};

use crate::config::Config;
use crate::host::Application;
use crate::origins::Origins;
use crate::problem::Problem;
use crate::validation::Checked;
use crate::value::Spans;
use crate::{filters, listeners, pools, proxies};

/// All of it.
///
/// # Errors
/// A folder or a file of users cannot be used.
pub(crate) fn make(
    config: &Config,
    origins: &Origins,
    checked: &Checked,
    application: Option<Application>,
    log: &Arc<Log>,
) -> Result<Settings, Problem> {
    let mut routes = Routes::new();
    let compression = config.compress.then(|| Arc::new(config.compression.clone()));
    for mount in &checked.mounts {
        let (listing, compression) = (config.listing, compression.clone());
        let settings = StaticSettings { listing, compression, ..StaticSettings::default() };
        let files = StaticFiles::open(&mount.folder, settings).map_err(|error| {
            let what = format!("the folder {} cannot be opened: {error}", mount.folder.display());
            Problem::new(origins.describe("static"), what, "allow it or leave it out")
        })?;
        if !listing && checked.is_of_application(mount) && files.file_at(b"/", Now::default()).is_none() {
            log.info(format_args!(
                "the folder {} has no index.html, so / is answered with 404; --listing shows what is in it",
                mount.folder.display()
            ));
        }
        routes = routes.with_static(&mount.prefix, files);
    }
    let mut submissions = Submissions::default();
    for mount in &config.sendfile {
        let settings = StaticSettings { precompressed: false, ..StaticSettings::default() };
        let files = StaticFiles::open(&mount.folder, settings).map_err(|error| {
            let what = format!("the folder {} cannot be opened: {error}", mount.folder.display());
            Problem::new(origins.describe("sendfile"), what, "allow it or leave it out")
        })?;
        submissions = submissions.with_root(&mount.prefix, files);
    }
    let mut settings = match application {
        Some(Application { handler, threads, .. }) => {
            Settings { threads, ..Settings::new(routes.with_application(handler), Arc::clone(log)) }
        }
        None => Settings::new(routes, Arc::clone(log)),
    };
    settings.listeners = listeners::settings(config, checked);
    settings.forwarding = proxies::forwarding(&config.trusted_proxies, &config.forwarded_fields);
    settings.health_path = config.health_path.clone();
    settings.metrics_path = config.metrics_path.clone();
    settings.insight = insight(config);
    settings.compression = config.compress.then(|| config.compression.clone());
    pools::apply(config, &mut settings);
    settings.filters = filters::rules(config, origins)?;
    settings.max_body = config.max_body;
    settings.body_memory = config.body_memory;
    settings.body_budget = config.body_budget;
    settings.spool_threads = config.spool_threads;
    settings.spool = config.spool.clone();
    settings.limits = config.limits.settings();
    settings.writer = writer(config);
    settings.submissions = submissions;
    settings.timeouts = Timeouts {
        head: config.head_timeout,
        body: config.body_timeout,
        keep_alive: config.keep_alive,
        send: config.body_timeout,
    };
    Ok(settings)
}

/// What waits for slow readers.
pub(crate) fn writer(config: &Config) -> WriterSettings {
    WriterSettings {
        memory: config.response_memory,
        file: config.response_file,
        budget: config.response_budget,
    }
}

/// What is measured of each request.
pub(crate) fn insight(config: &Config) -> Insight {
    Insight {
        times: config.spans != Spans::Off,
        receipt: config.spans == Spans::Kernel,
        statistics: config.statistics,
        server_timing: config.server_timing,
        ids: config.request_ids,
    }
}
