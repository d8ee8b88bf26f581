//! The model beside the store: it takes every step too.

use tower_quota_core::{Charge, Decision, Entry, Operation, Timestamp, decide};

/// The entries of the keys that a case has named, under a digest.
#[derive(Default)]
pub(super) struct Model {
    entries: Vec<(u128, Entry)>,
}

impl Model {
    pub(super) fn apply(&mut self, operation: Operation, charges: &[Charge<'_>], now: Timestamp) -> Decision {
        let mut named: Vec<u128> = charges.iter().map(digest).collect();
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
            .map(|charge| digests.iter().position(|known| *known == digest(charge)).unwrap_or_default())
            .collect();
        decide(operation, charges, now, &mut entries, |charge| positions[charge])
    }
}

fn digest(charge: &Charge<'_>) -> u128 {
    charge.key().digest(&[0; 16])
}
