//! Versions of a document.

use serde::{Deserialize, Serialize};
use tower_quota::{Key, Name};

use super::time::Time;
use tower_quota_rules::Format;

/// A document as a store keeps it: a text that never changes, under a number that is never used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Version {
    /// The number. Each version of a store has a higher one than those before it.
    pub number: u64,
    /// The name of the person or program that put it.
    pub author: String,
    /// The reason for the change, in the author's words.
    pub comment: String,
    /// The instant at which it was put.
    pub time: Time,
    /// The format of the text.
    pub format: Format,
    /// The text of the document.
    pub text: String,
    /// A hash of the text, which tells versions of the same number apart after a restart.
    pub hash: String,
}

impl Version {
    /// Makes the version that a new document becomes under this number, now.
    #[must_use]
    pub fn new(number: u64, new: NewVersion) -> Self {
        let NewVersion {
            author,
            comment,
            format,
            text,
            ..
        } = new;
        Self {
            number,
            author,
            comment,
            time: Time::now(),
            format,
            hash: hash_of(&text),
            text,
        }
    }

    /// Returns the first 48 bits of the hash.
    pub(crate) fn short_hash(&self) -> u64 {
        let digits = self.hash.get(..12).unwrap_or_default();
        u64::from_str_radix(digits, 16).unwrap_or_default()
    }

    /// Returns the version without its text.
    #[must_use]
    pub fn info(&self) -> VersionInfo {
        let Self {
            number,
            author,
            comment,
            time,
            text,
            hash,
            ..
        } = self;
        let (author, comment, hash) = (author.clone(), comment.clone(), hash.clone());
        VersionInfo {
            number: *number,
            author,
            comment,
            time: *time,
            bytes: text.len(),
            hash,
        }
    }
}

/// A version without its text, as histories list it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct VersionInfo {
    /// The number.
    pub number: u64,
    /// The name of the person or program that put it.
    pub author: String,
    /// The reason for the change.
    pub comment: String,
    /// The instant at which it was put.
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

/// A document that is to be put, with its author and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct NewVersion {
    /// The name of the person or program that puts it.
    pub author: String,
    /// The reason for the change.
    pub comment: String,
    /// The format of the text.
    pub format: Format,
    /// The text of the document.
    pub text: String,
    /// True for a shadow document, false to be in force.
    pub is_shadow: bool,
    /// The number that the version's must be above.
    pub above: u64,
}

impl NewVersion {
    /// Makes a document that is to be in force at once.
    pub fn new(text: impl Into<String>, format: Format, author: impl Into<String>) -> Self {
        let (text, author) = (text.into(), author.into());
        Self {
            author,
            comment: String::new(),
            format,
            text,
            is_shadow: false,
            above: 0,
        }
    }

    /// Sets the reason for the change.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = comment.into();
        self
    }

    /// Makes it a shadow document: it decides nothing, and its decisions are counted.
    pub const fn shadow(mut self) -> Self {
        self.is_shadow = true;
        self
    }

    /// Gives the version a higher number than this one, also if the store has lost its versions.
    pub const fn above(mut self, number: u64) -> Self {
        self.above = number;
        self
    }
}
