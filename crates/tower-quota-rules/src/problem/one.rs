use core::fmt;

use serde::{Deserialize, Serialize};

use super::place::DocumentPlace;

/// A problem of a document, with its place and its fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The severity.
    pub severity: Severity,
    /// The place in the document, such as `routes[3].limits[0].quota`. Empty for the entire
    /// document.
    pub path: String,
    /// The line in the text, from 1. Absent if your code has built the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in the line, in characters from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The error, with the value.
    pub message: String,
    /// The fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The place in the document as read, without unreadable parts.
    #[serde(skip)]
    pub(crate) place: DocumentPlace,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The document is unusable.
    Error,
    /// The document is usable, but a part has no effect.
    Warning,
}

impl Problem {
    /// Creates a problem from a text with the error, a colon, and the fix.
    pub(crate) fn new(severity: Severity, place: DocumentPlace, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        let (message, help) = match text.rsplit_once(": ") {
            Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
            None => (text, None),
        };
        Self {
            severity,
            path: place.to_string(),
            line: None,
            column: None,
            message,
            help,
            place,
        }
    }

    pub(crate) fn error(place: DocumentPlace, text: impl fmt::Display) -> Self {
        Self::new(Severity::Error, place, text)
    }

    pub(crate) fn in_line(self, (line, column): (u32, u32)) -> Self {
        Self {
            line: Some(line),
            column: Some(column),
            ..self
        }
    }

    pub(crate) fn warning(place: DocumentPlace, text: impl fmt::Display) -> Self {
        Self::new(Severity::Warning, place, text)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Problem {
    /// Writes the problem in a line: `line 3, column 12: limits[0].quota: ...: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, ": {help}"),
            None => Ok(()),
        }
    }
}
