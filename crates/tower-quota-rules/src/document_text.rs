//! Documents from text and to text, without a check of what they mean.

use crate::document::Document;
use crate::format::Format;
use crate::problem::Problems;
use crate::{read, yaml};

impl Document {
    /// Reads a document, and checks its form alone.
    ///
    /// [`Rules`](crate::Rules) check what it means too. It has at most
    /// [`Rules::DEFAULT_MAX_BYTES`](crate::Rules::DEFAULT_MAX_BYTES).
    ///
    /// # Errors
    /// [`Problems`] with every place that has not the form of a document.
    pub fn parse(text: &str, format: Format) -> Result<Self, Problems> {
        let (document, reading) = read::read(text, format, crate::Rules::DEFAULT_MAX_BYTES);
        if reading.problems().is_empty() {
            Ok(document)
        } else {
            Err(reading.problems().clone())
        }
    }

    /// Returns the document as a text that is read as the same document.
    #[must_use]
    pub fn to_text(&self, format: Format) -> String {
        // A document is maps with texts as keys, so that this does not fail.
        match format {
            Format::Yaml => yaml::print(&serde_json::to_value(self).unwrap_or_default()),
            Format::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
        }
    }
}
