//! The services and methods of gRPC requests, and their binary metadata.
#![no_main]

use http::Uri;
use libfuzzer_sys::fuzz_target;
use tower_quota::key;
use tower_quota_fuzz::{extract, request};

fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = request("x-id-bin", bytes) {
        assert!(extract(&key::metadata("x-id-bin"), &request) <= bytes.len());
    }
    let (Ok(uri), Some(mut request)) = (Uri::try_from(bytes), request("te", b"trailers")) else {
        return;
    };
    *request.uri_mut() = uri;
    assert!(
        extract(&key::grpc_service(), &request)
            <= extract(&key::grpc_method(), &request).max(bytes.len())
    );
});
