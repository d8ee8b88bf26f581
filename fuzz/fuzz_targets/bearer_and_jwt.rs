//! Bearer tokens, and JSON web tokens in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota::key::{self, JwtKey};
use tower_quota_fuzz::{extract, request};

fuzz_target!(|bytes: &[u8]| {
    let line = [b"Bearer ", bytes].concat();
    let Some(request) = request("authorization", &line) else {
        return;
    };
    assert!(extract(&key::bearer(), &request) <= bytes.len());
    let _ = extract(&key::unverified_jwt_claim("sub"), &request);
    // A valid signature by chance is impossible: no claim may be returned.
    let key = JwtKey::hmac(b"a secret of thirty-two bytes ...").expect("a key");
    assert_eq!(extract(&key::jwt_claim("sub", key), &request), 0);
});
