use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Many;
use crate::text::{HeaderText, KeyPattern};

/// Patterns of values by header, such as `{ x-plan: "pro*" }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeaderMatches(pub IndexMap<HeaderText, Many<KeyPattern>>);

impl HeaderMatches {
    /// Returns whether there are no headers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
