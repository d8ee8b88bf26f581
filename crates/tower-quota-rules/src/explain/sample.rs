use core::net::{IpAddr, Ipv4Addr};

use http::Request;
use http::header::HOST;

use tower_quota::explain::SampleContext;

#[cfg(feature = "axum")]
use crate::document::Many;
use crate::document::SampleRequest;
use crate::rules::Rules;

/// The default address of a peer, from the block for documentation (RFC 5737).
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The address of the peer of a sample that has none, in the extensions of the request.
#[derive(Clone, Copy)]
pub(super) struct AssumedPeer(pub(super) IpAddr);

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
        if sample.address.is_none() {
            request.extensions_mut().insert(AssumedPeer(PEER));
        }
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
            let matches = self.document().all_matches().into_iter();
            let routes = matches.flat_map(|matching| Many::of(&matching.route));
            let routes = routes.map(|route| &**route);
            context = context.route_of_path(path, routes);
        }
        let _ = path;
        context
    }
}
