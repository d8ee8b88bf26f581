//! What extractors make of requests, honest ones and others.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client_ip;
mod credentials;
mod grpc;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "axum")]
mod over_sockets;
mod places;
mod spoofing;
mod totality;

use http::Request;
use tower_quota::RequestHead;
use tower_quota::key::KeyExtractor;

/// The key's bytes; its scope must be the extractor's.
fn read(extractor: &impl KeyExtractor, request: &Request<()>) -> Option<Vec<u8>> {
    let key = extractor.extract(&RequestHead::of(request))?;
    assert_eq!(key.scope(), extractor.scope());
    Some(key.as_bytes().to_vec())
}

/// A key that is one client's.
fn one(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    Some(text.as_ref().to_vec())
}

/// The key of all who contradict themselves, which is that of all who have none.
const NOBODY: Option<Vec<u8>> = Some(Vec::new());

/// A request with these lines in its head.
fn with(lines: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::get("http://example.com/");
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

fn to(uri: &str) -> Request<()> {
    Request::get(uri).body(()).unwrap()
}
