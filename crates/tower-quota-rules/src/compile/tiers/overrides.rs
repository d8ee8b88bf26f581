//! Overrides of single keys.
//!
//! A key is stored once, as its bytes; its tier and quotas are a number into a table of distinct ones.

use core::fmt;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::quality::RandomState;

use super::grants::TierQuota;

/// The overrides by key.
#[derive(Default)]
pub(super) struct Overrides {
    /// The numbers of the keys that a part finds. `None` stands for all parts that find texts.
    numbers: HashMap<Option<usize>, HashMap<Box<[u8]>, u32, RandomState>, RandomState>,
    bodies: Vec<Body>,
    known: HashMap<Body, u32>,
}

/// The tier and quotas of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Body {
    tier: Option<u32>,
    grants: Box<[TierQuota]>,
}

impl Overrides {
    /// Adds the override of a key that this part finds.
    ///
    /// Returns false if another text has named this key.
    pub(super) fn insert(
        &mut self,
        part: Option<usize>,
        key: &[u8],
        tier: Option<u32>,
        grants: &[TierQuota],
    ) -> bool {
        let Entry::Vacant(entry) = self.numbers.entry(part).or_default().entry(key.into()) else {
            return false;
        };
        let body = Body {
            tier,
            grants: grants.into(),
        };
        let next = u32::try_from(self.bodies.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(body).or_insert_with_key(|body| {
            self.bodies.push(body.clone());
            next
        });
        entry.insert(number);
        true
    }

    /// Frees what is needed to collect overrides only.
    pub(super) fn finish(&mut self) {
        self.known = HashMap::new();
        self.numbers.values_mut().for_each(HashMap::shrink_to_fit);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Returns the tier and the quotas of a key that this part found.
    pub(super) fn find(
        &self,
        part: Option<usize>,
        key: &[u8],
    ) -> Option<(Option<u32>, &[TierQuota])> {
        let number = self.numbers.get(&part)?.get(key)?;
        let body = self.bodies.get(usize::try_from(*number).ok()?)?;
        Some((body.tier, &body.grants))
    }
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overrides({})", self.bodies.len())
    }
}
