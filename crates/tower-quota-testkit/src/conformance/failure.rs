//! Reports where a store differs from the model, or from the expectation of a case.

use std::fmt;

pub(super) type Verdict = Result<(), String>;

/// A failed case or trace, with the step, the expected result and the result found.
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

/// Shows the same text as `Display`, so that `unwrap` in a test prints the whole failure.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
