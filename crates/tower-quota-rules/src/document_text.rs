use serde_json::Value;

use crate::document::Document;
use crate::problem::Problems;
use crate::read;

impl Document {
    /// Reads a document of at most [`Rules::DEFAULT_MAX_BYTES`](crate::Rules::DEFAULT_MAX_BYTES),
    /// without checking its meaning.
    ///
    /// Use [`Rules`](crate::Rules) to check the meaning too.
    ///
    /// # Errors
    /// Returns [`Problems`] with all errors of form.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        Self::parse_up_to(text, crate::Rules::DEFAULT_MAX_BYTES)
    }

    pub(crate) fn parse_up_to(text: &str, max_bytes: usize) -> Result<Self, Problems> {
        let tree = read::tree(text, max_bytes)?;
        let mut reading = read::Reading::new(&tree);
        let document = reading.document();
        if reading.problems.is_empty() {
            Ok(document)
        } else {
            Err(reading.problems)
        }
    }

    /// Returns the document as JSON. Reading the text gives the same document.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{:#}\n", self.to_value())
    }

    /// Returns the document as JSON, without the fields that are not set.
    pub(crate) fn to_value(&self) -> Value {
        // Maps with text keys always serialize.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        remove_unset(&mut value);
        if self.end == Some(false) {
            value["end"] = false.into();
        }
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
