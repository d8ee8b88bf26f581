//! Merges a document with the document that it includes.

mod merge;

use std::io;
use std::path::Path;

use self::merge::Merge;
use crate::document::Document;
use crate::problem::{DocumentPlace, Problems};
use crate::read;

impl Document {
    /// Merges a text with the document that it includes. Returns `None` if the text includes no document.
    ///
    /// `read` reads the included file, whose path is relative to the file of the text. The limits of the included
    /// document come first, and the text cannot loosen them.
    ///
    /// ```
    /// use tower_quota_rules::Document;
    ///
    /// let text = "include: org.yaml\nlimits: [{ name: search, quota: 5/second }]";
    /// let organisation = "limits: [{ name: everyone, quota: 100/second, key: none }]";
    /// let merged = Document::merged(text, 1_000, |_| Ok(organisation.into()))?.expect("merged");
    /// let names = Document::parse(&merged)?.limits.into_iter().map(|limit| limit.name.to_string());
    /// assert!(names.eq(["everyone", "search"]));
    /// # Ok::<(), tower_quota_rules::Problems>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Problems`] if the text or the included document cannot be read, if the merged document has more than
    /// `max_bytes`, or if the text loosens the included document.
    pub fn merged(
        text: &str,
        max_bytes: usize,
        read: impl FnOnce(&Path) -> io::Result<String>,
    ) -> Result<Option<String>, Problems> {
        if !text.contains("include") {
            return Ok(None);
        }
        let tree = read::tree(text, max_bytes)?;
        let mut reading = read::Reading::new(&tree);
        let own = reading.document();
        let Some(name) = own.include.clone() else {
            // The caller reads the text again, and reports its problems.
            return Ok(None);
        };
        if !reading.problems.is_empty() {
            return Err(reading.problems);
        }
        let mut problems = match included(&name, own.end == Some(true), max_bytes, read) {
            Ok(included) => match Merge::merged(&name, included, own) {
                Ok(merged) => {
                    let text = format!("# with {name:?}\n{}", merged.to_text());
                    if text.len() <= max_bytes {
                        return Ok(Some(text));
                    }
                    let reason = format_args!(
                        "the merged document has {} bytes, and at most {max_bytes} are read",
                        text.len()
                    );
                    unusable(&name, reason)
                }
                Err(problems) => problems,
            },
            Err(reason) => unusable(&name, reason),
        };
        for problem in problems.iter_mut() {
            reading.locate(problem);
        }
        problems.sort();
        Err(problems)
    }
}

fn included(
    name: &str,
    must_end: bool,
    max_bytes: usize,
    read: impl FnOnce(&Path) -> io::Result<String>,
) -> Result<Document, String> {
    let path = Path::new(name);
    if path.is_absolute() {
        return Err("its path is not relative to the folder of this document".into());
    }
    let text = read(path).map_err(|error| error.to_string())?;
    let document = Document::parse_up_to(&text, max_bytes).map_err(|found| found.to_string())?;
    // A file that a program is about to write is empty.
    if document == Document::default() {
        return Err("it is empty".into());
    }
    if document.include.is_some() {
        return Err("it includes another document".into());
    }
    if must_end && document.end != Some(true) {
        return Err("it ends before its last line `end: true`, which this document has".into());
    }
    Ok(document)
}

fn unusable(name: &str, reason: impl core::fmt::Display) -> Problems {
    let mut problems = Problems::default();
    let text = format_args!(
        "{name:?} cannot be included, since {reason}: correct the file or its path from the folder of this document, or remove \"include\""
    );
    problems.error(DocumentPlace::of("include"), text);
    problems
}
