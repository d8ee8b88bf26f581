//! Overrides of single keys, of which there may be a million.
//!
//! A key is stored once, as its bytes; its tier and quotas are numbers into tables of distinct ones. That takes some 90
//! bytes for each key.

use core::fmt;
use std::collections::HashMap;

use super::grants::TierQuota;
use crate::compile::key_source::WrittenKey;

/// The overrides by key.
#[derive(Default)]
pub(super) struct Overrides {
    texts: HashMap<Box<[u8]>, u32>,
    /// The keys of parts that are no texts, by the position of the part.
    others: Vec<HashMap<Box<[u8]>, u32>>,
    bodies: Vec<Body>,
    /// The numbers of bodies, while they are collected.
    numbers: HashMap<Body, u32>,
}

/// The tier and quotas of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Body {
    tier: Option<u32>,
    grants: Box<[TierQuota]>,
}

impl Overrides {
    pub(super) fn reserve(&mut self, count: usize) {
        self.texts.reserve(count);
    }

    /// Adds an override.
    pub(super) fn insert(&mut self, key: WrittenKey, tier: Option<u32>, grants: Vec<TierQuota>) {
        let body = Body { tier, grants: grants.into() };
        let number = match self.numbers.get(&body) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.bodies.len()).unwrap_or(u32::MAX);
                self.bodies.push(body.clone());
                self.numbers.insert(body, number);
                number
            }
        };
        match key {
            WrittenKey::Text(text) => self.texts.insert(text, number),
            WrittenKey::Other(part, key) => {
                if self.others.len() <= part {
                    self.others.resize_with(part + 1, HashMap::new);
                }
                self.others.get_mut(part).and_then(|others| others.insert(key, number))
            }
        };
    }

    /// Frees what is needed to collect overrides only.
    pub(super) fn finish(&mut self) {
        self.numbers = HashMap::new();
        self.bodies.shrink_to_fit();
        self.texts.shrink_to_fit();
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Returns the tier and the quotas of a key that a part found.
    pub(super) fn find(&self, part: usize, is_text: bool, key: &[u8]) -> Option<(Option<u32>, &[TierQuota])> {
        let number = if is_text { self.texts.get(key) } else { self.others.get(part)?.get(key) };
        let body = self.bodies.get(usize::try_from(*number?).ok()?)?;
        Some((body.tier, &body.grants))
    }
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overrides({})", self.texts.len() + self.others.iter().map(HashMap::len).sum::<usize>())
    }
}
