//! Cookies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota::key;
use tower_quota_fuzz::{extract, request};

fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = request("cookie", bytes) {
        assert!(extract(&key::cookie("s"), &request) <= bytes.len());
    }
});
