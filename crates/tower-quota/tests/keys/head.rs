//! The head of a request.

use http::Request;
use tower_quota::{Name, RequestHead, key};

use crate::with;

#[test]
fn head_shows_no_secret() {
    let mut request = Request::get("/path?token=secret")
        .header("authorization", "secret")
        .body(())
        .unwrap();
    request.extensions_mut().insert(Name::new("secret"));
    assert_eq!(
        format!("{:?}", RequestHead::of(&request)),
        "RequestHead(GET /path)"
    );
}

#[test]
fn head_is_read_from_request_or_parts() {
    let mut request = with(&[("x-api-key", "ann")]);
    let mutable = &mut request;
    assert_eq!(RequestHead::of(mutable).headers()["x-api-key"], "ann");
    // The request can still be changed, because the head only borrowed it.
    mutable
        .headers_mut()
        .insert("x-api-key", "bob".parse().unwrap());
    let (mut parts, ()) = request.into_parts();
    let parts = &mut parts;
    let by_key = |head: RequestHead<'_>| {
        key::KeyExtractor::extract(&key::header("x-api-key"), &head).is_some()
    };
    assert!(by_key(RequestHead::from_parts(parts)));
    parts.headers.clear();
    assert!(!by_key(RequestHead::from_parts(parts)));
}
