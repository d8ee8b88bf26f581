//! Partition keys: whose counter a limit reads, without saying who that is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tower_quota_core::{Key, Name};

/// Bytes of a hash that clients see. Enough to tell a service's partitions apart; of what a key is made, nothing.
const LENGTH: usize = 12;

/// Makes partition keys, by a secret.
#[derive(Clone)]
pub(crate) struct Partitions {
    seed: [u8; 16],
}

/// A partition key in base64, as it stands between the colons of a Byte Sequence (RFC 9651, section 3.3.5).
#[derive(Debug, Clone)]
pub(crate) struct PartitionKey(String);

impl Partitions {
    pub(crate) fn new(secret: &[u8]) -> Self {
        // A seed of this use alone: were the secret also the seed of a store, the two would make different hashes.
        Self { seed: Key::new(const { Name::new("partition key") }, secret).digest(&[0; 16]).to_be_bytes() }
    }

    /// The partition of a key; `None` where all requests share one.
    pub(crate) fn of(&self, key: &Key<'_>) -> Option<PartitionKey> {
        if *key == Key::EVERYONE {
            return None;
        }
        let digest = key.digest(&self.seed).to_be_bytes();
        Some(PartitionKey(STANDARD.encode(&digest[..LENGTH])))
    }
}

impl PartitionKey {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl core::fmt::Debug for Partitions {
    /// Keeps the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Partitions")
    }
}
