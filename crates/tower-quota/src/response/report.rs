//! The report of a decision in the response.

use core::fmt;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tower_quota_core::{Decision, Key, Name, Quota};

use crate::settle::Counted;

/// The decision about one request, with all other data for its response, which outlives the request.
#[derive(Debug)]
pub(crate) struct Report {
    /// The decision; `None` when the store failed and nothing was counted.
    pub(crate) decision: Option<Decision>,
    /// The store that counted the request: the shared or the local one.
    pub(crate) by: Counted,
    /// The quotas of limits whose quota depends on the request.
    pub(crate) overrides: Vec<(Name, Quota)>,
    /// The costs that exceed the capacity of their limit.
    pub(crate) oversized: Vec<(Name, u64)>,
    /// The partition keys of the limits, if they are reported.
    pub(crate) partitions: Box<[(Name, PartitionKey)]>,
    /// The random time that is added to the wait of a refused client.
    pub(crate) jitter: Duration,
    /// True if all limits that apply are shadows, so that the response says nothing.
    pub(crate) only_shadows: bool,
}

impl Report {
    /// Makes a report of a decision by the store, or of no decision, with defaults for the rest.
    #[cfg(test)]
    pub(crate) fn new(decision: Option<Decision>) -> Self {
        Self {
            decision,
            by: Counted::Shared,
            overrides: Vec::new(),
            oversized: Vec::new(),
            partitions: Box::default(),
            jitter: Duration::ZERO,
            only_shadows: false,
        }
    }

    pub(crate) fn is_degraded(&self) -> bool {
        self.decision.is_none() || self.by == Counted::Locally
    }

    /// Returns the quota of a limit for this request, if it differs from the limit's own.
    pub(super) fn other_quota(&self, limit: Name) -> Option<&Quota> {
        find(&self.overrides, limit)
    }

    pub(super) fn partition_key(&self, limit: Name) -> Option<&str> {
        find(&self.partitions, limit).map(|partition| &*partition.0)
    }

    /// Returns whether each limit has its own quota and no partition key.
    pub(super) const fn has_own_quotas(&self) -> bool {
        self.overrides.is_empty() && self.partitions.is_empty()
    }
}

fn find<T>(list: &[(Name, T)], limit: Name) -> Option<&T> {
    list.iter()
        .find(|(name, _)| *name == limit)
        .map(|(_, value)| value)
}

/// The number of bytes of a partition key.
const PARTITION_BYTES: usize = 12;

/// A function from keys to partition keys, by a secret.
#[derive(Clone)]
pub(crate) struct Partitions {
    seed: [u8; 16],
}

/// A partition key in base64, for a Byte Sequence (RFC 9651, section 3.3.5).
#[derive(Debug)]
pub(crate) struct PartitionKey(String);

impl Partitions {
    pub(crate) fn new(secret: &[u8]) -> Self {
        // The seed is only for partition keys. If a store uses the same secret as its seed, the hashes still differ.
        Self {
            seed: Key::new(const { Name::new("partition key") }, secret)
                .digest(&[0; 16])
                .to_be_bytes(),
        }
    }

    /// Returns the partition key of a key; `None` for the key that all requests share.
    pub(crate) fn of(&self, key: &Key<'_>) -> Option<PartitionKey> {
        if *key == Key::EVERYONE {
            return None;
        }
        let digest = key.digest(&self.seed).to_be_bytes();
        Some(PartitionKey(STANDARD.encode(&digest[..PARTITION_BYTES])))
    }
}

impl fmt::Debug for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Partitions")
    }
}
