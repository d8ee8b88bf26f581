//! Tests that large hostile documents are refused within bounds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::fmt::Write as _;

use tower_quota_rules::{Document, Problems, Rules};

fn problems(text: &str) -> Problems {
    Rules::parse(text).map(|_| ()).unwrap_err()
}

#[test]
fn large_expressions_are_not_compiled() {
    let mut text = String::from("skip:\n");
    for number in 0..1_000 {
        writeln!(text, "  - path: {{ regex: '^/\\w{{400}}{number}' }}").unwrap();
    }
    let found = problems(&text);
    assert!(found.to_string().contains("too large together"), "{found}");
}

#[test]
fn many_expressions_are_not_compiled() {
    let text = format!("skip: [{}]", "{ path: { regex: a } }, ".repeat(10_001));
    assert!(problems(&text).to_string().contains("at most 10000"));
}

#[test]
fn failures_of_own_tests_are_counted() {
    let mut text = String::from("limits: [{ name: minute, quota: 1/minute }]\ntests:\n");
    for _ in 0..250 {
        text += "  - { request: {}, expect: { outcome: skipped } }\n";
    }
    let report = Rules::parse(&text).unwrap().test();
    assert_eq!((report.failures.len(), report.more), (100, 150));
    assert!(report.to_string().ends_with("0 passed, 250 failed"));
}

#[test]
fn differences_of_large_documents_are_complete() {
    let document = |units: u32| {
        let mut text = String::from("overrides:\n");
        for key in 0..20_000 {
            writeln!(text, "  k{key}: {{ limits: {{ minute: {units}/hour }} }}").unwrap();
        }
        Document::parse(&text).unwrap()
    };
    let (old, mut new) = (document(1), document(2));
    assert_eq!(old.differences(&new).len(), 20_000);
    new.overrides.extend(old.overrides.clone());
    assert_eq!(old.differences(&new), []);
}

#[test]
fn long_chain_of_tiers_is_refused() {
    let mut text = String::from("allow_empty: true\ntiers:\n");
    for number in 0..5_000 {
        writeln!(
            text,
            "  t{number}: {{ extends: t{} }}",
            (number + 1) % 5_000
        )
        .unwrap();
    }
    let found = problems(&text);
    assert_eq!(
        (found.iter().count(), found.more()),
        (Problems::MAX_LISTED, 4_900)
    );
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "[".repeat(100_000);
    for text in [deep, format!("[{}", "{a: ".repeat(100_000))] {
        assert!(problems(&text).has_errors());
    }
}

#[test]
fn longer_document_than_allowed_is_refused() {
    let text = format!("# {}\n", "x".repeat(Rules::DEFAULT_MAX_BYTES));
    assert!(problems(&text).to_string().contains("are read"));
    assert!(Document::parse(&text).is_err());
}
