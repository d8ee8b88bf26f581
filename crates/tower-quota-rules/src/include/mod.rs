//! Merges a document with the document that it includes.

mod loosened;
mod merge;

use std::io;
use std::path::Path;

use self::merge::Merge;
use crate::document::Document;
use crate::problem::Problems;
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
    /// Returns [`Problems`] if the text or the included document cannot be read, or if the text loosens the included
    /// document.
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
        let mut merge = Merge::new(&name);
        let included = merge.included(read, own.end == Some(true), max_bytes);
        let merged = included.map(|included| merge.of(included, own));
        let mut problems = merge.problems;
        match merged {
            Some(document) if problems.is_empty() => {
                let text = document.to_text();
                Ok(Some(format!("# with {name:?}\n{text}")))
            }
            _ => {
                for problem in problems.iter_mut() {
                    reading.locate(problem);
                }
                problems.sort();
                Err(problems)
            }
        }
    }
}
