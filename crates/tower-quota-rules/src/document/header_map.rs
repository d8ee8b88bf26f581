//! Headers and patterns of their values.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Many;
use crate::text::{HeaderText, KeyPattern};

/// Headers by name, and patterns of their values: `{ x-plan: "pro*" }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeaderMatches(pub IndexMap<HeaderText, Many<KeyPattern>>);

impl HeaderMatches {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
