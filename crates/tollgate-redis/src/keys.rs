//! What subjects are called in Redis.

use tollgate_core::{Key, Name};

use crate::error::RedisConfigError;

/// The version of the stored form. A change of it starts afresh under other keys, so that instances of two versions can
/// run side by side.
const FORMAT: char = '1';
/// Readable keys are for people to look at: longer ones are hashed like any other.
const LONGEST_READABLE: usize = 128;
const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Names keys after subjects.
#[derive(Clone)]
pub(crate) struct KeyNames {
    /// The prefix and the version, up to the last colon.
    start: String,
    seed: [u8; 16],
    readable: bool,
}

impl KeyNames {
    pub(crate) fn new(prefix: &str, secret: Option<&[u8]>, readable: bool) -> Result<Self, RedisConfigError> {
        // Braces would choose a cluster slot; asterisks and their like would mean something in an ACL's pattern.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(fits) {
            return Err(RedisConfigError::Prefix(prefix.to_owned()));
        }
        let seed = match secret {
            Some(secret) if secret.len() < 16 => return Err(RedisConfigError::ShortSecret { bytes: secret.len() }),
            Some(secret) => Key::new(Name::new("tollgate secret"), secret),
            None => Key::new(Name::new("tollgate prefix"), prefix.as_bytes()),
        };
        let seed = seed.digest(&[0; 16]).to_le_bytes();
        Ok(Self { start: format!("{prefix}:{FORMAT}:"), seed, readable })
    }

    /// The name under which a key's subject is stored.
    pub(crate) fn name(&self, key: &Key<'_>) -> String {
        let mut name = String::with_capacity(self.start.len() + LONGEST_READABLE);
        name.push_str(&self.start);
        if self.readable {
            push_readable(&mut name, key.scope().as_str().as_bytes());
            name.push(':');
            push_readable(&mut name, key.as_bytes());
            if name.len() <= self.start.len() + LONGEST_READABLE {
                return name;
            }
            name.truncate(self.start.len());
        }
        push_base64url(&mut name, key.digest(&self.seed));
        name
    }
}

/// 128 bits as 22 characters (RFC 4648, section 5, without padding).
fn push_base64url(name: &mut String, digest: u128) {
    // Six bits at a time from the top; the last character carries the two that remain.
    for shift in (2..128).step_by(6).rev() {
        push_sextet(name, digest >> shift);
    }
    push_sextet(name, digest << 4);
}

fn push_sextet(name: &mut String, bits: u128) {
    name.push(char::from(BASE64URL[usize::from(bits.to_le_bytes()[0] & 63)]));
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
    fn digests_are_spelled_in_22_characters() {
        let spelled = |digest| {
            let mut name = String::new();
            push_base64url(&mut name, digest);
            name
        };
        assert_eq!(spelled(0), "A".repeat(22));
        assert_eq!(spelled(u128::MAX), format!("{}w", "_".repeat(21)));
        // The bytes 0, 1, 2, ... 15.
        assert_eq!(spelled(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f), "AAECAwQFBgcICQoLDA0ODw");
    }

    #[test]
    fn hashes_depend_on_secret_and_prefix() {
        let key = Key::new(USER, b"ann");
        let name = |prefix, secret| KeyNames::new(prefix, secret, false).unwrap().name(&key);
        assert_eq!(name("shop", None), name("shop", None));
        assert_eq!(name("shop", None).len(), "shop:1:".len() + 22);
        let tail = |mut name: String| name.split_off(name.len() - 22);
        assert_ne!(tail(name("shop", None)), tail(name("shop2", None)));
        assert_ne!(tail(name("shop", None)), tail(name("shop", Some(b"0123456789abcdef"))));
    }

    #[test]
    fn readable_names_keep_their_parts_apart() {
        let names = KeyNames::new("shop", None, true).unwrap();
        assert_eq!(names.name(&Key::new(USER, b"ann")), "shop:1:user:ann");
        assert_eq!(names.name(&Key::new(USER, b"a:{b}\xff")), "shop:1:user:a%3A%7Bb%7D%FF");
        assert_eq!(names.name(&Key::new(USER, &[b'x'; 500])).len(), "shop:1:".len() + 22);
    }

    #[test]
    fn prefixes_and_secrets_are_checked() {
        for wrong in ["", "a b", "{a}", "shop*", "é", &"x".repeat(65)] {
            let error = KeyNames::new(wrong, None, false).err();
            assert!(matches!(error, Some(RedisConfigError::Prefix(ref named)) if named == wrong), "{wrong:?}");
        }
        let error = KeyNames::new("shop", Some(b"short"), false).err();
        assert!(matches!(error, Some(RedisConfigError::ShortSecret { bytes: 5 })));
    }
}
