//! Basic credentials.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota::key;
use tower_quota_fuzz::{extract, request};

fuzz_target!(|bytes: &[u8]| {
    let line = [b"Basic ", bytes].concat();
    if let Some(request) = request("authorization", &line) {
        assert!(extract(&key::basic_user(), &request) <= bytes.len());
    }
});
