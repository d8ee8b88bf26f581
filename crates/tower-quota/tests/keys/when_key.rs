//! Conditions on keys.

use http::Request;
use tower_quota::{key, when};

use crate::holds;

#[test]
fn key_is_listed_exactly() {
    let listed = when::key_in(key::header("x-api-key"), ["ann", "bob", ""]);
    let of = |keys: &[&str]| {
        holds(
            &listed,
            keys.iter().fold(Request::get("/"), |request, key| {
                request.header("x-api-key", *key)
            }),
        )
    };
    assert!(of(&["ann"]) && of(&["bob"]) && of(&["bob", "bob"]));
    assert!(!of(&["Ann"]) && !of(&["eve"]) && !of(&["anna"]));
    assert!(!of(&[]), "a missing key");
    assert!(!of(&[""]), "an empty one");
    // Called directly, an unsure condition does not match.
    assert!(!of(&["ann", "eve"]), "a conflicting one");
}
