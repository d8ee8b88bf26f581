//! Builds the names of keys in Redis, `PREFIX:4:{TAG}:ID`, and `PREFIX:4:{TAG}:ID:holds:LIMIT` for the holds of a limit.

use core::num::NonZeroUsize;

use smallvec::SmallVec;
use tower_quota_core::{Key, Name};

use crate::config_error::RedisConfigError;
use crate::slots;

/// The version in each name, so that two versions use different keys.
const FORMAT: char = '4';
/// The maximum length of a readable id. A longer id is hashed.
const LONGEST_READABLE: usize = 128;
/// The bytes of a hash. Among a billion clients, the odds of any collision are about 1 in 10^11.
const HASHED: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EntryKey(SmallVec<[u8; 40]>);

impl EntryKey {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the key of the holds of a limit, in the same cluster slot.
    pub(crate) fn of_holds(&self, limit: Name) -> Self {
        let mut name = self.0.clone();
        name.extend_from_slice(b":holds:");
        push_readable(&mut name, limit.as_str().as_bytes());
        Self(name)
    }

    pub(crate) fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

#[derive(Clone)]
pub(crate) struct KeyNames {
    prefix: String,
    partitions: Vec<String>,
    seed: [u8; 16],
    readable: bool,
}

impl KeyNames {
    pub(crate) fn new(
        given: &str,
        secret: Option<&[u8]>,
        readable: bool,
        partitions: NonZeroUsize,
    ) -> Result<Self, RedisConfigError> {
        // Accept a final colon, because the prefixes of other limiters often have one.
        let prefix = given.strip_suffix(':').unwrap_or(given);
        // Refuse other characters. Braces would choose a cluster slot, and asterisks have a meaning
        // in ACL patterns.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(fits) {
            return Err(RedisConfigError::Prefix(given.to_owned()));
        }
        let seed = match secret {
            Some(secret) if secret.len() < 16 => {
                return Err(RedisConfigError::ShortSecret {
                    bytes: secret.len(),
                });
            }
            Some(secret) => Key::new(Name::new("tower-quota secret"), secret),
            // Without a secret, all instances still need the same seed, so derive it from the
            // prefix.
            None => Key::new(Name::new("tower-quota prefix"), prefix.as_bytes()),
        };
        let seed = seed.digest(&[0; 16]).to_le_bytes();
        let tags = slots::tags(partitions.get());
        let partitions = tags
            .into_iter()
            .map(|tag| format!("{prefix}:{FORMAT}:{{{tag}}}:"))
            .collect();
        Ok(Self {
            prefix: prefix.to_owned(),
            partitions,
            seed,
            readable,
        })
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns a seed for hashes of keys elsewhere, from the prefix and the secret.
    pub(crate) fn seed_elsewhere(&self) -> [u8; 16] {
        let of_prefix = Key::new(Name::new("tower-quota key seed"), self.prefix.as_bytes());
        of_prefix.digest(&self.seed).to_le_bytes()
    }

    pub(crate) fn partition_key(&self, partition: usize) -> &str {
        self.partitions.get(partition).map_or("", String::as_str)
    }

    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    pub(crate) fn key_of(&self, key: &Key<'_>) -> String {
        self.locate(key).1.to_text()
    }

    pub(crate) fn locate(&self, key: &Key<'_>) -> (usize, EntryKey) {
        // Choose the partition by the keyed hash, so that clients cannot choose it.
        let digest = key.digest(&self.seed);
        let partition = ((digest >> 96) % self.partitions.len() as u128) as usize;
        let mut name = EntryKey(SmallVec::from_slice(
            self.partition_key(partition).as_bytes(),
        ));
        self.push_id(&mut name.0, key, digest);
        (partition, name)
    }

    fn push_id(&self, name: &mut SmallVec<[u8; 40]>, key: &Key<'_>, digest: u128) {
        let before = name.len();
        if self.readable {
            push_readable(name, key.scope().as_str().as_bytes());
            name.push(b':');
            match key.to_address() {
                // Mark addresses with a sign that no readable text begins with.
                Some(address) => name.extend_from_slice(format!("@{address}").as_bytes()),
                None => push_readable(name, key.as_bytes()),
            }
        }
        if !self.readable || name.len() - before > LONGEST_READABLE {
            name.truncate(before);
            push_base64url(name, &digest.to_le_bytes()[..HASHED]);
        }
    }
}

fn push_readable(name: &mut SmallVec<[u8; 40]>, bytes: &[u8]) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            name.push(byte);
        } else {
            name.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

/// Appends bytes as base64url (RFC 4648, section 5). A multiple of three bytes needs no padding.
fn push_base64url(name: &mut SmallVec<[u8; 40]>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for three in bytes.chunks_exact(3) {
        let bits = three
            .iter()
            .fold(0, |bits, &byte| bits << 8 | usize::from(byte));
        name.extend([18, 12, 6, 0].map(|shift| DIGITS[bits >> shift & 63]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Name = Name::new("user");

    #[test]
    fn ids_depend_on_secret_and_prefix() {
        let key = Key::new(USER, b"ann");
        let id = |prefix: &str, secret| {
            let name = KeyNames::new(prefix, secret, false, NonZeroUsize::MIN)
                .unwrap()
                .key_of(&key);
            name.rsplit_once(':').unwrap().1.to_owned()
        };
        assert_eq!(id("shop", None), id("shop", None));
        assert_eq!(id("shop", None).len(), 16);
        assert_ne!(id("shop", None), id("shop2", None));
        assert_ne!(
            id("shop", None),
            id("shop", Some(b"0123456789abcdef".as_slice()))
        );
    }

    #[test]
    fn readable_ids_keep_parts_separate() {
        let names = KeyNames::new("shop", None, true, NonZeroUsize::MIN).unwrap();
        let start = names.partition_key(0);
        assert!(
            start.starts_with("shop:4:{") && start.ends_with("}:"),
            "{start}"
        );
        let id = |bytes: &[u8]| {
            names
                .key_of(&Key::new(USER, bytes))
                .strip_prefix(start)
                .unwrap()
                .to_owned()
        };
        assert_eq!(id(b"ann"), "user:ann");
        assert_eq!(id(b"a:{b}\xff"), "user:a%3A%7Bb%7D%FF");
        assert_eq!(id(b"@203.0.113.7"), "user:%40203.0.113.7");
        for (address, text) in [
            ("203.0.113.7", "ip:@203.0.113.7"),
            ("2001:db8:0:1::7", "ip:@2001:db8:0:1::"),
        ] {
            let key = Key::address(Name::new("ip"), address.parse().unwrap());
            assert_eq!(names.key_of(&key).strip_prefix(start).unwrap(), text);
        }
        let scoped = names.key_of(&Key::new(Name::new("user:a"), b"b"));
        assert_eq!(scoped.strip_prefix(start).unwrap(), "user%3Aa:b");
        assert_eq!(id(&[b'x'; 500]).len(), 16);
    }

    #[test]
    fn trailing_colon_of_prefix_changes_nothing() {
        let name = |prefix| {
            KeyNames::new(prefix, None, true, NonZeroUsize::MIN)
                .unwrap()
                .key_of(&Key::new(USER, b"ann"))
        };
        assert!(name("rl:").starts_with("rl:4:{"), "{}", name("rl:"));
        assert_eq!(name("rl:"), name("rl"));
    }

    #[test]
    fn base64url_matches_the_rfc() {
        let encoded = |bytes: &[u8]| {
            let mut name = SmallVec::new();
            push_base64url(&mut name, bytes);
            String::from_utf8(name.to_vec()).unwrap()
        };
        assert_eq!(encoded(b"foobar"), "Zm9vYmFy");
        assert_eq!(encoded(&[0xfb, 0xff, 0xfe]), "-__-");
    }

    #[test]
    fn prefixes_and_secrets_are_checked() {
        for wrong in ["", ":", "a b", "{a}", "shop*", "é", &"x".repeat(65)] {
            let error = KeyNames::new(wrong, None, false, NonZeroUsize::MIN).err();
            assert!(
                matches!(error, Some(RedisConfigError::Prefix(ref named)) if named == wrong),
                "{wrong:?}"
            );
        }
        let error = KeyNames::new("shop", Some(b"short"), false, NonZeroUsize::MIN).err();
        assert!(matches!(
            error,
            Some(RedisConfigError::ShortSecret { bytes: 5 })
        ));
    }
}
