//! What a document may say and cannot mean.

use std::collections::HashSet;

use crate::code_parts::CodeParts;
use crate::document::Document;
use crate::problem::Problems;

/// Names that a document gives beside those of what could be read.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    pub(crate) limits: HashSet<String>,
    pub(crate) tiers: HashSet<String>,
}

/// Returns the problems of a document.
pub(crate) fn check(_document: &Document, _parts: &CodeParts, _known: &KnownNames) -> Problems {
    Problems::default()
}
