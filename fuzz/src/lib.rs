//! Helpers of the fuzz targets: requests made of a fuzzer's bytes, and an assertion for parsers of addresses.

use std::net::IpAddr;

use http::header::{HeaderName, HeaderValue};
use http::{Request, Version};
use tower_quota::RequestHead;
use tower_quota::key::{self, KeyExtractor, Proxies, Source};

/// The peer of every request: a trusted proxy.
pub const PEER: &str = "10.0.0.1";

/// Returns a request with a header: one line of it for each line of `bytes`. `None` if a line cannot be sent.
#[must_use]
pub fn request(name: &'static str, bytes: &[u8]) -> Option<Request<()>> {
    let mut request = Request::new(());
    *request.version_mut() = Version::HTTP_2;
    request
        .extensions_mut()
        .insert(PEER.parse::<IpAddr>().ok()?);
    for line in bytes.split(|byte| *byte == b'\n') {
        let value = HeaderValue::from_bytes(line).ok()?;
        request
            .headers_mut()
            .append(HeaderName::from_static(name), value);
    }
    Some(request)
}

/// Extracts a key, and returns its length in bytes; 0 if there is none.
pub fn extract(extractor: &impl KeyExtractor, request: &Request<()>) -> usize {
    extractor
        .extract(&RequestHead::of(request))
        .map_or(0, |key| key.as_bytes().len())
}

/// Returns the client's address by trusted networks, and by a number of hops.
///
/// # Panics
/// When there is no address.
#[must_use]
pub fn clients(source: &Source, request: &Request<()>) -> [IpAddr; 2] {
    [
        Proxies::networks(["10.0.0.0/8", "fd00::/8"]),
        Proxies::hops(2),
    ]
    .map(|proxies| {
        let client = key::client_ip().behind(proxies, source.clone());
        client
            .address(&RequestHead::of(request))
            .expect("the peer is known")
    })
}

/// Asserts that the address which the trusted proxy appends is the client's, despite a forged header.
///
/// # Panics
/// When another address is taken for the client's.
pub fn assert_proxy_decides(
    source: &Source,
    name: &'static str,
    forged: &[u8],
    appended: &str,
    client: &str,
) {
    let joined = [forged, b", ", appended.as_bytes()].concat();
    if let Some(request) = request(name, &joined) {
        assert_eq!(
            clients(source, &request)[0],
            client.parse::<IpAddr>().expect("an address")
        );
    }
}
