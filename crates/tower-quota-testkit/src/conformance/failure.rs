//! Failures: where a store differs from the model, or from what a case states.

use std::fmt;

/// The result of a case, or the reason why it fails at the present step.
pub(super) type Verdict = Result<(), String>;

/// A failed case or trace: the step, what was expected there, and what was found.
pub struct Failure {
    step: String,
    reason: String,
}

impl Failure {
    pub(crate) fn new(step: &str, reason: impl Into<String>) -> Self {
        Self {
            step: step.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Fails the step unless what was found is what was expected.
pub(super) fn expect<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Verdict {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} should be {expected:?} and is {found:?}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at \"{}\": {}", self.step, self.reason)
    }
}

/// Shows the same as `Display`, so that `unwrap` in a test says it all.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
