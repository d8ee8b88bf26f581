//! Rules documents in each format: answered, within bounds, and printed as they are read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_quota_rules::{Document, Format, Rules};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    for format in Format::ALL {
        if let Err(problems) = Rules::parse(text, format) {
            assert!(!problems.is_empty(), "a refusal has a reason");
            assert!(
                problems.render(text, "fuzz").contains("fuzz"),
                "each problem has a place"
            );
        }
        let Ok(document) = Document::parse(text, format) else {
            continue;
        };
        for other in Format::ALL {
            let printed = document.to_text(other);
            let again = Document::parse(&printed, other)
                .unwrap_or_else(|problems| panic!("{printed}\n{problems}"));
            assert_eq!(again, document, "{printed}");
        }
    }
});
