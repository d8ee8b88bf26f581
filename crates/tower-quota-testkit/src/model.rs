//! Runs the model next to a store, step by step.

use std::collections::BTreeMap;
use std::time::Duration;

use tower_quota_core::stored::TRUSTED_LEAD;
use tower_quota_core::{Charge, Decision, Entry, Key, LimitStatus, Operation, Timestamp, decide};

use crate::conformance::capability::Capability;

#[derive(Debug, Default)]
pub(crate) struct Model {
    entries: BTreeMap<u128, Entry>,
    /// Entries from the future, which count as missing. Each stays stored until the store
    /// overwrites it.
    distrusted: BTreeMap<u128, Entry>,
}

impl Model {
    pub(crate) fn apply(
        &mut self,
        operation: Operation,
        charges: &[Charge<'_>],
        now: Timestamp,
    ) -> Decision {
        let named: Vec<u128> = charges.iter().map(|charge| digest(charge.key())).collect();
        for &digest in &named {
            let entry = self.entries.entry(digest).or_default();
            if is_from_the_future(entry, now) {
                self.distrusted.insert(digest, entry.clone());
            }
        }
        // Pass only the entries of the request, because a later instant of another entry must not
        // delay the decision.
        let entries = self.entries.iter_mut();
        let (digests, mut entries): (Vec<&u128>, Vec<&mut Entry>) =
            entries.filter(|(digest, _)| named.contains(digest)).unzip();
        decide(operation, charges, now, &mut entries, |charge| {
            let position = digests.binary_search(&&named[charge]);
            position.unwrap_or_default()
        })
    }

    /// Returns the entries of the keys of a request, each with the position of a charge of its key.
    pub(crate) fn entries_of(&self, charges: &[Charge<'_>]) -> Vec<(usize, Entry)> {
        let entry_of = |(position, charge): (usize, &Charge<'_>)| {
            let is_new = charges[..position]
                .iter()
                .all(|other| other.key() != charge.key());
            let entry = self.entries.get(&digest(charge.key()))?;
            is_new.then(|| (position, entry.clone()))
        };
        charges.iter().enumerate().filter_map(entry_of).collect()
    }
}

#[cfg(feature = "differential")]
impl Model {
    /// Returns the entry of a key, or an empty entry. An entry from the future reappears once the
    /// clock has passed it, unless the store has overwritten it.
    pub(crate) fn stored_entry(&mut self, key: &Key<'_>, stored: &[u8]) -> Entry {
        let digest = digest(key);
        let Some(entry) = self.entries.get_mut(&digest) else {
            return Entry::default();
        };
        if let Some(distrusted) = self.distrusted.remove(&digest)
            && entry.is_empty()
            && distrusted.encode() == stored
        {
            *entry = distrusted;
        }
        entry.clone()
    }

    /// Returns the latest instant up to `now` at which an entry became full. A store may have
    /// forgotten the entry since.
    pub(crate) fn last_full_at(&self, now: Timestamp) -> Timestamp {
        let full_at = self.entries.values().map(Entry::full_at);
        full_at
            .filter(|full_at| *full_at <= now)
            .max()
            .unwrap_or(Timestamp::EPOCH)
    }
}

fn is_from_the_future(entry: &Entry, now: Timestamp) -> bool {
    let trusted = Duration::from_micros(TRUSTED_LEAD) + entry.full_at().since(entry.at());
    entry.at() > now + trusted
}

pub(crate) fn is_same(found: &Decision, expected: &Decision, lacks: &[Capability]) -> bool {
    let debts = |decision: &Decision| -> Vec<u64> {
        let statuses = decision.statuses();
        statuses.iter().map(LimitStatus::debt).collect()
    };
    found == expected
        && (lacks.contains(&Capability::ChargeModes) || debts(found) == debts(expected))
}

fn digest(key: &Key<'_>) -> u128 {
    key.digest(&[0; 16])
}
