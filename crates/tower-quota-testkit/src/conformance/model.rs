//! The model beside the store: it takes every step too.

use tower_quota_core::{Charge, Decision, Entry, Operation, Timestamp, decide};

/// The subjects that a case has charged so far, under a digest of their keys.
#[derive(Default)]
pub(super) struct Model {
    subjects: Vec<(u128, Entry)>,
}

impl Model {
    pub(super) fn apply(&mut self, operation: Operation, charges: &[Charge<'_>], now: Timestamp) -> Decision {
        let mut named: Vec<u128> = charges.iter().map(digest).collect();
        named.sort_unstable();
        named.dedup();
        for &digest in &named {
            if !self.subjects.iter().any(|(known, _)| *known == digest) {
                self.subjects.push((digest, Entry::default()));
            }
        }
        // Only the subjects a request names take part: the others' instants must not hold its clock.
        let (digests, mut subjects): (Vec<u128>, Vec<&mut Entry>) = self
            .subjects
            .iter_mut()
            .filter(|(digest, _)| named.contains(digest))
            .map(|(digest, subject)| (*digest, subject))
            .unzip();
        let positions: Vec<usize> = charges
            .iter()
            .map(|charge| digests.iter().position(|known| *known == digest(charge)).unwrap_or_default())
            .collect();
        decide(operation, charges, now, &mut subjects, |charge| positions[charge])
    }
}

fn digest(charge: &Charge<'_>) -> u128 {
    charge.key().digest(&[0; 16])
}
