//! X-Forwarded-For.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota::key::Source;
use tower_quota_fuzz::{assert_proxy_decides, clients, request};

fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = request("x-forwarded-for", bytes) {
        let _ = clients(&Source::XForwardedFor, &request);
    }
    assert_proxy_decides(
        &Source::XForwardedFor,
        "x-forwarded-for",
        bytes,
        "192.0.2.7",
        "192.0.2.7",
    );
});
