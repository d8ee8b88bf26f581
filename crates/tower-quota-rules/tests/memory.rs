//! Tests the memory of overrides for single keys. The allocator counts the whole process, so the program has a single
//! test.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::fmt::Write as _;

use peak_alloc::PeakAlloc;
use tower_quota_rules::Rules;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Slightly more than 7/8 of a power of two, where tables waste the most memory.
const OVERRIDES: usize = 30_000;

/// Returns rules with a number of overrides and a hundred different quotas.
fn rules(overrides: usize) -> Rules {
    let mut text = String::from(
        "defaults: { key: header x-api-key }\nlimits: [{ name: minute, quota: 100/minute }]\noverrides:\n",
    );
    text += "  one: {}\n";
    for key in 0..overrides {
        writeln!(
            text,
            "  sk_prod_{key:07}: {{ limits: {{ minute: {}/minute }} }}",
            200 + key % 100
        )
        .unwrap();
    }
    Rules::parse(&text).unwrap()
}

#[test]
fn override_takes_at_most_200_bytes() {
    let few = rules(1_000);
    let before = ALLOCATOR.current_usage();
    let many = rules(OVERRIDES);
    let bytes = (ALLOCATOR.current_usage() - before) / OVERRIDES;
    println!("{bytes} bytes for each override");
    assert!(
        (50..=200).contains(&bytes),
        "{bytes} bytes for each override"
    );
    drop((few, many));
}
