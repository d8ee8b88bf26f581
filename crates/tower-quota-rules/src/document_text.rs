use serde_json::Value;

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
    /// Returns [`Problems`] with all errors of form.
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
        let value = self.to_value();
        match format {
            Format::Yaml => yaml::print(&value),
            Format::Json => format!("{value:#}\n"),
        }
    }

    /// Returns the document as JSON, without the fields that are not set.
    pub(crate) fn to_value(&self) -> Value {
        // Maps with text keys always serialize.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        remove_unset(&mut value);
        value
    }
}

fn remove_unset(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !matches!(value, Value::Null | Value::Bool(false)));
            fields.values_mut().for_each(remove_unset);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_unset),
        _ => {}
    }
}
