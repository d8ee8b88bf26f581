//! Queries and paths.
#![no_main]

use http::{Request, Uri};
use libfuzzer_sys::fuzz_target;
use tower_quota::key;
use tower_quota_fuzz::extract;

fuzz_target!(|bytes: &[u8]| {
    let Ok(uri) = Uri::try_from(bytes) else {
        return;
    };
    let mut request = Request::new(());
    *request.uri_mut() = uri;
    // A byte that is no text is written as the three of the replacement character.
    assert!(extract(&key::query("k"), &request) <= 3 * bytes.len());
    // Without a path, http makes it `/`.
    assert!(extract(&key::path(), &request) <= bytes.len().max(1));
    assert!(extract(&key::path_segment(1), &request) <= bytes.len());
    assert!(extract(&key::host(), &request) <= bytes.len());
});
