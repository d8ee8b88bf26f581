//! Documents that are read, printed and read again.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test stops at the first surprise")]

use tower_quota::Quota;
use tower_quota_rules::{Format, Rules};

const SKETCH: &str = include_str!("good/sketch.yaml");

#[test]
fn three_lines_are_a_document() {
    let rules = Rules::parse("limits:\n  - name: minute\n    quota: 100/minute\n", Format::Yaml).expect("valid");
    assert_eq!(rules.document().limits[0].quota.quota(), &Quota::per_minute(100));
    assert!(rules.warnings().is_empty(), "{}", rules.warnings());
}

#[test]
fn sketch_prints_back_in_each_format() {
    let rules = Rules::parse(SKETCH, Format::Yaml)
        .unwrap_or_else(|problems| panic!("{}", problems.render(SKETCH, "sketch.yaml")));
    for format in Format::ALL {
        let text = rules.to_text(format);
        let again = Rules::parse(&text, format)
            .unwrap_or_else(|problems| panic!("{text}\n{}", problems.render(&text, "printed")));
        assert_eq!(again.document(), rules.document(), "{text}");
    }
}
