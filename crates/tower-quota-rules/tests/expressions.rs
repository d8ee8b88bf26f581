//! Tests the memory of large expressions. The allocator counts the whole process, so the program has a single test.

use peak_alloc::PeakAlloc;
use tower_quota_rules::Rules;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

#[test]
fn large_expressions_are_refused_within_100_megabytes() {
    let lines =
        (0..9_900).map(|at| format!("- path: {{ regex: '^/a{at}/[a-z0-9]{{1,600}}/x$' }}\n"));
    let text = format!("skip:\n{}", lines.collect::<String>());
    let problems = Rules::parse(&text).expect_err("too large");
    let said = problems.to_string();
    assert!(said.contains("too large together"), "{said}");
    let peak = ALLOCATOR.peak_usage_as_mb();
    assert!(peak < 100.0, "{peak} MB");
}
