//! From the configuration to the server's settings.

use std::sync::Arc;

use maitred_config::validation::CheckedSite;
use maitred_config::value::Spans;
use maitred_config::{
    Checked, Config, HostConfig, Origins, Problem, SiteConfig, acme, development, error_page, filters, http2,
    pools, proxies,
};
use maitred_files::{Now, StaticFiles, StaticSettings};
use maitred_server::{HostSettings, Insight, Log, Routes, Settings, Submissions, Timeouts};

use crate::host::Application;
use crate::languages::{Languages, Named};
use crate::{listeners, otlp};

/// Makes the settings of the server.
///
/// # Errors
/// A folder or a file of users cannot be used.
pub(crate) fn make(
    config: &Config,
    origins: &Origins,
    checked: &Checked,
    applications: Vec<Application>,
    log: &Arc<Log>,
) -> Result<Settings, Problem> {
    let mut submissions = Submissions::default();
    for mount in &config.sendfile {
        let settings = StaticSettings { precompressed: false, ..StaticSettings::default() };
        let files = StaticFiles::open(&mount.folder, settings).map_err(|error| {
            let what = format!("the folder {} cannot be opened: {error}", mount.folder.display());
            Problem::new(origins.describe("sendfile"), what, "allow it or leave it out")
        })?;
        submissions = submissions.with_root(&mount.prefix, files);
    }
    let languages = Languages::of(&applications);
    let mut applications = applications.into_iter();
    let mut sites = Vec::with_capacity(checked.sites.len());
    for ((host, site), checked) in config.sites().zip(&checked.sites) {
        let place = |key: &str| origins.describe_in(host.map(|host| &*host.name), key);
        let own = applications.by_ref().take(checked.programs.len()).collect();
        let routes = routes(config, &site, checked, own, log, &place)?;
        let pages = error_page::read(&site.error_pages).map_err(|bad| bad.at(place("error-page")))?;
        sites.push((host, routes, pages));
    }
    let mut sites = sites.into_iter();
    let (_, routes, pages) = sites.next().unwrap_or_default();
    let mut settings = Settings::new(routes, Arc::clone(log));
    settings.pages = pages;
    settings.hosts = sites
        .filter_map(|(host, routes, pages)| {
            let host = host?;
            Some(HostSettings { name: host.name.as_str().into(), names: host.names.clone(), routes, pages })
        })
        .collect();
    settings.listeners = listeners::settings(checked);
    settings.tls = checked.tls.as_ref().map(|tls| Arc::clone(&tls.terms));
    settings.challenges = acme::is_on(config).then(|| Arc::new(acme::folder(config)) as Arc<_>);
    settings.http2 = http2::settings(config);
    settings.websockets = config.has_websockets.then_some(config.websockets);
    settings.forwarding = proxies::forwarding(&config.trusted_proxies, &config.forwarded_fields);
    settings.health_path = config.health_path.clone();
    settings.metrics_path = config.metrics_path.clone();
    settings.insight = insight(config);
    otlp::apply(config, origins, &checked.environment, &mut settings)?;
    settings.compression = config.compress.then(|| config.compression.clone());
    pools::apply(config, &mut settings);
    let sites: Vec<_> = config.sites().zip(&checked.sites).collect();
    let named = sites.iter().flat_map(|((host, site), checked)| named(*host, site, checked));
    languages.apply(named, &mut settings)?;
    settings.loop_requests = config.loop_requests;
    settings.filters = filters::rules(config, origins)?;
    settings.max_body = config.site.max_body;
    settings.max_head = usize::try_from(config.max_head).unwrap_or(usize::MAX);
    settings.max_field = usize::try_from(config.max_field).unwrap_or(usize::MAX);
    settings.body_memory = config.body_memory;
    settings.body_budget = config.body_budget;
    settings.spool_threads = config.spool_threads;
    settings.spool = config.spool.clone();
    settings.limits = config.limits.clone();
    settings.writer = config.writer;
    settings.submissions = submissions;
    settings.timeouts = Timeouts {
        handshake: config.tls.handshake_timeout,
        head: config.head_timeout,
        body: config.body_timeout,
        keep_alive: config.keep_alive,
        send: config.body_timeout,
        drain_idle: development::drain_idle(config).unwrap_or(Timeouts::default().drain_idle),
    };
    Ok(settings)
}

/// Makes the routes of a host. `applications` belong to its programs, in the same order.
fn routes(
    config: &Config,
    site: &SiteConfig,
    checked: &CheckedSite,
    applications: Vec<Application>,
    log: &Log,
    place: &dyn Fn(&str) -> String,
) -> Result<Routes, Problem> {
    let mut routes = Routes::new();
    let compression = config.compress.then(|| Arc::new(config.compression.clone()));
    for mount in &checked.mounts {
        let (listing, compression) = (site.listing, compression.clone());
        let fallback = mount.fallback.as_ref().map(|file| format!("/{file}").into_bytes());
        let settings =
            StaticSettings { listing, compression, fallback: fallback.clone(), ..StaticSettings::default() };
        let files = StaticFiles::open(&mount.folder, settings).map_err(|error| {
            let what = format!("the folder {} cannot be opened: {error}", mount.folder.display());
            Problem::new(place("static"), what, "allow it or leave it out")
        })?;
        if let Some(file) = fallback.filter(|file| files.file_at(file, Now::default()).is_none()) {
            let (file, folder) = (String::from_utf8_lossy(&file).into_owned(), mount.folder.display());
            let what =
                format!("there is no file {file} in the folder {folder}, which is sent where there is none");
            return Err(Problem::new(place("static"), what, "build the files first, or name another one"));
        }
        if !listing && checked.is_of_application(mount) && files.file_at(b"/", Now::default()).is_none() {
            log.info(format_args!(
                "the folder {} has no index.html, so / is answered with 404; --listing shows what is in it",
                mount.folder.display()
            ));
        }
        routes = routes.with_static(&mount.prefix, files);
    }
    for (program, application) in checked.programs.iter().zip(applications) {
        let Application { handler, description, .. } = application;
        routes = match &*program.prefix {
            "/" => routes.with_root(&description, handler),
            prefix => routes.with_mounted(prefix, &description, handler),
        };
    }
    Ok(routes)
}

/// The applications of a host with the pools that they name. The pool of a virtual host is that of its first application.
fn named<'a>(
    host: Option<&'a HostConfig>,
    site: &'a SiteConfig,
    checked: &'a CheckedSite,
) -> impl Iterator<Item = Named<'a>> {
    let of_host = host.and_then(|host| host.pool.as_deref());
    checked.programs.iter().enumerate().map(move |(place, program)| {
        let mounted = site.mounted.iter().find(|mounted| mounted.prefix == program.prefix);
        let own = mounted.and_then(|mounted| mounted.pool.as_deref());
        Named { application: &program.name, pool: own.or(of_host.filter(|_| place == 0)) }
    })
}

/// Measurements of each request.
pub(crate) fn insight(config: &Config) -> Insight {
    Insight { times: config.spans != Spans::Off, receipt: config.spans == Spans::Kernel, ..config.insight }
}
