//! Reads the keys that patterns are compared with.

use std::sync::Arc;

use tower_quota::key::KeyExtractor;
use tower_quota::{Key, Name, RequestHead};

/// The extractors of a key. The first available key counts.
#[derive(Default)]
pub(crate) struct KeySource {
    parts: Vec<KeyPart>,
}

struct KeyPart {
    extractor: Arc<dyn KeyExtractor>,
    /// Whether patterns can match the keys, because they are texts and not addresses or combined
    /// keys.
    is_text: bool,
}

impl KeySource {
    pub(crate) fn push(&mut self, extractor: Arc<dyn KeyExtractor>, is_text: bool) {
        self.parts.push(KeyPart { extractor, is_text });
    }

    /// Visits the texts of a request that patterns are compared with.
    ///
    /// A block compares all sent texts, so a second value cannot evade it. An exemption compares
    /// only the counted text, so a second value cannot obtain it.
    pub(crate) fn each_text(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&[u8])) {
        if head.holds_in_doubt() {
            let texts = self.parts.iter().filter(|part| part.is_text);
            texts.for_each(|part| {
                part.extractor.each_key(head, &mut |key| {
                    if !key.as_bytes().is_empty() {
                        visit(key.as_bytes());
                    }
                })
            });
        } else if let Some((part, key)) = self.find(head)
            && self.is_text(part)
            && !key.as_bytes().is_empty()
        {
            visit(key.as_bytes());
        }
    }

    pub(crate) fn find<'r>(&self, head: &RequestHead<'r>) -> Option<(usize, Key<'r>)> {
        self.parts
            .iter()
            .enumerate()
            .find_map(|(position, part)| Some((position, part.extractor.extract(head)?)))
    }

    pub(crate) fn part_of(&self, scope: Name) -> Option<usize> {
        self.parts
            .iter()
            .position(|part| part.extractor.scope() == scope)
    }

    pub(crate) fn is_text(&self, part: usize) -> bool {
        self.parts.get(part).is_some_and(|part| part.is_text)
    }

    /// Parses an operator's text as an address, if keys can be addresses, or as a text.
    ///
    /// Returns the key, and the position of its part unless the text belongs to any part.
    pub(crate) fn parse(&self, text: &str) -> Option<(Option<usize>, Key<'static>)> {
        let mut found = None;
        for (position, part) in self.parts.iter().enumerate() {
            match part.extractor.parse(text) {
                Some(key) if part.is_text => _ = found.get_or_insert((None, key)),
                Some(key) => return Some((Some(position), key)),
                None => {}
            }
        }
        found
    }
}
