//! The model next to a store. Each step runs in both.

use std::time::Duration;

use tower_quota_core::stored::TRUSTED_LEAD;
use tower_quota_core::{Charge, Decision, Entry, Key, LimitStatus, Operation, Timestamp, decide};

/// The entries of the keys that were named so far, under a digest.
#[derive(Default)]
pub(crate) struct Model {
    entries: Vec<(u128, Entry)>,
    /// Entries that counted as missing, being from the future. They stay stored until they are written over.
    distrusted: Vec<(u128, Entry)>,
}

impl Model {
    pub(crate) fn apply(
        &mut self,
        operation: Operation,
        charges: &[Charge<'_>],
        now: Timestamp,
    ) -> Decision {
        let mut named: Vec<u128> = charges.iter().map(|charge| digest(charge.key())).collect();
        named.sort_unstable();
        named.dedup();
        for &digest in &named {
            match self.entries.iter().find(|(known, _)| *known == digest) {
                Some((_, entry)) if is_from_the_future(entry, now) => {
                    self.distrusted.push((digest, entry.clone()))
                }
                Some(_) => {}
                None => self.entries.push((digest, Entry::default())),
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
            .map(|charge| {
                digests
                    .iter()
                    .position(|known| *known == digest(charge.key()))
                    .unwrap_or_default()
            })
            .collect();
        decide(operation, charges, now, &mut entries, |charge| {
            positions[charge]
        })
    }

    /// Returns the entries of the keys of a request, each with the position of a charge of its key.
    pub(crate) fn entries_of(&self, charges: &[Charge<'_>]) -> Vec<(usize, Entry)> {
        let entry_of = |(position, charge): (usize, &Charge<'_>)| {
            let is_new = charges[..position]
                .iter()
                .all(|other| other.key() != charge.key());
            let digest = digest(charge.key());
            let known = self.entries.iter().find(|(known, _)| *known == digest)?;
            is_new.then(|| (position, known.1.clone()))
        };
        charges.iter().enumerate().filter_map(entry_of).collect()
    }
}

#[cfg(feature = "differential")]
impl Model {
    /// Returns the entry of a key, empty if it was never named. One that counted as missing counts again when the clock
    /// has gone on, if the store has not written over it.
    pub(crate) fn stored_entry(&mut self, key: &Key<'_>, stored: &[u8]) -> Entry {
        let digest = digest(key);
        let Some((_, entry)) = self.entries.iter_mut().find(|(known, _)| *known == digest) else {
            return Entry::default();
        };
        let distrusted = self
            .distrusted
            .extract_if(.., |(known, _)| *known == digest)
            .last();
        if let Some((_, distrusted)) = distrusted
            && entry.is_empty()
            && distrusted.encode() == stored
        {
            *entry = distrusted;
        }
        entry.clone()
    }

    /// Returns the latest instant up to `now` at which an entry became full. A store may have forgotten it since.
    pub(crate) fn last_full_at(&self, now: Timestamp) -> Timestamp {
        let full_at = self.entries.iter().map(|(_, entry)| entry.full_at());
        full_at
            .filter(|full_at| *full_at <= now)
            .max()
            .unwrap_or(Timestamp::EPOCH)
    }
}

/// Returns whether an entry is from so far ahead that it counts as missing.
fn is_from_the_future(entry: &Entry, now: Timestamp) -> bool {
    let trusted = Duration::from_micros(TRUSTED_LEAD) + entry.full_at().since(entry.at());
    entry.at() > now + trusted
}

/// Returns the debt of each limit.
pub(crate) fn debts(decision: &Decision) -> Vec<u64> {
    let statuses = decision.statuses();
    statuses.iter().map(LimitStatus::debt).collect()
}

fn digest(key: &Key<'_>) -> u128 {
    key.digest(&[0; 16])
}
