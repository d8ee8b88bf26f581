//! What a case says when a store differs.

use std::fmt;

/// What a case ends with.
pub(super) type Outcome = Result<(), Failure>;

/// The step a case failed at, and why.
#[derive(Debug)]
pub(super) struct Failure {
    step: String,
    reason: String,
}

impl Failure {
    pub(super) fn new(step: &str, reason: impl Into<String>) -> Self {
        Self { step: step.to_owned(), reason: reason.into() }
    }
}

/// Fails the step unless what was found is what was expected.
pub(super) fn expect<T: PartialEq + fmt::Debug>(step: &str, what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(Failure::new(step, format!("{what} should be {expected:?} and is {found:?}")))
    }
}

/// The cases of the [`suite`](super::suite) that a store failed.
#[derive(Default)]
pub struct Failures(Vec<(&'static str, Failure)>);

impl Failures {
    /// The names of the failed cases.
    pub fn cases(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(case, _)| *case)
    }

    pub(super) fn add(&mut self, case: &'static str, failure: Failure) {
        self.0.push((case, failure));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} conformance cases failed", self.0.len(), super::CASES.len())?;
        for (case, Failure { step, reason }) in &self.0 {
            write!(f, "\n  {case}, at \"{step}\": {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failures {}
