use core::fmt;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tower_quota_core::{Decision, Key, Name, Quota};

use crate::settle::Counted;

/// The decision about a request, with all data for the response.
#[derive(Debug)]
pub(crate) struct Report {
    /// Absent if the store failed and the request was not counted.
    pub(crate) decision: Option<Decision>,
    pub(crate) by: Counted,
    /// Quotas that depend on the request.
    pub(crate) overrides: Vec<(Name, Quota)>,
    /// The costs above the capacity of their limit.
    pub(crate) oversized: Vec<(Name, u64)>,
    pub(crate) partitions: Box<[(Name, PartitionKey)]>,
    pub(crate) jitter: Duration,
    /// If set, the response gets no fields.
    pub(crate) only_shadows: bool,
}

impl Report {
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

    pub(super) fn other_quota(&self, limit: Name) -> Option<&Quota> {
        find(&self.overrides, limit)
    }

    pub(super) fn partition_key(&self, limit: Name) -> Option<&str> {
        find(&self.partitions, limit).map(|partition| &*partition.0)
    }

    pub(super) const fn has_own_quotas(&self) -> bool {
        self.overrides.is_empty() && self.partitions.is_empty()
    }
}

fn find<T>(list: &[(Name, T)], limit: Name) -> Option<&T> {
    list.iter()
        .find(|(name, _)| *name == limit)
        .map(|(_, value)| value)
}

const PARTITION_BYTES: usize = 12;

/// Derives partition keys by a secret.
#[derive(Clone)]
pub(crate) struct Partitions {
    seed: [u8; 16],
}

/// A Byte Sequence in base64 (RFC 9651, section 3.3.5).
#[derive(Debug)]
pub(crate) struct PartitionKey(String);

impl Partitions {
    pub(crate) fn new(secret: &[u8]) -> Self {
        // The name separates the hashes from a store that shares the secret.
        Self {
            seed: Key::new(const { Name::new("partition key") }, secret)
                .digest(&[0; 16])
                .to_be_bytes(),
        }
    }

    /// The key of all requests has no partition.
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
