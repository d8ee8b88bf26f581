use crate::document::Document;
use crate::format::Format;
use crate::problem::Problems;
use crate::{read, yaml};

impl Document {
    /// Reads a document of at most [`Rules::DEFAULT_MAX_BYTES`](crate::Rules::DEFAULT_MAX_BYTES),
    /// without checking its meaning.
    ///
    /// Use [`Rules`](crate::Rules) to check the meaning too.
    ///
    /// # Errors
    /// [`Problems`] with all errors of form.
    pub fn parse(text: &str, format: Format) -> Result<Self, Problems> {
        let tree = read::tree(text, format, crate::Rules::DEFAULT_MAX_BYTES)?;
        let mut reading = read::Reading::new(&tree);
        let document = reading.document();
        if reading.problems.is_empty() {
            Ok(document)
        } else {
            Err(reading.problems)
        }
    }

    /// Returns the document as text. Reading the text gives the same document.
    #[must_use]
    pub fn to_text(&self, format: Format) -> String {
        // Serializing maps with text keys cannot fail.
        match format {
            Format::Yaml => yaml::print(&serde_json::to_value(self).unwrap_or_default()),
            Format::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
        }
    }
}
