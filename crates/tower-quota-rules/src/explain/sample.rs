use core::net::{IpAddr, Ipv4Addr};

use http::Request;
use http::header::HOST;

use tower_quota::explain::SampleContext;

use crate::document::SampleRequest;
#[cfg(feature = "axum")]
use crate::document::{Document, Match};
use crate::rules::Rules;

/// The default address of a peer, from the block for documentation (RFC 5737).
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

impl Rules {
    /// Returns a sample as a request without a body, for explanations.
    ///
    /// # Errors
    /// Returns the error of an invalid path or value.
    pub fn request(&self, sample: &SampleRequest) -> Result<Request<()>, http::Error> {
        let mut request = Request::builder();
        if let Some(method) = &sample.method {
            request = request.method(method.as_str());
        }
        request = request.uri(sample.path.as_deref().unwrap_or("/"));
        if let Some(host) = &sample.host {
            request = request.header(HOST, &**host);
        }
        for (name, values) in &sample.headers {
            for value in &values.0 {
                request = request.header(name.as_str(), &**value);
            }
        }
        let mut request = request.extension(sample.address.unwrap_or(PEER)).body(())?;
        let context = self.context(sample, request.uri().path());
        request.extensions_mut().insert(context);
        Ok(request)
    }

    fn context(&self, sample: &SampleRequest, path: &str) -> SampleContext {
        let mut context = SampleContext::default();
        for (name, text) in &sample.keys {
            context = context.key(name, text);
        }
        if let Some(route) = &sample.route {
            return context.route(&**route);
        }
        #[cfg(feature = "axum")]
        {
            context = context.route_of_path(path, routes(self.document()));
        }
        let _ = path;
        context
    }
}

#[cfg(feature = "axum")]
fn routes(document: &Document) -> Vec<&str> {
    let limits = document.all_limits();
    let conditions = limits.flat_map(|limit| limit.when.iter().chain(&limit.unless));
    let mut matches: Vec<&Match> = conditions.flat_map(|many| &many.0).collect();
    matches.extend(document.routes.iter().map(|route| &route.matching));
    matches.extend(document.lists().iter().flat_map(|(_, list)| *list));
    let mut routes = Vec::new();
    while let Some(matching) = matches.pop() {
        routes.extend(matching.route.iter().flat_map(|many| &many.0));
        matches.extend(matching.not.iter().flat_map(|many| &many.0));
    }
    routes.into_iter().map(|route| &**route).collect()
}
