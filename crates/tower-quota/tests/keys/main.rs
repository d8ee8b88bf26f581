//! Keys and conditions of valid and hostile requests.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod authorization;
mod client_ip;
mod combined;
mod custom;
mod grpc;
mod head;
mod header;
#[cfg(feature = "jwt")]
mod jwt;
mod scopes;
#[cfg(feature = "axum")]
mod sockets;
mod spoofing;
mod text;
mod totality;
mod uri;
mod when_address;
mod when_http;
mod when_key;

use http::Request;
use tower_quota::RequestHead;
use tower_quota::key::KeyExtractor;
use tower_quota::when::Condition;

/// Returns the key's bytes, and asserts that its scope is the extractor's.
fn read(extractor: &impl KeyExtractor, request: &Request<()>) -> Option<Vec<u8>> {
    let key = extractor.extract(&RequestHead::of(request))?;
    assert_eq!(key.scope(), extractor.scope());
    Some(key.as_bytes().to_vec())
}

/// Returns the bytes of one client's key.
fn one(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    Some(text.as_ref().to_vec())
}

/// The key of requests with conflicting values, which share one counter.
const SHARED: Option<Vec<u8>> = Some(Vec::new());

/// Returns a request with these header lines.
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

fn holds(condition: &dyn Condition, request: http::request::Builder) -> bool {
    condition(&RequestHead::of(&request.body(()).unwrap()))
}
