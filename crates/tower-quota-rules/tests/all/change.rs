//! Tests of documents that replace others.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use tower_quota_rules::Rules;

const WHOLE: &str = "\
limits:
  - { name: second, quota: 50/second }
  - { name: address, quota: 9/second, key: client_ip }
tiers: { pro: { limits: { second: 500/second } } }
assign: [{ key: '*', tier: pro }]
defaults: { key: header x-api-key }
end: true
";

fn rules(text: &str) -> Rules {
    Rules::parse(text).unwrap()
}

#[test]
fn cut_document_is_an_error_once_end_is_used() {
    let whole = rules(WHOLE);
    let mut read = 0;
    for (at, _) in WHOLE.match_indices('\n') {
        let cut = &WHOLE[..=at];
        let Ok(new) = Rules::parse(cut) else {
            continue;
        };
        read += 1;
        let problems = new.after(&whole, &|_| 0);
        assert_eq!(problems.has_errors(), cut != WHOLE, "{cut}: {problems}");
        // A document that has never used it may go without.
        let unguarded = rules(WHOLE.trim_end().trim_end_matches("end: true"));
        assert!(!new.after(&unguarded, &|_| 0).has_errors());
    }
    assert!(read > 3);
    let problems = rules("limits: [{ name: second, quota: 1/second }]").after(&whole, &|_| 0);
    let said = problems.to_string();
    assert!(
        said.contains("ends before its last line `end: true`"),
        "{said}"
    );
    let without = rules(&WHOLE.replace("end: true", "end: false"));
    assert!(!without.after(&whole, &|_| 0).has_errors());
    assert!(
        !rules("limits: [{ name: s, quota: 1/second }]")
            .after(&without, &|_| 0)
            .has_errors()
    );
}

#[test]
fn end_must_be_the_last_line() {
    let early = format!("end: true\n{}", WHOLE.replace("end: true\n", ""));
    let said = Rules::parse(&early).unwrap_err().to_string();
    assert!(
        said.contains("line 1") && said.contains("move \"end\" to the end"),
        "{said}"
    );
    let printed = rules(WHOLE).document().to_text();
    assert!(printed.ends_with("\"end\": true\n}\n"), "{printed}");
}

#[test]
fn lost_limits_are_named_with_their_overrides() {
    let old = rules("limits: [{ name: second, quota: 1/second }, { name: day, quota: 9/day }]");
    let new = rules("limits: [{ name: seconds, quota: 1/second }, { name: day, quota: 9/day }]");
    assert_eq!(old.document().lost_limits(new.document()), ["second"]);
    assert!(old.document().lost_limits(old.document()).is_empty());
    let said = new.after(&old, &|name| if name == "second" { 2 } else { 7 });
    assert_eq!(
        said.to_string(),
        "warning: limits: the limit \"second\" of the old rules is gone, and its overrides by operators (2) have no effect: put it \
         back, if that is not meant"
    );
}
