//! Rules documents: answered, within bounds, and printed as they are read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota_rules::{Document, Rules};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Err(problems) = Rules::parse(text) {
        assert!(!problems.is_empty(), "a refusal has a reason");
        assert!(
            problems.render(text, "fuzz").contains("fuzz"),
            "each problem has a place"
        );
    }
    let Ok(document) = Document::parse(text) else {
        return;
    };
    let printed = document.to_text();
    let again =
        Document::parse(&printed).unwrap_or_else(|problems| panic!("{printed}\n{problems}"));
    assert_eq!(again, document, "{printed}");
});
