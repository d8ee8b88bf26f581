use core::fmt;

use serde::Serialize;
use tower_quota::RequestHead;

use super::explanation::Explanation;
use super::same_quota::is_quota;
use crate::document::{Document, Expected, Grant, OutcomeText, Sample};
use crate::rules::Rules;

/// The results of a document's tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TestReport {
    /// The number of passed tests.
    pub passed: usize,
    /// The first failed tests, at most [`TestReport::MAX_FAILURES`].
    pub failures: Vec<TestFailure>,
    /// The number of further failed tests.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A failed test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TestFailure {
    /// The position of the test in the document, from 0.
    pub test: usize,
    /// The differences between the expected and the actual result.
    pub differences: Vec<String>,
}

impl Rules {
    /// Runs the document's tests.
    ///
    /// ```
    /// use tower_quota_rules::Rules;
    ///
    /// let rules = Rules::parse(
    ///     r#"
    ///     limits: [{ name: minute, quota: 100/minute }]
    ///     skip: [{ path: /healthz }]
    ///     tests:
    ///       - { request: { path: /healthz }, expect: { outcome: skipped } }
    ///       - { request: { path: /users }, expect: { limits: { minute: 100/minute } } }
    ///     "#,
    /// )?;
    /// assert_eq!((rules.test().passed, rules.test().is_passed()), (2, true));
    /// # Ok::<(), tower_quota_rules::Problems>(())
    /// ```
    #[must_use]
    pub fn test(&self) -> TestReport {
        let mut report = TestReport::default();
        for (test, sample) in self.document().tests.iter().enumerate() {
            let differences = self.differences(sample);
            if differences.is_empty() {
                report.passed += 1;
            } else if report.failures.len() >= TestReport::MAX_FAILURES {
                report.more += 1;
            } else {
                report.failures.push(TestFailure { test, differences });
            }
        }
        report
    }

    fn differences(&self, sample: &Sample) -> Vec<String> {
        match self.request(&sample.request) {
            Ok(request) => compare(
                self.document(),
                &sample.expect,
                &self.explain(&RequestHead::of(&request)),
            ),
            Err(error) => vec![format!("no request can be so: {error}")],
        }
    }
}

impl TestReport {
    /// The maximum number of listed failures.
    pub const MAX_FAILURES: usize = 100;

    /// Returns whether all tests passed.
    #[must_use]
    pub const fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }
}

fn compare(document: &Document, expected: &Expected, found: &Explanation) -> Vec<String> {
    let mut differences = Vec::new();
    if let Some(outcome) = expected.outcome
        && outcome != found.outcome
    {
        let (outcome, found) = (word(outcome), word(found.outcome));
        differences.push(format!("expected it to be {outcome}, it is {found}"));
    }
    let tier = found.tier.as_deref();
    if let Some(expected) = &expected.tier
        && tier != Some(expected.as_str())
    {
        let tier = tier.map_or("none".into(), |tier| format!("{tier:?}"));
        let expected = expected.as_str();
        differences.push(format!("expected the tier {expected:?}, it is {tier}"));
    }
    let Some(limits) = &expected.limits else {
        return differences;
    };
    if let Some(scope) = &found.missing_key {
        differences.push(format!(
            "expected limits, it is refused without the key {scope:?}"
        ));
        return differences;
    }
    for (name, grant) in limits {
        let Grant::Quota(quota) = grant else { continue };
        let name = name.as_str();
        let Some(asked) = found.limits.iter().find(|limit| limit.name == name) else {
            differences.push(format!("expected the limit {name:?}, it is not asked"));
            continue;
        };
        let mut rules = document.all_limits();
        let rule = rules.find(|rule| rule.name.as_str() == name);
        if !rule.is_some_and(|rule| is_quota(rule, quota.quota(), asked.quota.quota())) {
            differences.push(format!(
                "expected {quota} of the limit {name:?}, it is {}",
                asked.quota
            ));
        }
    }
    for asked in &found.limits {
        if !matches!(limits.get(&*asked.name), Some(Grant::Quota(_))) {
            differences.push(format!("expected no limit {:?}, it is asked", asked.name));
        }
    }
    differences
}

const fn word(outcome: OutcomeText) -> &'static str {
    match outcome {
        OutcomeText::Skipped => "skipped",
        OutcomeText::Allowed => "allowed",
        OutcomeText::Blocked => "blocked",
        OutcomeText::Counted => "counted",
    }
}

impl fmt::Display for TestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(
                f,
                "tests[{}]: {}",
                failure.test,
                failure.differences.join("; ")
            )?;
        }
        let failed = self.failures.len() + self.more;
        write!(f, "{} passed, {failed} failed", self.passed)
    }
}
