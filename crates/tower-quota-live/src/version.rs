use serde::{Deserialize, Serialize};
use tower_quota::{Key, Name};

use super::time::Time;

/// An immutable document in a store, under a unique number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Version {
    /// The number, higher than all earlier versions of the store.
    pub number: u64,
    /// The name of the author, a person or a program.
    pub author: String,
    /// The reason for the change.
    pub comment: String,
    /// The time of the change.
    pub time: Time,
    /// The text of the document.
    pub text: String,
    /// A hash of the text, to tell versions with the same number apart after a restart.
    pub hash: String,
}

impl Version {
    /// Creates the version of a new document, now.
    #[must_use]
    pub fn new(number: u64, new: NewVersion) -> Self {
        Self {
            number,
            author: new.author,
            comment: new.comment,
            time: Time::now(),
            hash: hash_of(&new.text),
            text: new.text,
        }
    }

    pub(crate) fn short_hash(&self) -> u64 {
        let digits = self.hash.get(..12).unwrap_or_default();
        u64::from_str_radix(digits, 16).unwrap_or_default()
    }

    /// Returns the version without its text.
    #[must_use]
    pub fn info(&self) -> VersionInfo {
        VersionInfo {
            number: self.number,
            author: self.author.clone(),
            comment: self.comment.clone(),
            time: self.time,
            bytes: self.text.len(),
            hash: self.hash.clone(),
        }
    }
}

/// A version without its text, for histories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VersionInfo {
    /// The number.
    pub number: u64,
    /// The name of the author, a person or a program.
    pub author: String,
    /// The reason for the change.
    pub comment: String,
    /// The time of the change.
    pub time: Time,
    /// The length of the text in bytes.
    pub bytes: usize,
    /// A hash of the text.
    pub hash: String,
}

fn hash_of(text: &str) -> String {
    let key = Key::new(const { Name::new("rules") }, text.as_bytes());
    format!("{:032x}", key.digest(b"entity tags rule"))
}

/// A new document, with its author and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct NewVersion {
    /// The name of the author, a person or a program.
    pub author: String,
    /// The reason for the change.
    pub comment: String,
    /// The text of the document.
    pub text: String,
    /// The number below the new version's number.
    pub above: u64,
}

impl NewVersion {
    /// Creates a document to put in force.
    pub fn new(text: impl Into<String>, author: impl Into<String>) -> Self {
        let (text, author) = (text.into(), author.into());
        Self {
            author,
            comment: String::new(),
            text,
            above: 0,
        }
    }

    /// Sets the reason for the change.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = comment.into();
        self
    }

    /// Sets the number below the new version's number, even if the store has lost its versions.
    pub const fn above(mut self, number: u64) -> Self {
        self.above = number;
        self
    }
}
