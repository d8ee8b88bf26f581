use std::sync::Arc;

use tower_quota_core::{Key, Name};

use super::extractor::KeyExtractor;
use crate::head::RequestHead;

/// The extractor of [`named`].
#[derive(Debug)]
pub struct NamedKey {
    name: String,
    pub(super) key: Arc<dyn KeyExtractor>,
}

/// Names an extractor, so that the [`SampleContext`](crate::explain::SampleContext) of a sample request can give the key that outer layers would add.
///
/// Without a given key, the context notes a missing key. Other requests are not affected.
#[must_use]
pub fn named(name: impl Into<String>, key: Arc<dyn KeyExtractor>) -> NamedKey {
    NamedKey {
        name: name.into(),
        key,
    }
}

impl KeyExtractor for NamedKey {
    fn scope(&self) -> Name {
        self.key.scope()
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let sample = head.sample();
        if let Some(text) = sample.and_then(|sample| sample.text(&self.name)) {
            return self.key.parse(text);
        }
        let found = self.key.extract(head);
        if let (Some(sample), None) = (sample, &found) {
            let name = &self.name;
            sample.note(format!(
                "the key `{name}` is missing: outer layers may add the key, so send it in `keys`"
            ));
        }
        found
    }

    fn has_credentials(&self) -> bool {
        self.key.has_credentials()
    }

    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        if head.sample().is_some() {
            self.extract(head).iter().for_each(visit);
        } else {
            self.key.each_key(head, visit);
        }
    }

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        self.key.parse(text)
    }
}
