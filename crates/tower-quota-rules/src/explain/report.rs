use core::fmt;
use core::time::Duration;

use serde::Serialize;
use tower_quota::{Algorithm, Limit, Quota, RequestHead};

use super::explanation::Explanation;
use crate::document::{Document, Expected, Grant, LimitRule, OutcomeText, Sample};
use crate::rules::Rules;
use crate::text::NameText;

/// The results of a document's tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    if let Some(outcome) = expected.outcome.filter(|outcome| *outcome != found.outcome) {
        differences.push(format!(
            "expected it to be {}, it is {}",
            word(outcome),
            word(found.outcome)
        ));
    }
    if let Some(tier) = expected
        .tier
        .as_ref()
        .filter(|tier| found.tier.as_deref() != Some(tier.as_str()))
    {
        let found = found
            .tier
            .as_deref()
            .map_or_else(|| String::from("none"), |tier| format!("{tier:?}"));
        differences.push(format!(
            "expected the tier {:?}, it is {found}",
            tier.as_str()
        ));
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
    let rule = |name: &NameText| document.all_limits().find(|rule| rule.name == *name);
    for (name, grant) in limits {
        let asked = found
            .limits
            .iter()
            .find(|limit| limit.name == name.as_str());
        match (grant, asked) {
            (Grant::Quota(quota), Some(asked))
                if is_quota(rule(name), Quota::from(*quota), asked.quota.quota()) => {}
            (Grant::Quota(quota), Some(asked)) => {
                differences.push(format!(
                    "expected {quota} of the limit {:?}, it is {}",
                    name.as_str(),
                    asked.quota
                ));
            }
            (Grant::Quota(_), None) => differences.push(format!(
                "expected the limit {:?}, it is not asked",
                name.as_str()
            )),
            (Grant::Unlimited, Some(_)) => differences.push(format!(
                "expected no limit {:?}, it is asked",
                name.as_str()
            )),
            (Grant::Unlimited, None) => {}
        }
    }
    for asked in found
        .limits
        .iter()
        .filter(|asked| !limits.contains_key(asked.name.as_str()))
    {
        differences.push(format!("expected no limit {:?}, it is asked", asked.name));
    }
    differences
}

/// Returns whether the expected quota counts like the quota found.
///
/// Without a queue in the quota, a leaky bucket queues for the limit's longest wait.
pub(super) fn is_quota(rule: Option<&LimitRule>, expected: Quota, found: &Quota) -> bool {
    let longest = rule.and_then(|rule| rule.max_wait);
    let longest = longest.map_or(Limit::DEFAULT_MAX_WAIT, Duration::from);
    counts_like(&expected.for_waits_of(longest), found)
}

/// Returns whether two quotas make the same decisions. A bucket has several texts, such as
/// `60/minute` and `1/second burst 60`.
fn counts_like(one: &Quota, other: &Quota) -> bool {
    let numbers = |quota: &Quota| (quota.capacity(), quota.grain(), quota.refill());
    let is_queue = |quota: &Quota| quota.algorithm() == Algorithm::LeakyBucket;
    let are_buckets = one.algorithm().is_bucket() && other.algorithm().is_bucket();
    let are_alike = numbers(one) == numbers(other) && is_queue(one) == is_queue(other);
    one == other || are_buckets && are_alike
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
