//! Problems of files and resources.

use core::fmt;

/// A problem of a configuration, with its place and fix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The path of the file, or the name of the resource.
    pub file: String,
    /// The line, from 1. The line is 0 for an entire file, and for a resource.
    pub line: usize,
    /// The column in the line, from 1.
    pub column: usize,
    /// The error with the value, a colon and the fix.
    pub message: String,
}

/// All problems of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// A position in a file. The default stands for the entire file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// The problem of a file that cannot be read on.
pub(crate) type Refused = (Place, String);

const MOST_LISTED: usize = 100;

impl Problems {
    /// Returns the problems in the order of the files.
    pub fn iter(&self) -> core::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Makes a problem of something without lines.
    pub(crate) fn of(file: &str, message: impl fmt::Display) -> Self {
        let mut problems = Self::default();
        problems.add(file, Place::default(), message);
        problems
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a problem, unless the list is long already. Shortens long names and values.
    pub(super) fn add(&mut self, file: &str, place: Place, message: impl fmt::Display) {
        if self.0.len() < MOST_LISTED {
            self.0.push(Problem {
                file: format!("{file:.500}"),
                line: place.line,
                column: place.column,
                message: format!("{:.1000}", message.to_string()),
            });
        }
    }
}

impl Place {
    pub(crate) fn refuse(self, message: impl Into<String>) -> Refused {
        (self, message.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}:{}: {}", self.file, self.column, self.message),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl core::error::Error for Problems {}
