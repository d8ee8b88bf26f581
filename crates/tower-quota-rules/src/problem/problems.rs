use core::fmt;

use serde::{Deserialize, Serialize};

use super::one::{Problem, Severity};
use super::place::DocumentPlace;
use super::render;

/// All problems of a document in the order of the text, at most [`Problems::MAX_LISTED`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problems {
    problems: Vec<Problem>,
    #[serde(default)]
    more: usize,
}

impl Problems {
    /// The maximum number of listed problems.
    pub const MAX_LISTED: usize = 100;

    /// Returns the listed problems.
    pub fn iter(&self) -> core::slice::Iter<'_, Problem> {
        self.problems.iter()
    }

    /// Returns the number of further problems.
    #[must_use]
    pub const fn more(&self) -> usize {
        self.more
    }

    /// Returns whether there are no problems.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns whether the document is unusable.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// Returns the problems for people, with a mark below the line of the document.
    ///
    /// `source` is the text of the document, `name` the name of its file.
    ///
    /// ```
    /// use tower_quota_rules::Rules;
    ///
    /// let text = "limits:\n  - name: minute\n    quota: 100/minte\n";
    /// let problems = Rules::parse(text).unwrap_err();
    /// assert!(problems.render(text, "rules.yaml").contains("rules.yaml:3:12"));
    /// ```
    #[must_use]
    pub fn render(&self, source: &str, name: &str) -> String {
        render::render(&self.problems, self.more, source, name)
    }

    /// Returns these problems and others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.count(others.more);
        for problem in others.problems {
            self.push(problem);
        }
        self
    }

    /// Adds an error with its fix after the last colon.
    pub(crate) fn error(&mut self, place: DocumentPlace, text: impl fmt::Display) {
        self.push(Problem::error(place, text));
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        // Let an error replace a listed warning.
        if self.problems.len() < Self::MAX_LISTED {
            self.problems.push(problem);
            return;
        }
        self.more += 1;
        if problem.severity == Severity::Error
            && let Some(last) = self
                .problems
                .iter_mut()
                .rfind(|listed| listed.severity == Severity::Warning)
        {
            *last = problem;
        }
    }

    pub(crate) const fn count(&mut self, more: usize) {
        self.more += more;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= Self::MAX_LISTED
            && self
                .problems
                .iter()
                .all(|listed| listed.severity == Severity::Error)
    }

    pub(crate) fn sort(&mut self) {
        self.problems
            .sort_by_key(|problem| (problem.line, problem.column));
    }

    pub(crate) fn iter_mut(&mut self) -> core::slice::IterMut<'_, Problem> {
        self.problems.iter_mut()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = core::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl core::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.problems.iter().enumerate() {
            let separator = if position == 0 { "" } else { "\n" };
            write!(f, "{separator}{}: {problem}", problem.severity)?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
