use core::fmt::Display;

/// The problems of a start, one per line, each with its flag or file and the fix.
#[derive(Debug, Default, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct StartError(Vec<String>);

impl StartError {
    pub(super) fn add(&mut self, problem: impl Display) {
        self.0.push(problem.to_string());
    }

    /// Keeps the problem of a step, so that the next steps find more problems.
    pub(super) fn unless<T>(&mut self, step: Result<T, impl Display>) -> Option<T> {
        step.map_err(|problem| self.add(problem)).ok()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for StartError {
    fn from(problem: String) -> Self {
        Self(vec![problem])
    }
}
