//! Keys to extractors.

use std::sync::Arc;

use tower_quota::key::{self, KeyExtractor};

use crate::code_parts::CodeParts;
use crate::document::KeyRule;
use crate::text::KeyText;

/// Returns the extractor of a key; without one, the client's address.
pub(super) fn extractor(rule: Option<&KeyRule>, parts: &CodeParts) -> Arc<dyn KeyExtractor> {
    match rule {
        Some(KeyRule::One(KeyText::None)) => Arc::new(key::everyone()),
        Some(KeyRule::One(KeyText::Header(name))) => Arc::new(key::header(name.as_str())),
        Some(KeyRule::One(KeyText::Code(name))) => match parts.keys.get(name.as_str()) {
            Some(extractor) => Arc::clone(extractor),
            None => Arc::new(key::everyone()),
        },
        _ => Arc::new(key::client_ip()),
    }
}
