//! What subjects are called in Redis.

use core::num::NonZeroUsize;

use smallvec::SmallVec;
use tower_quota_core::{Key, Name};

use crate::error::RedisConfigError;

/// The version of the stored form. A change of it starts afresh under other keys, so that instances of two versions can
/// run side by side.
const FORMAT: char = '2';
/// Readable ids are for people to look at: longer ones are hashed like any other.
const LONGEST_READABLE: usize = 128;
/// Bytes of a hashed id: 96 bits. Among a billion subjects the odds of any collision are about 1 in 10^11.
const HASHED: usize = 12;

/// What a subject is called within its partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubjectId(SmallVec<[u8; 16]>);

impl SubjectId {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Names subjects, and the keys they are kept under.
#[derive(Clone)]
pub(crate) struct KeyNames {
    /// For each partition the key that the others are named after.
    quotas: Vec<String>,
    seed: [u8; 16],
    readable: bool,
}

impl KeyNames {
    pub(crate) fn new(
        prefix: &str,
        secret: Option<&[u8]>,
        readable: bool,
        partitions: NonZeroUsize,
    ) -> Result<Self, RedisConfigError> {
        // Braces would choose a cluster slot; asterisks and their like would mean something in an ACL's pattern.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(fits) {
            return Err(RedisConfigError::Prefix(prefix.to_owned()));
        }
        let seed = match secret {
            Some(secret) if secret.len() < 16 => return Err(RedisConfigError::ShortSecret { bytes: secret.len() }),
            Some(secret) => Key::new(Name::new("tower-quota secret"), secret),
            None => Key::new(Name::new("tower-quota prefix"), prefix.as_bytes()),
        };
        let seed = seed.digest(&[0; 16]).to_le_bytes();
        let quotas = (0..partitions.get()).map(|partition| quotas_key(prefix, partition)).collect();
        Ok(Self { quotas, seed, readable })
    }

    /// The key that a partition's other keys are named after. All of them share its hash tag, hence its cluster slot.
    pub(crate) fn quotas(&self, partition: usize) -> &str {
        self.quotas.get(partition).map_or("", String::as_str)
    }

    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> usize {
        self.quotas.len()
    }

    /// How many bytes each id has; 0 if they differ.
    pub(crate) fn id_width(&self) -> usize {
        if self.readable { 0 } else { HASHED }
    }

    /// The partition a key's subject is in, and its id there.
    pub(crate) fn locate(&self, key: &Key<'_>) -> (usize, SubjectId) {
        let digest = key.digest(&self.seed);
        let partitions = self.quotas.len() as u128;
        let partition = ((digest >> 96) % partitions) as usize;
        (partition, self.id(key, digest))
    }

    fn id(&self, key: &Key<'_>, digest: u128) -> SubjectId {
        if !self.readable {
            return SubjectId(SmallVec::from_slice(&digest.to_le_bytes()[..HASHED]));
        }
        let mut name = String::new();
        push_readable(&mut name, key.scope().as_str().as_bytes());
        name.push(':');
        push_readable(&mut name, key.as_bytes());
        if name.len() > LONGEST_READABLE {
            name = format!("{digest:032x}");
        }
        SubjectId(SmallVec::from_slice(name.as_bytes()))
    }
}

fn quotas_key(prefix: &str, partition: usize) -> String {
    format!("{prefix}:{FORMAT}:{{{partition}}}:quotas")
}

/// Bytes as they are where they are letters, digits or `-_.`, and in percent form otherwise.
fn push_readable(name: &mut String, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            name.push(char::from(byte));
        } else {
            name.push('%');
            name.push(char::from(HEX[usize::from(byte >> 4)]));
            name.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Name = Name::new("user");

    #[test]
    fn ids_depend_on_secret_and_prefix() {
        let key = Key::new(USER, b"ann");
        let id = |prefix, secret| KeyNames::new(prefix, secret, false, NonZeroUsize::MIN).unwrap().locate(&key).1;
        assert_eq!(id("shop", None), id("shop", None));
        assert_eq!(id("shop", None).as_bytes().len(), 12);
        assert_ne!(id("shop", None), id("shop2", None));
        assert_ne!(id("shop", None), id("shop", Some(b"0123456789abcdef".as_slice())));
    }

    #[test]
    fn readable_ids_keep_their_parts_apart() {
        let names = KeyNames::new("shop", None, true, NonZeroUsize::MIN).unwrap();
        let id = |bytes: &[u8]| String::from_utf8(names.locate(&Key::new(USER, bytes)).1.as_bytes().to_vec()).unwrap();
        assert_eq!(id(b"ann"), "user:ann");
        assert_eq!(id(b"a:{b}\xff"), "user:a%3A%7Bb%7D%FF");
        assert_eq!(id(&[b'x'; 500]).len(), 32);
        assert_eq!(names.quotas(0), "shop:2:{0}:quotas");
    }

    #[test]
    fn prefixes_and_secrets_are_checked() {
        for wrong in ["", "a b", "{a}", "shop*", "é", &"x".repeat(65)] {
            let error = KeyNames::new(wrong, None, false, NonZeroUsize::MIN).err();
            assert!(matches!(error, Some(RedisConfigError::Prefix(ref named)) if named == wrong), "{wrong:?}");
        }
        let error = KeyNames::new("shop", Some(b"short"), false, NonZeroUsize::MIN).err();
        assert!(matches!(error, Some(RedisConfigError::ShortSecret { bytes: 5 })));
    }
}
