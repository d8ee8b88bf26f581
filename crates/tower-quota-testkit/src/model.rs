//! The model beside a store: it takes every step too.

use tower_quota_core::{Charge, Decision, Entry, Key, Operation, Timestamp, decide};

/// The entries of the keys that were named so far, under a digest.
#[derive(Default)]
pub(crate) struct Model {
    entries: Vec<(u128, Entry)>,
}

impl Model {
    pub(crate) fn apply(&mut self, operation: Operation, charges: &[Charge<'_>], now: Timestamp) -> Decision {
        let mut named: Vec<u128> = charges.iter().map(|charge| digest(charge.key())).collect();
        named.sort_unstable();
        named.dedup();
        for &digest in &named {
            if !self.entries.iter().any(|(known, _)| *known == digest) {
                self.entries.push((digest, Entry::default()));
            }
        }
        // Only the entries that a request names take part: the others' instants must not hold its clock.
        let (digests, mut entries): (Vec<u128>, Vec<&mut Entry>) = self
            .entries
            .iter_mut()
            .filter(|(digest, _)| named.contains(digest))
            .map(|(digest, entry)| (*digest, entry))
            .unzip();
        let positions: Vec<usize> = charges
            .iter()
            .map(|charge| digests.iter().position(|known| *known == digest(charge.key())).unwrap_or_default())
            .collect();
        decide(operation, charges, now, &mut entries, |charge| positions[charge])
    }
}

#[cfg(feature = "differential")]
impl Model {
    /// Returns the entry of a key, empty if it was never named.
    pub(crate) fn entry(&self, key: &Key<'_>) -> Entry {
        let entry = self.entries.iter().find(|(known, _)| *known == digest(key));
        entry.map(|(_, entry)| entry.clone()).unwrap_or_default()
    }

    /// Returns the latest instant up to `now` at which an entry became full. A store may have forgotten it since.
    pub(crate) fn last_full_at(&self, now: Timestamp) -> Timestamp {
        let full_at = self.entries.iter().map(|(_, entry)| entry.full_at());
        full_at.filter(|full_at| *full_at <= now).max().unwrap_or(Timestamp::EPOCH)
    }
}

fn digest(key: &Key<'_>) -> u128 {
    key.digest(&[0; 16])
}
