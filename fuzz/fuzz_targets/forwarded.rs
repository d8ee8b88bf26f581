//! Forwarded (RFC 7239).
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota::key::Source;
use tower_quota_fuzz::{assert_proxy_decides, clients, request};

fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = request("forwarded", bytes) {
        let _ = clients(&Source::Forwarded, &request);
    }
    assert_proxy_decides(
        &Source::Forwarded,
        "forwarded",
        bytes,
        "for=\"[2001:db8::7]:1\"",
        "2001:db8::7",
    );
});
