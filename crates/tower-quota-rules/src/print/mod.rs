//! A document to text.

mod yaml;

use serde_json::Value;

use crate::document::Document;
use crate::format::Format;

/// Returns the text of a document, which is read as the same document.
pub(crate) fn print(document: &Document, format: Format) -> String {
    // A document is maps with texts as keys, so that none of these fails.
    match format {
        Format::Json => {
            let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
            text.push('\n');
            text
        }
        Format::Toml => toml::to_string(document).unwrap_or_default(),
        Format::Yaml => yaml::print(&serde_json::to_value(document).unwrap_or(Value::Null)),
    }
}
