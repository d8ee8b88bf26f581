//! Requests made of samples.

use core::net::{IpAddr, Ipv4Addr};

use http::Request;
use http::header::HOST;

use crate::document::SampleRequest;

/// The address of the peer of samples that give none, from the block for documentation (RFC 5737).
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

impl SampleRequest {
    /// Returns the request, without a body.
    ///
    /// # Errors
    /// The error of a path or a value that no request can have.
    pub fn to_request(&self) -> Result<Request<()>, http::Error> {
        let mut request = Request::builder();
        if let Some(method) = &self.method {
            request = request.method(method.as_str());
        }
        request = request.uri(self.path.as_deref().unwrap_or("/"));
        if let Some(host) = &self.host {
            request = request.header(HOST, &**host);
        }
        for (name, values) in &self.headers {
            for value in &values.0 {
                request = request.header(name.as_str(), &**value);
            }
        }
        request.extension(self.address.unwrap_or(PEER)).body(())
    }
}
