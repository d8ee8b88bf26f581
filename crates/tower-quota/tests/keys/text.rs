//! Extractors as text.

use tower_quota::key::{KeyExtractor, ValueKey};

#[test]
fn text_of_each_function_round_trips() {
    for text in ValueKey::EXAMPLES.into_iter().chain(["query my name"]) {
        if !cfg!(feature = "axum") && ["route", "path_parameter id"].contains(&text) {
            let error = text.parse::<ValueKey>().unwrap_err();
            assert!(error.to_string().contains("feature `axum`"), "{error}");
            continue;
        }
        let key: ValueKey = text.parse().unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(format!("  {text} ").parse::<ValueKey>().unwrap(), key);
        let scope = text.replace('_', " ").replace("bearer", "bearer token");
        assert_eq!(key.scope().as_str(), scope);
    }
}

#[test]
fn wrong_text_is_named_with_its_fix() {
    let number = "\"one\" is not the number of a segment: count from 0, as in \"path_segment 0\"";
    for (text, error) in [
        (
            "haeder x",
            "\"haeder\" is not a key: give one such as \"header x-api-key\" or \"path\"",
        ),
        (
            "header",
            "the key \"header\" does not say which: write \"header x-api-key\"",
        ),
        (
            "header a b",
            "\"a b\" is not the name of a header: give one such as \"x-api-key\"",
        ),
        (
            "cookie",
            "the key \"cookie\" does not say which: write \"cookie session\"",
        ),
        ("path_segment one", number),
        (
            "bearer token",
            "\"token\" after the key \"bearer\" means nothing: write \"bearer\" alone",
        ),
    ] {
        assert_eq!(text.parse::<ValueKey>().unwrap_err().to_string(), error);
    }
}
