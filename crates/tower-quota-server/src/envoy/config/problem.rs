//! Problems of configuration files.

use core::fmt;

/// A problem of a configuration file, with its place and fix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The path of the file.
    pub file: String,
    /// The line, from 1. The line is 0 for the entire file.
    pub line: usize,
    /// The column in the line, from 1.
    pub column: usize,
    /// The error with the value, a colon and the fix.
    pub message: String,
}

/// All problems of a set of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// A position in a file. The default stands for the entire file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

const MOST_LISTED: usize = 100;

impl Problems {
    /// Returns the problems in the order of the files.
    pub fn iter(&self) -> core::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a problem, unless the list is long already.
    pub(super) fn add(&mut self, file: &str, place: Place, message: impl fmt::Display) {
        if self.0.len() < MOST_LISTED {
            self.0.push(Problem {
                file: file.to_owned(),
                line: place.line,
                column: place.column,
                message: message.to_string(),
            });
        }
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
        for (position, problem) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Problems {}
