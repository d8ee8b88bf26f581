//! Headers and cookies.

use http::{HeaderValue, Request};
use tower_quota::key::{self, KeyExtractor};

use crate::{SHARED, one, read, with};

#[test]
fn only_header_name_ignores_case() {
    let by = key::header("X-API-Key");
    assert_eq!(by.scope(), key::header("x-api-key").scope());
    assert_eq!(read(&by, &with(&[("x-api-key", "Ann")])), one("Ann"));
    assert_eq!(read(&by, &with(&[("X-Api-Key", "ann")])), one("ann"));
}

#[test]
fn header_absent_or_empty_is_missing() {
    let by = key::header("x-api-key");
    assert_eq!(read(&by, &with(&[])), None);
    assert_eq!(read(&by, &with(&[("x-api-key", "")])), None);
    assert_eq!(
        read(&by, &with(&[("x-api-key", "ann"), ("x-api-key", "ann")])),
        one("ann")
    );
    assert_eq!(
        read(&by, &with(&[("x-api-key", "ann"), ("x-api-key", "bob")])),
        SHARED
    );
}

#[test]
fn whitespace_around_header_is_ignored() {
    let by = key::header("x-api-key");
    for value in ["ann ", " ann", "\tann", " \tann\t ", "ann"] {
        assert_eq!(
            read(&by, &with(&[("x-api-key", value)])),
            one("ann"),
            "{value:?}"
        );
        assert_eq!(
            read(&by, &with(&[("x-api-key", "ann"), ("x-api-key", value)])),
            one("ann"),
            "{value:?}"
        );
    }
    for value in [" ", "\t", " \t "] {
        assert_eq!(read(&by, &with(&[("x-api-key", value)])), None, "{value:?}");
    }
    assert_eq!(read(&by, &with(&[("x-api-key", " a nn ")])), one("a nn"));
}

#[test]
fn header_value_may_be_no_text() {
    let mut request = Request::new(());
    request
        .headers_mut()
        .insert("k", HeaderValue::from_bytes(b"\xff\xfe").unwrap());
    assert_eq!(read(&key::header("k"), &request), one(b"\xff\xfe"));
}

#[test]
fn header_with_invalid_name_is_refused() {
    assert!(key::try_header("two words").is_err());
    assert!(key::try_header("").is_err());
}

#[test]
#[should_panic(expected = "\"two words\" cannot be the name of a header")]
fn header_with_invalid_name_panics_with_reason() {
    let _ = key::header("two words");
}

#[test]
fn cookie_pairs_are_read_in_any_spelling() {
    let cases = [
        (&["session=abc"] as &[&str], one("abc")),
        (&["theme=dark; session=abc; lang=de"], one("abc")),
        (&["theme=dark", "session=abc"], one("abc")),
        (&["theme=dark;session = abc "], one("abc")),
        (&["session=\"abc\""], one("abc")),
        (&["session=%61bc"], one("abc")),
        (&["%73ession=abc"], one("abc")),
        (&["session=a=b"], one("a=b")),
        (&["session=abc; session=abc"], one("abc")),
        (&["session=abc; session=abd"], SHARED),
        (&["session=abc", "session=abd"], SHARED),
        (&["session=abc; %73ession=abd"], SHARED),
        (&["Session=abc"], None),
        (&["xsession=abc; session2=abc"], None),
        (&["session="], None),
        (&["session"], None),
        (&[";;=;"], None),
        (&[], None),
    ];
    for (lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        assert_eq!(
            read(&key::cookie("session"), &with(&lines)),
            expected,
            "{lines:?}"
        );
    }
}
