//! Conditions on hosts and paths, and costs by `content-length`.
#![no_main]

use http::{HeaderValue, Uri};
use libfuzzer_sys::fuzz_target;
use tower_quota::{RequestHead, cost, when};
use tower_quota_fuzz::request;

fuzz_target!(|bytes: &[u8]| {
    if let Some(mut request) = request("host", bytes) {
        if let Ok(number) = HeaderValue::from_bytes(bytes) {
            request.headers_mut().insert("content-length", number);
        }
        let head = RequestHead::of(&request);
        let [under, itself] =
            ["*.example.com", "example.com"].map(|pattern| when::host(pattern)(&head));
        assert!(!(under && itself), "a name is not under itself");
        assert!(cost::body_size(1_000, 7)(&head) >= 1);
    }
    let (Ok(uri), Some(mut request)) = (Uri::try_from(bytes), request("te", b"")) else {
        return;
    };
    *request.uri_mut() = uri;
    let head = RequestHead::of(&request);
    let [one, rest] = ["/a/{one}", "/a/{*rest}"].map(|pattern| when::path(pattern)(&head));
    assert!(!one || rest, "one segment is a rest too");
});
