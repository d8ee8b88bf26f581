use core::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// YAML 1.2, without anchors, aliases and tags.
    Yaml,
    /// JSON (RFC 8259).
    Json,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Yaml, Self::Json];

    /// Returns the format of a file by its extension, `.yaml`, `.yml` or `.json`.
    #[must_use]
    pub fn of_path(path: impl AsRef<Path>) -> Option<Self> {
        let extension = path.as_ref().extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "yaml" | "yml" => Self::Yaml,
            "json" => Self::Json,
            _ => return None,
        })
    }

    /// Returns the media type, `application/yaml` (RFC 9512) or `application/json` (RFC 8259).
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Yaml => "application/yaml",
            Self::Json => "application/json",
        }
    }

    /// Returns the format of a `Content-Type`, whatever its parameters.
    #[must_use]
    pub fn of_content_type(value: &str) -> Option<Self> {
        let media_type = value.split(';').next()?.trim();
        Self::ALL
            .into_iter()
            .find(|format| media_type.eq_ignore_ascii_case(format.media_type()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        })
    }
}
