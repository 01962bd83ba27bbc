//! The way of a request that is not made: route, path of the engine, pool.

use maitred_http::RequestHead;
use maitred_match::Shape;

use crate::connection::Group;
use maitred_exchange::destination::asks_for;
use maitred_exchange::hosts::Hosts;
use maitred_exchange::routes::Application;

/// The parts of a server to which requests are led: hosts, routes, paths of the engine, pools.
#[derive(Clone, Copy)]
pub struct Routing<'s>(pub(crate) &'s Group);

impl<'s> Routing<'s> {
    /// The virtual hosts with their routes.
    pub fn hosts(self) -> &'s Hosts {
        &self.0.site.hosts
    }

    /// The name in statistics of the route of this shape, which leads to an application.
    pub fn route_name(self, shape: Shape<'_>) -> String {
        self.0.site.figures.name_of(shape)
    }

    /// The route in statistics of an answer of the engine at a path of the host with this number.
    pub fn engine_route(self, path: &[u8], host: u16) -> Option<String> {
        let site = &self.0.site;
        site.figures.route_of_engine(path, host, &site.hosts).map(|route| route.name.clone())
    }

    /// The engine's own paths, with the options that name them.
    pub fn engine_paths(self) -> [(&'static str, Option<&'s str>); 2] {
        let site = &self.0.site;
        [("health-path", site.health_path.as_deref()), ("metrics-path", site.metrics_path.as_deref())]
    }

    /// The option that names the path of this request, if the engine itself answers it.
    pub fn engine_answers(self, head: &RequestHead) -> Option<&'static str> {
        self.engine_paths().into_iter().find(|(_, path)| asks_for(*path, head)).map(|(option, _)| option)
    }

    /// The number of the pool that runs a request for this application, where the rules lead to `pool`: the event
    /// loop runs requests for its own applications, whatever the rules say, and no others.
    pub fn pool_for(self, application: &Application, pool: usize) -> usize {
        self.0.pool_for(&*application.handler, pool)
    }
}
