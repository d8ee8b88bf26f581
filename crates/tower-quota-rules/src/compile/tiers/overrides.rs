//! Overrides of single keys, of which there may be a million.
//!
//! A key is stored once, as its bytes; its tier and quotas are a number into a table of distinct ones.

use core::fmt;
use std::collections::{HashMap, HashSet};

use foldhash::quality::RandomState;

use super::grants::TierQuota;
use crate::compile::packed_map::{PackedMap, PackedMapBuilder};

/// The overrides by key.
#[derive(Default)]
pub(super) struct Overrides {
    numbers: PackedMap,
    bodies: Vec<Body>,
}

/// The overrides while they are collected.
#[derive(Default)]
pub(super) struct OverridesBuilder {
    numbers: PackedMapBuilder,
    bodies: Vec<Body>,
    known: HashMap<Body, u32>,
    /// The keys that several texts name, such as addresses: their parts, lengths and bytes.
    named: HashSet<(usize, usize, u128), RandomState>,
}

/// The tier and quotas of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Body {
    tier: Option<u32>,
    grants: Box<[TierQuota]>,
}

impl OverridesBuilder {
    pub(super) fn reserve(&mut self, count: usize) {
        self.numbers.reserve(count);
    }

    /// Adds the override of a key that this part finds: `None` stands for all parts that find texts.
    ///
    /// Returns false if another text has named this key.
    pub(super) fn insert(
        &mut self,
        part: Option<usize>,
        key: &[u8],
        tier: Option<u32>,
        grants: &[TierQuota],
    ) -> bool {
        let named = part
            .zip(number(key))
            .map(|(part, bytes)| (part, key.len(), bytes));
        if named.is_some_and(|named| !self.named.insert(named)) {
            return false;
        }
        let body = Body {
            tier,
            grants: grants.into(),
        };
        let number = match self.known.get(&body) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.bodies.len()).unwrap_or(u32::MAX);
                self.bodies.push(body.clone());
                self.known.insert(body, number);
                number
            }
        };
        self.numbers.insert(group(part), key, number);
        true
    }

    pub(super) fn build(self) -> Overrides {
        Overrides {
            numbers: self.numbers.build(),
            bodies: self.bodies,
        }
    }
}

impl Overrides {
    pub(super) const fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Returns the tier and the quotas of a key that this part found: `None` stands for all parts that find texts.
    pub(super) fn find(
        &self,
        part: Option<usize>,
        key: &[u8],
    ) -> Option<(Option<u32>, &[TierQuota])> {
        let number = self.numbers.find(group(part), key)?;
        let body = self.bodies.get(usize::try_from(number).ok()?)?;
        Some((body.tier, &body.grants))
    }
}

fn group(part: Option<usize>) -> u32 {
    part.map_or(0, |part| u32::try_from(part + 1).unwrap_or(u32::MAX))
}

/// Returns the bytes of a short key, such as an address, as a number.
fn number(key: &[u8]) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..key.len())?.copy_from_slice(key);
    Some(u128::from_be_bytes(bytes))
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overrides({})", self.numbers.len())
    }
}
